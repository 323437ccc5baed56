"""`spec-lsp rules`: every rule, by topic."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from spec_lsp.analysis.explained import commands
from spec_lsp.analysis.rules import all_rules, by_topic
from spec_lsp.cli.printed import json_text
from spec_lsp.cli.style import style_for
from spec_lsp.cli.table import table
from spec_lsp.resolution.engine import Rule


def run(arguments: argparse.Namespace) -> int:
    """Print the rules as a table, as JSON or as the page docs/rules.md."""
    if arguments.json:
        print(json_text([as_json(rule) for rule in all_rules()], indent=1))
        return 0
    if arguments.markdown:
        from spec_lsp.cli.docs import rules_page

        print(rules_page(), end="")
        return 0
    style = style_for(sys.stdout, arguments.color)
    for topic, rules in by_topic().items():
        print(style.paint(topic.replace("_", " "), "bold"))
        rows = [[f"  {r.code}", style.paint(f"{r.severity:<11}", r.severity), r.name, r.summary] for r in rules]
        print("\n".join(table(rows, style)) + "\n")
    print("`spec-lsp explain RULE` tells more of each.")
    return 0


def as_json(rule: Rule) -> dict[str, Any]:
    """All that is known of a rule."""
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": rule.summary,
        "explanation": rule.explanation,
        "topic": rule.topic,
        "severity": rule.severity,
        "late": rule.late,
        "since": rule.since or None,
        "until": rule.until or None,
        "sglang": rule.sglang or None,
        "raises": rule.raises or None,
        "earlier": [{"before": e.before, "sglang": e.sglang, "raises": e.raises or rule.raises} for e in rule.earlier],
        "bad": commands(rule, rule.bad),
        "good": commands(rule, rule.good),
    }
