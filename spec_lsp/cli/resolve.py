"""`spec-lsp resolve`: what SGLang will run with for a launch typed at the prompt, and why."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from spec_lsp.analysis import memory
from spec_lsp.analysis.argv import Answer, Said, resolve_argv
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.report import LaunchReport, Run
from spec_lsp.analysis.resolved import Text, causes_of, cells, decided_rows, folded, is_long, rules_of, typed_rows
from spec_lsp.analysis.rules import all_rules
from spec_lsp.analysis.run import RunResult
from spec_lsp.analysis.wording import because, value_shown
from spec_lsp.analysis.worlds import is_path
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, nearest
from spec_lsp.cli.errors import CLEAN, FINDINGS, UsageError
from spec_lsp.cli.formats.text import headline
from spec_lsp.cli.printed import harmless, in_utf_8, json_text
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.surroundings import Folders, Surroundings
from spec_lsp.cli.table import fold, table, width
from spec_lsp.cli.worlds import read_gpu, read_release, sglang_named
from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.known import NotKnown
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Config
from spec_lsp.syntax.launch import Program

_VARIABLE = expression(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """The launch and the world it is asked for; `…_from` says where release and hardware are named (empty: nowhere)."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    program: Program
    release: Release | None
    release_from: str
    hardware: Hardware | None
    hardware_from: str


@dataclass(frozen=True, slots=True)
class Told:
    """One field: its value and reason. `typed` and `differs` (from the default) decide whether it is shown."""

    field: str
    value: Any
    known: bool
    why: tuple[str, ...]
    typed: bool
    differs: bool
    agreed: bool
    """Whether every possible world agrees on the value."""


def run(arguments: argparse.Namespace) -> int:
    """Print the resolved configuration. Exit code 1 when SGLang refuses the launch."""
    all_rules()
    document = str(Path.cwd() / "argv")
    around = Folders(Path.cwd(), models=arguments.models, typed=True).of(document)
    asked = _asked(arguments, around, document)
    answer = resolve_argv(
        asked.argv,
        asked.env,
        asked.release,
        asked.hardware,
        models=partial(around.workspace.model, document),
        files=partial(_file, around, document),
        program=asked.program,
    )
    if arguments.json:
        print(
            json_text(_as_json(asked, answer, list(_rows(answer, arguments.all))), indent=1, default=str),
            file=in_utf_8(sys.stdout),
        )
    else:
        print("\n".join(_lines(asked, answer, arguments.all, style_for(sys.stdout, arguments.color))))
    return FINDINGS if answer.outcome in ("refused", "bad-arguments") else CLEAN


# --- what is asked ---------------------------------------------------------------------------------------------------


def _asked(arguments: argparse.Namespace, around: Surroundings, document: str) -> Asked:
    env, program, argv = typed_launch(arguments)
    if not argv:
        raise UsageError("there is no launch; write it after `--`: spec-lsp resolve -- --model-path MODEL …")
    release, release_from = _release(arguments.sglang, around, document)
    gpu, gpu_from = (arguments.gpu, "--gpu") if arguments.gpu else (around.settings.gpu, "settings")
    hardware = read_gpu(gpu) if gpu else None
    return Asked(tuple(argv), env, program, release, release_from, hardware, gpu_from if hardware else "")


def typed_launch(arguments: argparse.Namespace) -> tuple[dict[str, str], Program, list[str]]:
    """The environment, the program and its words behind `--`."""
    words = [*arguments.argv]
    if words[:1] == ["--"]:
        words.pop(0)
    env = dict(_pair(text) for text in arguments.env)
    env.update(_leading_variables(words))
    return env, *entry_point(words)


def _pair(text: str) -> tuple[str, str]:
    if not _VARIABLE.fullmatch(text):
        raise UsageError(f"`--env {text}`: write it as NAME=VALUE")
    name, _, value = text.partition("=")
    return name, value


def _leading_variables(words: list[str]) -> Iterator[tuple[str, str]]:
    """Variables before the command, as in a shell; they are taken off `words`."""
    while words and (words[0] == "env" or _VARIABLE.fullmatch(words[0])):
        word = words.pop(0)
        if word != "env":
            yield _pair(word)


def entry_point(words: list[str]) -> tuple[Program, list[str]]:
    """The program and its own words; all are its words if there is no entry point in front."""
    match words:
        case [python, "-m", "sglang.launch_server", *argv] if os.path.basename(python).startswith("python"):
            return "launch_server", argv
        case ["sglang", "serve", *argv]:
            return "serve", argv
        case ["sglang.launch_server", *argv]:
            return "launch_server", argv
    return "launch_server", words


def _release(named: str | None, around: Surroundings, document: str) -> tuple[Release | None, str]:
    """The release and where it is named: the command line, the settings, the workspace's pins; None if nowhere."""
    for written, source in ((named and sglang_named(named), "--sglang"), (around.settings.sglang, "settings")):
        if written:
            found = around.workspace.sglang_at(document, written)[0] if is_path(written) else read_release(written)
            if found is not None:
                return found, source
    at_hand = around.workspace.release(document, around.settings.python)
    return at_hand if at_hand else (None, "")


def _file(around: Surroundings, document: str, path: str) -> str | None:
    found = around.workspace.read(document, path)
    return found[1] if found else None


# --- what comes out of it --------------------------------------------------------------------------------------------


def _rows(answer: Answer, every: bool) -> Iterator[Told]:
    """The fields of the likeliest run, typed ones first, then what SGLang chose, by name."""
    judged = answer.main
    if judged is None or judged.resolution is None:
        return
    rows = [_row(judged, answer, name) for name in _fields(judged)]
    shown = [r for r in rows if every or r.typed or r.differs]
    yield from sorted(shown, key=lambda r: (not r.typed, not r.differs, r.field))


def _fields(judged: RunResult) -> list[str]:
    assert judged.resolution is not None
    names = {**judged.resolution.config.fields(), **judged.binding.settings, **judged.resolution.config.history}
    return list(dict.fromkeys([*_defaults(judged), *names]))


def _defaults(judged: RunResult) -> Mapping[str, Any]:
    return load(nearest(judged.world.release)).defaults


def _row(judged: RunResult, answer: Answer, name: str) -> Told:
    assert judged.resolution is not None
    config, defaults = judged.resolution.config, _defaults(judged)
    known = config.known(name)
    value = getattr(config, name) if known else None
    why = _why(judged, name)
    typed = name in judged.binding.settings
    differs = known and name in defaults and (value != defaults[name] or type(value) is not type(defaults[name]))
    return Told(name, value, known, why, typed, differs, not known or name in answer.resolved)


def _why(judged: RunResult, name: str) -> tuple[str, ...]:
    """The chain of reasons, first to last."""
    assert judged.resolution is not None
    config = judged.resolution.config
    setting = judged.binding.settings.get(name)
    chain = [f"`{setting.flag.known_start or config.flag(name)}`"] if setting else ["default"]
    chain += [decision.step.reason for decision in config.history.get(name, ())]
    try:
        getattr(config, name)
    except NotKnown as lacking:
        chain.append(because(lacking, setting))
    return tuple(dict.fromkeys(chain))


def _lines(asked: Asked, answer: Answer, every: bool, style: Style) -> Iterator[str]:
    """The verdict with the refusals of the launch, what was typed, what SGLang decides; with `every` also the rest."""
    yield from (_verdict(answer, style), "")
    if answer.findings:
        yield from (*(_finding(said, style) for said in answer.findings), "")
    yield from (f"{label:<10}{harmless(text)}" for label, text in _assumed(asked, answer))
    if answer.report is not None and answer.report.main().resolution is not None:
        yield from _tables(answer, answer.report, every, style)
    if config := _config(answer):
        for sentence in memory.lines(config):
            yield from ("", *fold(sentence, width()))


def _tables(answer: Answer, report: LaunchReport, every: bool, style: Style) -> Iterator[str]:
    run, why, text = report.main(), causes_of(report), Text(links=False)
    rows = typed_rows(run, why), decided_rows(run, why)
    differing = {r.field for of_kind in rows for r in of_kind} - answer.resolved.keys() if answer.resolved else set()
    for title, of_kind in zip(("What you typed", "What SGLang decides for this launch"), rows, strict=True):
        if of_kind:
            shown = [[harmless(c) for c in _cells(cells(row, run, text), row.field in differing)] for row in of_kind]
            yield from ("", style.paint(title, "bold"), *table(shown, style, ("setting", "value", "why")))
    for row in (row for of_kind in rows for row in of_kind if is_long(row.value)):
        yield from ("", *fold(harmless(f"{row.name}: {_plain(row.value)}"), width()))
    rest = [row for row in _rows(answer, True) if row.field not in {r.field for of_kind in rows for r in of_kind}]
    if every:
        shown = [
            [harmless(c) for c in (row.field.replace("_", "-"), _plain(value_shown(row.value)))]
            for row in rest
            if row.known
        ]
        yield from ("", style.paint("What stays at its default", "bold"), *table(shown, style, ("setting", "value")))
    yield from _unknown(run, rest)
    if differing:
        yield from ("", "* other hardware or releases give another value: name them with --gpu and --sglang")
    if not every:
        yield from ("", "What stays at its default is left out: --all shows it.")


def _cells(cells: tuple[str, str, str], differs: bool) -> Iterator[str]:
    name, value, why = next(folded([cells]))
    yield from (name, _plain(value) + (" *" if differs else ""), why)


def _plain(value: str) -> str:
    """A value without its code marks, as it is in a table of its own."""
    return value[1:-1] if value.startswith("`") and value.endswith("`") else value


def _config(answer: Answer) -> Config | None:
    """The resolved configuration of the likeliest run."""
    return answer.main.resolution.config if answer.main is not None and answer.main.resolution is not None else None


def _unknown(run: Run, rest: Iterable[Told]) -> Iterator[str]:
    """What is unknown about the fields that no table shows, by reason."""
    assert run.resolution is not None
    reasons: dict[str, list[str]] = {}
    for row in rest:
        if not row.known:
            reasons.setdefault(row.why[-1], []).append(row.field.replace("_", "-"))
    for why, names in sorted(reasons.items()):
        yield from ("", *fold(harmless(f"Not known: {', '.join(sorted(names))}. {why}"), width()))


def _finding(said: Said, style: Style) -> str:
    rule, severity = said.merged.found.rule, said.merged.severity
    return headline(severity, f"{rule.name}[{rule.code}]", said.message, style)


def _assumed(asked: Asked, answer: Answer) -> Iterator[tuple[str, str]]:
    """The release, hardware and model that the answer is for, and where they are named."""
    world = answer.main.world if answer.main else None
    release = asked.release or (world.release if world else None)
    if release:
        stand_in = nearest(release)
        how = asked.release_from or "the newest known; name one with --sglang"
        taken = f"; read as {stand_in}, the nearest known" if stand_in != release else ""
        yield "SGLang", f"{release}  ({how}{taken})"
    yield "hardware", _hardware(asked, world)


def _hardware(asked: Asked, world: World | None) -> str:
    if asked.hardware:
        return f"{asked.hardware.title}  ({asked.hardware_from})"
    shown = f"not named; shown for {world.hardware.title}" if world and world.hardware else "not named"
    return f"{shown}  (name it with --gpu)"


def _verdict(answer: Answer, style: Style) -> str:
    text, kind = {
        "accepted": ("SGLang accepts this launch.", "good"),
        "refused": ("SGLang refuses this launch.", "error"),
        "bad-arguments": ("SGLang's command line refuses this launch.", "error"),
        "depends": (
            "SGLang accepts this launch in some of the possible worlds only; name release and hardware.",
            "warning",
        ),
    }.get(
        answer.outcome, ("Nothing speaks against this launch, but not all of it is known to spec-lsp.", "information")
    )
    return style.paint(text, kind)


def _as_json(asked: Asked, answer: Answer, rows: list[Told]) -> dict[str, Any]:
    from spec_lsp.cli.batch import finding_as_json

    world = answer.main.world if answer.main else None
    refused = answer.outcome in ("refused", "bad-arguments")
    why = causes_of(answer.report) if answer.report is not None else {}
    return {
        "outcome": answer.outcome,
        "assumed": {
            "sglang": str(asked.release or (world.release if world else "")) or None,
            "sglang_from": asked.release_from or None,
            "gpu": asked.hardware.name if asked.hardware else world.hardware.name if world and world.hardware else None,
            "gpu_from": asked.hardware_from or None,
        },
        "findings": [finding_as_json(said, asked.release, refused) for said in answer.findings],
        "memory": _memory(answer),
        "fields": {
            r.field: {
                "value": r.value,
                "known": r.known,
                "typed": r.typed,
                "agreed": r.agreed,
                "why": list(r.why),
                "decided_by": list(why.get(r.field, ())),
                "rules": [rule for rules in rules_of(r.field, answer.report.main()) for rule in rules],
            }
            for r in rows
            if answer.report is not None
        },
    }


def _memory(answer: Answer) -> dict[str, Any] | None:
    """Bytes of weights, bytes of KV cache for each token on a GPU, and the tokens that fit; null if unknown."""
    config = _config(answer)
    found = memory.of(config) if config is not None else None
    if found is None:
        return None
    return {
        "weights_bytes": found.weights,
        "kv_bytes_per_token": found.per_token,
        "tokens": found.tokens,
        "gpu_bytes": found.total,
        "assumes": memory.ASSUMES,
    }
