"""What model loaders refuse before they read the weights.

Follows configs/load_config.py (LoadConfig) and the constructors of model_loader/loader.py.

Left out: loaders that hand their options on (InstantTensor, private ones), and what the files decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.layout import served_class
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.model.config import served_quantization

loaders = Handler("model_loader/loader.py:__init__")

THREADS = ("enable_multithread_load", "num_threads")
OPTIONS = {
    "auto": THREADS,
    "safetensors": THREADS,
    "fastsafetensors": (*THREADS, "enable_gds"),
    "pt": THREADS,
    "npcache": THREADS,
    "dummy": (),
    "gguf": (),
    "remote_instance": (),
    "sharded_state": ("pattern",),
    "runai_streamer": ("distributed", "concurrency", "memory_limit"),
}
"""The options that the loader of each format accepts, if it checks all keys."""


def _options(c: Config) -> Mapping[str, object] | None:
    """The options as an object; None if there are none. Raises ValueError if they are not JSON."""
    text = c.model_loader_extra_config
    value = json.loads(text) if isinstance(text, str) and text else text
    return value if isinstance(value, Mapping) else None


@loaders.refuses(
    "SPC678", "loader-options-not-json", raises="JSONDecodeError", late=True,
    sglang="configs/load_config.py:__post_init__",
    bad="--model-loader-extra-config enable_multithread_load=true",
    good="""--model-loader-extra-config '{"enable_multithread_load": true}'""",
)  # fmt: skip
def loader_options_not_json(c: Config) -> Refusal | None:
    """The loader's options are not JSON.

    `--model-loader-extra-config` takes a JSON object, with its quotes: put the whole of it in single quotes, which the shell takes off.
    SGLang reads it when it is about to load the weights.
    """
    try:
        _options(c)
    except ValueError:
        return value_refused(
            c, "model_loader_extra_config", "is no JSON, and SGLang stops before it loads the weights."
        )
    return None


@loaders.refuses(
    "SPC679", "loader-option-of-another-format", raises="ValueError", late=True,
    bad=(
        """--model-loader-extra-config '{"num_thread": 8}'""",
        """--load-format dummy --model-loader-extra-config '{"num_threads": 8}'""",
    ),
    good=(
        """--model-loader-extra-config '{"enable_multithread_load": true, "num_threads": 8}'""",
        """--load-format sharded_state --model-loader-extra-config '{"pattern": "model-rank-{rank}-part-{part}.safetensors"}'""",
    ),
)  # fmt: skip
def loader_option_of_another_format(c: Config) -> Refusal | None:
    """The loader of this format does not take this option.

    Files as Hugging Face has them are read with `enable_multithread_load` and `num_threads`, sharded states by `pattern`, streams of Run:ai
    with `distributed`, `concurrency` and `memory_limit`; random and GGUF weights take no options. SGLang stops before it loads the
    weights.
    """
    if not c.given("model_loader_extra_config") or c.quantization == "auto-round-int8":
        return None
    known = OPTIONS.get(c.load_format)
    if c.load_format == "remote_instance" and c.remote_instance_weight_loader_backend == "modelexpress":
        known = THREADS
    try:
        options = _options(c)
    except ValueError:
        return None
    if known is None or not options:
        return None
    wrong = next((name for name in options if name not in known), None)
    if wrong is None:
        return None
    from difflib import get_close_matches  # takes a while to import

    takes = " and ".join(f"`{name}`" for name in known) if known else "no options"
    near = get_close_matches(wrong, known, 1)
    return value_refused(
        c,
        "model_loader_extra_config",
        f"is refused: the loader of {c.shown('load_format')} takes {takes}, not `{wrong}`."
        + (f" Did you mean `{near[0]}`?" if near else ""),
        "load_format",
    )


@loaders.refuses(
    "SPC696", "prefetch-without-threads", raises="ValueError", late=True, since="0.5.15",
    sglang="model_loader/weight_utils.py:_prefetch_all_checkpoints",
    bad="--weight-loader-prefetch-checkpoints --weight-loader-prefetch-num-threads 0",
    good="--weight-loader-prefetch-checkpoints --weight-loader-prefetch-num-threads 4",
)  # fmt: skip
def prefetch_without_threads(c: Config) -> Refusal | None:
    """Prefetching the checkpoint needs at least one thread.

    `--weight-loader-prefetch-num-threads` counts the threads that read the files ahead of the loader.
    """
    if not c.weight_loader_prefetch_checkpoints or c.weight_loader_prefetch_num_threads >= 1:
        return None
    return value_refused(
        c,
        "weight_loader_prefetch_num_threads",
        f"leaves no thread to prefetch the checkpoint ({c.shown('weight_loader_prefetch_checkpoints')}), and SGLang stops when it loads "
        "the weights.",
        "weight_loader_prefetch_checkpoints",
        fixes=(dropping("weight_loader_prefetch_num_threads"), dropping("weight_loader_prefetch_checkpoints")),
    )


def _stored(c: Config) -> object:
    """How the checkpoint says its weights are quantized."""
    return (c.model.quantization_config or {}).get("quant_method")


def _one_rank(c: Config) -> tuple[Change, ...]:
    stages = (setting(tp_size=1, pp_size=c.tp_size * c.pp_size),) if c.nnodes == 1 else ()
    return (*stages, setting(tp_size=1), dropping("tp_size"))


def _class_cannot(c: Config, *formats: str) -> bool:
    """Whether it is one of these load formats, and the model's class does not support it."""
    facts = served_class(c, c.model) if c.load_format in formats and not _own_loader(c) else None
    return facts is not None and c.load_format not in facts.supports


def _own_loader(c: Config) -> bool:
    """Whether the quantization has a loader of its own, which takes no notice of the load format."""
    name = str(served_quantization(c).method)
    return name.startswith("modelopt") or name == "auto-round-int8"


READ_AGAIN = ("auto", "safetensors", "fastsafetensors", "instanttensor", "mistral", "pt", "npcache")
OF_FORMATS = (
    Barred(
        "load_format",
        lambda c: c.load_format == "bitsandbytes" and _stored(c) not in (None, "bitsandbytes") and not _own_loader(c),
        "this checkpoint is quantized by another method",
    ),
    Barred(
        "load_format",
        lambda c: _class_cannot(c, "bitsandbytes"),
        "this model's class does not say which of its layers bitsandbytes quantizes",
    ),
    Barred(
        "load_format",
        lambda c: _class_cannot(c, "layered"),
        "this model's class cannot load one layer after the other",
    ),
    Barred(
        "tp_size",
        lambda c: c.load_format == "bitsandbytes" and _stored(c) == "bitsandbytes" and c.tp_size > 1,
        "weights that bitsandbytes quantized before are not split among ranks",
        way_out=_one_rank,
    ),
    Barred(
        "load_format",
        lambda c: _class_cannot(c, "flash_rl"),
        "this model's class cannot reload its weights",
        "0.5.23",
    ),
    Barred(
        "load_format",
        lambda c: c.load_format == "runai_streamer" and bool(c.modelopt_quant),
        "the Run:ai streamer does not quantize by ModelOpt",
        "0.5.12",
    ),
    Barred(
        "load_format",
        lambda c: c.pp_size > 1 and c.speculative_algorithm is not None and c.load_format not in READ_AGAIN,
        "a draft behind pipeline stages reads the target's files once more",
        "0.5.21",
        lambda _: (dropping("load_format"), setting(pp_size=1), dropping("speculative_algorithm")),
    ),
)


@loaders.refuses(
    "SPC1003", "load-format-of-other-weights", raises="ValueError", late=True,
    sglang="model_loader/loader.py:_load_weights",
    bad=(
        "model=qwen3-235b-fp8 -- --tp-size 4 --load-format bitsandbytes",
        "--tp-size 2 --load-format bitsandbytes --json-model-override-args "
        """'{"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}}'""",
        "model=gemma-2-9b -- --load-format flash_rl",
        "model=qwen3-30b-a3b -- --load-format bitsandbytes",
        "--load-format layered",
    ),
    good=("--load-format bitsandbytes", "model=qwen3-8b -- --load-format flash_rl"),
)  # fmt: skip
def load_format_of_other_weights(c: Config) -> Refusal | None:
    """The loader of this format cannot load these weights in this launch.

    `bitsandbytes` loads unquantized weights or those that bitsandbytes quantized, the latter on one TP rank, of the classes that name
    their layers to it (Llama, Qwen2, Qwen3, Gemma and others); `layered` and `flash_rl` support very few classes; Run:ai's streamer does
    not quantize by ModelOpt; and a draft behind pipeline stages needs a format whose files can be read again.
    """
    return first_barred(c, OF_FORMATS, "when SGLang loads the weights", "model_path")


# --- media features ------------------------------------------------------------------------------------------------------

tokenizers = Handler(
    "managers/tokenizer_manager.py:_validate_cuda_vmm_feature_transport_support", since="0.5.18", rare=True,
    when=lambda c: bool(c.mm_feature_transport == "cuda_vmm"),
)  # fmt: skip


@tokenizers.refuses(
    "SPC1120", "media-transport-of-other-class", raises="ValueError", late=True,
    bad="--model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-feature-transport cuda_vmm",
    good="--model-path Qwen/Qwen3-VL-8B-Instruct --mm-feature-transport cuda_vmm",
)  # fmt: skip
def media_transport_of_other_class(c: Config) -> Refusal | None:
    """This model's class does not receive media features through shared GPU memory.

    Few classes do: Qwen3-VL, Qwen3.5, Kimi K2.5 and newer ones. SGLang looks when its tokenizer starts, beside the model. Use
    `--mm-feature-transport cpu`, the default, or `cuda_ipc` on one node.
    """
    facts = served_class(c, c.model)
    if facts is None or "cuda_vmm" in facts.supports:
        return None
    return value_refused(
        c,
        "mm_feature_transport",
        f"is refused for {c.model.architecture} when the tokenizer starts: its class does not take features from shared GPU memory. Use "
        "`cpu`.",
        "model_path",
        fixes=(setting(mm_feature_transport="cpu"), dropping("mm_feature_transport")),
    )
