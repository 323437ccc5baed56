"""Work that was stopped can be done again, and comes to what it would have come to without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spec_lsp.analysis import Cache, analyse, read_document
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.report import Analysis
from spec_lsp.interruption import Interrupted, checkpoint, stopped_when
from spec_lsp.workspace import DiskWorkspace, decode

CORPUS = Path(__file__).parent / "corpus"
DOCUMENTS = (
    "shell/many-at-once.sh",
    "shell/script-written-and-run.sh",
    "yaml/helm-roles.yaml",
    "yaml/srt-aggregated.yaml",
    "markdown/notebook-lines.md",
)
FLAWED = "python -m sglang.launch_server --model-path x --no-such-flag --attention-backend trtllm_mha --page-size 7\n"
LONG = {
    "turns.sh": "for i in $(seq 200); do\n  A=$i\n  if [ $i = 7 ]; then B=$A; fi\ndone\n" * 5 + FLAWED,
    "launches.sh": "".join(FLAWED.replace("7\n", f"{n}\n") for n in range(7, 17)),
    "turns.py": "import sglang as sgl\nn = 0\nfor i in range(60):\n    n = n + i\n" * 10
    + "sgl.Engine(model_path='x', page_size=7)\n",
    "steps.yaml": "steps:\n" + "".join(f"  - run: |\n      {FLAWED}" for _ in range(10)),
}


def texts() -> list[tuple[str, str]]:
    return [(name, decode((CORPUS / name).read_bytes())) for name in DOCUMENTS] + list(LONG.items())


def analysed(name: str, text: str, cache: Cache) -> Analysis:
    workspace = DiskWorkspace((CORPUS,))
    path = str(CORPUS / name)
    return analyse(read_document(path, text, workspace), Options(), workspace, cache)


def said(analysis: Analysis) -> list[object]:
    return [(d.rule.name, d.severity, d.message, d.place, d.launch) for d in analysis.diagnostics] + [
        r.launch.extent for r in analysis.launches
    ]


def after(checkpoints: int) -> Callable[[], bool]:
    """True from that many checkpoints on."""
    left = [checkpoints]

    def needless() -> bool:
        left[0] -= 1
        return left[0] < 0

    return needless


@pytest.mark.parametrize(("name", "text"), texts(), ids=lambda value: value if len(value) < 40 else "")
def test_what_was_stopped_anywhere_comes_to_the_same_when_it_is_done_again(name: str, text: str) -> None:
    cache = Cache()
    stops, step = 0, 1
    edited = ""
    while True:
        # each try is of a version that nobody has read yet
        edited = f"{text}# {stops}\n" if name.endswith((".sh", ".py")) else text
        try:
            with stopped_when(after(step)):
                analysed(name, edited, cache)
            break
        except Interrupted:
            stops, step = stops + 1, step + 1 + step // 3
    assert stops, "it never looks up"
    assert said(analysed(name, edited, cache)) == said(analysed(name, edited, Cache()))


@pytest.mark.parametrize("name", LONG)
def test_long_work_looks_up_often(name: str) -> None:
    """For each line that is read, at least; in loops for each turn."""
    count = [0]

    def needless() -> bool:
        count[0] += 1
        return False

    with stopped_when(needless):
        analysed(f"often-{name}", LONG[name], Cache())
    assert count[0] >= LONG[name].count("\n") // 2


def test_nothing_stops_where_nobody_says_so() -> None:
    checkpoint()
    with pytest.raises(Interrupted), stopped_when(lambda: True):
        checkpoint()
    checkpoint()


@pytest.mark.parametrize(("inner", "outer"), [(True, False), (False, True)])
def test_either_of_two_may_stop_the_work(inner: bool, outer: bool) -> None:
    with pytest.raises(Interrupted), stopped_when(lambda: outer), stopped_when(lambda: inner):
        checkpoint()


def test_what_guards_against_faults_lets_it_pass() -> None:
    assert not issubclass(Interrupted, Exception)
