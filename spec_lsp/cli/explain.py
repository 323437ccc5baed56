"""`spec-lsp explain`: a rule, a flag or an environment variable, for a person at a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from spec_lsp.analysis.explained import commands, facts, variable_facts
from spec_lsp.analysis.hover import type_of
from spec_lsp.analysis.rules import all_rules, find_rule
from spec_lsp.catalog import SUPPRESS, Flag, Release, environment, nearest, releases
from spec_lsp.catalog.history import Span, replacement, variable_names, variable_span
from spec_lsp.catalog.suggest import suggest_flag
from spec_lsp.cli.errors import UsageError, did_you_mean
from spec_lsp.cli.flags import abbreviated, find_flag, readers, releases_with, span, spellings
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.table import fold, paragraphs, width
from spec_lsp.cli.worlds import read_release
from spec_lsp.resolution.engine import Rule
from spec_lsp.resolution.examples import in_lines

MANY = 12
"""The most flags that are named when an abbreviation fits several."""


def run(arguments: argparse.Namespace) -> int:
    """Print what is known of the topic. Unknown ones end with what was probably meant."""
    topic: str | None = arguments.topic
    if arguments.log:
        if topic:
            raise UsageError("--log explains a log: leave the topic out")
        from spec_lsp.cli import explain_log

        return explain_log.run(arguments)
    if arguments.gpu:
        raise UsageError("--gpu goes with --log: what a rule or flag is does not depend on it")
    if not topic:
        raise UsageError("name a rule, a code, a flag or an environment variable; `spec-lsp rules` lists the rules")
    style = style_for(sys.stdout, arguments.color)
    rule = find_rule(topic)
    if rule is not None:
        print("\n".join(explain_rule(rule, style)))
        return 0
    release = _release(arguments.sglang) if arguments.sglang else None
    span = variable_span(topic)
    print("\n".join(_explain_variable(topic, span, release, style) if span else _explain_flag(topic, release, style)))
    return 0


def _release(named: str) -> Release:
    """The shipped release used for the named one, with a notice on standard error if they differ."""
    wanted = read_release(named)
    shipped = nearest(wanted)
    if shipped != wanted:
        print(f"spec-lsp: warning: SGLang {named} is not known; this is {shipped}", file=sys.stderr)
    return shipped


# --- rules -----------------------------------------------------------------------------------------------------------


def explain_rule(rule: Rule, style: Style) -> Iterator[str]:
    """Summary, explanation, facts and examples of a rule."""
    yield f"{style.paint(f'{rule.name}[{rule.code}]', 'bold')}  {style.paint(rule.severity, rule.severity)}"
    yield ""
    yield from paragraphs(rule.summary, style)
    if rule.explanation:
        yield ""
        yield from paragraphs(rule.explanation, style)
    yield ""
    told = list(facts(rule))
    wide = max(len(label) for label, _ in told) + 1
    yield from (f"{label + ':':<{wide}} {value}" for label, value in told)
    for label, examples in (("refused", rule.bad), ("accepted", rule.good)):
        shown = commands(rule, examples)
        if shown:
            word = label if rule.severity == "error" else {"refused": "reported", "accepted": "not reported"}[label]
            yield ""
            yield style.paint(f"{word}:", "bold")
            for command in shown:
                yield from (f"    {line}" for line in in_lines(command, width() - 4))
    yield ""
    yield style.prose(f"Silence it with a comment: `# spec-lsp: ignore[{rule.name}] reason`")


# --- environment variables -------------------------------------------------------------------------------------------


def _explain_variable(name: str, span: Span, release: Release | None, style: Style) -> Iterator[str]:
    """How SGLang reads the variable in a release (default: the last one that reads it)."""
    at = release or [r for r in releases() if name in environment(r)][-1]
    known = environment(at).get(name)
    yield f"{style.paint(name, 'bold')}  environment variable (SGLang {at})"
    instead = replacement(name, release)
    if known is None:
        yield from ("", f"SGLang {at} does not read it.")
    if instead is not None and (known is None or known.deprecated):
        use = f"Use `{instead.instead}`." if instead.instead else ""
        yield from ("", *paragraphs(f"{use} {instead.note}".strip(), style))
    yield ""
    for label, value in variable_facts(known, span):
        yield f"{label + ':':<11} {value}"


# --- flags -----------------------------------------------------------------------------------------------------------


def _explain_flag(topic: str, release: Release | None, style: Style) -> Iterator[str]:
    spelling = topic if topic.startswith("-") else "--" + topic.replace("_", "-")
    found = find_flag(spelling, release)
    if found is None:
        raise UsageError(_unknown(topic, spelling, release))
    flag, at = found
    yield from explain_flag(flag, at, style)


def explain_flag(flag: Flag, release: Release, style: Style) -> Iterator[str]:
    """What a flag is in a release, where it exists, and which rules read it."""
    yield f"{style.paint(', '.join(flag.spellings), 'bold')}  (SGLang {release})"
    text = description(flag)
    if text:
        yield ""
        yield from paragraphs(text, style)
    yield ""
    for label, value in _flag_facts(flag):
        first, *more = fold(value, width() - 12) or [""]
        yield f"{label + ':':<11} {first}"
        yield from (f"{'':11} {line}" for line in more)
    rules = readers().get(flag.field, ())
    if rules:
        yield ""
        yield style.paint("rules that read it:", "bold")
        yield from (f"  {rule.code}  {rule.name}" for rule in rules)


def _flag_facts(flag: Flag) -> Iterator[tuple[str, str]]:
    yield "field", flag.field
    yield "type", "switch, with a --no- form" if flag.action == "boolean" else type_of(flag)
    yield "default", shown_default(flag)
    if flag.choices:
        yield "choices", ", ".join(str(c) for c in flag.choices)
    yield "releases", span(releases_with(flag.name))
    if flag.deprecated:
        yield "deprecated", f"use {flag.replacement}" if flag.replacement else "yes"


def description(flag: Flag) -> str:
    """Our own description of a flag; empty where there is none."""
    described: Any = import_module("spec_lsp.catalog.descriptions")
    describe = getattr(described, "describe", None)
    return str(describe(flag.dest) or "") if describe else ""


def shown_default(flag: Flag) -> str:
    """The default as one would type it."""
    if flag.required:
        return "required"
    if flag.default is None or flag.default == SUPPRESS:
        return "not set"
    return (
        {True: "on", False: "off"}.get(flag.default, str(flag.default))
        if isinstance(flag.default, bool)
        else str(flag.default)
    )


def _unknown(topic: str, spelling: str, release: Release | None) -> str:
    if release is not None and (others := releases_with(spelling)):
        return f"SGLang {release} has no `{spelling}`; it exists in {span(others)}"
    begun = abbreviated(spelling, release or releases()[-1])
    if len(begun) > 1 and topic.startswith("-"):
        shown = ", ".join(begun[:MANY]) + (", …" if len(begun) > MANY else "")
        return f"`{topic}` fits several flags of SGLang {release or releases()[-1]}: {shown}"
    if topic.startswith("-"):
        return f"no known SGLang release has `{topic}`.{_flag_meant(spelling, release)}"
    if topic.isupper() and "_" in topic:
        near = did_you_mean(topic, variable_names())
        return f"no SGLang from {releases()[0]} to {releases()[-1]} reads a variable `{topic}`.{near}"
    names = [n for rule in all_rules() for n in (rule.name, rule.code)]
    near = did_you_mean(topic, names) or _flag_meant(spelling, release)
    return f"`{topic}` is no rule, no code, and no flag of SGLang {releases()[0]} to {releases()[-1]}.{near}"


def _flag_meant(spelling: str, release: Release | None) -> str:
    meant = suggest_flag(release or releases()[-1], spelling)
    return f" Did you mean `{meant}`?" if meant else did_you_mean(spelling, spellings())
