"""Which words of `sglang serve` start the diffusion server, which is left alone."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.binding import bind, words_from
from spec_lsp.catalog.diffusion import serves_diffusion
from spec_lsp.catalog.store import load, releases

CASES = [
    ("--model-path black-forest-labs/FLUX.1-dev --port 30000", True),
    ("Wan-AI/Wan2.2-T2V-A14B-Diffusers", True),
    ("--model-path=Qwen/Qwen-Image", True),
    ("--model-path /models/mine --num-gpus 4 --ulysses-degree=2", True),
    ("--model-path $M --vae-cpu-offload", True),
    ("--model-path m --model-type diffusion", True),
    ("--model-path m --model-type llm", False),
    ("--model-path Qwen/Qwen3-8B --tp 2", False),
    ("Qwen/Qwen2.5-VL-7B-Instruct --lora-paths a", False),
    ("--host=0.0.0.0 --model-path=/m --output-path=/tmp/out", True),
    ("--model-path $M --model-variant x --enable-torch-compile", True),
    ("--model-path $M --attention-backend-config {}", True),
    ("--model-path m --disaggregation-ib-device mlx5_0 --quantization fp8", False),
    ("--model-path m --encoder-urls u", False),
    ("", False),
]


@pytest.mark.parametrize(("argv", "expected"), CASES)
def test_serves_diffusion(argv: str, expected: bool) -> None:
    assert serves_diffusion(argv.split()) is expected


def test_nothing_is_said_of_it() -> None:
    words = words_from(["--model-path", "black-forest-labs/FLUX.1-dev", "--ulysses-degree", "2", "--seed", "1"])
    assert bind(load(releases()[-1]), words, program="serve").errors == ()
    assert bind(load(releases()[-1]), words, program="launch_server").errors != ()


def test_no_flag_of_the_language_server_is_taken_for_one_of_diffusion() -> None:
    ours = {s for release in releases() for s in load(release).by_spelling}
    assert [s for s in sorted(ours) if serves_diffusion([s])] == []
