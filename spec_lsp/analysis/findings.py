"""What is found in one run: mistakes of arguments, what rules say, and typed values that SGLang replaces."""

from __future__ import annotations

from collections import Counter
from typing import Any

from spec_lsp.analysis.rules import ABBREVIATED_FLAG, DEPRECATED_FLAG, OVERRIDDEN_VALUE, REPEATED_FLAG, rule_of
from spec_lsp.analysis.run import RunResult
from spec_lsp.catalog.binding import Binding, Note, Unknown
from spec_lsp.catalog.history import flag_span
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Change, Refusal, Resolution, Rule


@dataclass(frozen=True, slots=True)
class RunFinding:
    """One finding without places: what a rule says (`said`) or which binding error or note it is (`error`, `note`: indices).

    `about` is what it is about: the field, or the words as typed."""

    rule: Rule
    about: str
    said: Refusal | None = None
    error: int | None = None
    note: int | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What identifies the same finding in another world."""
        return self.rule.name, self.about

    @property
    def cause(self) -> tuple[str, str]:
        """What identifies the same finding in another release: one release may call a flag unknown and another ambiguous, and it may be a
        key."""
        return ("arguments", self.about.removeprefix("--")) if self.error is not None else (self.rule.name, "")


def findings_of(judged: RunResult) -> list[RunFinding]:
    """All findings of one run, those of argparse first."""
    binding = judged.binding
    said_of: Counter[str] = Counter()

    def counted(about: str) -> str:
        """The words with a number, since the same words may be wrong twice."""
        said_of[about] += 1
        return about if said_of[about] == 1 else f"{about} ({said_of[about]})"

    found = [RunFinding(rule_of(e), counted(e.about), error=i) for i, e in enumerate(binding.errors)]
    for i, note in enumerate(binding.notes):
        rule = NOTED.get(note.kind)
        if rule is ABBREVIATED_FLAG and not _surprising(note):
            continue
        if rule is not None:
            found.append(RunFinding(rule, counted(f"{note.kind} {note.typed}"), note=i))
    if judged.resolution is not None:
        seen: set[str] = set()
        for finding in judged.resolution.findings:
            if finding.rule.name not in seen:
                seen.add(finding.rule.name)
                found.append(RunFinding(finding.rule, finding.said.at, finding.said))
        if not judged.refused:
            found += [RunFinding(OVERRIDDEN_VALUE, said.at, said) for said in overridden(binding, judged.resolution)]
    return found


NOTED = {"repeated": REPEATED_FLAG, "deprecated": DEPRECATED_FLAG, "prefix": ABBREVIATED_FLAG}
"""The rules about what SGLang accepts but the writer should know."""


def _surprising(note: Note) -> bool:
    """Whether an abbreviation may be unintended: it leaves out whole words of the flag, or it is a flag of another release."""
    _, *missing = (note.suggestion or "").removeprefix(note.typed).split("-")
    return len(missing) > 1 or flag_span(note.typed) is not None


def overridden(binding: Binding, resolution: Resolution) -> list[Refusal]:
    """Typed values that SGLang will replace, each with the reason given by the last step that set the field."""
    config, settings = resolution.config, binding.settings
    known = {f: s for f, s in settings.items() if not isinstance(s.value, Unknown) and config.known(f)}
    replaced = [field for field, setting in known.items() if getattr(config, field) != setting.value]
    history = config.history if replaced else {}
    said = []
    for field in replaced:
        value = getattr(config, field)
        decisions = history.get(field, ())
        deciding = [d for d in decisions if not d.step.spelling]
        if not deciding or any(d.step.spelling and d.value == value for d in decisions):
            continue
        message = f"{config.flag_as_typed(field)} becomes {_written(value)}: {deciding[-1].step.reason}"
        fixes = (Change(set={field: value}), Change(drop=(field,)))
        said.append(Refusal(field, message, fixes=fixes))
    return said


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "unset" if value is None else f"`{value}`"


def is_fatal(found: RunFinding, judged: RunResult) -> bool:
    """Whether the finding is a reason why argument resolution ends the launch."""
    error = judged.binding.errors[found.error] if found.error is not None else None
    if judged.condones(found.rule, error.about if error is not None else found.about):
        return False
    if error is not None:
        return error.fatal
    return found.rule.severity == "error" and not found.rule.late


def reasons_of(judged: RunResult) -> frozenset[tuple[str, str]]:
    """The findings that end the launch, by identity."""
    return frozenset(f.identity for f in findings_of(judged) if is_fatal(f, judged))
