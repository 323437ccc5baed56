"""What servers of prefill and decode refuse when they set up their transfer.

Follows disaggregation/prefill.py (PrefillBootstrapQueue), disaggregation/decode.py (DecodePreallocQueue), and the managers of
disaggregation/mooncake/conn.py and disaggregation/nixl/conn.py.

Left out: what the two servers have to agree on (page sizes, cache types, layouts), which no single launch tells; devices, networks
and storage at run time; environment variables of a single transfer engine.
"""

from __future__ import annotations

from spec_lsp.resolution.disaggregation import receives_on_host
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting, setting_env
from spec_lsp.resolution.kv_cache import beside_full_attention

STAGING = "SGLANG_DISAGG_STAGING_BUFFER"

disaggregation = Handler(
    "disaggregation/prefill.py:__init__", since="0.5.11",
    when=lambda c: c.disaggregation_mode in ("prefill", "decode") and c.env.flag(STAGING),
)  # fmt: skip


@disaggregation.refuses(
    "SPC919", "staging-buffer-conflict", raises="RuntimeError", late=True,
    bad="model=deepseek-v3 SGLANG_DISAGG_STAGING_BUFFER=1 -- --tp-size 8 --disaggregation-mode prefill",
    good="SGLANG_DISAGG_STAGING_BUFFER=1 -- --disaggregation-mode prefill",
)  # fmt: skip
def staging_buffer_conflict(c: Config) -> Refusal | None:
    """The staging buffer is for models with ordinary attention heads.

    SGLANG_DISAGG_STAGING_BUFFER gathers scattered heads before they are sent. MLA has nothing to gather, and SGLang
    stops when it sets up the transfer. From 0.5.19 on a prefill server also needs chunks of whole pages, and pipeline stages need
    Mooncake.
    """
    if c.model.uses_mla:
        at, why = "model_path", "MLA has no heads to gather"
    elif c.before("0.5.19") or c.disaggregation_mode != "prefill":
        return None
    elif (c.chunked_prefill_size or 8192) <= 0 or (c.chunked_prefill_size or 8192) % (c.page_size or 1):
        at, why = "chunked_prefill_size", "it sends chunks of whole pages"
    elif c.pp_size > 1 and c.disaggregation_transfer_backend != "mooncake":
        at, why = "disaggregation_transfer_backend", "only Mooncake gathers in pipeline stages"
    else:
        return None
    fixes = (setting(disaggregation_transfer_backend="mooncake"),) if at == "disaggregation_transfer_backend" else ()
    return Refusal(
        at=STAGING,
        related_fields=(at, "disaggregation_mode"),
        message=f"`{STAGING}` is refused with {c.shown(at)} when the transfer is set up: {why}.",
        fixes=(dropping_env(STAGING), *fixes),
    )


transfer_engines = Handler(
    "disaggregation/mooncake/conn.py:__init__", when=lambda c: c.disaggregation_mode in ("prefill", "decode")
)

POOL, QUEUE = "SGLANG_DISAGGREGATION_THREAD_POOL_SIZE", "SGLANG_DISAGGREGATION_QUEUE_SIZE"


@transfer_engines.refuses(
    "SPC983", "fewer-transfer-threads-than-queues", raises="AssertionError", late=True,
    bad=f"{POOL}=2 -- --disaggregation-mode prefill --disaggregation-transfer-backend mooncake",
    good=f"{POOL}=8 -- --disaggregation-mode prefill --disaggregation-transfer-backend mooncake",
)  # fmt: skip
def fewer_transfer_threads_than_queues(c: Config) -> Refusal | None:
    """Mooncake's prefill server has fewer transfer threads than queues.

    `SGLANG_DISAGGREGATION_QUEUE_SIZE` is the number of queues (4 by default), and each takes at least one of the
    `SGLANG_DISAGGREGATION_THREAD_POOL_SIZE` threads.
    """
    if c.disaggregation_mode != "prefill" or c.disaggregation_transfer_backend != "mooncake" or not c.env.is_set(POOL):
        return None
    threads, queues = c.env.number(POOL, 0), c.env.number(QUEUE, 4)
    if threads >= queues:
        return None
    return Refusal(
        at=POOL,
        related_fields=(QUEUE, "disaggregation_transfer_backend"),
        message=f"`{POOL}={threads}` gives Mooncake fewer threads than its {queues} queues, so the server stops when it sets up the "
        "transfer.",
        fixes=(setting_env(**{POOL: str(queues)}), dropping_env(POOL)),
    )


@transfer_engines.refuses(
    "SPC984", "port-in-nixl-device", raises="ValueError", late=True, since="0.5.23",
    sglang="disaggregation/nixl/conn.py:_resolve_ucx_device_list",
    bad="--disaggregation-mode prefill --disaggregation-transfer-backend nixl --disaggregation-ib-device mlx5_0:1",
    good="--disaggregation-mode prefill --disaggregation-transfer-backend nixl --disaggregation-ib-device mlx5_0",
)  # fmt: skip
def port_in_nixl_device(c: Config) -> Refusal | None:
    """NIXL expects the names of InfiniBand devices without ports.

    `mlx5_0:1` is how UCX writes a port; NIXL adds it by itself.
    """
    devices = c.disaggregation_ib_device
    if c.disaggregation_transfer_backend != "nixl" or not isinstance(devices, str) or devices.lstrip().startswith("{"):
        return None
    if devices.endswith(".json") or (c.env.text("SGLANG_DISAGGREGATION_NIXL_BACKEND", "UCX") or "UCX") != "UCX":
        return None
    names = [name.strip() for name in devices.split(",")]
    if not any(":" in name for name in names):
        return None
    return Refusal(
        at="disaggregation_ib_device",
        related_fields=("disaggregation_transfer_backend",),
        message=f"{c.shown('disaggregation_ib_device')} names a port, which NIXL adds by itself, so the server stops when it sets up the "
        "transfer.",
        fixes=(setting(disaggregation_ib_device=",".join(name.partition(":")[0] for name in names)),),
    )


ALLOCATION = "disaggregation_decode_allocation_policy"


@transfer_engines.refuses(
    "SPC1081", "late-decode-allocation-of-other-cache", raises="ValueError", late=True, since="0.5.22",
    sglang="disaggregation/common/conn.py:__init__",
    bad=f"model=qwen3-next-80b -- --disaggregation-mode decode --{ALLOCATION.replace('_', '-')} prefill_complete",
    good=f"--disaggregation-mode decode --{ALLOCATION.replace('_', '-')} prefill_complete",
)  # fmt: skip
def late_decode_allocation_of_other_cache(c: Config) -> Refusal | None:
    """Allocating on the decode server only after prefill works for caches of tokens alone.

    `--disaggregation-decode-allocation-policy prefill_complete` hands over pages of full attention and the index of DeepSeek sparse
    attention. Recurrent states (Qwen3-Next, Nemotron-H), sliding windows (gpt-oss, Gemma 4, DeepSeek V4), MiniMax-M3's index and the scales
    of an MXFP8 cache cannot wait on the prefill server.
    """
    if c.disaggregation_decode_allocation_policy != "prefill_complete":
        return None
    beside = beside_full_attention(c)
    if beside is None and c.kv_cache_dtype != "mxfp8":
        return None
    what = f"its {beside}" if beside is not None else "the scales of an MXFP8 cache"
    return Refusal(
        at=ALLOCATION,
        related_fields=("model_path", "kv_cache_dtype"),
        message=f"{c.shown(ALLOCATION)} is refused for {c.model.architecture} when the transfer is set up: {what} cannot wait on the "
        "prefill server. Use `early`.",
        fixes=(setting(**{ALLOCATION: "early"}), dropping(ALLOCATION)),
    )


THRESHOLD = "disaggregation_decode_host_receive_threshold"
ENGINES = ("mooncake", "nixl", "ascend", "fake", "mori", "mooncake_tcp")
"""The transfer backends of SGLang itself, none of which can send into host memory."""


@transfer_engines.refuses(
    "SPC1082", "host-receive-without-engine", raises="ValueError", late=True, since="0.5.21",
    sglang="disaggregation/decode.py:_init_kv_manager",
    bad="--disaggregation-mode decode --disaggregation-decode-host-receive-threshold 0.5",
    good="--disaggregation-mode decode --disaggregation-decode-host-receive-threshold 1",
)  # fmt: skip
def host_receive_without_engine(c: Config) -> Refusal | None:
    """No transfer backend of SGLang's own sends KV pages into host memory.

    `--disaggregation-decode-host-receive-threshold` says from which use of the GPU's cache on a decode server receives into host memory.
    Only backends that a plugin brings can do that; with Mooncake, NIXL, Mori and the others the server stops.
    """
    if c.disaggregation_mode != "decode" or not receives_on_host(c) or c.disaggregation_transfer_backend not in ENGINES:
        return None
    return Refusal(
        at=THRESHOLD,
        related_fields=("disaggregation_transfer_backend",),
        message=f"{c.shown(THRESHOLD)} is refused when the transfer is set up: {c.shown('disaggregation_transfer_backend')} cannot send "
        "into host memory. Remove it.",
        fixes=(dropping(THRESHOLD),),
    )


RECEIVER = "SGLANG_ENCODER_MM_RECEIVER_MODE"
encoder_receivers = Handler(
    "disaggregation/encoder/receiver.py:_validate_transport_mode", since="0.5.19", when=lambda c: bool(c.encoder_urls)
)


@encoder_receivers.refuses(
    "SPC1023", "encoder-address-of-other-protocol", raises="ValueError", late=True,
    bad=(
        "--model-path Qwen/Qwen2.5-VL-7B-Instruct --language-only --encoder-urls grpc://10.0.0.1:30000",
        f"{RECEIVER}=grpc -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --language-only --encoder-urls http://10.0.0.1:30000",
    ),
    good="--model-path Qwen/Qwen2.5-VL-7B-Instruct --language-only --encoder-urls http://10.0.0.1:30000",
)  # fmt: skip
def encoder_address_of_other_protocol(c: Config) -> Refusal | None:
    """The encoder's address is of another protocol than the server speaks.

    It speaks HTTP, or gRPC with `SGLANG_ENCODER_MM_RECEIVER_MODE=grpc`, without TLS, and then not with Mooncake.
    """
    mode = c.env.text(RECEIVER, "http") or "http"
    urls = [url for url in c.encoder_urls if isinstance(url, str)]
    wrong = next((url for url in urls if url.startswith({"grpc": "http://", "http": "grpc://"}.get(mode, "://"))), None)
    if mode == "grpc" and wrong is None:
        wrong = next((url for url in urls if url.startswith("grpcs://")), None)
    if wrong is not None:
        at, why, fixes = "encoder_urls", f"`{wrong}` is no address for {mode}", (dropping_env(RECEIVER),)
    elif mode == "grpc" and c.encoder_transfer_backend == "mooncake":
        at, why, fixes = (
            "encoder_transfer_backend",
            "Mooncake needs encoders that speak HTTP",
            (dropping_env(RECEIVER),),
        )
    else:
        return None
    return Refusal(
        at=at,
        related_fields=(RECEIVER,),
        message=f"{c.shown(at)} is refused when the server connects to its encoders: {why}.",
        fixes=(*fixes, setting_env(**{RECEIVER: "grpc"})),
    )
