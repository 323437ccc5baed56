"""Fixes: candidate changes of settings, printed by the syntax's editor and kept only if the changed launch is judged better.

A fix must remove its finding and bring no new error, late ones included, in the worlds the launch had. This runs when code
actions are asked for, never while somebody types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest

from spec_lsp.analysis.acceptance import Bench, Solution, as_cheap, least_changes, likeliest
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.candidate import Candidate
from spec_lsp.analysis.check import analyse, document_names
from spec_lsp.analysis.diagnostics import named
from spec_lsp.analysis.ignores import Ignore
from spec_lsp.analysis.inputs import Options, Workspace, World
from spec_lsp.analysis.merge import MergedFinding, Verdict
from spec_lsp.analysis.printing import Printer, source_of, spelling_of, texts_of
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Analysis, Applicability, Diagnostic, Fix, Remedy, Repair
from spec_lsp.analysis.rules import OVERRIDDEN_VALUE
from spec_lsp.analysis.run import ConfigSource, ModelSource, Runner, RunResult, bind_variant, is_open
from spec_lsp.analysis.succession import succession
from spec_lsp.analysis.worlds import NOT_NAMED, OLDER_WORLDS, assume, newest
from spec_lsp.catalog.binding import BindError, Binding, Note, Setting, is_key
from spec_lsp.catalog.messages import flag_and_value
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.suggest import is_certain, suggest_value
from spec_lsp.interruption import Exhausted, bounded
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import Change, Refusal
from spec_lsp.syntax.edit import apply_edits
from spec_lsp.syntax.launch import Document, Edit, Problem
from spec_lsp.syntax.word import Place

MAX_CANDIDATES = 3
"""Names offered for an abbreviation that fits several flags."""

MAX_STEPS = 400_000
"""The work (in steps) after which fix-all keeps what it has found so far: each fix is tried on the whole document."""

MAX_ROUNDS = 100
"""The most rounds of fix-all: fixes that undo each other would go on forever."""

# --- candidates --------------------------------------------------------------------------------------------------------


def fixes_for(
    analysis: Analysis,
    diagnostic: Diagnostic,
    options: Options,
    workspace: Workspace,
    cache: Cache | None = None,
    *,
    whole: bool = True,
) -> tuple[Fix, ...]:
    """The verified fixes of a diagnostic; the first is preferred, unless it is a guess. For a refusal the first is the smallest set of
    changes with which SGLang accepts the launch (not looked for without `whole`); the others are ordered by size.

    `cache`: the one that `analysis` was made with, so that only launches that a fix changes are judged again.
    """
    fixes: list[Fix] = []
    naming = document_names(analysis.document, workspace)
    for candidate in _candidates(analysis, diagnostic, workspace, cache):
        edits = tuple(Edit(named(e.place, naming), e.text) for e in candidate.edits)
        candidate = replace(candidate, edits=edits)
        if not any(f.edits == candidate.edits for f in fixes):
            applicability = _verified(analysis, diagnostic, candidate, options, workspace, cache)
            if applicability is not None:
                fixes.append(
                    Fix(candidate.title, applicability, candidate.edits, guess=candidate.guess, drops=candidate.drops)
                )
    single = [replace(f, preferred=i == 0 and _is_applied(diagnostic, f, options)) for i, f in enumerate(fixes)]
    if not whole or not _is_refusal(diagnostic) or diagnostic.launch is None:
        return tuple(single)
    launch = diagnostic.launch
    find = partial(acceptance, analysis, launch, options, workspace, cache)
    accepted, left = (find() if cache is None else cache.found(analysis, launch, find)) or (None, ())
    chosen = None if diagnostic.rule.name in left else accepted
    return _with_choice(single, chosen, preferred=goes_with_all(diagnostic, options))


def _with_choice(single: Sequence[Fix], chosen: Fix | None, *, preferred: bool) -> tuple[Fix, ...]:
    """The single fixes, with the one that fix-all applies first, if it applies one."""
    if chosen is None:
        return tuple(replace(f, preferred=False, guess=True) for f in single)
    own = next((f for f in single if f.title == chosen.title), chosen)
    rest = (replace(f, preferred=False) for f in single if f.title != chosen.title)
    return (replace(own, preferred=preferred), *rest)


def _is_refusal(diagnostic: Diagnostic) -> bool:
    """Whether this is a refusal by argument resolution, in every world."""
    source = diagnostic.source
    resolved = isinstance(source, MergedFinding) and source.found.said is not None and not source.found.said.choices
    return resolved and diagnostic.severity == "error" and not holds_in_part(diagnostic)


def goes_with_all(diagnostic: Diagnostic, options: Options) -> bool:
    """Whether fix-all considers a finding: errors, warnings and what is out of date. A remark describes a launch that runs, so there is
    nothing to fix, unless its rule is named in `fix_all`."""
    if options.fix_all is not None:
        return diagnostic.rule.name in options.fix_all and not holds_in_part(diagnostic)
    return diagnostic.severity != "information" and not holds_in_part(diagnostic)


def _is_applied(diagnostic: Diagnostic, fix: Fix, options: Options) -> bool:
    """Whether fix-all applies a fix that comes first. A fix that changes what runs is a repair; hints get none, unless their rule is named.
    An overridden value keeps its flag: it is replaced by what SGLang uses anyway."""
    kept = diagnostic.rule is OVERRIDDEN_VALUE and (fix.drops or fix.applicability != "safe")
    repairs = fix.applicability == "safe" or diagnostic.severity in ("error", "warning") or options.fix_all is not None
    return repairs and not kept and not fix.guess and goes_with_all(diagnostic, options)


def acceptance(
    analysis: Analysis, launch: int, options: Options, workspace: Workspace, cache: Cache | None = None
) -> tuple[Fix, frozenset[str]] | None:
    """The smallest verified set of changes that makes SGLang accept a launch that resolution refuses, and the rules that it leaves to the
    writer. None where there is none, or where it is unclear which of several was meant."""
    refusals = [d for d in _refusals(analysis, launch) if not holds_in_part(d)]
    if not refusals:
        return None
    merged = refusals[0].source
    for solution in _solutions(analysis, launch, merged, workspace, cache or Cache()):
        edits = _written(analysis, launch, merged, solution.state.changes, options, workspace)
        left = _still_refused(analysis, refusals, edits, options, workspace, cache) if edits else None
        if edits and left is not None:
            printer = _printer(analysis.document, launch, merged.run.variant, merged.run.world.release, workspace)
            title = title_of(_joined_changes(solution.state.changes), printer.binding)
            if not left and (len(refusals) > 1 or len(solution.state.changes) > 1):
                title = f"Make SGLang accept this launch: {title[:1].lower()}{title[1:]}"
            return Fix(title, "unsafe", edits), left
    return None


def _solutions(
    analysis: Analysis, launch: int, merged: MergedFinding, workspace: Workspace, cache: Cache
) -> Iterator[Solution]:
    """The edits to try, cheapest first; expensive ones are only looked for if no cheap one can be written. None where it is unclear which
    of several was meant."""

    def search(*, dear: bool) -> list[Solution]:
        bench = Bench(analysis.document.launches[launch], merged.run, partial(workspace.model, analysis.document.name))
        return cache.found(merged.run, ("accepted", dear), lambda: list(least_changes(bench, dear=dear)))

    found = search(dear=False)
    if likeliest(found) is None:
        return
    cheap = as_cheap(found)[:MAX_PRINTED]
    yield from cheap
    if len(cheap) < MAX_PRINTED:
        yield from search(dear=True)[len(cheap) : MAX_PRINTED]


MAX_PRINTED = 3
"""The most sets of changes that are written and verified in one search."""


def _refusals(analysis: Analysis, launch: int) -> list[Diagnostic]:
    """The refusals of a launch by resolution, late ones included."""
    return [
        d
        for d in analysis.diagnostics
        if d.launch == launch
        and d.severity == "error"
        and isinstance(d.source, MergedFinding)
        and d.source.found.said is not None
    ]


def _joined_changes(changes: Sequence[Change]) -> Change:
    """Several changes as one."""
    return Change(
        {f: v for c in changes for f, v in c.set.items()},
        tuple(f for c in changes for f in c.drop),
        {n: v for c in changes for n, v in c.set_env.items()},
        tuple(n for c in changes for n in c.drop_env),
    )


def _written(
    analysis: Analysis,
    launch: int,
    merged: MergedFinding,
    changes: Sequence[Change],
    options: Options,
    workspace: Workspace,
) -> tuple[Edit, ...] | None:
    """The edits that make all changes, written one after the other: one edit for each document."""
    document, said = analysis.document, merged.found.said
    assert said is not None
    originals = {document.name: document.text}
    texts = dict(originals)
    for change in changes:
        edited = Edited(workspace, texts)
        now = read_document(document.name, texts[document.name], edited, document.language)
        if len(now.launches) != len(document.launches) or merged.run.variant >= len(now.launches[launch].variants):
            return None
        printer = _printer(now, launch, merged.run.variant, merged.run.world.release, edited)
        edits = printer.print(change, (said.at, *said.related_fields))
        naming = document_names(now, edited)
        changed = _texts_after(now, [Edit(named(e.place, naming), e.text) for e in edits or ()], edited)
        if not changed:
            return None
        for name, text in changed.items():
            originals.setdefault(name, _text_of(name, workspace) or "")
            texts[name] = text
    return tuple(e for name in sorted(texts) if (e := _minimal(name, originals[name], texts[name])) is not None)


def _still_refused(
    before: Analysis,
    refusals: Sequence[Diagnostic],
    edits: Sequence[Edit],
    options: Options,
    workspace: Workspace,
    cache: Cache | None,
) -> frozenset[str] | None:
    """The rules by which the changed launch is still refused, if they are fewer than before and none is new; None where the change does not
    help."""
    edited = _edited(before.document, edits, workspace)
    if edited is None:
        return None
    after = _analysed(before, edited, options, cache)
    if len(after.launches) != len(before.launches) or _new_errors(before, after, arguments=False):
        return None
    launch = refusals[0].launch
    assert launch is not None
    verdict = after.launches[launch].verdict
    if verdict is not None and verdict.older_unasked:  # what an older release takes is no error
        after = _analysed(before, edited, options, cache, ask_older=True)
    left = _refusals(after, launch)
    return frozenset(d.rule.name for d in left) if len(left) < len(refusals) else None


def _candidates(
    analysis: Analysis, diagnostic: Diagnostic, workspace: Workspace, cache: Cache | None
) -> Iterator[Candidate]:
    source = diagnostic.source
    if isinstance(source, Problem) and source.edits:
        yield Candidate(source.fix_title, source.edits)
    elif isinstance(source, Ignore):
        yield _without_ignore(analysis.document, source)
    elif isinstance(source, tuple):
        yield from (Candidate(r.title, r.edits, applicability=r.applicability) for r in source if isinstance(r, Remedy))
    elif isinstance(source, MergedFinding) and diagnostic.launch is not None:
        yield from _changes(analysis, diagnostic.launch, source, workspace, cache)
    elif isinstance(source, Repair) and diagnostic.launch is not None:
        printer = _printer_of(analysis, diagnostic.launch, 0, source.release, workspace, cache)
        yield from _printed(source.changes, printer, ())


def _printer(document: Document, launch: int, variant: int, release: Release, workspace: Workspace) -> Printer:
    configs: ConfigSource = partial(workspace.read, document.name)
    binding = bind_variant(document.launches[launch], variant, release, configs)
    return Printer(document, launch, variant, binding, workspace)


def _printer_of(
    analysis: Analysis, launch: int, variant: int, release: Release, workspace: Workspace, cache: Cache | None
) -> Printer:
    """The printer of a launch of an analysis; its words are bound once for all its findings."""

    def make() -> Printer:
        return _printer(analysis.document, launch, variant, release, workspace)

    return make() if cache is None else cache.found(analysis, ("printer", launch, variant, release), make)


def _printed(
    changes: Iterable[Change], printer: Printer, near: Sequence[str], *, guess: bool = False
) -> Iterator[Candidate]:
    """The changes that can be written as edits, the smallest first."""
    for change in sorted(changes, key=lambda c: c.size):
        edits = printer.print(change, near)
        if edits is not None:
            drops = bool(change.drop) or any(v is None or v is False for v in change.set.values())
            yield Candidate(title_of(change, printer.binding), edits, change.size, guess=guess, drops=drops)


def _changes(
    analysis: Analysis, launch: int, merged: MergedFinding, workspace: Workspace, cache: Cache | None
) -> Iterator[Candidate]:
    """Candidate fixes for a finding of a launch: those that its rule names, or for an argument error what is usually meant."""
    printer = _printer_of(analysis, launch, merged.run.variant, merged.run.world.release, workspace, cache)
    found = merged.found
    if found.said is not None:
        if found.said.choices:
            yield from _spelt_right(found.said, printer)
        yield from _printed(
            found.said.candidates, printer, (found.said.at, *found.said.related_fields), guess=bool(found.said.choices)
        )
    elif found.error is not None:
        yield from _for_error(printer.binding.errors[found.error], printer)
    elif found.note is not None:
        worlds = analysis.launches[launch].worlds
        yield from _for_note(printer.binding.notes[found.note], printer, considered(worlds))


def _spelt_right(said: Refusal, printer: Printer) -> Iterator[Candidate]:
    """The value of the field's choices that was probably meant. The flags that it then needs are not considered."""
    setting = printer.binding.settings.get(said.at)
    typed = str(setting.value) if setting is not None else ""
    near = suggest_value(typed, said.choices, said.at)
    edits = printer.print(Change(set={said.at: near}), (said.at,)) if near is not None else None
    if edits and near is not None:
        guess = not is_certain(typed, near, said.choices, said.at)
        yield Candidate(title_of(Change(set={said.at: near}), printer.binding), edits, guess=guess, spelling=True)


def title_of(change: Change, binding: Binding) -> str:
    """What a change does, in the imperative: "Set `--page-size` to `1` and remove `--enable-x`"."""
    parts = []
    for field, value in change.set.items():
        name = f"`{_name_of(field, binding)}`"
        if isinstance(value, bool) or value is None:
            parts.append(f"turn {name} {'on' if value else 'off'}")
        else:
            parts.append(f"set {name} to `{' '.join(texts_of(value))}`")
    parts += [f"remove `{_typed_name(binding.settings[f]) if f in binding.settings else f}`" for f in change.drop]
    parts += [f"set {name}={value}" for name, value in change.set_env.items()]
    parts += [f"remove {name}" for name in change.drop_env]
    text = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
    return text[:1].upper() + text[1:]


def _name_of(field: str, binding: Binding) -> str:
    """A field as the launch names its settings: by flags, by keys of a mapping, or by keywords."""
    flag, own = binding.catalog.by_field.get(field), binding.settings.get(field)
    settings = [own] if own is not None else [*binding.settings.values()]
    if flag is None or any(s.keyword for s in settings):
        return field
    keys = bool(settings) and all(s.is_key for s in settings)
    return spelling_of(flag, field).removeprefix("--" if keys else "")


def _typed_name(setting: Setting) -> str:
    return setting.spelling.removeprefix("--" if setting.is_key else "")


def _typed(error: BindError, value: str | None = None) -> str:
    """What is wrong, as it is written there: a flag or a key, with a value or by itself."""
    as_key = error.from_config or (bool(error.words) and is_key(error.words[0]))
    name = error.typed.removeprefix("--" if as_key else "")
    return name if value is None else f"{name}{':' if as_key else ''} {value}"


def _for_error(error: BindError, printer: Printer) -> Iterator[Candidate]:
    """What is usually meant by an argument error."""
    if error.words and error.kind in ("unknown-flag", "ambiguous-prefix", "removed-flag"):
        yield from succession(printer, error.words[0], error.typed, error.from_config)
    if error.kind == "config-not-mapping" and error.words and error.definition is not None:
        yield from succession(printer, error.words[0], error.definition.name, True)
    match error.kind:
        case "unknown-flag" | "ambiguous-prefix" | "config-ignored" if error.words:
            yield from _renamings(error, printer)
        case "invalid-choice" if (
            error.text.lower() in NOTHING and error.definition and error.definition.default is None
        ):
            for setting in [s for s in printer.binding.settings.values() if s.definition is error.definition]:
                yield from _candidate(f"Remove `{setting.spelled}`", printer.remove(setting))
            yield from _candidate(f"Remove `{_typed(error, error.text)}`", _without(error, printer))
        case "invalid-choice" | "invalid-value" if error.suggestion:
            key, word = error.words[0], error.words[-1]
            if printer.document.launches[printer.launch].program == "engine":
                text = source_of(error.suggestion, word)
                yield from _candidate(f"Write `{error.typed}={text}`", printer.set_word(word, text), guess=error.guess)
                return
            written_as_key = error.from_config and key is not word
            edits = (
                printer.set_key(key, error.suggestion) if written_as_key else printer.set_word(word, error.suggestion)
            )
            yield from _candidate(f"Write `{_typed(error, error.suggestion)}`", edits, guess=error.guess)
        case "unexpected-value":
            edits = printer.set_flag(error.words[0], error.typed)
            yield from _candidate(f"Write `{_typed(error)}` without a value", edits)
        case "stray-argument" if error.from_config and (error.words[0].text or "").lower() in ("true", "false"):
            value = (error.words[0].text or "").lower()
            edits = printer.set_switch(error.words[0], value == "true")
            yield from _candidate(f"Write `{value}` without quotes", edits)
        case "required" if error.place is not None:
            yield from _named_model(error.place, printer)
        case "stray-argument" if any(e.kind == "required" and e.place == error.place for e in printer.binding.errors):
            yield from _named_model(error.words[0].place, printer)
        case "stray-argument" if all(flag_and_value(w.text) for w in error.words):
            yield from _joined(error, printer)
        case "stray-argument":
            word = error.words[0]
            yield from _candidate(f"Remove `{word.text}`", printer.remove_word(word))
        case _:
            return


def _named_model(model: Place, printer: Printer) -> Iterator[Candidate]:
    """`sglang serve MODEL` for a release that wants it named."""
    yield from _candidate("Write `--model-path` before the model", printer.name_first(model, "--model-path"))


def _joined(error: BindError, printer: Printer) -> Iterator[Candidate]:
    """`--tp 8` in one word as `--tp=8`."""
    edits: list[Edit] = []
    written: list[str] = []
    for word in error.words:
        flag, value = flag_and_value(word.text) or ("", "")
        own = printer.set_word(word, f"{flag}={value}")
        if own is None:
            return
        edits += own
        written.append(f"`{flag}={value}`")
    yield from _candidate(f"Write {' '.join(written)}", tuple(edits))


def _renamings(error: BindError, printer: Printer) -> Iterator[Candidate]:
    word = error.words[0]
    named_once = error.from_config or printer.document.launches[printer.launch].program == "engine"
    guess = error.guess or (not error.suggestion and len(error.candidates) > 1)
    for name in [error.suggestion] if error.suggestion else error.candidates[:MAX_CANDIDATES]:
        if "=" in name or " " in name:
            continue  # its value is replaced with it: `succession`
        if named_once and name.removeprefix("--").replace("-", "_") in printer.binding.settings:
            continue  # keys and keywords must not occur twice
        if error.kind == "config-ignored":
            yield from _candidate("Write `--config` and the path as two words", printer.split_value(word))
        elif error.from_config:
            key = name.removeprefix("--")
            yield from _candidate(f"Write `{key}`", printer.rename_key(word, key), guess=guess)
        else:
            shown = name.removeprefix("--" if is_key(word) else "")
            yield from _candidate(f"Write `{shown}`", printer.rename(word, name), guess=guess)


def _for_note(note: Note, printer: Printer, releases: Sequence[Release]) -> Iterator[Candidate]:
    settings = printer.binding.settings.values()
    if note.kind == "deprecated" and note.word is not None:
        name = note.definition.name if note.definition is not None else note.typed
        # An abbreviation may have been meant for another flag, so its replacement is only written out here.
        abbreviated = note.definition is not None and note.typed not in note.definition.spellings
        found = succession(printer, note.word, name, note.from_config, releases)
        yield from (replace(c, guess=abbreviated and not note.from_config) for c in found)
        if note.definition is not None and note.definition.action == "deprecated":
            typed = note.typed.removeprefix("--" if note.from_config or is_key(note.word) else "")
            yield from _candidate(f"Remove `{typed}`", _without_effect(note, printer))
    if note.kind == "deprecated" and note.suggestion and not {"=", " "} & set(note.suggestion):
        for setting in [s for s in settings if s.flag.place == note.place and not s.from_config][:1]:
            instead = printer.binding.catalog.flag(note.suggestion)
            if instead is not None and instead.takes_value != setting.definition.takes_value:
                continue
            yield from _candidate(f"Write `{note.suggestion}`", printer.rename(setting.flag, note.suggestion))
    if note.kind == "prefix" and note.word is not None and note.suggestion:
        yield from _candidate(f"Write `{note.suggestion}`", printer.rename(note.word, note.suggestion))
    if note.kind == "repeated":
        for loser in [loser for s in settings for loser in s.losers if loser.flag.place == note.place][:1]:
            yield from _candidate(f"Remove `{loser.spelled}`", printer.remove(loser))


def _candidate(title: str, edits: tuple[Edit, ...] | None, *, guess: bool = False) -> Iterator[Candidate]:
    if edits:
        yield Candidate(title, edits, guess=guess)


NOTHING = frozenset(("none", "null", "no", "off", "false", ""))
"""What people write for "not set" where only leaving out the flag means that."""


def _without(error: BindError, printer: Printer) -> tuple[Edit, ...] | None:
    """The launch without a flag whose value is not accepted."""
    if error.from_config:
        return printer.remove_key(error.words[0])
    joined = len(error.words) < 2 or error.words[0].place.contains(error.words[-1].place)
    return printer.remove_words(error.words[0], 1 if joined else len(error.words))


def _without_effect(note: Note, printer: Printer) -> tuple[Edit, ...] | None:
    """The launch without a flag that no longer has an effect."""
    assert note.word is not None
    assert note.definition is not None
    if note.from_config:
        return printer.remove_key(note.word)
    own_value = note.definition.takes_value and "=" not in note.word.known_start
    return printer.remove_words(note.word, 2 if own_value else 1) if note.definition.nargs in (0, None) else None


def _without_ignore(document: Document, ignore: Ignore) -> Candidate:
    """Remove an ignore comment: its whole line if nothing else is on it, else the comment with the blanks before it."""
    text, place = document.text, ignore.directive.place
    start, end = place.start, place.end
    if ignore.directive.own_line:
        start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        end = end + 2 if text[end : end + 2] == "\r\n" else min(end + 1, len(text))
    else:
        start = len(text[:start].rstrip(" \t"))
    return Candidate(
        "Remove the unused ignore comment", (Edit(Place(document.name, start, end), ""),), applicability="safe"
    )


# --- verification ------------------------------------------------------------------------------------------------------


class Edited:
    """A workspace in which some documents have edited texts."""

    def __init__(self, workspace: Workspace, texts: Mapping[str, str]) -> None:
        self._workspace = workspace
        self.texts = texts
        self.release = workspace.release
        self.sglang_at = workspace.sglang_at
        self.unread_sglang = workspace.unread_sglang
        self.model = workspace.model
        self.left_out = workspace.left_out
        self.unreadable_model = workspace.unreadable_model

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        found = self._workspace.read(document, path)
        return None if found is None else (found[0], self.texts.get(found[0], found[1]))


def _verified(
    analysis: Analysis,
    diagnostic: Diagnostic,
    candidate: Candidate,
    options: Options,
    workspace: Workspace,
    cache: Cache | None,
) -> Applicability | None:
    """How safely the candidate can be applied, or None when it does not help or does harm."""
    edited = _edited(analysis.document, candidate.edits, workspace)
    if edited is None:
        return None
    after = _analysed(analysis, edited, options, cache)
    if len(after.launches) != len(analysis.launches) and not isinstance(diagnostic.source, Problem):
        return None
    if _count(after, diagnostic) >= _count(analysis, diagnostic):
        return None
    arguments = candidate.spelling or diagnostic.rule.topic == "arguments"
    if _new_errors(analysis, after, arguments=arguments):
        return None
    if candidate.applicability is not None:
        return candidate.applicability
    repairs = diagnostic.rule.severity == "error"  # no launch ran before, so any that runs afterwards is an improvement
    if repairs or not _same_outcome(analysis, after):
        return "unsafe"
    changed = [
        i for i, (a, b) in enumerate(zip(analysis.launches, after.launches, strict=True)) if a.verdict is not b.verdict
    ]
    same = all(
        _same_in(release, index, analysis.document, after.document, options, workspace, edited)
        for release in _unnamed(analysis)
        for index in changed
    )
    return "safe" if same else "unsafe"


def _edited(document: Document, edits: Iterable[Edit], workspace: Workspace) -> Edited | None:
    """The workspace with the edited texts; None when edits overlap or a document is not available."""
    texts = _texts_after(document, edits, workspace)
    return None if texts is None else Edited(workspace, texts)


def _analysed(
    before: Analysis, edited: Edited, options: Options, cache: Cache | None, *, ask_older: bool = False
) -> Analysis:
    """The analysis of an edited document. Only launches that changed are judged again, if `before` was made with the cache."""
    document = before.document
    text = edited.texts.get(document.name, document.text)
    after = read_document(document.name, text, edited, document.language)
    return analyse(after, options, edited, cache, ask_older=ask_older)


def considered(worlds: Sequence[World]) -> tuple[Release, ...]:
    """The releases that a launch may run: those that somebody named, else the newest and those that people still run."""
    named = tuple(dict.fromkeys(w.release for w in worlds if w.release_from != NOT_NAMED))
    return named if len(named) == len({w.release for w in worlds}) else (*{w.release for w in worlds}, *OLDER_WORLDS)


def _unnamed(analysis: Analysis) -> tuple[Release, ...]:
    """The older releases that some launch of the document may run, since nobody named its release."""
    worlds = [w for report in analysis.launches for w in report.worlds]
    return OLDER_WORLDS if any(w.release_from == NOT_NAMED for w in worlds) else ()


def _same_in(
    release: Release,
    index: int,
    before: Document,
    after: Document,
    options: Options,
    workspace: Workspace,
    edited: Workspace,
) -> bool:
    """Whether a launch runs the same after the edit in another release as well."""
    older = replace(options, release=release)
    own, new = Bound(before, index, older, workspace), Bound(after, index, older, edited)
    given = own.given()
    if given is not None and given == new.given():
        return True  # all values are known and equal: no resolution is needed
    return all(same_run(one, other) for one, other in zip_longest(own.runs(), new.runs()))


class Bound:
    """A launch of a document in the worlds of its options, to be compared with another; it is run only as far as that needs."""

    def __init__(self, document: Document, index: int, options: Options, workspace: Workspace) -> None:
        self._launch = document.launches[index]
        models: ModelSource = partial(workspace.model, document.name)
        configs: ConfigSource = partial(workspace.read, document.name)
        assumed = assume(self._launch, document.directives, options, workspace, document.name)
        self._worlds = assumed.worlds
        self._runner = Runner(self._launch, models, configs)

    def given(self) -> object:
        """Everything that decides how the launch resolves; None where SGLang does not accept its words, or more may be given than is
        seen."""
        variants = range(len(self._launch.variants))
        releases = dict.fromkeys(w.release for w in self._worlds)
        bound = [self._runner.binding(index, release) for index in variants for release in releases]
        if any(b.errors or is_open(self._launch, b) or v.unknown for b, v in bound):
            return None
        env = [{name: word.text for name, word in variant.env.items()} for variant in self._launch.variants]
        return self._launch.program, self._worlds, env, [v.given.typed for _, v in bound]

    def runs(self) -> Iterator[RunResult]:
        """Its runs, one by one."""
        return self._runner.in_worlds(self._worlds)


def _count(analysis: Analysis, diagnostic: Diagnostic) -> int:
    """How many findings of this diagnostic's rule its launch (or its document) has."""
    own = [d for d in analysis.diagnostics if diagnostic.launch in (d.launch, *d.also) and not _of_older(d)]
    return sum(d.rule is diagnostic.rule for d in own)


def _of_older(diagnostic: Diagnostic) -> bool:
    """Whether a finding applies only to releases older than the newest, where nobody named one."""
    source = diagnostic.source
    return (
        isinstance(source, MergedFinding)
        and source.run.world.release_from == NOT_NAMED
        and source.run.world.release < newest()
    )


def _new_errors(before: Analysis, after: Analysis, *, arguments: bool) -> bool:
    """Whether any launch has an error, or a warning of an error's rule, of a kind that it did not have before.

    SGLang reads `arguments` before it resolves them: errors that only appear once the arguments can be read are not caused by the fix.
    """
    known = {(d.rule.name, launch) for d in before.diagnostics for launch in (d.launch, *d.also)}
    return any(
        d.rule.severity == "error"
        and not _of_older(d)
        and any((d.rule.name, launch) not in known for launch in (d.launch, *d.also))
        and (d.rule.topic == "arguments" or not arguments)
        for d in after.diagnostics
    )


def _same_outcome(before: Analysis, after: Analysis) -> bool:
    """Whether the server runs the same: every launch, in each way and world, resolves to the same configuration."""
    if len(before.launches) != len(after.launches):
        return False
    pairs = zip(before.launches, after.launches, strict=True)
    return all(one.verdict is other.verdict or _same_runs(one.verdict, other.verdict) for one, other in pairs)


def _same_runs(before: Verdict | None, after: Verdict | None) -> bool:
    if before is None or after is None:
        return False
    return all(same_run(one, other) for one, other in zip_longest(before.runs, after.runs))


def same_run(one: RunResult | None, other: RunResult | None) -> bool:
    """Whether two runs resolve to the same configuration. False where there is only one."""
    return (
        one is not None
        and other is not None
        and one.resolution is not None
        and other.resolution is not None
        and one.variant == other.variant
        and one.world.hardware == other.world.hardware
        and one.refused == other.refused
        and one.resolution.config.fields() == other.resolution.config.fields()
    )


def _texts_after(document: Document, edits: Iterable[Edit], workspace: Workspace) -> dict[str, str] | None:
    """The texts of the edited documents; None when edits overlap or a document is not available."""
    by_document: dict[str, list[Edit]] = {}
    for edit in edits:
        by_document.setdefault(edit.place.document, []).append(edit)
    texts = {}
    for name, own in by_document.items():
        text = document.text if name == document.name else _text_of(name, workspace)
        changed = None if text is None else apply(text, own)
        if changed is None:
            return None
        texts[name] = changed
    return texts


def _text_of(name: str, workspace: Workspace) -> str | None:
    found = workspace.read(name, name)
    return found[1] if found else None


def apply(text: str, edits: Sequence[Edit]) -> str | None:
    """The text with edits of one document applied; None when they overlap."""
    return apply_edits(text, edits[0].place.document, edits) if edits else text


# --- fix-all -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Applied:
    """A fix that fix-all applied: `line` (from 0) is where its finding stood in the text as it was then."""

    diagnostic: Diagnostic
    fix: Fix
    line: int


def fix_all(
    name: str, text: str, options: Options, workspace: Workspace, *, unsafe: bool, language: str | None = None
) -> tuple[Edit, ...]:
    """One edit for each document that applies the preferred fix of every finding, repeated until none is left.

    Only safe fixes, unless `unsafe`. Empty when there is nothing to do.
    """
    return repair(name, text, options, workspace, unsafe=unsafe, language=language)[0]


def repair(
    name: str,
    text: str,
    options: Options,
    workspace: Workspace,
    *,
    unsafe: bool,
    language: str | None = None,
    may_edit: Callable[[str], bool] = lambda _: True,
) -> tuple[tuple[Edit, ...], tuple[Applied, ...]]:
    """The edits of `fix_all`, and each fix that they contain. A fix that would edit a document that must not be edited is left out
    completely."""
    originals = {name: text}
    texts = {name: text}
    cache = Cache()
    tried: set[tuple[str, str]] = set()
    applied: list[Applied] = []
    with bounded(MAX_STEPS), suppress(Exhausted):  # what is fixed by then stays fixed
        for _ in range(MAX_ROUNDS):
            edited = Edited(workspace, texts)
            analysis = analyse(read_document(name, texts[name], edited, language), options, edited, cache)
            found = _next_fix(analysis, options, edited, unsafe, tried, texts[name], cache, may_edit)
            if found is None:
                break
            diagnostic, fix = found
            place = diagnostic.place
            before = texts.get(place.document) or _text_of(place.document, edited) or ""
            applied.append(Applied(diagnostic, fix, before.count("\n", 0, place.start)))
            changed = _texts_after(analysis.document, fix.edits, edited)
            for document, new in (changed or {}).items():
                originals.setdefault(document, _text_of(document, workspace) or "")
                texts[document] = new
    edits = tuple(e for d in sorted(texts) if (e := _minimal(d, originals[d], texts[d])) is not None)
    return edits, tuple(applied)


def _next_fix(
    analysis: Analysis,
    options: Options,
    workspace: Workspace,
    unsafe: bool,
    tried: set[tuple[str, str]],
    text: str,
    cache: Cache,
    may_edit: Callable[[str], bool],
) -> tuple[Diagnostic, Fix] | None:
    for diagnostic in analysis.diagnostics:
        attempt = (diagnostic.key, text)
        if attempt in tried or not goes_with_all(diagnostic, options):
            continue
        tried.add(attempt)
        for fix in fixes_for(analysis, diagnostic, options, workspace, cache)[:1]:
            wanted = fix.preferred and (fix.applicability == "safe" or (unsafe and fix.applicability == "unsafe"))
            if wanted and all(may_edit(d) for d in {e.place.document for e in fix.edits}):
                return diagnostic, fix
    return None


def holds_in_part(diagnostic: Diagnostic) -> bool:
    """Whether a refusal holds only on some of the hardware or releases that the launch may run on, none of which was named."""
    source = diagnostic.source
    return isinstance(source, MergedFinding) and bool(source.where) and diagnostic.rule.severity == "error"


def _minimal(document: str, before: str, after: str) -> Edit | None:
    """The one smallest replacement that turns `before` into `after`; None when they are equal."""
    if before == after:
        return None
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    tail = 0
    while tail < min(len(before), len(after)) - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return Edit(Place(document, start, len(before) - tail), after[start : len(after) - tail])
