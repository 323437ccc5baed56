"""A document read from a text that another document holds: every place in it turned into the place in the outer one.

A Markdown fence, a cell of a notebook, a ConfigMap's entry: its own reader reads the text as a file of its own, and what it found is
moved to where the characters stand. Only the map knows about indentation, escapes and quote marks.
"""

from __future__ import annotations

from dataclasses import replace

from spec_lsp.syntax.launch import Clue, Directive, Document, Launch, Problem, Variant
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Place, Word


def remap(inner: Document, source: Source) -> Document:
    """`inner` as read from `source.text`, with its places where `source` says; places in other documents stay.

    A verbatim fragment becomes one for each stretch that stands in one piece. The name and text stay those of `inner`.
    """
    moved = _Moved(inner.name, source)
    return replace(
        inner,
        launches=tuple(map(moved.launch, inner.launches)),
        problems=tuple(map(moved.problem, inner.problems)),
        directives=tuple(map(moved.directive, inner.directives)),
    )


class _Moved:
    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.source = source

    def place(self, place: Place) -> Place:
        return self.source.place(place.start, place.end) if place.document == self.name else place

    def fragments(self, fragment: Fragment) -> tuple[Fragment, ...]:
        via = tuple(map(self.place, fragment.via))
        place = fragment.place
        if not fragment.verbatim or fragment.text is None or place.document != self.name:
            return (fragment._replace(place=self.place(place), via=via),)
        pieces = self.source.fragments(place.start, place.end)
        return tuple(p._replace(via=(*p.via, *via), fixed=p.fixed or fragment.fixed) for p in pieces)

    def word(self, word: Word) -> Word:
        fragments = tuple(moved for f in word.fragments for moved in self.fragments(f))
        return word._replace(fragments=fragments, place=self.place(word.place))

    def variant(self, variant: Variant) -> Variant:
        return Variant(
            tuple(map(self.word, variant.words)),
            {name: self.word(word) for name, word in variant.env.items()},
            tuple(replace(c, place=self.place(c.place)) for c in variant.choices),
            tuple(replace(f, content=self.word(f.content)) for f in variant.files),
        )

    def clue(self, clue: Clue) -> Clue:
        return replace(clue, place=self.place(clue.place))

    def launch(self, launch: Launch) -> Launch:
        return replace(
            launch,
            place=self.place(launch.place),
            extent=self.place(launch.extent),
            group=self.place(launch.group) if launch.group is not None else None,
            variants=tuple(map(self.variant, launch.variants)),
            clues=tuple(map(self.clue, launch.clues)),
        )

    def problem(self, problem: Problem) -> Problem:
        return replace(
            problem,
            place=self.place(problem.place),
            edits=tuple(replace(e, place=self.place(e.place)) for e in problem.edits),
            related=tuple((self.place(p), text) for p, text in problem.related),
        )

    def directive(self, directive: Directive) -> Directive:
        scope = self.place(directive.scope) if directive.scope is not None else None
        within = self.place(directive.within) if directive.within is not None else None
        return replace(directive, place=self.place(directive.place), scope=scope, within=within)
