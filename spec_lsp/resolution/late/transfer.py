"""What servers of prefill and decode refuse when they set up their transfer.

Follows disaggregation/prefill.py (PrefillBootstrapQueue) and disaggregation/decode.py (DecodePreallocQueue).

Left out: what the two servers have to agree on (page sizes, cache types, layouts), which no single launch tells; devices, networks
and storage at run time; environment variables of a single transfer engine.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping_env, setting

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

    SGLANG_DISAGG_STAGING_BUFFER gathers scattered heads before they are sent. Latent attention has nothing to gather, and SGLang
    stops when it sets up the transfer. From 0.5.19 on a prefill server also needs chunks of whole pages, and pipeline stages need
    Mooncake.
    """
    if c.model.uses_mla:
        at, why = "model_path", "latent attention has no heads to gather"
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
        with_=(at, "disaggregation_mode"),
        message=f"`{STAGING}` is refused with {c.shown(at)} when the transfer is set up: {why}.",
        fixes=(dropping_env(STAGING), *fixes),
    )
