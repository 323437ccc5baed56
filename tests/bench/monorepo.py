"""A tree as a large checkout is: 10,000 files of every kind, of which 300 launch SGLang and some more only speak of it.

`python tests/bench/monorepo.py FOLDER` writes one. The same seed gives the same tree, byte for byte.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FILES = 10_000
LAUNCHING = 300
MENTIONING = 250

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-235B-A22B",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-R1",
    "openai/gpt-oss-120b",
    "openai/gpt-oss-20b",
    "zai-org/GLM-4.5-Air",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "google/gemma-3-27b-it",
    "/models/tuned-checkpoint",
    "acme/private-model-7b",
)
TAGS = (
    "latest",
    "latest",
    "latest",
    "dev",
    "v0.5.9-cu130",
    "v0.5.9",
    "v0.5.12",
    "v0.5.16-rocm720-mi35x",
    "v0.5.19",
    "v0.5.23",
)
GPUS = ("h100", "h200", "b200", "gb200", "a100", "l40s")
Flags = list[tuple[str, str]]
"""Each flag with its value, "" for a switch."""


# --- what is launched ------------------------------------------------------------------------------------------------


def flags(r: random.Random) -> Flags:
    """The flags of one launch, in proportions near those of public files: about one in seven is flawed."""
    out = [("--model-path", r.choice(MODELS)), ("--tp-size" if r.random() < 0.4 else "--tp", r.choice("1248"))]
    if r.random() < 0.6:
        out += [("--host", "0.0.0.0"), ("--port", str(30000 + r.randrange(100)))]
    wanted: Sequence[tuple[float, Callable[[], Flags]]] = (
        (0.5, lambda: [("--mem-fraction-static", f"0.{r.randrange(70, 95)}")]),
        (0.4, lambda: [("--trust-remote-code", "")]),
        (0.3, lambda: [("--served-model-name", "assistant")]),
        (0.3, lambda: [("--context-length", str(r.choice((8192, 32768, 131072))))]),
        (0.25, lambda: [("--chunked-prefill-size", str(r.choice((2048, 4096, 8192))))]),
        (0.25, lambda: [("--max-running-requests", str(r.choice((32, 64, 128, 256))))]),
        (0.25, lambda: [("--attention-backend", r.choice(("flashinfer", "triton", "fa3", "trtllm_mha", "trtllm_mla")))]),
        (0.15, lambda: [("--disable-radix-cache", "")]),
        (0.15, lambda: [("--kv-cache-dtype", "fp8_e4m3")]),
        (0.15, lambda: [("--reasoning-parser", "qwen3"), ("--tool-call-parser", "qwen25")]),
        (0.15, lambda: [("--quantization", "fp8")]),
        (0.12, lambda: [("--page-size", str(r.choice((1, 16, 32, 64))))]),
        (0.12, lambda: [("--cuda-graph-max-bs", str(r.choice((64, 128, 256))))]),
        (0.1, lambda: [("--enable-metrics", "")]),
        (0.1, lambda: [("--dp-size", r.choice("248")), ("--enable-dp-attention", "")]),
        (0.2, lambda: speculative(r)),
        (0.02, lambda: [("--enable-no-such-thing", "")]),
    )  # fmt: skip
    for share, some in wanted:
        if r.random() < share:
            out += some()
    return out


def speculative(r: random.Random) -> Flags:
    """Drafting, mostly in the combination everybody uses."""
    steps, topk, tokens = r.choice((("3", "1", "4"), ("3", "1", "4"), ("2", "1", "3"), ("5", "4", "8")))
    return [
        ("--speculative-algorithm", r.choice(("EAGLE", "EAGLE", "EAGLE3"))),
        ("--speculative-draft-model-path", "acme/draft"),
        ("--speculative-num-steps", steps),
        ("--speculative-eagle-topk", topk),
        ("--speculative-num-draft-tokens", tokens),
    ]


def words(some: Flags) -> list[str]:
    return [word for flag in some for word in flag if word]


def command(r: random.Random, some: Flags, *, separator: str = " \\\n  ") -> str:
    """The launch as a command line, one flag a line."""
    entry = r.choice(("python3 -m sglang.launch_server", "python -m sglang.launch_server", "sglang serve"))
    return separator.join([entry, *(" ".join(filter(None, flag)) for flag in some)])


def image(r: random.Random) -> str:
    return f"lmsysorg/sglang:{r.choice(TAGS)}"


# --- files that launch: name, text -----------------------------------------------------------------------------------


def shell(r: random.Random) -> tuple[str, str]:
    """A script that launches directly."""
    hint = f"# spec-lsp: gpu={r.choice(GPUS)}\n" if r.random() < 0.15 else ""
    name = f"serve-{r.choice(GPUS)}.sh" if r.random() < 0.2 else "serve.sh"
    env = "export SGLANG_ENABLE_SPEC_V2=1\n" if r.random() < 0.2 else ""
    return name, (
        f"#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n{hint}{env}mkdir -p logs\n"
        f"{command(r, flags(r))} > logs/server.log 2>&1 &\nSERVER=$!\ntrap 'kill $SERVER' EXIT\n"
        "until curl -sf localhost:30000/health; do sleep 5; done\nwait\n"
    )  # fmt: skip


def shell_with_parts(r: random.Random) -> tuple[str, str]:
    """A script with defaults, an array, a branch and a wait loop."""
    some = flags(r)
    rest = some[2:]
    half = len(rest) // 2
    lines = [
        "#!/bin/bash",
        f"# take {r.randrange(1000)} of the evaluation",
        f"MODEL=${{MODEL:-{some[0][1]}}}",
        f"TP=${{TP:-{some[1][1]}}}",
        'LOG_DIR="logs/$(date +%F)"',
        'mkdir -p "$LOG_DIR"',
        "ARGS=(",
        '  --model-path "$MODEL"',
        '  --tp-size "$TP"',
        *("  " + " ".join(filter(None, f)) for f in rest[:half]),
        ")",
        'if [[ "${FAST:-1}" == 1 ]]; then',
        "  ARGS+=(",
        *("    " + " ".join(filter(None, f)) for f in rest[half:]),
        "  )",
        "fi",
        'python3 -m sglang.launch_server "${ARGS[@]}" > "$LOG_DIR/server.log" 2>&1 &',
        "for i in $(seq 120); do",
        "  if curl -sf http://localhost:30000/health > /dev/null; then break; fi",
        "  sleep 5",
        "done",
        "python3 -m sglang.bench_serving --backend sglang --num-prompts 100",
    ]
    return "launch.sh", "\n".join(lines) + "\n"


def slurm(r: random.Random) -> tuple[str, str]:
    gpu = r.choice(GPUS)
    return "job.slurm", (
        f"#!/bin/bash\n#SBATCH --job-name=serve\n#SBATCH --gres=gpu:{gpu}:8\n#SBATCH --time=04:00:00\n"
        f"source env.sh\nsrun --container-image {image(r)} {command(r, flags(r))}\n"
    )


def markdown(r: random.Random) -> tuple[str, str]:
    """A page with one to three launches in fences."""
    text = "# Serving\n\n" + prose(r, 60)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        text += f"\n\n## {r.choice(('Quick start', 'With drafting', 'On eight GPUs', 'Long context'))}\n\n{prose(r, 40)}\n\n"
        text += f"```bash\n{command(r, flags(r))}\n```\n\n{prose(r, 60)}"
    return "README.md", text + "\n"


def deployment(r: random.Random) -> tuple[str, str]:
    """A Kubernetes Deployment with its Service; the words a list item each, or a script in a block."""
    some = flags(r)
    if r.random() < 0.3:
        body = command(r, some, separator=" \\\n").replace("\n", "\n              ")
        args = f"          command: [bash, -c]\n          args:\n            - |\n              {body}\n"
    else:
        args = '          command: ["python3", "-m", "sglang.launch_server"]\n          args:\n' + "".join(
            f"            - {json.dumps(w)}\n" for w in words(some)
        )
    product = r.choice(("NVIDIA-H100-80GB-HBM3", "NVIDIA-B200", ""))
    selector = f"      nodeSelector:\n        nvidia.com/gpu.product: {product}\n" if product else ""
    return "deployment.yaml", (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: llm\nspec:\n  ports:\n    - port: 80\n      targetPort: 30000\n"
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: llm\nspec:\n  replicas: 1\n  template:\n    spec:\n"
        f"{selector}      containers:\n        - name: server\n          image: {image(r)}\n{args}"
        "          resources:\n            limits:\n              nvidia.com/gpu: 8\n"
        "          env:\n            - name: SGLANG_LOG_LEVEL\n              value: info\n"
    )


def compose(r: random.Random) -> tuple[str, str]:
    line = command(r, flags(r), separator="\n      ")
    return "docker-compose.yml", (
        "services:\n  redis:\n    image: redis:7\n    ports: ['6379:6379']\n"
        f"  llm:\n    image: {image(r)}\n    shm_size: 32g\n    ipc: host\n    command: >\n      {line}\n"
        "    ports:\n      - 30000:30000\n    deploy:\n      resources:\n        reservations:\n          devices:\n"
        "            - driver: nvidia\n              count: all\n              capabilities: [gpu]\n"
    )


def config(r: random.Random) -> tuple[str, str]:
    """A `--config` file of SGLang's own."""
    return "server-config.yaml", "".join(f"{f.removeprefix('--')}: {v or 'true'}\n" for f, v in flags(r))


def dockerfile(r: random.Random) -> tuple[str, str]:
    some = words(flags(r))
    entry = json.dumps(["python3", "-m", "sglang.launch_server", *some])
    return "Dockerfile", f"FROM {image(r)}\nWORKDIR /app\nCOPY . .\nRUN pip install -r requirements.txt\nCMD {entry}\n"


def python(r: random.Random) -> tuple[str, str]:
    some = flags(r)
    items = "".join(f"        {w!r},\n" for w in words(some))
    if r.random() < 0.4:
        given = "".join(f"        {f.removeprefix('--').replace('-', '_')}={v!r},\n" for f, v in some[:1])
        body = f"    engine = sgl.Engine(\n{given}        tp_size=2,\n        mem_fraction_static=0.8,\n    )\n    return engine\n"
    else:
        body = (
            "    command = [\n        sys.executable,\n        '-m',\n        'sglang.launch_server',\n"
            f"{items}    ]\n    return subprocess.Popen(command)\n"
        )
    return "server.py", (
        f'"""{prose(r, 12)}"""\n\nimport subprocess\nimport sys\n\nimport sglang as sgl\n\n\ndef start():\n{body}\n\n{code(r, 120)}'
    )


def makefile(r: random.Random) -> tuple[str, str]:
    line = command(r, flags(r), separator=" \\\n\t\t")
    return "Makefile", f".PHONY: serve test\n\nPORT ?= 30000\n\nserve:\n\t{line}\n\ntest:\n\tpytest -q tests\n"


def systemd(r: random.Random) -> tuple[str, str]:
    return "llm.service", (
        "[Unit]\nDescription=Language model\nAfter=network.target\n\n[Service]\nEnvironment=HF_HOME=/var/lib/hf\n"
        f"ExecStart=/opt/venv/bin/python -m sglang.launch_server {' '.join(words(flags(r)))}\nRestart=always\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def notebook(r: random.Random) -> tuple[str, str]:
    lines = ["!" + command(r, flags(r), separator=" ")]
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [prose(r, 40)]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [], "source": lines},
    ]
    return "demo.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


Maker = Callable[[random.Random], tuple[str, str]]
LAUNCHERS: dict[Maker, int] = {
    shell: 75, shell_with_parts: 45, slurm: 12, markdown: 58, deployment: 40, compose: 20, config: 8, dockerfile: 10,
    python: 20, makefile: 4, systemd: 4, notebook: 4,
}  # fmt: skip
"""How many of each in `LAUNCHING` files."""


# --- files that speak of SGLang and launch nothing --------------------------------------------------------------------


def mentioning(r: random.Random) -> tuple[str, str]:
    """Clients, requirements, notes, pipelines: one that names SGLang."""
    made = r.randrange(6)
    if made == 0:
        return (
            "client.py",
            f"import sglang as sgl\n\n\n@sgl.function\ndef ask(s):\n    s += sgl.gen('a')\n\n\n{code(r, 150)}",
        )
    if made == 1:
        return "requirements.txt", "torch\nsglang>=0.5\nrequests\n"
    if made == 2:
        return "NOTES.md", f"# Notes\n\n{prose(r, 200)}\n\nWe moved this to SGLang in spring. {prose(r, 300)}\n"
    if made == 3:
        return (
            "wait.sh",
            "#!/bin/bash\necho 'waiting for the sglang server'\nuntil curl -sf $URL/health; do sleep 1; done\n",
        )
    if made == 4:
        return (
            "ci.yml",
            "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install sglang\n      - run: pytest -q\n",
        )
    return "metrics.py", f'"""Scrapes the metrics of an SGLang server."""\n\n{code(r, 200)}'


# --- all the others ---------------------------------------------------------------------------------------------------

VOCABULARY = (
    "the", "model", "serves", "tokens", "while", "requests", "wait", "for", "pages", "of", "memory", "and", "kernels", "run", "on",
    "every", "device", "so", "that", "a", "batch", "users", "gets", "its", "answer", "before", "next", "one", "starts", "with",
)  # fmt: skip
NAMES = (
    "load", "parse", "batch", "encode", "merge", "score", "index", "reader", "writer", "client", "table", "planner", "worker",
    "bucket", "frame", "graph", "state",
)  # fmt: skip
SUFFIXES = {
    ".py": 42, ".md": 8, ".yaml": 8, ".yml": 2, ".json": 8, ".sh": 4, ".txt": 4, ".ts": 5, ".tsx": 2, ".js": 2, ".cpp": 3,
    ".cu": 2, ".h": 3, ".toml": 1, ".png": 2, ".ipynb": 1, ".csv": 1, ".proto": 1, "": 1,
}  # fmt: skip


def prose(r: random.Random, count: int) -> str:
    return " ".join(r.choices(VOCABULARY, k=count)).capitalize() + "."


def code(r: random.Random, lines: int) -> str:
    """Python that does nothing in particular."""
    out: list[str] = []
    while len(out) < lines:
        one, other = r.choices(NAMES, k=2)
        out += [
            f"def {one}_{other}({other}s, limit={r.randrange(100)}):",
            f'    """{prose(r, 8)}"""',
            f"    {one} = []",
            f"    for {other} in {other}s:",
            f"        if len({one}) > limit or {other}.get({one!r}) is None:",
            f"            {one}.append({{'{other}': {other}, 'n': {r.randrange(10)}}})",
            f"    return {one}",
            "",
            "",
        ]
    return "\n".join(out)


def other(r: random.Random, suffix: str) -> bytes:
    """The content of a file that has nothing to do with SGLang; sizes as in a checkout, a few of them large."""
    size = min(max(int(r.lognormvariate(4.2, 1.0)), 3), 4000)  # lines: half of them under 70
    if suffix == ".png":
        return b"\x89PNG\r\n" + r.randbytes(size * 40)
    if suffix in (".py", ".ts", ".tsx", ".js", ".cpp", ".cu", ".h", ".proto"):
        return code(r, size).encode()
    if suffix in (".yaml", ".yml"):
        return "".join(
            f"{r.choice(NAMES)}-{n}:\n  name: {prose(r, 3)}\n  count: {n}\n" for n in range(size // 3 + 1)
        ).encode()
    if suffix in (".json", ".ipynb"):
        rows = [{"id": n, "text": prose(r, 12)} for n in range(size)]
        return json.dumps(rows if suffix == ".json" else {"cells": [], "metadata": {"rows": rows}}, indent=1).encode()
    if suffix == ".sh":
        return (
            "#!/bin/bash\n" + "".join(f"echo {prose(r, 6)!r} | tee out-{n}.log\n" for n in range(size // 3))
        ).encode()
    return "\n".join(prose(r, 14) for _ in range(size)).encode()


# --- the tree ---------------------------------------------------------------------------------------------------------


def plan(r: random.Random, files: int, launching: int, mentioning_: int) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, those of a kind one after the other."""
    made = 0
    for maker, share in LAUNCHERS.items():
        for _ in range(round(share * launching / LAUNCHING)):
            name, text = maker(r)
            made += 1
            yield name, text.encode()
    for _ in range(mentioning_):
        name, text = mentioning(r)
        made += 1
        yield name, text.encode()
    while made < files:
        suffix = r.choices(list(SUFFIXES), list(SUFFIXES.values()))[0]
        made += 1
        yield f"{r.choice(NAMES)}_{made}{suffix}", other(r, suffix)


def write(
    root: Path, files: int = FILES, launching: int = LAUNCHING, mentioning_: int = MENTIONING, seed: int = 7
) -> Path:
    """Write the tree, some 1,200 folders up to six deep."""
    r = random.Random(seed)
    folders = ["."]
    while len(folders) < files // 8:
        parent = r.choice(folders)
        if parent.count("/") < 6:
            folders.append(f"{parent}/{r.choice(NAMES)}{len(folders)}")
    for name, content in plan(r, files, launching, mentioning_):
        folder = root / r.choice(folders)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        while path.exists():
            path = path.with_name(f"{r.randrange(10_000)}-{name}")
        path.write_bytes(content)
    return root


if __name__ == "__main__":
    write(Path(sys.argv[1]))
