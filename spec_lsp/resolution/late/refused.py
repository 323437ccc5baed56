"""The shapes that most late refusals have: one value is refused, for a reason, and the fix is to remove or change it.

If a part of SGLang refuses many values, they are listed in a table of `Barred`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spec_lsp.facts.known import NotKnown
from spec_lsp.records import NamedTuple
from spec_lsp.resolution.engine import Change, Config, Refusal, as_far_as_known, dropping


def value_refused(c: Config, field: str, said: str, *related: str, fixes: tuple[Change, ...] | None = None) -> Refusal:
    """A refusal of this field's value: the message is its name as typed, followed by `said`.

    It is shown at the field or, if SGLang chose the value, at the first of `related` that was typed. Without `fixes` the fix is to remove
    the field.
    """
    at = next((name for name in (field, *related) if c.given(name)), field)
    return Refusal(
        at=at,
        related_fields=tuple(name for name in (field, *related) if name != at),
        message=f"{c.shown(field)} {said}",
        fixes=(dropping(field),) if fixes is None else fixes,
    )


Test = Callable[[Config], bool]


class Barred(NamedTuple):
    """A value that a part of SGLang refuses: of which field, when, why, since which release, and the fix (None: remove it)."""

    field: str
    is_so: Test
    why: str
    since: str = ""
    way_out: Callable[[Config], tuple[Change, ...]] | None = None


def without_one_of(*fields: str) -> Callable[[Config], tuple[Change, ...]]:
    """The way out of removing any one of these fields, the first rather than the others."""
    fixes = tuple(map(dropping, fields))
    return lambda _: fixes


def first_barred(c: Config, bars: Iterable[Barred], where: str, *related: str) -> Refusal | None:
    """The refusal of the first matching value in the table; an entry that is unknown does not affect the others."""
    for bar in bars:
        if (not bar.since or c.since(bar.since)) and _is_so(bar, c):
            return value_refused(
                c,
                bar.field,
                f"is refused {where}: {bar.why}.",
                *related,
                fixes=_way_out(bar, c),
            )
    return None


def _is_so(bar: Barred, c: Config) -> bool:
    try:
        return bar.is_so(c)
    except NotKnown:
        return False


def _way_out(bar: Barred, c: Config) -> tuple[Change, ...] | None:
    return None if bar.way_out is None else as_far_as_known(bar.way_out)(c)
