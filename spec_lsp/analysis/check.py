"""`analyse`: all that is said of one document."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as once
from functools import partial
from typing import TypeVar, cast

from spec_lsp.analysis.builds import own_build
from spec_lsp.analysis.cross_launch import cross_launch_findings
from spec_lsp.analysis.diagnostics import Naming, deduplicated, deprecations_once, diagnostics_of, in_order, with_names
from spec_lsp.analysis.environment import variables_of
from spec_lsp.analysis.faults import fault_of, told, unjudged
from spec_lsp.analysis.gpus import gpu_count_of
from spec_lsp.analysis.ignores import apply_ignores
from spec_lsp.analysis.inputs import Options, Workspace, World
from spec_lsp.analysis.judge import (
    OLDEST_MODELLED,
    ConfigSource,
    ModelSource,
    RunResult,
    Verdict,
    bind_variant,
    is_open,
    judge,
    run,
)
from spec_lsp.analysis.left_out import files_left_out
from spec_lsp.analysis.moved import moved
from spec_lsp.analysis.report import Analysis, Diagnostic, LaunchReport, Related, Run
from spec_lsp.analysis.rules import RELEASE_NOT_SHIPPED
from spec_lsp.analysis.worlds import Assumed, Named, assume, catalog_release, newest
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.model import ModelFacts
from spec_lsp.interruption import Exhausted, checkpoint
from spec_lsp.resolution.engine import RULES
from spec_lsp.syntax.launch import Document, Launch, Problem, Variant
from spec_lsp.syntax.word import Word

T = TypeVar("T")


@dataclass(slots=True)
class Entry:
    """A verdict, the models that it was looked up for, and the diagnostics it came to for the launch that was seen last with it."""

    verdict: Verdict
    models: Mapping[str, ModelFacts | None]
    launch: Launch | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PreviousAnalysis:
    """What a launch came to in the last analysis of its document, and all that decided it beside the launch itself."""

    launch: Launch
    decided_by: tuple[object, ...]
    read: Mapping[str, tuple[str, str] | None]
    """The `--config` files that it names."""
    assumed: Assumed
    diagnostics: Sequence[Diagnostic]
    report: LaunchReport


STEPS_OF_A_LAUNCH = 10
"""What looking at a launch costs that was judged before."""

MAX_DOCUMENTS = 64
"""Documents of which the last analysis is kept."""


class Cache:
    """Verdicts by what a launch reads, so that only the launch being typed in is judged again. Clear it when models change."""

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._found: OrderedDict[tuple[int, Hashable], tuple[object, object]] = OrderedDict()
        self.kept: dict[str, Sequence[PreviousAnalysis | None]] = {}
        """By document: a launch that the reader gives back as the very same object needs no look at what it reads. None where a launch
        could not be judged."""

    def get(self, key: Hashable) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: Hashable, entry: Entry) -> None:
        self._entries[key] = entry
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()
        self._found.clear()
        self.kept.clear()

    def found(self, about: object, part: Hashable, find: Callable[[], T]) -> T:
        """What `find` finds of a part of this very object, looked for once as long as it is remembered."""
        key = id(about), part
        known = self._found.get(key)
        if known is None or known[0] is not about:
            known = self._found[key] = about, find()
            if len(self._found) > self._size:
                self._found.popitem(last=False)
        return cast(T, known[1])

    def keep(self, document: str, launches: Sequence[PreviousAnalysis | None]) -> None:
        self.kept.pop(document, None)
        self.kept[document] = launches
        if len(self.kept) > MAX_DOCUMENTS:
            del self.kept[next(iter(self.kept))]


class MemoizedWorkspace:
    """A workspace that answers each question once: a document asks the same for each of its launches."""

    def __init__(self, workspace: Workspace) -> None:
        self.read = once(workspace.read)
        self.left_out = once(workspace.left_out)
        self.unreadable_model = once(workspace.unreadable_model)
        self.model = once(workspace.model)
        self.release = once(workspace.release)


def analyse(
    document: Document, options: Options, workspace: Workspace, cache: Cache | None = None, *, ask_older: bool = True
) -> Analysis:
    """Judge every launch of a document. Pure but for what `workspace` reads. `ask_older`: see `judge`."""
    cache = cache if cache is not None else Cache()
    workspace = MemoizedWorkspace(workspace)
    naming = document_names(document, workspace)
    depends_on = {naming(name) for name in document.depends_on}
    diagnostics = [_problem(p) for p in document.problems]
    unknown: dict[Release, Diagnostic | None] = {}
    decided_by = (document.directives, options, workspace.release(document.name))
    before = cache.kept.get(document.name, [])
    launches: list[PreviousAnalysis | None] = []
    reports: list[LaunchReport] = []
    faults: list[str] = []
    for index, launch in enumerate(document.launches):
        checkpoint(STEPS_OF_A_LAUNCH)
        models, configs = _sources(document, workspace, depends_on)
        last = before[index] if index < len(before) else None
        try:
            if last is None or last.launch is not launch or not _holds(last, decided_by, configs, ask_older):
                last = _looked_at(
                    document, launch, index, options, workspace, models, configs, cache, decided_by, ask_older
                )
            own = [*last.diagnostics, *_around(document, launch, index, last, configs)]
        except Exhausted:
            raise
        except Exception as error:  # a fault of ours: it costs this launch, and nothing else
            faults.append(told(error))
            diagnostics.append(fault_of(error, launch, index))
            launches.append(None)
            reports.append(unjudged(launch))
            continue
        diagnostics += own
        launches.append(last)
        reports.append(last.report)
        for named in last.assumed.releases:
            unknown.setdefault(named.value, _unknown_release(named, launch))
    cache.keep(document.name, launches)
    diagnostics += filter(None, unknown.values())
    diagnostics += files_left_out(document, reports, workspace)
    try:
        diagnostics += cross_launch_findings(document, reports, partial(_binder, document, workspace))
    except Exception as error:
        faults.append(told(error))
        diagnostics.append(fault_of(error, document.launches[0], 0))
    diagnostics = [d for d in (with_severity(d, options) for d in diagnostics) if d is not None]
    diagnostics = [with_names(d, naming) for d in diagnostics]
    kept, ignored = apply_ignores(document, diagnostics, honour=options.honour_ignores)
    return Analysis(
        document,
        tuple(deprecations_once(in_order(deduplicated(kept)))),
        tuple(reports),
        ignored,
        frozenset(depends_on),
        faults=tuple(faults),
    )


def _around(
    document: Document, launch: Launch, index: int, kept: PreviousAnalysis, configs: ConfigSource
) -> list[Diagnostic]:
    """What is said of a launch's variables and GPUs, which depends on the rest of the document."""
    verdict = kept.report.verdict
    assert verdict is not None
    bind = partial(bind_variant, launch, release=verdict.main.world.release, configs=configs)
    return [
        *variables_of(document, launch, index, kept.assumed),
        *gpu_count_of(document, launch, index, verdict, bind),
    ]


def _holds(last: PreviousAnalysis, decided_by: tuple[object, ...], configs: ConfigSource, ask_older: bool) -> bool:
    """Whether what a launch came to still holds."""
    assert last.report.verdict is not None
    if ask_older and last.report.verdict.older_unasked:
        return False
    return last.decided_by == decided_by and all(configs(path) == found for path, found in last.read.items())


def _looked_at(
    document: Document,
    launch: Launch,
    index: int,
    options: Options,
    workspace: Workspace,
    models: ModelSource,
    configs: ConfigSource,
    cache: Cache,
    decided_by: tuple[object, ...],
    ask_older: bool,
) -> PreviousAnalysis:
    read: dict[str, tuple[str, str] | None] = {}

    def noted(path: str) -> tuple[str, str] | None:
        read[path] = configs(path)
        return read[path]

    build = own_build(document, launch)
    assumed = assume(launch, document.directives, options, workspace, document.name, build)
    entry, fresh = _judged(launch, assumed, models, noted, cache, ask_older)
    diagnostics = _placed(entry, launch, index, noted, fresh=fresh)
    verdict = entry.verdict
    main = partial(_main_run, launch, verdict, models, configs)
    report = LaunchReport(launch, assumed.worlds, main, verdict, partial(_resolved, launch, models))
    return PreviousAnalysis(launch, decided_by, read, assumed, diagnostics, report)


def _binder(document: Document, workspace: Workspace, launch: Launch, release: Release) -> Callable[[int], Binding]:
    """Binds the words of a launch's variants."""
    _, configs = _sources(document, workspace, set())
    return partial(bind_variant, launch, release=release, configs=configs)


def document_names(document: Document, workspace: Workspace) -> Naming:
    """The names of the documents that this one's places lie in."""
    names = {document.name: document.name}

    def naming(name: str) -> str:
        if name not in names:
            found = workspace.read(document.name, name)
            names[name] = found[0] if found else name
        return names[name]

    return naming


def _judged(
    launch: Launch, assumed: Assumed, models: ModelSource, configs: ConfigSource, cache: Cache, ask_older: bool
) -> tuple[Entry, bool]:
    """What the launch came to, and whether all its bindings are of its own words."""
    key = launch_key(launch, assumed, configs)
    entry = cache.get(key)
    if entry is not None and any(models(path) != facts for path, facts in entry.models.items()):
        entry = None
    if entry is not None and not (ask_older and entry.verdict.older_unasked):
        return entry, False
    asked: dict[str, ModelFacts | None] = dict(entry.models) if entry is not None else {}
    runs = entry.verdict.runs if entry is not None else ()

    def noted(path: str) -> ModelFacts | None:
        asked[path] = models(path)
        return asked[path]

    verdict = judge(
        launch, assumed.worlds, noted, configs, release_named=assumed.release_named, build=assumed.build,
        ask_older=ask_older, runs=runs,
    )  # fmt: skip
    entry = Entry(verdict, asked)
    cache.put(key, entry)
    return entry, not runs


def _placed(entry: Entry, launch: Launch, index: int, configs: ConfigSource, *, fresh: bool) -> list[Diagnostic]:
    """The launch's diagnostics: those of the last launch that read the same, moved to this one's words, else found anew."""
    if not entry.verdict.findings:
        return []
    found = moved(entry.diagnostics, entry.launch, launch, index) if entry.launch is not None else None
    if found is None:
        found = diagnostics_of(launch, index, entry.verdict, configs, own=fresh)
    entry.launch, entry.diagnostics = launch, found
    return found


def _sources(document: Document, workspace: Workspace, depends_on: set[str]) -> tuple[ModelSource, ConfigSource]:
    def configs(path: str) -> tuple[str, str] | None:
        found = workspace.read(document.name, path)
        depends_on.add(found[0] if found else path)
        return found

    return partial(workspace.model, document.name), configs


def _main_run(launch: Launch, verdict: Verdict, models: ModelSource, configs: ConfigSource) -> Run:
    """The likeliest run, bound to this launch's own words."""
    main = verdict.main
    binding = bind_variant(launch, main.variant, main.world.release, configs)
    judged = run(launch, main.variant, main.world, models, binding, bare=is_open(launch, binding))
    return Run(launch.variants[judged.variant], judged.world, judged.binding, judged.resolution)


def _resolved(launch: Launch, models: ModelSource, variant: int, world: World, binding: Binding) -> RunResult:
    """What a variant resolves to in a world if its words bind like this."""
    return run(launch, variant, world, models, binding, bare=is_open(launch, binding))


# --- what a launch reads -----------------------------------------------------------------------------------------------


def launch_key(launch: Launch, assumed: Assumed, configs: ConfigSource) -> Hashable:
    """Everything a verdict depends on, without places."""
    return (
        launch.program,
        assumed.worlds,
        assumed.release_named,
        assumed.build,
        tuple(_variant_key(v, configs) for v in launch.variants),
    )


def _variant_key(variant: Variant, configs: ConfigSource) -> Hashable:
    texts = tuple(_word_key(w) for w in variant.words)
    env = tuple((name, _word_key(word)) for name, word in variant.env.items()) if variant.env else ()
    files = tuple((f.name, f.content.text) for f in variant.files)
    named: list[str | None] = []
    if "--config" in texts:
        named = [variant.words[i + 1].text for i, text in enumerate(texts[:-1]) if text == "--config"]
    return texts, env, files, tuple(configs(path) for path in named if path is not None)


def _word_key(word: Word) -> Hashable:
    """The word's text and whether it is written as a key; or its known parts, what is unknown in it, and how many words it may be."""
    text = word.text
    if text is None:
        return word.splat, word.scalar, tuple((f.text, f.reason) for f in word.fragments)
    return (text, "key") if len(word.fragments) > 1 and word.fragments[0].fixed else text


# --- the document's own findings ---------------------------------------------------------------------------------------


def _problem(problem: Problem) -> Diagnostic:
    rule = RULES[problem.rule]
    related = tuple(Related(place, text) for place, text in problem.related)
    key = f"{rule.name}:{problem.message}"
    return Diagnostic(rule, rule.severity, problem.message, problem.place, key, related=related, source=problem)


def _unknown_release(named: Named[Release], launch: Launch) -> Diagnostic | None:
    """What is said once of a release that is not shipped or not followed whole, where it is named."""
    release, known = named.value, catalog_release(named.value)
    place = named.place or launch.place
    if release > newest():
        message = f"SGLang {release} is newer than any release that spec-lsp knows: what {known} does not have is told as a warning only."
    elif release < releases()[0]:
        message = (
            f"SGLang {release} ({named.source}) is older than any release that spec-lsp knows: the launch is checked against the flags of "
            f"{known}, and a flag that no known release has may be one of {release}'s."
        )
    elif known < OLDEST_MODELLED:
        message = (
            f"Of SGLang {release} ({named.source}) spec-lsp knows the flags and their values but not what it decides from them: the "
            f"launch is checked by its flags only. From {OLDEST_MODELLED} on it is checked whole."
        )
    elif release != known:
        message = f"spec-lsp does not know SGLang {release} ({named.source}): the launch is checked against {known}."
    else:
        return None
    return Diagnostic(RELEASE_NOT_SHIPPED, RELEASE_NOT_SHIPPED.severity, message, place, f"unknown-release:{release}")


def with_severity(diagnostic: Diagnostic, options: Options) -> Diagnostic | None:
    """The diagnostic with the severity the settings give its rule; None when it is off."""
    wanted = options.severities.get(diagnostic.rule.name)
    if wanted is None:
        return diagnostic
    return None if wanted == "off" else replace(diagnostic, severity=wanted)


def errors(diagnostics: Iterable[Diagnostic]) -> int:
    return sum(d.severity == "error" for d in diagnostics)
