"""Complete explanations of rules and environment variables, for the rules page, the command line and the editor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from spec_lsp.catalog.history import Span
from spec_lsp.catalog.model import Variable
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.records import replace
from spec_lsp.resolution.engine import Rule, in_release
from spec_lsp.resolution.examples import command_of, in_lines, read_example
from spec_lsp.resolution.handlers import handlers_of


def facts(rule: Rule) -> Iterator[tuple[str, str]]:
    """The facts that a table shows of a rule: labels and values."""
    yield "topic", rule.topic
    yield "releases", _looked_at(rule)
    if rule.sglang:
        yield "SGLang", rule.sglang + (f" raises {rule.raises}" if rule.raises else "")
    for earlier in rule.earlier:
        yield f"before {earlier.before}", earlier.sglang + (f" raises {earlier.raises}" if earlier.raises else "")
    if rule.late:
        yield "when", "late: after the weights are loaded, minutes after start"


def _looked_at(rule: Rule) -> str:
    """The releases for which the rule was checked. A rule that only reads the file applies to any."""
    if not rule.sglang:
        return "any"
    since = rule.since or str(_first_with().get(rule.name, releases()[0]))
    return f"since {since}, before {rule.until}" if rule.until else f"since {since}, up to {releases()[-1]}"


@cache
def _first_with() -> Mapping[str, Release]:
    """The oldest release in which each rule of resolution is checked; rules of arguments need no resolution."""
    steps = ((r, step) for r in reversed(releases()) for handler in handlers_of(r) for step in handler.steps)
    return {step.rule.name: release for release, step in steps if step.rule is not None}


def severity(rule: Rule) -> str:
    """The severity, and whether the rule is late."""
    return f"{rule.severity}, late" if rule.late else rule.severity


def lines(rule: Rule) -> Iterator[str]:
    """Everything about a rule below its name, as lines of Markdown."""
    yield from (f"{rule.code} · {severity(rule)}", "", rule.summary)
    if rule.explanation:
        yield from ("", rule.explanation)
    shown = [f"{label}: {_code(value, label)}" for label, value in facts(rule) if label not in ("topic", "when")]
    yield from ("", " · ".join(shown))
    good = "Accepted" if rule.severity == "error" else "Not reported"
    for words, written in (
        ("Refused" if rule.severity == "error" else "Reported", commands(rule, rule.bad)),
        (good, commands(rule, rule.good)),
    ):
        if written:
            told = (line for command in written for line in in_lines(command, WIDTH))
            yield from ("", f"{words}:", "", "```sh", *told, "```")


WIDTH = 100
"""The longest line of an example, in characters."""


def commands(rule: Rule, examples: Iterable[str]) -> list[str]:
    """A rule's examples as commands that show at a prompt what SGLang does with them."""
    of_rule = str(next(r for r in reversed(releases()) if in_release(r, rule.since, rule.until)))
    read = (read_example(text) for text in examples if text)
    return [command_of(example if example.release else replace(example, release=of_rule)) for example in read]


def _code(value: str, label: str) -> str:
    place, raises, error = value.partition(" raises ")
    if label == "releases":
        return value
    return f"`{place}`" + (f" raises `{error}`" if raises else "")


def page(rule: Rule) -> str:
    """A page about one rule, in Markdown."""
    silence = f"Silence it with a comment: `# spec-lsp: ignore[{rule.name}] reason`"
    return "\n".join([f"# {rule.name}", "", *lines(rule), "", silence]) + "\n"


def variable_facts(variable: Variable | None, span: Span) -> Iterator[tuple[str, str]]:
    """What a list shows of an environment variable that some release reads; None if the given release does not read it."""
    if variable is not None:
        if variable.type != "unknown":
            yield "type", variable.type
        if variable.default is not None:
            yield "default", _shown(variable.default)
    yield "releases", str(span)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) or "empty"
