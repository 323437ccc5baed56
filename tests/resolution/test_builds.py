"""Builds of somebody's own: as their nearest release where no function is changed, and uncertain only where one is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from itertools import count

import pytest

from spec_lsp.analysis.argv import Answer, resolve_argv
from spec_lsp.catalog import store
from spec_lsp.catalog.builds import OwnBuild
from spec_lsp.catalog.fingerprints import Definition, bare, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.cli.arguments import parser
from spec_lsp.cli.catalog_compare import shown
from spec_lsp.cli.resolve import typed_launch
from spec_lsp.facts.hardware import find
from spec_lsp.resolution.builds import Followed, comparison
from spec_lsp.resolution.differences import differences
from spec_lsp.resolution.engine import RULES
from tests.resolution.test_examples import cases, model

BASE = Release.parse("0.5.23")
NUMBERS = count()
HICACHE = "srt/arg_groups/hicache_hook.py:handle_hicache"


def build_of(base: Release, changed: Mapping[str, str | None], uses: Mapping[str, set[str]] | None = None) -> Release:
    """A build with a release's functions but for some of other fingerprints (None: without them)."""
    prints = {k: v for k, v in {**shipped(base), **changed}.items() if v is not None}
    functions = {k: Definition(k, v, frozenset((uses or {}).get(k, ())), 1, 1) for k, v in prints.items()}
    release = base._replace(local=f"test{next(NUMBERS)}")
    variables = tuple(store.environment(base).values())
    store.builds[release] = OwnBuild(release, store.load(base).flags, variables, functions)
    return release


@pytest.fixture(autouse=True)
def _no_more_builds() -> Iterator[None]:
    before = dict(store.builds)
    yield
    store.builds.clear()
    store.builds.update(before)


def answer(command: str, release: Release | None = None) -> Answer:
    arguments = parser().parse_args(shlex.split(command)[1:])
    env, program, argv = typed_launch(arguments)
    hardware = find(arguments.gpu)
    assert hardware is not None
    named = release or Release.parse(arguments.sglang)
    return resolve_argv(tuple(argv), env, named, hardware, models=model, files=lambda _: None, program=program)


def told(said: Answer) -> list[tuple[str, str, str]]:
    return [(s.merged.found.rule.name, s.merged.severity, s.message) for s in said.findings]


def bad(name: str) -> str:
    return next(command for rule, command in cases("bad") if rule == name and "--sglang 0.5.23" in command)


SOME = [(name, command) for name, command in cases("bad") if "--sglang 0.5.23" in command][::9]


@pytest.mark.parametrize(("name", "command"), SOME)
def test_a_build_without_changes_is_its_release(name: str, command: str) -> None:
    release = build_of(BASE, {})
    assert list(differences(release)) == []
    as_built, stock = answer(command, release), answer(command)
    assert as_built.outcome == stock.outcome
    assert [t[:2] for t in told(as_built)] == [t[:2] for t in told(stock)]
    assert name in [t[0] for t in told(as_built)]


def test_a_changed_handler_loses_its_own_certainty_alone() -> None:
    release = build_of(BASE, {HICACHE: "0"})
    (difference,) = differences(release)
    assert (difference.place, difference.kind, difference.certain) == (HICACHE, "changed", False)
    assert difference.handlers == ("hicache.handle_hicache",)
    names = {r.name for r in difference.rules}
    assert "linker-with-hierarchical-cache" in names
    said = answer(bad("linker-with-hierarchical-cache"), release)
    assert said.outcome != "refused"
    ((severity, message),) = [t[1:] for t in told(said) if t[0] == "linker-with-hierarchical-cache"]
    assert severity == "warning"
    assert "This build changed `handle_hicache`" in message
    for name, command in SOME:
        if name not in names and RULES[name].topic not in ("hicache", "late"):
            # a late rule may hang on what the handler adjusts
            own, stock = answer(command, release), answer(command)
            assert [t[:2] for t in told(own) if t[1] == "error"] == [t[:2] for t in told(stock) if t[1] == "error"]


def test_what_a_changed_handler_adjusts_is_unknown() -> None:
    command = "spec-lsp resolve --sglang 0.5.23 --gpu h100 -- python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
    key = next(k for k in shipped(BASE) if bare(k) == "_sampling_backend_default")
    stock, own = answer(command), answer(command, build_of(BASE, {key: "0"}))
    assert stock.main is not None
    assert own.main is not None
    assert stock.main.resolution is not None
    assert own.main.resolution is not None
    assert stock.main.resolution.config.known("sampling_backend")
    config = own.main.resolution.config
    assert not config.known("sampling_backend")
    assert "this build changed `_sampling_backend_default`" in config.unknown()["sampling_backend"]
    assert config.known("attention_backend")


def followed(release: Release, place: str = "hicache_hook.py:handle_hicache") -> Followed:
    return comparison(release).followed(place)


def test_a_function_that_it_uses_counts_but_for_what_others_follow() -> None:
    helper = "srt/arg_groups/hicache_hook.py:_own_helper"
    release = build_of(BASE, {helper: "0"}, {HICACHE: {"_own_helper"}})
    (difference,) = differences(release)
    assert (difference.place, difference.kind, difference.users) == (helper, "new", ("handle_hicache",))
    assert difference.handlers == ("hicache.handle_hicache",)
    assert followed(release).functions == (helper,)
    other = next(k for k in shipped(BASE) if bare(k) == "handle_hicache_ratio_default")
    release = build_of(BASE, {other: "0"}, {HICACHE: {bare(other)}})
    assert [d.place for d in differences(release)] == [other]
    assert followed(release).state == "same"


def test_a_function_of_another_release_is_followed_as_there() -> None:
    """What 0.5.23 changed and a build still has as 0.5.22 has it."""
    older = Release.parse("0.5.22")
    prints = shipped(older)
    changed = {
        k: prints[k] for k in prints if k.startswith("srt/arg_groups/") and shipped(BASE).get(k, prints[k]) != prints[k]
    }
    assert changed
    for key, fingerprint in changed.items():
        release = build_of(BASE, {key: fingerprint})
        (difference,) = differences(release)
        assert difference.kind == "changed"
        assert older in difference.releases
        for place in comparison(release).build.functions:
            state = followed(release, place).state
            assert state in ("same", "changed") or followed(release, place).release == older


def test_a_function_that_is_gone() -> None:
    release = build_of(BASE, {HICACHE: None})
    (difference,) = differences(release)
    assert (difference.place, difference.kind, difference.certain) == (HICACHE, "gone", False)
    assert "hicache.handle_hicache" in difference.handlers
    assert followed(release).state == "gone"
    said = answer(bad("linker-with-hierarchical-cache"), release)
    assert ("linker-with-hierarchical-cache", "warning") in [t[:2] for t in told(said)]


def test_a_function_that_is_new_or_moved() -> None:
    fresh, pipeline = "srt/arg_groups/own_hook.py:handle_own", "srt/arg_groups/pipeline.py:run_resolution_pipeline"
    release = build_of(BASE, {fresh: "0"}, {pipeline: {"handle_own"}})
    (difference,) = differences(release)
    assert (difference.kind, difference.users, difference.handlers) == ("new", ("run_resolution_pipeline",), ())
    moved = "srt/arg_groups/own_hook.py:handle_hicache"
    assert list(differences(build_of(BASE, {HICACHE: None, moved: shipped(BASE)[HICACHE]}))) == []


def test_what_is_shown_of_a_build() -> None:
    fresh, pipeline = "srt/arg_groups/own_hook.py:handle_own", "srt/arg_groups/pipeline.py:run_resolution_pipeline"
    gone = next(k for k in shipped(BASE) if bare(k) == "handle_ssl_validation")
    release = build_of(BASE, {fresh: "0", HICACHE: "0", gone: None}, {pipeline: {"handle_own"}})
    lines = list(shown(release))
    assert lines[0] == f"This is no release of SGLang. It is told as {release}: nearest is 0.5.23."
    titles = {line.partition(":")[0]: line.rpartition(": ")[2] for line in lines if line and line[0] not in " T"}
    assert titles == {
        "Flags": "none",
        "Flags of which the sources do not show everything": "none",
        "Environment variables": "none",
        "Functions of its own": "1",
        "Functions of another release, followed as there": "none",
        "New functions, which nothing follows": "1",
        "Functions that are gone": "1",
    }
    assert any(
        line.startswith(f"  {HICACHE}; followed by hicache.handle_hicache; rules: linker-config") for line in lines
    )
    assert f"  {fresh}; used by run_resolution_pipeline" in lines
    assert any(line.startswith(f"  {gone}; followed by serving.handle_ssl_validation; rules: ") for line in lines)
