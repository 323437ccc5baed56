"""Compares what SGLang says about a launch with what spec-lsp says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from spec_lsp import __version__
from spec_lsp.analysis.diagnostics import setting_place
from spec_lsp.analysis.findings import findings_of
from spec_lsp.analysis.run import RunResult
from spec_lsp.asking.launches import Way
from spec_lsp.asking.process import Ready
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Rule
from spec_lsp.syntax.word import Place

Relation = Literal["accepted", "refused", "missed", "wrong", "differs", "unanswered", "not-asked"]
"""`accepted`, `refused`: both agree. `missed`: SGLang refuses, spec-lsp does not. `wrong`: spec-lsp refuses, SGLang does not. `differs`:
both accept, but a field ends with another value. `unanswered`: SGLang could not say. `not-asked`: the document does not determine the
question."""

DISAGREEMENTS: tuple[Relation, ...] = ("missed", "wrong", "differs")
SECRET = expression(r"(api_key|password|passphrase|token)$")
"""Fields whose values are not shown in reports."""


@dataclass(frozen=True)
class Verdict:
    """SGLang's answer about one way of a launch, and ours; ours is None if spec-lsp does not know the release."""

    way: Way
    ready: Ready
    answer: Mapping[str, Any]
    ours: RunResult | None

    @cached_property
    def relation(self) -> Relation:
        if self.way.why:
            return "not-asked"
        if self.answer["outcome"] == "unanswered":
            return "unanswered"
        refused = self.answer["outcome"] != "ok"
        if self.ours is None:
            return "refused" if refused else "accepted"
        if refused != self.ours.refused:
            return "missed" if refused else "wrong"
        if refused:
            return "refused"
        return "differs" if self.differing else "accepted"

    @cached_property
    def differing(self) -> tuple[tuple[str, Any, Any], ...]:
        """The fields with another value than spec-lsp says: name, SGLang's value, ours."""
        if (
            self.ours is None
            or self.ours.resolution is None
            or not self.ours.modelled
            or not self.answer.get("resolved")
        ):
            return ()
        known, ended = self.ours.resolution.config.fields(), self.answer["resolved"]
        return tuple(
            (name, theirs, own)
            for name, own in sorted(known.items())
            if name in ended
            and _plain(own)
            and _plain(theirs := self.way.typed.get(str(ended[name]), ended[name]))
            and not same(theirs, own)
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Our rules that end the launch."""
        found = findings_of(self.ours) if self.ours is not None else ()
        return tuple(dict.fromkeys(f.rule for f in found if f.rule.severity == "error" and not f.rule.late))

    # --- SGLang's words

    @property
    def words(self) -> str:
        """SGLang's message when it refused, with models named as typed; empty if it accepted."""
        error = self.answer.get("error")
        if not error:
            return ""
        said = str(error["message"]).strip() or str(error["type"])
        if self.answer["outcome"] == "argparse":
            said = said.partition(": error: ")[2] or said
        for stand_in, typed in self.way.typed.items():
            said = said.replace(stand_in, typed)
        return re.sub(r"\{files\}/(\d+/)?", "", said)

    @property
    def where(self) -> str:
        """The exception and the function of SGLang's that raised it; empty for argparse, and where it accepted."""
        error = self.answer.get("error")
        if not error or not error.get("where"):
            return ""
        return f"{error['type']} in {':'.join(error['where'].split(':')[:2])}"

    @property
    def place(self) -> Place:
        """Where to show it: at the flag that SGLang's message names first, else at that of our own finding, else at the launch."""
        settings = self.way.binding.settings
        said = self.words
        named = []
        for field, setting in settings.items():
            spellings = {*setting.definition.spellings, setting.spelling, field, "--" + field.replace("_", "-")}
            at = [m.start() for s in spellings for m in re.finditer(rf"(?<![\w-]){re.escape(s)}(?![\w-])", said)]
            if at:
                named.append((min(at), field))
        if named:
            return setting_place(settings[min(named)[1]])
        if self.ours is not None:
            for found in findings_of(self.ours):
                if found.said is not None and found.said.at in settings:
                    return setting_place(settings[found.said.at])
                if found.error is not None and (place := self.ours.binding.errors[found.error].place) is not None:
                    return place
        return self.way.launch.place

    # --- for people

    @property
    def reason(self) -> str:
        """Why nothing is known, as the end of a sentence."""
        if self.way.why:
            return self.way.why
        error = self.answer.get("error") or {}
        match error.get("type"):
            case "ForeignCode":
                return "it would run code that comes with the model, which is not run"
            case "Ended":
                return str(error["message"])
        return f"{error.get('type')}: {str(error.get('message'))[:300]}"

    def report(self) -> str:
        """A disagreement as Markdown, for an issue."""
        return "\n".join(_report(self)) + "\n"


def same(a: object, b: object) -> bool:
    """Whether two values of a field are equal; the last digits of fractions do not count."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or abs(a - b) < 1e-6
    return a == b


def _plain(value: object) -> bool:
    """A value that can be compared. Composed values (a list, an object's repr) may be written differently."""
    return (
        value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and not value.startswith("<"))
    )


def _report(verdict: Verdict) -> Iterator[str]:
    way, ready, answer = verdict.way, verdict.ready, verdict.answer
    platform = f"{ready.device}{' (simulated)' if ready.simulated else ''}"
    yield f"### spec-lsp {__version__} and SGLang {ready.version} disagree on {platform}"
    yield ""
    yield f"- SGLang: {_theirs(verdict)}"
    yield f"- spec-lsp: {_ours(verdict)}"
    yield from (f"- `{name}`: SGLang `{theirs!r}`, spec-lsp `{own!r}`" for name, theirs, own in verdict.differing[:20])
    yield from ("", "```")
    yield shlex.join(_public_words(way)) if "argv" in way.case else json.dumps(_public(way.case.get("fields", {})))
    yield from (f"{name}={value}" for name, value in way.case.get("env", {}).items())
    yield "```"
    for name, text in way.case.get("files", {}).items():
        yield from ("", f"`{name}`:", "```", text.rstrip("\n"), "```")
    if answer.get("denied"):
        yield from ("", f"SGLang was kept from: {'; '.join(answer['denied'])}")


def _theirs(verdict: Verdict) -> str:
    if verdict.answer["outcome"] == "ok":
        return "accepts"
    return f"{verdict.answer['outcome']}{f' ({verdict.where})' if verdict.where else ''}: {verdict.words}"


def _ours(verdict: Verdict) -> str:
    if verdict.ours is None:
        return "does not know the release"
    if not verdict.ours.refused:
        return "accepts" if verdict.ours.decided else "cannot tell"
    return "refuses, by " + ", ".join(f"`{r.name}` ({r.code})" for r in verdict.rules)


def _public(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: "…" if SECRET.search(k) else v for k, v in fields.items()}


def _public_words(way: Way) -> Sequence[str]:
    """The words without secret values, and with models as they were typed."""
    secret = {
        word.text
        for field, setting in way.binding.settings.items()
        if SECRET.search(field)
        for word in setting.values
        if word.text
    }
    words = []
    for word in way.case["argv"]:
        flag, equals, value = word.partition("=")
        if word in secret or (equals and value in secret):
            words.append(f"{flag}=…" if equals else "…")
        else:
            words.append(way.typed.get(word, word))
    return words
