"""The checks that span topics and that SGLang makes before or amid everything else.

Follows arg_groups/validation_hook.py and serving_hook.handle_other_validations; before 0.5.19
ServerArgs._handle_other_validations.

Left out: stop strings in `--preferred-sampling-params`.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution import cuda_graph, serving
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting

# --- before everything else -------------------------------------------------------------------------------------------

validate_prefill_decode_interval = Handler("validation_hook.py:validate_prefill_decode_interval", since="0.5.19")


@validate_prefill_decode_interval.refuses(
    "SPC730", "negative-prefill-decode-interval", raises="ValueError",
    bad="--prefill-decode-interval=-1", good="--prefill-decode-interval 22",
)  # fmt: skip
def negative_prefill_decode_interval(c: Config) -> Refusal | None:
    """The number of decode steps between prefills cannot be negative.

    `--prefill-decode-interval` lets decode run so many steps before the next prefill; 0 switches it off.
    `--prefill-decode-interval-min-bs` says from which batch size on.
    """
    fields = ("prefill_decode_interval", "prefill_decode_interval_min_bs")[: 2 if c.since("0.5.22") else 1]
    for field in fields:
        value = getattr(c, field)
        if value is not None and value < 0:
            return Refusal(
                at=field,
                message=f"{c.shown(field)} is negative; it must be 0 or more.",
            )
    return None


default_unset_prefill_decode_interval = Handler(
    "validation_hook.py:default_unset_prefill_decode_interval", since="0.5.20"
)


@default_unset_prefill_decode_interval.adjusts("prefill_decode_interval")
def leave_prefill_decode_interval_off(c: Config) -> None:
    """Decode and prefill alternate freely unless an interval is set."""
    if c.prefill_decode_interval is None:
        c.set(prefill_decode_interval=0)


validate_response_store = Handler("validation_hook.py:validate_response_store", since="0.5.20")


@validate_response_store.refuses(
    "SPC731", "response-store-on-separate-servers", raises="ValueError",
    bad="--enable-response-store --disaggregation-mode prefill", good="--enable-response-store",
)  # fmt: skip
def response_store_on_separate_servers(c: Config) -> Refusal | None:
    """Responses are not stored when prefill and decode are separate servers.

    `--enable-response-store` keeps answers for later turns in the server that wrote them, and neither of the two sees
    the whole turn.
    """
    if c.enable_response_store and c.disaggregation_mode != "null":
        return Refusal(
            at="enable_response_store",
            related_fields=("disaggregation_mode",),
            message=f"{c.shown('enable_response_store')} does not work with {c.shown('disaggregation_mode')}: no "
            "server sees a whole turn. Remove it.",
            fixes=(dropping("enable_response_store"), dropping("disaggregation_mode")),
        )
    return None


validate_sampling_mask_max_tokens = Handler("validation_hook.py:validate_sampling_mask_max_tokens", since="0.5.20")
_OLD_MASK_VARIABLE = "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS"


@validate_sampling_mask_max_tokens.refuses(
    "SPC732", "removed-sampling-mask-variable", raises="ValueError",
    bad="SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS=64 -- --tp-size 1", good="--tp-size 1",
)  # fmt: skip
def removed_sampling_mask_variable(c: Config) -> Refusal | None:
    """An environment variable of older releases stops this one.

    SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS was replaced by `--sampling-mask-max-tokens` and
    SGLANG_ENABLE_DISAGG_SAMPLING_MASK.
    """
    if c.env.is_set(_OLD_MASK_VARIABLE):
        return Refusal(
            at=_OLD_MASK_VARIABLE,
            message=f"`{_OLD_MASK_VARIABLE}` is gone, and SGLang stops when it is set. Use "
            "`--sampling-mask-max-tokens`.",
            fixes=(dropping_env(_OLD_MASK_VARIABLE),),
        )
    return None


@validate_sampling_mask_max_tokens.refuses(
    "SPC733",
    "sampling-mask-without-tokens",
    raises="ValueError",
    bad="--sampling-mask-max-tokens 0",
    good="--sampling-mask-max-tokens 64",
)
def sampling_mask_without_tokens(c: Config) -> Refusal | None:
    """A sampling mask must hold at least one token.

    `--sampling-mask-max-tokens` bounds how many tokens a request may mask.
    """
    if c.sampling_mask_max_tokens <= 0:
        return Refusal(
            at="sampling_mask_max_tokens",
            message=f"{c.shown('sampling_mask_max_tokens')} leaves no room for a token: it must be at least 1.",
        )
    return None


handle_aux_hidden_state_capture = Handler("validation_hook.py:handle_aux_hidden_state_capture", since="0.5.23")

CAPTURE_METHODS = ("EAGLE3", "DFLASH", "DSPARK")


def _capture_conflict(c: Config) -> tuple[str, str] | None:
    layers = c.return_aux_hidden_state_layer_ids
    if not c.enable_return_aux_hidden_states:
        if layers is None:
            return None
        return "return_aux_hidden_state_layer_ids", "it needs `--enable-return-aux-hidden-states`"
    method = (c.speculative_algorithm or "").upper()
    if method not in CAPTURE_METHODS:
        return "speculative_algorithm", f"it has to name the convention: {', '.join(CAPTURE_METHODS)}"
    if c.speculative_draft_model_path is not None:
        return "speculative_draft_model_path", "states are captured without a draft model"
    if c.pp_size != 1:
        return "pp_size", "only the last stage would be captured"
    if layers is None:
        return (
            None if method == "EAGLE3" else ("speculative_algorithm", "it needs `--return-aux-hidden-state-layer-ids`")
        )
    if not layers or any(layer < 0 for layer in layers) or len(set(layers)) != len(layers):
        return "return_aux_hidden_state_layer_ids", "it names layers from 0 on, each once"
    return None


@handle_aux_hidden_state_capture.refuses(
    "SPC734", "hidden-state-capture-that-does-not-fit", raises="ValueError",
    bad=("--enable-return-aux-hidden-states", "--return-aux-hidden-state-layer-ids 1 2"),
    good="--enable-return-aux-hidden-states --speculative-algorithm EAGLE3",
)  # fmt: skip
def hidden_state_capture_that_does_not_fit(c: Config) -> Refusal | None:
    """Capturing hidden states for training a draft model does not work with this launch.

    `--enable-return-aux-hidden-states` serves the target alone and returns the states a draft would read.
    `--speculative-algorithm` then only names whose convention (EAGLE3, DFLASH, DSPARK); there is no draft model and no
    pipeline.
    """
    conflict = _capture_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    if field == "return_aux_hidden_state_layer_ids" or not c.given(field):
        at = field if c.given(field) else "enable_return_aux_hidden_states"
        message = f"{c.shown(at)} cannot be used so: {why}."
    else:
        at, message = field, f"{c.shown(field)} cannot be combined with `--enable-return-aux-hidden-states`: {why}."
    return Refusal(
        at=at,
        related_fields=("enable_return_aux_hidden_states",),
        message=message,
        fixes=(setting(speculative_algorithm="EAGLE3"), dropping(field), dropping("enable_return_aux_hidden_states")),
    )


@handle_aux_hidden_state_capture.adjusts("speculative_algorithm")
def serve_without_speculation(c: Config) -> None:
    """When hidden states are captured the speculative algorithm only names the convention, and nothing is drafted."""
    if c.enable_return_aux_hidden_states:
        c.set(speculative_algorithm=None)


# --- validate_experimental_sgl_marlin ---------------------------------------------------------------------------------

validate_experimental_sgl_marlin = Handler(
    "lora/marlin_lora_temp/policy.py:validate_experimental_sgl_marlin_server_args", since="0.5.16",
    when=lambda c: bool(c.moe_runner_backend == "experimental_sgl_marlin"),
)  # fmt: skip


def _marlin_conflict(c: Config) -> tuple[str, str] | None:
    if c.ep_size > 1 and c.moe_a2a_backend != "none":
        return "moe_a2a_backend", "with expert parallelism it works with no all-to-all backend"
    if not (c.enable_lora or (c.enable_lora is None and c.lora_paths)):
        return None
    if not c.lora_use_virtual_experts:
        return "lora_use_virtual_experts", "adapters need `--lora-use-virtual-experts`"
    if c.lora_backend != "triton":
        return "lora_backend", "adapters need `--lora-backend triton`"
    if c.ep_size <= 1:
        return None
    for field, wrong in (
        ("init_expert_location", c.init_expert_location != "trivial"),
        ("ep_num_redundant_experts", c.ep_num_redundant_experts != 0),
        ("enable_eplb", c.enable_eplb),
        ("elastic_ep_backend", c.elastic_ep_backend is not None),
        ("enable_elastic_expert_backup", c.enable_elastic_expert_backup),
    ):
        if wrong:
            return field, "experts may not move"
    return None


@validate_experimental_sgl_marlin.refuses(
    "SPC735", "experimental-marlin-conflict", raises="ValueError",
    bad="model=qwen3-30b-a3b -- --moe-runner-backend experimental_sgl_marlin --enable-lora --lora-paths a=/a",
    good="model=qwen3-30b-a3b -- --moe-runner-backend experimental_sgl_marlin",
)  # fmt: skip
def experimental_marlin_conflict(c: Config) -> Refusal | None:
    """The experimental Marlin MoE runner does not support this setting.

    With adapters it needs virtual experts and the Triton LoRA backend; with expert parallelism no all-to-all backend
    and experts that stay in their places.
    """
    conflict = _marlin_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at="moe_runner_backend",
        related_fields=(field,),
        message=f"{c.shown('moe_runner_backend')} cannot be combined with {c.shown(field)}: {why}. Leave the runner to "
        "SGLang.",
    )


# --- handle_other_validations -----------------------------------------------------------------------------------------

_other_validations = Handler("serving_hook.py:handle_other_validations")
handle_other_validations = (serving.chat_template_defaults, _other_validations)


def _prefills_optimistically(c: Config) -> bool:
    """Whether a prefill server with these caches may start before decode has room."""
    if not c.enable_hierarchical_cache:
        return True
    storage, policy = c.hicache_storage_backend, c.hicache_write_policy
    if c.before("0.5.17"):
        return False
    if c.before("0.5.21"):
        return storage is None and policy == "write_back"
    if storage is None:
        return policy in ("write_back", "write_through")
    return bool(c.hicache_host_memory_mode == "buffer_only" and policy == "write_through")


@_other_validations.adjusts("optimistic_prefill_attempts", since="0.5.16")
def prefill_only_with_room(c: Config) -> None:
    """Prefilling before decode has room does not work with pipelines and with some hierarchical caches."""
    if c.optimistic_prefill_attempts <= 0 or c.disaggregation_mode != "prefill":
        return
    mamba = c.before("0.5.21") and c.uses_mamba_radix_cache
    if c.pp_size > 1 or mamba or not _prefills_optimistically(c):
        c.set(optimistic_prefill_attempts=0)


def _dumps(c: Config) -> bool:
    return c.debug_tensor_dump_output_folder is not None or c.msprobe_dump_config is not None


@_other_validations.adjusts("skip_server_warmup", since="0.5.4")
def dump_without_warmup(c: Config) -> None:
    """Tensors are dumped from real requests only, so the warm-up is skipped."""
    if _dumps(c):
        c.set(skip_server_warmup=True)


@_other_validations.adjusts("disable_cuda_graph", since="0.5.4", until="0.5.14")
def dump_without_graphs_once(c: Config) -> None:
    """Tensors inside a CUDA graph cannot be dumped."""
    if _dumps(c):
        c.set(disable_cuda_graph=True)


@_other_validations.adjusts("cuda_graph_config", since="0.5.14")
def dump_without_graphs(c: Config) -> None:
    """Tensors inside a CUDA graph cannot be dumped."""
    if _dumps(c):
        cuda_graph.disable(c, "decode")
        cuda_graph.disable(c, "prefill")


@_other_validations.adjusts("limit_mm_data_per_request", since="0.5.7", spelling=True)
def read_media_limits(c: Config) -> None:
    """The limits on media are read as JSON."""
    if c.limit_mm_data_per_request:
        c.set(limit_mm_data_per_request=serving.parsed(c.limit_mm_data_per_request))


@_other_validations.refuses(
    "SPC737", "limit-on-unknown-media", raises="ValueError", since="0.5.7",
    bad="""--limit-mm-data-per-request '{"images": 2}'""", good="""--limit-mm-data-per-request '{"image": 2}'""",
)  # fmt: skip
def limit_on_unknown_media(c: Config) -> Refusal | None:
    """The kinds of media are image, video and audio.

    `--limit-mm-data-per-request` bounds how many of each a request may carry.
    """
    limits = c.limit_mm_data_per_request
    if not isinstance(limits, Mapping):
        return None
    unknown = [kind for kind in limits if kind not in ("image", "video", "audio")]
    if not unknown:
        return None
    return Refusal(
        at="limit_mm_data_per_request",
        message=f"`--limit-mm-data-per-request` limits `{unknown[0]}`, which is not a kind of media: SGLang has `image`, "
        "`video` and `audio`.",
    )


@_other_validations.adjusts("preferred_sampling_params", since="0.5.7", spelling=True)
def read_preferred_sampling(c: Config) -> None:
    """The preferred sampling parameters are read as JSON."""
    if c.preferred_sampling_params:
        c.set(preferred_sampling_params=serving.parsed(c.preferred_sampling_params))


@_other_validations.refuses(
    "SPC738",
    "watermark-among-preferred-sampling",
    raises="ValueError",
    since="0.5.22",
    bad="""--preferred-sampling-params '{"watermark": true}'""",
    good="""--preferred-sampling-params '{"temperature": 0.6}'""",
)
def watermark_among_preferred_sampling(c: Config) -> Refusal | None:
    """The watermark cannot be a preferred sampling parameter.

    It is set for the server by `--enable-watermark`, or asked for by a request.
    """
    if c.preferred_sampling_params and "watermark" in c.preferred_sampling_params:
        return Refusal(
            at="preferred_sampling_params",
            message="`--preferred-sampling-params` may not set `watermark`; use `--enable-watermark`.",
        )
    return None
