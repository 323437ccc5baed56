"""Work over several processes: in order, each chunk once, and a process that dies takes only its chunk with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spec_lsp.cli import pool, workers
from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport
from spec_lsp.cli.workers import spread

FLAWED = "python -m sglang.launch_server --model-path x --no-such-flag\n"
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes")


def squaring() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number < 0:
            os._exit(9)
        return number * number

    return work


@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_each_chunk_is_answered_once_and_in_order(count: int, processes: int) -> None:
    assert list(spread(range(count), processes, squaring)) == [(n, n * n) for n in range(count)]
    assert multiprocessing.active_children() == []


@posix
@pytest.mark.parametrize("processes", [1, 3])
def test_a_process_that_dies_costs_its_chunk(processes: int) -> None:
    chunks = [1, -2, 3, 4, -5, -6, *range(7, 30), -30]
    assert list(spread(chunks, processes, squaring)) == [(n, None if n < 0 else n * n) for n in chunks]
    assert multiprocessing.active_children() == []


def test_work_begins_before_all_chunks_are_found() -> None:
    given: list[int] = []

    def found() -> Iterator[int]:
        for number in range(30):
            given.append(number)
            time.sleep(0.02)
            yield number

    results = spread(found(), 2, squaring)
    assert next(results) == (0, 0)
    assert len(given) < 30
    assert len(list(results)) == 29


def test_who_stops_asking_leaves_nobody_behind() -> None:
    results = spread(range(100), 3, squaring)
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def test_where_no_process_can_be_started_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(workers, "_Worker", refuse)
    assert list(spread(range(5), 2, squaring)) == [(n, n * n) for n in range(5)]


def test_what_fails_while_it_is_found_is_raised() -> None:
    def found() -> Iterator[int]:
        yield 1
        raise ValueError("no folder")

    with pytest.raises(ValueError, match="no folder"):
        list(spread(found(), 2, squaring))
    assert multiprocessing.active_children() == []


# --- check -------------------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("deadly", [("k3.sh",), ("k0.sh", "k1.sh", "k2.sh", "k3.sh"), ("k9.sh", "k0.sh")])
def test_files_of_a_worker_that_dies_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadly: tuple[str, ...]
) -> None:
    for n in range(10):
        (tmp_path / f"k{n}.sh").write_text(FLAWED)
    files = sorted(map(str, tmp_path.iterdir()))
    real = Checker.file

    def killed(self: Checker, path: str) -> FileReport:
        if path.endswith(deadly):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, path)

    monkeypatch.setattr(Checker, "file", killed)
    reports = list(pool.check_all(Task(str(tmp_path)), iter(files), 2, Progress()))
    assert [r.file for r in reports] == [f"k{n}.sh" for n in range(10)]
    for report in reports:
        assert bool(report.problem) == report.file.endswith(deadly)
        assert bool(report.found) != report.file.endswith(deadly)


KILLING = """
import os, signal, sys
from spec_lsp.cli.checker import Checker
real = Checker.file
def file(self, path):
    if path.endswith("deadly.sh"):
        os.kill(os.getpid(), signal.SIGKILL)
    if path.endswith("endless.sh"):
        print("begun", file=sys.stderr, flush=True)
        while True: pass
    return real(self, path)
Checker.file = file
from spec_lsp.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@posix
def test_a_file_that_was_not_checked_is_named_and_ends_in_exit_code_2(tmp_path: Path) -> None:
    for name in ("a.sh", "deadly.sh", "z.sh"):
        (tmp_path / name).write_text(FLAWED)
    done = subprocess.run(
        [sys.executable, "-c", KILLING, "check", "--jobs", "2", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 2
    assert "deadly.sh was not checked" in done.stderr
    assert "Traceback" not in done.stderr
    assert "a.sh:" in done.stdout
    assert "z.sh:" in done.stdout


@posix
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_a_run_and_its_workers_in_silence(tmp_path: Path, jobs: str) -> None:
    for name in ("a.sh", "endless.sh", "z.sh"):
        (tmp_path / name).write_text(FLAWED)
    run = subprocess.Popen(
        [sys.executable, "-c", KILLING, "check", "--jobs", jobs, "."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stderr is not None
    while "begun" not in run.stderr.readline():
        pass
    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=90)
    assert run.returncode == 130
    assert said == ""
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(run.pid, 0)


@posix
def test_batch_answers_for_a_case_that_killed_its_process(tmp_path: Path) -> None:
    code = KILLING.replace(
        "from spec_lsp.cli.main",
        "import spec_lsp.cli.batch as b\nanswer = b.Judge._answer\n"
        "b.Judge._answer = lambda self, case: os._exit(9) if case['id'] == 2 else answer(self, case)\nfrom spec_lsp.cli.main",
    )
    lines = "".join(f'{{"id": {n}, "argv": ["--model-path", "x"], "env": {{}}}}\n' for n in range(5))
    done = subprocess.run(
        [sys.executable, "-c", code, "batch", "--jobs", "2"], input=lines, capture_output=True, text=True, timeout=90
    )
    answers = done.stdout.splitlines()
    assert len(answers) == 5
    assert ["killed" in answer for answer in answers] == [False, False, True, False, False]
