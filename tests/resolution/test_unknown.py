"""What is still found where nothing is known of the model: refusals that typed flags alone decide."""

from __future__ import annotations

import shlex

import pytest

from spec_lsp.analysis.argv import resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import find

CHAIN = "--speculative-algorithm EAGLE3 --speculative-draft-model-path /m/draft --speculative-num-steps 3"
TREE = f"{CHAIN} --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"


def found(line: str, gpu: str) -> list[str]:
    answer = resolve_argv(
        ["--model-path", "/m/private", *shlex.split(line)],
        {},
        Release.parse("0.5.23"),
        find(gpu),
        models=lambda _: None,
        files=lambda _: None,
    )
    return [s.merged.found.rule.name for s in answer.findings if s.merged.severity == "error"]


@pytest.mark.parametrize(
    ("line", "gpu", "rule"),
    [
        (f"{TREE} --attention-backend trtllm_mha", "b200", "tree-drafting-on-trtllm-mha"),
        (f"{TREE} --attention-backend trtllm_mha", "h100", "tree-drafting-on-trtllm-mha"),
        (
            f"{TREE} --decode-attention-backend trtllm_mha --attention-backend triton",
            "b200",
            "tree-drafting-on-trtllm-mha",
        ),
        (f"{TREE} --attention-backend trtllm_mha", "a100", "trtllm-mha-prefill-hardware"),
        (f"{TREE} --attention-backend fa4 --page-size 64", "h100", "tree-drafting-on-paged-backend"),
        (f"{CHAIN} --attention-backend triton", "h100", "steps-without-topk"),
        (
            "--enable-linear-replayssm-spec --linear-attn-decode-backend helion",
            "h100",
            "replayssm-verify-decode-backend",
        ),
        ("--enable-hierarchical-cache --disable-radix-cache", "h100", "host-cache-without-radix-cache"),
    ],
)
def test_typed_flags_decide(line: str, gpu: str, rule: str) -> None:
    assert rule in found(line, gpu)


def test_a_refusal_does_not_hang_on_its_fixes() -> None:
    """Which backends a draft can take depends on the draft; that this one cannot does not."""
    chain = f"{CHAIN} --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    model = "--model-path meta-llama/Llama-3.1-8B-Instruct"
    from spec_lsp.facts.well_known import find_model

    answer = resolve_argv(
        shlex.split(f"{model} {chain} --attention-backend torch_native"),
        {},
        Release.parse("0.5.23"),
        find("h100"),
        models=lambda path: find_model(path) if path.startswith("meta-llama") else None,
        files=lambda _: None,
    )
    assert "backend-without-draft" in [s.merged.found.rule.name for s in answer.findings]


@pytest.mark.parametrize("line", [f"{TREE} --attention-backend triton --page-size 64", "--page-size 64", TREE])
def test_what_the_model_decides_is_left_open(line: str) -> None:
    assert found(line, "h100") == []
