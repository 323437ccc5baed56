"""What is printed commands nobody, whatever stands in the names, values and messages."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.cli.excerpt import columns
from spec_lsp.cli.formats import Run, writer
from spec_lsp.cli.printed import Guarded, guarded_streams, harmless, json_text
from spec_lsp.cli.report import FileReport, Location, OfferedFix, Position, Replacement, ReportedFinding, SourceLine
from tests.cli.conftest import Ran
from tests.hostile.inputs import made

NASTY = st.sampled_from([
    "\n", "\r", "\0", "\x1b[31m", "\x1b]0;x\x07", "\x9b31m", "\x7f", "\u202e", "\u2066", "\u2028", "\u2029", "\x85", "\udc80", "\ud800",
    "::error file=x::y", "\n::set-output name=a::b", "##[error]", "##vso[task.setvariable variable=a]b", "##teamcity[x]", "%0A", "%", ",",
    ":", "]]>", "<!--", "&", "<", '"', "'", "\ufffe", "\U0001f600", "\t", "é", "\\", "\U000e0001", "\u200b",
])  # fmt: skip
TEXT = st.lists(st.one_of(NASTY, st.text(max_size=5)), max_size=6).map("".join)
FORMATS = ("text", "json", "github", "gitlab", "sarif", "junit", "html")


def dangerous(text: str) -> list[str]:
    """The characters of an output that are neither shown nor a line end."""
    return [
        c
        for c in text
        if c != "\n" and (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    ]  # fmt: skip


def commands(text: str) -> list[str]:
    """The lines that a CI runner would obey."""
    return [
        line
        for line in text.split("\n")
        if line.lstrip().startswith("::") or re.search(r"##(\[|vso\[|teamcity\[)", line)
    ]


@st.composite
def reports(draw: st.DrawFn) -> list[FileReport]:
    def location() -> Location:
        return Location(draw(TEXT), Position(0, 1), Position(0, 3), (SourceLine(0, draw(TEXT).replace("\n", "")),))

    found = []
    for _ in range(draw(st.integers(0, 3))):
        at = location()
        fixes = (OfferedFix(draw(TEXT), "safe", (Replacement(at, draw(TEXT)),), True),)
        severity = draw(st.sampled_from(["error", "warning", "information", "hint"]))
        found.append(
            ReportedFinding(
                "unknown-flag", "SPC001", severity, draw(TEXT), at, False, ((location(), draw(TEXT)),), fixes, "x"
            )
        )
    told = draw(TEXT)
    return [
        FileReport(draw(TEXT), tuple(found), 1, fixed=(draw(TEXT),), diff=draw(TEXT), notes=(told,)),
        FileReport(draw(TEXT), problem=f"x{draw(TEXT)}", failure=draw(TEXT)),
    ]


def written(name: str, given: list[FileReport]) -> str:
    out = io.StringIO()
    writer(name)(given, out if name == "github" else Guarded(out), Run())  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("name", FORMATS)
@given(given=reports())
def test_no_format_lets_a_dangerous_character_through(name: str, given: list[FileReport]) -> None:
    text = written(name, given).replace("\r\n", "\n")  # a patch keeps the line ends of Windows
    assert dangerous(text.replace("\t", "")) == []
    assert name == "github" or commands(text) == []
    text.encode()


@given(given=reports())
def test_json_says_what_was_found(given: list[FileReport]) -> None:
    for name in ("json", "gitlab", "sarif"):
        json.loads(written(name, given))
    found = [f for report in given for f in report.found]
    entries = json.loads(written("json", given))
    halves = ((e["message"], e["file"]) for e in entries)
    assert list(halves) == [(json.loads(json.dumps(f.message)), json.loads(json.dumps(f.file))) for f in found]


@given(given=reports())
def test_xml_can_be_read(given: list[FileReport]) -> None:
    root = ET.fromstring(written("junit", given))
    assert len(root.findall("testsuite")) == len(given)


@given(given=reports())
def test_a_line_for_github_is_one_finding(given: list[FileReport]) -> None:
    lines = written("github", given).splitlines()
    found = [f for report in given for f in report.found]
    assert len(lines) == len(found)
    for line, one in zip(lines, found, strict=True):
        command = re.fullmatch(
            r"::(error|warning|notice) file=([^:,]*),line=1,endLine=1,col=2,endColumn=4,title=[^:,]*::(.*)", line
        )
        assert command is not None, line
        assert harmless(
            command[2]
            .replace("%3A", ":")
            .replace("%2C", ",")
            .replace("%0A", "\n")
            .replace("%0D", "\r")
            .replace("%25", "%")
        ) == (harmless(one.file))


@given(TEXT)
def test_a_harmless_text_is_one_line_of_known_width(text: str) -> None:
    shown = harmless(text)
    assert dangerous(shown) == []
    assert "\n" not in shown
    assert harmless(shown) == shown
    assert columns(text) == columns(shown)


@given(st.lists(TEXT, max_size=4))
def test_a_guarded_stream_obeys_nobody(parts: list[str]) -> None:
    out = io.StringIO()
    stream = Guarded(out)
    for part in parts:
        stream.write(part)
    text = re.sub(r"\x1b\[[0-9;]*m|\r\x1b\[K|\r\n|\t", "", out.getvalue())
    assert dangerous(text) == []


def test_what_is_ours_is_let_through() -> None:
    out = io.StringIO()
    stream = Guarded(out)
    for text in (
        "\x1b[1;31merror\x1b[0m: x\n",
        "\r\x1b[KChecking",
        "a\tb\r\n",
        "é → 名 😀\n",
        "a::b\n",
        "  a ::b\n",
        "# # [x]\n",
    ):
        stream.write(text)
    assert out.getvalue() == "\x1b[1;31merror\x1b[0m: x\n\r\x1b[KCheckinga\tb\r\né → 名 😀\na::b\n  a ::b\n# # [x]\n"


@pytest.mark.parametrize(
    "parts",
    [["::error::x\n"], ["  ::error::x\n"], ["a\n", "::x::\n"], [" ", "::x::"], ["a ##[error]x\n"], ["##vso[x]\n"]],
)
def test_commands_of_runners_are_escaped_wherever_they_are_written(parts: list[str]) -> None:
    out = io.StringIO()
    stream = Guarded(out)
    for part in parts:
        stream.write(part)
    assert commands(out.getvalue()) == []


@given(
    st.recursive(
        TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
    )
)
def test_json_reads_the_same(value: object) -> None:
    assert json.loads(json_text(value)) == json.loads(json.dumps(value))


def test_the_streams_are_as_before_afterwards() -> None:
    before = sys.stdout, sys.stderr
    with guarded_streams():
        assert isinstance(sys.stdout, Guarded)
    assert (sys.stdout, sys.stderr) == before


COMMANDS = [
    *(["check", ".", "--format", name] for name in FORMATS),
    ["check", ".", "--diff", "--unsafe-fixes"], ["check", ".", "--statistics"], ["launches", "."], ["launches", ".", "--json"],
    ["settings", "."], ["explain", "--\x1b[31m\n::error::x"], ["explain", "x\u202e\n::error::"], ["check", "no\n::error::\x1b[31m"],
    ["resolve", "--", "--model-path", "\x1b[31mx\n::error::y", "--chat-template", "\u202e\n::debug::"],
    ["resolve", "--json", "--", "--model-path", "\x9b\u2028x", "--served-model-name", "\n::error::"],
    ["resolve", "--sglang", "\x1b[31m\n::x::", "--", "--model-path", "m"], ["check", "--\x1b[31m\n::error::"], ["catalog", "build", "\n::x::\x1b["],
    ["\n::error::\x1b[31m"], ["schema", "--sglang", "\n::error::\x1b[31m"],
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(map(ascii, words)))
def test_no_command_prints_what_commands(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: object
) -> None:
    monkeypatch.chdir(made("names_that_command", tmp_path))
    ran = run(*words)  # type: ignore[operator]
    assert isinstance(ran, Ran)
    for text in (ran.out, ran.err):
        assert dangerous(text.replace("\t", "")) == []
        obeyed = commands(text)
        assert obeyed == [] or (
            "github" in words and all(re.match(r"::(error|warning|notice) file=", line) for line in obeyed)
        )
