"""Asks SGLang about each launch of a document, on each of its ways, and reports the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from spec_lsp.analysis.check import document_names
from spec_lsp.analysis.diagnostics import named
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.messages import when_of
from spec_lsp.analysis.report import Analysis, LaunchReport
from spec_lsp.analysis.run import ModelSource, RunResult, is_open, run
from spec_lsp.analysis.worlds import NOT_NAMED
from spec_lsp.asking.devices import Device, device_for
from spec_lsp.asking.launches import Way, ways
from spec_lsp.asking.process import CannotAskError, Ready, SGLang
from spec_lsp.asking.verdicts import DISAGREEMENTS, Relation, Verdict
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.hardware import DEVICES, find
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Severity
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place
from spec_lsp.workspace import DiskWorkspace

USUAL = DEVICES["h100"]
"""The device that is simulated for a launch that names no GPU, on a machine without one."""
VERIFIED = "verified"
"""The origin of the world in which a launch is judged beside SGLang."""


@dataclass(frozen=True, slots=True)
class Told:
    """One thing to report about a launch, at a place of a document. `verdict` is the first way in which it holds, `code` what raised it."""

    place: Place
    severity: Severity
    message: str
    code: str
    verdict: Verdict


def devices(report: LaunchReport) -> list[tuple[Device, bool]]:
    """The devices to ask a launch on, each with whether the machine's own GPU is preferred: the GPUs that the launch names, or any.

    Raises CannotAskError for one that cannot be simulated.
    """
    given = dict.fromkeys(w.hardware for w in report.worlds if w.hardware is not None and w.hardware_from != NOT_NAMED)
    found = []
    for hardware in given or {USUAL: None}:
        device = device_for(hardware)
        if device is None:
            raise CannotAskError(f"{hardware.title} cannot be simulated.")
        found.append((device, not given))
    return list(dict.fromkeys(found))


def questions(analysis: Analysis, index: int, workspace: DiskWorkspace, ready: Ready) -> list[Way]:
    """The questions to this SGLang about one launch of a document: each way of it, including those that cannot be asked."""
    document, launch = analysis.document.name, analysis.launches[index].launch
    release = Release.read(ready.version) or releases()[-1]
    return list(ways(launch, release, document, workspace, partial(workspace.read, document)))


def cases(asked: Iterable[Way]) -> list[Mapping[str, Any]]:
    """What is handed to SGLang."""
    return [way.case for way in asked if not way.why]


def verdicts(
    asked: Sequence[Way], answers: Iterable[Mapping[str, Any]], document: str, workspace: DiskWorkspace, sglang: SGLang
) -> list[Verdict]:
    """The answers, in order, each with what spec-lsp says about the same world."""
    ready, given = sglang.ready(), iter(answers)
    release = Release.read(ready.version)
    hardware = find(ready.device) if not ready.simulated else sglang.device.hardware
    world = World(release, hardware, VERIFIED, VERIFIED) if release in releases() and hardware is not None else None
    models = partial(workspace.model, document)
    return [
        Verdict(way, ready, {} if way.why else next(given), None if way.why else _ours(way, world, models))
        for way in asked
    ]


def _ours(way: Way, world: World | None, models: ModelSource) -> RunResult | None:
    if world is None:
        return None
    return run(way.launch, way.variant, world, models, way.binding, bare=is_open(way.launch, way.binding))


def verify(analysis: Analysis, index: int, workspace: DiskWorkspace, sglang: SGLang) -> list[Verdict]:
    """Ask SGLang about one launch of a document, in each way. Raises CannotAskError."""
    asked = questions(analysis, index, workspace, sglang.ready())
    return verdicts(asked, sglang.ask(cases(asked)), analysis.document.name, workspace, sglang)


# --- what is told ------------------------------------------------------------------------------------------------------


def told(analysis: Analysis, launch: Launch, verdicts: Sequence[Verdict], workspace: DiskWorkspace) -> list[Told]:
    """SGLang's refusals in its own words, and its disagreements with spec-lsp: each once, with the ways in which it holds."""
    naming = document_names(analysis.document, workspace)
    found: dict[tuple[Place, str], list[Verdict]] = {}
    for verdict in verdicts:
        message = _message(verdict)
        if message:
            found.setdefault((named(verdict.place, naming), message), []).append(verdict)
    return [
        Told(place, _severity(holding[0].relation), f"{message}{_when(holding, launch)}", _code(holding[0]), holding[0])
        for (place, message), holding in found.items()
    ]


def _message(verdict: Verdict) -> str:
    who = f"SGLang {verdict.ready.version}".strip()
    match verdict.relation:
        case "refused":
            return _quoted(verdict)
        case "missed":
            return f"{_quoted(verdict)} spec-lsp does not know this refusal: please report it."
        case "wrong":
            names = ", ".join(f"`{rule.name}`" for rule in verdict.rules) or "its arguments"
            return f"{who} accepts this launch, which spec-lsp refuses ({names}): please report it."
        case "differs":
            fields = "; ".join(f"`{n}` {theirs!r}, not {own!r}" for n, theirs, own in verdict.differing[:4])
            return f"{who} ends up with other values than spec-lsp says ({fields}): please report it."
    return ""


MAX_WORDS = 1000
"""The most characters of SGLang's own words that are shown."""


def _quoted(verdict: Verdict) -> str:
    """SGLang's own words, ended as a sentence."""
    words = verdict.words[:MAX_WORDS].rstrip()
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _severity(relation: Relation) -> Severity:
    return "warning" if relation in ("wrong", "differs") else "error"


def _code(verdict: Verdict) -> str:
    """What raised it: the exception, or argparse; a disagreement over what SGLang accepts has a name of its own."""
    if verdict.relation in ("wrong", "differs"):
        return "disagreement"
    return "argparse" if verdict.answer["outcome"] == "argparse" else str(verdict.answer["error"]["type"])


def _when(holding: Sequence[Verdict], launch: Launch) -> str:
    """The ways in which something holds, if not in all."""
    variants = tuple(dict.fromkeys(v.way.variant for v in holding))
    when = when_of(variants, launch) if len(variants) < len(launch.variants) else ""
    return f" This holds {when}." if when else ""


def summary(report: LaunchReport, verdicts: Sequence[Verdict]) -> str:
    """What SGLang says about a launch on all its ways, in a sentence; with a note if the file names another release."""
    first = verdicts[0].ready
    who = f"SGLang {first.version} on {'a simulated ' if first.simulated else ''}{first.device}"
    asked = [v for v in verdicts if v.relation not in ("not-asked", "unanswered")]
    if not asked:
        return f"{who} was not asked: {verdicts[0].reason}."
    refused = sum(v.answer["outcome"] != "ok" for v in asked)
    ways = f"{len(asked)} ways" if len(asked) > 1 else "launch"
    how = (
        f"refuses {'the launch' if len(asked) == 1 else f'{refused} of {ways}'}"
        if refused
        else f"accepts {'all ' if len(asked) > 1 else 'the '}{ways}"
    )
    apart = sum(v.relation in DISAGREEMENTS for v in asked)
    ours = "is not compared: spec-lsp does not know the release" if asked[0].ours is None else "spec-lsp agrees"
    if apart:
        ours = "spec-lsp disagrees" if len(asked) == 1 else f"spec-lsp disagrees in {apart}"
    left = len(verdicts) - len(asked)
    unasked = next((v.reason for v in verdicts if v not in asked), "")
    named = [w.release for w in report.worlds if w.release_from != NOT_NAMED and str(w.release) != first.version]
    other = f" The launch will run {named[0]} ({report.worlds[0].release_from})." if named else ""
    rest = f" {left} of {len(verdicts)} ways could not be asked: {unasked}." if left else ""
    facts = sorted({m for v in asked for m in v.way.from_facts})
    made = f" The config.json of `{'`, `'.join(facts)}` was made of what spec-lsp knows." if facts else ""
    return f"{who} {how}; {ours}.{other}{rest}{made}"


class Desk:
    """The SGLangs of one interpreter that are kept running, one for each of the most recent devices."""

    def __init__(self, python: str, keeps: int = 2) -> None:
        self._python = python
        self._keeps = keeps
        self._warm: dict[tuple[Device, bool], SGLang] = {}

    def sglang(self, device: Device, own: bool) -> SGLang:
        """The one for a device; started by its first question."""
        key = device, own
        found = self._warm.pop(key, None) or SGLang(self._python, device, own=own)
        self._warm[key] = found
        while len(self._warm) > self._keeps:
            self._warm.pop(next(iter(self._warm))).close()
        return found

    def kill(self) -> None:
        """End all, while another thread may ask one of them."""
        for sglang in self._warm.values():
            sglang.kill()

    def close(self) -> None:
        for sglang in self._warm.values():
            sglang.close()
        self._warm.clear()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
