"""YAML documents as nodes, even if their text is broken.

A file is split at its `---` lines, so that a broken document does not affect the others; in a broken one, unreadable lines are left out
until the rest can be read. Nodes are PyYAML's, whose marks count characters of the document's own text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import yaml

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.source import HOLE
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.config import behind_properties, nests_too_deep, where_broken, without_line, without_mark
from spec_lsp.syntax.yaml.scalars import scalar_word
from spec_lsp.syntax.yaml.templates import FROM_TEMPLATE, FROM_WORKFLOW, Hole, stretches
from spec_lsp.syntax.yaml.values import Printed

Stretch = tuple[int, int]

MAX_REPAIRS = 12
MAX_LENGTH = 1_000_000
MAX_REMEMBERED = 256
MARGIN = expression(r"(?: |-(?= ))*")

_Plain: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache(maxsize=20_000)
def _tag(value: str) -> str:
    """The type of a plain scalar (`tag:yaml.org,2002:int`), cached: texts are read repeatedly, with nearly the same scalars."""
    return str(_resolver.resolve(yaml.ScalarNode, value, (True, False)))  # type: ignore[no-untyped-call]


_resolver = yaml.resolver.Resolver()


class _Loader(_Plain):  # type: ignore[misc]
    """PyYAML's loader without a feature that our documents do not need: checking at each node whether its path has a special tag."""

    def descend_resolver(self, parent: Node, index: Node) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _tag(value)
        return str(_Plain.resolve(self, kind, value, implicit))


_roots: OrderedDict[str, Any] = OrderedDict()
Node = Any


# --- text to nodes -----------------------------------------------------------------------------------------------------


def documents(text: str) -> Iterator[tuple[int, int]]:
    """The separate documents of a file, each from its `---`."""
    cuts = sorted(at for mark in ("\n---", "\n...") for at in _separators(text, mark))
    yield from zip([0, *cuts], [*cuts, len(text)], strict=True)


def _separators(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        behind = at + len(mark)
        if text[behind : behind + 1] in ("", " ", "\t", "\r", "\n"):
            yield at + 1
        at = text.find(mark, behind)


def root_of(text: str) -> Node:
    """The root of the one document in a text, None if there is none or nothing can be read. The most recent documents are remembered."""
    if text in _roots:
        _roots.move_to_end(text)
        return _roots[text]
    root = _read(without_mark(text))
    _roots[text] = root
    if len(_roots) > MAX_REMEMBERED:
        _roots.popitem(last=False)
    return root


def too_much(text: str) -> str:
    """Why a document is not read, phrased to follow the file's name; empty if it is read."""
    if len(text) > MAX_LENGTH:
        return f"has a document of more than {MAX_LENGTH:,} characters"
    return "is nested too deeply" if nests_too_deep(text) else ""


SURROGATE = expression(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""An unpaired surrogate, escaped as in JSON: PyYAML accepts it, its loader in C does not. Each other character keeps its place."""


def _read(text: str) -> Node:
    """The root of a text, repaired until it can be read: open quotes and brackets first."""
    if too_much(text):
        return None
    if "\\u" in text:
        text = SURROGATE.sub(r"\1\\ufffd", text)
    closed: list[int] = []
    """Where a bracket was inserted."""
    for _ in range(MAX_REPAIRS):
        checkpoint()
        root, problem = _compose(text)
        if problem is None:
            return _without(root, closed) if closed else root
        quote, bracket = _left_open(text, problem)
        end = _end_of_flow(text, bracket) if bracket is not None else None
        if quote is not None:
            repaired = f"{text[:quote]} {text[quote + 1 :]}"
        elif bracket is not None and end is not None:
            repaired = f"{text[:end]}{']' if text[bracket] == '[' else '}'}{text[end:]}"
            closed = [*(at + (at >= end) for at in closed), end]
        else:
            repaired = without_line(text, where_broken(problem, text)[2])
        if repaired == text:
            return None
        text = repaired
    return None


def _compose(text: str) -> tuple[Node, Exception | None]:
    loader = _Loader(text)
    try:
        return (loader.get_node() if loader.check_node() else None), None
    except Exception as problem:  # PyYAML raises ValueError, TypeError and others besides its own
        return None, problem
    finally:
        loader.dispose()


def _left_open(text: str, problem: Exception) -> tuple[int | None, int | None]:
    """The quote that spans several lines up to the place where a loader failed, and the innermost bracket that is open there."""
    mark = getattr(problem, "problem_mark", None)
    if mark is None:
        return None, None
    if getattr(problem, "context", None) == "while scanning a quoted scalar":
        return int(problem.context_mark.index), None  # type: ignore[attr-defined]
    quoted: Any = None
    flows: list[Any] = []
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.ScalarEvent) and event.style in ("'", '"'):
                quoted = event
            elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
                flows.append(event)
            elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                flows.pop()
    except Exception:
        pass
    open_flows = [e.start_mark.index for e in flows if text[e.start_mark.index : e.start_mark.index + 1] in ("[", "{")]
    over_lines = quoted is not None and quoted.start_mark.line < quoted.end_mark.line >= mark.line - 1
    return int(quoted.start_mark.index) if over_lines else None, open_flows[-1] if open_flows else None


def _end_of_flow(text: str, bracket: int) -> int | None:
    """Where an open bracket should be closed: at the end of its line, or of the last line below that is indented further.

    None if it is closed within these lines.
    """
    start = text.rfind("\n", 0, bracket) + 1
    margin = MARGIN.match(text, start, bracket)
    indent = margin.end() - start if margin else 0
    end = position = (text.find("\n", bracket) + 1 or len(text) + 1) - 1
    while position < len(text):
        stop = (text.find("\n", position + 1) + 1 or len(text) + 1) - 1
        line = text[position + 1 : stop]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            break
        end = stop if line.strip() else end
        position = stop
    inside = text[bracket:end]
    if inside.count("[") + inside.count("{") <= inside.count("]") + inside.count("}"):
        return None
    comment = inside.rfind(" #")
    return bracket + comment if comment > inside.rfind("\n") else bracket + len(inside.rstrip())


@dataclass(frozen=True, slots=True)
class _Mark:
    index: int
    line: int


def _without(root: Node, closed: Sequence[int]) -> Node:
    """The nodes, with marks that do not count inserted brackets."""
    seen: set[int] = set()
    nodes = [root] if root is not None else []
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for name in ("start_mark", "end_mark"):
            mark = getattr(node, name)
            setattr(node, name, _Mark(mark.index - sum(at < mark.index for at in closed), mark.line))
        if not isinstance(node, yaml.ScalarNode):
            nodes += [n for item in node.value for n in (item if isinstance(item, tuple) else (item,))]
    return root


# --- nodes in their file -----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Part:
    """One document of a file: its text (templates masked), which starts at character `base` of the file.

    `holes`, `hidden`, `printed` and `loops` are those of its templates, in order, in offsets of the file.
    """

    document: str
    text: str
    base: int
    holes: Sequence[Hole] = ()
    hidden: Sequence[Stretch] = ()
    printed: Sequence[Stretch] = ()
    loops: Sequence[Stretch] = ()
    root: Node = None
    printer: Callable[[Hole, Mapping[str, Word]], Printed | None] | None = None
    """Computes the output of templates, as far as it is known, from the known values of names."""
    lines: Callable[[int], list[Word]] = lambda start: []
    """The items that a template prints as lines, by where these start; none if unknown."""
    elements: Callable[[int], list[Mapping[str, Word]]] = lambda start: []
    """The values of names in each round of a loop over lines, by where these start; nothing if unknown."""
    names: Mapping[str, Word] = field(default_factory=dict)
    """The known values of names in templates."""
    signs: Sequence[int] | None = None
    """Where the text mentions SGLang; None: it may do so anywhere."""
    _words: dict[int, Word] = field(default_factory=dict)
    _entries: dict[int, Mapping[str, tuple[Node, Node]]] = field(default_factory=dict)
    _expressions: Mapping[int, str] | None = None
    _foreign: dict[int, tuple[Part, Place]] = field(default_factory=dict)
    """Nodes of other files, and where this one includes them."""

    def place(self, start: int, end: int) -> Place:
        return Place(self.document, self.base + start, self.base + max(start, end))

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        holes = self.holes
        if holes:
            low = bisect_right(holes, self.base + start, key=lambda h: h.end)
            holes = holes[low : bisect_left(holes, self.base + end, key=lambda h: h.start)]
        if not holes:
            return (Fragment(self.text[start:end], self.place(start, end)),)
        found: list[Fragment] = []
        low, high = self.base + start, self.base + end
        for a, b, hole in stretches(holes, low, high):
            if hole is None:
                found.append(Fragment(self.text[a - self.base : b - self.base], Place(self.document, a, b)))
            elif not hole.silent:
                known = self.prints_in(hole, alone=(a, b) == (low, high)) if b - a == hole.end - hole.start else None
                unknown = Fragment(None, Place(self.document, hole.start, hole.end), False, hole.reason)
                found += known if known is not None else (unknown,)
        return tuple(found)

    def prints_in(self, hole: Hole, *, alone: bool) -> tuple[Fragment, ...] | None:
        """The output of a template in the middle of a line, None if unknown. Quotes around a whole scalar belong to YAML."""
        printed = self.printer(hole, self.names) if self.printer is not None else None
        if printed is None:
            return None
        return printed.fragments if alone else printed.quoted

    def prints(self, start: int, end: int) -> Place | None:
        """The first line between two offsets on which a template prints something."""
        low = bisect_right(self.printed, self.base + start, key=lambda h: h[1])
        if low < len(self.printed) and self.printed[low][0] < self.base + end:
            return Place(self.document, *self.printed[low])
        return None

    def printed_items(self, start: int, end: int) -> list[Word]:
        """The items that templates print between two offsets: if unknown, one that stands for any number of them."""
        found: list[Word] = []
        while (place := self.prints(start, end)) is not None:
            known = self.lines(place.start)
            found += [brought_in(word, place) for word in known] or [_any_words(place)]
            start = place.end - self.base
        return found

    def repeated(self, nodes: Sequence[Node]) -> list[Word]:
        """The items that a loop prints; none if the values that it iterates over are unknown."""
        found: list[Word] = []
        start = self.loop_of(nodes[0])
        for names in self.elements(start) if start is not None else ():
            inner = replace(self, names={**self.names, **names}, _words={})
            found += (inner.word(node) for node in nodes)
        return found

    def in_loops(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, list[Node]]]:
        """Nodes, with those of the same loop grouped at the first of them; None at the end."""
        for loop, group in groupby(nodes, self.loop_of):
            listed = list(group)
            if loop is None:
                yield from ((node, []) for node in listed)
            else:
                yield listed[0], listed
        yield None, []

    def loop_of(self, node: Node) -> int | None:
        """Where the innermost loop around a node starts."""
        at = self.base + node.start_mark.index
        return max((start for start, end in self.loops if start <= at < end), default=None)

    @property
    def expressions(self) -> Mapping[int, str]:
        """Where the `${{ … }}` of a workflow are in the file, and their content."""
        if self._expressions is None:
            self._expressions = {hole.start: hole.text for hole in self.holes if hole.reason == FROM_WORKFLOW}
        return self._expressions

    @property
    def is_compose(self) -> bool:
        return is_mapping(self.get(self.root, "services")) and self.get(self.root, "apiVersion") is None

    def is_nothing(self, node: Node) -> bool:
        """Whether a place is empty: not even an empty quoted text."""
        if not is_scalar(node) or node.style:
            return False
        return (is_null(node) and not node.value) or (HOLE in node.value and not self.word(node).fragments)

    def repeats(self, node: Node) -> bool:
        """Whether a template prints a node any number of times."""
        at = self.base + node.start_mark.index
        return any(start <= at < end for start, end in self.loops)

    def speaks(self, node: Node) -> bool:
        """Whether something in a node mentions SGLang."""
        if self.signs is None or id(node) in self._foreign:
            return True
        at = bisect_left(self.signs, node.start_mark.index)
        return at < len(self.signs) and self.signs[at] < node.end_mark.index

    def span(self, node: Node) -> tuple[int, int]:
        """The characters of a node, without the blank lines and comments after a block."""
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.ScalarNode):
            start = behind_properties(self.text, start, end)
            if node.style in ("|", ">"):
                end = start + len(self.text[start:end].rstrip())
            return start, end
        if not node.flow_style and node.value:
            last = node.value[-1]
            last = last[1] if isinstance(last, tuple) else last
            if start <= last.start_mark.index <= end:
                end = max(start, min(end, self.span(last)[1]))
        return start, end

    def place_of(self, node: Node) -> Place:
        foreign = self._foreign.get(id(node))
        return foreign[1] if foreign is not None else self.place(*self.span(node))

    def adopt(self, node: Node, part: Part, reference: Place) -> None:
        """Make a node of another part, with everything below it, a node of this one: a reader sees it where it is included."""
        nodes = [node]
        while nodes:
            one = nodes.pop()
            if id(one) not in self._foreign and one is not None:
                self._foreign[id(one)] = (part, reference)
                if not isinstance(one, yaml.ScalarNode):
                    nodes += [n for item in one.value for n in (item if isinstance(item, tuple) else (item,))]

    def word(self, node: Node) -> Word:
        """The text of a scalar; an unknown word for anything else."""
        known = self._words.get(id(node))
        foreign = self._foreign.get(id(node)) if known is None else None
        if foreign is not None:
            known = brought_in(foreign[0].word(node), foreign[1])
            self._words[id(node)] = known
        if known is None:
            start, end = self.span(node)
            if isinstance(node, yaml.ScalarNode) and self.is_as_written(node, start, end):
                quotes = 1 if node.style else 0
                fragment = Fragment(node.value, self.place(start + quotes, end - quotes))
                known = Word((fragment,), self.place(start, end))
            elif isinstance(node, yaml.ScalarNode):
                low = bisect_right(self.hidden, self.base + start, key=lambda h: h[1])
                high = bisect_left(self.hidden, self.base + node.end_mark.index, low, key=lambda h: h[0])
                moved = [(a - self.base, b - self.base) for a, b in self.hidden[low:high]]
                stop = node.end_mark.index if node.style in ("|", ">") else end
                known = scalar_word(node.value, node.style, start, stop, self, moved)
                known = known._replace(place=self.place(start, end))
            else:
                place = self.place(start, end)
                known = Word((Fragment(None, place, False, "not one value"),), place)
            self._words[id(node)] = known
        return known

    def is_as_written(self, node: Node, start: int, end: int) -> bool:
        """Whether the characters of a scalar are its text, apart from enclosing quotes."""
        if self.holes or self.hidden or not node.value or node.style in ("|", ">"):
            return False
        quotes = 1 if node.style else 0
        return bool(self.text[start + quotes : end - quotes] == node.value)

    def entries(self, node: Node) -> Mapping[str, tuple[Node, Node]]:
        """A mapping's keys and values, those of merged mappings (`<<`) last; empty for anything else."""
        found = self._entries.get(id(node))
        foreign = self._foreign.get(id(node)) if found is None else None
        if foreign is not None:
            return foreign[0].entries(node)
        if found is None:
            self._entries[id(node)] = {}  # an alias may lead here again
            found = dict(self._pairs(node)) if isinstance(node, yaml.MappingNode) else {}
            self._entries[id(node)] = found
        return found

    def put(self, node: Node, entries: Mapping[str, tuple[Node, Node]]) -> None:
        """Replace the entries of a mapping."""
        self._entries[id(node)] = entries

    def _pairs(self, node: Node) -> Iterator[tuple[str, tuple[Node, Node]]]:
        own = [(k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode)]
        for key, value in own:
            if key.value == "<<" and not key.style:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for one in reversed(merged):
                    yield from self.entries(one).items()
        for key, value in own:
            if key.value != "<<" or key.style:
                named = self.word(key).text if HOLE in key.value else None
                yield named or key.value, (key, value)

    def get(self, node: Node, *path: str) -> Node:
        """The value at a path of keys, None if there is none."""
        for key in path:
            if node is None:
                return None
            found = self.entries(node).get(key)
            node = found[1] if found else None
        return node

    def text_at(self, node: Node, *path: str) -> str | None:
        """The text of the scalar at a path, None if there is none or it is unknown."""
        found = self.get(node, *path)
        return self.word(found).text if isinstance(found, yaml.ScalarNode) else None


def brought_in(word: Word, reference: Place) -> Word:
    """A word that is written in another file, but seen where a reference to it is."""
    fragments = tuple(f._replace(via=(reference, *f.via)) for f in word.fragments)
    return word._replace(fragments=fragments, place=reference)


def _any_words(place: Place) -> Word:
    return Word((Fragment(None, place, False, FROM_TEMPLATE),), place, True)


def is_scalar(node: Node) -> bool:
    return isinstance(node, yaml.ScalarNode)


def is_list(node: Node) -> bool:
    return isinstance(node, yaml.SequenceNode)


def is_mapping(node: Node) -> bool:
    return isinstance(node, yaml.MappingNode)


def items(node: Node) -> list[Node]:
    """The items of a list; none for anything else."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def is_null(node: Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
