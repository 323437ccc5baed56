"""What the LoRA manager refuses when it is built. Follows lora/lora_manager.py.

Modelled: adapters under attention data parallelism.
Left out: what adapters' files decide (ranks, target modules, vocabularies), layers that have no LoRA counterpart.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.parallel import attention_cp_size, attention_dp, attention_dp_field, attention_tp_size

lora = Handler("lora/lora_manager.py:__init__", when=lambda c: bool(c.enable_lora))

WITH_ATTENTION_DP = ("triton", "triton_v2")
"""LoRA backends that serve attention-DP ranks (triton_v2 is refused before, by argument resolution)."""


@lora.refuses(
    "SPC985", "adapters-with-partial-attention-dp", raises="ValueError", since="0.5.21", late=True,
    bad="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 4 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 4 --dp-size 4 --enable-dp-attention",
)  # fmt: skip
def adapters_with_partial_attention_dp(c: Config) -> Refusal | None:
    """Adapters need every TP rank to be its own attention-DP group.

    The LoRA kernels know tokens of one rank or of all, not of a few ranks that share an attention-DP group. Use as many
    groups as TP ranks, or no attention data parallelism.
    """
    if not attention_dp(c) or (attention_tp_size(c) == 1 and attention_cp_size(c) == 1):
        return None
    field = attention_dp_field(c)
    return Refusal(
        at=field,
        with_=("tp_size", "enable_lora", "lora_paths"),
        message=f"LoRA adapters need as many attention-DP groups as TP ranks, and {c.shown('tp_size')} has more, so "
        "SGLang stops when the adapters are set up.",
        fixes=(
            setting(**{"attn_dp_size" if c.given("attn_dp_size") else "dp_size": c.tp_size}),
            dropping("enable_lora", "lora_paths"),
        ),
    )


@lora.refuses(
    "SPC986", "adapters-on-backend-without-attention-dp", raises="ValueError", since="0.5.21", late=True,
    bad="--enable-lora --lora-paths a=/a --tp-size 2 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention",
)  # fmt: skip
def adapters_on_backend_without_attention_dp(c: Config) -> Refusal | None:
    """This LoRA backend does not serve attention-DP ranks.

    The default backend (`csgmv`) lays out its batches for tensor parallelism; `triton` also knows attention data
    parallelism.
    """
    if not attention_dp(c) or c.lora_backend in WITH_ATTENTION_DP:
        return None
    return Refusal(
        at="lora_backend" if c.given("lora_backend") else attention_dp_field(c),
        with_=("enable_lora", "lora_paths", "lora_backend"),
        message=f"{c.shown('lora_backend')} does not serve adapters with attention data parallelism, so SGLang stops "
        "when the adapters are set up. Use `--lora-backend triton`.",
        fixes=(setting(lora_backend="triton"), dropping("enable_lora", "lora_paths")),
    )
