"""Launches of a document that only moved: what was read of it, with places further on in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spec_lsp.syntax.launch import Clue, EmbeddedFile, Launch, Problem, Variant
from spec_lsp.syntax.word import Fragment, Place, Word


@dataclass(slots=True)
class Shift:
    """Moves places in [start, end) of `document` by so many characters; what is shared stays shared.

    Places in other documents of the file (a ConfigMap that a pod mounts) stay where they are.
    """

    document: str
    start: int
    end: int
    by: int
    _words: dict[int, tuple[Word, Word]]
    _clues: dict[int, tuple[Clue, Clue]]

    def place(self, place: Place) -> Place:
        document, start, end = place
        if document != self.document or start < self.start or end > self.end:
            return place
        return Place(document, start + self.by, end + self.by)

    def word(self, word: Word) -> Word:
        known = self._words.get(id(word))
        if known is None:
            moved = Word(tuple(map(self.fragment, word.fragments)), self.place(word.place), word.splat, word.scalar)
            known = self._words[id(word)] = (word, moved)
        return known[1]

    def fragment(self, fragment: Fragment) -> Fragment:
        text, place, verbatim, reason, via, fixed = fragment
        return Fragment(text, self.place(place), verbatim, reason, tuple(map(self.place, via)) if via else via, fixed)

    def env(self, env: Mapping[str, Word]) -> Mapping[str, Word]:
        return {name: self.word(word) for name, word in env.items()}

    def clue(self, clue: Clue) -> Clue:
        known = self._clues.get(id(clue))
        if known is None:
            known = self._clues[id(clue)] = (clue, Clue(clue.kind, clue.text, self.place(clue.place)))
        return known[1]

    def variant(self, variant: Variant) -> Variant:
        return Variant(
            tuple(map(self.word, variant.words)),
            self.env(variant.env) if variant.env else variant.env,
            tuple(replace(c, place=self.place(c.place)) for c in variant.choices),
            tuple(EmbeddedFile(f.name, self.word(f.content)) for f in variant.files),
        )

    def launch(self, launch: Launch) -> Launch:
        return replace(
            launch,
            place=self.place(launch.place),
            extent=self.place(launch.extent),
            variants=tuple(map(self.variant, launch.variants)),
            clues=tuple(map(self.clue, launch.clues)),
            group=self.place(launch.group) if launch.group is not None else None,
        )

    def problem(self, problem: Problem) -> Problem:
        return replace(
            problem,
            place=self.place(problem.place),
            edits=tuple(replace(e, place=self.place(e.place)) for e in problem.edits),
            related=tuple((self.place(place), text) for place, text in problem.related),
        )


def shift(document: str, start: int, end: int, by: int) -> Shift:
    return Shift(document, start, end, by, {}, {})
