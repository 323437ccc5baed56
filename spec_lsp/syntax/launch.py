"""What a document will run: launches, in each of the ways in which the document can run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.covering import Ways
from spec_lsp.syntax.word import Place, Word

NOTHING: Mapping[str, Word] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Choice:
    """A point where a script goes one of several ways: the arm of an `if` or `case`, the value of a loop variable."""

    place: Place
    taken: str
    """The way taken, in words that continue "when ": `$1 is big`, `the test at line 12 fails`."""


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A file whose text a document writes (a here-document into `config.yaml`, a ConfigMap entry)."""

    name: str
    content: Word


@dataclass(frozen=True, slots=True)
class Variant:
    """One way a launch can be run: its argv after the entry point, and what surrounds it.

    `words` never holds the entry point (`python -m sglang.launch_server`, `sglang serve`). `env` holds the variables the launch
    is given by the document (prefix, `export`, `env`, `docker -e`, `environment:`); the document does not set any other.
    """

    words: tuple[Word, ...]
    env: Mapping[str, Word] = field(default_factory=lambda: NOTHING)
    choices: tuple[Choice, ...] = ()
    files: tuple[EmbeddedFile, ...] = ()


ClueKind = Literal["image", "pin", "gpu", "runner", "gpu-count", "platform", "nodes", "build"]


@dataclass(frozen=True, slots=True)
class Clue:
    """A text that shows on which release or hardware a launch will run: `lmsysorg/sglang:v0.5.9-cu130`, `sglang==0.5.9`, `gpu:h100:8`.

    `text` is as written; facts/ reads it. `place` is where. A `build` is what SGLang is installed from if that is not a release:
    `git+https://github.com/me/sglang`.
    """

    kind: ClueKind
    text: str
    place: Place


Program = Literal[
    "launch_server", "serve", "one_batch", "one_batch_server", "offline_throughput", "deep_gemm", "weight_cache",
    "router", "dynamo", "trainer", "engine", "config",
]  # fmt: skip
"""`launch_server`: `python -m sglang.launch_server`; `serve`: `sglang serve`, whose first word may be the model; `one_batch` and the
four after it: the benches (BENCHES); `trainer`: a program that starts SGLang itself and passes on the flags that begin with
`--sglang-` (slime, miles); `engine`: keyword arguments; `config`: a `--config` file that no launch names."""
BENCHES: frozenset[Program] = frozenset(
    ("one_batch", "one_batch_server", "offline_throughput", "deep_gemm", "weight_cache")
)
"""SGLang's own programs that take flags beside those of the server: `sglang.bench_one_batch`, `sglang.compile_deep_gemm`, …"""

FLAG_PREFIXES: Mapping[Program, str] = {"trainer": "--sglang-"}
"""What a program writes in place of the dashes of SGLang's flags; a launch's words are without it."""


Syntax = Literal["shell", "yaml-words", "yaml-mapping", "list-words", "keywords"]
"""`list-words`: items between brackets and commas, each in quotes (JSON, Python); `keywords`: arguments of a Python call."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One place in a document that starts SGLang.

    `place` covers the entry point's words (where a lens goes), `extent` the whole command from its first word to its last.
    `syntax` names the editor that prints fixes. There is always at least one variant, and at most `syntax.shell.MAX_VARIANTS`:
    see `ways`.
    """

    program: Program
    place: Place
    extent: Place
    variants: tuple[Variant, ...]
    syntax: Syntax = "shell"
    clues: tuple[Clue, ...] = ()
    role: str = ""
    """The launch's part in a deployment, as the document names it: `prefill`, `decode`, `leader`, `worker`; empty if it does not."""
    group: Place | None = None
    """The YAML document or recipe within which launches belong together; None if nothing says so."""
    ways: Ways = "all"
    """Whether the variants are all ways to run it, or a selection: in `pairs`, any two ways of two switches occur together."""

    def written_flag(self, flag: str) -> str:
        """How the document writes one of SGLang's flags: `--sglang-tp-size` for a trainer's `--tp-size`."""
        prefix = FLAG_PREFIXES.get(self.program)
        return prefix + flag[2:] if prefix and flag.startswith("--") else flag

    @property
    def in_part(self) -> bool:
        """Whether the program itself sets further flags that the document does not show."""
        return self.program in ("config", "trainer")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters of `place` by `text`; an empty place inserts."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake that the syntax itself shows, before any flag is understood: flags lost after a broken continuation.

    `rule` is the name of the rule in `analysis.rules` that explains it.
    """

    rule: str
    place: Place
    message: str
    edits: tuple[Edit, ...] = ()
    fix_title: str = ""
    related: tuple[tuple[Place, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """A comment to spec-lsp: `# spec-lsp: ignore[rule-name] reason`, `# spec-lsp: sglang=0.5.19 gpu=b200`.

    `text` is what follows `spec-lsp:`, stripped; `place` covers the comment from its `#`; `own_line` if nothing but the comment is on its
    line. `scope` is what an ignore comment applies to, if that is more than its line and the next command. `within` is the part of the
    document that the comment applies to (a code block of a page); None for all of it.
    """

    text: str
    place: Place
    own_line: bool
    scope: Place | None = None
    within: Place | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Everything read from one text. Parsers return this, whatever the text; they do not raise."""

    name: str
    text: str
    launches: Sequence[Launch] = ()
    problems: tuple[Problem, ...] = ()
    directives: tuple[Directive, ...] = ()
    depends_on: frozenset[str] = field(default_factory=frozenset)
    """Files of the workspace whose change may change the launches (sourced scripts), by their names in the document."""
    language: str | None = None
    """The language id the text was read with, so that a changed text can be read the same way."""
    files: Sequence[EmbeddedFile] = ()
    """The known contents of files that a script has written when it ends; a file may be listed once for each way through the script."""


TOO_DEEP = "is nested too deeply"
TOO_MUCH = "takes more work to read than any file should"


def not_read_whole(document: str, why: str) -> Problem:
    """The problem of a text that exceeds a limit, at one line. `why` is said of the file: "has a line of …"."""
    message = f"This file {why}, so spec-lsp did not read all of it and may miss launches in it."
    return Problem("not-read-whole", Place(document, 0, 0), message)
