"""Trainers that start SGLang themselves: their `--sglang-…` flags are a launch, without the prefix; fixes write it again."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import WordChange, apply_edits, editor_of
from tests.syntax.support import argv, check_maps, launches

ARRAY = """SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
   --sglang-cuda-graph-bs 1 2 $(seq 4 4 12)
   --sglang-server-concurrency 512
   --sglang-enable-dp-attention  # why
   --sglang-router-ip 127.0.0.1
)
ray job submit --address=x -- python3 train.py --attention-backend flash ${MODEL_ARGS[@]} ${SGLANG_ARGS[@]} --lr 1
"""
LINE = "python train_async.py --lr 1e-6 --sglang-page-size=64 \\\n  --sglang-attention-backend fa3 --save x\n"

TABLE = [
    (ARRAY, [[["?+", "--mem-fraction-static", "0.7", "--cuda-graph-bs", "1", "2", "4", "8", "12", "--enable-dp-attention"]]]),
    (LINE, [[["--page-size=64", "--attention-backend", "fa3"]]]),
    ('python3 -u train.py --sglang-mem-fraction-static $M "$@"\n', [[["--mem-fraction-static", "?+", "?*"]]]),
    ("python -m slime.train --sglang-watchdog-timeout -1\n", [[["--watchdog-timeout", "-1"]]]),
    ("torchrun --nproc_per_node 8 train.py --sglang-page-size 1\n", [[["--page-size", "1"]]]),
    ("if [ $1 ]; then A=--sglang-page-size=8; fi\npython train.py --sglang-dtype half $A\n", [[["--dtype", "half"], ["--dtype", "half", "--page-size=8"]]]),
    ("python bench.py --sglang-host a --sglang-port 1 --sglang-model-path m\n", []),
    ("python train.py --sglang-router-policy x --sglang-server-concurrency 3 --sglang-config a.yaml\n", []),
    ("python train.py --use-sglang --backend sglang\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=range(len(TABLE)))
def test_words_are_without_the_prefix(text: str, expected: list[list[list[str]]]) -> None:
    document = parse("run.sh", text)
    check_maps(document)
    assert launches(text) == expected
    assert {launch.program for launch in document.launches} <= {"trainer"}


def changed(text: str, change: WordChange | None) -> tuple[str, list[str]]:
    assert change is not None
    new = apply_edits(text, "run.sh", change.edits)
    assert new is not None
    document = parse("run.sh", new)
    check_maps(document)
    return new, argv(document.launches[0].variants[0])


def test_fixes_write_the_prefix() -> None:
    edit = editor_of(parse("run.sh", LINE), 0)
    new, words = changed(LINE, edit.insert(2, "--tp-size", ["2"]))
    assert words == ["--page-size=64", "--attention-backend", "fa3", "--tp-size", "2"]
    assert "fa3 --sglang-tp-size 2 --save" in new.replace("\\\n  ", "")
    new, words = changed(LINE, edit.rename(1, "--decode-attention-backend"))
    assert "  --sglang-decode-attention-backend fa3" in new
    new, words = changed(LINE, edit.rename(0, "--max-tokens"))
    assert "--sglang-max-tokens=64" in new
    new, words = changed(LINE, edit.set_value(0, "1", len("--page-size=")))
    assert "--sglang-page-size=1 " in new
    new, words = changed(LINE, edit.remove(1, 2))
    assert new == "python train_async.py --lr 1e-6 --sglang-page-size=64 --save x\n"
    assert words == ["--page-size=64"]


def test_fixes_in_an_array() -> None:
    edit = editor_of(parse("run.sh", ARRAY), 0)
    new, words = changed(ARRAY, edit.insert(2, "--page-size", ["1"]))
    assert "   --sglang-mem-fraction-static 0.7\n   --sglang-page-size 1\n" in new
    assert words[:5] == ["?+", "--mem-fraction-static", "0.7", "--page-size", "1"]
    new, words = changed(ARRAY, edit.remove(9))
    assert "dp-attention" not in new
