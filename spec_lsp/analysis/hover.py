"""What is said of the word under a cursor: a flag or its value, a key of a `--config` file, an environment variable, an ignore comment.

Plain Markdown over character offsets; the server turns it into the protocol's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spec_lsp.analysis import memory
from spec_lsp.analysis.explained import variable_facts
from spec_lsp.analysis.hints import any_gpu
from spec_lsp.analysis.ignores import IGNORE
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.messages import message_of
from spec_lsp.analysis.report import Analysis, LaunchReport, Run
from spec_lsp.catalog.binding import Setting
from spec_lsp.catalog.descriptions import describe, describe_value
from spec_lsp.catalog.history import Span, choice_span, flag_span, replacement, variable_span
from spec_lsp.catalog.model import SUPPRESS, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, nearest, releases
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.expressions import expression
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.methods import needed, requirements
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import RULES, Config, Rule
from spec_lsp.syntax.launch import Directive, Document
from spec_lsp.syntax.word import Place, Word

MAX_CHOICES = 24
"""Choices that are listed; of more, none is: completion offers them."""

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
        found = _of_launch(report, offset, name, analysis.document)
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


def _of_launch(report: LaunchReport, offset: int, name: str, document: Document) -> HoverText | None:
    in_words = any(_word_at(variant.words, offset, name) for variant in report.launch.variants)
    in_config = report.launch.program == "config" or name != report.launch.extent.document
    if not in_words and not in_config:
        return _of_variable(report, offset, name)
    run = report.main()
    for setting in run.binding.settings.values():
        for candidate in (setting, *setting.losers):
            place = _place_in(candidate, offset, name)
            if place is not None:
                value = _value_at(candidate, offset, name, document)
                return HoverText(
                    _setting_text(candidate, setting, value, run, report, document), place, candidate.definition.name
                )
    return _of_refused_words(report, run, offset, name) or _of_other_branch(report, run, offset, name)


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


def _of_refused_words(report: LaunchReport, run: Run, offset: int, name: str) -> HoverText | None:
    """A flag's words that SGLang's argparse does not take."""
    for error in run.binding.errors:
        if error.definition is not None and error.place is not None and _holds(error.place, offset, name):
            flag = error.definition
            head, *facts = flag_text(flag, flag.name, run.world.release)
            refused = f"**Here** `{_short(error.text or error.typed)}`, as typed: SGLang does not accept it."
            parts = [head, refused, *facts, _world_text(run.world, any_gpu(report))]
            return HoverText("\n\n".join(parts), error.place, flag.name)
    return None


def _value_at(setting: Setting, offset: int, name: str, document: Document) -> str:
    """The text of the value at the offset; empty on the flag, and where the text is not known."""
    flag = setting.flag.place
    at_flag = _holds(flag, offset, name)
    behind_equals = at_flag and name == document.name and "=" in document.text[flag.start : offset]
    for word in setting.values:
        apart = word.place != flag and _holds(word.place, offset, name)
        if apart or behind_equals or (not at_flag and _word_at((word,), offset, name) is not None):
            if setting.keyword:  # its word is Python, quotes and all
                return setting.value if isinstance(setting.value, str) else ""
            return word.text or ""
    return ""


def _of_other_branch(report: LaunchReport, run: Run, offset: int, name: str) -> HoverText | None:
    """A word of a branch that the likeliest run does not take, or one that SGLang does not know: what the catalog says."""
    for variant in report.launch.variants:
        word = _word_at(variant.words, offset, name)
        spelling = word.known_start.partition("=")[0] if word else ""
        flag = run.binding.catalog.flag(spelling)
        if word is not None and flag is not None:
            return HoverText(
                "\n\n".join([*flag_text(flag, spelling, run.world.release), _world_text(run.world, any_gpu(report))]),
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


def _setting_text(
    shown: Setting, winner: Setting, value: str, run: Run, report: LaunchReport, document: Document
) -> str:
    """A flag that the launch gives, or a value of it: what it is, what it becomes here and why, and what SGLang would choose."""
    flag, release = shown.definition, run.world.release
    about_value = value_text(flag, value, release, shown.spelling) if value and shown is winner else ""
    parts = [about_value] if about_value else [_head(flag, shown.spelling, release)]
    if shown is not winner:
        parts.append(f"Given again later: `{winner.spelled}` is what counts.")
    parts += _resolved_text(winner, run, document)
    parts += _without_text(winner, run, report)
    facts = [] if about_value else list(_facts(flag, shown.spelling))
    if facts:
        parts.append(_fact_list(facts))
    parts.append(_world_text(run.world, any_gpu(report)))
    return "\n\n".join(parts)


def value_text(flag: Flag, value: str, release: Release, spelling: str) -> str:
    """What a value of a flag (or keyword) of this spelling means; empty where nothing is known of it but that it is one."""
    meaning = describe_value(flag.field, value)
    span = choice_span(flag.field, value) if flag.choices else None
    if not meaning and span is None:
        return ""
    since = f" · since {span.since}" if span is not None and not span.from_the_start else ""
    head = f"**`{value}`** · value of `{spelling}`{since}"
    asks = _method_text(value, release) if flag.field == "quantization" else ""
    return "\n\n".join(filter(None, (head, meaning or describe(flag), asks)))


def flag_text(flag: Flag, spelling: str, release: Release) -> Iterator[str]:
    """A flag by itself: what it does and takes."""
    yield _head(flag, spelling, release)
    facts = list(_facts(flag, spelling))
    if facts:
        yield _fact_list(facts)


def _head(flag: Flag, spelling: str, release: Release) -> str:
    others = [s for s in flag.spellings if s != spelling]
    name = f"**`{spelling}`** · {type_of(flag)}" + (f" · also {_listed(others)}" if others else "")
    return "\n\n".join(
        filter(None, (name, describe(flag), _deprecated_text(spelling, release) if flag.deprecated else ""))
    )


def _deprecated_text(name: str, release: Release) -> str:
    instead = replacement(name, release)
    if instead is None:
        return "**Deprecated.**"
    words = f"**Deprecated**: use `{instead.instead}`." if instead.instead else "**Deprecated.**"
    return f"{words} {instead.note}".strip()


def _facts(flag: Flag, spelling: str) -> Iterator[tuple[str, str]]:
    """What there is to say of a flag beside what it does: its choices are all told or not at all."""
    if flag.default != SUPPRESS and flag.takes_value:
        yield "default", _value(flag.default)
    if flag.choices and len(flag.choices) <= MAX_CHOICES:
        yield "choices", ", ".join(_value(c) for c in flag.choices)
    span = flag_span(spelling) or flag_span(flag.name)
    if span is not None and (when := in_words(span)):
        yield "releases", when


def in_words(span: Span) -> str:
    """The releases that have something, as a person says it; empty where all have it."""
    since = "" if span.from_the_start else f"since {span.since}"
    return ", ".join(filter(None, (since, f"gone in {span.until}" if span.until else "")))


_TYPES: Mapping[str | None, str] = {
    None: "text",
    "str": "text",
    "nullable_str": "text",
    "int": "integer",
    "human_readable_int": "integer (64k, 1M)",
    "float": "number",
    "loads": "JSON",
    "json_list_type": "JSON list",
    "parse_cuda_graph_config_arg": "JSON",
    "parse_cuda_graph_backend_arg": "text",
}
"""What argparse's converters take (`Flag.type`), as a person says it."""


def type_of(flag: Flag) -> str:
    """What the flag takes, in a word or two."""
    if not flag.takes_value:
        return "switch"
    one = _TYPES.get(flag.type, "text")
    if isinstance(flag.nargs, int) and flag.nargs > 1:
        return f"{flag.nargs} × {one}"
    many = {"+": "one or more", "*": "any number", "?": "optional"}.get(str(flag.nargs), "")
    return f"{one}, {many}" if many else one


# --- what it becomes ---------------------------------------------------------------------------------------------------


def _resolved_text(setting: Setting, run: Run, document: Document) -> Iterator[str]:
    """The value SGLang will use and, where it is not simply what was typed, why."""
    if run.resolution is None:
        yield "SGLang does not accept these arguments, so nothing is resolved."
        return
    config = run.resolution.config
    typed = _typed(setting)
    refusal = next(
        (f.rule for f in run.resolution.findings if f.rule.severity == "error" and f.said.at == setting.field), None
    )
    if refusal is not None:
        yield f"**Here** {typed}, as typed: SGLang refuses it (`{refusal.name}`)."
        return
    try:
        value = getattr(config, setting.field)
    except NotKnown as lacking:
        shown = _source_of(setting, document) if isinstance(setting.value, Unknown) else typed
        yield f"**Here** {f'{shown}, as typed. ' if shown else ''}{because(lacking, setting)}"
        return
    except AttributeError:
        return
    if isinstance(setting.value, Unknown):
        yield " ".join((f"**Here** {_value(value)}:", *_reasons(config, setting.field)))
    elif _same(value, setting.value):
        yield f"**Here** {_value(value)}, as typed{_model_text(setting, config)}."
    else:
        yield " ".join((f"**Here** {_value(value)} instead of {typed}:", *_reasons(config, setting.field)))
    if setting.field in MEMORY_FIELDS and (taken := list(memory.lines(config))):
        yield "**Memory** " + " ".join(taken)


def _source_of(setting: Setting, document: Document) -> str:
    """A setting's value as the document writes it (`$X`); empty where it stands in another, or not in one piece."""
    places = [word.place for word in setting.values]
    if not places or any(p.document != document.name for p in places) or places != sorted(places):
        return ""
    text = document.text[places[0].start : places[-1].end]
    text = text.partition("=")[2] if places[0] == setting.flag.place else text
    return f"`{_short(text)}`" if text else ""


def _typed(setting: Setting) -> str:
    """A setting's value as it was typed."""
    return "unknown" if isinstance(setting.value, Unknown) else _value(setting.value)


def _same(value: Any, typed: Any) -> bool:
    return type(value) is type(typed) and bool(value == typed)


def _reasons(config: Config, field: str) -> list[str]:
    """Why a field has its value, as whole sentences, each once."""
    return list(dict.fromkeys(sentence(d.step.reason) for d in config.history.get(field, ())))


def sentence(reason: str) -> str:
    """A reason with its full stop."""
    return reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."


def because(lacking: NotKnown, setting: Setting | None = None) -> str:
    """Why nobody can tell a value, in a sentence: what it depends on at last, not the chain to that."""
    if setting is not None and isinstance(setting.value, Unknown):
        return f"Unknown: {sentence(setting.value.reason)}"
    why = lacking.why or f"depends on {lacking.what}"
    subject = "What SGLang makes of it" if setting is not None else "It"
    what = ""
    while link := _LINK.match(why):
        what, why = link["what"], why[link.end() :]
    if not what:
        return f"{subject} {why}." if why.startswith("depends on ") else f"{subject} is unknown: {sentence(why)}"
    named = f"`{what.replace('_', '-')}`" if "_" in what else f"the {what}"
    return f"{subject} depends on {named}: {sentence(why)}"


_LINK = expression(r"depends on (?P<what>[^:]+): ")
"""A link of the chain from a value to what cannot be told at last."""


def _without_text(setting: Setting, run: Run, report: LaunchReport) -> Iterator[str]:
    """What SGLang would choose if the flag were not given; nothing where that is its default."""
    if report.resolve is None or run.resolution is None or setting.definition.required:
        return
    variant = next((n for n, v in enumerate(report.launch.variants) if v is run.variant), None)
    if variant is None:
        return
    settings = {field: one for field, one in run.binding.settings.items() if field != setting.field}
    judged = report.resolve(variant, run.world, replace(run.binding, settings=settings))
    config = judged.resolution.config if judged.resolution is not None else None
    if config is None or not config.known(setting.field):
        return
    chosen = getattr(config, setting.field)
    reasons = _reasons(config, setting.field)
    if reasons and not _same(chosen, setting.definition.default):
        here = run.resolution.config
        same = here.known(setting.field) and _same(chosen, getattr(here, setting.field))
        yield "**Without it** the same." if same else " ".join((f"**Without it** {_value(chosen)}:", *reasons))


def _method_text(name: str, release: Release) -> str:
    """What a quantization method asks of the GPU and of the data type, in this release."""
    asks = requirements(name, release)
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
        return f": a {', '.join(config.model.architectures)}"
    except (NotKnown, AttributeError):
        return ": its config.json is not at hand, so what depends on the architecture is left open"


def _world_text(world: World, any_gpu: str = "") -> str:
    """The release and hardware this was worked out for, and who named them; `any_gpu`: what it is judged for where nobody did."""
    own = f", a build that is nearest to {world.release.stock}" if world.release.local else ""
    release = f"SGLang {world.release}{own} ({_source(world.release_from, 'the newest: nothing names one')})"
    if world.hardware is None:
        return f"*{release}, no GPU*"
    if any_gpu:
        return f"*{release} on {any_gpu}: nothing names it. Values are those on {world.hardware.title}.*"
    return f"*{release} on {world.hardware.title} ({_source(world.hardware_from, 'the only one possible')})*"


def _source(where: str, otherwise: str) -> str:
    return otherwise if where == "not named" else f"from the {where}" if where != "settings" else "from the settings"


# --- the whole configuration -------------------------------------------------------------------------------------------


def resolved_text(report: LaunchReport) -> str:
    """The configuration a launch will run with, as Markdown: the verdict, what was typed, and what SGLang decides, each with why."""
    run = report.main()
    parts = ["# What SGLang will run", _verdict_text(report, run), _world_text(run.world, any_gpu(report))]
    if run.resolution is not None:
        given, decided = typed_rows(run), decided_rows(run)
        if given:
            parts += ["## What you typed", _table(("setting", "value", "why"), _folded(given))]
        if decided:
            parts += ["## What SGLang decides for this launch", _table(("setting", "value", "why"), _folded(decided))]
        parts += (
            f"`{name}`:\n\n```json\n{value[1:-1]}\n```" for name, value, _ in (*given, *decided) if _is_long(value)
        )
        parts.append("*What stays at its default is left out; `spec-lsp resolve --all` shows it.*")
    return "\n\n".join(parts) + "\n"


def _verdict_text(report: LaunchReport, run: Run) -> str:
    """Whether SGLang takes the launch, and what speaks against it."""
    verdict = report.verdict
    if verdict is None:
        return "**This launch could not be judged.**"
    against = [m for m in verdict.findings if m.severity == "error"]
    said = [f"- **{m.found.rule.name}**: {message_of(m, report.launch)}" for m in against]
    if run.resolution is None and not said:
        said = [f"- {error.message}" for error in run.binding.errors if error.fatal]
    outcome = VERDICTS[verdict.outcome]
    if verdict.outcome == "depends":
        outcome = _by_hardware(verdict) or outcome
    elif verdict.outcome in ("accepted", "unknown") and against:
        outcome = "SGLang accepts these arguments, but the server does not start."
    return "\n\n".join(filter(None, (f"**{outcome}**", "\n".join(said))))


def _by_hardware(verdict: Verdict) -> str:
    """On which hardware SGLang takes a launch; empty where that is not all it depends on."""
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


def resolved_rows(run: Run) -> list[tuple[str, str, str]]:
    """The settings that were typed, then those that SGLang decides: each with its value and why, in Markdown."""
    return [*typed_rows(run), *decided_rows(run)]


def typed_rows(run: Run) -> list[tuple[str, str, str]]:
    """The settings that were typed, in that order."""
    if run.resolution is None:
        return []
    known = run.binding.catalog.by_field
    return [_row(n, s, run.resolution.config) for n, s in run.binding.settings.items() if n in known]


def decided_rows(run: Run) -> list[tuple[str, str, str]]:
    """The settings that nobody typed and that SGLang gives another value than their default, by name."""
    if run.resolution is None:
        return []
    config, known = run.resolution.config, run.binding.catalog.by_field
    fields = sorted((config.history.keys() & known.keys()) - run.binding.settings.keys())
    return [_row(name, None, config) for name in fields if not _stays(config, name, known[name])]


def _stays(config: Config, name: str, flag: Flag) -> bool:
    """Whether a field is as if nobody had decided anything: at its default, or off where the default is to decide."""
    if not config.known(name):
        return False
    value = getattr(config, name)
    return _same(value, flag.default) or (flag.default in (None, SUPPRESS) and value in (None, False, "", [], {}))


def _row(name: str, setting: Setting | None, config: Config) -> tuple[str, str, str]:
    typed = f"As typed: `{_short(setting.spelled)}`." if setting else ""
    try:
        value = getattr(config, name)
    except NotKnown as lacking:
        shown = _typed(setting) if setting else "not known"
        return name.replace("_", "-"), shown, because(lacking, setting)
    if setting and not isinstance(setting.value, Unknown) and not _same(value, setting.value):
        typed = f"Instead of {_typed(setting)}, which was typed."
    return name.replace("_", "-"), _value(value), " ".join(filter(None, (typed, *_reasons(config, name))))


def _folded(rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The rows, with what is too long for a cell left to stand below the table."""
    for name, value, why in rows:
        yield name, "see below" if _is_long(value) else value, why


def _is_long(value: str) -> bool:
    return len(value) > MAX_CELL and value.startswith("`{")


MAX_CELL = 80
"""Characters of JSON that stand in a table."""


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
    if isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, (dict, list)) for v in value)
    ):
        written = json.dumps(value, ensure_ascii=False, default=str).replace("`", "'")
        return f"`{written}`"
    if isinstance(value, (list, tuple)):
        return f"`{_short(' '.join(map(str, value)))}`" if value else "none"
    return f"`{_short(str(value))}`" if value != "" else "empty"


def _short(text: str) -> str:
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= 80 else text[:79] + "…"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)
