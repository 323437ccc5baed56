"""The shape that most late refusals have: one value is refused, for a reason, and the way out is to remove it or to change it."""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Refusal, dropping


def value_refused(c: Config, field: str, said: str, *related: str, fixes: tuple[Change, ...] | None = None) -> Refusal:
    """A refusal of this field's value: the message is its name as typed and `said`.

    It stands at the field, or, where SGLang chose the value, at the first of `related` that was typed. Without `fixes` the way out is to
    leave the field out.
    """
    at = c.first_given(field, *related, field)
    return Refusal(
        at=at,
        related_fields=tuple(name for name in (field, *related) if name != at),
        message=f"{c.shown(field)} {said}",
        fixes=(dropping(field),) if fixes is None else fixes,
    )
