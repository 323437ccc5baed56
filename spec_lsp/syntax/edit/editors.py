"""The editors for other notations than a shell's words, and the one for each launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spec_lsp.records import replace
from spec_lsp.syntax.edit import items, yaml_text
from spec_lsp.syntax.edit.change import WordChange
from spec_lsp.syntax.edit.words import BARE, FLAG, WordEditor, is_written, told_by
from spec_lsp.syntax.kinds import kind_of
from spec_lsp.syntax.launch import Document, Edit, Syntax
from spec_lsp.syntax.word import Place, Word, hull

HOLDERS = frozenset(("yaml", "markdown", "json", "jenkinsfile", "terraform"))
"""Kinds of documents that hold scripts inside quotes."""

Candidates = Iterator[tuple[Edit, ...]]


def editor_of(document: Document, launch: int, variant: int = 0, **files: Any) -> WordEditor:
    """The editor of a launch; `files` as for `WordEditor`."""
    return EDITORS[document.launches[launch].syntax](document, launch, variant, **files)


class ShellEditor(WordEditor):
    """Words of a shell, maybe in a string of the document."""

    __slots__ = ()

    def first_good(
        self,
        candidates: Iterable[tuple[Edit, ...]],
        expected: Sequence[object],
        at: int,
        removed: int = 0,
        added: int = 0,
    ) -> WordChange | None:
        if kind_of(self.document.name, self.document.text, self.document.language) in HOLDERS:
            candidates = self.with_escapes(candidates)
        return super().first_good(candidates, expected, at, removed, added)

    def with_escapes(self, candidates: Iterable[tuple[Edit, ...]]) -> Candidates:
        """The candidates, each also in the form for a script inside quotes of the surrounding document."""
        for edits in candidates:
            yield edits
            for edit in edits if len(edits) == 1 else ():
                for text in yaml_text.escaped(edit.text):
                    yield (replace(edit, text=text),)


class ListEditor(WordEditor):
    """Items between brackets and commas (JSON, Python)."""

    __slots__ = ()

    def joins_values(self, at: Word | None = None) -> bool:
        return at is not None or super().joins_values()

    def rewritten(self, word: Word, value: str, start: int, place: Place | None) -> Candidates:
        if place is not None:
            yield from items.value_edits(self.text_of(place.document), word.place, place, value)
        yield from super().rewritten(word, value, start, place)

    def split_candidates(self, word: Word, flag: str, value: str, place: Place) -> Candidates:
        quote = items.quote_of(self.text_of(place.document), word.place)
        yield (Edit(word.place, f"{items.quoted(flag, quote)}, {items.quoted(value, quote)}"),)

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Candidates:
        place = hull(w.place for w in going)
        quote = items.quote_of(self.text_of(place.document), going[0].place)
        written = [items.quoted(self.own.written_flag(w) if FLAG.match(w) else w, quote) for w in new]
        yield (Edit(place, ", ".join(written)),)

    def removal_candidates(self, going: Sequence[Word]) -> Candidates:
        return items.removal_edits(self.text_of(going[0].place.document), going[0].place, going[-1].place)

    def insertion_candidates(self, after: int, new: Sequence[str]) -> Candidates:
        anchor = self.anchor(after)
        text = self.text_of(anchor.document)
        quote = items.quote_of(text, anchor)
        yield from items.insertion_edits(text, anchor, [items.quoted(word, quote) for word in new])
        yield from super().insertion_candidates(after, new)


class KeywordEditor(WordEditor):
    """Keyword arguments of a Python call."""

    __slots__ = ()

    def is_flag(self, text: str) -> bool:
        return True

    def joins_values(self, at: Word | None = None) -> bool:
        return False

    def rewritten(self, word: Word, value: str, start: int, place: Place | None) -> Candidates:
        yield from [(Edit(place, value),)] if place is not None else []

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Candidates:
        written = ", ".join(f"{flag}={''.join(values)}" for flag, values in flags)
        yield (Edit(hull(w.place for w in going), written),)

    def removal_candidates(self, going: Sequence[Word]) -> Candidates:
        return items.removal_edits(self.text_of(going[0].place.document), going[0].place, going[-1].place)

    def insertion_candidates(self, after: int, new: Sequence[str]) -> Candidates:
        anchor = self.anchor(after)
        whole = hull((self.words[after - 1].place, anchor)) if after > 0 else anchor
        return items.keyword_edits(self.text_of(anchor.document), whole, "=".join(new), first=after < 0)


class YamlWordEditor(WordEditor):
    """Items of a YAML list, or words in a text."""

    __slots__ = ()

    def is_item(self, place: Place) -> bool:
        return yaml_text.is_item(self.text_of(place.document), place)

    def joins_values(self, at: Word | None = None) -> bool:
        return (at is not None and self.is_item(at.place)) or super().joins_values()

    def rewritten(self, word: Word, value: str, start: int, place: Place | None) -> Candidates:
        if self.is_item(word.place):
            yield from default_edits(word, value, start, place)
            text = self.text_of(word.place.document)
            yield from yaml_text.value_edits(text, word.place, place, value, (word.text or "")[:start] + value)
        else:
            yield from super().rewritten(word, value, start, place)

    def split_candidates(self, word: Word, flag: str, value: str, place: Place) -> Candidates:
        if not self.is_item(word.place):
            return super().split_candidates(word, flag, value, place)
        text = self.text_of(place.document)
        quote, other = self.quotes(text)
        return yaml_text.split_edits(
            text, word.place, yaml_text.scalar(flag, quote), yaml_text.scalar(value, "", other)
        )

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Candidates:
        if not self.is_item(going[0].place):
            yield from super().replacements(going, new, flags)
            return
        place = hull(w.place for w in going)
        text = self.text_of(place.document)
        first, *rest = self.scalars(text, new)
        behind = yaml_text.insertion_edits(text, going[0].place, rest, before=False) if rest else iter([()])
        for more in behind:
            yield (Edit(place, first), *more)

    def removal_candidates(self, going: Sequence[Word]) -> Candidates:
        if not self.is_item(going[0].place):
            return super().removal_candidates(going)
        return yaml_text.removal_edits(self.text_of(going[0].place.document), going[0].place, going[-1].place)

    def insertion_candidates(self, after: int, new: Sequence[str]) -> Candidates:
        at = self.item_beside(after)
        if at is None:
            return super().insertion_candidates(after, new)
        text = self.text_of(self.anchor(after).document)
        return yaml_text.insertion_edits(text, at[0], self.scalars(text, new), before=at[1])

    def scalars(self, text: str, words: Sequence[str]) -> list[str]:
        quote, other = self.quotes(text)
        return [yaml_text.scalar(word, quote if FLAG.match(word) else "", other) for word in words]

    def quotes(self, text: str) -> tuple[str, str]:
        """The quotes that flags are written in, and those of values that need some."""
        own = [w for w in self.words if w.place.document == self.document.name and self.is_item(w.place)]
        flags = [yaml_text.quote_at(text, w.place) for w in own if FLAG.match(w.known_start)]
        others = [q for w in own if not FLAG.match(w.known_start) and (q := yaml_text.quote_at(text, w.place))]
        quote = flags[0] if flags else ""
        return quote, others[0] if others else quote or '"'

    def item_beside(self, after: int) -> tuple[Place, bool] | None:
        """The item of a list to add after, or (True) before: the entry point need not be in a list."""
        entry = self.own.place
        if after >= 0:
            place = self.words[after].place
            return (place, False) if self.is_item(place) else None
        if self.is_item(entry) or not self.words:
            return entry, False
        first = self.words[0].place
        return (first, True) if self.is_item(first) else None


class MappingEditor(WordEditor):
    """Keys of a YAML mapping that become flags."""

    __slots__ = ()

    def joins_values(self, at: Word | None = None) -> bool:
        return False

    def has_dashes(self, key: Word) -> bool:
        """Whether a key is written with the flag's dashes."""
        return self.text_at(key.place).lstrip("\"'").startswith("--")

    def rename(self, index: int, flag: str) -> WordChange | None:
        word = self.words[index]
        written = self.text_at(word.place) if is_written(word) else ""
        bare = flag if self.has_dashes(word) else flag.removeprefix("--")
        key = bare.replace("-", "_" if "_" in written and "-" not in written else "-")
        expected = [*map(told_by, self.words[:index]), flag, *map(told_by, self.words[index + 1 :])]
        return self.first_good([(Edit(word.place, key),)], expected, index) if written else None

    def rewritten(self, word: Word, value: str, start: int, place: Place | None) -> Candidates:
        yield from default_edits(word, value, start, place)
        if start == 0 and self.text_at(word.place) == word.text and BARE.match(value):
            yield (Edit(word.place, value),)  # a number must stay a number
        text = self.text_of(word.place.document)
        yield from yaml_text.value_edits(text, word.place, place, value, (word.text or "")[:start] + value)

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Candidates:
        key = going[0].place
        text = self.text_of(key.document)
        last = yaml_text.value_end(text, key, going[-1].place)
        dashes = "--" if self.has_dashes(going[0]) else ""
        snake = "_" in self.text_at(key) and "-" not in self.text_at(key).strip("-")
        entries = []
        for flag, values in flags:
            name = dashes + flag.removeprefix("--")
            entries.append(f"{name.replace('-', '_') if snake else name}: {yaml_text.entry_value(values)}")
        indent = key.start - yaml_text.line_start(text, key.start)
        eol = "\r\n" if "\r\n" in text else "\n"
        between = ", " if yaml_text.is_flow_entry(text, key) else eol + " " * indent
        yield (Edit(Place(key.document, key.start, last.end), between.join(entries)),)

    def removal_candidates(self, going: Sequence[Word]) -> Candidates:
        text = self.text_of(going[0].place.document)
        yield from yaml_text.entry_removals(text, going[0].place, going[-1].place) if is_written(going[0]) else ()

    def insertion_candidates(self, after: int, new: Sequence[str]) -> Candidates:
        """Ways to add a key: if it has `false`, in its place; else after the entry of a flag."""
        text = self.text_of(self.anchor(after).document)
        keys = [i for i, w in enumerate(self.words) if FLAG.match(w.known_start) and is_written(w)]
        dashes = any(self.has_dashes(self.words[i]) for i in keys)
        key, value = new[0] if dashes else new[0].removeprefix("--"), yaml_text.entry_value(new[1:])
        yield from yaml_text.switched_on(text, self.own.extent, key, value)
        at = max((i for i in keys if i <= after), default=None) if after >= 0 else None
        at = keys[-1] if at is None and keys else at
        if at is None:
            return
        snake = not dashes and sum("_" in self.text_at(self.words[i].place) for i in keys) * 2 > len(keys)
        written = key.replace("-", "_") if snake else key
        behind = next((i for i in range(at + 1, len(self.words)) if i in keys), len(self.words))
        last = self.words[behind - 1].place
        yield from yaml_text.entry_insertions(text, self.words[at].place, last, f"{written}: {value}")

    def compared(
        self, words: Sequence[Word], expected: Sequence[object], at: int, removed: int, added: int
    ) -> list[tuple[int, Word]] | None:
        if not added:
            return super().compared(words, expected, at, removed, added)
        return [] if Counter(map(told_by, words)) == Counter(expected) else None


def default_edits(word: Word, value: str, start: int, place: Place | None) -> Candidates:
    """The edit of the default of a variable or of a template, if the value is one."""
    through = any(f.via for f in word.slice(start, len(word.text or "")))
    if place is not None and through and word.place.contains(place):
        yield (Edit(place, value),)


EDITORS: Mapping[Syntax, type[WordEditor]] = MappingProxyType(
    {
        "shell": ShellEditor,
        "list-words": ListEditor,
        "keywords": KeywordEditor,
        "yaml-words": YamlWordEditor,
        "yaml-mapping": MappingEditor,
    }
)
