"""Where a cursor is: in which word of which launch, and what is written before and after it.

The text is read once more with a mark at the cursor. The word that contains the mark is the one being typed, however the text continues
lines, quotes words or fills arrays; if no launch contains the mark, nothing is being typed in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.reading import read_document
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.launch import Document, EmbeddedFile, Launch
from spec_lsp.syntax.word import Place, Word, literal

MARK = "\uf8f1"
"""A character of no alphabet: every syntax takes it as part of a word, and none as part of a variable's name."""
NAME_MARK = "\ua66e"
"""A letter that nobody uses, for places where only a name is allowed."""


@dataclass(frozen=True, slots=True)
class WordSpot:
    """A cursor in the words of a variant of a launch.

    `typed` is the cursor's word up to the cursor, `rest` the remainder of the word; `before` and `behind` are the words before and after
    it.
    """

    launch: Launch
    index: int
    variant: int
    typed: str
    rest: str
    before: tuple[Word, ...]
    behind: tuple[Word, ...]
    word: Word
    offset: int
    keyword: Literal["", "name", "argument"] = ""
    """Whether the word is the name of a keyword argument: one that already has a value, or one without."""

    def place(self, start: int, end: int) -> Place | None:
        """Where the characters [start, end) of the word without its mark are written; `start` is at or before the cursor, `end` at or after
        it. Offsets are those of the text without the mark."""
        return _unmarked(self.word.place_of(start, end + 1), self.offset)

    def without(self, words: int) -> Launch:
        """The launch without the cursor's word and without the given number of words before it."""
        kept = (*self.before[: len(self.before) - words], *self.behind)
        return _with_variant(self.launch, self.variant, words=kept)


@dataclass(frozen=True, slots=True)
class LineSpot:
    """A cursor in a `--config` file: `text` is the file's without the mark, `at` the cursor in it, `start` and `end` its line."""

    launch: Launch
    index: int
    variant: int
    file: EmbeddedFile
    text: str
    at: int
    offset: int

    @property
    def start(self) -> int:
        return self.text.rfind("\n", 0, self.at) + 1

    @property
    def end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def place(self, start: int, end: int) -> Place | None:
        """Where the characters [start, end) of the file around the cursor are written."""
        return _unmarked(self.file.content.place_of(start, end + 1), self.offset)

    def without_line(self) -> Launch:
        """The launch without the cursor's line in the file."""
        left = self.text[: self.start] + self.text[self.end :]
        file = replace(self.file, content=literal(left, self.file.content.place))
        files = tuple(file if f is self.file else f for f in self.launch.variants[self.variant].files)
        return _with_variant(self.launch, self.variant, files=files)


Spot = WordSpot | LineSpot


def spot(document: Document, offset: int, workspace: Workspace) -> Spot | None:
    """Where the cursor at `offset` is; None outside of launches."""
    found = _marked(document, offset, MARK, workspace)
    if found is None and _is_lone_key(document, offset):
        found = _marked(document, offset, f"{MARK}: true", workspace)
    if found is None and ENGINE.search(document.text):
        found = _at_a_name(document, offset, workspace)
    return found


LONGEST = 80
"""The longest name, in characters."""
ENGINE = expression(r"\b(?:Engine|ServerArgs|Runtime)\b")
_BEFORE = expression(r"[(,\s\"][A-Za-z_]?\w*\Z")
_BEHIND = expression(r"\w*[ \t]*(?P<next>=(?!=)|[,)\r\n#\\]|\Z)")


def _at_a_name(document: Document, offset: int, workspace: Workspace) -> Spot | None:
    """The cursor in the name of a keyword argument; if that has no value yet, one is inserted for reading."""
    text = document.text
    behind = _BEHIND.match(text, offset)
    if behind is None or not _BEFORE.search(text[max(offset - LONGEST, 0) : offset]):
        return None
    end = behind.start("next")
    ends = text[end:].lstrip()[:1] in (",", ")")
    value = "" if behind.group("next") == "=" else "=0" if ends else "=0,"
    return _marked(document, offset, NAME_MARK, workspace, (end, value))


def _is_lone_key(document: Document, offset: int) -> bool:
    """Whether the cursor's line may become a key of a mapping whose keys are flags."""
    if all(launch.syntax != "yaml-mapping" for launch in document.launches):
        return False
    before, behind = document.text[:offset].rpartition("\n")[2], document.text[offset:].partition("\n")[0]
    return re.fullmatch(r"[ \t]*[\w-]*", before) is not None and re.fullmatch(r"[\w-]*[ \t\r]*", behind) is not None


def _marked(
    document: Document, offset: int, mark: str, workspace: Workspace, more: tuple[int, str] | None = None
) -> Spot | None:
    """The word or line that contains the mark; `more` is inserted into the text for reading, at an offset at or after the cursor's."""
    text = document.text
    end, behind = more or (offset, "")
    whole = text[:offset] + mark + text[offset:end] + behind + text[end:]
    marked = read_document(document.name, whole, workspace, document.language)
    for index, launch in enumerate(marked.launches):
        for variant in range(len(launch.variants)):
            found = (
                _in_names(launch, index, variant, document.name, offset, not behind)
                if mark == NAME_MARK
                else _in_words(launch, index, variant, document.name, offset)
                or _in_files(launch, index, variant, document.name, offset)
            )
            if found is not None:
                return found
    return None


def _in_words(launch: Launch, index: int, variant: int, name: str, offset: int) -> WordSpot | None:
    words = launch.variants[variant].words
    for number, word in enumerate(words):
        at = _mark_in(word, name, offset)
        if at is not None and not word.splat and at < len(word.known_start) and _in_one_piece(word):
            text = word.known_start
            return WordSpot(
                launch, index, variant, text[:at], text[at + 1 :], words[:number], words[number + 1 :], word, offset
            )
    return None


def _in_names(launch: Launch, index: int, variant: int, name: str, offset: int, has_value: bool) -> WordSpot | None:
    """The cursor in the name of a keyword argument; the resulting spot contains neither the name nor its value."""
    words = launch.variants[variant].words if launch.program == "engine" else ()
    for number, word in enumerate(words):
        at = _mark_in(word, name, offset, NAME_MARK)
        if at is not None and len(word.fragments) == 1:
            typed, rest = word.known_start[:at], word.known_start[at + 1 :]
            around = words[:number], words[number + 2 :]
            kind: Literal["name", "argument"] = "name" if has_value else "argument"
            return WordSpot(launch, index, variant, typed, rest, *around, word, offset, kind)
    return None


def _in_one_piece(word: Word) -> bool:
    """Whether a word is written in one place, without parts that an expansion brings in from elsewhere."""
    return len({fragment.via for fragment in word.fragments}) == 1


def _in_files(launch: Launch, index: int, variant: int, name: str, offset: int) -> LineSpot | None:
    for file in launch.variants[variant].files:
        at = _mark_in(file.content, name, offset)
        text = file.content.text
        if at is not None and text is not None:
            return LineSpot(launch, index, variant, file, text[:at] + text[at + 1 :], at, offset)
    return None


def _mark_in(word: Word, name: str, offset: int, mark: str = MARK) -> int | None:
    """The index of the mark in the text of a word; None where the word does not contain it."""
    position = 0
    for fragment in word.fragments:
        if fragment.text is None:
            return None
        if fragment.place.document == name and fragment.place.start <= offset < fragment.place.end:
            found = offset - fragment.place.start if fragment.verbatim else fragment.text.find(mark)
            return position + found if fragment.text[found : found + 1] == mark else None
        position += len(fragment.text)
    return None


def _unmarked(place: Place | None, offset: int) -> Place | None:
    """The place in the text without the mark for one that contains it."""
    if place is None or not place.start <= offset < place.end:
        return None
    return place._replace(end=place.end - 1)


def _with_variant(launch: Launch, number: int, **changes: object) -> Launch:
    variants = list(launch.variants)
    variants[number] = replace(variants[number], **changes)  # type: ignore[arg-type]
    return replace(launch, variants=tuple(variants))


# --- lines of a `--config` file ----------------------------------------------------------------------------------------

_KEY = expression(r"(?P<indent>[ \t]*)(?P<quote>[\"']?)(?P<key>[\w-]*)\Z")
_VALUE = expression(r"[ \t]*(?P<q>[\"']?)(?P<key>[A-Za-z][\w-]*)(?P=q)[ \t]*:(?P<blank>[ \t]*)(?P<value>.*)\Z")
_ITEM = expression(r"[ \t]*-[ \t]+(?P<value>.*)\Z")
_ITEM_LINE = expression(r"[ \t]*(?:-(?:[ \t]|\Z)|#|\Z)")
_LAST = expression(r"(?:.*[\[,][ \t]*)?(?P<quote>[\"']?)(?P<text>[^\s\"'\[\],{}#]*)\Z")
"""The last item of a value: behind the bracket or comma of a list, without its quote."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """What the cursor is at in a line: a key (`key` is None) or a value of a key. `start` and `end` are the characters of the file to
    replace; `blank`: a blank must be inserted first; `quote`: the quote that the cursor is in; `colon`: a colon follows."""

    key: str | None
    start: int
    end: int
    quote: str = ""
    blank: bool = False
    colon: bool = False


def line_part(at: LineSpot) -> LinePart | None:
    """The key or value at the cursor; None in comments, and in keys that are not at the top level."""
    before, behind = at.text[at.start : at.at], at.text[at.at : at.end]
    key = _KEY.match(before)
    if key is not None:
        if len(key["indent"]) != _margin(at):
            return None
        more = re.match(r"[\w-]*", behind)
        end = at.at + (more.end() if more else 0)
        colon = re.match(r"[\"']?[ \t]*:", at.text[end : at.end]) is not None
        return LinePart(None, at.at - len(key["key"]), end, key["quote"], colon=colon)
    value = _VALUE.match(before)
    if value is not None:
        return _value_part(at, value["key"], value["value"], behind, blank=not value["blank"])
    item = _ITEM.match(before)
    name = _key_above(at) if item else None
    return _value_part(at, name, item["value"], behind) if item and name else None


def _value_part(at: LineSpot, key: str, value: str, behind: str, *, blank: bool = False) -> LinePart | None:
    last = _LAST.match(value)
    if last is None:
        return None
    more = re.match(r"[^\s\"',\]\[{}#]*", behind)
    end = at.at + (more.end() if more else 0)
    return LinePart(key, at.at - len(last["text"]), end, last["quote"], blank)


def _margin(at: LineSpot) -> int:
    """The indentation of the file's keys."""
    for line in _other_lines(at):
        key = re.match(r"([ \t]*)[\"']?[A-Za-z][\w-]*[\"']?[ \t]*:", line)
        if key is not None:
            return len(key[1])
    return 0


def _other_lines(at: LineSpot) -> Iterator[str]:
    yield from at.text[: at.start].split("\n")
    yield from at.text[at.end :].split("\n")


def _key_above(at: LineSpot) -> str | None:
    """The key of the list that the cursor's line belongs to."""
    for line in reversed(at.text[: at.start].split("\n")[:-1]):
        value = _VALUE.match(line)
        if value is not None and not _ITEM.match(line):
            return None if value["value"].strip().partition("#")[0] else value["key"]
        if not _ITEM_LINE.match(line):
            return None
    return None
