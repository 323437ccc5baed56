"""`analyse`: all that is said of one document."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import partial

from spec_lsp.analysis.diagnostics import Naming, diagnostics_of, in_order, with_names
from spec_lsp.analysis.environment import variables_of
from spec_lsp.analysis.gpus import gpu_count_of
from spec_lsp.analysis.ignores import apply_ignores
from spec_lsp.analysis.judge import ConfigSource, Judged, ModelSource, Verdict, bind_variant, is_open, judge, run
from spec_lsp.analysis.report import Analysis, Diagnostic, LaunchReport, Options, Related, Run, Workspace, World
from spec_lsp.analysis.rules import RELEASE_NOT_SHIPPED
from spec_lsp.analysis.worlds import Assumed, Named, assume, catalog_release, newest
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import RULES
from spec_lsp.syntax.launch import Document, Launch, Problem, Variant
from spec_lsp.syntax.word import Word


class Cache:
    """Verdicts by what a launch reads, so that only the launch being typed in is judged again. Clear it when models change."""

    def __init__(self, size: int = 2048) -> None:
        self._size = size
        self._verdicts: OrderedDict[Hashable, Verdict] = OrderedDict()

    def get(self, key: Hashable) -> Verdict | None:
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def put(self, key: Hashable, verdict: Verdict) -> None:
        self._verdicts[key] = verdict
        if len(self._verdicts) > self._size:
            self._verdicts.popitem(last=False)

    def clear(self) -> None:
        self._verdicts.clear()


def analyse(document: Document, options: Options, workspace: Workspace, cache: Cache | None = None) -> Analysis:
    """Judge every launch of a document. Pure but for what `workspace` reads."""
    cache = cache if cache is not None else Cache()
    naming = document_names(document, workspace)
    depends_on = {naming(name) for name in document.depends_on}
    diagnostics = [_problem(p) for p in document.problems]
    reports = []
    unknown: dict[Release, Diagnostic | None] = {}
    for index, launch in enumerate(document.launches):
        assumed = assume(launch, document.directives, options, workspace, document.name)
        models, configs = _sources(document, workspace, depends_on)
        verdict = _judged(launch, assumed, models, configs, cache)
        diagnostics += diagnostics_of(launch, index, verdict, configs)
        diagnostics += variables_of(document, launch, index, assumed)
        bind = partial(bind_variant, launch, release=verdict.main.world.release, configs=configs)
        diagnostics += gpu_count_of(document, launch, index, verdict, bind)
        for named in assumed.releases:
            unknown.setdefault(named.value, _unknown_release(named, launch))
        main = partial(_main_run, launch, verdict, models, configs)
        reports.append(LaunchReport(launch, assumed.worlds, main, verdict, partial(_resolved, launch, models)))
    diagnostics += filter(None, unknown.values())
    diagnostics = [d for d in (with_severity(d, options) for d in diagnostics) if d is not None]
    diagnostics = [with_names(d, naming) for d in diagnostics]
    kept, ignored = apply_ignores(document, diagnostics, honour=options.honour_ignores)
    return Analysis(document, in_order(kept), tuple(reports), ignored, frozenset(depends_on))


def document_names(document: Document, workspace: Workspace) -> Naming:
    """The names of the documents that this one's places lie in."""
    names = {document.name: document.name}

    def naming(name: str) -> str:
        if name not in names:
            found = workspace.read(document.name, name)
            names[name] = found[0] if found else name
        return names[name]

    return naming


def _judged(launch: Launch, assumed: Assumed, models: ModelSource, configs: ConfigSource, cache: Cache) -> Verdict:
    key = launch_key(launch, assumed, configs)
    verdict = cache.get(key)
    if verdict is None:
        verdict = judge(launch, assumed.worlds, models, configs, release_named=assumed.release_named)
        cache.put(key, verdict)
    return verdict


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


def _resolved(launch: Launch, models: ModelSource, variant: int, world: World, binding: Binding) -> Judged:
    """What a variant resolves to in a world if its words bind like this."""
    return run(launch, variant, world, models, binding, bare=is_open(launch, binding))


# --- what a launch reads -----------------------------------------------------------------------------------------------


def launch_key(launch: Launch, assumed: Assumed, configs: ConfigSource) -> Hashable:
    """Everything a verdict depends on, without places."""
    return (
        launch.program,
        assumed.worlds,
        assumed.release_named,
        tuple(_variant_key(v, configs) for v in launch.variants),
    )


def _variant_key(variant: Variant, configs: ConfigSource) -> Hashable:
    texts = tuple(_word_key(w) for w in variant.words)
    env = tuple((name, _word_key(word)) for name, word in variant.env.items()) if variant.env else ()
    files = tuple((f.name, f.content.text) for f in variant.files)
    named = [texts[i + 1] for i, text in enumerate(texts[:-1]) if text == "--config"]
    return texts, env, files, tuple(configs(path) for path in named if isinstance(path, str))


def _word_key(word: Word) -> Hashable:
    """The word's text, or its known parts, what is unknown in it, and whether it may be many words."""
    text = word.text
    return text if text is not None else (word.splat, tuple((f.text, f.reason) for f in word.fragments))


# --- the document's own findings ---------------------------------------------------------------------------------------


def _problem(problem: Problem) -> Diagnostic:
    rule = RULES[problem.rule]
    related = tuple(Related(place, text) for place, text in problem.related)
    key = f"{rule.name}:{problem.message}"
    return Diagnostic(rule, rule.severity, problem.message, problem.place, key, related=related, source=problem)


def _unknown_release(named: Named[Release], launch: Launch) -> Diagnostic | None:
    """What is said once of a release that is not shipped, where it is named."""
    release, known = named.value, catalog_release(named.value)
    if release == known:
        return None
    if release > newest():
        message = f"SGLang {release} is newer than any release spec-lsp knows: flags and values unknown to {known} are warnings only."
    else:
        message = f"spec-lsp does not know SGLang {release} ({named.source}): the launch is checked as {known}."
    place = named.place or launch.place
    return Diagnostic(RELEASE_NOT_SHIPPED, RELEASE_NOT_SHIPPED.severity, message, place, f"unknown-release:{release}")


def with_severity(diagnostic: Diagnostic, options: Options) -> Diagnostic | None:
    """The diagnostic with the severity the settings give its rule; None when it is off."""
    wanted = options.severities.get(diagnostic.rule.name)
    if wanted is None:
        return diagnostic
    return None if wanted == "off" else replace(diagnostic, severity=wanted)


def errors(diagnostics: Iterable[Diagnostic]) -> int:
    return sum(d.severity == "error" for d in diagnostics)
