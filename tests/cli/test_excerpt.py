"""What a terminal shows of a place."""

from __future__ import annotations

from textwrap import dedent

import pytest

from spec_lsp.cli.excerpt import columns, excerpt
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import Location, Position, SourceLine
from spec_lsp.cli.style import Style, plain


def at(text: str, mark: str, file: str = "launch.sh") -> Location:
    """The place of `mark` in `text`."""
    start = text.index(mark)
    end = start + len(mark)
    lines = text.split("\n")
    first, last = text[:start].count("\n"), text[:end].count("\n")
    begin = Position(first, start - (text.rfind("\n", 0, start) + 1))
    finish = Position(last, end - (text.rfind("\n", 0, end) + 1))
    return Location(file, begin, finish, tuple(SourceLine(n, lines[n]) for n in range(first, last + 1)))


def shown(primary: Location, *related: tuple[Location, str]) -> str:
    return "\n".join(line.rstrip() for line in excerpt(primary, related, "error", Style())) + "\n"


SCRIPT = """\
BACKEND=trtllm_mha
python -m sglang.launch_server \\
  --attention-backend $BACKEND \\
  --speculative-eagle-topk 4 --page-size 16
"""

CASES = {
    "one place": (
        [at(SCRIPT, "4 --page")],
        """\
         --> launch.sh:4:28
          |
        4 |   --speculative-eagle-topk 4 --page-size 16
          |                            ^^^^^^^^
          |
        """,
    ),
    "a related place on the same line": (
        [at(SCRIPT, "4 "), (at(SCRIPT, "16"), "with this")],
        """\
         --> launch.sh:4:28
          |
        4 |   --speculative-eagle-topk 4 --page-size 16
          |                            ^^            -- with this
          |
        """,
    ),
    "related places on other lines, with a gap": (
        [at(SCRIPT, "--speculative-eagle-topk 4"), (at(SCRIPT, "trtllm_mha"), "written here"), (at(SCRIPT, "$BACKEND"), "takes part")],
        """\
         --> launch.sh:4:3
          |
        1 | BACKEND=trtllm_mha
          |         ---------- written here
        ...
        3 |   --attention-backend $BACKEND \\
          |                       -------- takes part
        4 |   --speculative-eagle-topk 4 --page-size 16
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
        """,
    ),
    "two labels on one line": (
        [at(SCRIPT, "--attention-backend"), (at(SCRIPT, "topk 4"), "first"), (at(SCRIPT, "page-size"), "second")],
        """\
         --> launch.sh:3:3
          |
        3 |   --attention-backend $BACKEND \\
          |   ^^^^^^^^^^^^^^^^^^^
        4 |   --speculative-eagle-topk 4 --page-size 16
          |                       ------   --------- second
          |                       first
          |
        """,
    ),
    "a related place in another file": (
        [at("page-size: 16\n", "16", "config.yaml"), (at(SCRIPT, "python -m sglang.launch_server"), "the launch that uses this file")],
        """\
         --> config.yaml:1:12
          |
        1 | page-size: 16
          |            ^^
          |
         --> launch.sh:2:1
          |
        2 | python -m sglang.launch_server \\
          | ------------------------------ the launch that uses this file
          |
        """,
    ),
    "a place over several lines": (
        [at(SCRIPT, "$BACKEND \\\n  --spec")],
        """\
         --> launch.sh:3:23
          |
        3 |   --attention-backend $BACKEND \\
          |                       ^^^^^^^^^^
        4 |   --speculative-eagle-topk 4 --page-size 16
          |   ^^^^^^
          |
        """,
    ),
    "an empty place": (
        [Location("a.sh", Position(0, 2), Position(0, 2), (SourceLine(0, "ab"),))],
        """\
         --> a.sh:1:3
          |
        1 | ab
          |   ^
          |
        """,
    ),
    "tabs and wide characters": (
        [at("\t名前=x --tp 8", "--tp")],
        """\
         --> launch.sh:1:7
          |
        1 |     名前=x --tp 8
          |            ^^^^
          |
        """,
    ),
    "a long line": (
        [Location("a.sh", Position(0, 500), Position(0, 504), (SourceLine(0, "x" * 20 + "--tp" + "y" * 9, 480),))],
        """\
         --> a.sh:1:501
          |
        1 | …xxxxxxxxxxxxxxxxxxxx--tpyyyyyyyyy
          |                      ^^^^
          |
        """,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_excerpt(name: str) -> None:
    places, expected = CASES[name]
    assert shown(places[0], *places[1:]) == dedent(expected)  # type: ignore[arg-type]


def test_colours_change_nothing_but_colour() -> None:
    places = (at(SCRIPT, "4 "), [(at(SCRIPT, "16"), "with this")])
    coloured = excerpt(*places, "error", Style(True))
    assert [plain(line) for line in coloured] == excerpt(*places, "error", Style())
    assert any("\x1b[1;31m^^" in line for line in coloured)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("a\x07", "a␇"),
        ("a\tb", "a    b"),
        ("\x7f", "␡"),
        ("é 名", "é 名"),
        ("\u202e", "\\u202e"),
    ],
)
def test_a_file_cannot_command_the_terminal(text: str, safe: str) -> None:
    assert harmless(text) == safe


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("\t", 4), ("名前", 4), ("e\u0301", 1), ("😀", 2)])
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width
