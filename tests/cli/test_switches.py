"""A launch that is refused only when two switches are on together is found with twenty others beside them, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

REFUSED_TOGETHER = ("--enable-hierarchical-cache", "--disable-radix-cache")
"""Each is fine alone; SGLang refuses the two together (server_args.py, `host-cache-without-radix-cache`)."""
OTHERS = (
    "--trust-remote-code", "--enable-metrics", "--log-requests", "--show-time-cost", "--skip-tokenizer-init", "--enable-p2p-check",
    "--triton-attention-reduce-in-fp32", "--delete-ckpt-after-loading", "--enable-memory-saver", "--allow-auto-truncate",
    "--enable-custom-logit-processor", "--flashinfer-mla-disable-ragged", "--enable-return-hidden-states", "--enable-cache-report",
    "--disable-outlines-disk-cache", "--num-continuous-decode-steps=2", "--stream-interval=2", "--enable-torch-compile",
    "--log-level=debug", "--watchdog-timeout=900",
)  # fmt: skip
FLAGS = (REFUSED_TOGETHER[0], *OTHERS, REFUSED_TOGETHER[1])
START = "python3 -m sglang.launch_server --model-path ./llama"

SHELL = {
    "array": '[ -n "$S{i}" ] && A+=({flag})',
    "if": 'if [[ "${{S{i}:-0}}" == 1 ]]; then A+=({flag}); fi',
    "case": 'case "$S{i}" in yes) A+=({flag}) ;; esac',
    "alternative": "A+=(${{S{i}:+{flag}}})",
    "text": 'if [ -n "$S{i}" ]; then E="$E {flag}"; fi',
}


def shell(kinds: list[str]) -> str:
    lines = [SHELL[kinds[i % len(kinds)]].format(i=i, flag=flag) for i, flag in enumerate(FLAGS)]
    return "\n".join(["#!/bin/bash", "A=()", "E=", *lines, f'{START} "${{A[@]}}" $E', ""])


def python() -> str:
    names = ", ".join(f"s{i}" for i in range(len(FLAGS)))
    lines = "".join(f"    if s{i}:\n        args += ['{flag}']\n" for i, flag in enumerate(FLAGS))
    return f"import subprocess\ndef go({names}):\n    args = {START.split()!r}\n{lines}    subprocess.run(args)\n"


def compose() -> str:
    return f"services:\n  s:\n    command: >\n      {START}\n" + "".join(
        f"      ${{S{i}:+{flag}}}\n" for i, flag in enumerate(FLAGS)
    )


def helm() -> str:
    words = "".join(f"    - {word}\n" for word in START.split())
    return (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: s\n    image: sglang\n    command:\n"
        + words
        + "".join(f"    {{{{- if .Values.s{i} }}}}\n    - {flag}\n    {{{{- end }}}}\n" for i, flag in enumerate(FLAGS))
    )


FILES = {
    **{f"{kind}.sh": shell([kind]) for kind in SHELL},
    "mixed.sh": shell(list(SHELL)),
    "run.py": python(),
    "docker-compose.yaml": compose(),
    "templates/pod.yaml": helm(),
}


@pytest.mark.parametrize("name", FILES)
def test_two_switches_that_only_fail_together(name: str, folder: Path, run: Callable[..., Ran]) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[name], "utf-8")
    ran = run("check", name, "--sglang", "0.5.23", "--gpu", "h100")
    (told,) = [line for line in ran.out.splitlines() if "host-cache-without-radix-cache" in line]
    when = told.partition("This holds when ")[2]
    last = len(FLAGS) - 1
    assert "S0" in when.upper()
    assert f"S{last}" in when.upper()
    assert not any(f"S{i}`" in when.upper() for i in range(1, last)), when
