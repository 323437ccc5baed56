"""Maps every place in what was read from a text to another place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spec_lsp.records import replace
from spec_lsp.syntax.launch import Clue, Directive, EmbeddedFile, Launch, Problem, Variant
from spec_lsp.syntax.word import Fragment, Place, Word


class Mapped:
    """Maps places by `place`; shared objects stay shared. A verbatim fragment must stay in one piece, unless a subclass makes several
    `fragments` of it."""

    def __init__(self, place: Callable[[Place], Place]) -> None:
        self.place = place
        self._words: dict[int, tuple[Word, Word]] = {}
        self._clues: dict[int, tuple[Clue, Clue]] = {}

    def word(self, word: Word) -> Word:
        known = self._words.get(id(word))
        if known is None:
            fragments, place, splat, scalar = word
            mapped = Word(self.fragments(fragments), self.place(place), splat, scalar)
            known = self._words[id(word)] = (word, mapped)
        return known[1]

    def fragments(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(map(self.fragment, fragments))

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

    def file(self, file: EmbeddedFile) -> EmbeddedFile:
        return EmbeddedFile(file.name, self.word(file.content))

    def variant(self, variant: Variant) -> Variant:
        return Variant(
            tuple(map(self.word, variant.words)),
            self.env(variant.env) if variant.env else variant.env,
            tuple(replace(c, place=self.place(c.place)) for c in variant.choices),
            tuple(map(self.file, variant.files)),
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

    def directive(self, directive: Directive) -> Directive:
        scope = self.place(directive.scope) if directive.scope is not None else None
        within = self.place(directive.within) if directive.within is not None else None
        return replace(directive, place=self.place(directive.place), scope=scope, within=within)
