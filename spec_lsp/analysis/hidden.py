"""Refusals behind a refusal: those that remain however the first one is mended.

A refused field is unknown from then on, and what SGLang would make of a mended one is not looked at: rules that read it say nothing, and
steps that read it leave other fields unknown. So the launch is resolved as each way out of a refusal would leave it. What every one of them
leaves refused is a mistake of its own, and is told with the first one. What a way out takes away together with the very setting that is
wrong is a mistake all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from spec_lsp.resolution.engine import Change, Finding, Resolution

Mended = Callable[[Change], "Resolution | None"]

MAX_WAYS = 3
"""The most ways out of one refusal that are looked at."""
MAX_REFUSALS = 4
"""The most refusals of one launch that are looked behind."""


def hidden(resolution: Resolution, mended: Mended) -> list[Finding]:
    """What no way out of one of the refusals takes away, of what was not found. `mended` resolves the launch after a change."""
    found = {f.rule.name: f for f in resolution.findings}
    known = len(found)
    for refusal in [f for f in resolution.findings if f.ends_resolution][:MAX_REFUSALS]:
        tried: list[tuple[Change, dict[str, Finding]]] = []
        for change, after in _ways(refusal, mended):
            tried.append((change, _errors(after, change, found)))
            if not tried[0][1] and refusal.said.at not in resolution.undecided.values():
                break  # nothing else is left, and nobody waits for the field itself
        for name, finding in [item for _, errors in tried for item in errors.items()]:
            if all(name in errors or _takes_away(change, finding) for change, errors in tried):
                found.setdefault(name, finding)
    return list(found.values())[known:]


def _errors(resolution: Resolution, change: Change, found: Collection[str]) -> dict[str, Finding]:
    """The errors after a change by rule, but for those found already and those about what the change itself sets."""
    errors = [f for f in resolution.findings if f.rule.severity == "error" and f.rule.name not in found]
    return {f.rule.name: f for f in errors if not _takes_away(change, f)}


def _ways(refusal: Finding, mended: Mended) -> Iterator[tuple[Change, Resolution]]:
    """The changes that a refusal names and that end it, with what comes of them. None where only the writer knows what is missing."""
    ways = [change for change in refusal.said.candidates if not change.set_env and not change.drop_env]
    for change in ways[:MAX_WAYS]:
        after = mended(change)
        if after is not None and not any(f.rule is refusal.rule for f in after.findings):
            yield change, after


def _takes_away(change: Change, finding: Finding) -> bool:
    """Whether a change takes away the setting that a refusal is about."""
    return finding.said.at in change.set or finding.said.at in change.drop
