"""Random launches are what they are meant to be, and rows keep what a checker has to reproduce."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec_lsp.catalog.binding import bind, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from tests.oracle.launches import ARGPARSE, TABLE, draw, families, told
from tests.oracle.models import KINDS
from tests.oracle.releases import Oracle
from tests.oracle.verdicts import rows, seed_of, write
from tests.truth.score import MODELS, rows_of

NEWEST = load(releases()[-1])


def test_a_seed_draws_the_same_launches_again() -> None:
    for family in ("", *families()):
        first = list(draw(NEWEST, 7, 20, family))
        assert first == list(draw(NEWEST, 7, 20, family))
        assert first != list(draw(NEWEST, 8, 20, family))
        assert len({str(case["argv"]) + str(case.get("files")) for case in first}) == 20


def test_every_flag_of_the_table_is_drawn() -> None:
    drawn = {word for case in draw(NEWEST, 1, 1500, TABLE) for word in case["argv"]}
    fields = {f: flag for f, flag in NEWEST.by_field.items() if f not in ("help", "config") and not flag.fatal}
    assert {f for f, flag in fields.items() if flag.name not in drawn} == set()
    assert {f"{{models}}/{kind}" for kind in KINDS} <= drawn


@pytest.mark.parametrize("family", [*told()["families"], TABLE])
def test_what_is_written_well_binds(family: str) -> None:
    """Values can be refused, and texts that are to be JSON mean nothing; but no flag is unknown and no value missing."""
    for case in draw(NEWEST, 3, 200, family):
        errors = bind(NEWEST, words_from(case["argv"], "argv")).errors
        assert {e.kind for e in errors} <= {"invalid-value", "invalid-choice"}, case


def test_what_is_misspelt_mostly_does_not_bind() -> None:
    cases = list(draw(NEWEST, 3, 200, ARGPARSE))
    wrong = [c for c in cases if bind(NEWEST, words_from(c["argv"], "argv")).errors]
    assert 80 < len(wrong) < 200
    assert any(c.get("files") for c in cases)


def test_topics_name_flags_of_some_release_and_models_that_are_here() -> None:
    known = {field for release in releases() for field in load(release).by_field}
    for topic in told()["families"].values():
        assert set(topic["fields"]) | set(topic["always"]) <= known
        assert {m for m in topic["models"] if not (MODELS / m / "config.json").is_file()} == set()
    assert set(told()["values"]) <= known


def test_rows(tmp_path: Path) -> None:
    case = {"id": 1, "argv": ["--page-size", "1"], "env": {}}
    error = {"type": "ValueError", "message": "x" * 500, "where": "arg_groups/a.py:check:12"}
    asked = [
        {**case, "outcome": "ok", "error": None, "resolved": {"page_size": 1, "port": 3, "quantization": "y" * 200}, "log": []},
        {**case, "outcome": "refused", "error": error, "resolved": None, "log": ["a line"]},
        {**case, "outcome": "unanswered", "error": error, "resolved": None, "log": []},
    ]  # fmt: skip
    file = tmp_path / "more" / "0.5.23-h100.jsonl.gz"
    assert write(file, rows(asked, "0.5.23", "h100")) == 2
    about = {**case, "version": "0.5.23", "gpu": "h100"}
    assert rows_of(file) == [
        {**about, "outcome": "ok", "resolved": {"page_size": 1}},
        {**about, "outcome": "refused", "error": {"type": "ValueError", "at": "arg_groups/a.py:check", "message": "x" * 240}},
    ]  # fmt: skip


def test_seeds_differ_by_what_they_are_for() -> None:
    assert len({seed_of(1, v, g) for v in ("0.5.19", "0.5.23") for g in ("h100", "b200")}) == 4


def test_what_a_release_pins(tmp_path: Path) -> None:
    tree = tmp_path / "sg" / "0.5.24"
    (tree / "sglang").mkdir(parents=True)
    (tree / "METADATA").write_text(
        'Name: sglang\nRequires-Dist: transformers==5.20.1\nRequires-Dist: torch==2.13.0; extra == "x"\n'
    )
    oracle = Oracle(tmp_path)
    assert oracle.transformers("0.5.24") == "5.20.1"
    assert oracle.packages("0.5.24") == [tree]
    (tmp_path / "tf" / "5.20.1").mkdir(parents=True)
    assert oracle.packages("0.5.24") == [tree, tmp_path / "tf" / "5.20.1"]
    with pytest.raises(FileNotFoundError, match=r"tests\.oracle setup 0\.5\.25"):
        oracle.packages("0.5.25")


@pytest.mark.parametrize("file", ["0.5.23-h100", "argparse-0.5.23-h100"])
def test_the_real_sglang_says_what_the_data_holds(file: str) -> None:
    """Only where the release is set up: the first launches of a file once more."""
    from tests.oracle.verdicts import sglang, verdicts
    from tests.truth.score import DATA

    release = Release.parse(file.split("-")[-2])
    try:
        asked = sglang(Oracle.here(), str(release), "h100")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    kept = rows_of(DATA / f"{file}.jsonl.gz")[:20]
    with asked:
        now = list(rows(verdicts(asked, kept), str(release), "h100"))
    paths = ("speculative_draft_model_path",)
    for row in (*now, *kept):
        row["resolved"] = {k: v for k, v in row.get("resolved", {}).items() if k not in paths}
    assert [(r["id"], r["outcome"], r["resolved"]) for r in now] == [
        (r["id"], r["outcome"], r["resolved"]) for r in kept
    ]


def test_a_topic_is_drawn_in_full_whatever_the_release_lacks() -> None:
    """Fields of the topic that only other releases have are not drawn: every launch gives something beside its model."""
    for family in told()["families"]:
        for release in (releases()[-1], Release.parse("0.5.12")):
            assert all(len(case["argv"]) > 2 for case in draw(load(release), 4, 100, family)), (family, release)
