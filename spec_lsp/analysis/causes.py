"""Which of the typed settings decide a value: those without which the value would differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spec_lsp.analysis.run import RunResult, without
from spec_lsp.catalog.binding import Binding
from spec_lsp.resolution.engine import Config, same_state

Resolve = Callable[[Binding], RunResult]
"""What a variant resolves to in its world if its words bind like this."""

MAX_SETTINGS = 64
"""The most settings for which causes are looked for: each costs one resolution."""


def causes(binding: Binding, config: Config, resolve: Resolve) -> Mapping[str, tuple[str, ...]]:
    """By field, the typed fields that decide its value, in the order in which they were typed. A field is no cause of itself, and neither
    is one whose removal makes the value unknown."""
    found: dict[str, list[str]] = {}
    fields = config.history.keys() | binding.settings.keys()
    optional = [name for name, setting in binding.settings.items() if not setting.definition.required]
    for typed in optional if len(optional) <= MAX_SETTINGS else ():
        other = resolve(without(typed, binding)).resolution
        if other is None:
            continue
        for field in fields - {typed}:
            if _differ(field, config, other.config):
                found.setdefault(field, []).append(typed)
    return {field: tuple(typed) for field, typed in found.items()}


def _differ(field: str, one: Config, other: Config) -> bool:
    """Whether a field is known to have two values."""
    return one.known(field) and other.known(field) and not same_state(getattr(one, field), getattr(other, field))
