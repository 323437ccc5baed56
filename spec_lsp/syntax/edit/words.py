"""Edits launches that are written as words of a shell.

Each operation makes candidates, the most likely first, and takes the first whose changed text reads as the intended words. So quoting and
nesting (`bash -c '…'` in a here-document) need no special cases: a candidate that does not read back is not offered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import items, yaml_text
from spec_lsp.syntax.edit.change import WordChange, apply_edits, flaws
from spec_lsp.syntax.kinds import kind_of
from spec_lsp.syntax.launch import Document, Edit, Launch, Syntax, Variant
from spec_lsp.syntax.word import Place, Word, hull

BARE = expression(r"[A-Za-z0-9_./:=,@%+^-]+\Z")
FLAG = expression(r"--?[A-Za-z]")
MAX_CANDIDATES = 16
HOLDERS = frozenset(("yaml", "markdown", "json", "jenkinsfile", "terraform"))
"""Kinds of documents that hold scripts inside quotes."""


@dataclass(slots=True)
class WordEditor:
    """Edits one variant of one launch of a document.

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
    def syntax(self) -> Syntax:
        return self.document.launches[self.launch].syntax

    # Operations.

    def set_value(self, index: int, value: str, start: int = 0) -> WordChange | None:
        """Rewrite the text of a word, from character `start` on, where it is written."""
        word = self.words[index]
        if word.text is None or start > len(word.text):
            return None
        expected = list(map(_told, self.words))
        expected[index] = word.text[:start] + value
        return self.first_good(self.value_candidates(word, value, start), expected, index)

    def rename(self, index: int, flag: str) -> WordChange | None:
        """Give a flag another name, keeping a value after `=`."""
        word = self.words[index]
        old = word.known_start.partition("=")[0]
        if self.syntax == "yaml-mapping":
            written = self.text_at(word.place) if is_written(word) else ""
            bare = flag if self.has_dashes(word) else flag.removeprefix("--")
            key = bare.replace("-", "_" if "_" in written and "-" not in written else "-")
            expected = [*map(_told, self.words[:index]), flag, *map(_told, self.words[index + 1 :])]
            return self.first_good([(Edit(word.place, key),)], expected, index) if written else None
        if not FLAG.match(old) and self.syntax != "keywords":
            return None
        place = word.place_of(0, len(old))
        own = self.document.launches[self.launch]
        if place is None or self.text_at(place) != own.written_flag(old):
            return None
        expected = list(map(_told, self.words))
        if word.text is not None:
            expected[index] = flag + word.text[len(old) :]
        else:
            expected[index] = ANYTHING
        return self.first_good([(Edit(place, own.written_flag(flag)),)], expected, index)

    def remove(self, first: int, count: int = 1) -> WordChange | None:
        """Remove words that follow each other: a flag and its values."""
        going = self.words[first : first + count]
        if not going or len({w.place.document for w in going}) != 1:
            return None
        expected = [*map(_told, self.words[:first]), *map(_told, self.words[first + count :])]
        return self.first_good(self.removal_candidates(going), expected, first, removed=count)

    def insert(self, after: int, flag: str, values: Sequence[str] = ()) -> WordChange | None:
        """Add a flag after the word `after` (-1: after the entry point), in the style of its neighbours."""
        joined = len(values) == 1 and self.joins_values() and self.syntax not in ("keywords", "yaml-mapping")
        new = [f"{flag}={values[0]}"] if joined else [flag, *values]
        expected = [*map(_told, self.words[: after + 1]), *new, *map(_told, self.words[after + 1 :])]
        written = [self.document.launches[self.launch].written_flag(new[0]), *new[1:]]
        return self.first_good(self.insertion_candidates(after, written), expected, after + 1, added=len(new))

    def replace(self, first: int, count: int, flags: Sequence[tuple[str, Sequence[str]]]) -> WordChange | None:
        """Replace words that follow each other (a flag with its values) by flags with their values."""
        going = self.words[first : first + count]
        if not going or len({w.place.document for w in going}) != 1 or not all(map(is_written, going)):
            return None
        item = self.syntax == "list-words" or (self.syntax == "yaml-words" and self.is_item(going[0].place))
        joined = self.syntax in ("shell", "yaml-words", "list-words") and (item or self.joins_values())
        new: list[str] = []
        for flag, values in flags:
            new += [f"{flag}={values[0]}", *values[1:]] if joined and values else [flag, *values]
        expected = [*map(_told, self.words[:first]), *new, *map(_told, self.words[first + count :])]
        return self.first_good(self.replacements(going, new, flags), expected, first, removed=count, added=len(new))

    def split(self, index: int) -> WordChange | None:
        """Write a flag and the value after its `=` as two words."""
        word = self.words[index]
        flag, equals, value = (word.text or "").partition("=")
        place = word.place_of(0, len(flag) + 1) if equals else None
        if place is None:
            return None
        expected = [*map(_told, self.words[:index]), flag, value, *map(_told, self.words[index + 1 :])]
        return self.first_good(self.split_candidates(word, flag, value, place), expected, index, added=2)

    def has_dashes(self, key: Word) -> bool:
        """Whether a key that becomes a flag is written with the flag's dashes."""
        return self.text_at(key.place).lstrip("\"'").startswith("--")

    def joins_values(self) -> bool:
        """Whether the launch writes `--flag=value` rather than `--flag value`."""
        flags = [w.known_start for w in self.words if FLAG.match(w.known_start)]
        joined = sum("=" in f for f in flags)
        return joined * 2 > len(flags)

    # Candidates.

    def value_candidates(self, word: Word, value: str, start: int) -> Iterator[tuple[Edit, ...]]:
        assert word.text is not None
        size = len(word.text)
        place = word.place_of(start, size) if start < size else None
        fragments = word.slice(start, size) if start < size else ()
        if any(f.fixed for f in fragments):
            return
        if self.syntax == "yaml-mapping" or (self.syntax == "yaml-words" and self.is_item(word.place)):
            text = self.text_of(word.place.document)
            if place is not None and word.place.contains(place) and any(f.via for f in fragments):
                yield (Edit(place, value),)  # the default of a variable or of a template
            if (
                self.syntax == "yaml-mapping"
                and start == 0
                and self.text_at(word.place) == word.text
                and BARE.match(value)
            ):
                yield (Edit(word.place, value),)  # a number must stay a number
            yield from yaml_text.value_edits(text, word.place, place, value, word.text[:start] + value)
            return
        if self.syntax == "list-words" and place is not None:
            yield from items.value_edits(self.text_of(place.document), word.place, place, value)
        if self.syntax == "keywords":
            yield from [(Edit(place, value),)] if place is not None else []
            return
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
        text = self.text_of(place.document)
        if self.syntax == "yaml-words" and self.is_item(word.place):
            quote, other = self.item_quotes(text)
            yield from yaml_text.split_edits(
                text, word.place, yaml_text.scalar(flag, quote), yaml_text.scalar(value, "", other)
            )
        elif self.syntax == "list-words":
            quote = items.quote_of(text, word.place)
            yield (Edit(word.place, f"{items.quoted(flag, quote)}, {items.quoted(value, quote)}"),)
        else:
            yield (Edit(place, f"{flag} "),)

    def replacements(
        self, going: Sequence[Word], new: Sequence[str], flags: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[tuple[Edit, ...]]:
        """Ways to replace words by the words `new` (those of `flags`)."""
        place = hull(w.place for w in going)
        document, text = place.document, self.text_of(place.document)
        own = self.document.launches[self.launch]
        if self.syntax == "yaml-mapping":
            key = going[0].place
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
            yield (Edit(Place(document, key.start, last.end), between.join(entries)),)
        elif self.syntax == "keywords":
            yield (Edit(place, ", ".join(f"{flag}={''.join(values)}" for flag, values in flags)),)
        elif self.syntax == "list-words":
            quote = items.quote_of(text, going[0].place)
            written = [items.quoted(own.written_flag(w) if FLAG.match(w) else w, quote) for w in new]
            yield (Edit(place, ", ".join(written)),)
        elif self.syntax == "yaml-words" and self.is_item(going[0].place):
            quote, other = self.item_quotes(text)
            written = [yaml_text.scalar(w, quote if FLAG.match(w) else "", other) for w in new]
            behind = (
                list(yaml_text.insertion_edits(text, going[0].place, written[1:], before=False))
                if written[1:]
                else [()]
            )
            for more in behind:
                yield (Edit(place, written[0]), *more)
        else:
            for pieces in written_words(new):
                yield (Edit(place, " ".join(own.written_flag(p) if FLAG.match(p) else p for p in pieces)),)

    def removal_candidates(self, going: Sequence[Word]) -> Iterator[tuple[Edit, ...]]:
        place = hull(w.place for w in going)
        document = place.document
        text = self.text_of(document)
        if self.syntax == "yaml-mapping":
            yield from yaml_text.entry_removals(text, going[0].place, going[-1].place) if is_written(going[0]) else ()
            return
        if self.syntax == "yaml-words" and self.is_item(going[0].place):
            yield from yaml_text.removal_edits(text, going[0].place, going[-1].place)
            return
        if self.syntax in ("list-words", "keywords"):
            yield from items.removal_edits(text, going[0].place, going[-1].place)
            return
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
        anchor = self.words[after].place if after >= 0 else self.document.launches[self.launch].place
        document, text = anchor.document, self.text_of(anchor.document)
        if self.syntax == "yaml-mapping":
            yield from self.entry_insertions(text, after, new)
            return
        if self.syntax == "yaml-words" and (at := self.item_beside(after)) is not None:
            quote, other = self.item_quotes(text)
            written = [yaml_text.scalar(word, quote if FLAG.match(word) else "", other) for word in new]
            yield from yaml_text.insertion_edits(text, at[0], written, before=at[1])
            return
        if self.syntax == "keywords":
            whole = hull((self.words[after - 1].place, anchor)) if after > 0 else anchor
            yield from items.keyword_edits(text, whole, "=".join(new), first=after < 0)
            return
        if self.syntax == "list-words":
            quote = items.quote_of(text, anchor)
            yield from items.insertion_edits(text, anchor, [items.quoted(word, quote) for word in new])
        for pieces in written_words(new):
            yield from self.insertions(document, text, after, anchor.end, pieces)

    def is_item(self, place: Place) -> bool:
        """Whether a word is an item of a YAML list, and not a part of a text."""
        return yaml_text.is_item(self.text_of(place.document), place)

    def item_quotes(self, text: str) -> tuple[str, str]:
        """The quotes that flags are written in, and those of values that need some."""
        own = [w for w in self.words if w.place.document == self.document.name and self.is_item(w.place)]
        flags = [yaml_text.quote_at(text, w.place) for w in own if FLAG.match(w.known_start)]
        others = [q for w in own if not FLAG.match(w.known_start) and (q := yaml_text.quote_at(text, w.place))]
        quote = flags[0] if flags else ""
        return quote, others[0] if others else quote or '"'

    def item_beside(self, after: int) -> tuple[Place, bool] | None:
        """The item of a list to add behind, or (True) before: the entry point may stand in no list."""
        entry = self.document.launches[self.launch].place
        if after >= 0:
            place = self.words[after].place
            return (place, False) if self.is_item(place) else None
        if self.is_item(entry) or not self.words:
            return entry, False
        first = self.words[0].place
        return (first, True) if self.is_item(first) else None

    def entry_insertions(self, text: str, after: int, new: Sequence[str]) -> Iterator[tuple[Edit, ...]]:
        """Ways to add a key to a mapping whose keys become flags: where it is there with `false`, there; else behind a flag's entry."""
        launch = self.document.launches[self.launch]
        keys = [i for i, w in enumerate(self.words) if FLAG.match(w.known_start) and is_written(w)]
        dashes = any(self.has_dashes(self.words[i]) for i in keys)
        key, value = new[0] if dashes else new[0].removeprefix("--"), yaml_text.entry_value(new[1:])
        yield from yaml_text.switched_on(text, launch.extent, key, value)
        at = max((i for i in keys if i <= after), default=None) if after >= 0 else None
        at = keys[-1] if at is None and keys else at
        if at is None:
            return
        snake = not dashes and sum("_" in self.text_at(self.words[i].place) for i in keys) * 2 > len(keys)
        written = key.replace("-", "_") if snake else key
        behind = next((i for i in range(at + 1, len(self.words)) if i in keys), len(self.words))
        last = self.words[behind - 1].place
        yield from yaml_text.entry_insertions(text, self.words[at].place, last, f"{written}: {value}")

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
        if (
            self.syntax == "shell"
            and kind_of(self.document.name, self.document.text, self.document.language) in HOLDERS
        ):
            candidates = self.with_escapes(candidates)
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

    def with_escapes(self, candidates: Iterable[tuple[Edit, ...]]) -> Iterator[tuple[Edit, ...]]:
        """The candidates, each also in the form for a script inside quotes of the surrounding document."""
        for edits in candidates:
            yield edits
            for edit in edits if len(edits) == 1 else ():
                for text in yaml_text.escaped(edit.text):
                    yield (replace(edit, text=text),)

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
        also: list[tuple[int, Word]] = []
        if self.syntax == "yaml-mapping" and added:
            same = Counter(map(_told, again.words)) == Counter(expected)
            return WordChange(edits, tuple(self.elsewhere(after))) if same else None
        for i, (word, told) in enumerate(zip(again.words, expected, strict=True)):
            if told is not ANYTHING and _told(word) != told:
                if at <= i < at + max(added, 1) and not removed:
                    return None
                if added or removed:
                    return None
                also.append((self.launch, self.words[i]))
        return WordChange(edits, (*also, *self.elsewhere(after)))

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
                    if _told(a) != _told(b) and a not in seen:
                        seen.add(a)
                        yield i, a


ANYTHING = object()


def is_written(word: Word) -> bool:
    """Whether a part of a word is written in a file; some tools add words of their own."""
    return any(not f.fixed and f.place.end > f.place.start for f in word.fragments)


def _told(word: Word) -> object:
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
