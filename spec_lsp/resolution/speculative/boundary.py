"""How layers pass on sums that are spread over GPUs (boundary reduction), for target and draft. Follows
arg_groups/boundary_reduction.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import Config, Handler
from spec_lsp.resolution.speculative.common import draft_facts

RSV = frozenset({
    "BailingMoELinearForCausalLM", "BailingMoeV2_5ForCausalLM", "LongcatFlashForCausalLM",
    "LongcatFlashForCausalLMNextN", "Step3VLForConditionalGeneration",
})  # fmt: skip
AR = frozenset({
    "Qwen3ForCausalLM", "Qwen3ForSequenceClassification", "Qwen3Model", "Qwen3ForRewardModel", "MossVLForCausalLM",
    "MossVLForConditionalGeneration",
})  # fmt: skip
AR_FROM_0_5_22 = AR | frozenset({
    "KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM", "Qwen4ExpForConditionalGeneration",
    "Qwen4ExpForCausalLMMTP",
})  # fmt: skip

handler = Handler("boundary_reduction.py:resolve_boundary_reduction", since="0.5.21")


def model_default(c: Config, facts: ModelFacts) -> str:
    """The default reduction of a model's layers."""
    names = set(facts.architectures)
    if names & RSV:
        return "rsv"
    if names & (AR_FROM_0_5_22 if c.since("0.5.22") else AR):
        return "ar"
    return _by_type(facts.config)


def _by_type(config: Mapping[str, Any]) -> str:
    kind = config.get("model_type")
    if kind in ("qwen3", "qwen3_vl_text") or (kind == "minicpmv" and str(config.get("version", "")) == "4.5"):
        return "ar"
    for name in ("text_config", "llm_config", "language_config", "thinker_config"):
        part = config.get(name)
        if isinstance(part, Mapping):
            return _by_type(part)
    return "rs+rsv"


@handler.adjusts("boundary_reduction", "speculative_boundary_reduction")
def choose_reduction(c: Config) -> None:
    """Each model family sums over GPUs at layer boundaries in the way that was found fastest for it; a draft as its own
    family does."""
    asked = c.boundary_reduction
    target = model_default(c, c.model) if asked == "auto" else asked
    draft = target
    path = c.speculative_draft_model_path
    if asked == "auto" and c.speculative_algorithm is not None and path is not None and path != c.model_path:
        try:
            draft = model_default(c, draft_facts(c))
        except NotKnown as lacking:
            c.set(boundary_reduction=target)
            raise lacking
    c.set(boundary_reduction=target, speculative_boundary_reduction=draft)
