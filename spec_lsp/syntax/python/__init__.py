"""Python: commands that programs start, `sgl.Engine(…)` and `ServerArgs(…)`, read with the standard `ast`. Nothing is run or imported."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.interruption import Exhausted
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Document, Launch, Problem, not_read_whole
from spec_lsp.syntax.pins import pins_of_script
from spec_lsp.syntax.python.docstrings import docstrings
from spec_lsp.syntax.python.parsing import Positions, statements
from spec_lsp.syntax.python.reader import Reader
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.written import Nested

__all__ = ["read_python"]

MAY_START = (
    "launch_server", "sglang serve", '"serve"', "'serve'", "dynamo.sglang", "Engine(", "ServerArgs(", "Runtime(",
    "Engine as", "ServerArgs as", "prepare_server_args", "ModelLaunchSettings", "run_bench_", "bench_one_batch", "bench_offline",
    "compile_deep_gemm", "sglang.bench",
)  # fmt: skip
"""A text without any of these starts nothing."""


def read_python(name: str, text: str, read: Callable[[str], str | None], nested: Nested | None = None) -> Document:
    """All launches of a Python file, even of one that does not parse yet; with `nested`, those of examples in docstrings too."""
    directives = directives_of(name, text)
    if not any(sign in text for sign in MAY_START):
        return Document(name, text, directives=directives)
    positions = Positions(name, text)
    reader = Reader(name, text, positions, read)
    reader.clues.update(dict.fromkeys(pins_of_script(name, text)))
    launches: list[Launch] = []
    problems: list[Problem] = []
    depends_on: set[str] = set()
    try:
        body = statements(text, positions)
        reader.run(body)
        for page in docstrings(name, text, positions, body):
            if nested is None:
                break
            source = embedded(page)
            found = remap(nested(name, source.whole, language="markdown"), source)
            launches += found.launches
            problems += found.problems
            depends_on |= found.depends_on
    except (Exhausted, RecursionError):
        problems.append(not_read_whole(name, "takes more work to read than any program should"))
    launches += reader.launches()
    problems = [*reader.problems.values(), *problems]
    depends_on |= reader.depends_on
    launches.sort(key=lambda launch: launch.extent.start)
    return Document(name, text, tuple(launches), tuple(problems), directives, frozenset(depends_on))
