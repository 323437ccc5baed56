"""`python -m tests.docs.codes TOPIC`: a code for a new rule of a topic (a module or package of spec_lsp/resolution)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

from spec_lsp.analysis.rules import by_topic
from spec_lsp.resolution.engine import Rule


def next_code(topic: str, rules: Mapping[str, Sequence[Rule]]) -> str:
    """The first code behind those of a topic that no rule has. A topic that is new starts behind all others."""
    taken = {_number(rule.code) for group in rules.values() for rule in group}
    own = [_number(rule.code) for rule in rules.get(topic, ())]
    return f"SPC{_free(max(own or taken) + 1, taken):03}"


def _number(code: str) -> int:
    """Exits with a message if the code of a rule is no number yet, as while the rule is being written."""
    number = code.removeprefix("SPC")
    if code == number or not number.isdecimal():
        sys.exit(
            f"A rule has the code {code!r}, which is not SPC and a number. Give it any free number, then run this again."
        )
    return int(number)


def _free(number: int, taken: Collection[int]) -> int:
    while number in taken:
        number += 1
    return number


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m tests.docs.codes TOPIC\ntopics: {', '.join(by_topic())}")
    print(next_code(sys.argv[1], by_topic()))
