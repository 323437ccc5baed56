"""What SGLang refuses when it reads the model's config.json.

Follows ModelConfig.__init__ (configs/model_config.py), which resolution runs as soon as a handler needs the model.
"""

from __future__ import annotations

import json
from functools import lru_cache

from spec_lsp.facts import quantization
from spec_lsp.facts.quantization import Served
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting, setting_env
from spec_lsp.resolution.model_path import is_gguf_file

MODELOPT_METHODS = frozenset({"modelopt", "modelopt_fp8", "modelopt_fp4", "nvfp4_online", "modelopt_mixed"})


def quantization_unset(c: Config) -> bool:
    """Whether `--quantization unquant` was typed: no quantization, whatever config.json says."""
    return bool(c.typed("quantization") == "unquant")


def served_quantization(c: Config) -> Served:
    """`model_config.quantization`: decided once, from `--quantization` as typed and config.json."""
    asked = c.typed("quantization")
    if asked is None and not c.known("quantization"):
        asked = c.quantization
    cpu_engine = c.gpu.platform == "cpu" and c.env.flag("SGLANG_USE_CPU_ENGINE")
    served = (
        quantization.served if c.watched else _served
    )  # a cache would ask for everything that is known about the hardware
    return served(c.model, c.gpu, c.release, None if asked == "unquant" else asked, cpu_engine)


_served = lru_cache(maxsize=512)(quantization.served)
"""Cached, as many steps of each run ask for it."""


def quant_method(c: Config) -> str | None:
    """`get_quantization_config(hf_config)`: the method config.json names."""
    return quantization.method_of(c.model, c.release)


def model_dtype(c: Config) -> str:
    """`model_config.dtype`: the type the model computes in, "float16" for "half"."""
    asked = str(c.dtype).lower()
    if asked != "auto":
        return {"half": "float16", "float": "float32"}.get(asked, asked)
    stated = {"half": "float16", "float": "float32", None: "float32"}.get(c.model.dtype, c.model.dtype)
    if stated == "float32":
        return "bfloat16" if c.model.text_model_type.startswith("gemma") else "float16"
    return str(stated)


_gguf_config = Handler("utils/hf_transformers/config.py:get_config", since="0.5.12")


@_gguf_config.refuses(
    "SPC889", "config-parser-of-gguf", raises="ValueError",
    bad="model=none -- --model-path model-q4_k_m.gguf --model-config-parser mistral",
    good="model=none -- --model-path model-q4_k_m.gguf",
)  # fmt: skip
def config_parser_of_gguf(c: Config) -> Refusal | None:
    """A GGUF file is described by itself or by the config.json beside it.

    `--model-config-parser` other than `auto` and `hf` looks for a configuration of another kind.
    """
    if not is_gguf_file(c.model_path) or c.model_config_parser in (None, "auto", "hf"):
        return None
    return Refusal(
        at="model_config_parser",
        related_fields=("model_path",),
        message=f"{c.shown('model_config_parser')} is refused for a GGUF file: it brings its own configuration.",
    )


@_gguf_config.refuses(
    "SPC898", "unknown-config-parser", raises="ValueError", sglang="model_config_parser_registry.py:get_model_config_parser",
    bad="--model-config-parser mistrl", good="--model-config-parser hf",
)  # fmt: skip
def unknown_config_parser(c: Config) -> Refusal | None:
    """There is no model configuration parser of this name.

    SGLang looks the name up among those it has registered: `hf` for a config.json, `mistral` for a params.json. `auto` chooses. A plugin
    may register more; then turn this rule off.
    """
    if c.model_config_parser in (None, *CONFIG_PARSERS) or is_gguf_file(c.model_path):
        return None
    return Refusal(
        at="model_config_parser",
        message=f"{c.shown('model_config_parser')} is refused: the parsers are `auto`, `hf` and `mistral`.",
        choices=CONFIG_PARSERS,
    )


CONFIG_PARSERS = ("auto", "hf", "mistral")

_quantize_and_serve = Handler("model_config.py:_validate_quantize_and_serve_config", since="0.5.6")


@_quantize_and_serve.refuses(
    "SPC800", "quantize-and-serve-without-modelopt", raises="ValueError",
    bad=("--quantize-and-serve", "--quantize-and-serve --quantization fp8"), good="--quantization fp8",
)  # fmt: skip
def quantize_and_serve_without_modelopt(c: Config) -> Refusal | None:
    """Quantizing while serving is for ModelOpt methods only.

    `--quantize-and-serve` needs a ModelOpt method in `--quantization`, and even then SGLang refuses it: the feature is switched
    off. Quantize and export the checkpoint first, then serve the result without this flag.
    """
    if not c.quantize_and_serve or c.quantization in MODELOPT_METHODS:
        return None
    return Refusal(
        at="quantize_and_serve",
        related_fields=("quantization",),
        message="`--quantize-and-serve` is refused: it needs a ModelOpt method, and is switched off in SGLang for those too. "
        "Export a quantized checkpoint first and serve that.",
    )


@_quantize_and_serve.refuses(
    "SPC801", "quantize-and-serve", raises="NotImplementedError",
    bad="--quantize-and-serve --quantization modelopt_fp8", good="--quantization fp8",
)  # fmt: skip
def quantize_and_serve(c: Config) -> Refusal | None:
    """Quantizing while serving is switched off.

    SGLang knows the flag and refuses it: quantize and export the checkpoint with ModelOpt first, then serve the export.
    """
    if not c.quantize_and_serve or c.quantization not in MODELOPT_METHODS:
        return None
    return Refusal(
        at="quantize_and_serve",
        related_fields=("quantization",),
        message="`--quantize-and-serve` is refused: SGLang has it switched off. Export a quantized checkpoint first and serve that.",
    )


_overrides = Handler("model_config.py:__init__")


@_overrides.refuses(
    "SPC883", "model-overrides-not-json", raises="JSONDecodeError",
    bad=("--json-model-override-args max_position_embeddings=65536", "--json-model-override-args {rope_theta:1000000}"),
    good="""--json-model-override-args '{"max_position_embeddings": 65536}'""",
)  # fmt: skip
def model_overrides_not_json(c: Config) -> Refusal | None:
    """The changes to config.json are not JSON.

    `--json-model-override-args` takes a JSON object, with its quotes: put the whole of it in single quotes, which the shell takes off.
    """
    try:
        json.loads(c.json_model_override_args)
    except json.JSONDecodeError as error:
        return Refusal(
            at="json_model_override_args",
            message=f"{c.shown('json_model_override_args')} is refused: it is not JSON ({error.msg.lower()} at character "
            f"{error.pos + 1}). It takes an object in quotes, such as '{{\"max_position_embeddings\": 65536}}'.",
        )
    return None


_apply_overrides = Handler("config.py:get_config", earlier=(Earlier("0.5.11", "hf_transformers_utils.py:get_config"),))


@_apply_overrides.refuses(
    "SPC884", "model-overrides-not-an-object", raises="AttributeError",
    bad="--json-model-override-args [1]", good="--json-model-override-args {}",
)  # fmt: skip
def model_overrides_not_an_object(c: Config) -> Refusal | None:
    """The changes to config.json are JSON, but no object.

    `--json-model-override-args` takes an object: the keys of config.json to change, with their values.
    """
    try:
        value = json.loads(c.json_model_override_args)
    except json.JSONDecodeError:
        return None
    if not value or isinstance(value, dict):
        return None
    return Refusal(
        at="json_model_override_args",
        message=f"{c.shown('json_model_override_args')} is refused: it takes a JSON object, such as "
        "'{\"max_position_embeddings\": 65536}'.",
    )


_context_length = Handler("model_config.py:_derive_context_length")


@_context_length.refuses(
    "SPC802", "context-length-beyond-model", raises="ValueError",
    bad="model=gemma-2-9b -- --context-length 32768",
    good=("model=gemma-2-9b -- --context-length 4096",
          "model=gemma-2-9b SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 -- --context-length 32768"),
)  # fmt: skip
def context_length_beyond_model(c: Config) -> Refusal | None:
    """The context length is longer than the model supports.

    SGLang takes the longest context from config.json (`max_position_embeddings`, scaled by `rope_scaling`) and refuses a longer
    `--context-length`: past it answers are wrong, or kernels read beyond their tables.

    Leave the flag out to get the model's own length. If the model really can do more, say so where it belongs: extend its
    `rope_scaling` with `--json-model-override-args`. `SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1` turns the refusal into a warning.
    """
    asked = c.context_length
    if asked is None or asked <= c.model.derived_context_len:
        return None
    if c.env.flag("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") or c.env.flag("SGLANG_IS_IN_CI"):
        return None
    longest = c.model.derived_context_len
    return Refusal(
        at="context_length",
        related_fields=("model_path",),
        message=f"{c.shown('context_length')} is refused: the model's config.json allows at most {longest} tokens. Answers past "
        "that would be wrong, so SGLang takes it only with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1.",
        fixes=(
            dropping("context_length"),
            setting(context_length=longest),
            setting_env(SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1"),
        ),
    )


_verify_quantization = Handler("model_config.py:_verify_quantization")


@_verify_quantization.refuses(
    "SPC803", "quantization-against-checkpoint", raises="ValueError",
    bad=("model=deepseek-v3 -- --quantization awq --tp-size 8", "model=gpt-oss-120b -- --quantization fp8"),
    good=("model=deepseek-v3 -- --quantization fp8 --tp-size 8", "model=llama-3.1-8b -- --quantization fp8"),
)  # fmt: skip
def quantization_against_checkpoint(c: Config) -> Refusal | None:
    """The checkpoint is already quantized, with another method.

    config.json says how the weights are stored (`quantization_config`), and SGLang cannot read them with the method that
    `--quantization` asks for. Leave the flag out: the checkpoint's own method is found by itself.
    """
    served = served_quantization(c)
    if served.problem != "mismatch":
        return None
    return Refusal(
        at="quantization",
        related_fields=("model_path",),
        message=f"{c.shown('quantization')} is refused: the checkpoint is stored as {served.checkpoint}, and cannot be read as "
        f"{served.method}. Without the flag SGLang takes {served.checkpoint}.",
        fixes=(dropping("quantization"), *_the_checkpoints_own(c, served)),
    )


def _the_checkpoints_own(c: Config, served: Served) -> tuple[Change, ...]:
    return (setting(quantization=served.checkpoint),) if served.checkpoint else ()


@_verify_quantization.refuses(
    "SPC804", "quantization-not-on-this-device", raises="ValueError", hardware_only=True,
    bad=("--quantization mlx_q4", "gpu=mi300x model=gpt-oss-120b -- --tp-size 8"),
    good="gpu=mi355x model=gpt-oss-120b -- --tp-size 8",
)  # fmt: skip
def quantization_not_on_this_device(c: Config) -> Refusal | None:
    """This release has no such quantization on this device.

    `--quantization` accepts every method's name, but which of them exist depends on the device: `mxfp4` (GPT-OSS) needs NVIDIA,
    CDNA 4 or a CPU, the `mlx_…` methods a Mac. When nobody typed the flag it is the checkpoint's own method that is
    missing: serve another checkpoint of the model, or other hardware.
    """
    served = served_quantization(c)
    if served.problem != "unknown":
        return None
    return _no_such_method(c, served, "SGLang has no such quantization")


@_verify_quantization.refuses(
    "SPC805", "quantization-not-on-rocm", raises="ValueError", hardware_only=True,
    bad="gpu=mi300x -- --quantization w8a8_int8", good="gpu=mi300x -- --quantization fp8",
)  # fmt: skip
def quantization_not_on_rocm(c: Config) -> Refusal | None:
    """This quantization is not supported on AMD GPUs.

    SGLang keeps a list of the methods that have kernels for ROCm (fp8, awq, quark, compressed-tensors, mxfp4, …) and refuses the
    others. Leave the flag out for a checkpoint that is not quantized, or use one of that list.
    """
    served = served_quantization(c)
    if served.problem != "rocm":
        return None
    return _no_such_method(c, served, "SGLang has no ROCm kernels for it")


def _no_such_method(c: Config, served: Served, why: str) -> Refusal:
    if c.given("quantization") and served.checkpoint is None:
        return Refusal(
            at="quantization",
            message=f"{c.shown('quantization')} is refused on {c.gpu.title}: {why}.",
            fixes=(dropping("quantization"), setting(quantization="fp8")),
        )
    return Refusal(
        at=c.first_given("quantization", "model_path"),
        related_fields=("model_path",) if c.given("quantization") else (),
        message=f"The checkpoint's quantization {served.method} is refused on {c.gpu.title}: {why}. Serve the model from another "
        "checkpoint, or on other hardware.",
        fixes=(dropping("quantization"),) if c.given("quantization") else (),
    )


build_model_config = (
    _gguf_config,
    _quantize_and_serve,
    _overrides,
    _apply_overrides,
    _context_length,
    _verify_quantization,
)
