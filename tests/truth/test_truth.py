"""The figures against the real SGLang do not drop. `floors.json` holds them; raise it with UPDATE_FLOORS=1 when they improve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.truth.score import DATA, score

FLOORS = Path(__file__).parent / "floors.json"
FILES = sorted(DATA.glob("*.jsonl.gz"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.removesuffix(".jsonl.gz"))
def test_figures_do_not_drop(path: Path) -> None:
    figures = score(path)
    print(path.name, figures)
    floors = json.loads(FLOORS.read_text())
    if os.environ.get("UPDATE_FLOORS"):
        FLOORS.write_text(json.dumps({**floors, path.name: figures}, indent=1, sort_keys=True) + "\n")
        return
    floor = floors[path.name]
    dropped = {f: (v, floor[f]) for f, v in figures.items() if (v > floor[f] if f == "wrong" else v < floor[f])}
    assert not dropped, "figure: (now, before)"


def test_no_false_refusal_anywhere() -> None:
    """The floors themselves: a wrong error is never acceptable."""
    floors = json.loads(FLOORS.read_text())
    assert {
        name for name, figures in floors.items() if figures.get("precision", 100) < 100 or figures.get("wrong", 0) > 0
    } == set()
