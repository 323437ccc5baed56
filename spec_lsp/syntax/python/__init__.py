"""Python: commands that programs start, `sgl.Engine(…)` and `ServerArgs(…)`, read with the standard `ast`. Nothing is run or imported."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.python.parsing import Positions, statements
from spec_lsp.syntax.python.reader import Reader

__all__ = ["read_python"]

MAY_START = (
    "launch_server", "sglang serve", '"serve"', "'serve'", "dynamo.sglang", "Engine(", "ServerArgs(", "Runtime(",
    "Engine as", "ServerArgs as", "prepare_server_args", "ModelLaunchSettings", "run_bench_", "bench_one_batch", "bench_offline",
    "compile_deep_gemm", "sglang.bench",
)  # fmt: skip
"""A text without any of these starts nothing."""


def read_python(name: str, text: str, read: Callable[[str], str | None]) -> Document:
    """All launches of a Python file, also of one that does not parse yet."""
    directives = directives_of(name, text)
    if not any(sign in text for sign in MAY_START):
        return Document(name, text, directives=directives)
    positions = Positions(name, text)
    reader = Reader(name, text, positions, read)
    reader.run(statements(text, positions))
    return Document(
        name, text, reader.launches(), tuple(reader.problems.values()), directives, frozenset(reader.depends_on)
    )
