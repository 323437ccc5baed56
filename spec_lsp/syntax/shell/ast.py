"""The syntax tree of shell commands, as far as launches need it. Offsets are characters of the text that was parsed.

Nodes never change after parsing, so documents share them: the same statement in another place (or in another version of a file) is the same
node, read through another `Source`.
"""

from __future__ import annotations

from typing import Any, Literal

from spec_lsp.records import dataclass, field


@dataclass(slots=True, eq=False)
class Node:
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Lit(Node):
    """Literal text. Verbatim when it is the source's own characters [start, end); an escape maps as a whole."""

    text: str
    quoted: bool
    verbatim: bool = True


@dataclass(slots=True, eq=False)
class Param(Node):
    """`$X`, `${X:-4}`, `${A[@]}`, `${#X}`, `${!X}`. `index` is "@", "*", a word, or None."""

    name: str
    quoted: bool
    op: str = ""
    arg: WordNode | None = None
    second: WordNode | None = None
    """The replacement in `${X/pattern/second}`, or the length in `${X:1:2}`."""
    index: WordNode | Literal["@", "*"] | None = None
    length: bool = False
    indirect: bool = False
    split: bool = False
    """zsh's `${=X}`: the value is split into words, as in other shells without `=`."""


@dataclass(slots=True, eq=False)
class Substitution(Node):
    """`$(…)` or backticks; `body` is None if it cannot be read."""

    quoted: bool
    body: Script | None


@dataclass(slots=True, eq=False)
class Arithmetic(Node):
    """`$((…))`."""

    quoted: bool
    expression: WordNode


@dataclass(slots=True, eq=False)
class Opaque(Node):
    """An expansion whose value cannot be known: `<(…)`, `${X@Q}`."""

    quoted: bool
    reason: str


Part = Lit | Param | Substitution | Arithmetic | Opaque


@dataclass(slots=True, eq=False)
class WordNode(Node):
    """A word as written, [start, end) with its quotes. `literal` is its text if it contains no expansion."""

    parts: tuple[Part, ...]
    literal: str | None = None
    quoted: bool = False


@dataclass(slots=True, eq=False)
class Element:
    """One element of an array literal, including `[key]=`."""

    value: WordNode
    key: WordNode | None = None


@dataclass(slots=True, eq=False)
class Assign(Node):
    name: str
    append: bool
    value: WordNode | None
    elements: tuple[Element, ...] | None = None
    index: WordNode | None = None


@dataclass(slots=True, eq=False)
class Redirect:
    """`> file`, `<<EOF`. `body` is the text of a here-document or here-string."""

    op: str
    target: WordNode
    body: WordNode | None = None
    descriptor: str = ""


@dataclass(slots=True, eq=False)
class Simple(Node):
    """`A=b command word … > file`. [start, end) runs from the first assignment or word to the last."""

    assigns: tuple[Assign, ...]
    words: tuple[WordNode, ...]
    redirects: tuple[Redirect, ...]
    assigning: bool = False
    """Whether some word contains `${X:=…}`."""


@dataclass(slots=True, eq=False)
class Pipeline(Node):
    commands: tuple[Command, ...]
    negated: bool


@dataclass(slots=True, eq=False)
class AndOr(Node):
    """`a && b || c &`: the first command, then pairs of operator and command."""

    first: Command
    rest: tuple[tuple[str, Command], ...]
    background: bool = False


@dataclass(slots=True, eq=False)
class Script(Node):
    """Commands that follow each other."""

    items: tuple[Command, ...]


@dataclass(slots=True, eq=False)
class If(Node):
    arms: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False)
class For(Node):
    """`for name in words`; `words` is None for the positional parameters. `for ((…))` has a `header` of three expressions and the variable
    that the first one sets as its name, or "". `select` runs once for one of the words."""

    name: str
    words: tuple[WordNode, ...] | None
    body: Script
    redirects: tuple[Redirect, ...] = ()
    header: tuple[WordNode, ...] | None = None
    select: bool = False


@dataclass(slots=True, eq=False)
class While(Node):
    condition: Script
    body: Script
    until: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False)
class Case(Node):
    subject: WordNode
    arms: tuple[CaseArm, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False)
class CaseArm:
    patterns: tuple[WordNode, ...]
    body: Script
    falls_through: bool


@dataclass(slots=True, eq=False)
class Function(Node):
    name: str
    body: Command


@dataclass(slots=True, eq=False)
class Group(Node):
    """`{ …; }`, or `( … )` when `subshell`."""

    body: Script
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False)
class Test(Node):
    """`[[ … ]]`."""

    expression: Expression
    redirects: tuple[Redirect, ...] = ()


@dataclass(slots=True, eq=False)
class ArithmeticCommand(Node):
    """`(( … ))`."""

    expression: WordNode
    redirects: tuple[Redirect, ...] = ()


Command = Simple | Pipeline | AndOr | Script | If | For | While | Case | Function | Group | Test | ArithmeticCommand


@dataclass(slots=True, eq=False)
class Both:
    """`left && right`, or `left || right` when `either`."""

    left: Expression
    right: Expression
    either: bool


@dataclass(slots=True, eq=False)
class Not:
    inner: Expression


@dataclass(slots=True, eq=False)
class Compare:
    """`left op right`; a unary test has no `left`. A bare word tests `-n`."""

    op: str
    left: WordNode | None
    right: WordNode


Expression = Both | Not | Compare


@dataclass(slots=True, eq=False)
class Marks:
    """What was read beside a skeleton, for the tree of it: offsets are those of the text."""

    built: dict[int, Any] = field(default_factory=dict)
    """Nodes that the tree contains or completes, by where their word starts: commands, comparisons, loops, `case` and its arms."""
    negated: dict[int, int] = field(default_factory=dict)
    """Where the `!` of a pipeline is, by where its first word starts."""
    lifted: dict[int, list[Function | For]] = field(default_factory=dict)
    """The functions and loops whose body starts there."""
    redirects: dict[int, list[Redirect]] = field(default_factory=dict)
    """The redirects of a compound command, by where it ends."""
