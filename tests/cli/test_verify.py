"""`spec-lsp verify`, on a small SGLang of the tests' own: agreement, SGLang's words at the flag, disagreements with a report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.cli.main import main
from tests.asking.fake import SERVER_ARGS, write
from tests.cli.conftest import MODELS, Ran

Verify = Callable[..., Ran]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Verify:
    """Runs it on a script (a text) or on what stands in the folder already."""
    monkeypatch.setenv("PYTHONPATH", str(write(tmp_path / "packages")))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def verify_(text: str, *words: str, python: str = sys.executable, name: str = "a.sh") -> Ran:
        (folder / name).write_text(text)
        code = main(["verify", name, "--python", python, "--models", str(MODELS), *words])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return verify_


LAUNCH = "# spec-lsp: gpu=h100\npython3 -m sglang.launch_server --model-path llama-3.1-8b"


def test_agreement(verify: Verify) -> None:
    ran = verify(f"{LAUNCH} --page-size 16\n")
    assert ran == Ran(
        0, "a.sh:2:1: SGLang 0.5.23 on a simulated NVIDIA H100 80GB HBM3 accepts the launch; spec-lsp agrees.\n", ""
    )


def test_a_launch_of_another_release_says_so(verify: Verify) -> None:
    ran = verify(f"{LAUNCH.replace('gpu', 'sglang=0.5.19 gpu')} --page-size 16\n")
    assert "accepts the launch; spec-lsp agrees. The launch will run 0.5.19 (directive)." in ran.out


def test_sglangs_own_words_stand_at_the_flag(verify: Verify) -> None:
    ran = verify(f"{LAUNCH} --page-size x\n")
    assert ran.code == 1
    assert "refuses the launch; spec-lsp agrees." in ran.out
    assert "error: sglang[argparse]: argument --page-size: invalid int value: 'x'." in ran.out
    assert " --> a.sh:2:71\n" in ran.out


def test_a_refusal_that_spec_lsp_does_not_know(verify: Verify) -> None:
    ran = verify(f"{LAUNCH} --tp-size 16 --page-size 32 --api-key geheim\n")
    assert ran.code == 1
    assert (
        "error: sglang[ValueError]: page_size 32 does not suit llama-3.1-8b. spec-lsp does not know this refusal"
        in ran.out
    )
    assert "(ValueError in server_args.py:__post_init__)" in ran.out
    assert "spec-lsp disagrees" in ran.out
    assert (
        "- SGLang: refused (ValueError in server_args.py:__post_init__): page_size 32 does not suit llama-3.1-8b"
        in ran.out
    )
    assert "--model-path llama-3.1-8b --tp-size 16 --page-size 32 --api-key '…'" in ran.out
    assert "geheim" not in ran.out.partition("###")[2]


def test_a_refusal_that_sglang_does_not_make(verify: Verify) -> None:
    ran = verify(f"{LAUNCH} --attention-backend trtllm_mla\n")
    assert ran.code == 1
    assert "warning: sglang[disagreement]: SGLang 0.5.23 accepts this launch, which spec-lsp refuses (`" in ran.out
    assert "- spec-lsp: refuses, by `" in ran.out


def test_a_value_that_ends_up_otherwise(verify: Verify) -> None:
    ran = verify(LAUNCH.replace("h100", "b200") + "\n", "--report", "report.md")
    assert ran.code == 1
    assert "`attention_backend` 'triton', not 'trtllm_mha'" in ran.out
    assert "###" not in ran.out
    report = Path("report.md").read_text()
    assert report.startswith("### spec-lsp ")
    assert "- `attention_backend`: SGLang `'triton'`, spec-lsp `'trtllm_mha'`" in report


def test_each_way_is_asked(verify: Verify) -> None:
    text = LAUNCH.replace("python3", "for P in 1 32 x; do\npython3") + " --page-size $P\ndone\n"
    ran = verify(text)
    assert "refuses 2 of 3 ways; spec-lsp disagrees in 1." in ran.out
    assert (
        "page_size 32 does not suit llama-3.1-8b. spec-lsp does not know this refusal: please report it. This holds when `P` is `32`."
        in ran.out
    )
    ran = verify(text, "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [r["relation"] for r in rows] == ["accepted", "missed", "refused"]
    assert [(r["start"]["line"], r["start"]["character"]) for r in rows] == [(2, 0), (2, 58), (2, 70)]
    assert rows[1]["report"].startswith("### spec-lsp ")
    assert (rows[0]["report"], rows[0]["sglang"], rows[0]["simulated"]) == (None, "0.5.23", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{LAUNCH} --page-size $PAGE\n", "was not asked: `--page-size` is not known: from the environment"),
        ("python3 -m sglang.launch_server --model-path nobody/knows-this\n", "the config.json of `nobody/knows-this` is not on this machine"),
        ("python3 -m sglang.launch_server --model-path $M\n", "`--model-path` is not known: from the environment"),
        (f"export SGLANG_MAMBA_SSM_DTYPE=$X\n{LAUNCH}\n", "`$SGLANG_MAMBA_SSM_DTYPE` is not known"),
    ],
)  # fmt: skip
def test_what_the_file_does_not_tell_is_not_asked(verify: Verify, text: str, said: str) -> None:
    ran = verify(text)
    assert said in ran.out
    assert ran.code == 0


def test_a_model_that_only_spec_lsp_knows(verify: Verify) -> None:
    ran = verify("python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --page-size 32\n")
    assert "The config.json of `Qwen/Qwen3-8B` was made of what spec-lsp knows." in ran.out
    assert "page_size 32 does not suit Qwen/Qwen3-8B." in ran.out


def test_config_files_serve_and_engines(verify: Verify) -> None:
    Path("c.yaml").write_text("page-size: 16\n")
    for text in (
        f"{LAUNCH} --config c.yaml\n",
        f"cat > c2.yaml <<E\npage-size: 1\nE\n{LAUNCH} --config c2.yaml\n",
        "sglang serve llama-3.1-8b --page-size 16\n",
        f"SGLANG_MAMBA_SSM_DTYPE=bfloat16 {LAUNCH.splitlines()[1]}\n",
    ):
        ran = verify(text)
        assert "accepts the launch; spec-lsp agrees." in ran.out, (text, ran)
    engine = "import sglang\nsglang.Engine(model_path='llama-3.1-8b', page_size={})\n"
    assert "accepts the launch; spec-lsp agrees." in verify(engine.format(16), name="a.py").out
    assert "page_size 32 does not suit llama-3.1-8b." in verify(engine.format(32), name="a.py").out
    config = "model-path: llama-3.1-8b\npage-size: {}\nattention-backend: fa3\n"
    assert "accepts the launch; spec-lsp agrees." in verify(config.format(16), name="c.yaml").out
    assert "page_size 32 does not suit llama-3.1-8b." in verify(config.format(32), name="c.yaml").out


def test_a_release_that_spec_lsp_does_not_know(verify: Verify, tmp_path: Path) -> None:
    write(tmp_path / "packages", release="0.9.9.dev3+gabc")
    ran = verify(f"{LAUNCH} --page-size 32\n")
    assert "error: sglang[ValueError]: page_size 32 does not suit llama-3.1-8b. (" in ran.out
    assert "is not compared: spec-lsp does not know the release" in ran.out


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("./no-python", "There is no Python interpreter `./no-python`"),
        ("no-python-at-all", "There is no Python interpreter `no-python-at-all`"),
    ],
)
def test_no_interpreter(verify: Verify, python: str, said: str) -> None:
    ran = verify(f"{LAUNCH}\n", python=python)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_no_sglang(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    ran = verify(f"{LAUNCH}\n")
    assert (ran.code, ran.out) == (2, "")
    assert "has no SGLang" in ran.err


def test_what_cannot_be_simulated(verify: Verify) -> None:
    ran = verify(f"{LAUNCH.replace('h100', 'npu')}\n")
    assert ran.code == 2
    assert "Ascend NPU cannot be simulated." in ran.err


def test_the_interpreter_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And never one that lies around: neither in the current folder nor by a path that leads there."""
    from spec_lsp.asking.interpreter import interpreter
    from spec_lsp.asking.process import CannotAskError

    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / ".venv" / "bin", tmp_path / "env" / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("python", "python3"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    environ: dict[str, Any] = {"PATH": os.pathsep.join(("", ".", "env/bin"))}
    with pytest.raises(CannotAskError, match="No Python interpreter is active"):
        interpreter(environ=environ)
    assert interpreter(environ={**environ, "VIRTUAL_ENV": str(tmp_path / "env")}) == str(tmp_path / "env/bin/python")
    assert interpreter(environ={**environ, "CONDA_PREFIX": str(tmp_path / "env")}) == str(tmp_path / "env/bin/python")
    assert interpreter(environ={"PATH": str(tmp_path / "env/bin")}) == str(tmp_path / "env/bin/python3")
    assert interpreter("env/bin/python", environ) == str(tmp_path / "env/bin/python")
    with pytest.raises(CannotAskError, match="is another one in each folder"):
        interpreter("env/bin/python", environ, anywhere=True)
    assert interpreter("python3", {"PATH": str(tmp_path / "env/bin")}, anywhere=True) == str(
        tmp_path / "env/bin/python3"
    )


def test_where_processes_cannot_be_forked_nothing_is_started(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(subprocess, "Popen", None)
    ran = verify(f"{LAUNCH}\n")
    assert (ran.code, ran.out) == (2, "")
    assert "where processes can be forked" in ran.err


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("doing", ["import", "answer"])
def test_whoever_ends_it_finds_nothing_left(tmp_path: Path, signal_: signal.Signals, doing: str) -> None:
    """Neither the folder of the process that has SGLang nor those of launches; that process has ended itself where nobody else could."""
    marker = "__import__('pathlib').Path(__import__('tempfile').gettempdir(), 'marker').touch(); time.sleep(1)"
    text = SERVER_ARGS + marker if doing == "import" else SERVER_ARGS.replace('{}["missing"]', marker)
    packages = write(tmp_path / "packages", server_args=text)
    left = tmp_path / "left"
    left.mkdir()
    (tmp_path / "a.sh").write_text(f"{LAUNCH} --misbehave crash\n")
    environ = {
        **os.environ,
        "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}",
        "TMPDIR": str(left),
    }
    command = [
        sys.executable,
        "-m",
        "spec_lsp.cli",
        "verify",
        "a.sh",
        "--python",
        sys.executable,
        "--models",
        str(MODELS),
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not list(left.rglob("marker")):
            assert process.poll() is None
            time.sleep(0.02)
        assert [p.name.startswith("spec-lsp-") for p in left.iterdir()] == [True]
        process.send_signal(signal_)
        assert process.wait() == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[signal_]
    until = time.monotonic() + (60 if signal_ == signal.SIGKILL else 0)
    while list(left.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(left.iterdir()) == []
