"""The flags that programs around SGLang's parser take for themselves, by release. All others go to that parser and are checked as usual.

The benches put theirs beside SGLang's in one parser (`BenchArgs.add_cli_args` of `sglang/bench_*.py`, since 0.5.15 `sglang/benchmark/*.py`;
`sglang/compile_deep_gemm.py`; `sglang/srt/weight_cache/daemon.py`). Dynamo reads its own first and passes on the rest
(`dynamo/sglang/args.py:parse_args`). A launch shows the release of SGLang, not of Dynamo: the flags are those of the Dynamo releases made
for this SGLang or, where none is, for the SGLang before and after it. `python -m tests.sources.own` makes the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from spec_lsp.catalog.argparse_rules import Arg
from spec_lsp.catalog.model import Catalog
from spec_lsp.catalog.release import Release
from spec_lsp.syntax.launch import BENCHES, Program

Values = str
"""How many words follow a flag: none (""), one ("1"), any number ("*")."""

OTHER_ENGINE = frozenset(("--image-diffusion-worker", "--video-generation-worker"))
"""Flags with which Dynamo passes the rest to another parser than SGLang's."""

_FAMILIES = ("--dyn-", "--no-dyn-", "--router-", "--no-router-")
"""Beginnings of Dynamo's own flags: with each of its versions come more."""


def has_own(program: Program) -> bool:
    """Whether a program takes flags for itself and hands the rest to SGLang's parser."""
    return program == "dynamo" or program in BENCHES


@cache
def own(program: Program, release: Release) -> Mapping[str, Values]:
    """The flags that a program takes for itself, where it starts this release of SGLang."""
    if program == "dynamo":
        return {flag: values for version in _made_for(release) for flag, values in _at(_dynamo()["flags"], version)}
    start = f"{program} "
    flags = {name.removeprefix(start): found for name, found in _benches().items() if name.startswith(start)}
    first = Release.parse("0.5.6")
    return {flag: facts["values"] for flag, facts in _at(flags, max(release, first))}


def _at(flags: Mapping[str, Mapping[str, Any]], release: Release) -> Iterator[tuple[str, Any]]:
    """Each flag that there is in a release, of those told where they change."""
    for flag, changes in flags.items():
        known = [what for since, what in changes.items() if Release.parse(since) <= release]
        if known and known[-1] is not None:
            yield flag, known[-1]


def _made_for(release: Release) -> list[Release]:
    """The versions of Dynamo that are made for a release of SGLang, or else for the ones before and after it."""
    pins = [(Release.parse(version), Release.parse(pin)) for version, pin in _dynamo()["made_for"].items()]
    before = max((pin for _, pin in pins if pin[:3] <= release[:3]), default=None)
    after = min((pin for _, pin in pins if pin[:3] >= release[:3]), default=None)
    return [version for version, pin in pins if pin in (before, after)]


def made_for(version: str) -> Release | None:
    """The release of SGLang that a version of Dynamo (`1.3.0`, whatever follows) is made for; None where nobody knows."""
    pins = (pin for told, pin in _dynamo()["made_for"].items() if Release.parse(told)[:3] == Release.parse(version)[:3])
    return Release.parse(pin) if (pin := next(pins, None)) else None


def elsewhere(program: Program, flag: str) -> str:
    """In which of its versions Dynamo has a flag that it does not have here, as the end of a sentence; empty where none has it."""
    changes = _dynamo()["flags"].get(flag, {}) if program == "dynamo" else {}
    if not changes:
        return ""
    since = next(iter(changes))
    until = next((version for version, values in changes.items() if values is None), None)
    return f"has from {since} on" if until is None else f"had before {until}"


@cache
def _newest() -> Release:
    """The newest SGLang that some version of Dynamo is made for."""
    return max(map(Release.parse, _dynamo()["made_for"].values()))


@cache
def _dynamo() -> Mapping[str, Mapping[str, Any]]:
    return _data("dynamo.json")


@cache
def _benches() -> Mapping[str, Mapping[str, Any]]:
    return _data("benches.json")


def _data(name: str) -> Mapping[str, Mapping[str, Any]]:
    read: Mapping[str, Mapping[str, Any]] = json.loads(
        Path(__file__).with_name("data").joinpath(name).read_text("utf-8")
    )
    return read


def _families(program: Program, release: Release) -> tuple[str, ...]:
    return _FAMILIES if program == "dynamo" and release[:3] > _newest()[:3] else ()


def is_strict(program: Program, args: Sequence[Arg]) -> bool:
    """Whether flags that are not the program's own are passed to SGLang's parser."""
    return has_own(program) and not any(a.text in OTHER_ENGINE for a in args)


def is_own(program: Program, release: Release, flag: str) -> bool:
    """Whether a program takes a flag for itself, including its abbreviations."""
    return flag.startswith(_families(program, release)) or any(n.startswith(flag) for n in own(program, release))


def without_own(catalog: Catalog, program: Program, args: Sequence[Arg]) -> list[Arg]:
    """The words without the program's own flags and their values. Flags that SGLang's parser has under the same name are kept."""
    names, families = own(program, catalog.release), _families(program, catalog.release)
    kept: list[Arg] = []
    at = 0
    while at < len(args):
        arg = args[at]
        flag = (arg.text if arg.text is not None else arg.word.known_start).partition("=")[0]
        mine = flag in names or flag.startswith(families)
        at += 1
        if not mine or flag in catalog.by_spelling:
            kept.append(arg)
            continue
        joined = "=" in (arg.text if arg.text is not None else arg.word.known_start)
        values = "" if joined else names.get(flag, "?")
        while values and at < len(args) and _may_be_value(args[at]):
            at += 1
            if values != "*":
                break
    return kept


def _may_be_value(arg: Arg) -> bool:
    return not arg.word.splat if arg.text is None else not arg.text.startswith("-")
