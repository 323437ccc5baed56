"""The checks that span topics: SGLang's general pass at the very end.

Follows arg_groups/validation_hook.py; before 0.5.19 ServerArgs.check_server_args.

Left out: late allocation on decode without optimistic prefill, which is refused before; mixed chunks with speculative
decoding, which speculative decoding has switched off by then; the installed PyTorch against cuDNN (0.5.6 to 0.5.9).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv6Address
from typing import Any

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import hicache, lora, serving
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.parallel import attention_dp_fix, report_dp_attention
from spec_lsp.resolution.ranks import attention_dp, attention_dp_field, data_parallel_ranks, has_attn_dp_size

# --- check_server_args ------------------------------------------------------------------------------------------------

_layout = Handler("validation_hook.py:check_server_args")
_features = Handler("validation_hook.py:check_server_args")
_rest = Handler("validation_hook.py:check_server_args")
check_server_args = (
    _layout,
    lora.check_lora_server_args,
    _features,
    hicache.validate_hisparse,
    _rest,
    report_dp_attention,
)


@_layout.refuses(
    "SPC740",
    "gpus-not-divisible-by-nodes",
    raises="AssertionError",
    bad="--tp-size 1 --nnodes 2",
    good="--tp-size 2 --nnodes 2",
)
def gpus_not_divisible_by_nodes(c: Config) -> Refusal | None:
    """Every node must run the same number of GPUs of the model.

    `--tp-size` and `--pp-size` count the GPUs of the whole model, over all nodes: their product has to be a multiple of
    `--nnodes`.
    """
    if (c.since("0.5.16") and c.ep_join_mode == "scale") or c.tp_size * c.pp_size % c.nnodes == 0:
        return None
    gpus = c.tp_size * c.pp_size
    return Refusal(
        at="nnodes",
        related_fields=("tp_size", "pp_size"),
        message=f"{c.shown('nnodes')} cannot share {gpus} GPU{'s' if gpus > 1 else ''} evenly: `--tp-size` and `--pp-size` "
        "count the GPUs of all nodes together. Make their product a multiple of the nodes.",
        fixes=(setting(tp_size=c.tp_size * c.nnodes), dropping("nnodes")),
    )


@_layout.refuses(
    "SPC741", "micro-batch-without-requests", raises="AssertionError", since="0.5.11",
    bad="--pp-size 2 --pp-max-micro-batch-size 0", good="--pp-size 2 --pp-max-micro-batch-size 16",
)  # fmt: skip
def micro_batch_without_requests(c: Config) -> Refusal | None:
    """A micro-batch of the pipeline must hold at least one request.

    `--pp-max-micro-batch-size` bounds it; left out, SGLang computes it.
    """
    if c.pp_max_micro_batch_size is not None and c.pp_max_micro_batch_size < 1:
        return Refusal(
            at="pp_max_micro_batch_size",
            message=f"{c.shown('pp_max_micro_batch_size')} leaves no room for a request: it must be at least 1.",
        )
    return None


@_layout.refuses(
    "SPC742", "torch-compile-without-graph-padding", raises="AssertionError", since="0.5.12",
    bad="--enable-torch-compile --disable-cuda-graph-padding", good="--enable-torch-compile",
)  # fmt: skip
def torch_compile_without_graph_padding(c: Config) -> Refusal | None:
    """torch.compile needs batches padded to a few sizes.

    Without padding every batch size is compiled and tuned on its own, for many minutes at the start.
    """
    if c.disable_cuda_graph_padding and c.enable_torch_compile:
        return Refusal(
            at="disable_cuda_graph_padding",
            related_fields=("enable_torch_compile",),
            message=f"{c.shown('disable_cuda_graph_padding')} would make {c.shown('enable_torch_compile')} compile "
            "every batch size on its own, and SGLang refuses that. Remove one of the two.",
            fixes=(dropping("disable_cuda_graph_padding"), dropping("enable_torch_compile")),
        )
    return None


@_layout.refuses(
    "SPC743",
    "pipeline-with-speculation",
    raises="AssertionError",
    sglang="validation_hook.py:check_pipeline_parallel_compat",
    earlier=(
        Earlier("0.5.19", "server_args.py:check_server_args"),
        Earlier("0.5.21", "validation_hook.py:check_server_args"),
    ),
    bad="--pp-size 2 --speculative-algorithm NGRAM",
    good="--pp-size 2",
)
def pipeline_with_speculation(c: Config) -> Refusal | None:
    """Pipeline parallelism does not run this kind of speculative decoding.

    From 0.5.21 on EAGLE works on pipelined prefill servers (or anywhere with SGLANG_ENABLE_PP_SPEC), DSPARK on prefill
    servers. Older releases run no speculation with pipelines, and before 0.5.11 no mixed chunks either.

    Where the stages are there because the weights fit on no GPU whole (a 70B model with STANDALONE drafts on four H100), removing them is
    no way out: tensor parallelism over the same GPUs (`--tp-size 4` for `--pp-size 4`) spreads the weights as far, and drafts run with it.
    """
    if c.pp_size <= 1:
        return None
    conflict = _pipelined_speculation(c)
    if conflict is None:
        return None
    field, why = conflict
    label = f"`{field}`" if field.isupper() else c.shown(field)
    return Refusal(
        at=field,
        related_fields=("pp_size", "speculative_algorithm"),
        message=f"{label} cannot be combined with {c.shown('pp_size')}: {why}. Use one of the two.",
        fixes=(
            dropping_env(field) if field.isupper() else dropping(field),
            dropping("pp_size"),
            Change(set={"tp_size": c.tp_size * c.pp_size}, drop=("pp_size",)),
        ),
    )


def _pipelined_speculation(c: Config) -> tuple[str, str] | None:
    algorithm = c.speculative_algorithm
    if c.before("0.5.11") and c.enable_mixed_chunk:
        return "enable_mixed_chunk", "stages cannot mix prefill and decode"
    if algorithm is None:
        return None
    if c.before("0.5.21"):
        return "speculative_algorithm", "this release does not draft in a pipeline"
    prefill, relayed = c.disaggregation_mode == "prefill", c.env.flag("SGLANG_ENABLE_PP_SPEC")
    if algorithm == "DSPARK":
        if not prefill:
            return "speculative_algorithm", "DSPARK in a pipeline is for prefill servers"
        return ("SGLANG_ENABLE_PP_SPEC", "it does not support DSPARK") if relayed else None
    if algorithm.upper() != "EAGLE":
        return "speculative_algorithm", "only EAGLE drafts in a pipeline"
    if c.enable_multi_layer_eagle:
        return "enable_multi_layer_eagle", "a draft of several layers does not run in a pipeline"
    if not relayed:
        return None if prefill else ("speculative_algorithm", "EAGLE in a pipeline is for prefill servers")
    if c.disaggregation_mode != "null":
        return "SGLANG_ENABLE_PP_SPEC", "it is for servers that prefill and decode"
    if c.speculative_adaptive:
        return "speculative_adaptive", "stages count on a fixed number of draft tokens"
    if attention_dp(c):
        return attention_dp_field(c), "every stage has to see the same batch"
    return None


@_layout.refuses(
    "SPC744",
    "free-slots-delay-in-pipeline",
    raises="AssertionError",
    since="0.5.18",
    sglang="validation_hook.py:check_pipeline_parallel_compat",
    earlier=(
        Earlier("0.5.19", "server_args.py:check_server_args"),
        Earlier("0.5.21", "validation_hook.py:check_server_args"),
    ),
    bad="--pp-size 2 --min-free-slots-delay 4",
    good="--min-free-slots-delay 4",
)
def free_slots_delay_in_pipeline(c: Config) -> Refusal | None:
    """Waiting for free slots does not work in a pipeline.

    A pipeline's micro-batches have few slots each, so the number `--min-free-slots-delay` waits for may never be free.
    """
    if c.pp_size > 1 and c.min_free_slots_delay is not None:
        return Refusal(
            at="min_free_slots_delay",
            related_fields=("pp_size",),
            message=f"{c.shown('min_free_slots_delay')} may wait forever with {c.shown('pp_size')}, whose "
            "micro-batches have few slots. Remove it.",
            fixes=(dropping("min_free_slots_delay"), dropping("pp_size")),
        )
    return None


@_layout.refuses(
    "SPC745", "replicas-over-several-nodes", raises="AssertionError",
    bad="--tp-size 2 --dp-size 2 --nnodes 2", good="--tp-size 2 --dp-size 2 --nnodes 2 --enable-dp-attention",
)  # fmt: skip
def replicas_over_several_nodes(c: Config) -> Refusal | None:
    """Replicas of the model stay on one node.

    `--dp-size` starts copies of the model in one server, and that server does not span nodes. Attention data
    parallelism does; copies on several nodes are several servers behind a router.
    """
    if c.dp_size <= 1 or c.nnodes == 1 or (not has_attn_dp_size(c) and c.enable_dp_attention):
        return None
    return Refusal(
        at="dp_size",
        related_fields=("nnodes",),
        message=f"{c.shown('dp_size')} asks for replicas, and {c.shown('nnodes')} would spread one server's replicas "
        "over nodes. Use attention data parallelism or one server on each node.",
        fixes=(attention_dp_fix(c, c.dp_size), dropping("dp_size"), dropping("nnodes")),
    )


@_layout.refuses(
    "SPC746",
    "gpu-numbers-out-of-range",
    raises="AssertionError",
    bad="--gpu-id-step 0",
    good="--base-gpu-id 4 --gpu-id-step 2",
)
def gpu_numbers_out_of_range(c: Config) -> Refusal | None:
    """GPU numbers start at 0 and go up in steps of at least 1.

    `--base-gpu-id` is the first GPU of this server, `--gpu-id-step` the distance to the next.
    """
    for field, least in (("base_gpu_id", 0), ("gpu_id_step", 1)):
        if getattr(c, field) < least:
            return Refusal(
                at=field,
                message=f"{c.shown(field)} is below {least}, so no GPU is meant.",
            )
    return None


@_layout.refuses(
    "SPC747",
    "dense-layers-of-other-tp-size",
    raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 8 --moe-dense-tp-size 2",
    good="model=deepseek-v3 -- --tp-size 8 --moe-dense-tp-size 1",
)
def dense_layers_of_other_tp_size(c: Config) -> Refusal | None:
    """The dense layers of a MoE model are split over all TP ranks or not at all.

    `--moe-dense-tp-size` is 1 or, from 0.5.13 on, the TP size; left out, dense layers are split like the rest.
    """
    allowed = (None, 1, c.tp_size) if c.since("0.5.13") else (None, 1)
    if c.moe_dense_tp_size in allowed:
        return None
    return Refusal(
        at="moe_dense_tp_size",
        related_fields=("tp_size",),
        message=f"{c.shown('moe_dense_tp_size')} is neither 1 nor the TP size ({c.tp_size}), and SGLang splits dense "
        "layers no other way. Remove it or set 1.",
        fixes=(setting(moe_dense_tp_size=1), dropping("moe_dense_tp_size")),
    )


RUNAI_SCHEMES = ("s3://", "gs://", "az://")


@_layout.refuses(
    "SPC748",
    "colon-in-served-name",
    raises="AssertionError",
    since="0.5.5",
    bad="--served-model-name llama:8b",
    good="--served-model-name llama-8b",
)
def colon_in_served_name(c: Config) -> Refusal | None:
    """The served model name must not contain a colon.

    A colon separates the model from a LoRA adapter in requests (`model:adapter`). The name is the model path unless
    `--served-model-name` gives another.
    """
    name = c.served_model_name
    if ":" not in name or (c.since("0.5.10") and name.lower().startswith(RUNAI_SCHEMES)):
        return None
    return Refusal(
        at=c.first_given("served_model_name", "model_path"),
        message=f"{c.shown('served_model_name')} contains a colon, which separates model and adapter in requests. Use "
        "a name without.",
        fixes=(setting(served_model_name=name.rpartition("/")[2].replace(":", "-")),),
    )


# --- after the adapters -----------------------------------------------------------------------------------------------


SMALLEST_DEFAULT_CHUNK = 2048
"""Every chunk size that SGLang chooses by memory is a multiple of this (memory_hook.py:handle_gpu_memory_settings)."""


@_features.refuses(
    "SPC751", "prefill-chunk-not-divisible-by-page", raises="AssertionError",
    bad="--chunked-prefill-size 1000 --page-size 64", good="--chunked-prefill-size 1024 --page-size 64",
)  # fmt: skip
def prefill_chunk_not_divisible_by_page(c: Config) -> Refusal | None:
    """A prefill chunk must be a multiple of the KV page size.

    Chunks are cut at `--chunked-prefill-size` tokens, shared out over attention-DP ranks; that has to be a multiple of
    the page size.
    """
    page = c.page_size
    if not c.known("chunked_prefill_size") and not c.given("chunked_prefill_size") and not attention_dp(c):
        if SMALLEST_DEFAULT_CHUNK % page == 0:
            return None
    chunk = c.chunked_prefill_size
    if chunk <= 0 or c.disaggregation_mode == "decode" or chunk % page == 0:
        return None
    shared = attention_dp(c)
    multiple = max(page, round(chunk / page) * page)
    typed = c.typed("chunked_prefill_size") if c.given("chunked_prefill_size") else None
    fixed = multiple * (typed // chunk if shared and typed else 1)
    return Refusal(
        at="chunked_prefill_size",
        related_fields=("page_size",),
        message=f"A prefill chunk of {chunk} tokens{' on each rank' if shared else ''} does not end at a page of "
        f"{page}, and SGLang needs whole pages. Use a multiple.",
        fixes=(setting(chunked_prefill_size=fixed), setting(page_size=1)),
    )


@_features.refuses(
    "SPC752", "multiplexing-conflict", raises="AssertionError",
    bad="--enable-pdmux", good="--enable-pdmux --chunked-prefill-size -1 --disable-overlap-schedule",
)  # fmt: skip
def multiplexing_conflict(c: Config) -> Refusal | None:
    """Multiplexing prefill and decode on one GPU cannot be combined with this setting.

    `--enable-pdmux` runs whole prefills beside decode steps, so chunked prefill (`--chunked-prefill-size -1`) and the
    overlap schedule (`--disable-overlap-schedule`) are off, and there is one pipeline stage and one server.
    """
    if not c.enable_pdmux:
        return None
    for field, wrong, change in (
        ("pp_size", c.pp_size != 1, dropping("pp_size")),
        ("chunked_prefill_size", c.chunked_prefill_size != -1, setting(chunked_prefill_size=-1)),
        ("disaggregation_mode", c.disaggregation_mode != "null", dropping("disaggregation_mode")),
        ("disable_overlap_schedule", not c.disable_overlap_schedule, setting(disable_overlap_schedule=True)),
    ):
        if wrong:
            both = setting(chunked_prefill_size=-1, disable_overlap_schedule=True)
            return Refusal(
                at="enable_pdmux",
                related_fields=(field,),
                message=f"{c.shown('enable_pdmux')} cannot be combined with {c.shown(field)}: prefill runs whole and beside "
                "decode. Switch chunked prefill and the overlap schedule off, or leave multiplexing out.",
                fixes=(change, both, dropping("enable_pdmux")),
            )
    return None


@_features.refuses(
    "SPC753",
    "no-worker-processes",
    raises="AssertionError",
    bad="--tokenizer-worker-num 0",
    good="--tokenizer-worker-num 4",
)
def no_worker_processes(c: Config) -> Refusal | None:
    """SGLang needs at least one tokenizer and one detokenizer process.

    There may be no process for media: the tokenizers then do that work.
    """
    fields = [("tokenizer_worker_num", 1)]
    fields += [("detokenizer_worker_num", 1)] if c.since("0.5.12") else []
    fields += [("mm_processor_worker_num", 0), ("mm_io_worker_num", 0)] if c.since("0.5.17") else []
    for field, least in fields:
        if getattr(c, field) < least:
            return Refusal(
                at=field,
                message=f"{c.shown(field)} is below {least}, so nobody would do that work.",
                fixes=(dropping(field), setting(**{field: max(least, 1)})),
            )
    return None


def _numbers(texts: Sequence[str], *kinds: Callable[[str], float]) -> list[float] | None:
    try:
        return [kind(text) for kind, text in zip(kinds, texts, strict=False)]
    except ValueError:
        return None


def _bucket_problem(rule: Sequence[str]) -> str | None:
    """What is wrong with a rule for metric buckets, as `tse MIDDLE BASE COUNT`, `default` or `custom VALUE…`."""
    kind, values = rule[0], rule[1:]
    if kind == "default":
        return "`default` accepts no numbers" if values else None
    if kind == "tse":
        numbers = _numbers(values, float, float, int) if len(values) == 3 else None
        if numbers is None:
            return "`tse` needs a middle, a base and a count"
        middle, base, count = numbers
        return (
            None if base > 1 and count > 0 and middle > 0 else "`tse` needs a base above 1, a positive count and middle"
        )
    if kind == "custom":
        numbers = _numbers(values, *[float] * len(values)) if values else None
        if numbers is None:
            return "`custom` needs numbers"
        return (
            None
            if len(set(numbers)) == len(numbers) and min(numbers) >= 0
            else "`custom` accepts each number once and none that is negative"
        )
    return "a rule starts with `tse`, `default` or `custom`"


@_features.refuses(
    "SPC754", "unreadable-metric-buckets", raises="AssertionError", sglang="validation_hook.py:validate_buckets_rule",
    bad="--prompt-tokens-buckets custom 1 1", good="--prompt-tokens-buckets custom 128 1024 8192",
)  # fmt: skip
def unreadable_metric_buckets(c: Config) -> Refusal | None:
    """The buckets of a metric are given as `default`, `tse MIDDLE BASE COUNT` or `custom VALUE…`.

    `--prompt-tokens-buckets` and `--generation-tokens-buckets` shape the histograms of token counts.
    """
    for field in ("prompt_tokens_buckets", "generation_tokens_buckets"):
        rule = getattr(c, field)
        if rule and (problem := _bucket_problem(rule)):
            return Refusal(
                at=field,
                message=f"{c.shown(field)} cannot be read: {problem}.",
                fixes=(setting(**{field: ["default"]}), dropping(field)),
            )
    return None


@_features.refuses(
    "SPC755", "priorities-with-unfit-policy", raises="AssertionError",
    bad="--enable-priority-scheduling --schedule-policy lpm", good="--enable-priority-scheduling --schedule-policy lof",
)  # fmt: skip
def priorities_with_unfit_policy(c: Config) -> Refusal | None:
    """Priorities order requests under `fcfs` and `lof` only.

    The other policies order waiting requests by shared prefixes or at random, which priorities cannot refine.
    """
    if c.enable_priority_scheduling and c.schedule_policy not in ("fcfs", "lof"):
        return Refusal(
            at="schedule_policy",
            related_fields=("enable_priority_scheduling",),
            message=f"{c.shown('schedule_policy')} cannot be refined by priorities "
            f"({c.shown('enable_priority_scheduling')}). Use `fcfs` or `lof`.",
            fixes=(
                dropping("schedule_policy"),
                setting(schedule_policy="fcfs"),
                dropping("enable_priority_scheduling"),
            ),
        )
    return None


@_features.refuses(
    "SPC756", "retraction-by-missing-priority", raises="ValueError", since="0.5.16",
    bad="--retraction-policy priority", good="--retraction-policy priority --enable-priority-scheduling",
)  # fmt: skip
def retraction_by_missing_priority(c: Config) -> Refusal | None:
    """Requests can be retracted by priority only when they have priorities.

    `--retraction-policy priority` takes back the least important request when memory runs out.
    """
    if c.retraction_policy == "priority" and not c.enable_priority_scheduling:
        return Refusal(
            at="retraction_policy",
            related_fields=("enable_priority_scheduling",),
            message=f"{c.shown('retraction_policy')} needs `--enable-priority-scheduling`, without which requests "
            "have no priority.",
            fixes=(setting(enable_priority_scheduling=True), dropping("retraction_policy")),
        )
    return None


@_features.refuses(
    "SPC757", "item-scoring-with-cache-or-chunks", raises="AssertionError", until="0.5.12",
    bad="sglang=0.5.9 -- --multi-item-scoring-delimiter 5",
    good="sglang=0.5.9 -- --multi-item-scoring-delimiter 5 --disable-radix-cache --chunked-prefill-size -1",
)  # fmt: skip
def item_scoring_with_cache_or_chunks(c: Config) -> Refusal | None:
    """Scoring several items at once needs whole prompts.

    With `--multi-item-scoring-delimiter` the items of a prompt do not see each other, so neither a cached prefix nor a
    chunk may cut through: `--disable-radix-cache` and `--chunked-prefill-size -1`.
    """
    if c.multi_item_scoring_delimiter is None or (c.disable_radix_cache and c.chunked_prefill_size == -1):
        return None
    return Refusal(
        at="multi_item_scoring_delimiter",
        related_fields=("disable_radix_cache", "chunked_prefill_size"),
        message=f"{c.shown('multi_item_scoring_delimiter')} needs whole prompts. Add `--disable-radix-cache` and "
        "`--chunked-prefill-size -1`.",
        fixes=(setting(disable_radix_cache=True, chunked_prefill_size=-1), dropping("multi_item_scoring_delimiter")),
    )


# --- after HiSparse ---------------------------------------------------------------------------------------------------


@_rest.refuses(
    "SPC760", "negative-schedule-conservativeness", raises="AssertionError", since="0.5.5",
    bad="--schedule-conservativeness=-1", good="--schedule-conservativeness 0.5",
)  # fmt: skip
def negative_schedule_conservativeness(c: Config) -> Refusal | None:
    """The schedule conservativeness cannot be negative.

    `--schedule-conservativeness` scales how much memory is kept free for running requests; 1 is normal, larger is more
    cautious.
    """
    if c.schedule_conservativeness < 0:
        return Refusal(
            at="schedule_conservativeness",
            message=f"{c.shown('schedule_conservativeness')} is negative; it must be 0 or more.",
        )
    return None


@_rest.refuses(
    "SPC761",
    "mindspore-off-ascend",
    raises="AssertionError",
    hardware_only=True,
    bad="--model-impl mindspore",
    good="--model-impl sglang",
)
def mindspore_off_ascend(c: Config) -> Refusal | None:
    """MindSpore models run on Ascend devices only.

    `--model-impl mindspore` replaces SGLang's own model code; elsewhere use `auto`.
    """
    if c.model_impl == "mindspore" and c.gpu.platform != "npu":
        return Refusal(
            at="model_impl",
            message=f"{c.shown('model_impl')} does not run on {c.gpu.title}: it is for Ascend devices. Remove it.",
        )
    return None


@_rest.refuses(
    "SPC762", "instanttensor-off-gpu", raises="ValueError", since="0.5.22",
    bad="gpu=cpu -- --load-format instanttensor --device cpu", good="--load-format auto",
)  # fmt: skip
def instanttensor_off_gpu(c: Config) -> Refusal | None:
    """InstantTensor loads weights into NVIDIA and AMD GPUs only.

    `--load-format instanttensor` streams them there directly.
    """
    if c.load_format == "instanttensor" and c.device != "cuda":
        return Refusal(
            at="load_format",
            related_fields=("device",),
            message=f"{c.shown('load_format')} does not load for {c.shown('device')}. Remove it.",
        )
    return None


@_rest.refuses(
    "SPC763", "metric-setting-without-its-partner", raises="ValueError", since="0.5.5",
    earlier=(Earlier("0.5.7", "server_args.py:_handle_request_metrics_exporters"),),
    bad="--export-metrics-to-file", good="--export-metrics-to-file --export-metrics-to-file-dir /tmp/metrics",
)  # fmt: skip
def metric_setting_without_its_partner(c: Config) -> Refusal | None:
    """Metrics exported to files need a folder.

    `--export-metrics-to-file-dir` names it.
    """
    if c.export_metrics_to_file and c.export_metrics_to_file_dir is None:
        return Refusal(
            at="export_metrics_to_file",
            related_fields=("export_metrics_to_file_dir",),
            message=f"{c.shown('export_metrics_to_file')} needs a folder. Add `--export-metrics-to-file-dir`.",
        )
    return None


@_rest.refuses(
    "SPC764",
    "metric-labels-without-header",
    raises="ValueError",
    earlier=(Earlier("0.5.7", "server_args.py:_handle_metrics_labels"),),
    bad="--tokenizer-metrics-custom-labels-header '' --tokenizer-metrics-allowed-custom-labels team",
    good="--tokenizer-metrics-custom-labels-header x-labels --tokenizer-metrics-allowed-custom-labels team",
)
def metric_labels_without_header(c: Config) -> Refusal | None:
    """Custom metric labels need the header that they come in.

    `--tokenizer-metrics-allowed-custom-labels` lists labels that requests may set, in the header that
    `--tokenizer-metrics-custom-labels-header` names.
    """
    if c.tokenizer_metrics_allowed_custom_labels and not c.tokenizer_metrics_custom_labels_header:
        return Refusal(
            at="tokenizer_metrics_allowed_custom_labels",
            related_fields=("tokenizer_metrics_custom_labels_header",),
            message=f"{c.shown('tokenizer_metrics_allowed_custom_labels')} comes in a header of the request, and none "
            "is named. Add `--tokenizer-metrics-custom-labels-header`.",
            fixes=(
                dropping("tokenizer_metrics_custom_labels_header"),
                dropping("tokenizer_metrics_allowed_custom_labels"),
            ),
        )
    return None


@_rest.refuses(
    "SPC765", "two-batch-overlap-without-exchange", raises="ValueError", since="0.5.7",
    sglang="validation_hook.py:check_two_batch_overlap",
    earlier=(Earlier("0.5.15", "server_args.py:check_server_args"),),
    bad="model=deepseek-v3 -- --tp-size 8 --enable-two-batch-overlap",
    good="model=deepseek-v3 -- --tp-size 8 --enable-two-batch-overlap --moe-a2a-backend deepep",
)  # fmt: skip
def two_batch_overlap_without_exchange(c: Config) -> Refusal | None:
    """Overlapping two batches needs communication to overlap.

    `--enable-two-batch-overlap` computes one half of a batch while the other half's tokens travel: over an all-to-all
    backend such as DeepEP, or (from 0.5.15) between attention-DP ranks. With neither there is nothing to hide.
    """
    if not c.enable_two_batch_overlap or c.moe_a2a_backend != "none":
        return None
    if c.since("0.5.15") and attention_dp(c):
        return None
    if c.since("0.5.18") and c.before("0.5.20") and _overlaps_context_parallel(c):
        return None
    return Refusal(
        at="enable_two_batch_overlap",
        related_fields=("moe_a2a_backend", attention_dp_field(c)),
        message=f"{c.shown('enable_two_batch_overlap')} has no communication to overlap: there is no all-to-all "
        f"backend{' and no attention data parallelism' if c.since('0.5.15') else ''}. Add `--moe-a2a-backend "
        "deepep` or remove it.",
        fixes=(dropping("enable_two_batch_overlap"), setting(moe_a2a_backend="deepep"), attention_dp_fix(c)),
    )


def _overlaps_context_parallel(c: Config) -> bool:
    return bool(c.gpu.is_hip and c.enable_dsa_prefill_context_parallel and c.dsa_prefill_cp_mode == "round-robin-split")


@_rest.refuses(
    "SPC766",
    "two-batch-overlap-with-fused-shared-experts",
    raises="ValueError",
    since="0.5.12",
    until="0.5.14",
    bad="sglang=0.5.12 model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap "
    "--enforce-shared-experts-fusion",
    good="sglang=0.5.12 model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap",
)
def two_batch_overlap_with_fused_shared_experts(c: Config) -> Refusal | None:
    """Two-batch overlap computes the shared experts while tokens travel, so they cannot be fused with the others.

    Remove `--enforce-shared-experts-fusion` or the overlap.
    """
    if c.enable_two_batch_overlap and c.enforce_shared_experts_fusion:
        return Refusal(
            at="enforce_shared_experts_fusion",
            related_fields=("enable_two_batch_overlap",),
            message=f"{c.shown('enforce_shared_experts_fusion')} cannot be combined with "
            f"{c.shown('enable_two_batch_overlap')}, which computes the shared experts while tokens travel.",
            fixes=(dropping("enforce_shared_experts_fusion"), dropping("enable_two_batch_overlap")),
        )
    return None


@_rest.refuses(
    "SPC767",
    "quantized-communication-off-ascend",
    raises="ValueError",
    since="0.5.11",
    bad="--tp-size 2 --enable-quant-communications",
    good="--tp-size 2",
)
def quantized_communication_off_ascend(c: Config) -> Refusal | None:
    """Quantized communication is for several Ascend devices.

    `--enable-quant-communications` compresses what TP ranks exchange, with Ascend's kernels.
    """
    if not c.enable_quant_communications or (c.tp_size != 1 and c.device == "npu"):
        return None
    other = "tp_size" if c.tp_size == 1 else "device"
    return Refusal(
        at="enable_quant_communications",
        related_fields=(other,),
        message=f"{c.shown('enable_quant_communications')} does not work with {c.shown(other)}: it is for several "
        "Ascend devices. Remove it.",
    )


@_rest.refuses(
    "SPC768", "intel-sampling-off-xpu", raises="ValueError", since="0.5.21",
    sglang="validation_hook.py:validate_device_sampling_backend",
    bad="--sampling-backend intel_xpu", good="--sampling-backend pytorch",
)  # fmt: skip
def intel_sampling_off_xpu(c: Config) -> Refusal | None:
    """Intel's sampling kernels run on Intel GPUs only.

    `--sampling-backend intel_xpu` needs `--device xpu`.
    """
    if c.sampling_backend == "intel_xpu" and c.device != "xpu":
        return Refusal(
            at="sampling_backend",
            related_fields=("device",),
            message=f"{c.shown('sampling_backend')} does not run on {c.shown('device')}: its kernels are for Intel "
            "GPUs. Remove it.",
            fixes=(dropping("sampling_backend"), setting(sampling_backend="pytorch")),
        )
    return None


@_rest.refuses(
    "SPC769", "one-port-for-two-servers", raises="ValueError", since="0.5.11",
    bad="--port 30000 --grpc-port 30000", good="--port 30000 --grpc-port 40000",
)  # fmt: skip
def one_port_for_two_servers(c: Config) -> Refusal | None:
    """HTTP and gRPC must listen on different ports.

    `--grpc-port` (or SGLANG_GRPC_PORT) opens the native gRPC server beside the HTTP server on `--port`.
    """
    if c.since("0.5.16"):
        port = None if c.smg_grpc_mode or c.grpc_mode else c.grpc_port
    else:
        port = c.env.number("SGLANG_GRPC_PORT", c.port + 10000) if c.env.flag("SGLANG_ENABLE_GRPC") else None
    if port is None or port != c.port:
        return None
    at = c.first_given("grpc_port", "SGLANG_GRPC_PORT")
    return Refusal(
        at=at,
        related_fields=("port",),
        message=f"The gRPC server would listen on port {port}, where the HTTP server already does. Choose another.",
        fixes=(setting(grpc_port=c.port + 10000), dropping("grpc_port")),
    )


@_rest.refuses(
    "SPC784", "garbage-collection-thresholds-of-wrong-number", raises="ValueError", since="0.5.10",
    bad="--gc-threshold 700 10 10 10", good="--gc-threshold 700 10 10",
)  # fmt: skip
def garbage_collection_thresholds_of_wrong_number(c: Config) -> Refusal | None:
    """Python's garbage collector accepts one to three thresholds.

    `--gc-threshold` passes them to `gc.set_threshold`.
    """
    if c.gc_threshold and not 1 <= len(c.gc_threshold) <= 3:
        return Refusal(
            at="gc_threshold",
            message=f"{c.shown('gc_threshold')} has {len(c.gc_threshold)} numbers; Python's garbage collector takes "
            "one to three.",
            fixes=(setting(gc_threshold=c.gc_threshold[:3]), dropping("gc_threshold")),
        )
    return None


@_rest.refuses(
    "SPC785", "cache-canary-sweep-without-canary", raises="ValueError", since="0.5.13",
    bad="--kv-canary-sweep-interval 100", good="--kv-canary log --kv-canary-sweep-interval 100",
)  # fmt: skip
def cache_canary_sweep_without_canary(c: Config) -> Refusal | None:
    """Sweeping the KV cache for damage needs the canary.

    `--kv-canary log` or `raise` marks the cache; `--kv-canary-sweep-interval` says how often all of it is checked.
    """
    if c.kv_canary_sweep_interval > 0 and c.kv_canary == "none":
        return Refusal(
            at="kv_canary_sweep_interval",
            related_fields=("kv_canary",),
            message=f"{c.shown('kv_canary_sweep_interval')} has nothing to check without `--kv-canary`. Add it or "
            "leave the sweep out.",
            fixes=(setting(kv_canary="log"), dropping("kv_canary_sweep_interval")),
        )
    return None


# --- watermarks -------------------------------------------------------------------------------------------------------

BUILT_IN_SAMPLING = ("flashinfer", "pytorch", "ascend", "intel_xpu", "token_oracle")


WATERMARK_DEFAULTS: Mapping[str, Any] = {
    "key": None, "key_b": None, "context_window": 4, "mixing_probability": 0.5, "max_probability": 1.0,
    "default_enabled": False, "enforce_all": False,
}  # fmt: skip


def _watermark_settings(c: Config) -> Mapping[str, Any]:
    """What `--watermark-config` sets. Raises NotKnown when it names a file."""
    if c.watermark_config is None:
        return WATERMARK_DEFAULTS
    config = serving.watermark_settings(c)
    if not isinstance(config, Mapping):
        raise NotKnown("the watermark", "its configuration is not an object")
    return {**WATERMARK_DEFAULTS, **{name: value for name, value in config.items() if value is not None}}


def _watermark_settings_problem(w: Mapping[str, Any]) -> str | None:
    """What is wrong with the settings of a watermark, in SGLang's order."""
    if any(w[key] is not None and not serving.is_watermark_key(w[key]) for key in ("key", "key_b")):
        return "a key is 1 to 16 hexadecimal digits"
    if not 1 <= w["context_window"] <= 64:
        return "the window is 1 to 64 tokens"
    if w["key_b"] is not None and w["key"] is None:
        return "a second key needs a first"
    if not 0 < w["mixing_probability"] < 1 or (w["key_b"] is None and w["mixing_probability"] != 0.5):
        return "mixing is for two keys, with a probability between 0 and 1"
    if not 0 < w["max_probability"] <= 1:
        return "the largest probability is above 0 and at most 1"
    if (w["default_enabled"] or w["enforce_all"]) and w["key"] is None:
        return "marking by default needs a key"
    return None


def _watermark_conflict(c: Config) -> tuple[str, str] | None:
    """What a watermark cannot be combined with, in SGLang's order."""
    if c.device != "cuda":
        return "device", "it is computed on NVIDIA and AMD GPUs"
    if problem := _watermark_settings_problem(_watermark_settings(c)):
        return "watermark_config", problem
    checks: tuple[tuple[str, bool, str], ...] = (
        ("enable_custom_logit_processor", bool(c.enable_custom_logit_processor), "both change the logits"),
        ("sampling_backend", c.sampling_backend not in (None, *BUILT_IN_SAMPLING), "it is not built in"),
        ("dllm_algorithm", c.dllm_algorithm is not None, "diffusion models draw tokens otherwise"),
        ("disaggregation_mode", c.disaggregation_mode != "null", "no server sees all tokens"),
        ("speculative_algorithm", c.speculative_algorithm not in MARKED_SPECULATION, "it draws tokens otherwise"),
        ("pp_size", c.pp_size > 1 and c.speculative_algorithm is not None, "drafts in a pipeline are not marked"),
        ("speculative_use_rejection_sampling", c.speculative_use_rejection_sampling, "it draws tokens otherwise"),
        ("SGLANG_RUST_SERVER", serving.rust_server(c), "the Rust server does not support it"),
    )
    return next(((field, why) for field, wrong, why in checks if wrong), None)


MARKED_SPECULATION = (None, "NGRAM", "EAGLE", "EAGLE3")


@_rest.refuses(
    "SPC786",
    "watermark-conflict",
    raises="ValueError",
    since="0.5.22",
    sglang="validation_hook.py:check_watermark_server_args",
    bad=("--enable-watermark --disaggregation-mode prefill", """--watermark-config '{"key": "0xab"}'"""),
    good="--enable-watermark",
)
def watermark_conflict(c: Config) -> Refusal | None:
    """A watermark cannot be combined with this setting.

    `--enable-watermark` marks the tokens a request draws. It needs a GPU, keys of 1 to 16 hexadecimal digits, SGLang's
    own sampling, and one server for prefill and decode; of speculative decoding it supports NGRAM, EAGLE and EAGLE3.
    """
    if not c.enable_watermark:
        if c.watermark_config is None:
            return None
        at, message = (
            "watermark_config",
            f"{c.shown('watermark_config')} does nothing without `--enable-watermark`, and SGLang refuses it.",
        )
        return Refusal(at=at, message=message, fixes=(setting(enable_watermark=True), dropping("watermark_config")))
    conflict = _watermark_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    label = f"`{field}`" if field.isupper() else c.shown(field)
    return Refusal(
        at=field,
        related_fields=("enable_watermark",),
        message=f"{label} cannot be combined with {c.shown('enable_watermark')}: {why}.",
        fixes=(dropping_env(field) if field.isupper() else dropping(field), dropping("enable_watermark")),
    )


@_rest.refuses(
    "SPC787",
    "load-published-without-events",
    raises="ValueError",
    since="0.5.19",
    sglang="validation_hook.py:check_load_publish_args",
    bad="--load-publish-endpoint auto",
    good="""--load-publish-endpoint auto --kv-events-config '{"publisher": "zmq"}'""",
)
def load_published_without_events(c: Config) -> Refusal | None:
    """Load is published beside KV events.

    Routers learn where to read the load (`--load-publish-endpoint`) from the server's KV event settings, so
    `--kv-events-config` has to name a publisher.
    """
    mode = (c.load_publish_endpoint or "").strip().lower()
    if not mode or mode == "off":
        return None
    config = _events_config(c.kv_events_config)
    if config is None or (config.get("publisher", "null") != "null" and config.get("endpoint", DEFAULT_ENDPOINT)):
        return None
    return Refusal(
        at="load_publish_endpoint",
        related_fields=("kv_events_config",),
        message=f"{c.shown('load_publish_endpoint')} is announced with KV events, and no publisher is set. Add "
        "`--kv-events-config`.",
    )


DEFAULT_ENDPOINT = "tcp://*:5557"
"""Where KV events are published by default (disaggregation/kv_events.py:KVEventsConfig)."""


def _events_config(text: Any) -> Mapping[str, Any] | None:
    """The settings of KV events: an empty mapping if none are set, None if they are unreadable."""
    if not text:
        return {}
    try:
        config = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    if not isinstance(config, Mapping) or any(not isinstance(config.get(name, ""), str) for name in EVENT_TEXTS):
        return None
    return config if isinstance(config.get("replay_endpoint"), str | None) else None


EVENT_TEXTS = ("publisher", "endpoint", "topic")


@_rest.refuses(
    "SPC788",
    "load-published-at-unfit-address",
    raises="ValueError",
    since="0.5.19",
    sglang="validation_hook.py:check_load_publish_args",
    bad=(
        """--load-publish-endpoint auto --kv-events-config '{"publisher": zmq}'""",
        """--load-publish-endpoint auto --kv-events-config '{"publisher": "zmq", "endpoint": "tcp://10.0.0.1:5557"}'""",
        """--load-publish-endpoint tcp://*:5557 --kv-events-config '{"publisher": "zmq"}'""",
        """--load-publish-endpoint tcp://10.0.0.1:6000 --kv-events-config '{"publisher": "zmq"}'""",
    ),
    good=(
        """--load-publish-endpoint tcp://*:6000 --kv-events-config '{"publisher": "zmq"}'""",
        """--load-publish-endpoint auto --kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5600"}'""",
    ),
)
def load_published_at_unfit_address(c: Config) -> Refusal | None:
    """There is no port to publish the load at.

    Each data-parallel rank publishes its load (`--load-publish-endpoint`) at a port of its own. `auto` takes those after the
    ports of KV events, which therefore have to be published at a `tcp://` address that every interface answers (`*`, `0.0.0.0` or
    `[::]`); an address given has to be such a one and must not overlap the ports of KV events or their replay.
    """
    mode = (c.load_publish_endpoint or "").strip()
    if not mode or mode.lower() == "off" or not c.kv_events_config:
        return None
    config = _events_config(c.kv_events_config)
    at, why = "load_publish_endpoint", None
    if config is None:
        at, why = "kv_events_config", "it is not a JSON object of KV event settings"
    elif config.get("publisher", "null") != "null" and (endpoint := config.get("endpoint", DEFAULT_ENDPOINT)):
        why = _load_address_problem(mode, endpoint, config.get("replay_endpoint"), data_parallel_ranks(c))
    if why is None:
        return None
    return Refusal(
        at=at,
        related_fields=("load_publish_endpoint", "kv_events_config"),
        message=f"{c.shown(at)} leaves no port to publish the load at: {why}.",
        fixes=(setting(load_publish_endpoint="auto"), dropping("load_publish_endpoint")),
    )


def _load_address_problem(mode: str, events: str, replay: str | None, ranks: int) -> str | None:
    """Why the load of `ranks` ranks cannot be published (resolve_load_pub_range); None if it can."""
    if mode.lower() == "auto":
        bound = _bindable(events)
        if bound is None:
            return f"KV events at `{events}` are not bound on all interfaces, and `auto` packs behind them"
        base = bound + ranks
        replayed = _tcp_port(replay)
        if replayed is not None and base < replayed + ranks and replayed < base + ranks:
            base = replayed + ranks
    else:
        if _tcp_port(events) is None:
            return f"routers find it beside KV events, and `{events}` is not a tcp:// address with a port"
        bound = _bindable(mode)
        if bound is None:
            return "it has to be tcp:// with `*` (or 0.0.0.0, [::]) and a port"
        base = bound
        for taken in (_tcp_port(events), _tcp_port(replay)):
            if taken is not None and base < taken + ranks and taken < base + ranks:
                return f"its {ranks} port{'s' * (ranks > 1)} from {base} overlap those of KV events from {taken}"
    return f"ports from {base} run past 65535" if base + ranks - 1 > 65535 else None


def _tcp_address(endpoint: str | None) -> tuple[str, int] | None:
    """Host and port of a tcp:// endpoint with a usable port (utils/network.py:NetworkAddress.parse)."""
    if not endpoint or not endpoint.startswith("tcp://"):
        return None
    host, colon, port = endpoint[len("tcp://") :].rpartition(":")
    if not colon or not port.strip().isdecimal() or not 0 < int(port) <= 65535:
        return None
    if host.startswith("["):
        return (host[1:-1], int(port)) if host.endswith("]") and _is_ipv6(host[1:-1]) else None
    return (host, int(port)) if host and not _is_ipv6(host) else None


def _tcp_port(endpoint: str | None) -> int | None:
    address = _tcp_address(endpoint)
    return address and address[1]


def _bindable(endpoint: str) -> int | None:
    """The port of an endpoint on all interfaces."""
    address = _tcp_address(endpoint)
    return address[1] if address is not None and address[0] in ("*", "0.0.0.0", "::") else None


def _is_ipv6(host: str) -> bool:
    try:
        return bool(IPv6Address(host))
    except ValueError:
        return False
