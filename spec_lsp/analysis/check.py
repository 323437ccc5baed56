"""`analyse`: all that is said of one document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from spec_lsp.analysis.builds import own_build
from spec_lsp.analysis.cache import Cache, Entry, Judged, MemoizedWorkspace, PreviousAnalysis, launch_key
from spec_lsp.analysis.cross_launch import cross_launch_findings, tells_role
from spec_lsp.analysis.diagnostics import Naming, deduplicated, deprecations_once, diagnostics_of, in_order, with_names
from spec_lsp.analysis.environment import sets_variables, variables_of
from spec_lsp.analysis.faults import fault_of, told, unjudged
from spec_lsp.analysis.gpus import BEFORE, gpu_count_of
from spec_lsp.analysis.ignores import Heeded, apply_ignores, condoned_refusals
from spec_lsp.analysis.inputs import Options, Workspace, World
from spec_lsp.analysis.judge import judge
from spec_lsp.analysis.left_out import Named as NamedFile
from spec_lsp.analysis.left_out import files_left_out, named_by
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.report import Analysis, Diagnostic, LaunchReport, PlacedDiagnostics, Related, Reports, Run
from spec_lsp.analysis.rules import RELEASE_NOT_SHIPPED, UNKNOWN_DIRECTIVE
from spec_lsp.analysis.run import (
    OLDEST_FOLLOWED,
    OLDEST_MODELLED,
    Condoned,
    ConfigSource,
    ModelSource,
    RunResult,
    bind_variant,
    is_open,
    run,
)
from spec_lsp.analysis.worlds import NOT_NAMED, Assumed, assume, directed_paths, newest, sglang_at_hand
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import catalog_of, releases
from spec_lsp.facts.clues import Named
from spec_lsp.facts.model import ModelFacts
from spec_lsp.interruption import Exhausted, checkpoint
from spec_lsp.records import replace
from spec_lsp.resolution.engine import RULES
from spec_lsp.syntax.edited import same_ends
from spec_lsp.syntax.launch import Clue, Document, Launch, Problem
from spec_lsp.syntax.standing import Launches

STEPS_OF_A_LAUNCH = 10
"""The cost of reusing the result of a launch that was judged before."""


def analyse(
    document: Document, options: Options, workspace: Workspace, cache: Cache | None = None, *, ask_older: bool = True
) -> Analysis:
    """Judge every launch of a document. Pure but for what `workspace` reads. `ask_older`: see `judge`."""
    cache = cache if cache is not None else Cache()
    workspace = MemoizedWorkspace(workspace)
    naming = document_names(document, workspace)
    depends_on = {naming(name) for name in document.depends_on}
    looked_at = _Looked(document, options, workspace, depends_on, cache, ask_older=ask_older)
    looked_at.at_all()
    around = [*files_left_out(document, looked_at.names, workspace), *_without_sglang(document, options, workspace)]
    around += _unread(document, options, workspace, looked_at.named_by)
    reports = Reports(looked_at.report, len(document.launches))
    if looked_at.may_belong_together:
        try:
            around += cross_launch_findings(document, reports, partial(_binder, document, workspace))
        except Exception as error:
            looked_at.faults.append(told(error))
            around.append(fault_of(error, document.launches[0], 0))
    anchor, in_text = looked_at.anchor, looked_at.in_text
    problems, around = [[*map(anchor, own)] for own in (map(_problem, document.problems), around)]

    def heeded(of_launches: Sequence[Diagnostic]) -> Heeded:
        diagnostics = [*problems, *of_launches, *around]
        if options.severities:
            diagnostics = [d for d in (with_severity(d, options) for d in diagnostics) if d is not None]
        if depends_on:
            diagnostics = [with_names(d, naming) for d in diagnostics]
        return apply_ignores(document, diagnostics, in_text, honour=options.honour_ignores)

    left = heeded(looked_at.diagnostics)
    off = (
        [d for d in looked_at.diagnostics if options.severities.get(d.rule.name) == "off"] if options.severities else []
    )
    if condoned := condoned_refusals(left.silenced, left.kept, off):
        left = heeded(looked_at.condoning(condoned))
    kept = [*left.kept, *map(anchor, left.of_comments)]
    return Analysis(
        document,
        PlacedDiagnostics(deprecations_once(deduplicated(in_order(kept))), looked_at.standing),
        reports,
        len(left.silenced),
        frozenset(depends_on),
        faults=tuple(looked_at.faults),
    )


class _Looked:
    """The launches of a document as they are analysed; those that have not changed since the last analysis keep their results.

    Works with anchored places where the document has them (see `syntax.standing`).
    """

    def __init__(
        self,
        document: Document,
        options: Options,
        workspace: Workspace,
        depends_on: set[str],
        cache: Cache,
        *,
        ask_older: bool,
    ) -> None:
        self.document = document
        self.options = options
        self.workspace = workspace
        self.cache = cache
        self.ask_older = ask_older
        self.models, self.configs = _sources(document, workspace, depends_on)
        launches = document.launches
        anchored = isinstance(launches, Launches) and launches.of is document.directives
        self.standing = launches.standing if isinstance(launches, Launches) and anchored else None
        self.launches = launches.anchored if isinstance(launches, Launches) and anchored else launches
        self.directives = launches.directives if isinstance(launches, Launches) and anchored else document.directives
        self.judged: list[Judged | None] = []
        """None for a launch that could not be judged."""
        self.each: list[list[Diagnostic]] = []
        """The diagnostics of each launch."""
        self.diagnostics: list[Diagnostic] = []
        self.faults: list[str] = []

    def named_by(self) -> set[str]:
        """What the releases of all launches are named by."""
        return {w.release_from for one in self.judged if one is not None for w in one.assumed.worlds}

    @property
    def names(self) -> set[frozenset[NamedFile]]:
        return {one.names for one in self.judged if one is not None}

    def at_all(self) -> None:
        decided_by = (self.options, sglang_at_hand(self.document, self.options, self.workspace))
        before = self.cache.kept.get(self.document.name)
        if before is None or before.decided_by != decided_by:
            before = PreviousAnalysis(decided_by, (), (), (), ())
        directed = before.directives == self.directives
        count = len(self.launches)
        as_many = directed and len(before.launches) == count
        first, end = same_ends(before.launches, self.launches) if as_many else (0, 0)
        other, behind = count - first - end, len(before.launches) - end
        self.judged = [*before.judged[:first], *[None] * other, *before.judged[behind:]]
        self.each = [*before.said[:first], *[[]] * other, *before.said[behind:]]
        last = {id(one.launch): one for one in before.judged[first:behind] if one is not None}
        for index, one in enumerate(self.judged):
            if one is None or not one.settled:
                self.look(index, one or last.get(id(self.launches[index])), directed=directed)
        unknown: dict[Release, Diagnostic] = {}
        for one in self.judged:
            for release, diagnostic in one.unknown if one is not None else ():
                unknown.setdefault(release, diagnostic)
        self.diagnostics = [*chain.from_iterable(self.each), *unknown.values()]
        self.cache.keep(
            self.document.name, PreviousAnalysis(decided_by, self.directives, self.launches, self.judged, self.each)
        )

    def look(self, index: int, last: Judged | None, *, directed: bool) -> None:
        """Judge a launch, as far as that was not done, and say all of it. A fault of ours must not affect other launches."""
        checkpoint(STEPS_OF_A_LAUNCH)
        launch = self.launches[index]
        try:
            one = self.judged[index] = self.at(launch, index, last, directed=directed)
            self.each[index] = self.said(one, index)
        except Exhausted:
            raise
        except Exception as error:
            self.judged[index] = None
            self.faults.append(told(error))
            self.each[index] = [fault_of(error, launch, index)]

    def at(self, launch: Launch, index: int, last: Judged | None, *, directed: bool) -> Judged:
        """The result for a launch: that of the last analysis if nothing that decides it has changed. `directed`: the directives are the
        same."""
        if last is None or last.launch is not launch or (self.ask_older and last.verdict.older_unasked):
            return self.anew(launch, index, self.assume(launch))
        assumed = last.assumed if directed else self.assume(launch)
        if not directed and assumed != last.assumed:
            return self.anew(launch, index, assumed)
        if last.read and any(self.configs(path) != was for path, was in last.read.items()):
            return self.anew(launch, index, assumed)
        if last.index == index:
            return last
        diagnostics = [_numbered(d, last.index, index) for d in last.diagnostics]
        return replace(last, index=index, diagnostics=diagnostics, given=None, condoned=None)

    def assume(self, launch: Launch) -> Assumed:
        place = launch.place if self.standing is None else self.standing.place(launch.place)
        build = own_build(
            launch, self.document.text[place.start : place.end] if place.document == self.document.name else ""
        )
        return assume(launch, self.directives, self.options, self.workspace, self.document.name, build)

    def anew(self, launch: Launch, index: int, assumed: Assumed) -> Judged:
        read: dict[str, tuple[str, str] | None] = {}

        def noted(path: str) -> tuple[str, str] | None:
            read[path] = self.configs(path)
            return read[path]

        verdict, fresh = _judged(launch, assumed, self.models, noted, self.cache, self.ask_older)
        found = diagnostics_of(launch, index, verdict, noted, own=fresh) if verdict.findings else []
        unknown = [(n.value, d) for n in assumed.releases if (d := _unknown_release(n, launch)) is not None]
        variables = sets_variables(launch)
        changeable = assumed.clues.counts or read or variables or verdict.older_unasked
        return Judged(
            launch, index, read, named_by(launch), assumed, verdict, found, variables, tells_role(launch), unknown,
            settled=not changeable,
        )  # fmt: skip

    def said(self, one: Judged, index: int) -> list[Diagnostic]:
        """All diagnostics of a launch, including those about variables and GPUs, which depend on the surrounding text."""
        given = tuple(map(self.before, one.assumed.clues.counts))
        if given != one.given:
            bind = partial(bind_variant, one.launch, release=one.verdict.main.world.release, configs=self.configs)
            one.gpus = gpu_count_of(one.launch, index, one.assumed.clues, one.verdict, bind, self.before)
            one.given = given
        if not one.sets_variables:
            return [*one.diagnostics, *one.gpus]
        variables = variables_of(self.document, self.document.launches[index], index, one.assumed)
        return [*one.diagnostics, *one.gpus, *map(self.anchor, variables)]

    def condoning(self, condoned: Mapping[int, Condoned]) -> list[Diagnostic]:
        """The diagnostics where this, by launch, refuses nothing."""
        changed = [d for d in self.diagnostics if d.launch not in condoned]
        for index, refusals in condoned.items():
            one = self.judged[index]
            if one is not None:
                if one.condoned is None or one.condoned[0] != refusals:
                    one.condoned = refusals, self.judged_again(one, refusals)
                changed += one.condoned[1]
                changed += self.said(one, index)[len(one.diagnostics) :]
        return changed

    def judged_again(self, one: Judged, condoned: Condoned) -> list[Diagnostic]:
        """What is found in a launch where this refuses nothing."""
        verdict = judge(
            one.launch, one.assumed.worlds, self.models, self.configs, release_named=one.assumed.release_named,
            build=one.assumed.build, ask_older=self.ask_older, runs=one.verdict.runs, condoned=condoned,
        )  # fmt: skip
        return diagnostics_of(one.launch, one.index, verdict, self.configs)

    def before(self, clue: Clue) -> str:
        at = clue.place.start
        if clue.place.document != self.document.name:
            return ""
        at = at if self.standing is None else self.standing.offset(at)
        return self.document.text[max(at - BEFORE, 0) : at]

    def anchor(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic with places in the text, as those of launches are."""
        return diagnostic if self.standing is None else diagnostic.turned(self.standing.anchor)

    def in_text(self, diagnostic: Diagnostic) -> Diagnostic:
        return diagnostic if self.standing is None else diagnostic.turned(self.standing.place)

    @property
    def may_belong_together(self) -> bool:
        """Whether launches say that they are of several."""
        return len([one for one in self.judged if one is not None and one.tells_role]) > 1

    def report(self, index: int) -> LaunchReport:
        """The report of a launch, with places in the text."""
        one, launch = self.judged[index], partial(self.document.launches.__getitem__, index)
        if one is None:
            return unjudged(launch())
        main = partial(_main_run, launch, one.verdict, self.models, self.configs)
        return LaunchReport(launch, one.assumed.worlds, main, one.verdict, partial(_resolved, launch, self.models))


def _numbered(diagnostic: Diagnostic, before: int, now: int) -> Diagnostic:
    """The diagnostic of a launch that was the `before`th of its document and is now the `now`th."""
    return replace(diagnostic, key=diagnostic.key.replace(f":{before}:", f":{now}:", 1), launch=now)


def _without_sglang(document: Document, options: Options, workspace: Workspace) -> Iterator[Diagnostic]:
    """Diagnostics about directives and settings that name an SGLang by a path where none can be read."""
    for directive, path in directed_paths(document.directives):
        found, why = workspace.sglang_at(document.name, path)
        if found is None:
            message = f"`{path}` {why}: launches are checked as if this comment named no SGLang."
            yield Diagnostic(
                UNKNOWN_DIRECTIVE, UNKNOWN_DIRECTIVE.severity, message, directive.place, f"no-sglang:{path}"
            )
    if not document.launches:
        return
    for path, source in dict.fromkeys(
        (t.sglang, t.release_from) for t in (*options.targets, options.otherwise) if t.sglang
    ):
        found, why = workspace.sglang_at(document.name, path)
        if found is None:
            message = f"`{path}` ({source}) {why}: launches are checked as if no SGLang were named."
            yield Diagnostic(RELEASE_NOT_SHIPPED, "warning", message, document.launches[0].place, f"no-sglang:{path}")


def _unread(
    document: Document, options: Options, workspace: Workspace, named_by: Callable[[], set[str]]
) -> Iterator[Diagnostic]:
    """What is said of an SGLang at hand that cannot be read, where a launch would be checked as on it."""
    said = workspace.unread_sglang(document.name, options.python) if document.launches else ""
    after = workspace.release(document.name, options.python)
    if said and not {NOT_NAMED, after[1] if after else NOT_NAMED}.isdisjoint(named_by()):
        message = f"{said}: launches are checked as if it were not there."
        rule, place = RELEASE_NOT_SHIPPED, document.launches[0].place
        yield Diagnostic(rule, rule.severity, message, place, "unread-sglang")


def _binder(document: Document, workspace: Workspace, launch: Launch, release: Release) -> Callable[[int], Binding]:
    """A function that binds the words of one of the launch's variants."""
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
) -> tuple[Verdict, bool]:
    """The verdict on the launch, and whether it was reached just now with the launch's own words."""
    key = launch_key(launch, assumed, configs)
    entry = cache.get(key)
    if entry is not None and any(models(path) != facts for path, facts in entry.models.items()):
        entry = None
    if entry is not None and not (ask_older and entry.verdict.older_unasked):
        return entry.verdict, False
    asked: dict[str, ModelFacts | None] = dict(entry.models) if entry is not None else {}
    runs = entry.verdict.runs if entry is not None else ()

    def noted(path: str) -> ModelFacts | None:
        asked[path] = models(path)
        return asked[path]

    verdict = judge(
        launch, assumed.worlds, noted, configs, release_named=assumed.release_named, build=assumed.build,
        ask_older=ask_older, runs=runs,
    )  # fmt: skip
    cache.put(key, Entry(verdict, asked))
    return verdict, not runs


def _sources(document: Document, workspace: Workspace, depends_on: set[str]) -> tuple[ModelSource, ConfigSource]:
    def configs(path: str) -> tuple[str, str] | None:
        found = workspace.read(document.name, path)
        depends_on.add(found[0] if found else path)
        return found

    return partial(workspace.model, document.name), configs


def _main_run(read: Callable[[], Launch], verdict: Verdict, models: ModelSource, configs: ConfigSource) -> Run:
    """The likeliest run, bound to this launch's own words."""
    main, launch = verdict.main, read()
    binding = bind_variant(launch, main.variant, main.world.release, configs)
    judged = run(launch, main.variant, main.world, models, binding, bare=is_open(launch, binding))
    return Run(launch.variants[judged.variant], judged.world, judged.binding, judged.resolution)


def _resolved(
    read: Callable[[], Launch], models: ModelSource, variant: int, world: World, binding: Binding
) -> RunResult:
    """What a variant resolves to in a world if its words bind like this."""
    launch = read()
    return run(launch, variant, world, models, binding, bare=is_open(launch, binding))


# --- the document's own findings ---------------------------------------------------------------------------------------


def _problem(problem: Problem) -> Diagnostic:
    rule = RULES[problem.rule]
    related = tuple(Related(place, text) for place, text in problem.related)
    key = f"{rule.name}:{problem.message}"
    return Diagnostic(rule, rule.severity, problem.message, problem.place, key, related=related, source=problem)


def _unknown_release(named: Named[Release], launch: Launch) -> Diagnostic | None:
    """The diagnostic, once a release, about a release that is not shipped or not followed completely."""
    release, known = named.value, catalog_of(named.value).release
    place = named.place or launch.place
    if release.stock > newest():
        message = f"SGLang {release} is newer than any release that spec-lsp knows: what {known} does not have is told as a warning only."
    elif release < releases()[0]:
        message = (
            f"SGLang {release} ({named.source}) is older than any release that spec-lsp knows: the launch is checked against the flags of "
            f"{known}, and a flag that no known release has may be one of {release}'s."
        )
    elif known < OLDEST_MODELLED:
        how = (
            f"spec-lsp follows what {OLDEST_MODELLED} does the same, but not its adjustments for single models: it may refuse "
            "more than is told."
            if known >= OLDEST_FOLLOWED
            else "spec-lsp knows the flags and their values but not what it decides from them: the launch is checked by its flags only."
        )
        message = f"Of SGLang {release} ({named.source}) {how} From {OLDEST_MODELLED} on it is checked whole."
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
