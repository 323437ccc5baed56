"""Expands words as bash does: parameters, substitutions, word splitting; each character keeps its place.

An expansion runs under one `PathCondition`. If a value depends on a choice in the script that the condition does not decide, it raises
`Undecided` and is run again for each way (`values.explore`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.shell import arithmetic
from spec_lsp.syntax.shell.ast import Arithmetic, Lit, Opaque, Param, Part, Script, Substitution, WordNode
from spec_lsp.syntax.shell.patterns import affordable, compile_pattern, quote
from spec_lsp.syntax.shell.printing import quoted
from spec_lsp.syntax.shell.values import (
    DEPENDS,
    FROM_ENVIRONMENT,
    TREES,
    UNSET,
    Array,
    Fork,
    PathCondition,
    Point,
    Reference,
    Scalar,
    Table,
    Tree,
    Unset,
    Value,
    is_later,
    parts,
    transform,
)
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Fragment, Place, Word, hull, unknown

MAX_FRAGMENTS = 2_000
MAX_TEXT = 1_500_000
MAX_VIA = 12
"""How many of the expansions that a text came through are kept, from the outermost."""
MAX_ENTRIES = 32
"""The most entries of an array that are told apart when the subscript is unknown."""
MAX_WORDS = 2000
"""The most words of one command that are looked at."""

ONE_NAME = expression(r'"?\$?\{?(\w+)\}?"?\Z')
ALWAYS_SET = frozenset({
    "HOME", "PWD", "OLDPWD", "USER", "PATH", "SHELL", "HOSTNAME", "UID", "EUID", "RANDOM", "SECONDS", "LINENO",
    "PPID", "BASHPID", "BASH", "OSTYPE", "?", "$", "!", "-", "_", "#",
})  # fmt: skip
_new = tuple.__new__
"""Create a named tuple without its Python-level constructor, as thousands are created."""

FROM_COMMAND_LINE = "from the command line"
SET_IN_LOOP = "set in a loop"
GIVEN = (FROM_COMMAND_LINE, SET_IN_LOOP, FROM_ENVIRONMENT)


class Variables(Protocol):
    """The variables that an expansion reads."""

    zsh: bool
    """The script is one for zsh: an array needs no braces, its indices count from 1, and no value is split into words."""

    def lookup(self, name: str) -> Tree[Value] | None:
        """The value of a variable; None if the script has not set it."""

    def point(self, name: str) -> Point:
        """The point "the variable `name` is set when the script starts"; its ways: 0 not set, 1 set."""

    def entry(self, subscript: str, keys: tuple[str, ...]) -> Point:
        """The point "which of `keys` an unknown subscript is": the same for all arrays with these keys."""

    def sets(self, name: str) -> bool:
        """Whether the script sets the variable somewhere, though not on the way here: then it is taken to be unset before."""

    def substitute(
        self, node: Substitution, body: Script, source: Source, world: PathCondition
    ) -> tuple[Fragment, ...]:
        """The output of a command substitution."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A variable that the script does not set."""

    reason: str


Leaf = Scalar | Array | Table | Unset | Outside


@dataclass(slots=True, eq=False)
class Fields:
    """The words that one written word becomes, during its expansion."""

    node_place: Place
    blanks: str
    words: list[Word] = field(default_factory=list)
    current: list[Fragment] = field(default_factory=list)
    started: bool = False
    solid: bool = False
    """The current word certainly exists as one word: something in it is quoted, or known."""
    brought: bool = False
    """The current word came completely from one expansion."""
    many: bool = False

    def literal(self, fragments: Sequence[Fragment], quoted: bool) -> None:
        self.brought = False
        self.started = True
        for fragment in fragments:
            self.solid |= quoted or fragment.text is not None
            self.current.append(fragment)
        self.solid |= quoted

    def expanded(self, fragments: Sequence[Fragment], quoted: bool) -> None:
        """The value of an expansion; outside of quotes it is split at blanks."""
        if quoted:
            self.started = self.solid = True
            self.current.extend(fragments)
            return
        for fragment in fragments:
            if fragment.text is None:
                self.brought = not self.started
                self.started = True
                self.current.append(fragment)
            else:
                self.split(fragment, fragment.text)

    def split(self, fragment: Fragment, text: str) -> None:
        start = 0
        for position, char in enumerate(text):
            if char in self.blanks:
                if start < position:
                    self.piece(fragment, start, position)
                self.end(split=True)
                start = position + 1
        if start < len(text):
            self.piece(fragment, start, len(text))

    def piece(self, fragment: Fragment, start: int, end: int) -> None:
        self.brought = self.brought if self.started else True
        self.started = self.solid = True
        whole = start == 0 and fragment.text is not None and end == len(fragment.text)
        self.current.append(fragment if whole else _cut(fragment, start, end))

    def array(self, words: Sequence[Word], via: Place) -> None:
        """`"${A[@]}"`: each element is a word; the first and last are joined to the text beside them."""
        for i, word in enumerate(words):
            if i:
                self.end()
            fragments = through(word.fragments, via)
            if not self.started and (word.splat or i < len(words) - 1):
                self.words.append(Word(fragments, word.place, word.splat, word.scalar))
                self.many = True
            elif word.splat:
                self.current.extend(fragments)
                self.started = True
            else:
                if not self.started:
                    self.many = True
                    self.element_place = word.place
                self.current.extend(fragments)
                self.started = self.solid = True

    element_place: Place | None = None

    def end(self, split: bool = False) -> None:
        if not self.started:
            self.element_place = None
            return
        if len(self.words) >= MAX_WORDS:
            return
        fragments = tuple(self.current)
        self.many |= split
        splat = not self.solid and all(f.text is None for f in fragments) and bool(fragments)
        place = self.element_place or self.node_place
        flag = self.brought and not splat and _starts_a_flag(fragments)
        if self.element_place is None and fragments and (self.many or flag):
            place = written_at(fragments, self.node_place)
        self.words.append(Word(fragments, place, splat, splat))
        self.current = []
        self.started = self.solid = self.brought = False
        self.element_place = None


def bounded(fragments: tuple[Fragment, ...], place: Place) -> tuple[Fragment, ...]:
    """A text, or unknown if it is longer than any command."""
    if len(fragments) <= MAX_FRAGMENTS and sum(len(f.text or "") for f in fragments) <= MAX_TEXT:
        return fragments
    return (Fragment(None, place, False, "it is too long"),)


def bounded_array(words: tuple[Word, ...], place: Place) -> Array:
    return Array(words if len(words) <= MAX_WORDS else (unknown(place, "it is too long", splat=True),))


def written_at(fragments: Sequence[Fragment], otherwise: Place) -> Place:
    """Where the text of fragments is written, if in one document."""
    if any(f.place.document != fragments[0].place.document for f in fragments):
        return otherwise
    return hull(f.place for f in fragments)


def through(fragments: Sequence[Fragment], via: Place) -> tuple[Fragment, ...]:
    """The fragments as seen through the expansion at `via`."""
    return tuple([_new(Fragment, (f[0], f[1], f[2], f[3], (via, *f[4][:MAX_VIA]), f[5])) for f in fragments])


def _starts_a_flag(fragments: Sequence[Fragment]) -> bool:
    return bool(fragments) and (fragments[0].text or "").startswith("--")


def _cut(fragment: Fragment, start: int, end: int) -> Fragment:
    assert fragment.text is not None
    place = fragment.place
    if fragment.verbatim:
        place = Place(place.document, place.start + start, place.start + end)
    return Fragment(fragment.text[start:end], place, fragment.verbatim, "", fragment.via, fragment.fixed)


@dataclass(slots=True, eq=False)
class Expander:
    variables: Variables
    world: PathCondition
    kept: dict[tuple[int, int], list[Word]] | None = None
    """Words of the current command that are the same for every path condition, if they are to be kept."""
    generous: bool = False
    """Whether a variable that is unset on this way, but set to a plain value on others, is taken to come from the environment."""

    # Words.

    def words(self, nodes: Sequence[WordNode], source: Source) -> list[Word]:
        """The argv words that written words become."""
        found: list[Word] = []
        kept = self.kept
        for node in nodes:
            words = kept.get((id(node), id(source))) if kept is not None else None
            if words is None:
                self.world.turned = False
                words = [self.literal_word(node, source)] if node.literal is not None else self.word(node, source)
                if kept is not None and not self.world.turned:
                    kept[id(node), id(source)] = words
            found.extend(words)
            if len(found) > MAX_WORDS:
                break
        return found

    def literal_word(self, node: WordNode, source: Source) -> Word:
        parts = node.parts
        if len(parts) == 1 and isinstance(source, FileSource):
            part = parts[0]
            assert isinstance(part, Lit)
            base = source.base
            place = _new(Place, (source.document, base + part.start, base + part.end))
            if not part.text:
                return Word((), source.place(node.start, node.end))
            seen = place if not node.quoted else _new(Place, (source.document, base + node.start, base + node.end))
            fragment = _new(Fragment, (part.text, place, part.verbatim, "", (), False))
            return _new(Word, ((fragment,), seen, False, False))
        fragments: list[Fragment] = []
        loose = not node.quoted
        for part in node.parts:
            assert isinstance(part, Lit)
            fragments.extend(literal_fragments(part, source))
        loose = loose and bool(fragments) and all(f.text is None for f in fragments)
        return Word(tuple(fragments), source.place(node.start, node.end), loose, loose)

    def word(self, node: WordNode, source: Source) -> list[Word]:
        fields = Fields(source.place(node.start, node.end), self.blanks())
        self.into(fields, node.parts, source, False)
        fields.end()
        return fields.words

    def blanks(self) -> str:
        tree = self.variables.lookup("IFS")
        if tree is None:
            return " \t\n"
        value = self.world.follow(tree)
        return (value.text or " \t\n") if isinstance(value, Scalar) and value.fragments else " \t\n"

    def scalar(self, node: WordNode, source: Source) -> tuple[Fragment, ...]:
        """A word as one string, as in an assignment."""
        fields = Fields(source.place(node.start, node.end), "")
        self.into(fields, node.parts, source, False, join=True)
        return bounded(tuple(fields.current), fields.node_place)

    def text(self, node: WordNode, source: Source) -> str | None:
        if node.literal is not None:
            word = self.literal_word(node, source)
            return word.text if not word.splat else None
        return Scalar(self.scalar(node, source)).text

    def pattern(self, node: WordNode, source: Source) -> str | None:
        """A word as a shell pattern; quoted characters in it are literal."""
        pieces = []
        for part in node.parts:
            fields = Fields(source.place(part.start, part.end), "")
            self.into(fields, (part,), source, False, join=True)
            text = Scalar(tuple(fields.current)).text
            if text is None:
                return None
            pieces.append(quote(text) if part.quoted else text)
        return "".join(pieces)

    def into(self, fields: Fields, parts: Sequence[Part], source: Source, inside: bool, join: bool = False) -> None:
        """Expand parts. Literal text `inside` an unquoted `${X:-…}` is split too; `join` keeps everything in one word."""
        for part in parts:
            if isinstance(part, Lit):
                fragments = literal_fragments(part, source)
                if inside and not part.quoted and not join:
                    fields.expanded(fragments, False)
                elif fragments or part.quoted:
                    fields.literal(fragments, part.quoted or join)
            elif isinstance(part, Param):
                self.parameter_into(fields, part, source, join)
            else:
                here = source.place(part.start, part.end)
                fields.expanded(self.computed(part, source, here), part.quoted or join)

    def computed(self, part: Substitution | Arithmetic | Opaque, source: Source, here: Place) -> tuple[Fragment, ...]:
        if isinstance(part, Opaque):
            return (Fragment(None, here, False, part.reason),)
        if isinstance(part, Arithmetic):
            value = self.arithmetic(part.expression, source)
            if value is None:
                return (Fragment(None, here, False, "arithmetic"),)
            return (Fragment(str(value), here, False, fixed=True),)
        if part.body is None:
            return (Fragment(None, here, False, "command substitution"),)
        return through(self.variables.substitute(part, part.body, source, self.world), here)

    def arithmetic(self, expression: WordNode, source: Source) -> int | None:
        text = self.text(expression, source)
        if text is None:
            return None
        return arithmetic.evaluate(text, self.number_text)

    def number_text(self, name: str) -> str | None:
        leaf = self.leaf(name)
        if isinstance(leaf, Array):
            leaf = first_of(leaf)
        if isinstance(leaf, Unset):
            return ""
        return leaf.text if isinstance(leaf, Scalar) else None

    # Parameters.

    def leaf(self, name: str, splits: bool = False) -> Leaf:
        """The value of a variable under this condition. `splits`: it matters whether the value is empty, so both cases are
        distinguished."""
        tree = self.variables.lookup(name)
        if tree is not None:
            if splits and _may_be_empty(tree):
                tree = transform(tree, lambda leaf: leaf, harden=True)
            value: Any = self.world.follow(tree)
            if isinstance(value, Reference):
                return self.leaf(value.name)
            found: Leaf = Outside(DEPENDS) if value is None else value
            return found
        if name == "@":
            return Outside(FROM_COMMAND_LINE)
        reason = FROM_COMMAND_LINE if name.isdigit() else FROM_ENVIRONMENT
        if name in ALWAYS_SET:
            return Outside("not known before it runs" if not name.isalpha() else reason)
        default = 0 if self.variables.sets(name) else 1
        fork: Any = Fork(self.variables.point(name), (UNSET, Outside(reason)), True, default)
        given: Leaf | None = self.world.follow(fork)
        return given or Outside(reason)

    def parameter_into(self, fields: Fields, p: Param, source: Source, join: bool) -> None:
        here = source.place(p.start, p.end)
        leaf = self.leaf("@" if p.name == "*" else p.name, splits=p.op == ":+")
        if p.indirect:
            leaf = self.indirect(p, leaf, source)
        if p.index is not None and not p.indirect:
            leaf = self.subscripted(p, leaf, source)
        elif isinstance(leaf, Table):
            leaf = UNSET
        elif isinstance(leaf, Array) and p.index is None and not p.length and not self.variables.zsh:
            leaf = first_of(leaf)
        if p.length:
            self.length_into(fields, p, leaf, here, join)
            return
        op = p.op.lstrip(":") if p.op != ":" else p.op
        if op in ("-", "=", "+", "?") and p.arg is not None:
            given = self.default(fields, p, op, leaf, source, join)
            if given is None:
                return
            leaf = given
        elif op:
            leaf = self.changed(p, leaf, source, here)
        self.value_into(fields, p, leaf, here, join)

    def value_into(self, fields: Fields, p: Param, leaf: Leaf, here: Place, join: bool) -> None:
        if self.generous and isinstance(leaf, Unset) and not p.op and p.index is None:
            leaf = self.given_elsewhere(p)
        if isinstance(leaf, (Unset, Table)):
            if p.quoted and p.index is None:
                fields.expanded((), True)
        elif isinstance(leaf, Outside):
            if p.index in ("@", "*") and not join:
                self.unknown_words(fields, p, here, leaf.reason)
            else:
                fields.expanded((Fragment(None, here, False, leaf.reason),), p.quoted or join)
        elif isinstance(leaf, Scalar):
            whole = self.variables.zsh and not p.split and bool(leaf.text)
            fields.expanded(through(leaf.fragments, here), p.quoted or join or whole)
        elif join or (p.quoted and p.index != "@"):
            fields.expanded(joined(leaf, here), True)
        elif p.quoted or self.variables.zsh:
            fields.array(leaf.words, here)
        else:
            for i, word in enumerate(leaf.words):
                if i:
                    fields.end(split=True)
                fields.expanded(through(word.fragments, here), False)
                fields.many = True

    def given_elsewhere(self, p: Param) -> Leaf:
        """The value to assume for a variable that is unset on this way. Usually none; but if every value that the script sets elsewhere is
        one word and not a flag (`if …; then SIZE=8192; fi`), or is given to the script (`--size) SIZE=$2 ;;`), it may come from the
        environment."""
        tree = self.variables.lookup(p.name) if not p.indirect else None
        if tree is None or is_later(tree):
            return UNSET
        found = [leaf for leaf in parts(tree) if isinstance(leaf, Scalar)]
        texts = [leaf.text for leaf in found]
        known = [text for text in texts if text is not None]
        if known and all(text and text[0] != "-" and not re.search(r"\s", text) for text in known):
            return Outside(FROM_ENVIRONMENT)
        if found and not known and all(unknown_reason(leaf) in GIVEN for leaf in found):
            return Outside(FROM_COMMAND_LINE)
        return UNSET

    def unknown_words(self, fields: Fields, p: Param, here: Place, reason: str) -> None:
        fields.array((unknown(here, reason, splat=True),), here) if p.quoted else fields.expanded(
            (Fragment(None, here, False, reason),), False
        )

    def subscripted(self, p: Param, leaf: Leaf, source: Source) -> Leaf:
        """`${A[@]}`, `${A[2]}`, `${M[key]}`."""
        if p.index in ("@", "*"):
            if isinstance(leaf, Scalar):
                return Array(
                    (Word(leaf.fragments, hull([f.place for f in leaf.fragments] or [source.place(p.start, p.end)])),)
                )
            if isinstance(leaf, Table):
                return Array(
                    tuple(
                        Word(v.fragments, hull(f.place for f in v.fragments))
                        for v in leaf.items.values()
                        if v.fragments
                    )
                )
            return Array(()) if isinstance(leaf, Unset) and p.op in ("", "#", "%", "/", "//") else leaf
        assert isinstance(p.index, WordNode)
        if isinstance(leaf, Table):
            self.tell_apart(p.index)
        key = self.text(p.index, source)
        if isinstance(leaf, Table):
            return self.one_of(p, leaf.items, source) if key is None else leaf.items.get(key, UNSET)
        if isinstance(leaf, Array):
            if any(w.splat for w in leaf.words):
                return Outside(DEPENDS)
            number = None if key is None else arithmetic.evaluate(key, self.number_text)
            if number is None:
                return self.one_of(p, {str(i): Scalar(w.fragments) for i, w in enumerate(leaf.words)}, source)
            number -= self.variables.zsh and number > 0
            inside = -len(leaf.words) <= number < len(leaf.words)
            return Scalar(leaf.words[number].fragments) if inside else UNSET
        return leaf if key == "0" or isinstance(leaf, (Unset, Outside)) else UNSET

    def tell_apart(self, subscript: WordNode) -> None:
        """A subscript is looked at in all ways, not only in those of defaults (`NAME=${1:-small}`), as the subject of `case` is."""
        for part in subscript.parts:
            tree = self.variables.lookup(part.name) if isinstance(part, Param) else None
            if tree is not None:
                self.world.follow(transform(tree, lambda leaf: leaf, harden=True))

    def one_of(self, p: Param, items: Mapping[str, Scalar], source: Source) -> Leaf:
        """`${M[$1]}`: any of the entries; none as well if the expansion says what then holds (`${M[$1]:-…}`)."""
        keys = ("", *items) if p.op.lstrip(":") in ("-", "=", "+", "?") and p.arg is not None else tuple(items)
        if not 1 < len(keys) <= MAX_ENTRIES or not isinstance(p.index, WordNode):
            return Outside(DEPENDS)
        written = source.text[p.index.start : p.index.end]
        named = ONE_NAME.match(written)
        fork: Any = Fork(
            self.variables.entry(named[1] if named else written, keys), tuple(items.get(key, UNSET) for key in keys)
        )
        found: Leaf | None = self.world.follow(fork)
        return Outside(DEPENDS) if found is None else found

    def indirect(self, p: Param, leaf: Leaf, source: Source) -> Leaf:
        """`${!X}`: the variable that X names; `${!A[@]}`: the keys."""
        here = source.place(p.start, p.end)
        if p.index in ("@", "*"):
            if isinstance(leaf, Table):
                return Array(tuple(Word((Fragment(k, here, False, fixed=True),), here) for k in leaf.items))
            if isinstance(leaf, Array) and not any(w.splat for w in leaf.words):
                return Array(
                    tuple(Word((Fragment(str(i), here, False, fixed=True),), here) for i in range(len(leaf.words)))
                )
            return Outside(DEPENDS)
        if isinstance(leaf, Scalar) and leaf.text and re.fullmatch(r"[A-Za-z_]\w*|\d+", leaf.text):
            target = self.leaf(leaf.text)
            return first_of(target) if isinstance(target, Array) else target
        return Outside(DEPENDS)

    def length_into(self, fields: Fields, p: Param, leaf: Leaf, here: Place, join: bool) -> None:
        size: int | None = None
        if isinstance(leaf, Unset):
            size = 0
        elif isinstance(leaf, Array):
            size = None if any(w.splat for w in leaf.words) else len(leaf.words)
            if p.index is None and p.name != "@":
                text = leaf.words[0].text if leaf.words else ""
                size = None if text is None else len(text)
        elif isinstance(leaf, Scalar):
            text = leaf.text
            size = None if text is None else len(text)
        fragment = (
            Fragment(None, here, False, "a length") if size is None else Fragment(str(size), here, False, fixed=True)
        )
        fields.expanded((fragment,), p.quoted or join)

    def default(self, fields: Fields, p: Param, op: str, leaf: Leaf, source: Source, join: bool) -> Leaf | None:
        """`${X:-…}` and similar; None if the argument has been expanded in place of the value."""
        assert p.arg is not None
        if op == "+" and isinstance(leaf, Outside) and _only_itself(p):
            return leaf
        given = self.is_given(p, op, leaf)
        if op == "?":
            return leaf if given is not False else Outside(FROM_ENVIRONMENT)
        if given is None:
            return Outside(DEPENDS if isinstance(leaf, Outside) else unknown_reason(leaf))
        if (op == "+") == given:
            via = source.place(p.start, p.end)
            before = len(fields.current), len(fields.words)
            if p.quoted and not p.arg.parts:
                fields.expanded((), True)
            self.into(fields, p.arg.parts, source, not p.quoted, join)
            if op != "+":
                mark_via(fields, before, via)
            return None
        return UNSET if op == "+" else leaf

    def is_given(self, p: Param, op: str, leaf: Leaf) -> bool | None:
        """Whether a parameter is set (and, with a colon, not empty)."""
        colon = p.op.startswith(":")
        if isinstance(leaf, Unset):
            return False
        if isinstance(leaf, Outside):
            if leaf.reason == DEPENDS or p.name in ALWAYS_SET or self.variables.lookup(p.name) is not None:
                return None
            fork: Any = Fork(self.variables.point(p.name), (False, True), op != "+", 0)
            given: bool | None = self.world.follow(fork)
            return given
        if isinstance(leaf, Array):
            if any(w.splat for w in leaf.words):
                return True if any(not w.splat for w in leaf.words) else None
            return bool(leaf.words)
        if not colon or not isinstance(leaf, Scalar):
            return True
        if op == "+" and leaf.fragments and all(f.text is None for f in leaf.fragments):
            either: Any = Fork(self.variables.point(p.name), (False, True))
            told: bool | None = self.world.follow(either)
            return told
        return is_nonempty(leaf.fragments)

    def changed(self, p: Param, leaf: Leaf, source: Source, here: Place) -> Leaf:
        """`${X#…}`, `${X/a/b}`, `${X^^}`, `${X:1:2}`."""
        if isinstance(leaf, Array):
            if p.op == ":":
                return self.array_slice(p, leaf, source)
            words = []
            for word in leaf.words:
                fragments = self.changed_text(p, word.fragments, source, here)
                words.append(
                    unknown(here, DEPENDS, splat=True)
                    if word.splat or fragments is None
                    else Word(fragments, word.place)
                )
            return Array(tuple(words))
        if isinstance(leaf, Scalar):
            fragments = self.changed_text(p, leaf.fragments, source, here)
            return Outside(unknown_reason(leaf) or DEPENDS) if fragments is None else Scalar(fragments)
        return leaf

    def array_slice(self, p: Param, leaf: Array, source: Source) -> Leaf:
        start = self.arithmetic(p.arg, source) if p.arg else 0
        size = self.arithmetic(p.second, source) if p.second else len(leaf.words)
        if start is None or size is None or start < 0 or size < 0 or any(w.splat for w in leaf.words):
            return Array((unknown(source.place(p.start, p.end), DEPENDS, splat=True),))
        if p.name in ("@", "*"):
            start = max(start - 1, 0)
        return Array(leaf.words[start : start + size])

    def changed_text(
        self, p: Param, fragments: tuple[Fragment, ...], source: Source, here: Place
    ) -> tuple[Fragment, ...] | None:
        word = Word(fragments, here)
        text = word.text
        if p.op == "@Q":
            return quoted(fragments, here)
        if text is None:
            return None
        if p.op in ("^^", ",,", "^", ","):
            return self.changed_case(p, text, here)
        if p.op == ":":
            return self.substring(p, word, text, source)
        pattern = self.pattern(p.arg, source) if p.arg else ""
        compiled = None if pattern is None else compile_pattern(pattern)
        if compiled is None or not affordable(pattern or "", len(text), len(text)):
            return None
        if p.op in ("/", "//"):
            return self.replaced(p, word, text, compiled, pattern or "", source)
        return stripped(word, text, compiled, p.op)

    def changed_case(self, p: Param, text: str, here: Place) -> tuple[Fragment, ...] | None:
        if p.arg is not None and p.arg.parts:
            return None
        change = str.upper if p.op[0] == "^" else str.lower
        changed = change(text) if len(p.op) == 2 else change(text[:1]) + text[1:]
        return (Fragment(changed, here, False, fixed=True),)

    def substring(self, p: Param, word: Word, text: str, source: Source) -> tuple[Fragment, ...] | None:
        start = self.arithmetic(p.arg, source) if p.arg else 0
        size = self.arithmetic(p.second, source) if p.second else len(text)
        if start is None or size is None:
            return None
        start = max(start + len(text), 0) if start < 0 else min(start, len(text))
        stop = len(text) + size if size < 0 else min(start + size, len(text))
        return word.slice(start, stop) if start < stop else ()

    def replaced(
        self, p: Param, word: Word, text: str, compiled: re.Pattern[str], pattern: str, source: Source
    ) -> tuple[Fragment, ...] | None:
        if pattern[:1] in ("#", "%") or not pattern:
            return None
        new = self.scalar(p.second, source) if p.second else ()
        found: list[Fragment] = []
        position = 0
        for m in compiled.finditer(text):
            if m.start() == m.end():
                continue
            found.extend(word.slice(position, m.start()) if position < m.start() else ())
            found.extend(new)
            position = m.end()
            if p.op == "/":
                break
        found.extend(word.slice(position, len(text)) if position < len(text) else ())
        return tuple(found)


def _only_itself(p: Param) -> bool:
    """`${A[@]+"${A[@]}"}`: the array, or no words; an array may have no words, too."""
    parts = p.arg.parts if p.arg is not None else ()
    return (
        p.index == "@"
        and len(parts) == 1
        and isinstance(parts[0], Param)
        and parts[0].name == p.name
        and parts[0].index == "@"
    )


def literal_fragments(part: Lit, source: Source) -> tuple[Fragment, ...]:
    if part.verbatim:
        return source.fragments(part.start, part.end) if part.start < part.end else ()
    return (Fragment(part.text, source.place(part.start, part.end), False),)


def stripped(word: Word, text: str, compiled: re.Pattern[str], op: str) -> tuple[Fragment, ...]:
    """`${X#pattern}` and similar: a part of the text, which keeps its places."""
    front = op.startswith("#")
    lengths = range(len(text) + 1) if len(op) == 1 else range(len(text), -1, -1)
    for size in lengths:
        piece = text[:size] if front else text[len(text) - size :]
        if compiled.fullmatch(piece):
            start, stop = (size, len(text)) if front else (0, len(text) - size)
            return word.slice(start, stop) if start < stop else ()
    return word.fragments


def first_of(array: Array) -> Scalar | Unset | Outside:
    if not array.words:
        return UNSET
    return Outside(array.words[0].reason) if array.words[0].splat else Scalar(array.words[0].fragments)


def joined(array: Array, here: Place) -> tuple[Fragment, ...]:
    """`"${A[*]}"`: the words separated by blanks."""
    found: list[Fragment] = []
    for i, word in enumerate(array.words):
        if i:
            found.append(Fragment(" ", here, False, fixed=True))
        found.extend(through(word.fragments, here))
    return tuple(found)


def _may_be_empty(tree: Any) -> bool:
    """Whether only the environment decides if a value is empty: `${X:-}`."""
    every = list(parts(tree))
    return all(not isinstance(p, TREES) or (isinstance(p, Fork) and p.soft) for p in every) and any(
        isinstance(p, Unset) or (isinstance(p, Scalar) and is_nonempty(p.fragments) is False) for p in every
    )


def is_nonempty(fragments: Sequence[Fragment]) -> bool | None:
    """Whether a string has characters; None if unknown."""
    if any(f.text for f in fragments):
        return True
    return None if any(f.text is None for f in fragments) else False


def unknown_reason(leaf: Leaf) -> str:
    if isinstance(leaf, Outside):
        return leaf.reason
    if isinstance(leaf, Scalar):
        return next((f.reason for f in leaf.fragments if f.text is None), DEPENDS)
    return DEPENDS


def mark_via(fields: Fields, before: tuple[int, int], via: Place) -> None:
    """Record that what was added since `before` came through the expansion at `via`."""
    fragments, words = before
    if len(fields.words) > words:
        fragments = 0
        for i in range(words, len(fields.words)):
            word = fields.words[i]
            fields.words[i] = Word(through(word.fragments, via), word.place, word.splat, word.scalar)
    fields.current[fragments:] = through(fields.current[fragments:], via)
