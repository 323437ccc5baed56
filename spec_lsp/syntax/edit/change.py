"""What an editor gives back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.python.parsing import MARK, parsed
from spec_lsp.syntax.word import Place, Word


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that do what was asked, and the other words that change with them.

    `also` holds (index of the launch in its document, the word as it was) for each word elsewhere that reads the edited
    text: a variable that two flags or two launches use. Empty when nothing else changes.
    """

    edits: tuple[Edit, ...]
    also: tuple[tuple[int, Word], ...] = ()


def apply_edits(text: str, document: str, edits: Iterable[Edit]) -> str | None:
    """The text of a document after its edits, None if they overlap."""
    own = sorted((e for e in edits if e.place.document == document), key=lambda e: (e.place.start, e.place.end))
    pieces = []
    position = 0
    for edit in own:
        if edit.place.start < position:
            return None
        pieces.append(text[position : edit.place.start] + edit.text)
        position = edit.place.end
    return "".join(pieces) + text[position:]


def is_whole(kind: str, text: str) -> bool:
    """Whether a text can be read without mending: no edit may leave a file that only our readers take."""
    try:
        if kind == "notebook":
            json.loads(text)
        elif kind == "yaml":
            list(yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        return kind != "python" or parsed(text.removeprefix(MARK)) is not None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return False


def overlaps(a: Place, places: Sequence[Place]) -> bool:
    return any(a.document == p.document and a.start < p.end and p.start < a.end for p in places)
