"""Times `parse` on a 1,000-line script with 50 launches, after keystrokes of three kinds. Run by hand: `python -m tests.syntax.timing`."""

from __future__ import annotations

import statistics
import time

from spec_lsp.syntax import parse

HEAD = """#!/bin/bash
set -euo pipefail
TOPK=${TOPK:-4}
PAGE=1
MODEL=meta-llama/Llama-3.1-8B-Instruct
BASE=(--trust-remote-code --mem-fraction-static 0.8)
if [ "$1" = big ]; then
  EXTRA="--tp 8"
else
  EXTRA="--tp 4"
fi
"""
LAUNCH = """# launch {i}
export SGLANG_PORT_{i}=1
echo "starting {i}"
python3 -m sglang.launch_server \\
  --model-path $MODEL \\
  --port {port} \\
  --host 0.0.0.0 \\
  --speculative-algorithm EAGLE3 \\
  --speculative-draft-model-path lmsys/x \\
  --speculative-num-steps 5 \\
  --speculative-eagle-topk $TOPK \\
  --speculative-num-draft-tokens 8 \\
  --attention-backend fa3 \\
  --page-size "$PAGE" \\
  --cuda-graph-max-bs 32 \\
  --dtype bfloat16 \\
  $EXTRA \\
  "${{BASE[@]}}" > log{i} 2>&1 &
sleep {i}

"""


def script(count: int = 50) -> str:
    return HEAD + "".join(LAUNCH.format(i=i, port=30000 + i) for i in range(count))


def timed(text: str) -> float:
    start = time.process_time()
    parse("timing.sh", text)
    return (time.process_time() - start) * 1e3


def main() -> None:
    """Processor time in milliseconds; the loop tells how fast the machine is just now (4 ms on a quiet one)."""
    start = time.process_time()
    sum(i for i in range(100_000))
    print(f"a loop of 100,000: {(time.process_time() - start) * 1e3:.1f} ms")
    text = script()
    print(f"{text.count(chr(10))} lines, first reading: {timed(text):.1f} ms")
    places = {
        "in a launch in the middle": text.index("--dtype bfloat16", len(text) // 2),
        "in a comment": text.index("# launch 30") + 5,
        "in a variable that all launches read": text.index("PAGE=1") + 6,
    }
    for what, at in places.items():
        times = sorted(timed(text[:at] + "1" * (k % 7 + 1) + text[at:]) for k in range(80))
        print(f"keystroke {what}: least {times[0]:.1f}, median {statistics.median(times):.1f}, p95 {times[75]:.1f} ms")


if __name__ == "__main__":
    main()
