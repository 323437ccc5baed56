"""Refusals behind a refusal: those that remain however the first one is mended.

A refused field is unknown from then on, and what SGLang would make of a mended one is not looked at: rules that read it say nothing, and
steps that read it leave other fields unknown. So the launch is resolved as each way out of a refusal would leave it. What every one of them
leaves refused is a mistake of its own, and is told with the first one. What a way out takes away together with the very setting that is
wrong is a mistake all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

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
        tried = _tried(refusal, refusal.said.at in resolution.undecided.values(), mended, found)
        for name, finding in [item for _, errors in tried for item in errors.items()]:
            if all(name in errors or _takes_away(change, finding) for change, errors in tried):
                found.setdefault(name, finding)
    return list(found.values())[known:]


Errors = dict[str, Finding]


def _tried(refusal: Finding, waits: bool, mended: Mended, found: Collection[str]) -> list[tuple[Change, Errors]]:
    """The ways out of a refusal that end it, with the errors that each leaves. None where only the writer knows what is missing.

    `waits`: whether a rule waits for the refused field itself. Where a way leaves no error, mistakes can only be in what it changes: others
    that change all of that show none.
    """
    tried: list[tuple[Change, Errors]] = []
    about: frozenset[str] | None = None
    ways = [change for change in refusal.said.candidates if not change.set_env and not change.drop_env]
    for change in ways[:MAX_WAYS]:
        changed = frozenset((*change.set, *change.drop))
        after = mended(change) if about is None or not about <= changed else None
        if after is None or any(f.rule is refusal.rule for f in after.findings):
            continue
        errors = _errors(after, change, found)
        tried.append((change, errors))
        if not errors:
            about = changed if about is None else about & changed
            if not waits and len(tried) == 1:
                break
    return tried


def _errors(resolution: Resolution, change: Change, found: Collection[str]) -> Errors:
    """The errors after a change by rule, but for those found already and those about what the change itself sets."""
    errors = [f for f in resolution.findings if f.rule.severity == "error" and f.rule.name not in found]
    return {f.rule.name: f for f in errors if not _takes_away(change, f)}


def _takes_away(change: Change, finding: Finding) -> bool:
    """Whether a change takes away the setting that a refusal is about."""
    return finding.said.at in change.set or finding.said.at in change.drop
