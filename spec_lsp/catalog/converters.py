"""Converts the text of a word to a value as SGLang's argparse types do.

Each converter takes the text and the release and raises `Refusal` where SGLang's own function makes argparse stop. Behaviour follows
`sglang.srt.utils.common` (`human_readable_int`, `json_list_type`, `nullable_str`), `sglang.srt.model_executor.cuda_graph_config` and
Python's own `int`, `float` and `json.loads`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from spec_lsp.catalog.release import Release
from spec_lsp.expressions import expression


class Refusal(Exception):  # noqa: N818 - what SGLang answers, not a failure of ours
    """The text is not a valid value; `expected` says what would be, in words that continue "expected "."""

    def __init__(self, expected: str, says: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.says = says
        """What argparse prints after `argument --flag: `; empty for its standard `invalid TYPE value: 'TEXT'`."""


Converter = Callable[[str, Release], Any]

_SUFFIXED = expression(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_POWERS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_NO_PIECEWISE = Release(0, 5, 22)
"""First release that refuses `tc_piecewise` before it looks at the choices."""


def convert(type_: str | None, text: str, release: Release) -> Any:
    """The value of `text` for a flag of this type. Raises Refusal; KeyError for an unknown type."""
    return text if type_ is None else CONVERTERS[type_](text, release)


def _int(text: str, _release: Release) -> int:
    try:
        return int(text)
    except ValueError:
        raise Refusal("a whole number") from None


def _float(text: str, _release: Release) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refusal("a number") from None


def _str(text: str, _release: Release) -> str:
    return text


def _json(text: str, _release: Release) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal("JSON") from None


def _strict_json(text: str, _release: Release) -> Any:
    """orjson accepts no NaN and no Infinity."""

    def refuse(_name: str) -> NoReturn:
        raise ValueError

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        says = f"Invalid JSON list: {text}. Please provide a valid JSON list."
        raise Refusal("a JSON list such as [1, 2]", says) from None


def _human_readable_int(text: str, _release: Release) -> int:
    text = text.strip()
    match = _SUFFIXED.fullmatch(text)
    if match is None:
        try:
            return int(text)
        except ValueError:
            raise Refusal(
                "a whole number, or one with k, M, G, T, Ki, Mi, Gi or Ti behind it", "Invalid integer"
            ) from None
    number, suffix = match.groups()
    if suffix.endswith("i"):
        if "." in number:
            raise Refusal(f"a whole number before {suffix}; decimals go with {suffix[0]}", "Decimals are not allowed")
        return int(number) * _POWERS[suffix]
    from decimal import Decimal  # takes a while to import

    return int(Decimal(number) * _POWERS[suffix])


def _nullable_str(text: str, _release: Release) -> str | None:
    return None if text in ("", "None") else text


def _cuda_graph_backend(text: Any, _release: Release) -> Any:
    if text == "tc_piecewise":
        raise Refusal("breakable, full or disabled (tc_piecewise was removed)", "tc_piecewise was removed")
    return text


def _cuda_graph_config(text: str, release: Release) -> Any:
    says = "--cuda-graph-config"
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal('JSON such as {"decode": {"max_bs": 64}}', says) from None
    if not isinstance(parsed, dict):
        raise Refusal("a JSON object with the keys decode and prefill", says)
    for phase, settings in parsed.items():
        if phase not in ("decode", "prefill"):
            raise Refusal(f"the phases decode and prefill, not {phase!r}", says)
        if not isinstance(settings, dict):
            raise Refusal(f"a JSON object for the phase {phase}", says)
        if release >= _NO_PIECEWISE and "backend" in settings:
            _cuda_graph_backend(settings["backend"], release)
        allowed = cuda_graph_keys(phase, release)
        for key in settings:
            if key not in allowed:
                raise Refusal(f"the keys {', '.join(allowed)} in {phase}, not {key!r}", says)
    return parsed


_GRAPH_KEYS: tuple[tuple[str, str, Release, Release | None], ...] = (
    ("decode", "tc_compiler", Release(0, 5, 14), Release(0, 5, 22)),
    ("prefill", "tc_compiler", Release(0, 5, 14), Release(0, 5, 22)),
    ("prefill", "full_prefill_max_req", Release(0, 5, 15), None),
    ("prefill", "full_prefill_prefix_chunk_tokens", Release(0, 5, 17), None),
    ("prefill", "max_context_size", Release(0, 5, 21), None),
    ("prefill", "max_seq_len", Release(0, 5, 21), None),
)


def cuda_graph_keys(phase: str, release: Release) -> tuple[str, ...]:
    """The keys that `--cuda-graph-config` accepts for a phase (SGLang's ALLOWED_KEYS_PER_PHASE)."""
    extra = (
        k for p, k, since, until in _GRAPH_KEYS if p == phase and since <= release and (not until or release < until)
    )
    return ("backend", "max_bs", "bs", *extra)


CONVERTERS: dict[str, Converter] = {
    "int": _int,
    "float": _float,
    "str": _str,
    "loads": _json,
    "json_list_type": _strict_json,
    "human_readable_int": _human_readable_int,
    "nullable_str": _nullable_str,
    "parse_cuda_graph_backend_arg": _cuda_graph_backend,
    "parse_cuda_graph_config_arg": _cuda_graph_config,
}

_LORA_OBJECTS = Release(0, 5, 0)
"""Until 0.4.10 `--lora-paths` made a dictionary of `name=path`; later it keeps the texts and reads JSON objects."""


def lora_paths(texts: list[str], release: Release) -> Any:
    """The words as SGLang's LoRAPathAction converts them. Raises Refusal."""
    if release < _LORA_OBJECTS:
        return {name: path if equals else name for name, equals, path in (t.partition("=") for t in texts)}
    found: list[Any] = []
    for text in (t.strip() for t in texts):
        if not (text.startswith("{") and text.endswith("}")):
            found.append(text)
            continue
        value = _json(text, release)
        if "lora_path" not in value or "lora_name" not in value:
            raise Refusal("a JSON object with lora_name and lora_path, NAME=PATH, or PATH")
        found.append(value)
    return found
