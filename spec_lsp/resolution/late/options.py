"""Values that single model classes refuse when they are built.

Follows the constructors of models/. What whole groups of classes insist on (heads, stages, experts) is in layout.py and experts.py.

Left out: what config.json alone decides (activations, layer types, projectors), which no launch changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spec_lsp.resolution.attention.common import backend_field
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.layout import IN_SGLANG, served_class
from spec_lsp.resolution.late.methods import method
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused, without_one_of
from spec_lsp.resolution.late.weights import LEFT_OUT, moe_tp_size
from spec_lsp.resolution.model.config import model_dtype
from spec_lsp.resolution.model.deepseek_v4 import has_fp4_experts
from spec_lsp.resolution.ranks import attention_cp_size, attention_tp_size

model_options = Handler("models/step3_vl.py:__init__", since="0.5.6")


def _without_exchange(_: Config) -> tuple[Change, ...]:
    return (dropping("moe_a2a_backend"), setting(moe_a2a_backend="none"))


def _whole_experts(c: Config) -> tuple[Change, ...]:
    return (setting(ep_size=c.tp_size), setting(tp_size=1))


def _ranks_that(divide: Callable[[int], bool]) -> Callable[[Config], tuple[Change, ...]]:
    """The largest suitable number of ranks below the current one."""

    def fewer(c: Config) -> tuple[Change, ...]:
        ranks = attention_tp_size(c)
        return tuple(setting(tp_size=c.tp_size // ranks * n) for n in range(ranks - 1, 0, -1) if divide(n))[:1]

    return fewer


def _experts_stay(since: str) -> tuple[Barred, ...]:
    """Neither EPLB nor redundant experts nor a map of experts."""
    why = "this model's experts stay where they are"
    return (
        Barred("enable_eplb", lambda c: bool(c.enable_eplb), why, since),
        Barred("init_expert_location", lambda c: bool(c.init_expert_location != "trivial"), why, since),
        Barred("ep_num_redundant_experts", lambda c: (c.ep_num_redundant_experts or 0) > 0, why, since),
    )


def _sees(c: Config) -> bool:
    """Whether it is a DeepSeek V4.1 that builds its vision layers."""
    layers: int = c.model.hf("vision_n_layers") or 0
    return c.model.model_type == "deepseek_v41" and layers > 0 and not c.model.hf("language_model_only")


def _kv_heads_for_each(c: Config) -> bool:
    return bool(c.model.total_num_kv_heads >= c.tp_size)


def _fewer_ranks_than_kv_heads(c: Config) -> tuple[Change, ...]:
    return (setting(tp_size=c.model.total_num_kv_heads),)


def _norms_fit(c: Config) -> bool:
    groups = c.model.hf("group_norm_size")  # facts of well-known models may lack it
    return not isinstance(groups, int) or groups % attention_tp_size(c) == 0


def _norm_ranks(c: Config) -> tuple[Change, ...]:
    return _ranks_that(lambda n: c.model.hf("group_norm_size") % n == 0)(c)


def _beam_runners(c: Config) -> tuple[str, ...]:
    name = method(c)
    if name not in (None, "modelopt_fp4"):
        return (c.moe_runner_backend,)  # compressed tensors are of several kinds
    return ("auto", "triton") if name is None else ("flashinfer_trtllm",)


_GPTQ = ("gptq", "gptq_marlin")
_BEAM = (
    Barred(
        "moe_dense_tp_size",
        lambda c: bool(c.moe_dense_tp_size == 1),
        "this model's dense layers are split over all TP ranks",
    ),
    *_experts_stay(""),
    Barred(
        "enable_lora",
        lambda c: bool(c.enable_lora or c.lora_paths),
        "this model does not support adapters",
        "",
        lambda _: (dropping("enable_lora", "lora_paths"),),
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: c.moe_a2a_backend not in ("none", "flashinfer_megamoe"),
        "this model exchanges tokens by FlashInfer's MegaMoE only",
        "",
        _without_exchange,
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: c.moe_a2a_backend == "flashinfer_megamoe" and method(c) != "modelopt_fp4",
        "FlashInfer's MegaMoE runs this model's FP4 experts only",
        "",
        _without_exchange,
    ),
    Barred(
        "moe_runner_backend",
        lambda c: c.moe_a2a_backend == "none" and c.moe_runner_backend not in _beam_runners(c),
        "this model's experts do not run on it",
    ),
)
_XLLM = (
    Barred("quantization", lambda c: method(c) not in (None, "compressed-tensors"), "this model has no layers for it"),
    Barred(
        "dtype",
        lambda c: model_dtype(c) != "bfloat16",
        "this model computes in bfloat16",
        "",
        lambda _: (setting(dtype="bfloat16"),),
    ),
    Barred(
        "enable_two_batch_overlap",
        lambda c: bool(c.enable_two_batch_overlap),
        "this model's layers do not overlap batches",
    ),
    *_experts_stay(""),
)


def _scales_in_routing(c: Config) -> bool:
    """Whether the routed experts' factor is part of the routing weights (_fuses_routed_scaling_factor_in_topk)."""
    name, runner = method(c), c.moe_runner_backend
    if name == "modelopt_fp4":
        config = c.model.quantization_config or {}
        apart = any("shared_expert" in str(layer) for key in LEFT_OUT for layer in config.get(key) or ())
        return not apart and runner not in ("marlin", "lora_marlin")
    if name != "fp8":
        return False
    return bool(runner == "cutlass" or (runner in ("marlin", "flashinfer_mxfp4") and has_fp4_experts(c)))


_V4 = (
    Barred(
        "enforce_shared_experts_fusion",
        lambda c: (
            bool(c.enforce_shared_experts_fusion)
            and not c.disable_shared_experts_fusion
            and c.ep_size == 1
            and (c.model.hf("num_hash_layers") or 0) > 0
            and c.model.hf("n_shared_experts") == 1
            and _scales_in_routing(c)
        ),
        "its hash layers do not scale a shared expert that is fused with the routed ones",
        "0.5.19",
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: c.moe_a2a_backend not in ("none", "megamoe") and _sees(c),
        "a model with vision layers exchanges tokens by MegaMoE only",
        "0.5.22",
        _without_exchange,
    ),
    Barred(
        "attn_cp_size",
        lambda c: attention_cp_size(c) > 1 and _sees(c),
        "its vision layers do not support context parallelism",
        "0.5.22",
    ),
    Barred(
        "enable_decoder_swa_bounded_replay",
        lambda c: (
            bool(c.given("enable_decoder_swa_bounded_replay") and c.enable_decoder_swa_bounded_replay)
            and not c.model.text_hf("kv_source_layer_ids")
        ),
        "this model has no layers whose cache later ones read",
        "0.5.21",
    ),
)
_INKLING = (
    Barred(
        "enable_scattered_sconv",
        lambda c: (
            bool(c.enable_scattered_sconv)
            and (c.model.text_hf("use_sconv") is False or c.model.hidden_size % attention_tp_size(c) != 0)
        ),
        "this model's convolutions cannot be spread over these ranks",
        "0.5.18",
    ),
    Barred(
        "disable_radix_cache",
        lambda c: bool(c.disable_radix_cache) and c.disaggregation_mode != "decode",
        "this model keeps its states in the radix cache",
        "0.5.16",
    ),
    Barred(
        "disable_hybrid_swa_memory",
        lambda c: bool(c.disable_hybrid_swa_memory) and c.disaggregation_mode != "decode",
        "this model's windows have pools of their own",
        "0.5.16",
    ),
    Barred(
        "mamba_radix_cache_strategy",
        lambda c: c.mamba_radix_cache_strategy == "no_buffer" and c.disaggregation_mode != "decode",
        "this model's states need the extra buffer",
        "0.5.16",
    ),
)
_INKLING_DRAFTS = (
    Barred(
        "enable_multi_layer_eagle",
        lambda c: (
            c.speculative_algorithm == "EAGLE"
            and not c.enable_multi_layer_eagle
            and c.speculative_draft_model_path in (None, c.model_path)
            and bool(c.model.text_hf("mtp_local_layer_ids"))
        ),
        "this model drafts with several layers, for which `--enable-multi-layer-eagle` is needed",
        "0.5.16",
        lambda _: (setting(enable_multi_layer_eagle=True), dropping("speculative_algorithm")),
    ),
)
_M3 = (
    Barred(
        "ep_size",
        lambda c: (
            c.moe_a2a_backend == "megamoe"
            and c.moe_runner_backend == "flashinfer_trtllm_routed"
            and attention_tp_size(c) != c.ep_size
        ),
        "MegaMoE beside TensorRT-LLM's runner needs as many expert ranks as attention ranks",
        "0.5.23",
        lambda c: (setting(ep_size=attention_tp_size(c)), dropping("moe_runner_backend")),
    ),
)


def _unevenly_shared(c: Config) -> bool:
    shared, width = c.model.text_hf("num_shared_experts") or 0, c.model.text_hf("moe_intermediate_size") or 0
    return bool(shared and c.shared_experts_tp_size and shared * width % c.shared_experts_tp_size)


_KIMI_K3 = (
    Barred(
        "shared_experts_tp_size",
        _unevenly_shared,
        "its ranks cannot share this model's shared experts evenly",
        "0.5.22",
    ),
    Barred(
        "shared_experts_tp_size",
        lambda c: c.shared_experts_tp_size is not None and c.moe_a2a_backend == "none",
        "shared experts have ranks of their own only beside an all-to-all backend",
        "0.5.22",
    ),
)
_LLADA = (
    Barred(
        "model_path",
        lambda c: c.gpu.platform == "npu" and c.model.hf("expert_capacity") is not None,
        "Ascend NPUs have no routing of whole blocks",
        "0.5.22",
        lambda _: (),
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: c.moe_a2a_backend == "deepep" and c.model.hf("expert_capacity") is not None,
        "this model routes whole blocks, which DeepEP does not",
        "0.5.22",
        _without_exchange,
    ),
    Barred(
        "ep_size",
        lambda c: (c.ep_size or 1) > 1 and c.model.hf("expert_capacity") is not None,
        "this model routes whole blocks, for which every rank needs all experts",
        "0.5.22",
    ),
)
_GEMMA4 = (
    Barred(
        "pp_size",
        lambda c: (
            c.pp_size > 1 and not c.disable_cuda_graph and (c.model.text_hf("hidden_size_per_layer_input") or 0) > 0
        ),
        "this model's inputs of each layer get lost between the CUDA graphs of two stages",
        "0.5.13",
        lambda c: (
            setting(pp_size=1, tp_size=c.tp_size * c.pp_size),
            dropping("pp_size"),
            setting(disable_cuda_graph=True),
        ),
    ),
)
_MUSE_GLIMMER = (
    Barred(
        "tp_size",
        lambda c: not _kv_heads_for_each(c) and method(c) is not None,
        "every rank needs a KV head of this quantized model",
        "0.5.18",
        _fewer_ranks_than_kv_heads,
    ),
)

_NEMOTRON = (
    Barred(
        "attn_cp_size",
        lambda c: attention_cp_size(c) > 1,
        "this model's layers do not split a context among attention ranks",
        "0.5.21",
    ),
)

FUSION = "SGLANG_FLASHINFER_MNNVL_CUTEDSL_AR_FUSION"


def _fuses(c: Config) -> bool:
    """Whether Qwen3.5's reductions are fused with its experts by CuTe DSL kernels."""
    return c.env.flag(FUSION) if c.before("0.5.21") else bool(c.flashinfer_allreduce_fusion_backend == "cutedsl")


_QWEN3_5 = (
    Barred("pp_size", lambda c: c.pp_size > 1 and _fuses(c), "CuTe DSL's fused reductions know no stages", "0.5.19"),
    Barred(
        "moe_runner_backend",
        lambda c: _fuses(c) and (method(c) != "fp8" or c.moe_runner_backend != "flashinfer_trtllm"),
        "CuTe DSL's fused reductions need FP8 experts on `flashinfer_trtllm`",
        "0.5.19",
        lambda c: (setting(moe_runner_backend="flashinfer_trtllm"), dropping("flashinfer_allreduce_fusion_backend")),
    ),
)

BARRED: Mapping[str, tuple[Barred, ...]] = {
    "BailingMoeV2_5ForCausalLM": (
        Barred("tp_size", lambda c: not _norms_fit(c), "the ranks cannot share the groups of its norms evenly", "0.5.9", _norm_ranks),
    ),
    "BeamForCausalLM": _BEAM,
    "DeepseekV4ForCausalLM": _V4,
    "DiffusionGemmaForBlockDiffusion": (
        Barred("quantization", lambda c: method(c) is not None, "this model is loaded unquantized only", "0.5.21"),
    ),
    "Gemma4ForCausalLM": _GEMMA4,
    "Gemma4ForConditionalGeneration": _GEMMA4,
    "InklingForConditionalGeneration": (*_INKLING, *_INKLING_DRAFTS),
    "K2HorizonForCausalLM": _XLLM,
    "KimiK3ForConditionalGeneration": _KIMI_K3,
    "KimiK3LinearForCausalLM": _KIMI_K3,
    "LLaDA2MoeModelLM": _LLADA,
    "LongcatFlashForCausalLM": (
        Barred(
            "ep_dispatch_algorithm",
            lambda c: c.ep_dispatch_algorithm is not None and (c.model.hf("zero_expert_num") or 0) > 0,
            "this model's zero experts have no place on a map of experts",
            "0.5.23",
            without_one_of("ep_dispatch_algorithm", "enable_eplb", "init_expert_location"),
        ),
    ),
    "MiniMaxM3SparseForCausalLM": _M3,
    "MiniMaxM3SparseForConditionalGeneration": _M3,
    "FalconMambaForCausalLM": (
        Barred(
            "tp_size",
            lambda c: c.model.text_hf("intermediate_size") % c.tp_size != 0,
            "the ranks cannot share the width of its Mamba layers evenly",
            "0.5.20",
            _ranks_that(lambda n: n & (n - 1) == 0),
        ),
        Barred("speculative_algorithm", lambda c: c.speculative_algorithm is not None, "its Mamba layers verify no drafts", "0.5.21"),
    ),
    "MuseGlimmerForCausalLM": _MUSE_GLIMMER,
    "MuseGlimmerForConditionalGeneration": _MUSE_GLIMMER,
    "MuseSparkForConditionalGeneration": (
        Barred("quantization", lambda c: method(c) not in (None, "modelopt_fp4", *_GPTQ), "this model has no layers for it", "0.5.23"),
        Barred(
            "ep_size",
            lambda c: moe_tp_size(c) != 1 and c.ep_size != 1 and method(c) in _GPTQ,
            "this model's four-bit experts are split by tensor or by expert parallelism, not by both",
            "0.5.23",
            _whole_experts,
        ),
        Barred(
            "tp_size",
            lambda c: moe_tp_size(c) != 1 and method(c) not in _GPTQ,
            "every rank keeps whole experts of this model",
            "0.5.23",
            _whole_experts,
        ),
    ),
    "NemotronHForCausalLM": _NEMOTRON,
    "NemotronHPuzzleForCausalLM": _NEMOTRON,
    "NanbeigeForCausalLM": (
        Barred("tp_size", lambda c: not _kv_heads_for_each(c), "every rank needs a KV head", "0.5.20", _fewer_ranks_than_kv_heads),
    ),
    "Qwen3_5MoeForCausalLM": _QWEN3_5,
    "Qwen3_5MoeForConditionalGeneration": _QWEN3_5,
    "Step3VLForConditionalGeneration": (
        Barred("moe_a2a_backend", lambda c: bool(c.moe_a2a_backend == "deepep"), "its experts have none for DeepEP", "", _without_exchange),
    ),
    "XllmForCausalLM": _XLLM,
    "ZayaForCausalLM": (
        Barred(
            "enable_dp_attention",
            lambda c: bool(c.enable_dp_attention) and attention_tp_size(c) != c.tp_size,
            "this model's attention is split over all TP ranks",
            "0.5.22",
            lambda _: (dropping("enable_dp_attention", "dp_size"),),
        ),
    ),
}  # fmt: skip
"""What the classes of models/ refuse in their constructors."""


@model_options.refuses(
    "SPC677",
    "option-this-model-refuses",
    raises="NotImplementedError",
    late=True,
    bad=(
        "model=longcat -- --tp-size 8 --ep-size 8 --ep-dispatch-algorithm dynamic "
        """--json-model-override-args '{"zero_expert_num": 256}'""",
        """--json-model-override-args '{"architectures": ["NanbeigeForCausalLM"]}' --tp-size 16 --nnodes 2""",
        """gpu=h100 model=beam -- --tp-size 2 --moe-dense-tp-size 1""",
        """gpu=h100 model=beam -- --tp-size 2 --moe-runner-backend deep_gemm""",
        """model=ring-2.5-1t -- --tp-size 16 --nnodes 2""",
    ),
    good="model=ring-2.5-1t -- --tp-size 8",
)
def option_this_model_refuses(c: Config) -> Refusal | None:
    """This model's class refuses this value when it is built.

    Some classes of models lack what SGLang has in general: Step 3 has no DeepEP, LongCat's zero experts no expert balancing, Beam no
    adapters, Ring 2.5 no more ranks than its norms have groups. Argument resolution does not look; the server stops when it builds the
    model.
    """
    barred = BARRED.get(c.model.architecture, ())
    if not barred or c.model_impl not in IN_SGLANG:
        return None
    return first_barred(c, barred, f"when SGLang builds {c.model.architecture}", "model_path")


# --- what a forward pass refuses ----------------------------------------------------------------------------------------


def _tree(c: Config) -> bool:
    return c.speculative_algorithm is not None and (c.speculative_eagle_topk or 1) > 1


def _chain(_: Config) -> tuple[Change, ...]:
    return (setting(speculative_eagle_topk=1), dropping("speculative_algorithm"))


def _power_of_two(number: object) -> bool:
    return isinstance(number, int) and number > 0 and number & (number - 1) == 0


def _one_stream(c: Config) -> bool:
    """Whether it is a DeepSeek V4.1 whose layers pass a part of their input on to the next."""
    return c.model.model_type == "deepseek_v41" and bool(c.model.hf("hc_pre_from_prev_sublayer"))


_V4_RUNS = (
    Barred(
        "moe_a2a_backend",
        lambda c: attention_cp_size(c) > 1 and c.moe_a2a_backend not in ("none", "deepep", "megamoe", "mori"),
        "it does not exchange the tokens of a context that attention ranks share",
        "0.5.19",
        _without_exchange,
    ),
    Barred(
        "pp_size", lambda c: c.pp_size > 1 and _one_stream(c), "its layers hand more on than stages carry", "0.5.21"
    ),
    Barred(
        "enable_two_batch_overlap",
        lambda c: bool(c.enable_two_batch_overlap) and _one_stream(c),
        "its layers do not overlap batches",
        "0.5.21",
    ),
)


def _fa4_or_triton(field: str) -> Barred:
    return Barred(
        field,
        lambda c: getattr(c, field) is not None and field in _in_use(c) and getattr(c, field) not in ("fa4", "triton"),
        "this model's attention runs on `fa4` and `triton` only",
        "0.5.18",
        lambda c: tuple(Change(set={field: name}) for name in ("triton", "fa4")),
    )


def _in_use(c: Config) -> tuple[str, str]:
    return backend_field(c, "prefill"), backend_field(c, "decode")


_INKLING_RUNS = tuple(
    map(_fa4_or_triton, ("attention_backend", "prefill_attention_backend", "decode_attention_backend"))
)

UNABLE: Mapping[str, tuple[Barred, ...]] = {
    "DeepseekV4ForCausalLM": _V4_RUNS,
    "Dots3NoteForCausalLM": (
        Barred("attn_cp_size", lambda c: attention_cp_size(c) > 1, "its sliding windows are not split among attention ranks", "0.5.19"),
    ),
    "InklingForConditionalGeneration": _INKLING_RUNS,
    "GptOssForCausalLM": (
        Barred("moe_a2a_backend", lambda c: c.moe_a2a_backend == "deepep", "its experts have no path for DeepEP", "", _without_exchange),
    ),
    "LLaDA2MoeModelLM": (
        Barred(
            "moe_runner_backend",
            lambda c: c.moe_runner_backend == "flashinfer_trtllm" and c.model.hf("expert_capacity") is not None,
            "this runner does not route whole blocks",
            "0.5.22",
        ),
        Barred(
            "moe_runner_backend",
            lambda c: (
                c.moe_runner_backend == "triton_kernel"
                and c.model.hf("expert_capacity") is not None
                and not _power_of_two(c.model.hf("num_experts_per_tok"))
            ),
            "this runner routes to a power of two of experts only",
            "0.5.22",
        ),
    ),
    "LlamaForClassification": (
        Barred(
            "model_path",
            lambda c: not c.is_embedding,
            "it scores texts and generates none, for which `--is-embedding` is needed",
            "",
            lambda _: (setting(is_embedding=True),),
        ),
    ),
    "Qwen4ExpForConditionalGeneration": (
        Barred("enable_two_batch_overlap", lambda c: bool(c.enable_two_batch_overlap), "its layers do not overlap batches", "0.5.20"),
        Barred(
            "speculative_algorithm",
            lambda c: c.speculative_algorithm == "NGRAM",
            "its embeddings of each layer cannot be drafted from n-grams",
            "0.5.20",
        ),
        Barred("speculative_eagle_topk", _tree, "its layers verify one chain of draft tokens", "0.5.20", _chain),
        Barred(
            "speculative_num_draft_tokens",
            lambda c: (
                c.speculative_algorithm is not None
                and (c.speculative_num_draft_tokens or 0) > (c.model.text_hf("indexer_compress_ratio") or 1 << 30)
            ),
            "its index holds back fewer tokens than are drafted",
            "0.5.20",
            lambda _: (dropping("speculative_algorithm"),),
        ),
    ),
}  # fmt: skip
"""What the classes of models/ refuse when they run."""


@model_options.refuses(
    "SPC1006", "option-this-model-cannot-run", raises="NotImplementedError", late=True,
    sglang="models/gpt_oss.py:forward",
    bad=(
        "model=gpt-oss-120b -- --tp-size 2 --moe-a2a-backend deepep",
        """--json-model-override-args '{"architectures": ["LlamaForClassification"]}'""",
        "gpu=b200 model=inkling -- --tp-size 8 --attention-backend flashinfer",
    ),
    good="model=gpt-oss-120b -- --tp-size 2",
)  # fmt: skip
def option_this_model_cannot_run(c: Config) -> Refusal | None:
    """This model's layers stop in their first forward pass.

    SGLang accepts the value, and its layers do not know it: gpt-oss has no path for DeepEP, a Llama that classifies generates no text, and
    Qwen4-Exp verifies short chains of drafts only. The server stops when it captures its CUDA graphs, or at the first prompt.
    """
    barred = UNABLE.get(c.model.architecture, ())
    if not barred or c.model_impl not in IN_SGLANG:
        return None
    return first_barred(c, barred, f"in the first forward pass of {c.model.architecture}", "model_path")


@model_options.refuses(
    "SPC1121", "multiplexing-of-other-class", raises="AttributeError", late=True,
    sglang="model_executor/model_runner.py:forward_split_prefill",
    bad="model=deepseek-v3 -- --tp-size 8 --enable-pdmux --chunked-prefill-size -1 --disable-overlap-schedule",
    good="--enable-pdmux --chunked-prefill-size -1 --disable-overlap-schedule",
)  # fmt: skip
def multiplexing_of_other_class(c: Config) -> Refusal | None:
    """This model's class cannot prefill a few layers at a time.

    `--enable-pdmux` does, to decode beside it, and the classes of Llama, Qwen2, Qwen3, Gemma and a few others can. The others stop at the
    first prompt.
    """
    facts = served_class(c, c.model) if c.enable_pdmux else None
    if facts is None or "split_prefill" in facts.supports:
        return None
    return value_refused(
        c,
        "enable_pdmux",
        f"prefills a few layers at a time, which {c.model.architecture} cannot: SGLang stops at the first prompt. Remove it.",
        "model_path",
    )
