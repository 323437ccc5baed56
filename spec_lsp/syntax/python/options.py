"""The options that a program declares with `argparse`, as they appear in its `args`."""

from __future__ import annotations

import ast

from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.values import Either, Items, More, Opaque, Plain, Text, Value
from spec_lsp.syntax.python.ways import Turn
from spec_lsp.syntax.word import Fragment, Place, Word

GIVEN = "from the command line"
SWITCHES = {"store_true": (False, True), "store_false": (True, False)}


def option(node: ast.Call, given: Arguments, place: Place) -> tuple[str, Value] | None:
    """The attribute that `parser.add_argument(…)` creates, or the parameter that `@click.option(…)` gives, and its value: the default, or
    unknown."""
    names = [v.word.text for v in given.positional if isinstance(v, Text) and v.word.text]
    if not names:
        return None
    known = given.keywords.get("dest")
    name = next((n for n in names if n.startswith("--")), names[0])
    named = next((n for n in names if not n.startswith("-")), name) if name.startswith("-") else name
    dest = (
        known.word.text
        if isinstance(known, Text) and known.word.text
        else named.lstrip("-").partition("/")[0].replace("-", "_")
    )
    unknown = Opaque(place, GIVEN, object())
    if not name.startswith("-"):
        return dest, unknown
    turn = Turn(place, (f"`{name}` is not given", f"`{name}` is given"))
    action = given.keywords.get("action")
    is_flag = given.keywords.get("is_flag")
    if isinstance(is_flag, Plain) and is_flag.value:
        return dest, Either(turn, (given.keywords.get("default", _plain(False, place)), _plain(True, place)), place, 0)
    switch = SWITCHES.get(action.word.text or "") if isinstance(action, Text) else None
    if switch is not None:
        off, on = (_plain(value, place) for value in switch)
        return dest, Either(turn, (given.keywords.get("default", off), on), place, 0)
    required = given.keywords.get("required")
    default = given.keywords.get("default")
    several = "nargs" in given.keywords or (isinstance(action, Text) and action.word.text in ("append", "extend"))
    other: Value = Items((More(place, GIVEN),), place) if several else unknown
    if isinstance(required, Plain) and required.value:
        return dest, other
    if default is None or (isinstance(default, Plain) and default.value is None):
        return dest, Either(turn, (_plain(None, place), other), place, 1)
    return dest, Either(turn, (default, other), place, 0)


def _plain(value: object, place: Place) -> Plain:
    return Plain(value, Word((Fragment(repr(value), place, False, fixed=True),), place))
