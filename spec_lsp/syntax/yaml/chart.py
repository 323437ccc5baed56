"""The values that a Helm chart has for its templates (`values.yaml`), which hold unless somebody says otherwise (`-f`, `--set`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spec_lsp.syntax.word import Fragment, Word
from spec_lsp.syntax.yaml.entries import BOOL, value_word
from spec_lsp.syntax.yaml.nodes import Part, is_null, is_scalar, items, root_of


@dataclass(slots=True)
class Chart:
    """The chart that a file is a template of; without values where it is none. `read` gives the text of a file beside it."""

    name: str
    read: Callable[[str], str | None]
    depends_on: set[str] = field(default_factory=set)
    _part: Part | None = None

    def value(self, path: Sequence[str]) -> Word | None:
        """A scalar as a template prints it; None where there is none."""
        part = self.part()
        node = part.get(part.root, *path)
        if not is_scalar(node) or is_null(node):
            return None
        word = value_word(part, node)
        if node.tag == BOOL and word.text is not None:  # as Go writes it
            return Word((Fragment(word.text.lower(), word.place, False),), word.place)
        return word

    def list_at(self, path: Sequence[str]) -> list[Word]:
        """The scalars of a list; none where there is no list, or it holds anything else."""
        part = self.part()
        nodes = items(part.get(part.root, *path))
        return [part.word(node) for node in nodes] if all(map(is_scalar, nodes)) else []

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
    """The folder of the chart whose template a file is, as seen from the file: `../` for `chart/templates/a.yaml`; None for other files."""
    folders = re.split(r"[/\\]", name)[:-1]
    if "templates" not in folders:
        return None
    return "../" * (folders[::-1].index("templates") + 1)
