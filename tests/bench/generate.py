"""The file that the benchmarks of the server and its peers read: a script of twenty lines for each launch, 1,000 lines with 50 launches."""

from __future__ import annotations

from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "models"
LAUNCHES = 50

HEAD = """\
#!/bin/bash
# fifty servers
PAGE=16
"""


def launch(number: int) -> list[str]:
    """Twenty lines: a comment, a launch over fourteen lines, and a little of what scripts do around it."""
    topk = 1 + number % 4
    return [
        f"# server {number}",
        f"LOG_{number}=/tmp/server_{number}.log",
        f'echo "starting server {number}" > "$LOG_{number}"',
        "python3 -m sglang.launch_server \\",
        f"  --model-path {MODELS}/qwen3-8b \\",
        f"  --served-model-name qwen-{number} \\",
        f"  --port {30000 + number} \\",
        "  --host 0.0.0.0 \\",
        "  --tp-size 2 \\",
        "  --mem-fraction-static 0.85 \\",
        "  --page-size $PAGE \\",
        f"  --max-running-requests {64 + number} \\",
        "  --attention-backend triton \\",
        "  --speculative-algorithm NGRAM \\",
        f"  --speculative-num-draft-tokens {8 + topk} \\",
        "  --speculative-num-steps 4 \\",
        f"  --speculative-eagle-topk {topk} \\",
        f'  --log-level info >> "$LOG_{number}" 2>&1 &',
        f"SERVER_{number}=$!",
        "",
    ]


def script(*, hardware: bool, launches: int = LAUNCHES) -> str:
    """The whole script; `hardware`: a comment names release and GPU."""
    named = "# spec-lsp: sglang=0.5.23 gpu=h100\n" if hardware else ""
    body = [line for number in range(launches) for line in launch(number)]
    return HEAD + named + "\n".join(body) + "\n"


def pod(number: int) -> list[str]:
    """Twenty lines: a Kubernetes pod whose container is launched as the `number`th server of the script is."""
    topk = 1 + number % 4
    return [
        "---",
        "apiVersion: v1",
        "kind: Pod",
        "metadata:",
        f"  name: server-{number}",
        "spec:",
        "  containers:",
        "  - name: sglang",
        '    command: ["python3", "-m", "sglang.launch_server"]',
        "    args:",
        f"    - --model-path={MODELS}/qwen3-8b",
        f"    - --port={30000 + number}",
        "    - --tp-size=2",
        "    - --page-size=16",
        f"    - --max-running-requests={64 + number}",
        "    - --attention-backend=triton",
        "    - --speculative-algorithm=NGRAM",
        f"    - --speculative-num-draft-tokens={8 + topk}",
        "    - --speculative-num-steps=4",
        f"    - --speculative-eagle-topk={topk}",
    ]


def manifest(*, launches: int = LAUNCHES) -> str:
    """A file of pods, each a document of its own."""
    return "\n".join(line for number in range(launches) for line in pod(number)) + "\n"


def section(number: int) -> list[str]:
    """Twenty lines: a section of a page, with the `number`th launch of the script in a block of code."""
    return [f"## Server {number}", "", "It is started like this:", "", "```bash", *launch(number)[3:16], "```", ""]


def page(*, launches: int = LAUNCHES) -> str:
    """A page of Markdown with a section for each launch."""
    return "\n".join(line for number in range(launches) for line in section(number)) + "\n"
