"""What a script shows about its machine: `#SBATCH --gres=gpu:h100:8` in its header, `nvidia-smi` anywhere."""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.syntax.edited import holds
from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.shell.commands import SLURM_CLUES, slurm_clue
from spec_lsp.syntax.source import WordSource
from spec_lsp.syntax.word import Place

SBATCH = expression(r"#SBATCH[ \t]+([^\r\n]*)")
HEADER = expression(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:#[^\n]*)?")
"""The comments and empty lines before the first command: Slurm reads no further."""
NVIDIAS = "nvidia-smi"
MAKERS_TOOL = expression(r"^[^#\n]*?(?<![\w.-])(?P<tool>(?:nvidia|rocm|amd|npu|xpu)-smi)(?![\w-]|\.\w)", re.M)
OTHER_MAKERS = expression(
    r"rocm|\bhip\b|HIP_|\bamd\b|/dev/kfd|\bmi3\d\dx?\b|ascend|\bnpu\b|--device[ =](?:cpu|npu|xpu)", re.I
)
OPTION = expression(r"(?<!\S)--?([A-Za-z][\w-]*)(?:=|[ \t]+)([^\s#]+)")


def script_clues(document: str, text: str) -> list[Clue]:
    """The clues of a Slurm header, with the places of its values, and of a maker's tool that lists the devices."""
    found = maker_clues(document, text)
    if not holds(document, text, "#SBATCH"):
        return found
    header = HEADER.match(text)
    assert header is not None
    for line in SBATCH.finditer(text, 0, header.end()):
        for m in OPTION.finditer(text, line.start(1), line.end(1)):
            kind = SLURM_CLUES.get(m.group(1))
            if kind:
                found.append(slurm_clue(kind, m.group(2), Place(document, m.start(2), m.end(2))))
    return found


def maker_clues(document: str, text: str) -> list[Clue]:
    """The tool of a device maker that a script runs; none if it runs several, or mentions other makers."""
    if not holds(document, text, "-smi"):
        return []
    tools = MAKERS_TOOL.finditer(text)
    found = {m["tool"]: Clue("platform", m["tool"], Place(document, *m.span("tool"))) for m in tools}
    if len(found) > 1 or (NVIDIAS in found and OTHER_MAKERS.search(text)):
        return []
    return list(found.values())


def text_clues(source: WordSource) -> list[Clue]:
    """The clues of a text inside a script."""
    found = script_clues("", source.whole)
    whole = source.statement(0, source.whole)
    return [Clue(c.kind, c.text, whole.place(c.place.start, c.place.end)) for c in found]
