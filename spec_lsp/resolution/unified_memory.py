"""One memory pool for the KV cache and recurrent states (`--enable-unified-memory`), page-major in layout.

Follows arg_groups/kv_cache_hook.py: handle_page_major_kv_layout and handle_unified_memory_pool.
"""

from __future__ import annotations

from spec_lsp.records import NamedTuple
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.cuda_graph import DECODE, DISABLED, FULL, PIECEWISE, PREFILL, backend_of, disable
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    one_of,
    setting,
)
from spec_lsp.resolution.kv_cache import separate_windows

UNIFIED = "enable_unified_memory"
LAYOUT = "enable_page_major_kv_layout"


class Conflict(NamedTuple):
    """A setting that the pool excludes: the field to look at, why, and the fix."""

    at: str
    why: str
    fix: Change


def _refusal(c: Config, conflict: Conflict | None, by: str = UNIFIED) -> Refusal | None:
    if conflict is None:
        return None
    shown = c.shown(conflict.at) if c.known(conflict.at) else conflict.at
    return Refusal(
        at=conflict.at if c.given(conflict.at) or c.env.is_set(conflict.at) else by,
        related_fields=(by, conflict.at),
        message=f"{c.shown(by)} cannot be combined with {shown}: {conflict.why}. SGLang stops. Change one of the two.",
        fixes=(conflict.fix, dropping(UNIFIED, LAYOUT)),
    )


def _dropping(field: str, why: str) -> Conflict:
    return Conflict(field, why, dropping(field))


# --- handle_page_major_kv_layout --------------------------------------------------------------------------------------

handle_page_major_kv_layout = Handler(
    "kv_cache_hook.py:handle_page_major_kv_layout",
    when=lambda c: bool(c.enable_unified_memory or c.enable_page_major_kv_layout),
    since="0.5.15",
    earlier=(Earlier("0.5.19", "server_args.py:_handle_page_major_kv_layout"),),
)


@handle_page_major_kv_layout.adjusts("enable_page_major_kv_layout")
def lay_out_unified_memory_by_pages(c: Config) -> None:
    """The unified memory pool is laid out page by page."""
    if c.enable_unified_memory:
        c.set(enable_page_major_kv_layout=True)


@handle_page_major_kv_layout.refuses(
    "SPC384", "page-major-layout-without-unified-memory", raises="AssertionError", since="0.5.19",
    bad="--enable-page-major-kv-layout", good="--enable-unified-memory --enable-page-major-kv-layout",
)  # fmt: skip
def page_major_layout_without_unified_memory(c: Config) -> Refusal | None:
    """The page-major KV layout exists only within the unified memory pool.

    A KV cache that is laid out page by page on its own was taken out of SGLang for the time being.
    `--enable-unified-memory` includes the layout.
    """
    if c.enable_unified_memory:
        return None
    return Refusal(
        at=LAYOUT,
        related_fields=(UNIFIED,),
        message=f"{c.shown(LAYOUT)} works only within the unified memory pool in this release, and SGLang stops. Remove "
        "it, or enable unified memory.",
        fixes=(dropping(LAYOUT), setting(enable_unified_memory=True)),
    )


@handle_page_major_kv_layout.refuses(
    "SPC385", "unified-memory-with-asymmetric-kv", raises="AssertionError", since="0.5.19", until="0.5.23",
)  # fmt: skip
def unified_memory_with_asymmetric_kv(c: Config) -> Refusal | None:
    """The unified memory pool of this release holds keys and values of one width.

    This model's values are narrower than its keys (MiMo V2, for one). SGLang 0.5.23 can hold such models.
    """
    if c.model.uses_mla or not c.model.has_asymmetric_kv:
        return None
    return Refusal(
        at=UNIFIED if c.given(UNIFIED) else LAYOUT,
        message=f"{c.shown(UNIFIED)} needs keys and values of one width, which {c.model.architecture} does not have, "
        "and SGLang stops. Remove it.",
        fixes=(dropping(UNIFIED, LAYOUT),),
    )


def _page_major_backends(c: Config) -> tuple[str, ...]:
    """The attention backends that read the page-major layout."""
    if c.before("0.5.17"):
        return ("triton",)
    latent = ("triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla")
    if c.before("0.5.19"):
        return (*latent, "tokenspeed_mla") if c.enable_unified_memory and c.model.uses_mla else ("triton",)
    if c.model.uses_mla:
        return (*latent, "flashmla") if c.since("0.5.23") else (*latent, "tokenspeed_mla", "flashmla")
    if c.since("0.5.23") and c.model.has_asymmetric_kv:
        return ("triton", "fa3", "fa4")
    return ("triton", "fa3", "fa4", "flashinfer", "trtllm_mha")


def _unfit_field(c: Config, allowed: tuple[str, ...]) -> str | None:
    """The field that selects an attention backend outside of `allowed`."""
    for phase, backend in zip(("prefill", "decode"), backends_of(c), strict=True):
        if backend is not None and backend not in allowed:
            return backend_field(c, phase)
    return None


def _backend_refusal(c: Config, by: str, allowed: tuple[str, ...], why: str) -> Refusal | None:
    at = _unfit_field(c, allowed)
    if at is None:
        return None
    return Refusal(
        at=at if c.given(at) else by,
        related_fields=(by, at),
        message=f"{c.shown(by)} cannot be combined with {c.shown(at)}: {why}. SGLang stops. Use {one_of(allowed)}.",
        fixes=(*(setting(**{at: name}) for name in allowed), dropping(UNIFIED, LAYOUT)),
    )


@handle_page_major_kv_layout.refuses(
    "SPC386", "page-major-attention-backend", raises="AssertionError",
    bad="--enable-unified-memory --attention-backend flex_attention",
    good="--enable-unified-memory --attention-backend triton",
)  # fmt: skip
def page_major_attention_backend(c: Config) -> Refusal | None:
    """This attention backend cannot read the unified memory pool.

    Rows of one layer do not lie next to each other in it, and only some backends follow the strides: `triton`, `fa3`,
    `flashinfer` and, from 0.5.19, `fa4` and `trtllm_mha`; for MLA the paged MLA backends.
    """
    by = UNIFIED if c.enable_unified_memory else LAYOUT
    return _backend_refusal(c, by, _page_major_backends(c), "it cannot follow the layout of the pool")


def _linear_backends(c: Config, phase: str) -> tuple[str, ...]:
    if c.before("0.5.17"):
        return ("triton",)
    allowed: tuple[str, ...] = ("triton", "flashinfer") if phase == "decode" else ("triton", "flashkda")
    if phase == "prefill" and c.since("0.5.23"):
        allowed += ("flashinfer",)
    if c.model.uses_mla:
        allowed += ("cutedsl", "helion") if c.since("0.5.18") else ("cutedsl",)
    return allowed


@handle_page_major_kv_layout.refuses(
    "SPC387", "page-major-linear-backend", raises="AssertionError",
    bad="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --mamba-backend flashinfer",
    good="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --mamba-backend triton",
)  # fmt: skip
def page_major_linear_backend(c: Config) -> Refusal | None:
    """These linear-attention or Mamba kernels cannot read the unified memory pool.

    Recurrent states do not lie next to each other in it. Mamba needs `triton`; linear attention can use `triton`,
    `flashinfer` (prefill from 0.5.23), `flashkda` for prefill, and with MLA `cutedsl` and `helion` too.
    """
    by = UNIFIED if c.enable_unified_memory else LAYOUT
    for phase in ("decode", "prefill"):
        split = f"linear_attn_{phase}_backend"
        at = split if getattr(c, split) else "linear_attn_backend"
        backend, allowed = getattr(c, at), _linear_backends(c, phase)
        if backend is not None and backend not in allowed:
            return _refusal(c, Conflict(at, f"its kernels cannot {phase} from the pool", setting(**{at: "triton"})), by)
    if c.before("0.5.17") and c.linear_attn_backend not in (None, "triton"):
        at = "linear_attn_backend"
        return _refusal(c, Conflict(at, "its kernels cannot read the pool", setting(**{at: "triton"})), by)
    if c.mamba_backend not in (None, "triton"):
        why = "its kernels cannot read the pool"
        return _refusal(c, Conflict("mamba_backend", why, setting(mamba_backend="triton")), by)
    return None


# --- handle_unified_memory_pool ---------------------------------------------------------------------------------------

handle_unified_memory_pool = Handler(
    "kv_cache_hook.py:handle_unified_memory_pool",
    when=lambda c: bool(c.enable_unified_memory),
    since="0.5.15",
    earlier=(Earlier("0.5.19", "server_args.py:_handle_unified_memory_pool"),),
)


def _across_servers(c: Config) -> Conflict | None:
    if c.disaggregation_mode == "null":
        return None
    if c.before("0.5.18"):
        return _dropping("disaggregation_mode", "the pool cannot be sent between servers in this release")
    if c.disaggregation_transfer_backend != "mooncake":
        at = "disaggregation_transfer_backend"
        return Conflict(at, "only Mooncake can send its pages", setting(disaggregation_transfer_backend="mooncake"))
    if c.pp_size != 1:
        return Conflict("pp_size", "its pages hold all layers and cannot be sent by stages", setting(pp_size=1))
    if c.since("0.5.21") and c.speculative_algorithm is not None:
        return _dropping("speculative_algorithm", "Mooncake cannot send a draft's part of its pages")
    if c.env.flag("SGLANG_DISABLE_LAZY_COMPACTION"):
        name = "SGLANG_DISABLE_LAZY_COMPACTION"
        return Conflict(name, "pages that are being sent must not move", dropping_env(name))
    if c.enable_hisparse:
        return _dropping("enable_hisparse", "HiSparse sends rows without asking the pool where they are")
    return None


@handle_unified_memory_pool.refuses(
    "SPC388", "unified-memory-across-servers", raises="AssertionError",
    bad="--enable-unified-memory --disaggregation-mode prefill --disaggregation-transfer-backend nixl",
    good="--enable-unified-memory --disaggregation-mode prefill --disaggregation-transfer-backend mooncake",
)  # fmt: skip
def unified_memory_across_servers(c: Config) -> Refusal | None:
    """The unified memory pool is sent between prefill and decode servers in few ways.

    From 0.5.18 Mooncake can send it, whole pages at a time: without pipeline parallelism, a draft model (from
    0.5.21), HiSparse, and with lazy compaction. Earlier releases cannot send it at all.
    """
    return _refusal(c, _across_servers(c))


def _offload(c: Config) -> Conflict | None:
    if c.before("0.5.21") or c.disaggregation_mode == "null":
        return None
    at = "disaggregation_decode_enable_offload_kvcache"
    if c.disaggregation_decode_enable_offload_kvcache:
        if c.hicache_storage_backend != "file":
            file = setting(hicache_storage_backend="file")
            return Conflict("hicache_storage_backend", "what is decoded can be offloaded to files only", file)
        model = c.model
        if model.uses_mla or model.is_mambaish or separate_windows(c):
            return _dropping(at, f"the pages of {model.architecture} cannot be offloaded from it")
    if c.disaggregation_decode_retraction_backup != "host_pool":
        return None
    at = "disaggregation_decode_retraction_backup"
    if c.before("0.5.22") and c.disaggregation_decode_enable_radix_cache:
        return _dropping(at, "a decode server's radix cache cannot be backed up from it")
    if c.model.is_mambaish or (c.before("0.5.22") and separate_windows(c)):
        return _dropping(at, f"the pages of {c.model.architecture} cannot be backed up from it")
    return None


@handle_unified_memory_pool.refuses(
    "SPC389", "unified-memory-offload", raises="AssertionError", since="0.5.21",
    bad="--enable-unified-memory --disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache "
    "--hicache-storage-backend mooncake",
    good="--enable-unified-memory --disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache "
    "--hicache-storage-backend file",
)  # fmt: skip
def unified_memory_offload(c: Config) -> Refusal | None:
    """A decode server offloads from the unified memory pool only what it can address there.

    Offloading works to files and for models with ordinary full attention; backing retracted requests up to host
    memory not for recurrent states.
    """
    return _refusal(c, _offload(c))


def _drafts(c: Config) -> tuple[str, ...]:
    if c.before("0.5.18"):
        return ()
    return ("DSPARK", "EAGLE", "EAGLE3", "DFLASH") if c.since("0.5.22") else ("DSPARK",)


@handle_unified_memory_pool.refuses(
    "SPC390", "unified-memory-draft-algorithm", raises="AssertionError",
    bad="--enable-unified-memory --speculative-algorithm NGRAM",
    good="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --attention-backend triton "
    "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
)  # fmt: skip
def unified_memory_draft_algorithm(c: Config) -> Refusal | None:
    """This speculative algorithm does not support the unified memory pool.

    From 0.5.22 EAGLE, EAGLE3, DSPARK and DFLASH do, from 0.5.18 DSPARK; before, drafting and the pool exclude each
    other.
    """
    allowed = _drafts(c)
    if c.speculative_algorithm is None or c.speculative_algorithm in allowed:
        return None
    return _refusal(c, _dropping("speculative_algorithm", "it cannot find a token in the pool"))


@handle_unified_memory_pool.refuses(
    "SPC391", "unified-memory-draft-tree", raises="AssertionError", since="0.5.18",
    bad="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --attention-backend triton --speculative-algorithm "
    "EAGLE --speculative-num-steps 3 --speculative-eagle-topk 2 --speculative-num-draft-tokens 4",
    good="--enable-unified-memory",
)  # fmt: skip
def unified_memory_draft_tree(c: Config) -> Refusal | None:
    """The unified memory pool verifies a chain of draft tokens, not a tree.

    The accepted tokens of a tree would have to be moved one by one, and the pool moves whole pages. Use
    `--speculative-eagle-topk 1`.
    """
    if c.before("0.5.22") and c.speculative_algorithm != "DSPARK":
        return None
    if c.speculative_eagle_topk in (None, 1):
        return None
    why, chain = "it cannot move the accepted tokens of a tree", {"speculative_eagle_topk": 1}
    if c.given("speculative_eagle_topk"):
        return _refusal(c, Conflict("speculative_eagle_topk", why, Change(set=chain)))
    chain |= {"speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
    return _refusal(c, Conflict("speculative_algorithm", f"{why}, SGLang's choice for this model", Change(set=chain)))


_VERIFY = ("triton", "trtllm_mla", "cutedsl_mla", "flashmla", "flashinfer", "fa3")


def _plain_rails(c: Config) -> tuple[str, ...]:
    """The backends that find ordinary heads in the pool on every path of a draft."""
    return ("triton", "flashinfer", "fa3", "trtllm_mha") if c.since("0.5.23") else ("triton", "flashinfer", "fa3")


def _verify_rails(c: Config) -> tuple[str, ...]:
    return _VERIFY if c.since("0.5.23") else (*_VERIFY, "tokenspeed_mla")


@handle_unified_memory_pool.refuses(
    "SPC392", "unified-memory-eagle-target", raises="AssertionError", since="0.5.22",
    bad="--enable-unified-memory --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --attention-backend triton "
    "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
)  # fmt: skip
def unified_memory_eagle_target(c: Config) -> Refusal | None:
    """EAGLE drafts in the unified memory pool only for a hybrid model.

    The draft's KV cache lives inside the entries of the target's sub-pools, which sliding-window and recurrent
    hybrids have. Both the target's and the draft's backend must find their rows there.
    """
    if c.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        return None
    model = c.model
    if not separate_windows(c) and not model.is_mambaish:
        why = f"the draft's KV cache has no place in the pool of {model.architecture}"
        return _refusal(c, _dropping("speculative_algorithm", why))
    rails = _verify_rails(c) if model.uses_mla else _plain_rails(c)
    said = _backend_refusal(c, UNIFIED, rails, "it cannot verify draft tokens in the pool")
    if said is not None:
        return said
    draft = c.speculative_draft_attention_backend
    plain = _plain_rails(c)
    if (draft in plain) if draft else all(backend in plain for backend in backends_of(c)):
        return None
    at = "speculative_draft_attention_backend"
    return _refusal(c, Conflict(at, "the draft's heads can be read there by few backends", setting(**{at: "triton"})))


@handle_unified_memory_pool.refuses(
    "SPC393", "unified-memory-verify-backend", raises="AssertionError", since="0.5.18",
    sglang="kv_cache_hook.py:_assert_spec_verify_backends",
    earlier=(
        Earlier("0.5.19", "server_args.py:_handle_unified_memory_pool"),
        Earlier("0.5.22", "kv_cache_hook.py:handle_unified_memory_pool"),
    ),
    bad="gpu=b200 -- --enable-unified-memory --attention-backend fa4 --speculative-algorithm DFLASH "
    "--speculative-draft-model-path {models}/eagle3-draft",
    good="gpu=b200 -- --enable-unified-memory --attention-backend triton --speculative-algorithm DFLASH "
    "--speculative-draft-model-path {models}/eagle3-draft",
)  # fmt: skip
def unified_memory_verify_backend(c: Config) -> Refusal | None:
    """This attention backend cannot verify draft tokens in the unified memory pool.

    DSPARK and DFLASH need a backend that finds the draft's tokens in the pool, for prefill and for decode.
    """
    algorithm = c.speculative_algorithm
    if algorithm not in ("DSPARK", "DFLASH"):
        return None
    if c.before("0.5.22"):
        rails: tuple[str, ...] = ("triton", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla")
    elif algorithm == "DFLASH":
        rails = _plain_rails(c)
    else:
        rails = (*_verify_rails(c), "fa4") if c.since("0.5.23") else _verify_rails(c)
    if c.since("0.5.22") and c.dcp_size > 1:
        rails = tuple(name for name in rails if name != "flashinfer")
    return _backend_refusal(c, UNIFIED, rails, "it cannot verify draft tokens in the pool")


def _excluded(c: Config) -> Conflict | None:
    if c.since("0.5.20") and c.enable_two_batch_overlap:
        return _dropping("enable_two_batch_overlap", "the halves of a batch cannot find their rows in it")
    if c.before("0.5.21") and c.enable_hierarchical_cache:
        return _dropping("enable_hierarchical_cache", "the host cache cannot follow pages that move")
    if c.enable_lmcache:
        return _dropping("enable_lmcache", "LMCache cannot follow pages that move")
    if c.before("0.5.22"):
        return None
    if c.enable_unified_cache_external_linker:
        return _dropping("enable_unified_cache_external_linker", "the linker cannot follow pages that move")
    if c.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        return None
    if c.disaggregation_decode_retraction_backup == "host_pool":
        return _dropping("disaggregation_decode_retraction_backup", "the draft has no pool of its own to back up")
    if c.enable_hierarchical_cache:
        return _dropping("enable_hierarchical_cache", "the draft has no pool of its own to keep on the host")
    return None


@handle_unified_memory_pool.refuses(
    "SPC394", "unified-memory-with-excluded-feature", raises="AssertionError",
    bad="--enable-unified-memory --enable-lmcache", good="--enable-unified-memory",
)  # fmt: skip
def unified_memory_with_excluded_feature(c: Config) -> Refusal | None:
    """This feature cannot follow pages of the unified memory pool.

    Pages of the pool have virtual addresses and may move. LMCache, the external cache linker and two-batch overlap
    use real ones; so did the hierarchical cache before 0.5.21, and it still does for the draft of EAGLE.
    """
    return _refusal(c, _excluded(c))


def _shared_decode_context(c: Config) -> Conflict | None:
    one = setting(dcp_size=1)
    if c.before("0.5.20"):
        return Conflict("dcp_size", "its ranks cannot write a part of the KV cache each", one)
    if not c.model.uses_mla:
        return Conflict("dcp_size", "its ranks can share the context of MLA only", one)
    if separate_windows(c):
        return Conflict("dcp_size", "its ranks cannot share the context of sliding windows", one)
    if c.disaggregation_mode != "null":
        return Conflict("dcp_size", "a page that is sent would hold one rank's part only", one)
    return None


@handle_unified_memory_pool.refuses(
    "SPC395", "unified-memory-with-dcp", raises="AssertionError",
    sglang="kv_cache_hook.py:_validate_unified_memory_dcp",
    earlier=(
        Earlier("0.5.19", "server_args.py:_handle_unified_memory_pool"),
        Earlier("0.5.20", "kv_cache_hook.py:handle_unified_memory_pool"),
    ),
    bad="--tp-size 4 --dcp-size 2 --enable-unified-memory",
    good="gpu=b200 model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-unified-memory --attention-backend "
    "flashinfer",
)  # fmt: skip
def unified_memory_with_dcp(c: Config) -> Refusal | None:
    """Decode context parallelism shares the unified memory pool in few cases.

    From 0.5.20: models with MLA and without sliding windows, on a server that prefills and decodes, with
    `flashinfer`, `trtllm_mla` or `cutedsl_mla`. Before, not at all.
    """
    if c.dcp_size <= 1:
        return None
    conflict = _shared_decode_context(c)
    if conflict is not None:
        return _refusal(c, conflict)
    paged = ("flashinfer", "trtllm_mla", "cutedsl_mla")
    allowed = paged if c.since("0.5.23") else (*paged, "tokenspeed_mla")
    return _backend_refusal(c, UNIFIED, allowed, "it cannot find its rank's pages in the pool")


@handle_unified_memory_pool.refuses(
    "SPC396", "unified-memory-prefill-graph", raises="ValueError", until="0.5.20",
    bad="sglang=0.5.19 -- --enable-unified-memory --attention-backend triton --cuda-graph-backend-prefill breakable",
    good="sglang=0.5.19 -- --enable-unified-memory --attention-backend triton",
)  # fmt: skip
def unified_memory_prefill_graph(c: Config) -> Refusal | None:
    """The unified memory pool of this release cannot be used from prefill graphs.

    Decode graphs work. Leave `--cuda-graph-backend-prefill` out, or set it to `disabled`.
    """
    if c.since("0.5.19"):
        if backend_of(c, PREFILL) == DISABLED or c.cuda_graph_backend_prefill is None:
            return None
    elif backend_of(c, PREFILL) != PIECEWISE:
        return None
    at = "cuda_graph_backend_prefill"
    return _refusal(c, Conflict(at, "its addresses are fixed in a prefill graph", setting(**{at: DISABLED})))


@handle_unified_memory_pool.adjusts("cuda_graph_config", since="0.5.19")
def drop_prefill_graph_of_unified_memory(c: Config) -> None:
    """The unified memory pool cannot be used from this prefill graph."""
    if c.before("0.5.20"):
        if backend_of(c, PREFILL) != DISABLED:
            disable(c, PREFILL)
    elif backend_of(c, PREFILL) == FULL and _unfit_field(c, ("fa3", "fa4")) is not None:
        disable(c, PREFILL)


@handle_unified_memory_pool.refuses(
    "SPC397", "unified-memory-graph-on-trtllm-mha", raises="AssertionError", since="0.5.22", until="0.5.23",
    bad="gpu=b200 -- --enable-unified-memory --attention-backend trtllm_mha",
    good="gpu=b200 -- --enable-unified-memory --attention-backend triton",
)  # fmt: skip
def unified_memory_graph_on_trtllm_mha(c: Config) -> Refusal | None:
    """In this release trtllm_mha cannot decode from the unified memory pool within a CUDA graph.

    It is the default on SM100. Choose `triton`, `flashinfer` or `fa4`, or give `--disable-cuda-graph`.
    """
    if backends_of(c)[1] != "trtllm_mha" or backend_of(c, DECODE) == DISABLED:
        return None
    at = backend_field(c, "decode")
    return Refusal(
        at=at if c.given(at) else UNIFIED,
        related_fields=(UNIFIED,),
        message=f"{c.shown(at)} cannot decode from the pool of {c.shown(UNIFIED)} within a CUDA graph, and SGLang "
        "stops. Use another backend, or no graphs.",
        fixes=(
            setting(**{at: "triton"}),
            setting(**{at: "flashinfer"}),
            setting(disable_cuda_graph=True),
            dropping(UNIFIED),
        ),
    )
