"""Prefill and decode on separate servers, and vision encoders on their own.

Follows arg_groups/pd_disaggregation_hook.py (`_handle_disaggregation`, `_handle_pd_disaggregation` and
`_handle_encoder_disaggregation` of ServerArgs before) and model_hook.handle_language_model_only.

Left out: whether InfiniBand devices exist, which SGLang looks up under /sys/class/infiniband (the field becomes unknown when one
is named).
"""

from __future__ import annotations

import json

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.ranks import attention_dp, data_parallel_ranks

# --- handle_pd_disaggregation -----------------------------------------------------------------------------------------

handle_pd_disaggregation = Handler(
    "pd_disaggregation_hook.py:handle_pd_disaggregation",
    earlier=(
        Earlier("0.5.7", "server_args.py:_handle_disaggregation"),
        Earlier("0.5.13", "server_args.py:_handle_pd_disaggregation"),
    ),
)


@handle_pd_disaggregation.adjusts(
    "disaggregation_transfer_backend", "disaggregation_ib_device", since="0.5.13", spelling=True
)
def read_mooncake_over_tcp(c: Config) -> None:
    """`mooncake_tcp` is Mooncake with TCP instead of RDMA."""
    if c.disaggregation_transfer_backend == "mooncake_tcp":
        c.set(disaggregation_transfer_backend="mooncake", disaggregation_ib_device=None)


def _late_allocation_conflict(c: Config) -> tuple[str, str] | None:
    """What cannot be combined with allocating on decode only once prefill is complete, in SGLang's order."""
    mode, tiers = c.disaggregation_mode, c.enable_hierarchical_cache
    prefill_tiers = mode == "prefill" and tiers
    conflicts = {
        "disaggregation_mode": (mode not in ("prefill", "decode"), "there is no transfer to wait for"),
        "disaggregation_transfer_backend": (c.disaggregation_transfer_backend != "mooncake", "only Mooncake can wait"),
        "pp_size": (c.pp_size != 1, "pipeline stages finish at different times"),
        "attn_cp_size": (c.attn_cp_size != 1, "context parallelism is not supported"),
        "dcp_size": (c.dcp_size != 1, "context parallelism is not supported"),
        "tp_size": (c.tp_size != (c.dp_size if c.enable_dp_attention else 1), "attention may not be tensor parallel"),
        "enable_pdmux": (c.enable_pdmux, "multiplexing is not supported"),
        "decoupled_spec_role": (c.decoupled_spec_role != "null", "decoupled speculation is not supported"),
        "enable_pd_role_switch": (c.enable_pd_role_switch, "roles may not change"),
        "encoder_only": (c.encoder_only, "encoders are not supported"),
        "language_only": (c.language_only, "encoders are not supported"),
        "enable_hisparse": (c.enable_hisparse, "HiSparse is not supported"),
        "disaggregation_decode_host_receive_threshold": (
            c.disaggregation_decode_host_receive_threshold < 1, "decode may not receive into host memory"),
        "disaggregation_decode_enable_radix_cache": (
            mode == "decode" and c.disaggregation_decode_enable_radix_cache, "decode may not keep a radix cache"),
        "enable_hierarchical_cache": (mode == "decode" and tiers, "decode may not keep a hierarchical cache"),
        "hicache_storage_backend": (
            prefill_tiers and c.hicache_storage_backend is not None, "prefill may not use storage"),
        "hicache_write_policy": (prefill_tiers and c.hicache_write_policy != "write_back", "prefill has to write back"),
        "SGLANG_DISAGG_STAGING_BUFFER": (c.env.flag("SGLANG_DISAGG_STAGING_BUFFER"), "staging is not supported"),
        "SGLANG_RUST_SERVER": (c.env.flag("SGLANG_RUST_SERVER"), "the Rust server is not supported"),
    }  # fmt: skip
    return next(((field, why) for field, (wrong, why) in conflicts.items() if wrong), None)


@handle_pd_disaggregation.refuses(
    "SPC650", "late-decode-allocation-conflict", raises="ValueError", since="0.5.22",
    sglang="pd_disaggregation_hook.py:_validate_prefill_complete",
    bad="--disaggregation-decode-allocation-policy prefill_complete",
    good="--disaggregation-mode decode --disaggregation-decode-allocation-policy prefill_complete",
)  # fmt: skip
def late_decode_allocation_conflict(c: Config) -> Refusal | None:
    """Allocating on the decode server only after prefill does not work with this setting.

    `--disaggregation-decode-allocation-policy prefill_complete` is for PD servers over Mooncake whose attention is not
    split: no pipeline, context or tensor parallel attention, no radix or hierarchical cache on decode, no role
    switching.
    """
    if c.disaggregation_decode_allocation_policy != "prefill_complete":
        return None
    conflict = _late_allocation_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    label = f"`{field}`" if field.isupper() else c.shown(field)
    return Refusal(
        at="disaggregation_decode_allocation_policy",
        related_fields=(field,),
        message=f"{c.shown('disaggregation_decode_allocation_policy')} cannot be combined with {label}: {why}. Use `early`.",
    )


@handle_pd_disaggregation.adjusts("optimistic_prefill_attempts", since="0.5.22")
def prefill_optimistically(c: Config) -> None:
    """A prefill server whose decode side allocates late has to prefill optimistically."""
    late = c.disaggregation_decode_allocation_policy == "prefill_complete"
    if late and c.disaggregation_mode == "prefill" and c.optimistic_prefill_attempts == 0:
        c.set(optimistic_prefill_attempts=1)


def receives_on_host(c: Config) -> bool:
    threshold = c.disaggregation_decode_host_receive_threshold
    return bool(threshold < 1 if c.since("0.5.22") else threshold > 0)


@handle_pd_disaggregation.refuses(
    "SPC651", "host-receive-threshold-out-of-range", raises="ValueError", since="0.5.21",
    bad="--disaggregation-mode decode --disaggregation-decode-host-receive-threshold 2",
    good="--disaggregation-mode decode --disaggregation-decode-host-receive-threshold 1",
)  # fmt: skip
def host_receive_threshold_out_of_range(c: Config) -> Refusal | None:
    """The threshold for receiving into host memory must be between 0 and 1.

    `--disaggregation-decode-host-receive-threshold` is the fraction of the KV cache in use, 0 to 1, above which a decode server
    receives into host memory.
    """
    if not 0 <= c.disaggregation_decode_host_receive_threshold <= 1:
        return Refusal(
            at="disaggregation_decode_host_receive_threshold",
            message=f"{c.shown('disaggregation_decode_host_receive_threshold')} is not a fraction of the KV cache: it must lie "
            "between 0 and 1.",
        )
    return None


@handle_pd_disaggregation.refuses(
    "SPC652", "host-receive-conflict", raises="ValueError", since="0.5.21",
    bad="sglang=0.5.23 -- --disaggregation-mode decode --disaggregation-decode-host-receive-threshold 0.5 "
    "--disaggregation-decode-retraction-backup cpu_tensor",
    good="sglang=0.5.23 -- --disaggregation-mode decode --disaggregation-decode-retraction-backup cpu_tensor",
)  # fmt: skip
def host_receive_conflict(c: Config) -> Refusal | None:
    """Receiving into host memory cannot be combined with this setting.

    It needs the host pool for retracted requests, and supports neither HiSparse nor role switching.
    """
    if not receives_on_host(c):
        return None
    if c.enable_hisparse or c.enable_pd_role_switch:
        field = "enable_hisparse" if c.enable_hisparse else "enable_pd_role_switch"
    elif c.disaggregation_decode_retraction_backup == "cpu_tensor":
        field = "disaggregation_decode_retraction_backup"
    else:
        return None
    return Refusal(
        at=field,
        related_fields=("disaggregation_decode_host_receive_threshold",),
        message=f"{c.shown(field)} cannot be combined with {c.shown('disaggregation_decode_host_receive_threshold')}, "
        "which receives into the host pool. Remove one of the two.",
        fixes=(dropping(field), dropping("disaggregation_decode_host_receive_threshold")),
    )


@handle_pd_disaggregation.adjusts("disaggregation_decode_retraction_backup", since="0.5.21")
def back_up_retracted_requests_in_host_pool(c: Config) -> None:
    """A decode server that receives into host memory keeps retracted requests there too."""
    if receives_on_host(c):
        c.set(disaggregation_decode_retraction_backup="host_pool")


def _dcp_transfer_backends(c: Config) -> tuple[str, ...]:
    if c.since("0.5.22"):
        return ("mooncake", "nixl", "mori", "ascend", "fake")
    return ("mooncake", "nixl", "fake") if c.since("0.5.19") else ("mooncake", "nixl")


@handle_pd_disaggregation.refuses(
    "SPC653", "decode-context-parallel-transfer", raises="ValueError", since="0.5.17",
    bad="sglang=0.5.20 -- --tp-size 2 --dcp-size 2 --disaggregation-mode decode --disaggregation-transfer-backend mori",
    good="--tp-size 2 --dcp-size 2 --disaggregation-mode decode",
)  # fmt: skip
def decode_context_parallel_transfer(c: Config) -> Refusal | None:
    """A decode server with context parallelism cannot receive KV caches this way.

    The pages of a sequence are spread over ranks, so the transfer backend has to lay them out anew; Mooncake and NIXL
    do. Before 0.5.21 such a server has no radix or hierarchical cache either.
    """
    if c.disaggregation_mode != "decode" or c.dcp_size <= 1:
        return None
    if c.disaggregation_transfer_backend not in _dcp_transfer_backends(c):
        field = "disaggregation_transfer_backend"
    elif c.before("0.5.21") and c.disaggregation_decode_enable_radix_cache:
        field = "disaggregation_decode_enable_radix_cache"
    elif c.before("0.5.21") and c.enable_hierarchical_cache:
        field = "enable_hierarchical_cache"
    else:
        return None
    return Refusal(
        at=field,
        related_fields=("dcp_size", "disaggregation_mode"),
        message=f"{c.shown(field)} does not work on a decode server with {c.shown('dcp_size')}, where a sequence's "
        "pages are spread over ranks. Remove it.",
        fixes=(dropping(field), setting(disaggregation_transfer_backend="mooncake"), dropping("dcp_size")),
    )


def _radix_cache_conflict(c: Config) -> tuple[str, str] | None:
    if c.enable_hisparse:
        return "enable_hisparse", "HiSparse keeps its own cache"
    backend = c.disaggregation_transfer_backend
    if c.before("0.5.14"):
        allowed = ("nixl", "mooncake") if c.since("0.5.12") else ("nixl",)
        if backend not in allowed:
            return "disaggregation_transfer_backend", f"only {' and '.join(allowed)} can transfer parts of a prompt"
    elif backend == "fake":
        return "disaggregation_transfer_backend", "the fake backend transfers nothing that could be kept"
    drafts = (None, "DSPARK") if c.since("0.5.21") else (None,)
    if c.before("0.5.23") and c.speculative_algorithm not in drafts:
        return "speculative_algorithm", "the draft's cache would be missing"
    return None


@handle_pd_disaggregation.refuses(
    "SPC654",
    "decode-radix-cache-conflict",
    raises="ValueError",
    since="0.5.11",
    bad="--disaggregation-mode decode --disaggregation-decode-enable-radix-cache --disaggregation-transfer-backend "
    "fake",
    good="--disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
)
def decode_radix_cache_conflict(c: Config) -> Refusal | None:
    """A radix cache on a decode server does not work with this setting.

    `--disaggregation-decode-enable-radix-cache` lets decode reuse the prefixes it has already received. It needs a
    transfer backend that sends the rest only, excludes HiSparse and (before 0.5.23) most speculative decoding.
    """
    if c.disaggregation_mode != "decode" or not c.disaggregation_decode_enable_radix_cache:
        return None
    conflict = _radix_cache_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at="disaggregation_decode_enable_radix_cache",
        related_fields=(field, "disaggregation_mode"),
        message=f"{c.shown('disaggregation_decode_enable_radix_cache')} cannot be combined with {c.shown(field)}: {why}. "
        "Remove it.",
        fixes=(dropping("disaggregation_decode_enable_radix_cache"), dropping(field)),
    )


@handle_pd_disaggregation.refuses(
    "SPC655", "decode-server-told-of-decode-servers", raises="AssertionError", until="0.5.10",
    bad="sglang=0.5.9 -- --disaggregation-mode decode --disaggregation-decode-tp 2",
    good="sglang=0.5.9 -- --disaggregation-mode prefill --disaggregation-decode-tp 2",
)  # fmt: skip
def decode_server_told_of_decode_servers(c: Config) -> Refusal | None:
    """These flags describe decode servers to a prefill server, and do not work on a decode server.

    `--disaggregation-decode-tp` and `--disaggregation-decode-dp` describe the other side to a prefill server.
    """
    if c.disaggregation_mode != "decode":
        return None
    for field in ("disaggregation_decode_tp", "disaggregation_decode_dp"):
        if getattr(c, field) is not None:
            return Refusal(
                at=field,
                related_fields=("disaggregation_mode",),
                message=f"{c.shown(field)} belongs to the prefill server, and this one is the decode server. Leave it "
                "out.",
            )
    return None


@handle_pd_disaggregation.adjusts("disable_radix_cache")
def keep_no_radix_cache_on_decode(c: Config) -> None:
    """A decode server receives every prompt anew, so it keeps no radix cache unless it is told to."""
    if c.disaggregation_mode == "decode":
        c.set(disable_radix_cache=not (c.since("0.5.11") and c.disaggregation_decode_enable_radix_cache))


@handle_pd_disaggregation.refuses(
    "SPC656", "several-decode-ranks-without-round-robin", raises="AssertionError", until="0.5.8",
    bad="sglang=0.5.7 -- --tp-size 2 --dp-size 2 --disaggregation-mode decode",
    good="sglang=0.5.7 -- --tp-size 2 --dp-size 2 --disaggregation-mode decode --prefill-round-robin-balance",
)  # fmt: skip
def several_decode_ranks_without_round_robin(c: Config) -> Refusal | None:
    """A decode server with several data-parallel ranks needs a prefill server that balances round robin.

    It finds out from the room number which prefill rank a request came from, which works only when prefill deals
    requests out in turn.
    """
    if c.disaggregation_mode == "decode" and c.dp_size > 1 and not c.prefill_round_robin_balance:
        return Refusal(
            at="dp_size",
            related_fields=("disaggregation_mode",),
            message=f"{c.shown('dp_size')} on a decode server needs `--prefill-round-robin-balance` (and a prefill "
            "server with `--load-balance-method round_robin`). Add it.",
            fixes=(setting(prefill_round_robin_balance=True), dropping("dp_size")),
        )
    return None


@handle_pd_disaggregation.adjusts("mamba_scheduler_strategy", since="0.5.11", until="0.5.14")
def schedule_mamba_without_buffer(c: Config) -> None:
    """A decode server without a radix cache has no use for Mamba's extra buffer."""
    if c.disaggregation_mode != "decode" or not c.disable_radix_cache:
        return
    if c.mamba_scheduler_strategy in ("extra_buffer", "extra_buffer_lazy"):
        c.set(mamba_scheduler_strategy="no_buffer")


@handle_pd_disaggregation.adjusts("disaggregation_decode_extra_slots", since="0.5.14")
def reserve_slots_in_transfer(c: Config) -> None:
    """A decode server with small batches reserves slots for requests whose caches are still being transferred."""
    if c.disaggregation_mode != "decode" or c.disaggregation_decode_extra_slots is not None:
        return
    slots = 0
    if c.max_running_requests is not None:
        per_worker = c.max_running_requests // max(1, data_parallel_ranks(c))
        per_worker = max(1, per_worker) if c.since("0.5.23") else per_worker
        slots = per_worker * 2 if per_worker <= 32 else 0
    c.set(disaggregation_decode_extra_slots=slots)


@handle_pd_disaggregation.adjusts(
    "disaggregation_decode_tp", "disaggregation_decode_dp", "disaggregation_prefill_pp", until="0.5.10"
)
def assume_decode_servers_alike(c: Config) -> None:
    """A prefill server assumes that its decode servers use the same parallel layout."""
    if c.disaggregation_mode != "prefill":
        return
    if c.disaggregation_decode_tp is None:
        c.set(disaggregation_decode_tp=c.tp_size)
    if c.disaggregation_decode_dp is None:
        c.set(disaggregation_decode_dp=c.dp_size)
    c.set(disaggregation_prefill_pp=c.pp_size)


@handle_pd_disaggregation.refuses(
    "SPC657", "decode-tp-size-neither-multiple-nor-divisor", raises="AssertionError", until="0.5.10",
    sglang="server_args.py:validate_disagg_tp_size",
    bad="sglang=0.5.9 -- --tp-size 4 --disaggregation-mode prefill --disaggregation-decode-tp 3",
    good="sglang=0.5.9 -- --tp-size 4 --disaggregation-mode prefill --disaggregation-decode-tp 2",
)  # fmt: skip
def decode_tp_size_neither_multiple_nor_divisor(c: Config) -> Refusal | None:
    """The TP sizes of prefill and decode have to divide one another.

    KV heads are regrouped in transfer, which works when one size is a multiple of the other.
    """
    if c.disaggregation_mode != "prefill":
        return None
    sizes = sorted((c.tp_size, c.disaggregation_decode_tp))
    if sizes[1] % sizes[0] == 0:
        return None
    return Refusal(
        at="disaggregation_decode_tp",
        related_fields=("tp_size",),
        message=f"{c.shown('disaggregation_decode_tp')} and {c.shown('tp_size')} do not divide one another, so KV "
        "heads cannot be regrouped in transfer.",
        fixes=(setting(disaggregation_decode_tp=c.tp_size),),
    )


@handle_pd_disaggregation.refuses(
    "SPC658", "fake-transfer-on-prefill-server", raises="AssertionError", since="0.5.10",
    bad="--disaggregation-mode prefill --disaggregation-transfer-backend fake",
    good="--disaggregation-mode decode --disaggregation-transfer-backend fake",
)  # fmt: skip
def fake_transfer_on_prefill_server(c: Config) -> Refusal | None:
    """The fake transfer backend is for decode servers.

    It lets a decode server be measured alone, as if caches had arrived. A prefill server has to send them somewhere.
    """
    if c.disaggregation_mode == "prefill" and c.disaggregation_transfer_backend == "fake":
        return Refusal(
            at="disaggregation_transfer_backend",
            related_fields=("disaggregation_mode",),
            message=f"{c.shown('disaggregation_transfer_backend')} only stands in for received caches on a decode "
            "server, and this is a prefill server. Use `mooncake` or `nixl`.",
            fixes=(dropping("disaggregation_transfer_backend"), setting(disaggregation_transfer_backend="nixl")),
        )
    return None


@handle_pd_disaggregation.refuses(
    "SPC659", "bootstrap-port-beside-rust-server", raises="ValueError", since="0.5.17",
    sglang="pd_disaggregation_hook.py:_alias_bootstrap_port_to_api_port",
    bad="SGLANG_RUST_SERVER=1 -- --disaggregation-mode prefill --disaggregation-bootstrap-port 9000",
    good="SGLANG_RUST_SERVER=1 -- --disaggregation-mode prefill",
)  # fmt: skip
def bootstrap_port_beside_rust_server(c: Config) -> Refusal | None:
    """The Rust server answers bootstrap requests on its own port.

    With SGLANG_RUST_SERVER the registry that decode servers ask lives on `--port`, so `--disaggregation-bootstrap-port`
    cannot name another one.
    """
    if not _rust_bootstrap(c) or c.disaggregation_bootstrap_port in (BOOTSTRAP_PORT, c.port):
        return None
    return Refusal(
        at="disaggregation_bootstrap_port",
        related_fields=("port", "SGLANG_RUST_SERVER"),
        message=f"{c.shown('disaggregation_bootstrap_port')} is another port than the Rust server's ({c.port}), which "
        "answers bootstrap requests itself. Remove it.",
        fixes=(dropping("disaggregation_bootstrap_port"), dropping_env("SGLANG_RUST_SERVER")),
    )


BOOTSTRAP_PORT = 8998
"""The default of `--disaggregation-bootstrap-port`."""


def _rust_bootstrap(c: Config) -> bool:
    """Whether the Rust server stands in for the transfer backend's bootstrap server, as for all built-in ones."""
    return bool(c.disaggregation_mode == "prefill" and c.env.flag("SGLANG_RUST_SERVER"))


@handle_pd_disaggregation.adjusts("disaggregation_bootstrap_port", since="0.5.17")
def answer_bootstrap_on_api_port(c: Config) -> None:
    """The Rust server answers bootstrap requests on its own port."""
    if not _rust_bootstrap(c):
        return
    if c.since("0.5.23") and c.disaggregation_transfer_backend == "fake":
        return
    c.set(disaggregation_bootstrap_port=c.port)


@handle_pd_disaggregation.adjusts("disable_cuda_graph", until="0.5.16")
def prefill_server_without_decode_graphs(c: Config) -> None:
    """A prefill server decodes nothing, so it captures no decode graphs."""
    if c.disaggregation_mode != "prefill":
        return
    piecewise = c.enable_piecewise_cuda_graph if c.before("0.5.10") else not c.disable_piecewise_cuda_graph
    if c.since("0.5.13") or c.before("0.5.6") or not piecewise:
        c.set(disable_cuda_graph=True)


@handle_pd_disaggregation.refuses(
    "SPC660", "staging-buffer-on-unfit-backend", raises="ValueError", since="0.5.10",
    bad="SGLANG_DISAGG_STAGING_BUFFER=1 -- --disaggregation-mode decode --disaggregation-transfer-backend mori",
    good="SGLANG_DISAGG_STAGING_BUFFER=1 -- --disaggregation-mode decode --disaggregation-transfer-backend nixl",
)  # fmt: skip
def staging_buffer_on_unfit_backend(c: Config) -> Refusal | None:
    """The staging buffer belongs to Mooncake and NIXL.

    SGLANG_DISAGG_STAGING_BUFFER gathers the pieces of a KV cache before they are sent; the other transfer backends do
    not read it.
    """
    backends = ("mooncake", "nixl") if c.since("0.5.12") else ("mooncake",)
    if c.disaggregation_mode not in ("prefill", "decode") or not c.env.flag("SGLANG_DISAGG_STAGING_BUFFER"):
        return None
    if c.disaggregation_transfer_backend in backends:
        return None
    return Refusal(
        at="disaggregation_transfer_backend",
        related_fields=("SGLANG_DISAGG_STAGING_BUFFER",),
        message=f"{c.shown('disaggregation_transfer_backend')} has no staging buffer, which "
        "`SGLANG_DISAGG_STAGING_BUFFER` asks for. Unset it or use `mooncake`.",
        fixes=(dropping_env("SGLANG_DISAGG_STAGING_BUFFER"), setting(disaggregation_transfer_backend="mooncake")),
    )


def _role_switch_conflict(c: Config) -> str | None:
    """The field whose state is not rebuilt when a server changes its role."""
    if c.before("0.5.23") and (attention_dp(c) or c.dp_size > 1):
        return "attn_dp_size" if c.since("0.5.22") and c.attn_dp_size > 1 else "dp_size"
    for field, wrong in (
        ("ep_size", c.ep_size > 1),
        ("moe_a2a_backend", c.moe_a2a_backend != "none"),
        ("pp_size", c.pp_size > 1),
        ("dcp_size", c.dcp_size > 1),
        ("speculative_algorithm", c.speculative_algorithm is not None),
        (
            "enable_dp_attention_local_control_broadcast",
            c.since("0.5.23") and attention_dp(c) and c.enable_dp_attention_local_control_broadcast,
        ),
    ):
        if wrong:
            return field
    return None


@handle_pd_disaggregation.refuses(
    "SPC661", "role-switch-conflict", raises="ValueError", since="0.5.21",
    bad="--disaggregation-mode decode --enable-pd-role-switch --pp-size 2",
    good="--disaggregation-mode decode --enable-pd-role-switch",
)  # fmt: skip
def role_switch_conflict(c: Config) -> Refusal | None:
    """A server that may change its role between prefill and decode excludes this.

    What expert parallelism, pipelines, decode context parallelism and speculative decoding set up differs between the
    roles and is not rebuilt on a switch.
    """
    if c.disaggregation_mode not in ("prefill", "decode") or not c.enable_pd_role_switch:
        return None
    field = _role_switch_conflict(c)
    if field is None:
        return None
    return Refusal(
        at="enable_pd_role_switch",
        related_fields=(field,),
        message=f"{c.shown('enable_pd_role_switch')} does not rebuild what {c.shown(field)} sets up for a role. Remove "
        "one of the two.",
        fixes=(dropping("enable_pd_role_switch"), dropping(field)),
    )


# --- handle_encoder_disaggregation ------------------------------------------------------------------------------------

handle_encoder_disaggregation = Handler("pd_disaggregation_hook.py:handle_encoder_disaggregation", since="0.5.7")

LANGUAGE_ONLY_ARCHITECTURES = {
    "MuseGlimmerForConditionalGeneration": "", "Cosmos3ForConditionalGeneration": "0.5.20",
    "Cosmos3EdgeForConditionalGeneration": "0.5.20", "DeepseekV4ForCausalLM": "0.5.22",
}  # fmt: skip
ENCODER_ARCHITECTURES = {
    "Qwen2VLForConditionalGeneration": "",
    "Qwen3VLForConditionalGeneration": "",
    "Qwen2_5_VLForConditionalGeneration": "",
    "Qwen3VLMoeForConditionalGeneration": "",
    "Qwen3OmniMoeForConditionalGeneration": "",
    "Qwen2AudioForConditionalGeneration": "",
    "Qwen2_5OmniForConditionalGeneration": "",
    "Qwen3_5ForConditionalGeneration": "0.5.11",
    "Qwen3_5MoeForConditionalGeneration": "0.5.11",
    "KimiVLForConditionalGeneration": "0.5.11",
    "KimiK25ForConditionalGeneration": "0.5.11",
    "InternS2PreviewForConditionalGeneration": "0.5.12",
    "MiMoV2ForCausalLM": "0.5.13",
    "KimiK3ForConditionalGeneration": "0.5.17",
    "Dots3NoteForCausalLM": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.23",
    "MuseSparkForConditionalGeneration": "0.5.23",
}
"""Models whose encoder may run on its own server, each from the release named."""


def _supports(c: Config, table: dict[str, str], architecture: str) -> bool:
    since = table.get(architecture)
    return since is not None and (not since or c.since(since))


@handle_encoder_disaggregation.refuses(
    "SPC670",
    "language-model-only-conflict",
    raises="ValueError",
    since="0.5.18",
    sglang="model_hook.py:handle_language_model_only",
    bad="--language-model-only",
    good="--tp-size 1",
)
def language_model_only_conflict(c: Config) -> Refusal | None:
    """The vision part of this model cannot be left out this way.

    `--language-model-only` drops the encoders of a few models (DeepSeek-V4.1, Cosmos3, Muse Glimmer) and excludes the
    flags that place encoders elsewhere.
    """
    if not c.language_model_only:
        return None
    for other in (
        "encoder_only",
        "language_only",
        "enable_prefix_mm_cache",
        "enable_broadcast_mm_inputs_process",
        "mm_enable_dp_encoder",
    ):
        if getattr(c, other):
            field, why = other, "it places encoders that would not be there"
            break
    else:
        if c.disaggregation_mode != "null" and not (c.since("0.5.22") and c.model.model_type == "deepseek_v41"):
            field, why = "disaggregation_mode", "it does not run on separate prefill and decode servers"
        elif not any(_supports(c, LANGUAGE_ONLY_ARCHITECTURES, a) for a in c.model.architectures):
            field, why = "model_path", "this model cannot be served without its encoder that way"
        else:
            return None
    return Refusal(
        at="language_model_only",
        related_fields=(field,),
        message=f"{c.shown('language_model_only')} cannot be used with {c.shown(field)}: {why}. Remove it.",
        fixes=(dropping("language_model_only"), dropping(field)),
    )


@handle_encoder_disaggregation.refuses(
    "SPC671", "prefix-image-cache-without-encoder-server", raises="ValueError",
    bad="--enable-prefix-mm-cache", good="--tp-size 1",
)  # fmt: skip
def prefix_image_cache_without_encoder_server(c: Config) -> Refusal | None:
    """The prefix cache for images belongs to an encoder server.

    `--enable-prefix-mm-cache` keeps encoded images on a server started with `--encoder-only`.
    """
    if c.enable_prefix_mm_cache and not c.encoder_only:
        return Refusal(
            at="enable_prefix_mm_cache",
            related_fields=("encoder_only",),
            message=f"{c.shown('enable_prefix_mm_cache')} keeps images on an encoder server, which this is not. Leave "
            "it out or add `--encoder-only`.",
            fixes=(dropping("enable_prefix_mm_cache"), setting(encoder_only=True)),
        )
    return None


@handle_encoder_disaggregation.refuses(
    "SPC672", "encoder-server-with-another-role", raises="ValueError",
    bad="--encoder-only --language-only", good="--tp-size 1",
)  # fmt: skip
def encoder_server_with_another_role(c: Config) -> Refusal | None:
    """An encoder server has no other role.

    `--encoder-only` serves the encoder alone: neither the language model (`--language-only`) nor prefill or decode.
    """
    other = "language_only" if c.language_only else "disaggregation_mode"
    if c.encoder_only and (c.language_only or c.disaggregation_mode != "null"):
        return Refusal(
            at=other,
            related_fields=("encoder_only",),
            message=f"{c.shown('encoder_only')} and {c.shown(other)} are two roles, and a server has one. Keep one of "
            "them.",
            fixes=(dropping(other), dropping("encoder_only")),
        )
    return None


@handle_encoder_disaggregation.refuses(
    "SPC673", "language-server-without-encoders", raises="ValueError", until="0.5.13",
    bad="sglang=0.5.12 -- --language-only", good="sglang=0.5.12 -- --tp-size 1",
)  # fmt: skip
def language_server_without_encoders(c: Config) -> Refusal | None:
    """A server of the language model alone needs the addresses of its encoders.

    With `--language-only` images are encoded elsewhere; `--encoder-urls` says where. From 0.5.13 on encoders may
    register themselves.
    """
    if c.language_only and not c.encoder_urls:
        return Refusal(
            at="language_only",
            related_fields=("encoder_urls",),
            message=f"{c.shown('language_only')} needs `--encoder-urls` to know who encodes images. Add it or leave "
            "the flag out.",
        )
    return None


def _infiniband_problem(text: str) -> str | None:
    """What is wrong with InfiniBand devices as written, before the machine's own are looked at."""
    text = text.strip()
    if not text:
        return "it names none"
    if not text.startswith("{") or text.endswith(".json"):
        return None
    try:
        mapping = json.loads(text)
    except ValueError:
        return "it begins like JSON but is not valid JSON"
    if not mapping:
        return "it maps no GPU"
    if any(not number.isdigit() or not isinstance(devices, str) for number, devices in mapping.items()):
        return "a mapping goes from GPU numbers to device names in one text"
    return None


@handle_encoder_disaggregation.refuses(
    "SPC676",
    "unreadable-infiniband-devices",
    raises="ValueError",
    since="0.5.13",
    sglang="mooncake_transfer_engine.py:parse_ib_device_config",
    bad=(
        """--disaggregation-mode prefill --disaggregation-ib-device '{"gpu0": "mlx5_0"}'""",
        """--disaggregation-mode prefill --disaggregation-ib-device '{0: "mlx5_0"}'""",
    ),
    good="--disaggregation-mode prefill",
)
def unreadable_infiniband_devices(c: Config) -> Refusal | None:
    """The InfiniBand devices cannot be read.

    Mooncake accepts device names separated by commas for all GPUs, a file ending in `.json`, or an inline JSON object from GPU numbers
    to such names: `{"0": "mlx5_0,mlx5_1"}`. Whether the machine has these devices is not checked.
    """
    for field, checked in (
        ("mooncake_ib_device", c.elastic_ep_backend == "mooncake"),
        ("disaggregation_ib_device", _checks_infiniband(c)),
    ):
        value = c.typed(field)
        problem = _infiniband_problem(str(value)) if checked and value is not None else None
        if problem is not None:
            return Refusal(
                at=field,
                message=f"`{c.flag(field)}` cannot be read: {problem}.",
            )
    return None


def _checks_infiniband(c: Config) -> bool:
    transfers = c.disaggregation_transfer_backend == "mooncake" and c.disaggregation_mode in ("prefill", "decode")
    return bool(transfers or c.encoder_transfer_backend == "mooncake")


@handle_encoder_disaggregation.adjusts("disaggregation_ib_device", since="0.5.9")
def check_infiniband_devices(c: Config) -> None:
    """Mooncake's InfiniBand devices are checked against those of the machine."""
    if _checks_infiniband(c) and c.disaggregation_ib_device is not None:
        raise NotKnown("InfiniBand devices", "they are listed in /sys/class/infiniband of the machine")


@handle_encoder_disaggregation.adjusts("encoder_transfer_backend", since="0.5.17")
def choose_encoder_transfer(c: Config) -> None:
    """Encoded images go to the scheduler; Kimi-K3 over several GPUs needs them at the tokenizer."""
    if c.encoder_transfer_backend != "auto":
        return
    at_tokenizer = c.tp_size > 1 and c.model.architecture == "KimiK3ForConditionalGeneration"
    c.set(encoder_transfer_backend="zmq_to_tokenizer" if at_tokenizer else "zmq_to_scheduler")


@handle_encoder_disaggregation.refuses(
    "SPC674",
    "encoder-server-for-unfit-model",
    raises="ValueError",
    since="0.5.10",
    bad="--encoder-only",
    good="--tp-size 1",
)
def encoder_server_for_unfit_model(c: Config) -> Refusal | None:
    """The encoder of this model cannot run on a server of its own.

    `--encoder-only` and `--language-only` work with the multimodal models that SGLang can take apart (Qwen-VL and Omni,
    Kimi-VL, MiMo-V2 and a few more).
    """
    if not (c.encoder_only or c.language_only) or _supports(c, ENCODER_ARCHITECTURES, c.model.architecture):
        return None
    field = "encoder_only" if c.encoder_only else "language_only"
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} does not work with {c.model.architecture}, whose encoder cannot be taken apart. "
        "Remove it.",
    )


@handle_encoder_disaggregation.refuses(
    "SPC675",
    "adaptive-encoder-dispatch-without-encoder",
    raises="ValueError",
    since="0.5.23",
    bad="--language-only --enable-adaptive-dispatch-to-encoder --json-model-override-args "
    """'{"architectures": ["MuseSparkForConditionalGeneration"]}'""",
    good="--tp-size 1",
)
def adaptive_encoder_dispatch_without_encoder(c: Config) -> Refusal | None:
    """Muse Spark's language server has no encoder to fall back on.

    `--enable-adaptive-dispatch-to-encoder` sends images to encoder servers or encodes them here, whichever is faster; a
    Muse Spark server started with `--language-only` loads no encoder.
    """
    if (
        c.language_only
        and c.enable_adaptive_dispatch_to_encoder
        and c.model.architecture == "MuseSparkForConditionalGeneration"
    ):
        return Refusal(
            at="enable_adaptive_dispatch_to_encoder",
            related_fields=("language_only",),
            message=f"{c.shown('enable_adaptive_dispatch_to_encoder')} needs an encoder here, but "
            f"{c.shown('language_only')} loads none for this model. Remove one of the two.",
            fixes=(dropping("enable_adaptive_dispatch_to_encoder"), dropping("language_only")),
        )
    return None
