"""Completion, hover, findings and repairs in every kind of document that carries a launch."""

from __future__ import annotations

import json

import pytest

from spec_lsp.analysis.fixes import fix_all
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.facts.hardware import find
from tests.analysis.support import NOTHING, after, check, seen
from tests.analysis.test_completion import at_caret as completed
from tests.analysis.test_hover import at_caret as hovered
from tests.syntax.carriers import CARRIERS, Carrier

CARET = "‸"
ON_H100 = Options(targets=(Target(hardware=find("h100")),))
MODEL = ["--model-path", "llama-3.1-8b"]


def name_of(carrier: Carrier) -> str:
    return carrier.name if ":" in carrier.name else f"/w/{carrier.name}"


def with_caret(carrier: Carrier, *words: str) -> str:
    """The document with the caret in it, also where its syntax escapes it."""
    return carrier.write([*MODEL, *words]).replace(json.dumps(CARET)[1:-1], CARET)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_completion_of_a_flag(carrier: Carrier) -> None:
    found, covered = completed(with_caret(carrier, f"--page-si{CARET}", "--tp", "2"), name_of(carrier))
    assert covered == "--page-si"
    assert found is not None
    assert "--page-size" in [item.label for item in found.items]


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_completion_of_a_value(carrier: Carrier) -> None:
    found, covered = completed(with_caret(carrier, "--attention-backend", f"fa{CARET}", "--tp", "2"), name_of(carrier))
    assert covered == "fa"
    assert found is not None
    assert "fa3" in [item.label for item in found.items]


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_hover(carrier: Carrier) -> None:
    found, covered = hovered(with_caret(carrier, f"--page{CARET}-size", "64"), name_of(carrier))
    assert found is not None
    assert covered.strip("\"'\\") == "--page-size"
    assert "**`--page-size`**" in found.markdown


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_finding_and_repair(carrier: Carrier) -> None:
    words = [*MODEL, "--page-size", "sixteen", "--tp", "2"]
    text = carrier.write(words)
    name = name_of(carrier)
    analysis = check(text, name=name, options=ON_H100)
    found = [
        seen(text, d) for d in analysis.diagnostics if d.rule.name != "repeated-flag"
    ]  # a helper names the model too
    assert [(severity, rule, about.strip("\"'")) for severity, rule, about in found] == [
        ("error", "invalid-value", "sixteen")
    ]
    unknown = carrier.write([*MODEL, "--page-sise", "64", "--tp", "2"])
    edits = fix_all(name, unknown, ON_H100, NOTHING, unsafe=True)
    assert after(unknown, edits, name) == carrier.write([*MODEL, "--page-size", "64", "--tp", "2"])
