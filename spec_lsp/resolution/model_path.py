"""Where the model comes from, and how its weights are loaded.

Follows arg_groups/model_path_hook.py (handle_model_source_paths, handle_load_format) and arg_groups/expert_pack_hook.py.

Left out, because files decide it: a GGUF file on the Hub, whose path SGLang replaces by the downloaded file's; the native format of
Mistral's checkpoints (`consolidated*.safetensors`), for which `--load-format auto` becomes "mistral"; whether Mooncake's
transfer engine is installed. The rest of an expert pack's conditions (its manifest, its source).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting

OBJECT_STORES = ("s3://", "gs://", "az://")
"""Model paths that the Run:ai streamer reads."""


def is_object_store(path: str) -> bool:
    """`is_runai_obj_uri`."""
    return path.lower().startswith(OBJECT_STORES)


def is_remote(path: str) -> bool:
    """`is_remote_url`: a path that a connector serves."""
    return "://" in path


def is_gguf_file(path: str) -> bool:
    """`check_gguf_file`, as far as the name tells."""
    return PurePosixPath(path).suffix == ".gguf"


# --- expert packs ------------------------------------------------------------------------------------------------------

handle_expert_pack = Handler(
    "expert_pack_hook.py:handle_expert_pack", since="0.5.19", when=lambda c: bool(c.load_format == "expert_pack")
)

_GRAPHS = ("cuda_graph_backend_decode", "cuda_graph_backend_prefill")


@handle_expert_pack.refuses(
    "SPC876", "expert-pack-without-pack", raises="ValueError",
    bad=("--load-format expert_pack", "--load-format expert_pack --tp-size 2"),
    good="--load-format auto",
)  # fmt: skip
def expert_pack_without_pack(c: Config) -> Refusal | None:
    """An expert pack runs on one GPU, eagerly, from a pack file.

    `--load-format expert_pack` needs the pack's path (`pack_path` in `--model-loader-extra-config`, or `SGLANG_EXPERT_PACK_PATH`),
    no parallelism of any kind, no CUDA graphs and no fused shared experts.
    """
    for at in ("tp_size", "dp_size", "attn_dp_size", "ep_size"):
        if (getattr(c, at) or 1) != 1:
            return _expert_pack_refused(c, at, "it runs on one GPU")
    for at in ("enforce_shared_experts_fusion", "enable_waterfill"):
        if getattr(c, at):
            return _expert_pack_refused(c, at, "its experts are kept apart")
    for at in _GRAPHS:
        if getattr(c, at) not in (None, "disabled"):
            return _expert_pack_refused(c, at, "it runs without CUDA graphs")
    if is_gguf_file(c.model_path):
        return None
    extra = c.model_loader_extra_config
    if (not extra or extra == "{}") and not c.env.is_set("SGLANG_EXPERT_PACK_PATH"):
        return _expert_pack_refused(c, "load_format", "nothing names the pack's file")
    return None


def _expert_pack_refused(c: Config, at: str, why: str) -> Refusal:
    return Refusal(
        at=at,
        related_fields=("load_format",) if at != "load_format" else (),
        message=f"{c.shown(at)} is refused"
        + (" with `--load-format expert_pack`" if at != "load_format" else "")
        + f": {why}.",
        fixes=(dropping(at), dropping("load_format")),
    )


@handle_expert_pack.adjusts("disable_cuda_graph", "disable_shared_experts_fusion")
def run_expert_pack_eagerly(c: Config) -> None:
    """An expert pack is served without CUDA graphs and with its shared experts apart."""
    c.set(disable_cuda_graph=True, disable_shared_experts_fusion=True)


# --- load format -------------------------------------------------------------------------------------------------------

handle_load_format = Handler("model_path_hook.py:handle_load_format")


@handle_load_format.adjusts("quantization", "load_format")
def read_gguf(c: Config) -> None:
    """The model is a GGUF file, which has its own loader and quantization."""
    if c.load_format in ("auto", "gguf") and is_gguf_file(c.model_path):
        c.set(quantization="gguf", load_format="gguf")


@handle_load_format.adjusts("load_format")
def stream_from_store(c: Config) -> None:
    """The weights are streamed from where the model path points to."""
    if is_object_store(c.model_path):
        c.set(load_format="runai_streamer")
    elif is_remote(c.model_path):
        c.set(load_format="remote")


@handle_load_format.adjusts("speculative_draft_load_format", since="0.5.18")
def stream_draft_from_store(c: Config) -> None:
    """The draft's weights are streamed from where its path points to."""
    draft = c.speculative_draft_model_path
    if draft is not None and is_object_store(draft) and c.speculative_draft_load_format is None:
        c.set(speculative_draft_load_format="runai_streamer")


@handle_load_format.adjusts("load_format")
def fall_back_without_seed(c: Config) -> None:
    """The settings of the instance to load from are incomplete, so the weights are read as usual."""
    if c.load_format != "remote_instance":
        return
    backend = c.remote_instance_weight_loader_backend
    seeded = (
        c.remote_instance_weight_loader_seed_instance_ip is not None
        and c.remote_instance_weight_loader_seed_instance_service_port is not None
    )
    ports = c.remote_instance_weight_loader_send_weights_group_ports is not None
    if (backend != "modelexpress" and not seeded) or (backend == "nccl" and not ports):
        c.set(load_format="auto")


@handle_load_format.refuses(
    "SPC877", "weight-cache-with-drafting", raises="ValueError", since="0.5.19",
    bad="--weight-cache-mode client --speculative-algorithm NGRAM", good="--weight-cache-mode client",
)  # fmt: skip
def weight_cache_with_drafting(c: Config) -> Refusal | None:
    """The weight cache holds the target's weights only.

    A draft model would need its own, which the cache daemon does not keep: no `--weight-cache-mode` with speculative decoding.
    """
    if c.weight_cache_mode in (None, "off") or c.speculative_algorithm is None:
        return None
    return Refusal(
        at="weight_cache_mode",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('weight_cache_mode')} is refused with {c.shown('speculative_algorithm')}: the cache keeps no draft's "
        "weights.",
        fixes=(dropping("weight_cache_mode"), setting(weight_cache_mode="off"), dropping("speculative_algorithm")),
    )
