"""LoRA adapters. Follows arg_groups/lora_hook.py (check_lora_server_args), which the general validation calls.

SGLang also turns the adapters' paths into records; here they stay as they were typed. An adapter given as JSON without
a name or a path is a matter of argparse, which looks first.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.ranks import attention_dp_field

check_lora_server_args = Handler("lora_hook.py:check_lora_server_args")


@check_lora_server_args.refuses(
    "SPC770",
    "no-adapters-per-batch",
    raises="AssertionError",
    bad="--max-loras-per-batch 0",
    good="--max-loras-per-batch 4",
)
def no_adapters_per_batch(c: Config) -> Refusal | None:
    """A batch must have room for at least one adapter.

    `--max-loras-per-batch` counts the adapters (the bare model among them) whose requests may run together. It is
    checked even when LoRA is off.
    """
    if c.max_loras_per_batch <= 0:
        return Refusal(
            at="max_loras_per_batch",
            message=f"{c.shown('max_loras_per_batch')} leaves no room for an adapter: it must be at least 1.",
            fixes=(dropping("max_loras_per_batch"), setting(max_loras_per_batch=1)),
        )
    return None


@check_lora_server_args.adjusts("enable_lora")
def enable_lora_for_paths(c: Config) -> None:
    """Naming adapters switches LoRA on."""
    if c.lora_paths and c.enable_lora is None:
        c.set(enable_lora=True)


def _v2_conflict(c: Config) -> tuple[str, str] | None:
    """What the second version of the LoRA kernels does not support (lora_hook._check_v2_lora_modes)."""
    if c.attn_dp_size > 1:
        return attention_dp_field(c), "adapters are not shared among attention-DP groups"
    if c.enable_pdmux:
        return "enable_pdmux", "it does not know multiplexed batches"
    if c.enable_two_batch_overlap:
        return "enable_two_batch_overlap", "it does not know overlapped batches"
    if c.env.flag("SGLANG_EXPERIMENTAL_LORA_OPTI"):
        return "SGLANG_EXPERIMENTAL_LORA_OPTI", "the two would use each other's data"
    if c.gpu.is_hip:
        return "device", f"it has no kernels for {c.gpu.title}"
    return None


@check_lora_server_args.refuses(
    "SPC771",
    "second-lora-backend-conflict",
    raises="ValueError",
    since="0.5.23",
    sglang="lora_hook.py:_check_v2_lora_modes",
    bad="--enable-lora --lora-paths a=/a --lora-backend triton_v2 --tp-size 2 --attn-dp-size 2",
    good="--enable-lora --lora-paths a=/a --lora-backend triton_v2 --tp-size 2",
)
def second_lora_backend_conflict(c: Config) -> Refusal | None:
    """`triton_v2` and the MoE runners built on it do not support this setting.

    `--lora-backend triton_v2` and the MoE runners built on it work without attention data parallelism, PD multiplexing
    and two-batch overlap, on NVIDIA GPUs. The default backend has no such limits.
    """
    runner = c.moe_runner_backend.startswith("lora")
    if runner:
        if not c.enable_lora or c.lora_backend != "triton_v2":
            return None
    elif not c.enable_lora or c.lora_backend != "triton_v2":
        return None
    conflict = _v2_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    at = "moe_runner_backend" if runner else "lora_backend"
    label = f"`{field}`" if field.isupper() else c.shown(field)
    return Refusal(
        at=at,
        related_fields=(field,),
        message=f"{c.shown(at)} cannot be combined with {label}: {why}. Use another LoRA backend.",
        fixes=(
            dropping_env(field) if field.isupper() else dropping(field),
            dropping("lora_backend", "moe_runner_backend") if runner else dropping("lora_backend"),
        ),
    )


@check_lora_server_args.adjusts("enable_lora_overlap_loading", since="0.5.8")
def load_adapters_in_turn(c: Config) -> None:
    """Adapters are loaded while others run only when asked to."""
    if c.enable_lora and c.enable_lora_overlap_loading is None:
        c.set(enable_lora_overlap_loading=False)


@check_lora_server_args.refuses(
    "SPC772", "overlapped-adapter-loading-without-limit", raises="AssertionError", since="0.5.8",
    bad="--enable-lora --lora-paths a=/a --enable-lora-overlap-loading",
    good="--enable-lora --lora-paths a=/a --enable-lora-overlap-loading --max-loaded-loras 8 --max-loras-per-batch 4",
)  # fmt: skip
def overlapped_adapter_loading_without_limit(c: Config) -> Refusal | None:
    """Loading adapters while others run needs a limit on how many are kept.

    It pins the adapters in CPU memory, so `--max-loaded-loras` has to be set, to at most twice `--max-loras-per-batch`.
    """
    if not c.enable_lora or not c.enable_lora_overlap_loading:
        return None
    most = c.max_loras_per_batch * 2
    if c.max_loaded_loras is not None and c.max_loaded_loras <= most:
        return None
    return Refusal(
        at="enable_lora_overlap_loading",
        related_fields=("max_loaded_loras", "max_loras_per_batch"),
        message=f"{c.shown('enable_lora_overlap_loading')} pins adapters in CPU memory and needs `--max-loaded-loras` "
        f"of at most {most}.",
        fixes=(setting(max_loaded_loras=most), dropping("enable_lora_overlap_loading")),
    )


SPECULATIVE_WITH_LORA = ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")


@check_lora_server_args.refuses(
    "SPC773",
    "lora-with-unfit-speculation",
    raises="ValueError",
    since="0.5.5",
    sglang="lora_hook.py:check_lora_speculative_compatibility",
    earlier=(Earlier("0.5.19", "server_args.py:check_lora_server_args"),),
    bad="--enable-lora --lora-paths a=/a --speculative-algorithm STANDALONE --speculative-draft-model-path {models}/llama-3.1-8b",
    good="--enable-lora --lora-paths a=/a --speculative-algorithm NGRAM",
)
def lora_with_unfit_speculation(c: Config) -> Refusal | None:
    """This kind of speculative decoding does not serve adapters.

    Adapters apply to the target model alone, and their kernels count on every request verifying as many tokens. NGRAM,
    EAGLE, EAGLE3, DFLASH and DSPARK do (before 0.5.19 only NGRAM).
    """
    if not c.enable_lora or c.speculative_algorithm in ("NGRAM", None):
        return None
    if c.since("0.5.19") and c.speculative_algorithm in SPECULATIVE_WITH_LORA:
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("enable_lora", "lora_paths"),
        message=f"{c.shown('speculative_algorithm')} does not serve LoRA adapters. Use NGRAM"
        f"{' or EAGLE' if c.since('0.5.19') else ''}, or leave adapters out.",
        fixes=(setting(speculative_algorithm="NGRAM"), dropping("enable_lora", "lora_paths")),
    )


def _speculation_conflict(c: Config) -> tuple[str, str] | None:
    if c.speculative_algorithm == "DSPARK" and (c.env.text("SGLANG_RAGGED_VERIFY_MODE") or "static") != "static":
        return "SGLANG_RAGGED_VERIFY_MODE", "requests would verify different numbers of tokens"
    if c.speculative_adaptive:
        return "speculative_adaptive", "the draft's steps may not change while adapters are served"
    for field in ("moe_runner_backend", "speculative_moe_runner_backend"):
        if getattr(c, field) == "experimental_sgl_trtllm":
            return field, "it would look for adapters on the draft"
    if c.env.flag("SGLANG_ENABLE_OVERLAP_PLAN_STREAM"):
        return "SGLANG_ENABLE_OVERLAP_PLAN_STREAM", "adapters would be prepared out of order"
    return None


@check_lora_server_args.refuses(
    "SPC774",
    "lora-with-unfit-speculation-setting",
    raises="ValueError",
    since="0.5.19",
    sglang="lora_hook.py:check_lora_speculative_compatibility",
    bad="--enable-lora --lora-paths a=/a --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-adaptive --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="--enable-lora --lora-paths a=/a --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def lora_with_unfit_speculation_setting(c: Config) -> Refusal | None:
    """Adapters are served with speculative decoding, but not with this setting.

    Every request has to verify the same number of tokens, at all times: no adaptive steps, no ragged verification of
    DSPARK, no experimental TensorRT-LLM runner, no overlapped planning.
    """
    if not c.enable_lora or c.speculative_algorithm not in SPECULATIVE_WITH_LORA:
        return None
    conflict = _speculation_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    variable = field.isupper()
    return Refusal(
        at=field,
        related_fields=("speculative_algorithm", "enable_lora", "lora_paths"),
        message=f"{f'`{field}`' if variable else c.shown(field)} cannot be combined with LoRA adapters and "
        f"{c.shown('speculative_algorithm')}: {why}.",
        fixes=(dropping_env(field) if variable else dropping(field), dropping("enable_lora", "lora_paths")),
    )


@check_lora_server_args.adjusts("lora_paths")
def start_without_adapters(c: Config) -> None:
    """LoRA without named adapters starts with none; they are loaded later."""
    if c.enable_lora and c.lora_paths is None:
        c.set(lora_paths=[])


@check_lora_server_args.refuses(
    "SPC776",
    "all-modules-and-others",
    raises="AssertionError",
    bad="--enable-lora --lora-paths a=/a --lora-target-modules all q_proj",
    good="--enable-lora --lora-paths a=/a --lora-target-modules all",
)
def all_modules_and_others(c: Config) -> Refusal | None:
    """`all` already names every module an adapter may change.

    `--lora-target-modules` is either `all` or a list of modules.
    """
    modules = c.lora_target_modules
    if c.enable_lora and modules and "all" in modules and len(set(modules)) > 1:
        return Refusal(
            at="lora_target_modules",
            message=f"{c.shown('lora_target_modules')} names `all` and others; `all` stands alone.",
            fixes=(
                setting(lora_target_modules=["all"]),
                setting(lora_target_modules=[m for m in modules if m != "all"]),
            ),
        )
    return None


@check_lora_server_args.refuses(
    "SPC777",
    "lora-without-adapters-or-shape",
    raises="AssertionError",
    bad="--enable-lora",
    good=("--enable-lora --lora-paths a=/a", "--enable-lora --max-lora-rank 64 --lora-target-modules all"),
)
def lora_without_adapters_or_shape(c: Config) -> Refusal | None:
    """Without an adapter at the start SGLang needs to know how large adapters will be.

    Memory for adapters is set aside at the start. Their size comes from the adapters in `--lora-paths`, or from
    `--max-lora-rank` together with `--lora-target-modules` when adapters are loaded later.
    """
    if not c.enable_lora or c.lora_paths or (c.max_lora_rank and c.lora_target_modules):
        return None
    missing = [flag for flag in ("max_lora_rank", "lora_target_modules") if not getattr(c, flag)]
    fix = setting(
        **({"max_lora_rank": 64} if "max_lora_rank" in missing else {}),
        **({"lora_target_modules": ["all"]} if "lora_target_modules" in missing else {}),
    )
    return Refusal(
        at="enable_lora",
        related_fields=("lora_paths", "max_lora_rank", "lora_target_modules"),
        message=f"{c.shown('enable_lora')} names no adapters, so their size has to be given. Add `--lora-paths`, or "
        "both `--max-lora-rank` and `--lora-target-modules`.",
        fixes=(fix, dropping("enable_lora")),
    )


@check_lora_server_args.refuses(
    "SPC778", "fewer-loaded-adapters-than-needed", raises="AssertionError",
    bad="--enable-lora --lora-paths a=/a --max-loaded-loras 4 --max-loras-per-batch 8",
    good="--enable-lora --lora-paths a=/a --max-loaded-loras 8 --max-loras-per-batch 8",
)  # fmt: skip
def fewer_loaded_adapters_than_needed(c: Config) -> Refusal | None:
    """Fewer adapters may be loaded than a batch uses or the launch names.

    `--max-loaded-loras` bounds the adapters in CPU memory: at least `--max-loras-per-batch` (8 unless set), and at
    least those of `--lora-paths`.
    """
    if not c.enable_lora or c.max_loaded_loras is None:
        return None
    named = len(c.lora_paths or ())
    if c.max_loaded_loras < c.max_loras_per_batch:
        other, least = "max_loras_per_batch", c.max_loras_per_batch
    elif named > c.max_loaded_loras:
        other, least = "lora_paths", named
    else:
        return None
    return Refusal(
        at="max_loaded_loras",
        related_fields=(other,),
        message=f"{c.shown('max_loaded_loras')} is less than the {least} adapters that "
        f"{'the launch names' if other == 'lora_paths' else 'a batch may use'}. Raise it to {least} or remove it.",
        fixes=(
            setting(max_loaded_loras=least),
            *((setting(max_loras_per_batch=c.max_loaded_loras),) if other == "max_loras_per_batch" else ()),
            dropping("max_loaded_loras"),
        ),
    )


@check_lora_server_args.refuses(
    "SPC780", "virtual-experts-on-other-lora-backend", raises="AssertionError", since="0.5.11", until="0.5.12",
    bad="sglang=0.5.11 -- --enable-lora --lora-paths a=/a --lora-use-virtual-experts --lora-backend csgmv",
    good="sglang=0.5.11 -- --enable-lora --lora-paths a=/a --lora-use-virtual-experts --lora-backend triton",
)  # fmt: skip
def virtual_experts_on_other_lora_backend(c: Config) -> Refusal | None:
    """Adapters of experts as virtual experts need the Triton LoRA backend in this release.

    `--lora-use-virtual-experts` computes them with Triton's MoE kernels.
    """
    if c.enable_lora and c.lora_use_virtual_experts and c.lora_backend != "triton":
        return Refusal(
            at="lora_use_virtual_experts",
            related_fields=("lora_backend",),
            message=f"{c.shown('lora_use_virtual_experts')} does not work with {c.shown('lora_backend')}. Use "
            "`--lora-backend triton`.",
            fixes=(setting(lora_backend="triton"), dropping("lora_use_virtual_experts")),
        )
    return None


@check_lora_server_args.refuses(
    "SPC781", "negative-adapter-drain-threshold", raises="AssertionError", since="0.5.12",
    bad="--enable-lora --lora-paths a=/a --lora-drain-wait-threshold=-1", good="--enable-lora --lora-paths a=/a",
)  # fmt: skip
def negative_adapter_drain_threshold(c: Config) -> Refusal | None:
    """The waiting time before adapters are drained cannot be negative.

    `--lora-drain-wait-threshold` is in seconds; 0 switches draining off.
    """
    if c.enable_lora and c.lora_drain_wait_threshold < 0.0:
        return Refusal(
            at="lora_drain_wait_threshold",
            message=f"{c.shown('lora_drain_wait_threshold')} is not a waiting time: it must be 0 or more seconds.",
        )
    return None


# --- MoE runners that serve adapters ----------------------------------------------------------------------------------


@check_lora_server_args.refuses(
    "SPC782",
    "lora-runner-on-draft",
    raises="ValueError",
    since="0.5.23",
    sglang="lora_hook.py:check_lora_moe_runner_args",
    bad="--speculative-algorithm NGRAM --speculative-moe-runner-backend lora_triton",
    good="--speculative-algorithm NGRAM",
)
def lora_runner_on_draft(c: Config) -> Refusal | None:
    """A draft model has no adapters.

    The LoRA MoE runners serve adapters of the target model; leave the draft's runner to SGLang.
    """
    runner = c.speculative_moe_runner_backend
    if c.speculative_algorithm is not None and runner is not None and runner.startswith("lora"):
        return Refusal(
            at="speculative_moe_runner_backend",
            related_fields=("speculative_algorithm",),
            message=f"{c.shown('speculative_moe_runner_backend')} serves adapters, and a draft model has none. Leave "
            "it out.",
        )
    return None


def _lora_runner_conflict(c: Config) -> tuple[str, str] | None:
    runner = c.moe_runner_backend
    if not c.enable_lora:
        return "enable_lora", "adapters are off"
    if c.lora_backend != "triton_v2":
        return "lora_backend", "it needs `--lora-backend triton_v2`"
    if c.quantization not in (None, "fp8", "modelopt_fp4"):
        return "quantization", "it computes bfloat16, block-FP8 and NVFP4 experts"
    if c.quantization == "modelopt_fp4" and runner != "lora_marlin":
        return "quantization", "only `lora_marlin` computes NVFP4 experts"
    if c.moe_a2a_backend != "none":
        return "moe_a2a_backend", "it takes no tokens from an all-to-all backend"
    if c.ep_join_mode is not None:
        return "ep_join_mode", "elastic expert parallelism moves experts"
    if c.enable_eplb:
        return "enable_eplb", "experts may not move"
    if c.init_expert_location != "trivial":
        return "init_expert_location", "experts have to stay in their places"
    if c.ep_num_redundant_experts > 0:
        return "ep_num_redundant_experts", "experts may not have copies"
    return None


@check_lora_server_args.refuses(
    "SPC783",
    "lora-runner-conflict",
    raises="ValueError",
    since="0.5.23",
    sglang="lora_hook.py:check_lora_moe_runner_args",
    bad="model=qwen3-30b-a3b -- --moe-runner-backend lora_triton",
    good="model=qwen3-30b-a3b -- --moe-runner-backend lora_triton --lora-backend triton_v2 --enable-lora "
    "--lora-paths a=/a",
)
def lora_runner_conflict(c: Config) -> Refusal | None:
    """A MoE runner for adapters does not fit this launch.

    `lora_triton`, `lora_cutedsl` and `lora_marlin` apply adapters inside the experts. They need `--enable-lora` with
    `--lora-backend triton_v2`, experts in bfloat16, block FP8 or (Marlin) NVFP4, and experts that stay where they are.
    """
    if not c.moe_runner_backend.startswith("lora"):
        return None
    conflict = _lora_runner_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at="moe_runner_backend",
        related_fields=(field,),
        message=f"{c.shown('moe_runner_backend')} cannot be combined with {c.shown(field)}: {why}. Leave the runner to "
        "SGLang.",
        fixes=(dropping("moe_runner_backend"), setting(lora_backend="triton_v2")),
    )
