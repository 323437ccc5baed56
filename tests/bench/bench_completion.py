"""CPU time of a completion in a script of fifty launches, beside that of reading and judging the script once.

    python -m tests.bench.bench_completion

The aim is 20 ms a keystroke; ratios within one run are what can be compared between machines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from spec_lsp.analysis import Cache, analyse, read_document
from spec_lsp.analysis.completion import complete
from spec_lsp.analysis.inputs import Options
from spec_lsp.workspace import DiskWorkspace
from tests.bench.generate import script

QUESTIONS = ("--", "--attention-backend ", "--page-size ")
LAUNCH = "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct "
ROUNDS = 12


def milliseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Least and median CPU time of a call."""
    spent = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        call()
        spent.append(1000 * (time.thread_time() - start))
    return min(spent), statistics.median(spent)


def main() -> None:
    workspace, options = DiskWorkspace(), Options()
    for hardware in (True, False):
        for question in QUESTIONS:
            text = script(hardware=hardware) + LAUNCH + question
            cache = Cache()

            def judge(text: str = text, cache: Cache = cache) -> object:
                return analyse(read_document("/bench/run.sh", text, workspace), options, workspace, cache)

            analysis = analyse(read_document("/bench/run.sh", text, workspace), options, workspace, cache)
            offset = len(text)
            least, median = milliseconds(lambda a=analysis, o=offset: complete(a, o, options, workspace))  # type: ignore[misc]
            base = milliseconds(judge)[1]
            print(
                f"hardware {'given' if hardware else 'open '}  {question:22} least {least:5.1f} ms  median {median:5.1f} ms"
                f"  reading and judging again {base:5.1f} ms  ratio {median / base:4.2f}"
            )


if __name__ == "__main__":
    main()
