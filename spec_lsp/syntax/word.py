"""What one argv element will be, and where each of its characters is written.

All offsets are in characters (code points) of the document's text as a Python string, `end` exclusive.

These are named tuples because there are thousands of them after each keystroke: they are made, compared and collected faster than
frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spec_lsp.records import NamedTuple


class Place(NamedTuple):
    """The characters [start, end) of one document. `document` is the path or URI as the caller named it."""

    document: str
    start: int
    end: int

    def contains(self, other: Place) -> bool:
        return self.document == other.document and self.start <= other.start and other.end <= self.end


def hull(places: Iterable[Place]) -> Place:
    """The smallest place that covers all the given ones that lie in the first one's document."""
    first, *rest = places
    if not rest:
        return first
    rest = [p for p in rest if p.document == first.document]
    return Place(first.document, min([first.start, *(p.start for p in rest)]), max([first.end, *(p.end for p in rest)]))


class Fragment(NamedTuple):
    """A run of characters of a word, and where it is written.

    A verbatim fragment's text is the document's own characters, one to one (`len(text) == place.end - place.start`), so its character `i`
    is at `place.start + i`. Any other fragment (an escape, a default, a computed value) maps as a whole.

    `text` is None if the document does not determine the value; `reason` then says why, in words that continue "unknown: " ("from the
    environment", "command substitution"). `via` holds the expansions through which the text came, outermost first: for `TOPK=4; … --topk
    $TOPK` the fragment's place is the `4` and `via` is the place of `$TOPK`.

    `fixed` text is not written as a value: the pattern of the `case` arm that is taken, a computed number. It can be shown but not
    rewritten.
    """

    text: str | None
    place: Place
    verbatim: bool = True
    reason: str = ""
    via: tuple[Place, ...] = ()
    fixed: bool = False


class OneOf(str):
    """The reason of an unknown value that is one of a few: a `case` arm with several patterns was taken."""

    __slots__ = ("values",)
    values: tuple[str, ...]

    def __new__(cls, text: str, values: tuple[str, ...] = ()) -> OneOf:
        made = super().__new__(cls, text)
        made.values = values
        return made


def one_of(values: Sequence[str]) -> OneOf:
    """`one of a, b`."""
    return OneOf(f"one of {', '.join(values)}", tuple(values))


def possible(fragments: Sequence[Fragment]) -> tuple[str, ...]:
    """The texts that a value may be, if that is all that is known of it; else none."""
    reason = fragments[0].reason if len(fragments) == 1 and fragments[0].text is None else ""
    return reason.values if isinstance(reason, OneOf) else ()


def cut(fragment: Fragment, start: int, end: int) -> Fragment:
    """The characters [start, end) of a known fragment; of a verbatim one with their exact place, of any other with the whole."""
    if fragment.text is None:
        return fragment
    place = fragment.place
    if fragment.verbatim:
        place = Place(place.document, place.start + start, place.start + end)
    return fragment._replace(text=fragment.text[start:end], place=place)


class Word(NamedTuple):
    """One argv element, or, with `splat`, an unknown number of unknown elements (`"$@"`, an unquoted unknown `$EXTRA`).

    `place` is where a reader sees the word: in the command itself for a written word or a single expanded value (`$TOPK`),
    at the place where the text is written for words that an array or a whole-flag string brings in.

    A splat is `scalar` when it is one unquoted variable: a single word unless the variable is empty or holds blanks. Behind a flag that
    takes a value (`--tp $TP`) it is that value; elsewhere it may be flags.
    """

    fragments: tuple[Fragment, ...]
    place: Place
    splat: bool = False
    scalar: bool = False

    @property
    def text(self) -> str | None:
        """The whole text, or None when a part of it is unknown. An empty word is `""`."""
        if self.splat:
            return None
        if len(self.fragments) == 1:
            return self.fragments[0].text
        parts = [f.text for f in self.fragments]
        return None if None in parts else "".join(p for p in parts if p is not None)

    @property
    def known_start(self) -> str:
        """The text up to the first unknown part: `--tp-size=` of `--tp-size=$TP`, empty for a splat."""
        start = ""
        if not self.splat:
            for fragment in self.fragments:
                if fragment.text is None:
                    break
                start += fragment.text
        return start

    @property
    def known_end(self) -> str:
        """The text behind the last unknown part: `/Qwen3-32B` of `$MODELS/Qwen3-32B`, empty for a splat."""
        end = ""
        if not self.splat:
            for fragment in reversed(self.fragments):
                if fragment.text is None:
                    break
                end = fragment.text + end
        return end

    @property
    def reason(self) -> str:
        """Why the word's value is unknown; empty if it is known."""
        return next((f.reason for f in self.fragments if f.text is None), "")

    def place_of(self, start: int, end: int) -> Place | None:
        """Where the characters [start, end) of the known text are written; None if they are in several documents or in none.

        Fragments that are not verbatim are covered whole.
        """
        found: list[Place] = []
        position = 0
        for fragment in self.fragments:
            if fragment.text is None:
                break
            length = len(fragment.text)
            low, high = max(start - position, 0), min(end - position, length)
            if low < high or (start == end and 0 <= start - position <= length and not found):
                p = fragment.place
                found.append(Place(p.document, p.start + low, p.start + high) if fragment.verbatim else p)
            position += length
        if not found or any(p.document != found[0].document for p in found):
            return None
        return hull(found)

    def slice(self, start: int, end: int) -> tuple[Fragment, ...]:
        """The fragments of the characters [start, end), an unknown fragment counting as one character."""
        found: list[Fragment] = []
        position = 0
        for fragment in self.fragments:
            length = 1 if fragment.text is None else len(fragment.text)
            low, high = max(start - position, 0), min(end - position, length)
            if low < high or (length == 0 and start <= position <= end):
                found.append(fragment if high - low == length else cut(fragment, low, high))
            position += length
            if position >= end:
                break
        return tuple(found)

    def split(self, at: int) -> tuple[Word, Word]:
        """The word split before character `at` of its known start (`--tp=8` into `--tp=` and `8`); both keep their places."""
        left: list[Fragment] = []
        right: list[Fragment] = []
        position = 0
        for fragment in self.fragments:
            length = len(fragment.text) if fragment.text is not None else 0
            if right or fragment.text is None or position >= at:
                right.append(fragment)
            elif position + length <= at:
                left.append(fragment)
            else:
                middle = at - position
                left.append(cut(fragment, 0, middle))
                right.append(cut(fragment, middle, length))
            position += length
        return (
            Word(tuple(left), self._seen(left), False),
            Word(tuple(right), self._seen(right), False),
        )

    def _seen(self, fragments: list[Fragment]) -> Place:
        """Where a reader sees some of this word's fragments: at their expansion in the word, or at their own place."""
        places = [next((v for v in f.via if self.place.contains(v)), f.place) for f in fragments]
        return hull(places) if places else Place(self.place.document, self.place.end, self.place.end)


def literal(text: str, place: Place) -> Word:
    """A word written in the document exactly as `text`."""
    return Word((Fragment(text, place),), place)


def unknown(place: Place, reason: str, *, splat: bool = False) -> Word:
    """An unknown word; `splat` if it may be any number of words."""
    return Word((Fragment(None, place, False, reason),), place, splat)


def told(word: Word) -> object:
    """What a word holds, known or not, regardless of where it is written: words that are equal in this run the same."""
    text = word.text
    return text if text is not None else (word.splat, tuple(f.text for f in word.fragments), word.reason)


MAX_FRAGMENTS = 2_000
MAX_CHARACTERS = 300_000
"""The longest composed text, in characters; a longer one is unknown, as no system accepts such a command."""
MAX_VIA = 12
"""How many of the names that a text came through are kept, from the outermost."""
TOO_LONG = "it is too long to be worked out"


def brought_in(value: Word, here: Place) -> tuple[Fragment, ...]:
    """The fragments that a name at `here` expands to; unknown if they are longer than any command: names that contain each other twice grow
    fast."""
    if len(value.fragments) > MAX_FRAGMENTS // 4 or sum(len(f.text or "") for f in value.fragments) > MAX_CHARACTERS:
        return (Fragment(None, here, False, TOO_LONG),)
    return tuple(f._replace(via=(here, *f.via[: MAX_VIA - 1])) for f in value.fragments)
