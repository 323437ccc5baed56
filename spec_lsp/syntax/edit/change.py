"""What an editor gives back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Word


@dataclass(frozen=True, slots=True)
class WordChange:
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


UNREADABLE = 1_000_000


def flaws(kind: str, text: str) -> int:
    """How many pieces of a text (of a page or notebook the Python in it) cannot be read without mending: no edit may add to them, for
    only our readers take such files. UNREADABLE where the whole cannot."""
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
    """The Python in a text: the whole of it, its fences, its cells. Their readers are imported where there is such a text."""
    if kind == "python":
        from spec_lsp.syntax.python.parsing import MARK

        yield text.removeprefix(MARK)
    elif kind == "markdown":
        from spec_lsp.syntax.carriers import FENCES
        from spec_lsp.syntax.markdown import blocks

        for block in blocks("", text):
            if FENCES.get(block.language) == "python":
                yield block.body.text or ""
    elif kind == "notebook":
        from spec_lsp.syntax.notebook import code_cells

        for _, source in code_cells("", text):
            yield embedded(source).whole
