"""Whatever stands where an installed SGLang should: it is read in bounded steps, or said not to be SGLang's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spec_lsp.catalog import evaluate, fingerprints, variables
from spec_lsp.catalog.builds import NoBuildError, release_at
from spec_lsp.catalog.evaluate import CannotTell
from spec_lsp.catalog.fingerprints import definitions
from spec_lsp.catalog.source import read_flags
from spec_lsp.catalog.variables import modules, read_variables
from spec_lsp.files import MAX_SOURCE

METHOD = "class ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n        parser.add_argument('--first', default=1)\n"


def flags(*lines: str, above: str = "") -> str:
    return above + METHOD + "".join(f"        {line}\n" for line in lines)


HOSTILE = {
    "power": flags("parser.add_argument('--a', default=10**10**10)"),
    "repeated text": flags("parser.add_argument('--a', default='x' * 10**10)"),
    "repeated list": flags("parser.add_argument('--a', default=[0] * 10**10)"),
    "shift": flags("parser.add_argument('--a', default=1 << 10**10)"),
    "width": flags("parser.add_argument('--a', default='%9999999999s' % 1)"),
    "width of a format": flags("parser.add_argument('--a', default='{:9999999999}'.format(1))"),
    "width of a width": flags("parser.add_argument('--a', default='{:{}}'.format(1, 9999999999))"),
    "range": flags("parser.add_argument('--a', choices=list(range(10**10)))"),
    "misfit": flags("parser.add_argument('--a', default=1 < 'a')", "parser.add_argument('--b', default=1 / 0)"),
    "squares": flags("x = 3", *["x = x * x"] * 60, "parser.add_argument('--a', default=x)"),
    "doubled names": flags(
        "parser.add_argument('--a', default=A59)",
        above="A0 = 'xxxx'\n" + "".join(f"A{i + 1} = A{i} + A{i}\n" for i in range(59)),
    ),
    "doubled list": flags("x = [1]", *["x.extend(x)"] * 60, "parser.add_argument('--a', default=x)"),
    "replaced": flags("x = 'xx'", *["x = x.replace('x', 'xxxx')"] * 60, "parser.add_argument('--a', default=x)"),
    "joined": flags("x = 'xx'", *["x = x.join([x, x])"] * 60, "parser.add_argument('--a', default=x)"),
    "formatted": flags("x = 'xx'", *["x = f'{x}{x}'"] * 60, "parser.add_argument('--a', default=x)"),
    "rounds": flags("for a in range(9999):", "    for b in range(9999):", "        pass"),
    "rounds of a list": flags("parser.add_argument('--a', choices=[1 " + "for x in range(99) " * 9 + "])"),
    "itself": flags("parser.add_argument('--a', default=f(1))", above="def f(x):\n    return f(x) + f(x)\n"),
    "attributes": flags(
        "parser.add_argument('--a', default=C.a50)",
        above="class C:\n    a0 = 1\n    a1 = 1\n" + "".join(f"    a{i + 2} = a{i + 1} + a{i}\n" for i in range(50)),
    ),
    "bases": flags("parser.add_argument('--a', choices=list(P))", above="class P(Q): pass\nclass Q(P): pass\n"),
    "imports": flags("parser.add_argument('--a', default=nowhere)", above="from sglang.srt.server_args import *\n"),
    "nested": flags("x = " + "(" * 90 + "1" + ")" * 90, "y = " + "-" * 20_000 + "1"),
    "members": flags(
        *[f"parser.add_argument('--a{i}', choices=[e.value for e in E])" for i in range(50)],
        above="from enum import Enum\nclass E(Enum):\n" + "".join(f"    a{i} = {i}\n" for i in range(3000)),
    ),
    "no Python": "def (",
    "no text": "x = '\0'",
    "no method": "class ServerArgs: pass",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tree_is_read_in_bounded_steps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "sglang"
    (root / "srt").mkdir(parents=True)
    (root / "srt" / "server_args.py").write_text(HOSTILE[name], "utf-8")
    monkeypatch.setattr(evaluate, "MAX_STEPS", 20_000)
    try:
        reading = read_flags(root)
    except CannotTell:
        return
    assert "--first" in {s for flag in reading.flags for s in flag.spellings}
    assert all(len(doubt) < 1000 for doubt in reading.doubts)


def test_a_tree_that_is_a_folder_or_binary(tmp_path: Path) -> None:
    root = tmp_path / "sglang"
    (root / "srt" / "server_args.py").mkdir(parents=True)
    with pytest.raises(CannotTell):
        read_flags(root)
    other = tmp_path / "b" / "sglang"
    (other / "srt").mkdir(parents=True)
    (other / "srt" / "server_args.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CannotTell):
        read_flags(other)


def test_a_tree_that_takes_long_to_parse_is_parsed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of many characters each, and one by many names: what is parsed is counted, and links are followed to nothing."""
    root = tmp_path / "sglang"
    (root / "srt").mkdir(parents=True)
    text = METHOD + "SGLANG_NAMED = 'SGLANG_NAMED'\n" + "x = a(b)\n" * 1000
    for number in range(20):
        (root / "srt" / f"m{number}.py").write_text(text)
        (root / "srt" / f"link{number}.py").symlink_to("m0.py")
    (root / "srt" / "server_args.py").write_text("".join(f"from .m{n} import *\n" for n in range(20)) + text)
    parsed: list[int] = []
    real = ast.parse

    def parse(source: str) -> ast.Module:
        parsed.append(len(source))
        return real(source)

    monkeypatch.setattr(ast, "parse", parse)
    monkeypatch.setattr(variables, "MAX_PARSED", 5 * len(text))
    assert [v.name for v in read_variables(root)] == ["SGLANG_NAMED"]
    assert 0 < sum(parsed) <= 5 * len(text)
    parsed.clear()
    monkeypatch.setattr(fingerprints, "MAX_PARSED", 3 * len(text))
    assert definitions(root, [f"srt/m{n}.py:ServerArgs" for n in range(20)])
    assert 0 < sum(parsed) <= 3 * len(text)
    assert not any("link" in path.name for path in modules(root))


def test_a_module_that_is_larger_than_any_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "sglang"
    (root / "srt").mkdir(parents=True)
    (root / "srt" / "server_args.py").write_text(METHOD + "#" * MAX_SOURCE)
    with pytest.raises(CannotTell):
        read_flags(root)
    with pytest.raises(NoBuildError, match="larger than 1 MiB"):
        release_at(root)
