"""What is said of the word under a cursor: a flag or its value, a key of a `--config` file, an environment variable, an ignore comment.

Plain Markdown over character offsets; the server turns it into the protocol's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from spec_lsp.analysis import memory
from spec_lsp.analysis.explained import variable_facts
from spec_lsp.analysis.ignores import IGNORE
from spec_lsp.analysis.report import Analysis, LaunchReport, Run, World
from spec_lsp.catalog.binding import Setting
from spec_lsp.catalog.history import flag_span, replacement, variable_span
from spec_lsp.catalog.model import SUPPRESS, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, nearest, releases
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.methods import NOTHING_KNOWN, needed, requirements
from spec_lsp.resolution.engine import RULES, Config, Rule
from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place, Word

MAX_CHOICES = 24
"""Choices that are listed one by one; of more, these and how many there are."""

MAX_COLUMN = 40
"""Characters of a table's cell beyond which others are not padded to its width."""


@dataclass(frozen=True, slots=True)
class HoverText:
    """Markdown, and the characters it is about. `flag` is the flag it is about, as the catalog spells it; empty for anything else."""

    markdown: str
    place: Place
    flag: str = ""


def hover(analysis: Analysis, offset: int, name: str) -> HoverText | None:
    """What is said of the character at `offset` of document `name`; None when nothing is."""
    for directive in analysis.document.directives:
        if _holds(directive.place, offset, name):
            return _of_directive(directive, offset, analysis.document.text)
    for report in analysis.launches:
        found = _of_launch(report, offset, name)
        if found is not None:
            return found
    return None


def with_help(found: HoverText, help_text: str | None) -> HoverText:
    """The hover with what the reader's own SGLang says of the flag below it."""
    if not help_text:
        return found
    return replace(found, markdown=f"{found.markdown}\n\n---\n\nYour installed SGLang says:\n\n> {help_text}")


def _holds(place: Place, offset: int, name: str) -> bool:
    return place.document == name and place.start <= offset < max(place.end, place.start + 1)


# --- which word --------------------------------------------------------------------------------------------------------


def _of_launch(report: LaunchReport, offset: int, name: str) -> HoverText | None:
    in_words = any(_word_at(variant.words, offset, name) for variant in report.launch.variants)
    in_config = report.launch.program == "config" or name != report.launch.extent.document
    if not in_words and not in_config:
        return _of_variable(report, offset, name)
    run = report.main()
    for setting in run.binding.settings.values():
        for candidate in (setting, *setting.losers):
            place = _place_in(candidate, offset, name)
            if place is not None:
                return HoverText(_setting_text(candidate, setting, run), place, candidate.definition.name)
    return _of_other_branch(report, run, offset, name)


def _word_at(words: Iterable[Word], offset: int, name: str) -> Word | None:
    """The word that stands at the offset, or part of which is written there."""
    for word in words:
        if _holds(word.place, offset, name) or any(_holds(f.place, offset, name) for f in word.fragments):
            return word
    return None


def _place_in(setting: Setting, offset: int, name: str) -> Place | None:
    """The part of a setting that holds the offset: its flag, a value, or the assignment that a value comes from."""
    for word in (setting.flag, *setting.values):
        if _holds(word.place, offset, name):
            return word.place
        for fragment in word.fragments:
            for place in (fragment.place, *fragment.via):
                if _holds(place, offset, name):
                    return place
    return None


def _of_other_branch(report: LaunchReport, run: Run, offset: int, name: str) -> HoverText | None:
    """A word of a branch that the likeliest run does not take, or one that SGLang does not know: what the catalog says."""
    for variant in report.launch.variants:
        word = _word_at(variant.words, offset, name)
        spelling = word.known_start.partition("=")[0] if word else ""
        flag = run.binding.catalog.flag(spelling)
        if word is not None and flag is not None:
            return HoverText(
                "\n\n".join([*flag_text(flag, spelling, run.world.release), _world_text(run.world)]),
                word.place,
                flag.name,
            )
        if word is not None and spelling.startswith("--"):
            return _of_unknown_flag(spelling, word, run.world.release)
    return None


def _of_unknown_flag(spelling: str, word: Word, release: Release) -> HoverText | None:
    """A flag of other releases only."""
    span = flag_span(spelling)
    if span is None:
        return None
    known = load(span.since if span.until is None else _last_before(span.until))
    flag = known.flag(spelling)
    if flag is None:
        return None
    return HoverText(
        "\n\n".join([f"**SGLang {release} has no `{spelling}`.**", *flag_text(flag, spelling, release)]), word.place
    )


def _last_before(release: Release) -> Release:
    return [r for r in releases() if r < release][-1]


# --- a flag ------------------------------------------------------------------------------------------------------------


def _setting_text(shown: Setting, winner: Setting, run: Run) -> str:
    """A flag that the launch gives: what it is, what it becomes here and why."""
    parts = list(flag_text(shown.definition, shown.spelling, run.world.release))
    if shown is not winner:
        parts.append(f"Given again later: `{winner.spelled}` is what counts.")
    parts += _resolved_text(winner, run)
    parts.append(_world_text(run.world))
    return "\n\n".join(parts)


def flag_text(flag: Flag, spelling: str, release: Release) -> Iterator[str]:
    others = [s for s in flag.spellings if s != spelling]
    yield f"**`{spelling}`**" + (f" (also {_listed(others)})" if others else "")
    described = describe(flag)
    if described:
        yield described
    if flag.deprecated:
        yield _deprecated_text(spelling, release)
    yield _fact_list(_facts(flag, spelling))


def _deprecated_text(name: str, release: Release) -> str:
    instead = replacement(name, release)
    if instead is None:
        return "**Deprecated.**"
    words = f"**Deprecated**: use `{instead.instead}`." if instead.instead else "**Deprecated.**"
    return f"{words} {instead.note}".strip()


def _facts(flag: Flag, spelling: str) -> Iterator[tuple[str, str]]:
    yield "type", type_of(flag)
    if flag.default != SUPPRESS and flag.takes_value:
        yield "default", "unset (SGLang decides)" if flag.default is None else _value(flag.default)
    if flag.choices:
        shown = ", ".join(_value(c) for c in flag.choices[:MAX_CHOICES])
        more = len(flag.choices) - MAX_CHOICES
        yield "choices", shown + (f" and {more} more" if more > 0 else "")
    span = flag_span(spelling) or flag_span(flag.name)
    if span is not None:
        yield "releases", str(span)


def type_of(flag: Flag) -> str:
    """What the flag takes, in a word or two."""
    if not flag.takes_value:
        return "switch"
    base = {None: "text", "str": "text", "int": "integer", "float": "number", "loads": "JSON"}.get(
        flag.type, flag.type or "text"
    )
    many = {"+": "one or more", "*": "any number of", "?": "optional"}.get(str(flag.nargs), "")
    return (
        f"{many} {base}".strip()
        if many
        else f"{flag.nargs} × {base}"
        if isinstance(flag.nargs, int) and flag.nargs > 1
        else base
    )


def describe(flag: Flag) -> str:
    """Our own description of a flag, in one or two sentences; empty where there is none."""
    try:
        described: Any = import_module("spec_lsp.catalog.descriptions")
    except ModuleNotFoundError:
        return ""
    return str(described.describe(flag.dest) or "")


# --- what it becomes ---------------------------------------------------------------------------------------------------


def _resolved_text(setting: Setting, run: Run) -> Iterator[str]:
    """The value SGLang will use, and the chain of reasons where it is not simply what was typed."""
    if run.resolution is None:
        yield "SGLang does not take these words, so nothing is resolved."
        return
    config = run.resolution.config
    try:
        value = getattr(config, setting.field)
    except NotKnown as lacking:
        yield f"**Resolved** not known: {lacking.why or f'depends on {lacking.what}'}"
        return
    except AttributeError:
        return
    yield f"**Resolved** {_value(value)}" + _model_text(setting, config)
    chain = list(_chain(setting, config))
    if len(chain) > 1:
        yield "\n".join(f"{i}. {line}" for i, line in enumerate(chain, 1))
    if setting.field == "quantization" and (asks := _method_text(value, config)):
        yield asks
    if setting.field in MEMORY_FIELDS and (taken := list(memory.lines(config))):
        yield "**Memory** " + " ".join(taken)


def _method_text(name: object, config: Config) -> str:
    """What a quantization method asks of the GPU and of the data type, in this release."""
    asks = requirements(name, config.release) if isinstance(name, str) else NOTHING_KNOWN
    parts = []
    if asks.capability:
        parts.append(f"NVIDIA GPUs from {needed(asks.capability)} on")
    if asks.dtypes:
        parts.append(f"{_listed(asks.dtypes)} activations")
    return f"**Runs on** {', with '.join(parts)}." if parts else ""


MEMORY_FIELDS = ("model_path", "tp_size", "mem_fraction_static")
"""Flags whose hover shows what the launch takes of a GPU's memory."""


def _model_text(setting: Setting, config: Config) -> str:
    """What is known of the model that a path names."""
    if setting.field != "model_path":
        return ""
    try:
        return f" · {', '.join(config.model.architectures)}"
    except (NotKnown, AttributeError):
        return " · its config.json is not at hand, so what depends on the architecture is left open"


def _chain(setting: Setting, config: Config) -> Iterator[str]:
    typed = "not known: " + setting.value.reason if isinstance(setting.value, Unknown) else _value(setting.value)
    yield f"{typed}: as typed (`{_short(setting.spelled)}`)"
    for decision in config.history.get(setting.field, ()):
        yield f"{_value(decision.value)}: {decision.step.reason}"


def _world_text(world: World) -> str:
    """The release and hardware this was worked out for, and who named them."""
    release = f"SGLang {world.release} ({_source(world.release_from, 'the newest: nothing names one')})"
    if world.hardware is None:
        return f"*{release}, no GPU*"
    return f"*{release} on {world.hardware.title} ({_source(world.hardware_from, 'taken as an example: nothing names the GPU')})*"


def _source(where: str, otherwise: str) -> str:
    return otherwise if where == "not named" else f"from the {where}" if where != "settings" else "from the settings"


# --- the whole configuration -------------------------------------------------------------------------------------------


def resolved_text(report: LaunchReport) -> str:
    """The configuration a launch will run with, as Markdown: every field that was typed or that SGLang decides, and why."""
    run = report.main()
    head = f"# What SGLang will run\n\n{_world_text(run.world)}"
    if run.resolution is None:
        problems = "\n".join(f"- {error.message}" for error in run.binding.errors if error.fatal)
        return f"{head}\n\nNothing: SGLang does not take these words.\n\n{problems}\n"
    rows = resolved_rows(run)
    refused = [f"- **{f.rule.name}**: {f.said.message}" for f in run.resolution.findings if f.rule.severity == "error"]
    parts = [head, *(["SGLang refuses it:\n\n" + "\n".join(refused)] if refused else [])]
    return "\n\n".join([*parts, _table(("setting", "value", "why"), rows)]) + "\n"


def resolved_rows(run: Run) -> list[tuple[str, str, str]]:
    """The fields that were typed or that SGLang decides, by name: each with its value and why, in Markdown."""
    if run.resolution is None:
        return []
    config = run.resolution.config
    fields = sorted({*run.binding.settings, *config.history} & set(run.binding.catalog.by_field))
    return [_row(name, run.binding.settings.get(name), config) for name in fields]


def _row(name: str, setting: Setting | None, config: Config) -> tuple[str, str, str]:
    decisions = config.history.get(name, ())
    try:
        value = _value(getattr(config, name))
    except NotKnown as lacking:
        value = "not known"
        why = lacking.why or f"depends on {lacking.what}"
    else:
        typed = f"`{_short(setting.spelled)}`" if setting else ""
        why = "; ".join(filter(None, (typed, " ".join(d.step.reason for d in decisions))))
    return name.replace("_", "-"), value, why


# --- environment variables ---------------------------------------------------------------------------------------------


def _of_variable(report: LaunchReport, offset: int, name: str) -> HoverText | None:
    for variant in report.launch.variants:
        for variable, word in variant.env.items():
            if _word_at((word,), offset, name) is not None:
                text = _variable_text(variable, report.worlds)
                return HoverText(text, word.place) if text else None
    return None


def _variable_text(name: str, worlds: Sequence[World]) -> str:
    release = nearest(worlds[0].release) if worlds else releases()[-1]
    span = variable_span(name)
    if span is None:
        return ""
    known = environment(release).get(name)
    parts = [f"**`{name}`** · environment variable"]
    if known is None:
        gone = f"removed in {span.until}" if span.until and release >= span.until else f"read since {span.since}"
        parts.append(f"SGLang {release} does not read it ({gone}).")
    elif known.deprecated:
        parts.append(_deprecated_text(name, release))
    parts.append(_fact_list(variable_facts(known, span)))
    return "\n\n".join(parts)


# --- comments ----------------------------------------------------------------------------------------------------------


def _of_directive(directive: Directive, offset: int, text: str) -> HoverText | None:
    """The rule under the cursor in `# spec-lsp: ignore[…]`, or all it names."""
    match = IGNORE.match(directive.text)
    if match is None:
        return None
    names = [n.strip() for n in match["rules"].split(",")]
    start = text.find(directive.text, directive.place.start, directive.place.end)
    under = [n for n in names if start >= 0 and _covers(text, n, start, directive.place.end, offset)]
    by_code = {rule.code: rule for rule in RULES.values()}
    rules = [r for n in under or names if (r := RULES.get(n) or by_code.get(n)) is not None]
    return HoverText("\n\n---\n\n".join(map(rule_text, rules)), directive.place) if rules else None


def _covers(text: str, name: str, start: int, end: int, offset: int) -> bool:
    at = text.find(name, start, end)
    return at >= 0 and at <= offset < at + len(name)


def rule_text(rule: Rule) -> str:
    """A rule in Markdown: what it says, why, and in which releases."""
    head = f"**`{rule.name}`** · {rule.code} · {'late ' if rule.late else ''}{rule.severity}"
    parts = [head, rule.summary, rule.explanation]
    if rule.since or rule.until:
        parts.append(
            "*"
            + " ".join(filter(None, (rule.since and f"since {rule.since}", rule.until and f"until {rule.until}")))
            + "*"
        )
    return "\n\n".join(filter(None, parts))


# --- words -------------------------------------------------------------------------------------------------------------


def _fact_list(facts: Iterable[tuple[str, str]]) -> str:
    """A list, no table: terminal editors show Markdown's text as it is, and a table without a head is noise there."""
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that is one in the text too: the columns but the last are as wide as their widest usual cell."""
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


def _value(value: Any) -> str:
    """A value as a person writes it."""
    if value is True or value is False:
        return "on" if value else "off"
    if value is None:
        return "unset"
    if isinstance(value, (list, tuple)):
        return f"`{_short(' '.join(map(str, value)))}`" if value else "none"
    return f"`{_short(str(value))}`" if value != "" else "empty"


def _short(text: str) -> str:
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= 80 else text[:79] + "…"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)
