"""A workspace without a disk: the files and models that a caller passes, and the well-known models."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.well_known import find_model
from spec_lsp.records import dataclass, field


@dataclass(frozen=True, slots=True)
class InMemory:
    """An `analysis.inputs.Workspace`. `files` are texts by name (`/`-separated, relative to one common folder), `models` the contents
    of config.json files by the path or id that a launch names."""

    files: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        """A file by the name that the document uses: relative to the document's folder, else to the common one."""
        for name in (posixpath.join(posixpath.dirname(document), path), path):
            name = posixpath.normpath(name)
            if name in self.files:
                return name, self.files[name]
        return None

    def left_out(self, document: str, path: str) -> str:
        return ""

    def unreadable_model(self, document: str, path_or_id: str) -> str:
        return ""

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        config = self.models.get(path_or_id)
        return find_model(path_or_id) if config is None else ModelFacts(config)

    def release(self, document: str, python: str = "") -> tuple[Release, str] | None:
        return None

    def unread_sglang(self, document: str, python: str = "") -> str:
        return ""

    def sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        return None, "is not read here"

    def installed_help(self, document: str, spelling: str, python: str = "") -> str | None:
        """There is no help text: it would be read from an installed SGLang."""
        return None
