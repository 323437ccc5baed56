"""What SGLang's own parsers hold, release by release, and real argparse parsers rebuilt from it: the reference for binding."""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import random
from pathlib import Path
from typing import Any, NoReturn

from spec_lsp.catalog.binding import Binding, bind, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load

DATA = Path(__file__).parent / "data"


@functools.cache
def rows() -> dict[str, list[dict[str, Any]]]:
    """Every release's arguments as its argparse parser holds them."""
    return json.loads(lzma.decompress((DATA / "parsers.json.xz").read_bytes()))


# --- the real argparse -------------------------------------------------------------------------------------------------


class Stopped(Exception):  # noqa: N818
    """What `parser.error` was told."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Stopped(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise Stopped("help")

    def print_help(self, file: Any = None) -> None:
        pass


class Ignore(argparse.Action):
    def __call__(self, *_: Any) -> None:
        pass


class StoreConst(argparse.Action):
    """SGLang's deprecated flags that write a value of their own."""

    def __init__(self, *args: Any, writes: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.writes = writes

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, self.writes)


class LoraPaths(argparse.Action):
    """Like SGLang's: JSON objects among the words must name their adapter."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        for text in (v.strip() for v in values):
            if text.startswith("{") and text.endswith("}"):
                try:
                    named = {"lora_name", "lora_path"} <= set(json.loads(text))
                except ValueError:
                    named = False
                if not named:
                    raise Stopped("lora")
        setattr(namespace, self.dest, values)


class Refuse(argparse.Action):
    def __call__(self, parser: Any, *_: Any) -> None:
        raise Stopped("removed")


def refusing(function: Any) -> Any:
    """A type whose ValueErrors carry a message of their own, as SGLang's do; the message itself does not matter here."""

    def convert(text: str) -> Any:
        try:
            return function(text)
        except (ValueError, ArithmeticError):
            raise argparse.ArgumentTypeError("…") from None

    return convert


def human_readable_int(text: str) -> int:
    text = text.strip()
    units = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    if text[-2:] in ("Ki", "Mi", "Gi", "Ti") and text[:-2].isascii() and text[:-2].isdigit():
        return int(text[:-2]) * 1024 ** (1 + "KMGT".index(text[-2]))
    number = text[:-1].replace(".", "", 1)
    if text[-1:] in units and number.isascii() and number.isdigit() and text[0] != "." and text[-2] != ".":
        from decimal import Decimal

        return int(Decimal(text[:-1]) * int(units[text[-1]]))
    return int(text)


TYPES: dict[str | None, Any] = {
    None: None,
    "int": int,
    "float": float,
    "str": str,
    "loads": json.loads,
    "json_list_type": refusing(lambda text: json.loads(text, parse_constant=lambda _: _refuse())),
    "human_readable_int": refusing(human_readable_int),
    "nullable_str": lambda text: None if text in ("", "None") else text,
    "parse_cuda_graph_config_arg": refusing(lambda text: cuda_graph_config(json.loads(text))),
    "parse_cuda_graph_backend_arg": refusing(lambda text: text if text != "tc_piecewise" else _refuse()),
}


def cuda_graph_config(value: Any) -> Any:
    if not isinstance(value, dict) or not set(value) <= {"decode", "prefill"}:
        _refuse()
    if not all(isinstance(v, dict) and set(v) <= {"backend", "max_bs", "bs"} for v in value.values()):
        _refuse()
    return value


def _refuse() -> NoReturn:
    raise ValueError


@functools.cache
def real_parser(release: str) -> Parser:
    """The release's parser, built anew from its rows."""
    parser = Parser(prog="sglang", add_help=False)
    catalog = load(Release.parse(release))
    for row in rows()[release]:
        flag = catalog.by_spelling[row["flags"][0]]
        choices = row["choices"] and [int(c) if row["type"] == "int" else c for c in row["choices"]]
        common = {"dest": row["dest"], "default": row["default"]}
        valued = {
            **common,
            "nargs": row["nargs"],
            "type": TYPES[row["type"]],
            "choices": choices,
            "required": row["required"],
        }
        match row["action"]:
            case "_HelpAction":
                parser.add_argument(*row["flags"], action="help")
            case "LoRAPathAction":
                action = LoraPaths if catalog.release >= Release(0, 5, 0) else "store"
                parser.add_argument(*row["flags"], **valued, action=action)
            case "_StoreAction" | "DeprecatedAliasStoreAction":
                parser.add_argument(*row["flags"], **valued, **({"const": row["const"]} if row["nargs"] == "?" else {}))
            case "_StoreTrueAction":
                parser.add_argument(*row["flags"], action="store_true", **common)
            case "BooleanOptionalAction":
                names = [f for f in row["flags"] if not f.startswith("--no-")]
                parser.add_argument(*names, action=argparse.BooleanOptionalAction, **common)
            case "DeprecatedAction":
                parser.add_argument(*row["flags"], action=Refuse if flag.fatal else Ignore, nargs=0, **common)
            case "DeprecatedStoreTrueAction":
                parser.add_argument(*row["flags"], action=StoreConst, writes=True, nargs=0, **common)
            case "DeprecatedStoreConstAction":
                kwargs = {"choices": choices} if row["nargs"] is None else {}
                parser.add_argument(
                    *row["flags"], action=StoreConst, writes=flag.const, nargs=row["nargs"], **common, **kwargs
                )
            case other:
                raise AssertionError(other)
    return parser


# --- random command lines ----------------------------------------------------------------------------------------------

ODD = (
    *(
        "--",
        "-",
        "",
        "-1",
        "-1.5",
        "-.5",
        "-1e3",
        "- 1",
        "--no such flag",
        "-h",
        "-hx",
        "-t",
        "-tp",
        "--x=1",
        "--=",
        "---",
        "a b",
    ),
    *(
        "stray",
        "--max-model-len",
        "--enable_mla",
        "-h=1",
        "--help=1",
        "--h",
        "--config",
        "--config=x",
        "-9x",
        "=",
        "--tp=--",
    ),
)
VALUES = (
    *(
        "1",
        "8",
        "0",
        "-1",
        "-0.5",
        "1.5",
        "1e3",
        "1k",
        "4Ki",
        "1.5Ki",
        "2.5M",
        " 7 ",
        "1_000",
        "0x10",
        "abc",
        "",
        "None",
        "true",
    ),
    *(
        "{}",
        '{"a": 1}',
        "[1, 2]",
        "[]",
        "NaN",
        "1,2",
        "--",
        "-x",
        "--tp-size",
        "a b",
        "-1 2",
        "٣",
        "a=b",
        '{"lora_name": "a"',
    ),
    *("inf", "auto", '{"lora_name": "a", "lora_path": "b"}', '{"decode": {"max_bs": 4}}', "tc_piecewise"),
)


def random_argv(rng: random.Random, release: str) -> list[str]:
    """Words as people misspell them, and as nobody would."""
    argv = ["--model-path", "m"] if rng.random() < 0.9 else []
    table = rows()[release]
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6))):
        argv += _random_flag(rng, rng.choice(table))
    if rng.random() < 0.2:
        rng.shuffle(argv)
    return argv


def _random_flag(rng: random.Random, row: dict[str, Any]) -> list[str]:
    if rng.random() < 0.12:
        return [rng.choice(ODD)]
    spelling = rng.choice(row["flags"])
    way = rng.random()
    if way < 0.2:
        spelling = spelling[: rng.randint(3, max(len(spelling), 3))]
    elif way < 0.23:
        spelling = "--" + spelling[2:].replace("-", "_")
    elif way < 0.25:
        spelling = spelling.replace("--", "--no-", 1)
    elif way < 0.27:
        spelling = spelling[1:]
    if rng.random() < 0.03:
        spelling = spelling + rng.choice("x= ")
    count = {None: 1, 0: 0, "?": rng.choice((0, 1)), "*": rng.randint(0, 3), "+": rng.randint(1, 3)}[row["nargs"]]
    if rng.random() < 0.08:
        count = rng.randint(0, 3)
    values = [_random_value(rng, row) for _ in range(count)]
    if values and rng.random() < 0.25:
        return [f"{spelling}={values[0]}", *values[1:]]
    if rng.random() < 0.03:
        return [f"{spelling}=", *values]
    words = [spelling, *values]
    return words * 2 if rng.random() < 0.05 else words


def _random_value(rng: random.Random, row: dict[str, Any]) -> str:
    if rng.random() < 0.25:
        return rng.choice(VALUES)
    if row["choices"]:
        choice = rng.choice(row["choices"])
        return choice if rng.random() < 0.9 else choice.upper()
    good = {"int": "4", "float": "0.5", "loads": '{"a": [1]}', "json_list_type": "[1, 2]", "human_readable_int": "4k"}
    return good.get(row["type"], rng.choice(VALUES))


# --- the comparison ----------------------------------------------------------------------------------------------------


def difference(release: str, argv: list[str]) -> str | None:
    """What argparse and binding see differently; None if they agree on every field, or on the error."""
    catalog = load(Release.parse(release))
    without_config = [w for w in argv if w != "--config"]  # SGLang takes this word before argparse sees it
    binding = bind(catalog, words_from(without_config))
    try:
        namespace = vars(real_parser(release).parse_args(without_config))
    except Stopped as stopped:
        return _same_error(str(stopped), binding)
    if any(e.fatal and not _after_argparse(e) for e in binding.errors):
        return f"argparse accepts; binding says {[e.message for e in binding.errors]}"
    for row in rows()[release]:
        dest = row["dest"]
        if dest in ("help", "config"):
            continue
        field = catalog.by_spelling[row["flags"][0]].field
        setting = binding.settings.get(field)
        mine = setting.value if setting is not None else catalog.defaults.get(field)
        theirs = namespace.get(dest)
        if row["action"] == "LoRAPathAction" and theirs is not None:
            continue  # SGLang's own action makes something else of the words
        if not _equal(mine, theirs):
            return f"{dest}: argparse {theirs!r}, binding {mine!r}"
    return None


def _after_argparse(error: Any) -> bool:
    """The log level is looked up after argparse."""
    return error.definition is not None and error.definition.field == "log_level" and error.kind == "invalid-value"


def _equal(mine: Any, theirs: Any) -> bool:
    return (type(mine) is type(theirs) and mine == theirs) or repr(mine) == repr(theirs)


def _same_error(message: str, binding: Binding) -> str | None:
    errors = [e for e in binding.errors if e.fatal]
    if message == "help":
        return (
            None if any(n.kind == "help" for n in binding.notes) and not errors else f"argparse: help; binding {errors}"
        )
    if not errors:
        return f"argparse: {message}; binding has no error"
    first = errors[0]
    says = first.says
    if first.kind in ("unknown-flag", "stray-argument"):
        left = [e for e in errors if e.kind in ("unknown-flag", "stray-argument")]
        says = "unrecognized arguments: " + " ".join(w.text or "" for e in left for w in e.words)
    if message == "lora":
        return None if first.kind == "invalid-value" and first.definition.field == "lora_paths" else f"{first}"
    if message == "removed":
        return None if first.kind == "removed-flag" else f"argparse: removed; binding {first}"
    if message.endswith("…"):  # a message of SGLang's own
        message, says = message[:-1], says[: len(message) - 1]
    if first.kind == "invalid-choice":
        message, says = message.split(" (choose")[0], says.split(" (choose")[0]
    return None if message == says else f"argparse: {message}; binding: {says}"
