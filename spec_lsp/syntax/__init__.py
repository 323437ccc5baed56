"""From the text of a file to the launches in it, each word with an exact map back to the file.

`parse` is the entry point. It chooses a reader by the language that a client names, else by the file's name, else by the content.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spec_lsp.interruption import Exhausted, bounded
from spec_lsp.syntax.carriers import BY_KIND, reader_of
from spec_lsp.syntax.edited import holds
from spec_lsp.syntax.kinds import kind_of, may_hold_launches, may_launch
from spec_lsp.syntax.launch import TOO_DEEP, TOO_MUCH, Document, not_read_whole
from spec_lsp.syntax.source import FileSource
from spec_lsp.syntax.written import with_written_files

__all__ = ["may_hold_launches", "may_launch", "parse"]

MAX_LINE = 500_000
"""The longest line, in characters, of a text that is read."""
MAX_STEPS = 400_000
"""How many steps (`interruption.checkpoint`) reading a text may take: one or two seconds of CPU. When they are used up, each reader returns
what it has found."""

LooksLikeConfig = Callable[[frozenset[str]], bool]


def nothing(path: str) -> str | None:
    """The `read` of a caller without other files."""
    return None


def parse(
    name: str,
    text: str,
    read: Callable[[str], str | None] = nothing,
    language: str | None = None,
    looks_like_config: LooksLikeConfig | None = None,
) -> Document:
    """Read a text completely. Never raises, whatever the text.

    `name` is the caller's name for the document, which places carry. `read` returns the text of another file, by its path as the document
    writes it (relative to the document), or None. `language` is a client's language id. `looks_like_config` says whether a YAML mapping
    with these keys (kebab case) is an SGLang `--config` file.
    """
    why = ""
    try:
        with bounded(MAX_STEPS):
            return _read(name, text, kind_of(name, text, language), read, looks_like_config)
    except RecursionError:
        why = TOO_DEEP
    except Exhausted:
        why = TOO_MUCH
    except UnicodeError:
        why = "holds half of a surrogate pair, which is no character" if "sglang" in text else ""
    return Document(name, text, problems=(not_read_whole(name, why),) if why else ())


def _read(
    name: str, text: str, kind: str, read: Callable[[str], str | None], looks_like_config: LooksLikeConfig | None
) -> Document:
    nested = partial(parse, read=read, looks_like_config=looks_like_config)
    if kind == "yaml":
        from spec_lsp.syntax.yaml.reader import (
            read_yaml,  # imports PyYAML and all that reads templates, which other files do not need
        )

        return read_yaml(name, text, looks_like_config, read, nested)
    if not kind or not holds(name, text, "sglang"):
        return Document(name, text)
    if kind != "notebook" and has_huge_line(text):  # embedded pictures are long lines
        why = f"has a line of more than {MAX_LINE:,} characters"
        return Document(name, text, problems=(not_read_whole(name, why),))
    document = reader_of(kind)(name, text, read, *([nested] if BY_KIND[kind].nesting else []))
    return with_written_files(document, FileSource(name, 0, text), nested) if kind == "shell" else document


def has_huge_line(text: str) -> bool:
    """Whether a line is longer than any person or program writes a command: then it is data, which would take seconds to read as words."""
    start = 0
    while len(text) - start > MAX_LINE:
        end = text.rfind("\n", start, start + MAX_LINE + 1)
        if end < 0:
            return True
        start = end + 1
    return False
