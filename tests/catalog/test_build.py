"""Building a catalog from small stand-ins for SGLang, by import and from the sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spec_lsp.catalog import build as building
from spec_lsp.catalog import store
from spec_lsp.catalog.build import BuildError, build, flag_differences
from spec_lsp.catalog.model import Flag, Variable
from spec_lsp.catalog.release import Release

ACTIONS = """
import argparse


class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, error_message=None, nargs=0, **kwargs):
        self.error_message = error_message
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        if self.error_message is not None:
            parser.error(self.error_message)


class DeprecatedStoreConstAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, const_value=None, nargs=0, default=None, **kwargs):
        self.new_flag = new_flag
        self.const_value = const_value
        super().__init__(option_strings, dest, nargs=nargs, default=default, **kwargs)
"""

CALLS = {
    "srt/choices.py": 'BACKENDS = ["triton"] + [x.lower() for x in ("FA3", "FA4")]\n',
    "srt/kinds.py": "from enum import Enum\n\n\nclass Kind(Enum):\n    A = 'a'\n    B = 'b'\n    ALL = (A, B)\n",
    "srt/types.py": "def nullable_str(text):\n    return text or None\n",
    "srt/server_args.py": ACTIONS
    + """
import dataclasses
import json
import sys
from sglang.srt.choices import BACKENDS
from sglang.srt.kinds import Kind
from sglang.srt.types import *

try:
    from missing_package import EXTRA
except ImportError:
    EXTRA = []


def more(names):
    found = list(names)
    found.append("none")
    return found


class Old(argparse.Action):
    pass


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    names: list = dataclasses.field(default_factory=lambda: ["a"])
    limit: int = sys.maxsize

    @staticmethod
    def add_cli_args(parser):
        choices = more(BACKENDS)
        parser.add_argument("--model-path", "--model", type=str, required=True, help="The model.")
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size)
        parser.add_argument("--attention-backend", type=str, choices=choices)
        parser.add_argument("--sampling", choices={"b", "a"}, default="a")
        parser.add_argument("--kind", type=str, choices=[k.value for k in Kind if k.name != "ALL"])
        parser.add_argument("--level", type=int, choices=[0, 1], default=1)
        parser.add_argument("--names", type=nullable_str, nargs="+", default=[])
        parser.add_argument("--limit", type=int, default=ServerArgs.limit)
        parser.add_argument("--extra", type=json.loads, default="{}")
        parser.add_argument("--ratio", type=float, nargs="?", const=0.5)
        parser.add_argument("--on", action="store_true", help="(Deprecated: use --off=1) Turns it on.")
        parser.add_argument("--fuse", action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        parser.add_argument("--gone", action=DeprecatedAction, help="Note: --gone is deprecated. Use --names.")
        parser.add_argument("--fatal", action=DeprecatedAction, error_message="Use --names instead.")
        if len(BACKENDS) > 2:
            parser.add_argument("--was", action=DeprecatedStoreConstAction, dest="kind", const_value=Kind.A, new_flag="--kind=a")
""",
}

FIELDS = {
    "srt/arg_groups/__init__.py": "",
    "srt/arg_groups/arg_utils.py": "class A: ...\nclass Arg: ...\n",
    "srt/arg_groups/field_order.py": 'POSITIONAL_FIELD_ORDER = ("model_path", "tp_size", "lora_paths")\n',
    "srt/arg_groups/fields/__init__.py": "",
    "srt/arg_groups/fields/model.py": """
from typing import List, Literal, Optional
import msgspec
import argparse
import json

class LoRAPathAction(argparse.Action): ...

class Model:
    _NS_PATH = "model"
    names: A[List[int], "Some numbers."] = msgspec.field(default_factory=list)
    lora_paths: A[Optional[list], Arg(help="Adapters.", action=LoRAPathAction, action_kwargs={"type": str, "nargs": "*"})] = None
    tp_size: A[int, Arg(help="GPUs.", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1
    model_path: A[str, Arg(help="The model.", aliases=["--model"])]
    mode: A[Literal["x", "y"], "A mode."] = "x"
    mode: A[Optional[Literal["x", "y", "z"]], Arg(help="A mode.")] = None
    config: A[Optional[dict], Arg(help="JSON.", type_parser=json.loads)] = None
    fuse: A[Optional[bool], Arg(help="Fuse.", action=argparse.BooleanOptionalAction)] = None
    fast: A["bool", "Deprecated. Use --mode=x instead."] = False
    hidden: A[int, Arg(no_cli=True)] = 3
    plain: int = 4
    either: A[int | str | None, "One or the other."] = None
""",
    "srt/server_args.py": """
import argparse
import dataclasses
from sglang.srt.arg_groups.fields.model import Model

_INPUT_NAMESPACES = [Model]


def _declared_default(name):
    return None


class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--late", type=str, default=_declared_default("mode"))
""",
}


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"__init__.py": "", "srt/__init__.py": "", **files}.items():
        path = folder / "sglang" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "DATA", tmp_path / "data")
    store.forget()
    yield
    store.forget()


def test_both_ways_of_reading_agree(tmp_path: Path) -> None:
    folder = tree(tmp_path, CALLS)
    by_source = build(folder, "0.5.9")
    by_import = build(folder, "0.5.9", python=sys.executable)
    assert (by_source.how, by_import.how) == ("source", "import")
    assert by_source.flags == by_import.flags
    assert store.load(Release.parse("0.5.9")).flags == by_source.flags


def test_what_the_calls_say(tmp_path: Path) -> None:
    flags = {f.name: f for f in build(tree(tmp_path, CALLS), "0.5.9").flags}
    assert flags["--attention-backend"].choices == ("triton", "fa3", "fa4", "none")
    assert flags["--sampling"].choices == ("a", "b")
    assert flags["--kind"].choices == ("a", "b")
    assert flags["--names"] == Flag(("--names",), "names", "store", "+", default=[], type="nullable_str")
    assert flags["--limit"].default == sys.maxsize
    assert (flags["--on"].deprecated, flags["--on"].replacement) == (True, "--off=1")
    assert flags["--fuse"].spellings == ("--fuse", "--no-fuse")
    assert (flags["--gone"].fatal, flags["--gone"].replacement) == (False, "--names")
    assert (flags["--fatal"].fatal, flags["--fatal"].replacement) == (True, "--names")
    assert (flags["--was"].dest, flags["--was"].const, flags["--was"].replacement) == ("kind", "a", "--kind=a")


def test_what_the_fields_say(tmp_path: Path) -> None:
    flags = build(tree(tmp_path, FIELDS), "0.5.30").flags
    assert flags[1:] == (
        Flag(("--model-path", "--model"), "model_path", type="str", required=True),
        Flag(("--tensor-parallel-size", "--tp-size"), "tp_size", default=1, type="int"),
        Flag(("--lora-paths",), "lora_paths", "lora-paths", "*", type="str"),
        Flag(("--names",), "names", nargs="+", default=[], type="int"),
        Flag(("--mode",), "mode", type="str", choices=("x", "y", "z")),
        Flag(("--config",), "config", type="loads"),
        Flag(("--fuse", "--no-fuse"), "fuse", "boolean", 0),
        Flag(("--fast",), "fast", "store-true", 0, True, False, deprecated=True, replacement="--mode=x"),
        Flag(("--either",), "either", type="str"),
        Flag(("--late",), "late", type="str"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("choices=choices", "choices=open('x').read()"), "attention-backend: choices"),
        (('action="store_true"', "action=Old"), "teach source.py"),
        (("def add_cli_args", "def something_else"), "no ServerArgs.add_cli_args"),
    ],
)
def test_what_the_sources_do_not_show_is_not_guessed(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    files = {**CALLS, "srt/server_args.py": CALLS["srt/server_args.py"].replace(*change)}
    with pytest.raises(BuildError, match=message):
        build(tree(tmp_path, files), "0.5.9")
    assert not store.DATA.exists()


def test_an_interpreter_that_cannot_import_it_says_so(tmp_path: Path) -> None:
    folder = tree(tmp_path, {"srt/server_args.py": "import no_such_package\n"})
    with pytest.raises(BuildError, match="no_such_package"):
        build(folder, "0.5.9", python=sys.executable)


def test_a_prelude_runs_before_the_import(tmp_path: Path) -> None:
    server_args = "import no_such_package\n" + CALLS["srt/server_args.py"]
    folder = tree(tmp_path, {**CALLS, "srt/server_args.py": server_args})
    prelude = tmp_path / "prelude.py"
    prelude.write_text("import sys, types\nsys.modules['no_such_package'] = types.ModuleType('no_such_package')\n")
    assert build(folder, "0.5.9", python=sys.executable, prelude=prelude).how == "import"


def test_the_release_comes_from_the_package(tmp_path: Path) -> None:
    folder = tree(tmp_path, {**CALLS, "version.py": "__version__ = '0.5.9.post1'\n"})
    assert str(build(folder).release) == "0.5.9.post1"
    (folder / "sglang" / "version.py").write_text("__version__ = '0.0.0.dev0'\n")
    with pytest.raises(BuildError, match="--release"):
        build(folder)
    (folder / "sglang-0.5.11.dist-info").mkdir()
    assert building.version(folder / "sglang") == "0.5.11"
    (folder / "sglang" / "_version.py").write_text("__version__ = version = '0.5.12'\n")
    assert building.version(folder / "sglang") == "0.5.12"


def test_a_folder_without_sglang(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"no sglang/srt/server_args\.py"):
        build(tmp_path)


def test_the_report_shows_every_difference(tmp_path: Path) -> None:
    environ = "class Envs:\n    SGLANG_A = EnvBool(False)\n    SGLANG_D = EnvInt(1)\n    SGLANG_B = EnvInt(3)\n"
    first = tree(tmp_path / "a", {**CALLS, "srt/environ.py": environ})
    build(first, "0.5.9")
    changed = CALLS["srt/server_args.py"].replace("choices=[0, 1], default=1", "choices=[1, 2], default=2")
    changed = changed.replace('"--extra"', '"--other"')
    files = {
        **CALLS,
        "srt/server_args.py": changed,
        "srt/environ.py": environ.replace("SGLANG_B = EnvInt(3)", "SGLANG_C = EnvStr(None)").replace(
            "EnvInt(1)", "EnvStr('1')"
        ),
    }
    report = build(tree(tmp_path / "b", files), "0.5.10").report().splitlines()
    assert report[0] == "SGLang 0.5.10: 16 flags by source, 3 environment variables"
    assert report[1] == "compared with 0.5.9:"
    assert [line.strip() for line in report[2:]] == [
        "- --extra",
        "+ --other",
        "~ --level: default 1 → 2, choice -0, choice +2",
        "- $SGLANG_B",
        "+ $SGLANG_C",
        "~ $SGLANG_D: type 'int' → 'str', default 1 → '1'",
    ]


def test_a_flag_that_gains_or_loses_a_spelling_is_no_other_flag() -> None:
    plain, paired = Flag(("--a",), "a"), Flag(("--a", "--no-a"), "a")
    assert list(flag_differences((plain,), (paired,))) == ["~ --a: also --no-a"]
    assert list(flag_differences((paired,), (plain,))) == ["~ --a/--no-a: no longer --no-a"]
    assert list(flag_differences((plain,), (Flag(("--b",), "a"),))) == ["- --a", "+ --b"]


def test_no_difference() -> None:
    flags = (Flag(("--a",), "a"),)
    assert list(flag_differences(flags, flags)) == []


def test_variables(tmp_path: Path) -> None:
    files = {
        "srt/server_args.py": CALLS["srt/server_args.py"],
        **{k: v for k, v in CALLS.items() if k != "srt/server_args.py"},
        "srt/environ.py": (
            "class Envs:\n"
            "    SGLANG_A = EnvBool(False)\n"
            "    SGLANG_B = EnvBoolWithAlias(True, deprecated_name='SGLANG_OLD_B')\n"
            "    OTHER = EnvStr('x')\n"
            "_DEPRECATED = {'SGLANG_C': _DeprecatedEnv(note='Pass --fuse instead.')}\n"
            "_print_deprecated_env('SGLANG_A', 'SGL_A')\n"
        ),
        "srt/other.py": (
            "import os\n"
            "NAME = 'SGLANG_D'\n"
            "x = int(os.environ.get(NAME, '4'))\n"
            "y = get_int_env_var('SGLANG_E', 7)\n"
            "z = 'SGLANG_F' in os.environ\n"
            "print('SGLANG_G has been removed: it is always on')\n"
            "print('see SGLANG_H for more')\n"
        ),
        "broken.py": "SGLANG_ = (\n",
    }  # fmt: skip
    found = {v.name: v for v in build(tree(tmp_path, files), "0.5.9").variables}
    assert found == {
        "SGLANG_A": Variable("SGLANG_A", "bool", False),
        "SGLANG_B": Variable("SGLANG_B", "bool", True),
        "SGLANG_OLD_B": Variable("SGLANG_OLD_B", "bool", None, True, "SGLANG_B"),
        "SGLANG_C": Variable("SGLANG_C", "unknown", None, True, "--fuse"),
        "SGL_A": Variable("SGL_A", "unknown", None, True, "SGLANG_A"),
        "SGLANG_D": Variable("SGLANG_D", "str", "4"),
        "SGLANG_E": Variable("SGLANG_E", "int", 7),
        "SGLANG_F": Variable("SGLANG_F"),
        "SGLANG_G": Variable("SGLANG_G", "unknown", None, True),
    }
