"""Files that a script writes in here-documents for other programs: a manifest (`kubectl apply -f - <<EOF`, `cat > compose.yaml <<EOF`), a
Dockerfile, a unit, a Makefile, another script.

The files that the script itself runs are read by the shell's reader; this one reads the others, each by the name that it is written to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.carriers import BY_KIND, Read
from spec_lsp.syntax.edited import holds
from spec_lsp.syntax.kinds import kind_of
from spec_lsp.syntax.launch import Document, Launch
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.embedding import CommandResult, read_script
from spec_lsp.syntax.shell.streams import READ
from spec_lsp.syntax.source import Source, embedded
from spec_lsp.syntax.standing import Launches
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.worlds import together

HERE_DOCUMENT = expression(
    r"^(?P<line>[^\n]*(?<!<))<<(?!<)(?P<dash>-?)[ \t]*(?P<quote>[\"']?)(?P<word>[A-Za-z_]\w*)(?P=quote)(?P<rest>[^\n]*)\n",
    re.M,
)
MANIFEST = expression(r"^(?:apiVersion|services)[ \t]*:", re.M)
WRITTEN_TO = expression(
    r"(?:(?<![0-9&])>{1,2}\|?|\btee(?:[ \t]+-\S+)*)[ \t]*(?P<path>\"[^\"\n]+\"|'[^'\n]+'|[^\s<>|&;\"'()]+)"
)
EXPANSION = expression(r"\\(?P<kept>[$`\\])|\$\{[^{}\n]*\}|\$\([^()\n]*\)|\$[A-Za-z_]\w*")
EXPANDED = "the shell fills it in"


class Nested(Protocol):
    """Reads a text inside a document as a document of its own, in a language; other files by `read` instead of as the document does."""

    def __call__(self, name: str, text: str, *, language: str, read: Read = ...) -> Document: ...


@dataclass(frozen=True, slots=True)
class Written:
    """A here-document: the kind of its file (as by `kind_of`), and its text with what the shell fills in unknown."""

    kind: str
    body: Word


def with_written_files(document: Document, source: Source, nested: Nested) -> Document:
    """The document together with the launches of files that its script writes but does not run; `source` is the script's text."""
    if not holds(document.name, source.text, "<<"):
        return document
    launches = document.launches
    standing = launches.standing if isinstance(launches, Launches) else None
    anchored = Mapped(standing.anchor if standing is not None else lambda place: place)
    found = list(launches.anchored if isinstance(launches, Launches) else launches)
    problems = list(document.problems)
    for written in _written(document.name, source):
        if _told(found, anchored.place(written.body.place)):
            continue
        read = [_read(document.name, written.kind, body, nested) for body in _filled(document, written.body)]
        found += map(anchored.launch, together([((), one.launches) for one in read]))
        problems += read[0].problems if written.kind == "shell" else ()
    if len(found) == len(launches) and len(problems) == len(document.problems):
        return document
    found.sort(key=lambda one: one.extent.start)
    all_ = Launches(found, standing, launches.of) if isinstance(launches, Launches) and standing else tuple(found)
    return replace(document, launches=all_, problems=tuple(problems))


def _read(name: str, kind: str, body: Word, nested: Nested) -> CommandResult | Document:
    if kind == "shell":
        return read_script(name, body)
    inner = embedded(body)
    return remap(nested(name, inner.whole, language=kind), inner)


def _filled(document: Document, body: Word) -> list[Word]:
    """A here-document as the script fills it in, in each way through the script; with unknown values if that is not known."""
    known = [f for f in document.files if any(body.place.contains(part.place) for part in f.content.fragments)]
    in_files = [f for f in known if not f.name.startswith(READ)]
    texts = dict.fromkeys(f.content.fragments for f in in_files or known)
    return [Word(fragments, body.place) for fragments in texts] or [body]


def _told(launches: Sequence[Launch], place: Place) -> bool:
    """Whether a launch at this place is already known, because the script runs what it writes."""
    return any(place.contains(launch.place) for launch in launches)


def _written(name: str, source: Source) -> Iterator[Written]:
    """The files written in here-documents that may start SGLang."""
    text = source.text
    at = 0
    while (m := HERE_DOCUMENT.search(text, at)) is not None:
        tabs = r"\t*" if m.group("dash") else ""
        end = re.compile(rf"^{tabs}{m.group('word')}\r?$", re.M).search(text, m.end())
        stop = end.start() if end else len(text)
        at = end.end() if end else len(text)
        if m.group("line").lstrip().startswith("#") or "sglang" not in text[m.end() : stop]:
            continue
        kind = "yaml" if MANIFEST.search(text, m.end(), stop) else _kind(m, text[m.end() : stop])
        if kind:
            yield Written(kind, _body(name, source, m.end(), stop, expands=not m.group("quote")))


def _kind(opening: re.Match[str], body: str) -> str:
    """The kind of file that a here-document is written to, "" if it is not known to start anything."""
    path = WRITTEN_TO.search(opening.group("rest")) or WRITTEN_TO.search(opening.group("line"))
    kind = kind_of(path.group("path").strip("\"'"), body, None) if path else ""
    return kind if kind and BY_KIND[kind].in_here_documents else ""


def _body(name: str, source: Source, start: int, stop: int, *, expands: bool) -> Word:
    fragments: list[Fragment] = []
    at = start
    for gap in EXPANSION.finditer(source.text, start, stop) if expands else ():
        fragments.extend(source.fragments(at, gap.start()))
        kept = gap.group("kept")
        fragments.append(Fragment(kept, source.place(*gap.span()), False, "" if kept else EXPANDED))
        at = gap.end()
    fragments.extend(source.fragments(at, stop))
    return Word(tuple(fragments), Place(name, source.place(start, stop).start, source.place(start, stop).end))
