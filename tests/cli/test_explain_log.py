"""`spec-lsp explain --log`, end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spec_lsp.files import MAX_DOCUMENT
from tests.analysis.test_crash import DIED, LLAMA
from tests.cli.conftest import Ran

Run = Callable[..., Ran]
COMMAND = (
    f"+ python3 -m sglang.launch_server --model-path {LLAMA} --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B --speculative-num-steps 3 --speculative-eagle-topk 4 "
    "--speculative-num-draft-tokens 8 --attention-backend trtllm_mha\n[10:00:01] NVIDIA B200, sglang==0.5.23\n"
)


def test_a_log_with_its_launch_is_repaired(run: Run, folder: Path) -> None:
    (folder / "server.log").write_text(COMMAND + DIED[0].traceback())
    ran = run("explain", "--log", "server.log")
    assert ran.code == 0
    assert "speculative_hook.py:_handle_eagle_family with ValueError" in ran.out
    assert "tree-drafting-on-trtllm-mha[SPC123]" in ran.out
    assert "fix: Set `--speculative-eagle-topk` to `1`" in ran.out
    assert "--speculative-eagle-topk 1" in " ".join(ran.out.split())


def test_without_the_launch_the_likeliest_rule_comes_first(run: Run, folder: Path) -> None:
    (folder / "server.log").write_text(DIED[0].traceback())
    ran = run("explain", "--log", "server.log", "--sglang", "0.5.23")
    assert ran.code == 0
    assert ran.out.index("tree-drafting-on-trtllm-mha") < ran.out.index("tells more")
    assert "rules that this place may speak of" in ran.out


def test_standard_input_is_read(spawn: Callable[..., Ran]) -> None:
    ran = spawn("explain", "--log", "-", input=(COMMAND + DIED[0].traceback()).encode())
    assert ran.code == 0
    assert "SPC123" in ran.out


def test_of_a_long_log_the_beginning_and_the_end_are_read(run: Run, spawn: Callable[..., Ran], folder: Path) -> None:
    between = ("Decode batch " + "#" * 987 + "\n") * (MAX_DOCUMENT // 1000 + 5000)
    log = (COMMAND + between + DIED[0].traceback()).encode()
    (folder / "server.log").write_bytes(log)
    for ran in (run("explain", "--log", "server.log"), spawn("explain", "--log", "-", input=log)):
        assert ran.code == 0
        assert "fix: Set `--speculative-eagle-topk` to `1`" in ran.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all is well\n", "There is no refusal of SGLang in this log"),
        (DIED[0].traceback().replace("_handle_eagle_family", "nobody_knows"), "spec-lsp has no rule for this place"),
        ("torch.OutOfMemoryError: CUDA out of memory.\n", "The GPU ran out of memory"),
    ],
)
def test_what_is_not_known_is_said_to_be(run: Run, folder: Path, text: str, says: str) -> None:
    (folder / "server.log").write_text(text)
    ran = run("explain", "--log", "server.log")
    assert ran.code == 1
    assert says in ran.out


def test_nothing_in_a_log_commands_the_terminal(run: Run, folder: Path) -> None:
    (folder / "server.log").write_text(DIED[0].traceback().replace("draft trees", "draft\x1b]0;x\x07 \u202etrees"))
    out = run("explain", "--log", "server.log").out
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize("words", [["--log", "gone.log"], ["--log", "x.log", "SPC123"], ["SPC123", "--gpu", "h100"]])
def test_misuse_is_told(run: Run, folder: Path, words: list[str]) -> None:
    (folder / "x.log").write_text("x")
    assert run("explain", *words).code == 2
