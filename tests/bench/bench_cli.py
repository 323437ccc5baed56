"""How long `spec-lsp check` takes over many files: `python tests/bench/bench_cli.py [--runs N] [--spec-lsp COMMAND]`.

Two trees are made: 500 launch scripts; and monorepo.py's, 10,000 files of which 300 launch something. Each figure is the median of several runs
of the whole command, beside bare Python (what any Python program pays), and shellcheck on the same scripts where it is installed. The CPU
time counts all processes: on a machine that others use too, it says more than the wall's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import monorepo

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-8B",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-120b",
    "zai-org/GLM-4.5-Air",
)
BACKENDS = ("fa3", "flashinfer", "triton", "trtllm_mha", "flashmla")


def script(seed: int) -> str:
    """A launch script as people write them: variables, an array, a branch, a loop, some forty lines."""
    r = random.Random(seed)
    topk, backend = r.choice((1, 1, 1, 4)), r.choice(BACKENDS)
    lines = [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        f"# Serves a model for the evaluation, take {seed}.",
        f"MODEL=${{MODEL:-{r.choice(MODELS)}}}",
        f"TP=${{TP:-{r.choice((1, 2, 4, 8))}}}",
        f"TOPK={topk}",
        f"PORT=$((30000 + {r.randrange(1000)}))",
        'LOG_DIR="logs/$(date +%F)"',
        'mkdir -p "$LOG_DIR"',
        "ARGS=(",
        '  --model-path "$MODEL"',
        '  --tp-size "$TP"',
        f"  --mem-fraction-static 0.{r.randrange(70, 95)}",
        f"  --attention-backend {backend}",
        ")",
        'if [[ "${SPEC:-1}" == 1 ]]; then',
        "  ARGS+=(",
        "    --speculative-algorithm EAGLE3",
        "    --speculative-draft-model-path jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B",
        f"    --speculative-num-steps {r.choice((3, 5))}",
        '    --speculative-eagle-topk "$TOPK"',
        f"    --speculative-num-draft-tokens {r.choice((4, 8, 16))}",
        "  )",
        "fi",
        *([f"export SGLANG_LOG_MS={r.randrange(2)}"] if r.random() < 0.5 else []),
        'echo "starting $MODEL on port $PORT"',
        'python3 -m sglang.launch_server "${ARGS[@]}" \\',
        '  --host 0.0.0.0 --port "$PORT" \\',
        f"  --chunked-prefill-size {r.choice((2048, 4096, 8192))} \\",
        '  > "$LOG_DIR/server.log" 2>&1 &',
        "SERVER=$!",
        "trap 'kill $SERVER' EXIT",
        "for i in $(seq 120); do",
        '  if curl -sf "http://localhost:$PORT/health" > /dev/null; then',
        "    break",
        "  fi",
        "  sleep 5",
        "done",
        'python3 -m sglang.bench_serving --backend sglang --port "$PORT" --num-prompts 100',
        "wait",
    ]
    return "\n".join(lines) + "\n"


BESIDE = {
    "check one script": "python -c pass",
    "check one script again": "python -c pass",
    "check 500 scripts": "shellcheck 500 scripts",
    "check 500 scripts again": "shellcheck 500 scripts",
    "check 500 manifests": "yamllint 500 manifests",
    "check 500 manifests again": "yamllint 500 manifests",
}
"""What is told beside what, of the same run."""


def scripts(root: Path, count: int) -> Path:
    """A folder of launch scripts."""
    root.mkdir()
    for n in range(count):
        (root / f"launch{n:03}.sh").write_text(script(n))
    return root


def manifests(root: Path, count: int) -> Path:
    """A folder of Kubernetes resources."""
    root.mkdir()
    for n in range(count):
        (root / f"serve{n:03}.yaml").write_text(monorepo.deployment(random.Random(n))[1])
    return root


def measure(command: Sequence[str], runs: int, folder: Path) -> tuple[float, str]:
    """The least CPU time of all processes of a run, in milliseconds, and what to print: medians of all runs but the first. Our modules are
    compiled in the first run and kept, as when installed, and so is what was found unless the command says `--no-cache`."""
    times = []
    used = []
    for _ in range(runs + 1):
        start, before = time.perf_counter(), cpu()
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
        used.append((cpu() - before) * 1000)
        if done.returncode not in (0, 1):
            sys.exit(f"{shlex.join(command)}: exit {done.returncode}\n{done.stderr.decode()[-2000:]}")
    middle, processor = statistics.median(times[1:]), statistics.median(used[1:])
    return min(
        used[1:]
    ), f"{middle:8.0f} ms  CPU {processor:8.0f} ms   (first {times[0]:.0f} ms, slowest {max(times[1:]):.0f} ms)"


def cpu() -> float:
    """CPU seconds that ended child processes, and theirs, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--spec-lsp", default=f"{sys.executable} -m spec_lsp.cli", help="the command")
    o = p.parse_args()
    ours = shlex.split(o.spec_lsp)
    environment = {k: os.environ.pop(k) for k in ("NO_COLOR", "FORCE_COLOR") if k in os.environ}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(scratch, "compiled"))
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch, "cache"))
        many, large = scripts(Path(scratch, "scripts"), 500), monorepo.write(Path(scratch, "tree"))
        resources = manifests(Path(scratch, "manifests"), 500)
        found = json.loads(
            subprocess.run([*ours, "check", ".", "--format", "json"], cwd=many, capture_output=True, check=False).stdout
        )
        print(
            f"500 scripts with a launch each, {len(found)} findings; 10,000 files, 300 with a launch; {len(os.sched_getaffinity(0))} CPUs"
        )
        anew = [*ours, "check", "--no-cache"]
        rows: list[tuple[str, Sequence[str], Path]] = [
            ("python -c pass", [sys.executable, "-c", "pass"], many),
            ("spec-lsp --version", [*ours, "--version"], many),
            ("check one script", [*anew, "launch000.sh"], many),
            ("check one script again", [*ours, "check", "launch000.sh"], many),
            ("check 500 scripts", [*anew, "."], many),
            ("check 500 scripts again", [*ours, "check", "."], many),
            ("check 500 scripts, one process", [*anew, ".", "--jobs", "1"], many),
            ("check 500 scripts, H200 named", [*anew, ".", "--gpu", "h200"], many),
            ("check 500 scripts, without fixes", [*anew, ".", "--statistics"], many),
            ("check 500 manifests", [*anew, "."], resources),
            ("check 500 manifests again", [*ours, "check", "."], resources),
            ("check a tree of 10,000 files", [*anew, "."], large),
            ("check the tree again", [*ours, "check", "."], large),
            ("check the tree in one process", [*anew, ".", "--jobs", "1"], large),
            ("check the tree without fixes", [*anew, ".", "--statistics"], large),
        ]
        if shutil.which("shellcheck"):
            rows.append(("shellcheck 500 scripts", ["shellcheck", *sorted(p.name for p in many.iterdir())], many))
        if shutil.which("yamllint"):
            rows.append(("yamllint 500 manifests", ["yamllint", "-d", "relaxed", "."], resources))
        used = {}
        for label, command, folder in rows:
            used[label], told = measure(command, o.runs, folder)
            print(f"{label:34}{told}", flush=True)
        for label, beside in BESIDE.items():
            if beside in used:
                print(f"{label:34}{used[label] / used[beside]:8.2f} × the CPU of {beside}")
    os.environ.update(environment)


if __name__ == "__main__":
    main()
