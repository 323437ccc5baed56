"""Replacements of a removed or deprecated flag, as candidate fixes: another flag, with the value that it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from spec_lsp.analysis.candidate import Candidate
from spec_lsp.analysis.printing import Printer
from spec_lsp.catalog.binding import is_key
from spec_lsp.catalog.history import Replacement, flag_span, replacement
from spec_lsp.catalog.release import Release
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Word

Flags = Sequence[tuple[str, Sequence[str]]]

_OFF = frozenset(("False", "false", "None"))


def succession(
    printer: Printer, word: Word, name: str, from_config: bool, releases: Sequence[Release] = ()
) -> Iterator[Candidate]:
    """Edits that replace the flag `name` at `word` by its successor, if that needs another value (if not, renaming is enough). A
    replacement of two flags by one is only offered where all `releases` have it."""
    launch = printer.document.launches[printer.launch]
    keyword = launch.program == "engine"
    found = replacement(
        name if name.startswith("--") else "--" + name.replace("_", "-"), printer.binding.catalog.release
    )
    if found is None or found.name not in printer.binding.catalog.by_spelling:
        return
    if found.takes_over:
        if any((span := flag_span(found.name)) is None or r not in span for r in releases):
            return
        yield from _taken_over(printer, word, found, from_config)
        return
    value = _value_behind(printer, word, from_config, keyword)
    for flags in _instead(printer, found, value):
        fields = [printer.binding.catalog.fields_by_name.get(flag) for flag, _ in flags]
        if any(field is None or field in printer.binding.settings for field in fields):
            continue
        edits = _written(
            printer, word, 2 if value is not None and not _joined(word) else 1, flags, from_config, keyword
        )
        if edits:
            yield Candidate(f"Write {_shown(flags, from_config or is_key(word), keyword)}", edits)


def _instead(printer: Printer, found: Replacement, value: str | None) -> Iterator[Flags]:
    """The flags with values that say the same as the old one."""
    if found.fixed:
        if value in _OFF:
            return
        if value in (None, "True", "true"):
            yield [(flag, (fixed,)) for flag, fixed in found.fixed]
    elif found.values and value is not None:
        flag = printer.binding.catalog.by_spelling[found.name]
        meant = found.values.get(value)
        choices = [str(c) for c in flag.choices or ()]
        for choice in dict.fromkeys(c for c in (meant, *choices) if c in choices):
            yield [(found.name, (choice,))]
    elif found.value_of and value is None:
        field = printer.binding.catalog.fields_by_name.get(found.value_of, "")
        setting = printer.binding.settings.get(field)
        if setting is not None and setting.known:
            yield [(found.name, (str(setting.value),))]


def _taken_over(printer: Printer, word: Word, found: Replacement, from_config: bool) -> Iterator[Candidate]:
    """`--dp-size N --enable-dp-attention` as `--attn-dp-size N`: one flag is renamed, the other removed."""
    settings = printer.binding.settings
    other = settings.get(printer.binding.catalog.fields_by_name.get(found.value_of, ""))
    own = next((s for s in settings.values() if s.flag.place == word.place), None)
    target = printer.binding.catalog.fields_by_name.get(found.name)
    if other is None or own is None or target in settings or other.losers or other.from_config != from_config:
        return
    if from_config:
        renamed = printer.rename_key(other.flag, found.name.removeprefix("--"))
    else:
        renamed = printer.rename(other.flag, str(target) if other.keyword else found.name)
    removed = printer.remove(own)
    if renamed and removed:
        names = [n.removeprefix("--" if other.is_key else "") for n in (found.name, other.spelling, own.spelling)]
        yield Candidate("Write `{}` for `{}` and remove `{}`".format(*names), (*renamed, *removed))


def _written(
    printer: Printer, word: Word, count: int, flags: Flags, from_config: bool, keyword: bool
) -> tuple[Edit, ...] | None:
    if from_config:
        return printer.replace_key(word, flags)
    if keyword:
        return printer.replace(word, 2, [(_field(flag), tuple(map(json.dumps, values))) for flag, values in flags])
    return printer.replace(word, count, flags)


def _value_behind(printer: Printer, word: Word, from_config: bool, keyword: bool) -> str | None:
    """The value that a flag is given, as written; None if it has none."""
    if _joined(word):
        return (word.text or "").partition("=")[2]
    words = printer.document.launches[printer.launch].variants[printer.variant].words
    if from_config:
        return printer.value_of_key(word)
    at = next((i for i, own in enumerate(words) if own is word or own == word), None)
    behind = words[at + 1] if at is not None and at + 1 < len(words) else None
    if behind is None or (not keyword and behind.known_start.startswith("-")):
        return None
    return behind.text if behind.text is not None else ""


def _joined(word: Word) -> bool:
    return "=" in word.known_start


def _field(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _shown(flags: Flags, as_keys: bool, keyword: bool) -> str:
    if keyword:
        return " and ".join(f"`{_field(flag)}={json.dumps(values[0])}`" for flag, values in flags)
    if as_keys:
        return " and ".join(f"`{flag.removeprefix('--')}: {' '.join(values)}`" for flag, values in flags)
    return f"`{' '.join(' '.join((flag, *values)) for flag, values in flags)}`"
