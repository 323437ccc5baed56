"""spec-lsp for programs: what SGLang will make of a launch, as plain data.

import spec_lsp

for finding in spec_lsp.check_text(script, sglang="0.5.23", gpu="b200"): print(finding.line + 1, finding.message)

Nothing is read from the disk, run or fetched: a launch's other files and its models are passed in. These names, their parameters and the
fields of their results are kept stable; nothing else in the package is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spec_lsp.analysis.argv import ARGV, Answer, Said, resolve_argv
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.fixes import apply, fixes_for
from spec_lsp.analysis.in_memory import InMemory
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.merge import Outcome
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Analysis, Applicability, Diagnostic
from spec_lsp.catalog.release import Release
from spec_lsp.facts import hardware
from spec_lsp.facts.hardware import Hardware
from spec_lsp.records import dataclass, field
from spec_lsp.resolution.engine import Severity
from spec_lsp.settings import Settings, options, targets
from spec_lsp.syntax.lines import LineIndex

__all__ = ["Finding", "Fix", "Remark", "Resolved", "check_text", "resolve"]


@dataclass(frozen=True, slots=True)
class Fix:
    """A verified fix. `text` is the whole checked text with the fix applied; None when the fix changes another file.

    applicability: "safe" keeps what the server runs, "unsafe" changes it, "display" must be done by a person.
    """

    title: str
    applicability: Applicability
    text: str | None


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says about a launch. `late`: SGLang notices only after it has loaded the weights."""

    rule: str
    code: str
    severity: Severity
    message: str
    late: bool


@dataclass(frozen=True, slots=True)
class Finding(Remark):
    """A finding at one place. Lines and characters count from 0, characters in code points; the end is exclusive.

    `file` is the name of the checked text, or of the passed file that contains the finding.
    """

    file: str
    line: int
    character: int
    end_line: int
    end_character: int
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """What SGLang's argument resolution makes of a launch.

    outcome: "accepted"; "refused"; "bad-arguments" (by the command line parser); "depends" (on the release or hardware that is not named);
    "unknown" (no refusal is known, but not everything is known). `fields` are the values that every possible world agrees on, by the name
    of SGLang's `ServerArgs` field; `reasons` say why a field has its value, first to last.
    """

    outcome: Outcome
    remarks: tuple[Remark, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return self.outcome == "accepted"


def check_text(
    text: str,
    name: str = "launch.sh",
    *,
    sglang: str | Sequence[str] = (),
    gpu: str | Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    fixes: bool = True,
) -> tuple[Finding, ...]:
    """The findings of `spec-lsp check` for a file called `name` (which decides how it is read: `launch.sh`, `compose.yaml`, `Dockerfile`,
    …).

    `sglang` and `gpu`: what it will run on; if several are given, each must accept. What the text itself names takes precedence over a
    single one. `files`: other files that it reads (`--config`, `source`), by their path relative to it. `models`: contents of config.json
    by the path or id that the launch names. `fixes=False` skips the search for fixes. Raises ValueError for an unknown release or GPU.
    """
    workspace = InMemory(files or {}, models or {})
    chosen, cache = _options(_several(sglang), _several(gpu)), Cache()
    analysis = analyse(read_document(name, text, workspace), chosen, workspace, cache)
    texts = {name: text, **workspace.files}
    return tuple(
        _finding(d, texts, _fixes(analysis, d, chosen, workspace, cache) if fixes else ()) for d in analysis.diagnostics
    )


def resolve(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    sglang: str | None = None,
    gpu: str | None = None,
    files: Mapping[str, str] | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
) -> Resolved:
    """What SGLang will run with for the arguments of `python -m sglang.launch_server`, and why.

    Without `sglang` or `gpu`, every release from 0.5.9 on or every kind of GPU is considered. `files` and `models` as for `check_text`.
    Raises ValueError for an unknown release or GPU.
    """
    workspace = InMemory(files or {}, models or {})
    answer = resolve_argv(
        argv,
        env or {},
        _release(sglang) if sglang else None,
        _hardware(gpu) if gpu else None,
        models=lambda path: workspace.model(ARGV, path),
        files=workspace.files.get,
    )
    return Resolved(answer.outcome, tuple(map(_remark, answer.findings)), dict(answer.resolved), _reasons(answer))


# --- in ----------------------------------------------------------------------------------------------------------------


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, (names,) if isinstance(names, str) else names))


def _options(releases: tuple[str, ...], gpus: tuple[str, ...]) -> Options:
    """A single release and GPU apply where the text names none; several are worlds that must all accept."""
    for named in releases:
        _release(named)
    for named in gpus:
        _hardware(named)
    if len(releases) > 1 or len(gpus) > 1:
        return options(Settings(targets=targets(releases, gpus)))
    return options(Settings(sglang="".join(releases), gpu="".join(gpus)))


def _release(named: str) -> Release:
    release = Release.read(named)
    if release is None:
        raise ValueError(f"{named!r} is not a release of SGLang (write 0.5.19)")
    return release


def _hardware(named: str) -> Hardware:
    found = hardware.find(named)
    if found is None:
        raise ValueError(f"{named!r} is not a GPU that spec-lsp knows: {', '.join(hardware.DEVICES)}")
    return found


# --- out ---------------------------------------------------------------------------------------------------------------


def _finding(diagnostic: Diagnostic, texts: Mapping[str, str], fixes: tuple[Fix, ...]) -> Finding:
    place, rule = diagnostic.place, diagnostic.rule
    index = LineIndex(texts.get(place.document, ""))
    return Finding(
        rule.name,
        rule.code,
        diagnostic.severity,
        diagnostic.message,
        diagnostic.late,
        place.document,
        *index.position(place.start),
        *index.position(place.end),
        fixes,
    )


def _fixes(
    analysis: Analysis, diagnostic: Diagnostic, chosen: Options, workspace: InMemory, cache: Cache
) -> tuple[Fix, ...]:
    own = analysis.document.name
    return tuple(
        Fix(
            fix.title,
            fix.applicability,
            apply(analysis.document.text, fix.edits) if {e.place.document for e in fix.edits} == {own} else None,
        )
        for fix in fixes_for(analysis, diagnostic, chosen, workspace, cache)
    )


def _remark(said: Said) -> Remark:
    rule = said.merged.found.rule
    return Remark(rule.name, rule.code, said.merged.severity, said.message, rule.late)


def _reasons(answer: Answer) -> dict[str, tuple[str, ...]]:
    """The reason of each agreed field that was decided rather than left at its default."""
    judged = answer.main
    if judged is None or judged.resolution is None:
        return {}
    config = judged.resolution.config
    typed = {
        name: f"`{setting.flag.known_start or config.flag(name)}`" for name, setting in judged.binding.settings.items()
    }
    decided = {name: [d.step.reason for d in decisions] for name, decisions in config.history.items()}
    return {
        name: tuple(dict.fromkeys([*([typed[name]] if name in typed else []), *decided.get(name, [])]))
        for name in {**typed, **decided}
        if name in answer.resolved
    }
