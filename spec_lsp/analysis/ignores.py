"""Comments to spec-lsp: which findings they silence, and which of them silence nothing.

--page-size 16  # spec-lsp: ignore[rule-name] reason        on the finding's line
# spec-lsp: ignore[rule-name, SPC104] reason                on its own line: the next line, or the whole command that starts there
# spec-lsp: ignore-file[rule-name] reason                   the whole file
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from spec_lsp.analysis.findings import is_fatal
from spec_lsp.analysis.merge import MergedFinding
from spec_lsp.analysis.report import Diagnostic
from spec_lsp.analysis.rules import UNKNOWN_DIRECTIVE, UNUSED_IGNORE
from spec_lsp.analysis.run import Condoned
from spec_lsp.analysis.worlds import directive_values, is_path
from spec_lsp.catalog.release import Release
from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import DEVICES, FAMILIES, find
from spec_lsp.records import NamedTuple, dataclass
from spec_lsp.resolution.engine import RULES
from spec_lsp.syntax.launch import Directive, Document
from spec_lsp.syntax.word import Place

IGNORE = expression(r"ignore(?P<file>-file)?\s*\[(?P<rules>[^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One ignore comment: the rule that it names, and the characters that it applies to."""

    rule: str
    directive: Directive
    scope: Place


class Heeded(NamedTuple):
    """The diagnostics that no comment silences, what is said of the comments themselves, and those that are silenced."""

    kept: list[Diagnostic]
    of_comments: list[Diagnostic]
    silenced: list[Diagnostic]


def apply_ignores(
    document: Document,
    diagnostics: Sequence[Diagnostic],
    in_text: Callable[[Diagnostic], Diagnostic],
    *,
    honour: bool,
) -> Heeded:
    """What comments make of diagnostics. `in_text` gives one with its places in the text, as those about comments have theirs."""
    ignores = [i for d in document.directives for i in _ignores(d, document)]
    if not ignores:
        return Heeded(list(diagnostics), _unknown_ones(document), [])
    kept: list[Diagnostic] = []
    silenced: list[Diagnostic] = []
    used: set[Ignore] = set()
    for diagnostic in diagnostics:
        named = [i for i in ignores if i.rule in (diagnostic.rule.name, diagnostic.rule.code)] if honour else []
        silencing = [i for i in named if _speaks_for(i, in_text(diagnostic))]
        used.update(silencing)
        (silenced if silencing else kept).append(diagnostic)
    of_comments = [_unused(i) for i in ignores if i not in used and i.rule in _names()] if honour else []
    return Heeded(kept, of_comments + _unknown_ones(document), silenced)


def condoned_refusals(
    silenced: Sequence[Diagnostic], kept: Sequence[Diagnostic], off: Sequence[Diagnostic]
) -> dict[int, Condoned]:
    """By launch, the refusals that its writer answers for, because comments silence all of them there or settings switch their rule off
    (`off`): what else is said of the launch is said as if they refused nothing."""
    if not silenced and not off:
        return {}
    left = {(d.launch, _refusal(d)) for d in kept}
    found: dict[int, set[tuple[str, str]]] = {}
    for diagnostic in silenced:
        refusal = _refusal(diagnostic)
        if diagnostic.launch is not None and refusal is not None and (diagnostic.launch, refusal) not in left:
            found.setdefault(diagnostic.launch, set()).add(refusal)
    for diagnostic in off:
        if diagnostic.launch is not None and _refusal(diagnostic) is not None:
            found.setdefault(diagnostic.launch, set()).add((diagnostic.rule.name, ""))
    return {launch: frozenset(refusals) for launch, refusals in found.items()}


def _refusal(diagnostic: Diagnostic) -> tuple[str, str] | None:
    """The rule and what it is about, where it is one that ends argument resolution."""
    merged = diagnostic.source
    if not isinstance(merged, MergedFinding) or not is_fatal(merged.found, merged.run):
        return None
    error = merged.found.error
    about = merged.run.binding.errors[error].about if error is not None else merged.found.about
    return diagnostic.rule.name, about


def _names() -> dict[str, str]:
    return {**{name: name for name in RULES}, **{rule.code: name for name, rule in RULES.items()}}


def _ignores(directive: Directive, document: Document) -> list[Ignore]:
    match = IGNORE.match(directive.text)
    if match is None:
        return []
    scope = Place(document.name, 0, len(document.text)) if match["file"] else _scope(directive, document)
    names = [name.strip() for name in match["rules"].split(",") if name.strip()]
    return [Ignore(name, directive, scope) for name in names]


def _scope(directive: Directive, document: Document) -> Place:
    """The comment's line; for a comment alone on its line the next one, or the whole command that starts on it."""
    text = document.text
    if directive.scope is not None:
        return directive.scope
    if not directive.own_line:
        start, end = _line(text, directive.place.start)
        return Place(document.name, start, end)
    stop = _line(text, directive.place.end)[1]
    start, end = _line(text, min(stop + (2 if text[stop : stop + 2] == "\r\n" else 1), len(text)))
    extents = [launch.extent for launch in document.launches if start <= launch.extent.start <= end]
    return Place(document.name, start, max([end, *(e.end for e in extents)]))


def _line(text: str, offset: int) -> tuple[int, int]:
    """Start and end (without its line break) of the line that holds `offset`."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    ends = [e for e in (text.find("\n", offset), text.find("\r", offset)) if e >= 0]
    return start, min(ends, default=len(text))


def _speaks_for(ignore: Ignore, diagnostic: Diagnostic) -> bool:
    places = [diagnostic.place, *(r.place for r in diagnostic.related)]
    scope = ignore.scope
    return any(p.document == scope.document and scope.start <= p.start <= scope.end for p in places)


def _unused(ignore: Ignore) -> Diagnostic:
    message = f"No `{ignore.rule}` is found here, so the comment silences nothing."
    return Diagnostic(
        UNUSED_IGNORE, UNUSED_IGNORE.severity, message, ignore.directive.place, f"unused-ignore:{ignore.rule}",
        unnecessary=True, source=ignore,
    )  # fmt: skip


def _unknown_ones(document: Document) -> list[Diagnostic]:
    return [d for directive in document.directives if (d := _unknown(directive)) is not None]


def _unknown(directive: Directive) -> Diagnostic | None:
    """What is wrong with a directive; None if it is valid."""
    problem = _problem(directive.text)
    if not problem:
        return None
    return Diagnostic(
        UNKNOWN_DIRECTIVE, UNKNOWN_DIRECTIVE.severity, problem, directive.place, f"unknown-directive:{directive.text}",
        source=directive,
    )  # fmt: skip


def _problem(text: str) -> str:
    match = IGNORE.match(text)
    if match is not None:
        names = [name.strip() for name in match["rules"].split(",")]
        unknown = [name for name in names if name not in _names()]
        return f"There is no rule `{unknown[0]}`; `spec-lsp rules` lists them." if unknown else ""
    if text.startswith("ignore"):
        return "An ignore names its rules in brackets: `# spec-lsp: ignore[rule-name] reason`."
    if re.match(r"config\b", text):
        return ""  # a YAML file that is used as a `--config` file
    values = directive_values(text)
    if not values:
        return "Known comments are `ignore[rule-name]`, `ignore-file[rule-name]`, `sglang=0.5.19` and `gpu=b200`."
    for name, value in values.items():
        if name == "sglang" and Release.read(value) is None and not is_path(value):
            return f"`{value}` is not a release of SGLang; write it as `sglang=0.5.19`, or as a path, `sglang=./third_party/sglang`."
        if name == "gpu" and find(value) is None:
            return f"`{value}` is not a GPU that spec-lsp knows. It knows {', '.join([*DEVICES, *FAMILIES])}."
        if name not in ("sglang", "gpu"):
            return f"`{name}` is not a directive; known are `sglang=…`, `gpu=…` and `ignore[…]`."
    return ""
