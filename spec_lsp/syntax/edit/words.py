"""Edits of launches: operations on their words, and how words of a shell are written.

`editors.py` has the editors of other notations. Each operation makes candidates, the most likely first, and takes the first whose changed
text reads as the intended words. So quoting and nesting (`bash -c '…'` in a here-document) need no special cases: a candidate that does
not read back is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax import parse
from spec_lsp.syntax.edit.change import WordChange, apply_edits, flaws
from spec_lsp.syntax.kinds import kind_of
from spec_lsp.syntax.launch import Document, Edit, Launch, Variant
from spec_lsp.syntax.word import Place, Word, hull

BARE = expression(r"[A-Za-z0-9_./:=,@%+^-]+\Z")
FLAG = expression(r"--?[A-Za-z]")
MAX_CANDIDATES = 16


@dataclass(slots=True)
class WordEditor:
    """Edits one variant of one launch of a document, in the notation of a shell's words.

    `texts` holds the text of other documents that contain words of the launch (sourced scripts), by the name in their places; `read` and
    `parse` are those that the document was parsed with.
    """

    document: Document
    launch: int
    variant: int = 0
    read: Callable[[str], str | None] = lambda path: None
    parse: Callable[[str, str, Callable[[str], str | None], str | None], Document] = parse
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[Word, ...]:
        return self.document.launches[self.launch].variants[self.variant].words

    def locate(self, word: Word) -> tuple[int, int] | None:
        """The index of a word in the launch and where in its text the given word starts: a flag's value cut off at `=` starts later."""
        for i, own in enumerate(self.words):
            if own == word:
                return i, 0
        for i, own in enumerate(self.words):
            at = own.known_start.find("=") + 1
            if at and own.split(at)[1] == word:
                return i, at
        return None

    @property
    def own(self) -> Launch:
        return self.document.launches[self.launch]

    def anchor(self, after: int) -> Place:
        """The place of the word to insert after; -1: of the entry point."""
        return self.words[after].place if after >= 0 else self.own.place

    # Operations.

    def set_value(self, index: int, value: str, start: int = 0) -> WordChange | None:
        """Rewrite the text of a word, from character `start` on, where it is written."""
        word = self.words[index]
        if word.text is None or start > len(word.text):
            return None
        expected = list(map(told_by, self.words))
        expected[index] = word.text[:start] + value
        return self.first_good(self.value_candidates(word, value, start), expected, index)

    def rename(self, index: int, flag: str) -> WordChange | None:
        """Give a flag another name, keeping a value after `=`."""
        word = self.words[index]
        old = word.known_start.partition("=")[0]
        place = word.place_of(0, len(old)) if self.is_flag(old) else None
        if place is None or self.text_at(place) != self.own.written_flag(old):
            return None
        expected = list(map(told_by, self.words))
        if word.text is not None:
            expected[index] = flag + word.text[len(old) :]
        else:
            expected[index] = ANYTHING
        return self.first_good([(Edit(place, self.own.written_flag(flag)),)], expected, index)

    def remove(self, first: int, count: int = 1) -> WordChange | None:
        """Remove words that follow each other: a flag and its values."""
        going = self.words[first : first + count]
        if not going or len({w.place.document for w in going}) != 1:
            return None
        expected = [*map(told_by, self.words[:first]), *map(told_by, self.words[first + count :])]
        return self.first_good(self.removal_candidates(going), expected, first, removed=count)

    def insert(self, after: int, flag: str, values: Sequence[str] = ()) -> WordChange | None:
        """Add a flag after the word `after` (-1: after the entry point), in the style of its neighbours."""
        joined = len(values) == 1 and self.joins_values()
        new = [f"{flag}={values[0]}"] if joined else [flag, *values]
        expected = [*map(told_by, self.words[: after + 1]), *new, *map(told_by, self.words[after + 1 :])]
        written = [self.own.written_flag(new[0]), *new[1:]]
        return self.first_good(self.insertion_candidates(after, written), expected, after + 1, added=len(new))

    def replace(self, first: int, count: int, flags: Sequence[tuple[str, Sequence[str]]]) -> WordChange | None:
        """Replace words that follow each other (a flag with its values) by flags with their values."""
        going = self.words[first : first + count]
        if not going or len({w.place.document for w in going}) != 1 or not all(map(is_written, going)):
            return None
        joined = self.joins_values(going[0])
        new: list[str] = []
        for flag, values in flags:
            new += [f"{flag}={values[0]}", *values[1:]] if joined and values else [flag, *values]
        expected = [*map(told_by, self.words[:first]), *new, *map(told_by, self.words[first + count :])]
        return self.first_good(self.replacements(going, new, flags), expected, first, removed=count, added=len(new))

    def split(self, index: int) -> WordChange | None:
        """Write a flag and the value after its `=` as two words."""
        word = self.words[index]
        flag, equals, value = (word.text or "").partition("=")
        place = word.place_of(0, len(flag) + 1) if equals else None
        if place is None:
            return None
        expected = [*map(told_by, self.words[:index]), flag, value, *map(told_by, self.words[index + 1 :])]
        return self.first_good(self.split_candidates(word, flag, value, place), expected, index, added=2)

    # The notation.

    def is_flag(self, text: str) -> bool:
        return FLAG.match(text) is not None

    def joins_values(self, at: Word | None = None) -> bool:
        """Whether the launch writes `--flag=value` rather than `--flag value`; `at`: in place of this word."""
        flags = [w.known_start for w in self.words if FLAG.match(w.known_start)]
        joined = sum("=" in f for f in flags)
        return joined * 2 > len(flags)

    def value_candidates(self, word: Word, value: str, start: int) -> Iterator[tuple[Edit, ...]]:
        assert word.text is not None
        size = len(word.text)
        place = word.place_of(start, size) if start < size else None
        fragments = word.slice(start, size) if start < size else ()
        if any(f.fixed for f in fragments):
            return
        yield from self.rewritten(word, value, start, place)

    def rewritten(self, word: Word, value: str, start: int, place: Place | None) -> Iterator[tuple[Edit, ...]]:
        """Ways to write a word's value; `place` is where its text from `start` on is written, if in one place."""
        assert word.text is not None
        if place is not None and self.text_at(place) == word.text[start:]:
            for written in quotings(value, self.quote_around(place)):
                yield (Edit(place, written),)
        elif place is not None and self.is_split_by_quotes(place):
            return
        if start == 0 and not any(f.via for f in word.fragments):
            for written in quotings(value, ""):
                yield (Edit(word.place, written),)

    def is_split_by_quotes(self, place: Place) -> bool:
        return self.text_at(place).count('"') % 2 == 1 or self.text_at(place).count("'") % 2 == 1

    def quote_around(self, place: Place) -> str:
        text = self.text_of(place.document)
        before, behind = text[place.start - 1 : place.start], text[place.end : place.end + 1]
        if behind == "\\" and text[place.start - 2 : place.start] == text[place.end : place.end + 2]:
            behind = before  # \"…\" in a string of the document that contains the script
        return before if before == behind and before in ("'", '"') else ""

    def split_candidates(self, word: Word, flag: str, value: str, place: Place) -> Iterator[tuple[Edit, ...]]:
        yield (Edit(place, f"{flag} "),)

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[tuple[Edit, ...]]:
        """Ways to replace words by the words `new` (those of `flags`)."""
        place = hull(w.place for w in going)
        for pieces in written_words(new):
            yield (Edit(place, " ".join(self.own.written_flag(p) if FLAG.match(p) else p for p in pieces)),)

    def removal_candidates(self, going: Sequence[Word]) -> Iterator[tuple[Edit, ...]]:
        place = hull(w.place for w in going)
        document = place.document
        text = self.text_of(document)
        start, end = place.start, place.end
        line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        m = re.compile(r"[ \t]*(\\{1,2})?(\r?\n|\Z)").match(text, end)  # two in a string of Groovy's
        if not text[line:start].strip(" \t") and m:
            before = text[:line].rstrip("\r\n")
            if m.group(1) or not before.endswith("\\"):
                yield (Edit(Place(document, line, m.end()), ""),)
            else:
                kept = len(before.rstrip("\\").rstrip(" \t"))
                yield (Edit(Place(document, kept, end), ""),)
        elif not text[line:start].strip(" \t") and text[:line].rstrip("\r\n").endswith("\\"):
            above = text[:line].rstrip("\r\n").rstrip("\\").rstrip(" \t")
            yield (Edit(Place(document, len(above), end), ""),)
        blanks = len(text[:start]) - len(text[:start].rstrip(" \t"))
        behind = re.compile(r"[ \t]*").match(text, end)
        assert behind is not None
        if text[line:start].strip(" \t") and blanks:
            yield (Edit(Place(document, start - blanks, end), ""),)
        yield (Edit(Place(document, start, behind.end()), ""),)
        yield (Edit(Place(document, start, end), ""),)

    def insertion_candidates(self, after: int, new: Sequence[str]) -> Iterator[tuple[Edit, ...]]:
        anchor = self.anchor(after)
        document, text = anchor.document, self.text_of(anchor.document)
        for pieces in written_words(new):
            yield from self.insertions(document, text, after, anchor.end, pieces)

    def insertions(
        self, document: str, text: str, after: int, at: int, pieces: Sequence[str]
    ) -> Iterator[tuple[Edit, ...]]:
        eol = "\r\n" if "\r\n" in text else "\n"
        layout = self.layout(text, after)
        if layout is not None:
            indent, continued, apart = layout
            if continued:
                lines = f" \\{eol}{indent}".join(["", *(pieces if apart else [" ".join(pieces)])])
                yield (Edit(Place(document, at, at), lines),)
            else:
                rest = re.compile(r"[^\r\n]*").match(text, at)
                assert rest is not None
                lines = f"{eol}{indent}".join(["", *(pieces if apart else [" ".join(pieces)])])
                if rest.group().lstrip().startswith("#"):
                    yield (Edit(Place(document, rest.end(), rest.end()), lines),)
                yield (Edit(Place(document, at, at), lines),)
        yield (Edit(Place(document, at, at), " " + " ".join(pieces)),)

    def layout(self, text: str, after: int) -> tuple[str, bool, bool] | None:
        """How the flag before stands when lines hold one flag each: indentation, whether backslashes continue, whether values stand apart.

        Behind the entry point, the first word tells.
        """
        words = self.words
        at = after
        while at >= 0 and not FLAG.match(words[at].known_start):
            at -= 1
        if at < 0:
            at = next((i for i, w in enumerate(words) if FLAG.match(w.known_start)), -1)
        if at < 0:
            return None
        place = words[at].place
        if place.document != (words[after].place if after >= 0 else place).document:
            return None
        start = self.first_on_line(text, place)
        if start is None:
            return None
        indent, continued = start
        value = words[at + 1] if at + 1 < len(words) and "=" not in words[at].known_start else None
        apart = (
            value is not None
            and not FLAG.match(value.known_start)
            and value.place.document == place.document
            and "\n" in text[place.end : max(value.place.start, place.end)]
        )
        return indent, continued, apart

    def first_on_line(self, text: str, place: Place) -> tuple[str, bool] | None:
        """The indentation of a word that is the first on its line, and whether the line above continues with a backslash."""
        line = max(text.rfind("\n", 0, place.start), text.rfind("\r", 0, place.start)) + 1
        indent = text[line : place.start]
        if line == 0 or indent.strip(" \t\"'"):
            return None
        indent = indent[: len(indent) - len(indent.lstrip(" \t"))]
        return indent, text[:line].rstrip("\r\n").endswith("\\")

    # Reading back.

    def text_of(self, document: str) -> str:
        if document == self.document.name:
            return self.document.text
        found = self.texts.get(document)
        return found if found is not None else (self.read(document) or "")

    def text_at(self, place: Place) -> str:
        return self.text_of(place.document)[place.start : place.end]

    def first_good(
        self,
        candidates: Iterable[tuple[Edit, ...]],
        expected: Sequence[object],
        at: int,
        removed: int = 0,
        added: int = 0,
    ) -> WordChange | None:
        seen: set[tuple[Edit, ...]] = set()
        for edits in candidates:
            if edits in seen:
                continue
            seen.add(edits)
            if len(seen) > MAX_CANDIDATES:
                break
            change = self.checked(edits, expected, at, removed, added)
            if change is not None:
                return change
        return None

    def checked(
        self, edits: tuple[Edit, ...], expected: Sequence[object], at: int, removed: int, added: int
    ) -> WordChange | None:
        """The change, if the edited text reads as expected."""
        names = {e.place.document for e in edits}
        changed: dict[str, str] = {}
        for name in names:
            text = apply_edits(self.text_of(name), name, edits)
            kind = kind_of(name, text or "", self.document.language if name == self.document.name else None)
            if text is None or ((broken := flaws(kind, text)) and broken > flaws(kind, self.text_of(name))):
                return None
            changed[name] = text
        after = self.parse(
            self.document.name,
            changed.get(self.document.name, self.document.text),
            lambda path: changed.get(path) if path in changed else self.read(path),
            self.document.language,
        )
        if len(after.launches) != len(self.document.launches) or len(after.problems) > len(self.document.problems):
            return None
        own = self.document.launches[self.launch].variants[self.variant]
        again = _variant_like(after.launches[self.launch], own, self.variant)
        if again is None or len(again.words) != len(expected):
            return None
        also = self.compared(again.words, expected, at, removed, added)
        return None if also is None else WordChange(edits, (*also, *self.elsewhere(after)))

    def compared(
        self, words: Sequence[Word], expected: Sequence[object], at: int, removed: int, added: int
    ) -> list[tuple[int, Word]] | None:
        """The other words of the launch that the edits change; None if the words are not as expected."""
        also: list[tuple[int, Word]] = []
        for i, (word, told) in enumerate(zip(words, expected, strict=True)):
            if told is not ANYTHING and told_by(word) != told:
                if at <= i < at + max(added, 1) and not removed:
                    return None
                if added or removed:
                    return None
                also.append((self.launch, self.words[i]))
        return also

    def elsewhere(self, after: Document) -> Iterator[tuple[int, Word]]:
        """The words of other launches that the edits change."""
        for i, (before, now) in enumerate(zip(self.document.launches, after.launches, strict=True)):
            if i == self.launch:
                continue
            seen: set[Word] = set()
            for old, new in zip(before.variants, now.variants, strict=False):
                if len(old.words) != len(new.words):
                    gone = old.words[0] if old.words else Word((), before.place)
                    yield i, gone
                    break
                for a, b in zip(old.words, new.words, strict=True):
                    if told_by(a) != told_by(b) and a not in seen:
                        seen.add(a)
                        yield i, a


ANYTHING = object()


def is_written(word: Word) -> bool:
    """Whether a part of a word is written in a file; some tools add words of their own."""
    return any(not f.fixed and f.place.end > f.place.start for f in word.fragments)


def told_by(word: Word) -> object:
    """What a word holds, regardless of where it is written."""
    return word.text if word.text is not None else (word.splat, tuple(f.text for f in word.fragments))


def _variant_like(launch: Launch, variant: Variant, index: int) -> Variant | None:
    """The variant, of the launch read from the edited text, that is reached by the same choices."""
    if len(launch.variants) == 1:
        return launch.variants[0]
    taken = [c.taken for c in variant.choices]
    same = [v for v in launch.variants if [c.taken for c in v.choices] == taken]
    if len(same) == 1:
        return same[0]
    return launch.variants[index] if index < len(launch.variants) else None


def quotings(value: str, around: str) -> Iterator[str]:
    """Ways to quote a text, the plainest first; `around` is the quote that already encloses it."""
    if BARE.match(value):
        yield value
        return
    if around:
        if around == '"':
            yield re.sub(r'([\\"$`])', r"\\\1", value)
        elif "'" not in value:
            yield value
    if "'" not in value:
        yield f"'{value}'"
    yield '"' + re.sub(r'([\\"$`])', r"\\\1", value) + '"'
    yield re.sub(r"([^A-Za-z0-9_./:=,@%+-])", r"\\\1", value) if value else "''"


def written_words(words: Sequence[str]) -> Iterator[list[str]]:
    """Ways to write several words."""
    for kind in range(3):
        pieces = []
        for word in words:
            ways = list(quotings(word, ""))
            pieces.append(ways[min(kind, len(ways) - 1)])
        yield pieces
        if all(BARE.match(w) for w in words):
            return
