"""What a hover shows for the word under the cursor: a flag or its value, a key of a `--config` file, an environment variable, an ignore
comment.

Plain Markdown over character offsets; the server converts it to protocol types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from spec_lsp.analysis import memory
from spec_lsp.analysis.explained import variable_facts
from spec_lsp.analysis.hints import any_gpu
from spec_lsp.analysis.ignores import IGNORE
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.report import Analysis, LaunchReport, Run
from spec_lsp.analysis.run import without
from spec_lsp.analysis.wording import as_typed, because, reasons_for, same_value, short, value_shown, world_text
from spec_lsp.catalog.binding import Setting
from spec_lsp.catalog.descriptions import describe, describe_value
from spec_lsp.catalog.history import Span, choice_span, flag_span, replacement, variable_span
from spec_lsp.catalog.model import SUPPRESS, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, nearest, releases
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.methods import needed, requirements
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import RULES, Config, Rule
from spec_lsp.syntax.launch import Directive, Document
from spec_lsp.syntax.word import Place, Word

MAX_CHOICES = 24
"""The most choices that are listed. If there are more, none is listed, as completion offers them."""


@dataclass(frozen=True, slots=True)
class HoverText:
    """Markdown, and the characters that it describes. `flag` is the flag in question, as the catalog spells it; empty for anything else."""

    markdown: str
    place: Place
    flag: str = ""


def hover(analysis: Analysis, offset: int, name: str) -> HoverText | None:
    """The hover at character `offset` of document `name`; None when there is nothing to show."""
    for directive in analysis.document.directives:
        if _holds(directive.place, offset, name):
            return _of_directive(directive, offset, analysis.document.text)
    for report in analysis.launches:
        found = _of_launch(report, offset, name, analysis.document)
        if found is not None:
            return found
    return None


def with_help(found: HoverText, help_text: str | None) -> HoverText:
    """The hover with the flag's help text from the reader's own SGLang below it."""
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
    """The word that is written at the offset, completely or in part."""
    for word in words:
        if _holds(word.place, offset, name) or any(_holds(f.place, offset, name) for f in word.fragments):
            return word
    return None


def _place_in(setting: Setting, offset: int, name: str) -> Place | None:
    """The part of a setting at the offset: its flag, a value, or the assignment that a value comes from."""
    for word in (setting.flag, *setting.values):
        if _holds(word.place, offset, name):
            return word.place
        for fragment in word.fragments:
            for place in (fragment.place, *fragment.via):
                if _holds(place, offset, name):
                    return place
    return None


def _of_refused_words(report: LaunchReport, run: Run, offset: int, name: str) -> HoverText | None:
    """The words of a flag that SGLang's argparse does not accept."""
    for error in run.binding.errors:
        if error.definition is not None and error.place is not None and _holds(error.place, offset, name):
            flag = error.definition
            head, *facts = flag_text(flag, flag.name, run.world.release)
            refused = f"**Here** `{short(error.text or error.typed)}`, as typed: SGLang does not accept it."
            parts = [head, refused, *facts, world_text(run.world, any_gpu(report))]
            return HoverText("\n\n".join(parts), error.place, flag.name)
    return None


def _value_at(setting: Setting, offset: int, name: str, document: Document) -> str:
    """The text of the value at the offset; empty on the flag itself, and where the text is unknown."""
    flag = setting.flag.place
    at_flag = _holds(flag, offset, name)
    behind_equals = at_flag and name == document.name and "=" in document.text[flag.start : offset]
    for word in setting.values:
        apart = word.place != flag and _holds(word.place, offset, name)
        if apart or behind_equals or (not at_flag and _word_at((word,), offset, name) is not None):
            if setting.keyword:  # the word is a Python expression, quotes included
                return setting.value if isinstance(setting.value, str) else ""
            return word.text or ""
    return ""


def _of_other_branch(report: LaunchReport, run: Run, offset: int, name: str) -> HoverText | None:
    """A word of a branch that the likeliest run does not take, or one unknown to SGLang: what the catalog says about it."""
    for variant in report.launch.variants:
        word = _word_at(variant.words, offset, name)
        spelling = word.known_start.partition("=")[0] if word else ""
        flag = run.binding.catalog.flag(spelling)
        if word is not None and flag is not None:
            return HoverText(
                "\n\n".join([*flag_text(flag, spelling, run.world.release), world_text(run.world, any_gpu(report))]),
                word.place,
                flag.name,
            )
        if word is not None and spelling.startswith("--"):
            return _of_unknown_flag(spelling, word, run.world.release)
    return None


def _of_unknown_flag(spelling: str, word: Word, release: Release) -> HoverText | None:
    """A flag that only other releases have."""
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
    parts.append(world_text(run.world, any_gpu(report)))
    return "\n\n".join(parts)


def value_text(flag: Flag, value: str, release: Release, spelling: str) -> str:
    """What a value of a flag (or keyword) means; empty where nothing is known of it beyond being a choice."""
    meaning = describe_value(flag.field, value)
    span = choice_span(flag.field, value) if flag.choices else None
    if not meaning and span is None:
        return ""
    since = f" · since {span.since}" if span is not None and not span.from_the_start else ""
    head = f"**`{value}`** · value of `{spelling}`{since}"
    asks = _method_text(value, release) if flag.field == "quantization" else ""
    return "\n\n".join(filter(None, (head, meaning or describe(flag), asks)))


def flag_text(flag: Flag, spelling: str, release: Release) -> Iterator[str]:
    """A flag by itself: what it does and which values it accepts."""
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
    """Facts about a flag besides its description. Its choices are listed completely or not at all."""
    if flag.default != SUPPRESS and flag.takes_value:
        yield "default", value_shown(flag.default)
    if flag.choices and len(flag.choices) <= MAX_CHOICES:
        yield "choices", ", ".join(value_shown(c) for c in flag.choices)
    span = flag_span(spelling) or flag_span(flag.name)
    if span is not None and (when := in_words(span)):
        yield "releases", when


def in_words(span: Span) -> str:
    """The releases that have something, in words; empty if all have it."""
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
"""The input of argparse's converters (`Flag.type`) in words."""


def type_of(flag: Flag) -> str:
    """The type of the flag's value in a word or two."""
    if not flag.takes_value:
        return "switch"
    one = _TYPES.get(flag.type, "text")
    if isinstance(flag.nargs, int) and flag.nargs > 1:
        return f"{flag.nargs} × {one}"
    many = {"+": "one or more", "*": "any number", "?": "optional"}.get(str(flag.nargs), "")
    return f"{one}, {many}" if many else one


# --- what it becomes ---------------------------------------------------------------------------------------------------


def _resolved_text(setting: Setting, run: Run, document: Document) -> Iterator[str]:
    """The value that SGLang will use and, if it is not simply the typed one, why."""
    if run.resolution is None:
        yield "SGLang does not accept these arguments, so nothing is resolved."
        return
    config = run.resolution.config
    typed = as_typed(setting)
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
        yield " ".join((f"**Here** {value_shown(value)}:", *reasons_for(config, setting.field)))
    elif same_value(value, setting.value):
        yield f"**Here** {value_shown(value)}, as typed{_model_text(setting, config)}."
    else:
        yield " ".join((f"**Here** {value_shown(value)} instead of {typed}:", *reasons_for(config, setting.field)))
    if setting.field in MEMORY_FIELDS and (taken := list(memory.lines(config))):
        yield "**Memory** " + " ".join(taken)


def _source_of(setting: Setting, document: Document) -> str:
    """A setting's value as the document writes it (`$X`); empty where it is in another document, or not in one piece."""
    places = [word.place for word in setting.values]
    if not places or any(p.document != document.name for p in places) or places != sorted(places):
        return ""
    text = document.text[places[0].start : places[-1].end]
    text = text.partition("=")[2] if places[0] == setting.flag.place else text
    return f"`{short(text)}`" if text else ""


def _without_text(setting: Setting, run: Run, report: LaunchReport) -> Iterator[str]:
    """What SGLang would choose if the flag were not given; empty where that is its default."""
    if report.resolve is None or run.resolution is None or setting.definition.required:
        return
    variant = next((n for n, v in enumerate(report.launch.variants) if v is run.variant), None)
    if variant is None:
        return
    judged = report.resolve(variant, run.world, without(setting.field, run.binding))
    config = judged.resolution.config if judged.resolution is not None else None
    if config is None or not config.known(setting.field):
        return
    chosen = getattr(config, setting.field)
    reasons = reasons_for(config, setting.field)
    if reasons and not same_value(chosen, setting.definition.default):
        here = run.resolution.config
        same = here.known(setting.field) and same_value(chosen, getattr(here, setting.field))
        yield "**Without it** the same." if same else " ".join((f"**Without it** {value_shown(chosen)}:", *reasons))


def _method_text(name: str, release: Release) -> str:
    """What a quantization method requires of the GPU and the data type, in this release."""
    asks = requirements(name, release)
    parts = []
    if asks.capability:
        parts.append(f"NVIDIA GPUs from {needed(asks.capability)} on")
    if asks.dtypes:
        parts.append(f"{_listed(asks.dtypes)} activations")
    return f"**Runs on** {', with '.join(parts)}." if parts else ""


MEMORY_FIELDS = ("model_path", "tp_size", "mem_fraction_static")
"""Flags whose hover shows how much GPU memory the launch needs."""


def _model_text(setting: Setting, config: Config) -> str:
    """What is known about the model that a path names."""
    if setting.field != "model_path":
        return ""
    try:
        return f": a {', '.join(config.model.architectures)}"
    except (NotKnown, AttributeError):
        return ": its config.json is not at hand, so what depends on the architecture is left open"


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
    """The rule under the cursor in `# spec-lsp: ignore[…]`, or all rules that the comment names."""
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
    """A list instead of a table: terminal editors show the Markdown source, in which a table without a header is hard to read."""
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)
