"""What people meet once the weights are loaded: each launch gives the rule, and resolution itself does not stop before."""

from __future__ import annotations

import pytest

from tests.resolution.launching import answer

EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft"
TREE = "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"
NEXTN = "--speculative-algorithm NEXTN"

LATE = [
    (f"gpu=b200 model=deepseek-v3 -- --tp-size 8 {EAGLE3} --attention-backend trtllm_mla", "latent-backend-for-plain-draft"),
    ("model=qwen2.5-7b -- --tp-size 8", "attention-heads-not-divisible-by-ranks"),
    ("model=qwen3-235b-fp8 -- --tp-size 8", "expert-width-not-divisible-by-quantization-block"),
    (f"gpu=mi300x -- {EAGLE3}", "tree-drafting-on-aiter"),
    (f"gpu=b200 model=deepseek-v3 -- --tp-size 8 {NEXTN} {TREE} --attention-backend flashinfer", "tree-drafting-on-chain-backend"),
    ("gpu=b200 -- --attention-backend fa3", "fa3-off-hopper"),
    ("gpu=a100 model=deepseek-v2-lite -- --attention-backend fa3", "fa3-off-hopper"),
    (f"gpu=b200 -- {EAGLE3} --speculative-draft-attention-backend fa3", "fa3-draft-off-hopper"),
    (f"model=gemma-2-9b -- {EAGLE3}", "target-without-eagle3"),
    ("model=qwen3-next-80b -- --tp-size 4 --pp-size 2", "pipeline-through-model-without-stages"),
    ("gpu=b200 model=qwen3-next-80b -- --tp-size 2 --attention-backend torch_native", "hybrid-gdn-backend-on-blackwell"),
    (
        f"sglang=0.5.15 model=qwen3-next-80b -- --tp-size 2 --linear-attn-decode-backend flashinfer {NEXTN} {TREE}",
        "tree-drafting-on-flashinfer-gdn",
    ),
    (f"model=ring-2.5-1t -- --tp-size 8 {EAGLE3} {TREE} --page-size 1", "tree-drafting-on-lightning-attention"),
    (
        "model=qwen3-8b -- --tp-size 2 --attn-dp-size 2 --enable-lora --max-lora-rank 8 --lora-target-modules q_proj",
        "adapters-on-backend-without-attention-dp",
    ),
    ("--speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b", "standalone-draft-with-another-vocabulary"),
    (f"{EAGLE3} --speculative-draft-attention-backend torch_native", "backend-without-draft"),
    (f"{EAGLE3.replace('EAGLE3', 'EAGLE', 1)} --enable-multi-layer-eagle", "tree-drafting-with-draft-layers"),
    ("model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mooncake", "exchange-without-prefill-dispatch"),
    (
        "gpu=rtxpro6000 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend trtllm --dsa-decode-backend trtllm "
        "--kv-cache-dtype fp8_e4m3",
        "trtllm-sparse-attention-off-sm100",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("launch", "rule"), LATE)
def test_is_refused_late(launch: str, rule: str) -> None:
    said = answer(launch)
    errors = {s.merged.found.rule.name: s.merged.found.rule.late for s in said.findings if s.merged.severity == "error"}
    assert errors.get(rule) is True, (said.outcome, errors)
    assert all(errors.values()), errors


@pytest.mark.parametrize(
    "launch",
    [
        "gpu=h100 model=deepseek-v3.2 -- --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000 --dsa-prefill-backend flashmla_sparse --dsa-decode-backend fa3",
        f"gpu=b200 model=deepseek-v3 -- --tp-size 8 {EAGLE3} --speculative-draft-attention-backend trtllm_mha",
        "gpu=h100 -- --speculative-algorithm NGRAM",
        "gpu=mi300x model=qwen3-8b -- --tp-size 4",
    ],
)
def test_other_launches_are_not(launch: str) -> None:
    said = answer(launch)
    assert [s.merged.found.rule.name for s in said.findings if s.merged.severity == "error"] == []


def test_tree_on_flashmla_ends_in_resolution() -> None:
    """Its pages are set back to 64 tokens, over which it cannot page a tree."""
    said = answer(
        f"gpu=h100 model=deepseek-v3 -- --tp-size 8 {NEXTN} {TREE} --attention-backend flashmla --page-size 1"
    )
    assert said.outcome == "refused"


def test_draft_that_nobody_names() -> None:
    said = answer("--speculative-algorithm EAGLE3")
    assert [s.merged.found.rule.name for s in said.findings if s.merged.severity == "error"] != []


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ("sglang=0.5.9 -- {} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4", True),
        ("sglang=0.5.9 SGLANG_ENABLE_SPEC_V2=0 -- {} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4", False),
        ("sglang=0.5.9 -- {}", False),
        ("sglang=0.5.12 -- {} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4", False),
    ],
)  # fmt: skip
def test_the_faster_worker_is_hinted_at_where_it_has_to_be_asked_for(launch: str, said: bool) -> None:
    found = {s.merged.found.rule.name: s.merged.severity for s in answer(launch.replace("{}", EAGLE3, 1)).findings}
    assert (found.get("overlap-worker-not-asked-for") == "hint") is said
