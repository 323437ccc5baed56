"""A short run of `python -m tests.fuzz`, and that it finds what is planted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis import check as checking
from spec_lsp.analysis.cache import Cache
from tests.fuzz.__main__ import keep, lines, replay, run
from tests.fuzz.cases import Texts, case_of, changed_file, corpus, edited_file
from tests.fuzz.laws import Trials

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="documents are read apart in copies of the process")

SEED = "suite"
FILES, EDITS = 60, 12


def test_no_law_is_broken() -> None:
    *_, report = run(None, FILES, EDITS, SEED)
    assert not report.failures, "\n".join([*lines(report), report.failures[0].says])
    assert report.files >= FILES
    assert report.edits == EDITS


def test_a_case_is_made_again_by_its_name() -> None:
    for case in (changed_file("7", 3), edited_file("7", 3)):
        assert case_of(case.case) == case
    assert changed_file("7", 3) != changed_file("8", 3)
    assert len({changed_file("7", n).versions for n in range(40)}) > 35
    for name in ("", "file", "file:1", "file:1:x", "other:1:1"):
        with pytest.raises(ValueError, match="names no case"):
            case_of(name)


def test_the_corpus_is_all_there() -> None:
    kinds = {name.partition("/")[0] for name, _ in corpus()}
    assert kinds == {"dockerfile", "make", "markdown", "other", "python", "shell", "systemd", "yaml"}
    assert len(corpus()) > 150


def test_a_crash_is_found_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(checking, "judge", planted)
    trials = Trials.__new__(Trials)
    trials._apart, trials._cache = None, Cache()
    failures = [f for n in range(30) for f in trials.trial(changed_file("7", n), compare=False).failures]
    assert failures
    assert {f.kind for f in failures} == {"crash"}
    keep(failures[0], tmp_path)
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text("utf-8"))["case"] == failures[0].case
    monkeypatch.undo()
    assert replay(str(file)) == 0
    assert failures[0].versions[-1] in capsys.readouterr().out


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a document after the first is said nothing of."""
    trials, calls = Trials(), list[object]()

    def forgetful(found: list[Any]) -> list[Any]:
        calls.append(found)
        return [] if len(calls) > 1 else found

    monkeypatch.setattr(checking, "deduplicated", forgetful)
    launch = "python -m sglang.launch_server --model-path x --bogus 1\n"
    outcome = trials.trial(Texts("edits:7:0", "/w/a.sh", (launch, f"\n{launch}")), compare=True)
    trials.end()
    assert [f.kind for f in outcome.failures] == ["difference"]
