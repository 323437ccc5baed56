"""What the LoRA manager refuses when it is built. Follows lora/lora_manager.py.

Modelled: adapters under attention data parallelism, pinned adapters.
Left out: what adapters' files decide (ranks, target modules, vocabularies), layers that have no LoRA counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.parallel import attention_cp_size, attention_dp, attention_dp_field, attention_tp_size

lora = Handler("lora/lora_manager.py:__init__", when=lambda c: bool(c.enable_lora))

WITH_ATTENTION_DP = ("triton", "triton_v2")
"""LoRA backends that serve attention-DP ranks (triton_v2 is refused before, by argument resolution)."""


@lora.refuses(
    "SPC985", "adapters-with-partial-attention-dp", raises="ValueError", since="0.5.21", late=True,
    bad="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 4 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-backend triton --tp-size 4 --dp-size 4 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def adapters_with_partial_attention_dp(c: Config) -> Refusal | None:
    """Adapters need every TP rank to be its own attention-DP group.

    The LoRA kernels support the tokens of one rank or of all, not of a few ranks that share an attention-DP group. Use as many
    groups as TP ranks, or no attention data parallelism.
    """
    if not attention_dp(c) or (attention_tp_size(c) == 1 and attention_cp_size(c) == 1):
        return None
    field = attention_dp_field(c)
    return Refusal(
        at=field,
        related_fields=("tp_size", "enable_lora", "lora_paths"),
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
    good="--enable-lora --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def adapters_on_backend_without_attention_dp(c: Config) -> Refusal | None:
    """This LoRA backend does not serve attention-DP ranks.

    The default backend (`csgmv`) lays out its batches for tensor parallelism; `triton` also supports attention data
    parallelism.
    """
    if not attention_dp(c) or c.lora_backend in WITH_ATTENTION_DP:
        return None
    return Refusal(
        at="lora_backend" if c.given("lora_backend") else attention_dp_field(c),
        related_fields=("enable_lora", "lora_paths", "lora_backend"),
        message=f"{c.shown('lora_backend')} does not serve adapters with attention data parallelism, so SGLang stops "
        "when the adapters are set up. Use `--lora-backend triton`.",
        fixes=(setting(lora_backend="triton"), dropping("enable_lora", "lora_paths")),
    )


def _adapters(c: Config) -> list[tuple[str, bool]]:
    """The startup adapters by name, each with whether it is pinned (which only the JSON spelling can say)."""
    found = []
    for entry in c.lora_paths or ():
        if isinstance(entry, Mapping):
            found.append((str(entry.get("lora_name")), bool(entry.get("pinned"))))
        else:
            found.append((str(entry).partition("=")[0], False))
    return found


@lora.refuses(
    "SPC987", "unpinned-adapter-with-attention-dp", raises="AssertionError", since="0.5.21", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def unpinned_adapter_with_attention_dp(c: Config) -> Refusal | None:
    """With attention data parallelism adapters have to be pinned.

    The ranks cannot agree on which adapter to evict, so each stays where it is: write it as JSON with `"pinned": true`, and give
    `--max-loras-per-batch` two more slots than there are such adapters.
    """
    adapters = _adapters(c) if attention_dp(c) else []
    loose = next((name for name, pinned in adapters if not pinned), None)
    if loose is None:
        return None
    return Refusal(
        at="lora_paths",
        related_fields=(attention_dp_field(c),),
        message=f"The adapter {loose} is not pinned, which attention data parallelism asks for, so SGLang stops when the adapters are set "
        'up. Write it as JSON with `"pinned": true`.',
        fixes=(dropping("enable_lora", "lora_paths"),),
    )


@lora.refuses(
    "SPC988", "all-adapter-slots-pinned", raises="ValueError", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad="""--enable-lora --max-loras-per-batch 1 --lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
    good="""--enable-lora --max-loras-per-batch 2 --lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def all_adapter_slots_pinned(c: Config) -> Refusal | None:
    """The pinned adapters would take every slot of the batch.

    One slot has to stay free for adapters that come and go, and the base model takes one: `--max-loras-per-batch` has to be larger than
    the number of pinned adapters.
    """
    pinned = sum(pin for _, pin in _adapters(c))
    slots = c.max_loras_per_batch
    if not pinned or not isinstance(slots, int) or pinned <= slots - 1:
        return None
    return Refusal(
        at="max_loras_per_batch" if c.given("max_loras_per_batch") else "lora_paths",
        related_fields=("lora_paths",),
        message=f"{c.shown('max_loras_per_batch')} leaves no slot free beside {pinned} pinned adapter{'s' if pinned > 1 else ''}, so "
        "SGLang stops when the adapters "
        "are set up.",
        fixes=(setting(max_loras_per_batch=pinned + 1),),
    )
