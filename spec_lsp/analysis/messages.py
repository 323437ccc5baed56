"""The sentences that a reader sees for a merged finding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spec_lsp.analysis.merge import MergedFinding
from spec_lsp.analysis.worlds import NOT_NAMED
from spec_lsp.catalog.history import choice_span, flag_span
from spec_lsp.catalog.suggest import suggest_value
from spec_lsp.syntax.launch import FLAG_PREFIXES, Choice, Launch
from spec_lsp.syntax.word import Place

MAX_CHOICES = 3
"""The number of choices that a message names even if fewer would tell the variants apart."""


def message_of(merged: MergedFinding, launch: Launch) -> str:
    """What the rule says about this launch, and where it holds if not everywhere."""
    found, binding = merged.found, merged.run.binding
    if found.said is not None:
        message = found.said.message
    elif found.error is not None:
        message = binding.errors[found.error].message
    else:
        message = binding.notes[found.note or 0].message
    if found.said is not None and found.said.choices:
        message += _did_you_mean(merged)
    if merged.stock:
        message = of_stock(message)
    if found.rule.late and "weights" not in message:
        message += " The server finds out only after loading the weights."
    message += _named_by(merged)
    if merged.without_effect:
        message += " Without the flag it is the same."
    where = " ".join(part for part in (merged.where, when_of(merged.variants, launch, _places(merged))) if part)
    message = f"{message} This holds {where}." if where else message
    prefix = FLAG_PREFIXES.get(launch.program)
    return message.replace("`--", f"`{prefix}") if prefix else message


def _did_you_mean(merged: MergedFinding) -> str:
    """The valid value that was probably meant."""
    said = merged.found.said
    setting = merged.run.binding.settings.get(said.at) if said is not None else None
    near = (
        suggest_value(str(setting.value), said.choices, said.at) if said is not None and setting is not None else None
    )
    return f" Did you mean `{near}`?" if near is not None else ""


def of_stock(message: str) -> str:
    """The sentence about SGLang as released: "SGLang 0.5.23 has no flag" becomes "Stock SGLang 0.5.23 has no flag"."""
    said = re.sub(r"SGLang(?= \d)", "stock SGLang", message, count=1)
    return said[:1].upper() + said[1:]


def _named_by(merged: MergedFinding) -> str:
    """Where the release is named, if another release accepts what is typed and the file names none in a comment to us."""
    found, world = merged.found, merged.run.world
    if found.error is None or merged.where or world.release_from in (NOT_NAMED, "directive", "asked for"):
        return ""
    error = merged.run.binding.errors[found.error]
    known = flag_span(error.typed) if error.kind in ("unknown-flag", "ambiguous-prefix") else None
    if error.kind == "invalid-choice" and error.definition is not None:
        known = choice_span(error.definition.field, error.text)
    return f" This launch runs {world.release} ({world.release_from})." if known is not None else ""


def _places(merged: MergedFinding) -> list[Place]:
    """Where the words are written that a finding is about."""
    found, binding = merged.found, merged.run.binding
    if found.said is None:
        place = binding.errors[found.error].place if found.error is not None else None
        return [place] if place is not None else []
    settings = [
        binding.settings[name] for name in (found.said.at, *found.said.related_fields) if name in binding.settings
    ]
    return [f.place for s in settings for word in (s.flag, *s.values) for f in word.fragments]


def when_of(variants: tuple[int, ...], launch: Launch, places: Sequence[Place] = ()) -> str:
    """The choices that all of these variants share but not every variant: "when $1 is big"; empty for all variants.

    If only some of very many ways are looked at, variants may share others by chance; then only the choices count that bring in the words
    at `places`.
    """
    if not variants:
        return ""
    every = [frozenset(v.choices) for v in launch.variants]
    common = _shared([every[i] for i in variants]) - _shared(every)
    if launch.ways != "all":
        common = frozenset().union(*(_bringing(place, launch) for place in places)) & common or common
    telling = [c for c in launch.variants[variants[0]].choices if c in common]
    if len(telling) > MAX_CHOICES:
        telling = _fewest(telling, [choices for i, choices in enumerate(every) if i not in variants])
    taken = [c.taken for c in telling]
    return f"when {' and '.join(taken)}" if taken else "in some branches of the script"


def _bringing(place: Place, launch: Launch) -> frozenset[Choice]:
    """The choices shared by all variants that have a word from one of the places, but not by every variant."""
    having = [
        frozenset(v.choices)
        for v in launch.variants
        if any(place.contains(f.place) for w in v.words for f in w.fragments)
    ]
    return _shared(having) - _shared([frozenset(v.choices) for v in launch.variants]) if having else frozenset()


def _fewest(choices: list[Choice], others: list[frozenset[Choice]]) -> list[Choice]:
    """Enough choices to distinguish these variants from the others, the most distinguishing first, of equal ones the last: an `elif`
    tells more than that those above it do not hold."""
    found: list[Choice] = []
    while others and (left := [c for c in reversed(choices) if c not in found]):
        best = max(left, key=lambda c: sum(c not in other for other in others))
        if all(best in other for other in others):
            break
        found.append(best)
        others = [other for other in others if best in other]
    return [c for c in choices if c in found]


def _shared(sets: list[frozenset[Choice]]) -> frozenset[Choice]:
    return sets[0].intersection(*sets[1:])
