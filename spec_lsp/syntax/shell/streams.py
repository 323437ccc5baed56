"""Input and output of commands: here-documents, redirects, and files that the script writes and reads again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.syntax.launch import EmbeddedFile
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.shell.assignments import Assignments
from spec_lsp.syntax.shell.expand import Expander, bounded, written_at
from spec_lsp.syntax.shell.machine import MAX_ASSIGNED_WAYS, Machine
from spec_lsp.syntax.shell.state import FILE, INPUT, MISSING, OUTPUT
from spec_lsp.syntax.shell.values import (
    MAX_VARIANTS,
    NOWHERE,
    Fork,
    Grown,
    Scalar,
    first_leaf,
    is_later,
    parts,
    paths,
    transform,
)
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Place, Word

SIGN = "sglang"
READ = "<<"
"""Marks the name of a here-document that is not written to a file."""
UNKNOWN_IN_PATH = expression("\0[^\0]*\0")
MAX_WAYS_OF_A_FILE = 8
READS = ("<", "<<", "<<-", "<<<")
SILENT = frozenset({
    "cd", "export", "set", "source", ".", "mkdir", "sleep", "[", "test", "true", "false", ":", "pushd", "popd",
    "local", "declare", "shift", "unset", "read", "exit", "return",
})  # fmt: skip


class Streams(Assignments):
    """Standard input and output, and files. Unknown output is an unknown fragment of what is printed."""

    def set_input(self, value: Any) -> None:
        self.restore({INPUT: MISSING if value is None else value})

    def standard_input(self, redirects: Sequence[ast.Redirect], source: Source) -> Any:
        """The input of a command: a here-document, a file that the script wrote, a pipe; None if unknown."""
        for redirect in reversed(redirects):
            body = redirect.body
            if body is not None:
                end = (
                    (Fragment("\n", source.place(body.end, body.end), False, fixed=True),)
                    if redirect.op == "<<<"
                    else ()
                )
                value = self.value_of(lambda x, b=body, e=end: Scalar((*x.scalar(b, source), *e)))  # type: ignore[misc]
                return None if value is NOWHERE else value
            if redirect.op == "<" and redirect.descriptor in ("", "0"):
                key = self.path_of(redirect.target, source)
                return self.variable(FILE + key) if key else None
        return self.state.vars.get(INPUT)

    def keep_documents(self, node: ast.Simple, source: Source) -> None:
        """Keep here-documents that mention SGLang, as the script fills them in, whatever reads them (`kubectl apply -f - <<EOF`)."""
        for redirect in node.redirects:
            body = redirect.body
            if body is not None and redirect.op != "<<<" and SIGN in source.text[body.start : body.end]:
                value = self.value_of(lambda x, b=body: Scalar(x.scalar(b, source)))  # type: ignore[misc]
                if value is not NOWHERE:
                    self.state.vars[f"{FILE}{READ}{source.text[body.start : body.end]}"] = value

    def write(self, node: ast.Simple, source: Source, what: Callable[[Expander], tuple[Fragment, ...]]) -> None:
        """Output of a command goes to the file that it is redirected to, or to the substitution that reads it."""
        to_file = any(writes_file(r) for r in node.redirects)
        if not to_file and OUTPUT not in self.state.vars:
            return
        here = source.place(node.start, node.end)
        printed = self.value_of(lambda x: Scalar(bounded(what(x), here)))
        if printed is NOWHERE:
            return
        if to_file:
            self.write_to(node.redirects, source, printed)
        else:
            self.state.vars[OUTPUT] = self.concatenated(self.state.vars[OUTPUT], printed)

    def write_to(self, redirects: Sequence[ast.Redirect], source: Source, printed: Any) -> None:
        """Write a text to the file that the redirect names."""
        nothing = isinstance(printed, Scalar) and len(printed.fragments) == 1 and printed.text is None
        if nothing and not self.wrote_files:
            return
        last = [r for r in redirects if writes_file(r)][-1]
        key = self.path_of(last.target, source)
        if key:
            self.write_file(key, printed, last.op == ">>")

    def write_file(self, path: str, value: Any, append: bool) -> None:
        """Record the content of a file; `path` is in the form of `path_key`."""
        key = FILE + path
        self.wrote_files = True
        before = self.state.vars.get(key)
        if append and before is not None:
            value = self.concatenated(before, value)
        elif append:
            return
        self.state.vars[key] = value

    def print_unknown(self, node: ast.Simple, source: Source, name: str) -> None:
        if name in SILENT or (OUTPUT not in self.state.vars and not node.redirects):
            return
        # the program's place, not the command's: what is typed behind it leaves the rest of the script as it was
        program = node.words[0] if node.words else node
        here = source.place(program.start, program.end)
        self.write(node, source, lambda x: (Fragment(None, here, False, "what a command prints"),))

    def concatenated(self, left: Any, right: Any) -> Any:
        nowhere = Place(self.document, 0, 0)

        def added(a: Any, b: Any) -> Scalar:
            texts = [v.fragments if isinstance(v, Scalar) else () for v in (a, b)]
            return Scalar(bounded((*texts[0], *texts[1]), nowhere))

        if paths(left, MAX_ASSIGNED_WAYS) * paths(right, MAX_ASSIGNED_WAYS) > MAX_ASSIGNED_WAYS:
            return Grown(None, left, right, lambda front, value, back: added(value, back))
        return transform(left, lambda a: transform(right, lambda b: added(a, b)))

    # Files.

    def path_of(self, word: ast.WordNode, source: Source) -> str | None:
        """The key of the file that a word names."""
        key = self.in_common(lambda x: path_key(x.scalar(word, source)))
        return key if isinstance(key, str) else None

    def is_written(self, word: Word | str) -> bool:
        """Whether a path is that of a file that the script has written."""
        key = plain_path(word) if isinstance(word, str) else path_key(word.fragments)
        return self.wrote_files and key is not None and self.variable(FILE + key) is not None

    def written_text(self, key: str, otherwise: Place) -> Word | None:
        """The text of a file that the script wrote; the first if it was written in several ways."""
        value = self.variable(FILE + key)
        value = first_leaf(value, self)
        if not isinstance(value, Scalar) or not value.fragments:
            return None
        return Word(value.fragments, written_at(value.fragments, otherwise))


def writes_file(redirect: ast.Redirect) -> bool:
    """Whether a redirect sends output to a file."""
    return redirect.op in (">", ">>", ">|", "&>", "&>>") and redirect.descriptor in ("", "1")


def path_key(path: Sequence[Fragment]) -> str | None:
    """The key of a file: its path, in which an unknown value is identified by its origin; None for any other path."""
    pieces = []
    for fragment in path:
        if fragment.text is not None:
            pieces.append(fragment.text)
        elif fragment.via:
            pieces.append("\0{}:{}:{}\0".format(*fragment.place))
        else:
            return None
    return plain_path("".join(pieces))


def plain_path(path: str) -> str:
    """A path without leading `./`."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def by_default(tree: Any) -> Any:
    """The tree with the default of each fork that has one."""
    while isinstance(tree, Fork) and tree.soft:
        tree = tree.arms[tree.default]
    return Fork(tree.point, tuple(map(by_default, tree.arms))) if isinstance(tree, Fork) else tree


def written_files(variables: Mapping[str, Any], machine: Machine) -> Iterator[EmbeddedFile]:
    """The files that a script has written, in each way that they may be written; if there are too many ways, in some that cover them."""
    for name, tree in variables.items():
        if not name.startswith(FILE):
            continue
        many = is_later(tree)
        ways = machine.some_ways(tree) if many else parts(by_default(tree))
        known = (v for v in ways if isinstance(v, Scalar) and v.fragments)
        for value in islice(known, MAX_VARIANTS if many else MAX_WAYS_OF_A_FILE):
            yield EmbeddedFile(
                UNKNOWN_IN_PATH.sub("?", name[len(FILE) :]), Word(value.fragments, value.fragments[0].place)
            )
