"""Multi-item scoring (--enable-mis)."""

from __future__ import annotations

from spec_lsp.resolution.attention.backends import capture_nothing
from spec_lsp.resolution.attention.common import backend_field, backends_of
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping

handle_multi_item_scoring = Handler("attention_hook.py:handle_multi_item_scoring", when=lambda c: bool(c.enable_mis))


@handle_multi_item_scoring.adjusts("disable_cuda_graph", "disable_piecewise_cuda_graph", until="0.5.14")
def scoring_without_cuda_graphs_before_0_5_14(c: Config) -> None:
    """Multi-item scoring masks attention anew for each request, which a CUDA graph cannot hold."""
    c.set(disable_cuda_graph=True, disable_piecewise_cuda_graph=True)


@handle_multi_item_scoring.adjusts("cuda_graph_config", since="0.5.14")
def scoring_without_cuda_graphs(c: Config) -> None:
    """Multi-item scoring masks attention anew for each request, which a CUDA graph cannot hold."""
    capture_nothing(c)


@handle_multi_item_scoring.adjusts("disable_radix_cache")
def scoring_without_radix_cache(c: Config) -> None:
    """Multi-item scoring reads items that a shared prefix would mix up."""
    c.set(disable_radix_cache=True)


@handle_multi_item_scoring.adjusts("chunked_prefill_size")
def scoring_without_chunks(c: Config) -> None:
    """Multi-item scoring needs the whole request in one prefill."""
    c.set(chunked_prefill_size=-1)


@handle_multi_item_scoring.refuses(
    "SPC220",
    "scoring-without-flashinfer",
    raises="AssertionError",
    bad="--enable-mis",
    good="--enable-mis --attention-backend flashinfer",
)
def scoring_without_flashinfer(c: Config) -> Refusal | None:
    """Multi-item scoring runs on flashinfer only.

    It needs attention masks of its own, which only FlashInfer supports, for prefill and for decoding. On Hopper and SM100
    SGLang's default is another backend, so `--enable-mis` alone is refused there: name flashinfer.
    """
    prefill, decode = backends_of(c)
    if prefill == "flashinfer" and decode == "flashinfer":
        return None
    at = backend_field(c, "prefill" if prefill != "flashinfer" else "decode")
    splits = tuple(n for n in ("prefill_attention_backend", "decode_attention_backend") if getattr(c, n))
    return Refusal(
        at=at if c.given(at) else "enable_mis",
        related_fields=("enable_mis",) if c.given(at) else (at,),
        message=f"`--enable-mis` is refused with {c.shown(at)}: multi-item scoring needs attention masks that only "
        f"flashinfer supports.",
        fixes=(Change(set={"attention_backend": "flashinfer"}, drop=splits), dropping("enable_mis")),
    )
