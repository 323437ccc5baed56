"""Which fields may have been meant by words that do not bind: these fields are unknown, all others are unaffected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spec_lsp.catalog.alike import flags_like
from spec_lsp.catalog.binding import BindError, Binding
from spec_lsp.catalog.history import replacement
from spec_lsp.catalog.messages import flag_and_value
from spec_lsp.catalog.model import Catalog

_ALIKE = 0.7
"""The least similarity of a flag to a misspelled one that it may be."""

_LESS_ALIKE = 0.08
"""How much less similar than the nearest flag a flag may be that is still considered."""

_MOST = 8
"""The most flags that a misspelled one may be."""


def fields_meant(binding: Binding, error: BindError) -> frozenset[str]:
    """The fields that an argument error may have been meant to set, without those that are set anyway."""
    catalog = binding.catalog
    names = {catalog.fields_by_name.get(name) for name in _names(catalog, error)}
    own = error.definition.field if error.definition is not None and not error.definition.fatal else None
    fields = frozenset(filter(None, (*names, own)))
    return fields - binding.settings.keys() or fields


def _names(catalog: Catalog, error: BindError) -> Iterator[str]:
    """Flags that may be meant, with their dashes."""
    match error.kind:
        case "ambiguous-prefix":
            yield from error.candidates
        case "unknown-flag":
            yield from _near(catalog, "--" + error.typed.lstrip("-").replace("_", "-"))
        case "stray-argument":
            for word in error.words:
                flag, _ = flag_and_value(word.text) or (word.text or "", "")
                yield "--" + flag.lstrip("-").replace("_", "-")
    if error.suggestion and error.kind not in ("invalid-choice", "invalid-value"):
        yield "--" + error.suggestion.lstrip("-").replace("_", "-").partition(" ")[0].partition("=")[0]
    successor = replacement(error.typed, catalog.release) if error.typed.startswith("--") else None
    if successor is not None and successor.name:
        yield successor.name


def _near(catalog: Catalog, typed: str) -> Iterable[str]:
    """Flags that a misspelled one begins, or that are spelled similarly."""
    known = [s for s in catalog.by_spelling if s.startswith("--")]
    near = [one for one in flags_like(catalog.release, typed)[:_MOST] if one[0] >= _ALIKE]
    yield from (name for likeness, name in near if likeness >= near[0][0] - _LESS_ALIKE)
    if len(typed) > 4:
        yield from (s for s in known if s.startswith(typed))
