"""From verdicts to diagnostics: where in the files each finding is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from operator import attrgetter, eq

from spec_lsp.analysis.merge import MergedFinding, Verdict
from spec_lsp.analysis.messages import message_of
from spec_lsp.analysis.report import Diagnostic, Related
from spec_lsp.analysis.rules import DEPRECATED_FLAG
from spec_lsp.analysis.run import ConfigSource, RunResult, bind_variant
from spec_lsp.catalog.binding import Binding, Setting
from spec_lsp.records import replace
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place, Word, hull


def diagnostics_of(
    launch: Launch, index: int, verdict: Verdict, configs: ConfigSource, *, own: bool = False
) -> list[Diagnostic]:
    """The diagnostics of one launch. If the verdict is not its `own` but that of another launch with the same words, the words are bound
    again to get their places."""
    bindings: dict[tuple[int, object], Binding] = {}

    def binding_of(judged: RunResult) -> Binding:
        if own:
            return judged.binding
        key = (judged.variant, judged.world.release)
        if key not in bindings:
            bindings[key] = bind_variant(launch, judged.variant, judged.world.release, configs)
        return bindings[key]

    return [d for merged in verdict.findings for d in _diagnostics(launch, index, merged, binding_of)]


def _diagnostics(
    launch: Launch, index: int, merged: MergedFinding, binding_of: Callable[[RunResult], Binding]
) -> Iterable[Diagnostic]:
    """One diagnostic for each place at which some variant writes the cause."""
    first = _diagnostic(launch, index, merged, binding_of)
    told = {first.place: first}
    variants: dict[Place, list[int]] = {first.place: []}
    for found, judged in merged.cases if len(merged.cases) > 1 else ():
        other = _diagnostic(launch, index, replace(merged, found=found, run=judged), binding_of)
        variants.setdefault(other.place, []).append(judged.variant)
        told.setdefault(other.place, replace(other, key=f"{other.key}:{judged.variant}"))
    if len(told) == 1:
        return [first]
    return [_in_variants(launch, told[place], tuple(own)) for place, own in variants.items()]


def _in_variants(launch: Launch, diagnostic: Diagnostic, variants: tuple[int, ...]) -> Diagnostic:
    """The diagnostic with the variants that it holds in, where that is worth saying."""
    merged = diagnostic.source
    if not isinstance(merged, MergedFinding) or not merged.variants:
        return diagnostic
    own = replace(merged, variants=variants)
    return replace(diagnostic, message=message_of(own, launch), source=own)


Naming = Callable[[str], str]
"""Maps the document name that a place carries to the real one: a sourced script is named as the script wrote it."""


def named(place: Place, naming: Naming) -> Place:
    """The place with its document's real name."""
    name = naming(place.document)
    return place if name == place.document else place._replace(document=name)


def with_names(diagnostic: Diagnostic, naming: Naming) -> Diagnostic:
    """The diagnostic with real document names in all its places."""
    places = (diagnostic.place, *(r.place for r in diagnostic.related))
    if all(naming(p.document) == p.document for p in places):
        return diagnostic
    related = tuple(Related(named(r.place, naming), r.message) for r in diagnostic.related)
    return replace(diagnostic, place=named(diagnostic.place, naming), related=related)


def _diagnostic(
    launch: Launch, index: int, merged: MergedFinding, binding_of: Callable[[RunResult], Binding]
) -> Diagnostic:
    found, binding = merged.found, binding_of(merged.run)
    variant = launch.variants[merged.run.variant]
    related: list[Related] = []
    if found.said is not None:
        names = (found.said.at, *found.said.related_fields)
        places = [
            (name, place) for name in names if (place := _named_place(name, binding, variant.env, launch)) is not None
        ]
        place = places[0][1] if places else launch.place
        related = [
            Related(p, f"`{_as_written(name, binding, variant.env)}` takes part")
            for name, p in places[1:]
            if p != place
        ]
        related += [r for name in names if name in binding.settings for r in _origins(binding.settings[name])]
    elif found.error is not None:
        error = binding.errors[found.error]
        place = error.place or launch.place
        related = [Related(p, text) for p, text in error.related]
    else:
        note = binding.notes[found.note or 0]
        place = note.place
        related = [Related(p, text) for p, text in note.related]
    if place.document != launch.place.document:
        related.append(Related(launch.place, "the launch that uses this file"))
    return Diagnostic(
        rule=found.rule,
        severity=merged.severity,
        message=message_of(merged, launch),
        place=place,
        key=":".join((found.rule.name, str(index), *found.identity[1:])),
        late=found.rule.late,
        related=tuple(dict.fromkeys(related)),
        unnecessary=merged.without_effect,
        deprecated=found.rule is DEPRECATED_FLAG,
        launch=index,
        source=merged,
    )


def _named_place(name: str, binding: Binding, env: object, launch: Launch) -> Place | None:
    """Where a field or an environment variable is written; None when it is not."""
    if name in binding.settings:
        return setting_place(binding.settings[name])
    word = env.get(name) if hasattr(env, "get") else None
    return word.place if isinstance(word, Word) else None


def _as_written(name: str, binding: Binding, env: object) -> str:
    """A field as its flag is written (`--page-size 64`), an environment variable as it is assigned (`SGLANG_X=1`)."""
    if name in binding.settings:
        spelled = binding.settings[name].spelled
        return spelled if len(spelled) <= MAX_SHOWN else binding.settings[name].spelling
    word = env.get(name) if hasattr(env, "get") else None
    return f"{name}={word.text}" if isinstance(word, Word) and word.text and len(word.text) <= MAX_SHOWN else name


def setting_place(setting: Setting) -> Place:
    """The flag with its values where they stand together in one file, else the flag alone."""
    places = [w.place for w in (setting.flag, *setting.values)]
    together = [p for p in places if p.document == places[0].document and p.start >= places[0].start]
    covered = hull(together)
    return covered if covered.end - covered.start <= MAX_UNDERLINE else places[0]


MAX_SHOWN = 60
"""The longest flag with value (or variable), in characters, that a message shows; of longer ones only the name is shown."""

MAX_UNDERLINE = 400
"""The longest range, in characters, that is underlined; beyond it (the value is far away or very long) only the flag is."""


def _origins(setting: Setting) -> Iterable[Related]:
    """The assignments that a flag's value comes from."""
    for word in setting.values:
        for fragment in word.fragments:
            if fragment.via and fragment.text is not None and fragment.place != word.place:
                yield Related(fragment.place, f"the value {fragment.text!r} is written here")


PLACE = attrgetter("place")


def in_order(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    found = sorted(diagnostics, key=PLACE)
    if not _apart(found):
        found.sort(key=lambda d: (d.place, len(d.rule.code), d.rule.code))
    return tuple(found)


def deduplicated(ordered: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """One diagnostic, the most severe, for a finding that several launches have at the same place, such as an array or a sourced file that
    they share."""
    if _apart(ordered):
        return ordered
    return [d for _, here in groupby(ordered, PLACE) for d in _merged(here)]


def _apart(ordered: Sequence[Diagnostic]) -> bool:
    """Whether each of many diagnostics has a place of its own, as nearly always. This is asked at every key."""
    places = list(map(PLACE, ordered))
    return not any(map(eq, places, islice(places, 1, None)))


def _merged(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    """One diagnostic for each finding at one place."""
    found: dict[tuple[str, str | None], Diagnostic] = {}
    for diagnostic in diagnostics:
        key = (diagnostic.rule.name, None if diagnostic.launch is not None else diagnostic.message)
        first = found.get(key)
        if first is None:
            found[key] = diagnostic
        elif diagnostic.launch is not None:
            worst, _ = sorted((first, diagnostic), key=lambda d: SEVERITIES.index(d.severity))
            also = (*first.also, *(launch for launch in (first.launch, diagnostic.launch) if launch is not None))
            found[key] = replace(worst, also=tuple(dict.fromkeys(a for a in also if a != worst.launch)))
    return found.values()


def deprecations_once(diagnostics: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
    """Each deprecation is reported once for a file, at its first place, with the others as related places."""
    if not any(map(attrgetter("deprecated"), diagnostics)):
        return diagnostics
    kept: list[Diagnostic] = []
    first: dict[tuple[str, str, str], int] = {}
    for diagnostic in diagnostics:
        about = _deprecated(diagnostic) if diagnostic.deprecated else None
        at = first.get(about) if about is not None else None
        if about is None or at is None:
            if about is not None:
                first[about] = len(kept)
            kept.append(diagnostic)
            continue
        told = kept[at]
        related = (*told.related, Related(diagnostic.place, "here, too"))[:MAX_ALSO]
        launches = (*told.also, *(launch for launch in (diagnostic.launch, *diagnostic.also) if launch is not None))
        also = tuple(dict.fromkeys(launch for launch in launches if launch != told.launch))
        kept[at] = replace(told, related=related, also=also)
    return kept


MAX_ALSO = 8
"""How many other places of a deprecation are listed."""


def _deprecated(diagnostic: Diagnostic) -> tuple[str, str, str]:
    """What a deprecation is about: the rule, the file, and the flag or variable."""
    return diagnostic.rule.name, diagnostic.place.document, re.sub(r" \(\d+\)$", "", diagnostic.key.split(":")[2])


SEVERITIES = ("error", "warning", "information", "hint")
"""The most severe first."""
