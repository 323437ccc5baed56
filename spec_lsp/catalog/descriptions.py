"""What each flag does, and what its values mean, in plain sentences: `descriptions/` and `values.toml`, for a person to edit."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from spec_lsp.catalog.model import FIELDS, Flag

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

FOLDER = Path(__file__).with_name("descriptions")
VALUES = Path(__file__).with_name("values.toml")


def describe(flag: Flag | str) -> str:
    """One or two sentences about a flag, by its name, field or dest; empty if nobody wrote any.

    An old spelling (`--cuda-graph-max-bs`) may have its own; else those of its field apply.
    """
    texts = descriptions()
    if isinstance(flag, str):
        return texts.get(FIELDS.get(flag, flag), "")
    own = flag.name[2:].replace("-", "_")
    return texts.get(own) or texts.get(flag.field, "")


@functools.cache
def descriptions() -> Mapping[str, str]:
    """All descriptions, by field or old spelling."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        found.update(tomllib.loads(path.read_text(encoding="utf-8")))
    return MappingProxyType(found)


def describe_value(field: str, value: str) -> str:
    """A sentence about a value of a field; empty if nobody wrote any."""
    return described_values().get(ALIKE.get(field, field), {}).get(value, "")


ALIKE = {
    "prefill_attention_backend": "attention_backend",
    "decode_attention_backend": "attention_backend",
    "speculative_draft_attention_backend": "attention_backend",
    "speculative_draft_model_quantization": "quantization",
    "speculative_draft_kv_cache_dtype": "kv_cache_dtype",
}
"""Fields whose values mean the same as another field's."""


@functools.cache
def described_values() -> Mapping[str, Mapping[str, str]]:
    """All descriptions of values, by field."""
    return MappingProxyType(tomllib.loads(VALUES.read_text(encoding="utf-8")))
