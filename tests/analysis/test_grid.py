"""Scripts of many ways: what only some hardware refuses is told of them, too."""

from __future__ import annotations

from itertools import combinations

import pytest

from spec_lsp.analysis.grid import MAX_RUNS, covering, grid
from spec_lsp.facts.hardware import FAMILIES

from .support import check


def script(switches: int) -> str:
    """A launch with so many flags that are on or off, the first of which asks for what one family does not run."""
    flags = ["--kv-cache-dtype nvfp4", *(f"--served-model-name m{n}" for n in range(1, switches))]
    tests = [f'if [ "${n + 1}" = on ]; then ARGS="$ARGS {flag}"; fi' for n, flag in enumerate(flags)]
    return "\n".join(['ARGS=""', *tests, "python3 -m sglang.launch_server --model-path openai/gpt-oss-120b $ARGS", ""])


@pytest.mark.parametrize("switches", [1, 3, 4, 5])
def test_what_some_hardware_refuses(switches: int) -> None:
    rule = "nvfp4-prefill-backend"
    (found,) = [d for d in check(script(switches)).diagnostics if d.rule.name == rule]
    assert found.severity == "warning"
    assert "on SM120 (RTX 5090, RTX PRO 6000)" in found.message
    assert "$1" in found.message


@pytest.mark.parametrize("switches", [4, 5])
def test_every_two_ways_meet_on_every_hardware(switches: int) -> None:
    report = check(script(switches)).launches[0]
    cells = list(grid(report.launch, report.worlds))
    assert len(report.launch.variants) * len(report.worlds) > MAX_RUNS
    assert 2 * len(cells) < len(report.launch.variants) * len(report.worlds)
    variants = report.launch.variants
    pairs = {frozenset(p) for v in variants for p in combinations(v.choices, 2)}
    for world in report.worlds:
        on = [variants[index] for index, w in cells if w == world]
        assert {frozenset(p) for v in on for p in combinations(v.choices, 2)} == pairs
    assert {w.hardware.family for _, w in cells if w.hardware} == set(FAMILIES)


def test_few_variants_are_judged_everywhere() -> None:
    report = check(script(3)).launches[0]
    assert len(list(grid(report.launch, report.worlds))) == 8 * len(report.worlds)
    assert len(covering(report.launch)) < 8
