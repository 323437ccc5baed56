"""What argument resolution reads of a model: its config.json, seen as SGLang's ModelConfig sees it.

Follows sglang/srt/configs/model_config.py (ModelConfig) and sglang/srt/utils/hf_transformers_utils.py (get_config, get_hf_text_config).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spec_lsp.facts.known import NotKnown


class ModelFacts:
    """A model's config.json. `complete` is False for shipped facts of well-known models, which hold only what resolution reads:
    reading a key that is not there then raises NotKnown instead of giving the default."""

    __slots__ = ("__dict__", "complete", "config")

    def __init__(self, config: Mapping[str, Any], *, complete: bool = True) -> None:
        self.config = config
        self.complete = complete

    def hf(self, name: str, default: Any = None) -> Any:
        """`hf_config.<name>`: a key of the top level of config.json."""
        if name in self.config:
            return self.config[name]
        if not self.complete:
            raise NotKnown(f"the model's {name}")
        return default

    @property
    def architectures(self) -> tuple[str, ...]:
        """`hf_config.architectures`."""
        return tuple(self.hf("architectures") or ())

    @property
    def architecture(self) -> str:
        """The first of the architectures, which SGLang goes by; empty when the config names none."""
        return next(iter(self.architectures), "")
