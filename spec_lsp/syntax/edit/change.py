"""The result of an editor's operation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Word


@dataclass(frozen=True, slots=True)
class WordChange:
    """The edits of an operation, and the other words that they change.

    `also` holds (index of the launch in its document, the old word) for each other word that reads the edited text: a variable that two
    flags or two launches use. Empty when nothing else changes.
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


UNREADABLE = 1_000_000


def flaws(kind: str, text: str) -> int:
    """How many parts of a text (for a page or notebook: of the Python in it) only our tolerant readers can read: no edit may increase this
    number. UNREADABLE if the whole text cannot be read."""
    try:
        if kind == "notebook":
            json.loads(text)
        elif kind == "json":
            from spec_lsp.syntax.jsonc import as_yaml

            json.loads(as_yaml(text))
        elif kind == "yaml":
            return 0 if _is_yaml(text) else UNREADABLE
    except (ValueError, TypeError, RecursionError):
        return UNREADABLE
    return sum(not _is_python(program) for program in _programs(kind, text))


def _is_yaml(text: str) -> bool:
    import yaml

    try:
        for _ in yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.YAMLError:
        return False
    return True


def _is_python(program: str) -> bool:
    from spec_lsp.syntax.python.parsing import parsed

    return parsed(program) is not None


def _programs(kind: str, text: str) -> Iterator[str]:
    """The Python in a text: the whole of it, its fences, or its cells. Their readers are imported when needed."""
    if kind == "python":
        from spec_lsp.syntax.python.parsing import MARK

        yield text.removeprefix(MARK)
    elif kind == "markdown":
        from spec_lsp.syntax.carriers import FENCES
        from spec_lsp.syntax.markdown import blocks

        for block in blocks("", text):
            if FENCES.get(block.language) == "python":
                yield block.body.text or ""
    elif kind == "notebook-cell":
        from spec_lsp.syntax.notebook import cell_program

        yield cell_program(text)
    elif kind == "notebook":
        from spec_lsp.syntax.notebook import code_cells

        for _, source in code_cells("", text):
            yield embedded(source).whole
