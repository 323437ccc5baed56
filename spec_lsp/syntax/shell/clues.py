"""What a script's header says about the machine: `#SBATCH --gres=gpu:h100:8`."""

from __future__ import annotations

import re

from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.shell.commands import SLURM_CLUES, slurm_clue
from spec_lsp.syntax.source import WordSource
from spec_lsp.syntax.word import Place

SBATCH = re.compile(r"#SBATCH[ \t]+([^\r\n]*)")
HEADER = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:#[^\n]*)?")
"""The comments and empty lines before the first command: Slurm reads no further."""
OPTION = re.compile(r"(?<!\S)--?([A-Za-z][\w-]*)(?:=|[ \t]+)([^\s#]+)")


def script_clues(document: str, text: str) -> list[Clue]:
    """The clues of a Slurm header; their places are the values'."""
    if "#SBATCH" not in text:
        return []
    header = HEADER.match(text)
    assert header is not None
    found = []
    for line in SBATCH.finditer(text, 0, header.end()):
        for m in OPTION.finditer(text, line.start(1), line.end(1)):
            kind = SLURM_CLUES.get(m.group(1))
            if kind:
                found.append(slurm_clue(kind, m.group(2), Place(document, m.start(2), m.end(2))))
    return found


def text_clues(source: WordSource) -> list[Clue]:
    """The clues of a Slurm header in a text that a script carries."""
    found = script_clues("", source.whole) if "#SBATCH" in source.whole else []
    whole = source.statement(0, source.whole)
    return [Clue(c.kind, c.text, whole.place(c.place.start, c.place.end)) for c in found]
