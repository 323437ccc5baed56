"""The configuration that a launch will run with, and why, as Markdown: what the editors show beside the script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from spec_lsp.analysis.causes import causes
from spec_lsp.analysis.diagnostics import setting_place
from spec_lsp.analysis.findings import overridden
from spec_lsp.analysis.hints import any_gpu
from spec_lsp.analysis.merge import MergedFinding, Verdict
from spec_lsp.analysis.messages import message_of
from spec_lsp.analysis.report import LaunchReport, Run
from spec_lsp.analysis.rules import OVERRIDDEN_VALUE
from spec_lsp.analysis.wording import as_typed, because, reasons_for, same_value, short, value_shown, world_text
from spec_lsp.catalog.binding import Setting
from spec_lsp.catalog.model import SUPPRESS, Flag
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.facts.known import NotKnown
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Config
from spec_lsp.syntax.word import Place

NOTHING: Mapping[str, tuple[str, ...]] = {}


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: its value in Markdown, the reasons in whole sentences, the typed fields that decide it, and the rules that refuse it or
    mention it."""

    field: str
    setting: Setting | None
    value: str
    why: tuple[str, ...]
    decided_by: tuple[str, ...] = ()
    refused_by: tuple[str, ...] = ()
    noted_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.field.replace("_", "-")


Target = str | Place
"""The target of a link: a rule's page, by its name, or a place in a document."""


class Text:
    """Writes text that may contain links: if links are wanted, each leads to `#n`, the n-th of the `targets` (from 0)."""

    def __init__(self, *, links: bool) -> None:
        self.links = links
        self.targets: list[Target] = []

    def rule(self, name: str) -> str:
        return self._link(name, name)

    def word(self, text: str, place: Place | None) -> str:
        return self._link(text, place) if place is not None and place.end > place.start else text

    def _link(self, text: str, target: Target) -> str:
        if not self.links:
            return text
        if target not in self.targets:
            self.targets.append(target)
        return f"[{text}](#{self.targets.index(target)})"


def resolved_text(report: LaunchReport, text: Text | None = None) -> str:
    """The configuration that a launch will run with, as Markdown: the verdict, what was typed, and what SGLang decides, each with
    reasons."""
    run, text = report.main(), text or Text(links=False)
    parts = ["# What SGLang will run", _verdict_text(report, run, text), world_text(run.world, any_gpu(report))]
    if run.resolution is not None:
        why = causes_of(report)
        given, decided = ([cells(row, run, text) for row in rows(run, why)] for rows in (typed_rows, decided_rows))
        if given:
            parts += ["## What you typed", _table(("setting", "value", "why"), folded(given))]
        if decided:
            parts += ["## What SGLang decides for this launch", _table(("setting", "value", "why"), folded(decided))]
        long = ((row.name, row.value) for rows in (typed_rows, decided_rows) for row in rows(run) if is_long(row.value))
        parts += (f"`{name}`:\n\n```json\n{value[1:-1]}\n```" for name, value in long)
        parts.append("*What stays at its default is left out; `spec-lsp resolve --all` shows it.*")
    return "\n\n".join(parts) + "\n"


def causes_of(report: LaunchReport) -> Mapping[str, tuple[str, ...]]:
    """The typed fields that decide each field of the likeliest run."""
    run = report.main()
    variant = next((n for n, v in enumerate(report.launch.variants) if v is run.variant), None)
    if report.resolve is None or run.resolution is None or variant is None:
        return {}
    return causes(run.binding, run.resolution.config, partial(report.resolve, variant, run.world))


def _verdict_text(report: LaunchReport, run: Run, text: Text) -> str:
    """Whether SGLang accepts the launch, and the findings against it."""
    verdict = report.verdict
    if verdict is None:
        return "**This launch could not be judged.**"
    against = [m for m in verdict.findings if m.severity == "error"]
    said = [f"- **{text.rule(m.found.rule.name)}**{_at(m, run, text)}: {message_of(m, report.launch)}" for m in against]
    if run.resolution is None and not said:
        said = [f"- {error.message}" for error in run.binding.errors if error.fatal]
    outcome = VERDICTS[verdict.outcome]
    if verdict.outcome == "depends":
        outcome = _by_hardware(verdict) or outcome
    elif verdict.outcome in ("accepted", "unknown") and against:
        outcome = "SGLang accepts these arguments, but the server does not start."
    return "\n\n".join(filter(None, (f"**{outcome}**", "\n".join(said))))


def _at(merged: MergedFinding, run: Run, text: Text) -> str:
    """Where a finding is written, in a text with links."""
    found = merged.found
    setting = run.binding.settings.get(found.said.at) if found.said is not None else None
    if not text.links:
        return ""
    if setting is not None:
        return f" at {text.word(f'`{short(setting.spelled)}`', setting_place(setting))}"
    typed = merged.run.binding.errors[found.error].typed if found.error is not None else None
    error = next((e for e in run.binding.errors if typed is not None and e.typed == typed), None)
    return f" at {text.word(f'`{short(error.typed)}`', error.place)}" if error is not None else ""


def _by_hardware(verdict: Verdict) -> str:
    """The hardware on which SGLang accepts a launch; empty if that does not depend on the hardware alone."""
    taken: dict[str, set[bool]] = {}
    for judged in verdict.runs:
        taken.setdefault(judged.world.hardware.title if judged.world.hardware else "no GPU", set()).add(
            not judged.refused
        )
    takes, refuses = ([name for name, outcomes in taken.items() if outcomes == {one}] for one in (True, False))
    if not takes or not refuses or len(takes) + len(refuses) < len(taken):
        return ""
    return f"SGLang accepts this launch on {_and(takes)}, not on {_and(refuses)}."


def _and(titles: Sequence[str]) -> str:
    """Hardware by name, without the devices that a family's title lists."""
    *names, last = (title.partition(" (")[0] for title in titles)
    return f"{', '.join(names)} and {last}" if names else last


VERDICTS = {
    "accepted": "SGLang accepts this launch.",
    "refused": "SGLang refuses this launch.",
    "bad-arguments": "SGLang does not accept these arguments.",
    "depends": "It depends on the release, the hardware or the branch whether SGLang accepts this launch.",
    "unknown": "Nothing that is known speaks against this launch.",
}


def typed_rows(run: Run, why: Mapping[str, tuple[str, ...]] = NOTHING) -> list[Row]:
    """The settings that were typed, in that order. `why`: the typed fields that decide each field (see causes.py)."""
    if run.resolution is None:
        return []
    known = run.binding.catalog.by_field
    return [_row(name, setting, run, why) for name, setting in run.binding.settings.items() if name in known]


def decided_rows(run: Run, why: Mapping[str, tuple[str, ...]] = NOTHING) -> list[Row]:
    """The settings that were not typed and that SGLang sets to another value than their default, by name."""
    if run.resolution is None:
        return []
    config, known = run.resolution.config, run.binding.catalog.by_field
    fields = sorted((config.history.keys() & known.keys()) - run.binding.settings.keys())
    return [_row(name, None, run, why) for name in fields if not _stays(config, name, known[name])]


def _stays(config: Config, name: str, flag: Flag) -> bool:
    """Whether a field counts as undecided: at its default, or off where the default lets SGLang decide."""
    if not config.known(name):
        return False
    value = getattr(config, name)
    return same_value(value, flag.default) or (flag.default in (None, SUPPRESS) and value in (None, False, "", [], {}))


def _row(name: str, setting: Setting | None, run: Run, why: Mapping[str, tuple[str, ...]]) -> Row:
    assert run.resolution is not None
    refused, noted = rules_of(name, run)
    value, reasons = _value(name, setting, run.resolution.config, refused=bool(refused))
    return Row(name, setting, value, reasons, why.get(name, ()), refused, noted)


def rules_of(field: str, run: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rules that refuse a field, and those that report something else about it."""
    assert run.resolution is not None
    said = [(f.rule, f.said.at) for f in run.resolution.findings]
    if field in run.binding.settings:
        said += [(OVERRIDDEN_VALUE, changed.at) for changed in overridden(run.binding, run.resolution)]
    rules = dict.fromkeys(rule for rule, at in said if at == field)
    refuses = tuple(rule.name for rule in rules if rule.severity == "error")
    return refuses, tuple(rule.name for rule in rules if rule.name not in refuses)


def _value(name: str, setting: Setting | None, config: Config, *, refused: bool) -> tuple[str, tuple[str, ...]]:
    """A field's value, and why it has it."""
    typed = f"As typed: `{short(setting.spelled)}`." if setting else ""
    try:
        value = getattr(config, name)
    except NotKnown as lacking:
        shown = as_typed(setting) if setting else "not known"
        return shown, tuple(filter(None, (typed,))) if refused else (because(lacking, setting),)
    if setting and not isinstance(setting.value, Unknown) and not same_value(value, setting.value):
        typed = f"Instead of {as_typed(setting)}, which was typed."
    return value_shown(value), tuple(filter(None, (typed, *reasons_for(config, name))))


def cells(row: Row, run: Run, text: Text) -> tuple[str, str, str]:
    """A row of the table, with links: from the setting to its word, from a refusal to its rule, from a decision to the words that cause
    it."""
    place = setting_place(row.setting) if row.setting is not None else None
    refused = [f"SGLang refuses it ({text.rule(rule)})." for rule in row.refused_by]
    noted = [f"See {text.rule(rule)}." for rule in row.noted_by]
    return text.word(row.name, place), row.value, " ".join((*row.why, *_deciding(row, run, text), *refused, *noted))


def _deciding(row: Row, run: Run, text: Text) -> Iterator[str]:
    """The words that decide the value, if it is not simply the typed one."""
    if (row.setting is not None and len(row.why) == 1) or not row.decided_by:
        return
    settings = [run.binding.settings[name] for name in row.decided_by]
    words = [text.word(f"`{short(setting.spelled)}`", setting_place(setting)) for setting in settings]
    *most, last = words
    yield f"Follows from {' and '.join(filter(None, (', '.join(most), last)))}."


def folded(rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The rows; what is too long for a cell is moved below the table."""
    for name, value, why in rows:
        yield name, "see below" if is_long(value) else value, why


def is_long(value: str) -> bool:
    return len(value) > MAX_CELL and value.startswith("`{")


MAX_CELL = 80
"""The longest JSON in a table cell, in characters."""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that is also readable as plain text: each column but the last is as wide as its widest usual cell."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    widths = [
        max((len(row[column]) for row in (head, *cells) if len(row[column]) <= MAX_COLUMN), default=0)
        for column in range(len(head) - 1)
    ]

    def line(row: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join("-" * (width + 2) for width in (*widths, 3)) + "|"
    return "\n".join([line(head), rule, *map(line, cells)])


MAX_COLUMN = 40
"""Cells longer than this, in characters, do not widen their column."""
