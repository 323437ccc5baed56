"""systemd units: splitting, quoting, variables and specifiers as systemd has them."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import argv, check_maps, told

START = "/usr/bin/sglang serve"


def words(text: str, files: dict[str, str] | None = None, name: str = "a.service") -> list[list[str]]:
    document = parse(name, text, (files or {}).get)
    check_maps(document)
    return [argv(launch.variants[0]) for launch in document.launches]


COMMANDS: list[tuple[str, list[str]]] = [
    ("m --tp 8", ["m", "--tp", "8"]),
    ("m \\\n  --tp 8", ["m", "--tp", "8"]),
    ("m \\\n  # why\n  ; also\n  --tp 8", ["m", "--tp", "8"]),
    ('"a b" \'c "d"\' e\\sf', ["a b", 'c "d"', "e f"]),
    ('--x="a\\tb" \\x41', ["--x=a\tb", "A"]),
    ("m --host %H --x %%", ["m", "--host", "?", "--x", "%"]),
    ("$FLAGS", ["--page-size", "64", "--q", "a b"]),
    ("x$FLAGS", ["x$FLAGS"]),
    ("${FLAGS}", ["--page-size 64 --q 'a b'"]),
    ("--tp=${TP}", ["--tp=8"]),
    ("--tp $TP", ["--tp", "8"]),
    ("--tp $NOPE", ["--tp", "?+"]),
    ("--tp ${NOPE}", ["--tp", "?"]),
    ("--x $$TP", ["--x", "$TP"]),
    ("m --tp 8 ; /bin/true", ["m", "--tp", "8"]),
]


@pytest.mark.parametrize(("line", "expected"), COMMANDS)
def test_commands(line: str, expected: list[str]) -> None:
    text = f"[Service]\nEnvironment=TP=8 \"FLAGS=--page-size 64 --q 'a b'\"\nExecStart={START} {line}\n"
    assert words(text) == [expected]


@pytest.mark.parametrize("prefix", ["-", "@", ":", "+", "!", "!!", "|", "@-", "-:"])
def test_prefixes(prefix: str) -> None:
    assert words(f"[Service]\nExecStart={prefix}/opt/python -m sglang.launch_server --tp 8\n") == [["--tp", "8"]]


def test_no_variables_behind_a_colon() -> None:
    assert words(f"[Service]\nEnvironment=TP=8\nExecStart=:{START} --tp $TP\n") == [["--tp", "$TP"]]


UNITS: list[tuple[str, list[list[str]]]] = [
    (f"[Unit]\nExecStart={START} a\n[Service]\nExecStart={START} b\n", [["b"]]),
    (f"[Service]\nExecStartPre={START} a\nExecStart={START} b\n", [["a"], ["b"]]),
    (f"[Service]\nExecStart={START} a\nExecStart=\nExecStart={START} b\n", [["b"]]),
    (f"[Service]\nExecStart={START} a ; {START} b\n", [["a"], ["b"]]),
    (f"[Service]\n#ExecStart={START} a\n;ExecStart={START} b\n", []),
    ("[Service]\nExecStop=/bin/sglang serve a\nExecStart=/bin/echo sglang serve b\n", []),
    ("[Service]\nExecStart=/bin/sh -c 'exec sglang serve $M --tp ${TP}'\nEnvironment=TP=8\n", [["?+", "--tp", "8"]]),
    ("[Service]\nExecStart=/usr/bin/docker run i sglang serve a \\\n  --tp 8\n", [["a", "--tp", "8"]]),
]


@pytest.mark.parametrize(("text", "expected"), UNITS, ids=range(len(UNITS)))
def test_units(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_environment_file() -> None:
    text = f"[Service]\nEnvironmentFile=-/etc/default/sglang\nExecStart={START} $MODEL --tp ${{TP}}\n"
    files = {"/etc/default/sglang": "# it\nMODEL=m\nTP='8'\n"}
    assert words(text, files) == [["m", "--tp", "8"]]
    assert words(text) == [["?+", "--tp", "?"]]
    assert parse("a.service", text).depends_on == {"/etc/default/sglang"}


def test_environment_of_the_launch() -> None:
    text = f"[Service]\nEnvironment=A=1 'SGLANG_B=x y'\nEnvironment=A=2\nExecStart={START} m\n"
    (launch,) = parse("sglang.service.d/x.conf", text).launches
    assert {n: told(w) for n, w in launch.variants[0].env.items()} == {"A": "2", "SGLANG_B": "x y"}


def test_value_is_written_where_the_variable_is_set() -> None:
    text = f"[Service]\nEnvironment=TP=8\nExecStart={START} --tp ${{TP}}\n"
    word = parse("a.service", text).launches[0].variants[0].words[1]
    assert text[word.place.start : word.place.end] == "${TP}"
    assert [text[f.place.start : f.place.end] for f in word.fragments] == ["8"]


def test_units_of_containers() -> None:
    text = (
        "[Container]\nImage=lmsysorg/sglang:v0.5.9\nEnvironment=SGLANG_X=1\nExec=python3 -m sglang.launch_server m \\\n"
        "  --port ${PORT}\n\n[Service]\nEnvironment=PORT=8001\nRestart=on-failure\n"
    )
    for name in ("llm.container", "llm.container.d/10-x.conf"):
        document = parse(name, text)
        check_maps(document)
        (launch,) = document.launches
        (variant,) = launch.variants
        assert argv(variant) == ["m", "--port", "8001"]
        assert {key: value.text for key, value in variant.env.items()} == {"SGLANG_X": "1"}
        assert [(c.kind, c.text) for c in launch.clues] == [("image", "lmsysorg/sglang:v0.5.9")]
    assert words("[Container]\nEntrypoint=sglang\nExec=serve m\nExec=serve n\n", name="a.container") == [["n"]]
    assert words("[Container]\nImage=x\nExec=sleep 9\n", name="a.container") == []
    assert words(f"# Unit\n\n```ini\n{text}```\n", name="a.md") == [["m", "--port", "8001"]]
