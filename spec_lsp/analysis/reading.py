"""Reads a text and finds its launches, including what only the catalog can decide: which YAML file is an SGLang `--config` file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.catalog.store import load, releases
from spec_lsp.records import replace
from spec_lsp.syntax import parse
from spec_lsp.syntax.launch import Document

SHARED_WITH_OTHERS = frozenset(
    (
        "api-key", "chat-template", "data-parallel-size", "device", "download-dir", "dtype", "enable-lora", "host",
        "kv-cache-dtype", "load-format", "log-level", "max-lora-rank", "model", "pipeline-parallel-size", "port",
        "quantization", "reasoning-parser", "revision", "root-path", "served-model-name", "ssl-certfile", "ssl-keyfile",
        "tensor-parallel-size", "tokenizer", "tokenizer-mode", "tool-call-parser", "trust-remote-code",
    )
)  # fmt: skip
"""Keys that files of other servers have too; they do not show that a file is SGLang's."""


def read_document(name: str, text: str, workspace: Workspace, language: str | None = None) -> Document:
    """Read a text completely; other files are read from the workspace."""

    def read(path: str) -> str | None:
        found = workspace.read(name, path)
        return found[1] if found else None

    return read_with(name, text, read, language)


def read_with(name: str, text: str, read: Callable[[str], str | None], language: str | None) -> Document:
    """Read a text completely, with other files from `read`.

    The last document is kept, since a candidate edit is read twice: to make it and to judge it.
    """
    key = (name, text, language)
    at = next((i for i, known in enumerate(_read) if known[0] == key), None)
    found = _read.pop(at)[1] if at is not None else None
    if found is None or any(read(path) != content for path, content in found[1].items()):
        found = _read_anew(name, text, read, language)
    _read.append((key, found))
    del _read[:-MAX_READ]
    return found[0]


_read: list[tuple[tuple[str, str, str | None], tuple[Document, Mapping[str, str | None]]]] = []
"""The document and the files that were asked for. A list: hashing a long text takes longer than comparing it with these."""
MAX_READ = 4


def _read_anew(
    name: str, text: str, read: Callable[[str], str | None], language: str | None
) -> tuple[Document, Mapping[str, str | None]]:
    asked: dict[str, str | None] = {}

    def noted(path: str) -> str | None:
        asked[path] = read(path)
        return asked[path]

    return replace(parse(name, text, noted, language, looks_like_config), language=language), asked


def looks_like_config(keys: frozenset[str]) -> bool:
    """Whether a mapping with these keys (kebab case) is a `--config` file: nearly all keys are SGLang's flags, and at least two of them
    belong to no other server."""
    known = keys & _keys()
    return len(known - SHARED_WITH_OTHERS) >= 2 and len(known) >= 0.75 * len(keys)


@cache
def _keys() -> frozenset[str]:
    """Every flag of every shipped release, and the abbreviations people use for them, without dashes."""
    spellings = {s.removeprefix("--") for release in releases() for s in load(release).by_spelling}
    return frozenset(spellings | {"tp", "dp", "pp", "ep", "speculative-algo", "mem-frac"})
