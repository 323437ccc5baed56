"""What model loaders refuse before they read the weights.

Follows configs/load_config.py (LoadConfig) and the constructors of model_loader/loader.py.

Left out: loaders that hand their options on (InstantTensor, private ones), and what the files decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping
from spec_lsp.resolution.late.refused import value_refused

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
"""What the loader of each format takes, where it looks at all keys."""


def _options(c: Config) -> Mapping[str, object] | None:
    """The options as an object; None where they are none. Raises ValueError where they are no JSON."""
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
