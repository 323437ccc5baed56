"""The values of a Helm chart for its templates (`values.yaml`), which apply unless they are overridden (`-f`, `--set`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.word import Fragment, Word
from spec_lsp.syntax.yaml.entries import BOOL, value_word
from spec_lsp.syntax.yaml.nodes import Node, Part, is_null, is_scalar, items, root_of


@dataclass(slots=True)
class Chart:
    """The chart of a template file; empty if the file is not part of a chart. `read` returns the text of a file near it."""

    name: str
    read: Callable[[str], str | None]
    depends_on: set[str] = field(default_factory=set)
    _part: Part | None = None

    def value(self, path: Sequence[str]) -> Word | None:
        """A scalar as a template prints it; None if there is none."""
        part = self.part()
        node = part.get(part.root, *path)
        return self.printed(node) if is_scalar(node) and not is_null(node) else None

    def printed(self, node: Node) -> Word:
        """A scalar as Go writes it."""
        word = value_word(self.part(), node)
        if node.tag == BOOL and word.text is not None:
            return Word((Fragment(word.text.lower(), word.place, False),), word.place)
        return word

    def list_at(self, path: Sequence[str]) -> list[tuple[Word | None, Word]]:
        """The scalars of a list, or of a mapping with their keys, in the order of a loop; none if it holds anything else."""
        part = self.part()
        node = part.get(part.root, *path)
        entries = [(key, value) for key, value in (part.entries(node)[name] for name in sorted(part.entries(node)))]
        pairs = entries or [(None, item) for item in items(node)]
        if not all(is_scalar(value) and not is_null(value) for _, value in pairs):
            return []
        return [(part.word(key) if key is not None else None, self.printed(value)) for key, value in pairs]

    def part(self) -> Part:
        if self._part is None:
            folder = folder_of_chart(self.name)
            path = f"{folder}values.yaml"
            content = self.read(path) if folder is not None else None
            self._part = Part(path, content or "", 0)
            if content is not None:
                self._part.root = root_of(content)
                self.depends_on.add(path)
        return self._part


def folder_of_chart(name: str) -> str | None:
    """The folder of a template's chart, relative to the file: `../` for `chart/templates/a.yaml`; None for other files."""
    folders = re.split(r"[/\\]", name)[:-1]
    if "templates" not in folders:
        return None
    return "../" * (folders[::-1].index("templates") + 1)
