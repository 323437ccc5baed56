"""The same reports, however many processes make them and in whatever order the files come."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec_lsp.cli import pool
from spec_lsp.cli.checker import Task
from spec_lsp.cli.pool import check_all
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport
from tests.bench.monorepo import write


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Every file of a small tree that holds launches of every kind; one is gone when it is read."""
    root = write(tmp_path_factory.mktemp("tree"), files=80, launching=36, mentioning_=8)
    found = sorted(str(p) for p in root.rglob("*") if p.is_file() and p.suffix != ".png")
    return [*found[:7], str(root / "gone.sh"), *found[7:]]


def reports(files: list[str], jobs: int | None) -> list[FileReport]:
    return list(check_all(Task(str(Path(files[0]).anchor)), iter(files), jobs, Progress()))


def test_several_processes_report_as_one_does(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = reports(files, 1)
    assert sum(r.launches for r in alone) >= 36
    assert any(r.found for r in alone)
    assert any(r.problem for r in alone)
    assert reports(files, 3) == alone
    monkeypatch.setattr(pool, "_cpus", lambda: 2)
    assert reports(files, None) == alone, "unasked"


def test_the_order_of_files_changes_no_report(files: list[str]) -> None:
    assert sorted(reports(files[::-1], 1), key=lambda r: r.file) == sorted(reports(files, 1), key=lambda r: r.file)


@pytest.mark.parametrize(
    ("files", "cpus", "jobs", "processes"),
    [
        (pool.FILES_FOR_A_POOL - 1, 8, None, 1),
        (pool.FILES_FOR_A_POOL, 8, None, 8),
        (pool.FILES_FOR_A_POOL, 1, None, 1),
        (pool.FILES_FOR_A_POOL, 500, None, pool.MAX_WORKERS),
        (3, 8, 64, 3),
        (500, 1, 4, 4),
    ],
)
def test_processes_are_started_where_they_pay(
    files: int, cpus: int, jobs: int | None, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_cpus", lambda: cpus)
    assert pool._workers(files, jobs) == processes
