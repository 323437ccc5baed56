"""Diagnostics: pulled if the client supports it, else pushed, never both.

A document's report holds the findings of its own analysis, and findings of other open documents' launches that lie in it (a mistake written
in a `--config` file). A launch whose mistake lies in another file also shows it at the launch, with the place as related information.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types

from spec_lsp.records import dataclass
from spec_lsp.server.features.half_typed import HalfTyped
from spec_lsp.server.positions import Lines, Range
from spec_lsp.server.protocol import Written, written
from spec_lsp.server.rule_pages import rule_url
from spec_lsp.server.text import OpenText

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, Diagnostic
    from spec_lsp.server.host import Host
    from spec_lsp.server.session import Session
    from spec_lsp.syntax.standing import Standing
    from spec_lsp.syntax.word import Place

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

Item = dict[str, Any]
"""A diagnostic as the protocol writes it. Plain dictionaries: this code runs at every key, and lsprotocol's objects cost more than the
analysis."""

DOCUMENT = attrgetter("place.document")
SEVERITY = {"error": 1, "warning": 2, "information": 3, "hint": 4}
UNNECESSARY, DEPRECATED = 1, 2


class Report:
    """The diagnostics of one document, as JSON, and a hash of everything that decides them."""

    __slots__ = ("_id", "_text", "json")

    def __init__(self, json: str, text: str, result_id: str = "") -> None:
        """`text` is the document's; without `result_id` it is computed on demand."""
        self.json = json
        self._text = text
        self._id = result_id

    @property
    def is_empty(self) -> bool:
        return self.json == "[]"

    @property
    def result_id(self) -> str:
        if not self._id:
            digest = hashlib.blake2b(self._text.encode("utf-8", "surrogatepass"), digest_size=12)
            digest.update(self.json.encode())
            self._id = digest.hexdigest()
        return self._id


NOTHING = Report("[]", "", "closed")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding as shown in a document: the analysis that it comes from, its diagnostic there, and the one that is shown."""

    diagnostic: Diagnostic
    """With anchored places, where `standing` is that of the document."""
    analysis: Analysis | None
    """None for a problem with settings."""
    place: Place
    lines: Lines
    standing: Standing | None = None

    def span(self, place: Place) -> tuple[int, int]:
        """The characters of a place in the document."""
        return (place if self.standing is None else self.standing.place(place))[1:]


@dataclass(frozen=True, slots=True)
class WrittenFinding:
    """What was written of a finding last."""

    diagnostic: Diagnostic
    place: Place
    pieces: list[str]
    related: Sequence[tuple[Place, str]]
    parts: frozenset[int] | None
    """The bases of the parts of the document that it lies in; None where it lies in none, or not in this document alone."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What was reported of a document last: of its own findings, what each is as JSON and the parts that it lies in."""

    text: OpenText
    changes: int
    lines: int
    findings: Sequence[Diagnostic]
    told: Sequence[tuple[str, frozenset[int] | None]]

    def touched(self, standing: Standing) -> frozenset[int]:
        """The bases of the parts that may read otherwise since, or stand in other lines."""
        start, end = self.text.as_after(self.changes)
        lines, starts = self.text.lines, standing.starts
        first = max(bisect_right(starts, start) - 1, 0)
        as_many = len(lines) == self.lines
        behind = bisect_left(starts, lines.below(len(self.text.text) - end)) if as_many else len(starts)
        return frozenset(standing.bases[first:behind])


# --- what is said -----------------------------------------------------------------------------------------------------


class Reporter:
    """Makes reports of a session's documents."""

    def __init__(
        self, session: Session, withheld: Callable[[Sequence[Diagnostic], str, Standing | None], set[int]] | None = None
    ) -> None:
        """`withheld` says which findings in a document, by their indices, are not shown yet."""
        self._session = session
        self._withheld = withheld or (lambda diagnostics, document, standing: set())
        self._pieces: dict[tuple[object, ...], list[str]] = {}
        """The JSON of findings without their ranges: the pieces between the ranges."""
        self._same: dict[int, WrittenFinding] = {}
        """What was written, by the very diagnostic."""
        self._last: dict[str, Reported] = {}
        """By document."""

    def report(self, name: str) -> Report:
        """The report for a document, open or not."""
        fault = self._session.fault(name) if self._session.tried(name) is None else None
        items = [written(_fault(fault))] if fault is not None else []
        items += map(self._written, self._of_settings(name))
        lines = self._session.lines(name)
        own = self._session.tried(name)
        if lines is not None:
            items += self._own_written(own, name, lines) if own is not None else ()
            items += [self._written(self._told(*found, name, lines)) for found in self._of_others(name)]
        items += map(written, self._session.asked.get(name, ()))
        text = self._session.text(name)
        return _report(items, text.text if text else "")

    def _forget_but(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Drop the JSON of past findings once it outweighs that of the current ones."""
        if len(self._same) > 2 * len(diagnostics) + SPARE:
            now = {id(diagnostic) for diagnostic in diagnostics}
            self._same = {key: same for key, same in self._same.items() if key in now}

    def report_of_file(self, name: str) -> Report | None:
        """The report on a file on disk that is not open; None if it is excluded or cannot be read."""
        read = self._session.analysis_of_file(name)
        if read is None:
            return None
        text, analysis = read
        lines = Lines(text, self._session.client.encoding)
        told = (self._told(analysis, index, name, lines) for index in range(len(analysis.diagnostics)))
        return _report(map(self._written, told), text)

    def found(self, name: str, meets: Callable[[Range], bool]) -> Iterator[tuple[Item, Analysis, Diagnostic]]:
        """The findings shown in some ranges of a document: each as shown, the analysis that it comes from, and its diagnostic there."""
        lines = self._session.lines(name)
        if lines is None:
            return
        for analysis, index in self._found(name):
            one = self._told(analysis, index, name, lines)
            if meets(_told_at(one)):
                yield self._item(one), analysis, analysis.diagnostics[index]

    def _of_settings(self, name: str) -> Iterator[Finding]:
        """The settings in a document that cannot be used."""
        flaws = self._session.settings_flaws(name)
        lines = self._session.lines(name) if flaws else None
        return (Finding(flaw, None, flaw.place, lines) for flaw in flaws if lines is not None)

    def _found(self, name: str) -> Iterator[tuple[Analysis, int]]:
        """The findings shown in a document: the analysis that each comes from, and its index there."""
        own = self._session.tried(name)
        yield from ((own, index) for index in self._shown(own, name)) if own is not None else ()
        yield from self._of_others(name)

    def _shown(self, own: Analysis, name: str) -> Sequence[int]:
        """The indices of a document's own findings that are shown."""
        anchored = own.diagnostics.anchored
        hidden = self._withheld(anchored, name, own.diagnostics.standing)
        if self.users(name):
            hidden.update(i for i, d in enumerate(anchored) if d.place.document == name and _of_config_alone(d, own))
        return [i for i in range(len(anchored)) if i not in hidden] if hidden else range(len(anchored))

    def _of_others(self, name: str) -> Iterator[tuple[Analysis, int]]:
        """The findings of other documents' launches that lie in a document."""
        seen: set[tuple[str, Place]] = set()
        for user in self.users(name):
            analysis = self._session.tried(user)
            if analysis is None:
                continue
            diagnostics = analysis.diagnostics.anchored
            hidden = self._withheld(diagnostics, name, None)
            for index, diagnostic in enumerate(diagnostics):
                key = (diagnostic.rule.name, diagnostic.place)
                if diagnostic.place.document == name and index not in hidden and key not in seen:
                    seen.add(key)
                    yield analysis, index

    def users(self, name: str) -> list[str]:
        """The other open documents with launches that read this one, in order of their names."""
        for text in self._session.texts:
            self._session.tried(text.name)
        return sorted(self._session.dependants(name))

    def _told(self, analysis: Analysis, index: int, name: str, lines: Lines) -> Finding:
        """A finding of the document itself; if it lies in another file, it is shown at the launch that uses the file."""
        told = analysis.diagnostics
        anchored, own = told.anchored[index], analysis.document.name == name
        if own and anchored.place.document == name:
            return Finding(anchored, analysis, anchored.place, lines, told.standing)
        at_launch = own and analysis.launches
        place = analysis.launches[anchored.launch or 0].launch.place if at_launch else anchored.place
        return Finding(told[index], analysis, place, lines)

    def _own_written(self, own: Analysis, name: str, lines: Lines) -> list[str]:
        """A document's own findings as JSON. One whose text and lines are as they were is written as it was."""
        from spec_lsp.syntax.edited import same_ends  # not at the top: the import loads the parsers

        shown = self._shown(own, name)
        findings = [own.diagnostics.anchored[index] for index in shown]
        text, standing, last = self._session.text(name), own.diagnostics.standing, self._last.pop(name, None)
        told: list[tuple[str, frozenset[int] | None] | None] = [None] * len(findings)
        touched: frozenset[int] = frozenset()
        if last is not None and last.text is text and standing is not None:
            first, end = same_ends(last.findings, findings)
            told[:first] = last.told[:first]
            told[len(told) - end :] = last.told[len(last.told) - end :]
            touched = last.touched(standing)
        written = [
            one
            if one is not None and one[1] is not None and touched.isdisjoint(one[1])
            else self._written_with_parts(self._told(own, shown[at], name, lines))
            for at, one in enumerate(told)
        ]
        if text is not None:
            self._last[name] = Reported(text, text.changes, len(lines), findings, written)
        self._forget_but(findings)
        return [json for json, _ in written]

    def _written_with_parts(self, finding: Finding) -> tuple[str, frozenset[int] | None]:
        json, same = self._written(finding), self._same.get(id(finding.diagnostic))
        return json, same.parts if same is not None and same.diagnostic is finding.diagnostic else None

    def _written(self, finding: Finding) -> str:
        """A finding as JSON. Its text is serialized once; only the ranges are written anew each time."""
        pieces, related = self._pieces_of(finding)
        if not related:
            return f"{pieces[0]}{_told_at_written(finding)}{pieces[1]}"
        ranges = [_told_at_written(finding)]
        for place, _ in related:
            if place.document == finding.place.document:
                ranges.append(finding.lines.written_range(*finding.span(place)))
            else:
                lines = self._session.lines(place.document)
                ranges.append(lines.written_range(place.start, place.end) if lines is not None else "")
        return "".join(chain.from_iterable(zip(pieces, [*ranges, ""], strict=True)))

    def _pieces_of(self, finding: Finding) -> tuple[list[str], Sequence[tuple[Place, str]]]:
        """The pieces of a finding's JSON between its ranges, and the finding's related places."""
        d = finding.diagnostic
        same = self._same.get(id(d))
        if same is not None and same.diagnostic is d and same.place is finding.place:
            return same.pieces, same.related
        related = self._related(finding)
        documents = tuple([(message, place.document) for place, message in related])
        of = finding.analysis.document.name if finding.analysis is not None else ""
        key = (d.rule.name, d.severity, d.message, d.key, d.unnecessary, d.deprecated, of, documents)
        pieces = self._pieces.get(key)
        if pieces is None:
            pieces = written(self._item_at(finding, related, _SOMEWHERE)).split(_SOMEWHERE_WRITTEN)
            _keep(self._pieces, key, pieces)
        if all(place.document == finding.place.document for place, _ in related):
            standing = finding.standing
            parts = None if standing is None else standing.parts((finding.place, *(place for place, _ in related)))
            self._same[id(d)] = WrittenFinding(d, finding.place, pieces, related, parts)
        return pieces, related

    def _item(self, finding: Finding) -> Item:
        item: Item = json.loads(self._written(finding))
        return item

    def _item_at(self, finding: Finding, related: Sequence[tuple[Place, str]], somewhere: object) -> Item:
        """A finding as the protocol writes it, with `somewhere` in place of each range."""
        client, diagnostic = self._session.client, finding.diagnostic
        item: Item = {
            "range": somewhere,
            "severity": SEVERITY[diagnostic.severity],
            "code": diagnostic.rule.name,
            "source": "spec-lsp",
            "message": diagnostic.message,
        }
        tags = [
            t
            for t, on in ((UNNECESSARY, diagnostic.unnecessary), (DEPRECATED, diagnostic.deprecated))
            if on and t in client.tags
        ]
        if tags:
            item["tags"] = tags
        if client.code_description and (page := rule_url(diagnostic.rule.name)) is not None:
            item["codeDescription"] = {"href": page}
        if related:
            item["relatedInformation"] = [
                {"location": {"uri": self._session.uri(where.document), "range": somewhere}, "message": message}
                for where, message in related
            ]
        if client.diagnostic_data and finding.analysis is not None:
            item["data"] = {"key": diagnostic.key, "document": finding.analysis.document.name}
        return item

    def _related(self, finding: Finding) -> list[tuple[Place, str]]:
        """The other places of a finding, in documents whose lines are known."""
        diagnostic, place = finding.diagnostic, finding.place
        if not self._session.client.related_information or (not diagnostic.related and diagnostic.place is place):
            return []
        told = [(r.place, r.message) for r in diagnostic.related if r.place != place]
        if diagnostic.place != place:
            told.insert(0, (diagnostic.place, "the value is written here"))
        return [
            (where, message)
            for where, message in told
            if where.document == place.document or self._session.lines(where.document) is not None
        ]


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Keep what was made; once there is too much of it, everything is dropped."""
    if len(kept) >= MAX_PIECES:
        kept.clear()
    kept[key] = value


MAX_PIECES = 4_096
SPARE = 32
"""How many past findings are kept in addition to as many as there are now."""
_SOMEWHERE = "\0somewhere"
_SOMEWHERE_WRITTEN = written(_SOMEWHERE)
"""Stands for a range: none of our texts contains a NUL, and in a longer text the quotes around it would be escaped."""


def _told_span(finding: Finding) -> tuple[int, int]:
    """The characters to underline: only those on the flag's line if its value is on the next. What has no effect is underlined
    completely."""
    diagnostic, (start, end), lines = finding.diagnostic, finding.span(finding.place), finding.lines
    if diagnostic.launch is None or diagnostic.unnecessary or lines.on_one_line(start, end):
        return start, end
    first = min(end, lines.span(lines.line_at(start))[1])
    words = lines.text[start:first].rstrip(BETWEEN_LINES)
    return start, start + len(words) if words and first < end else end


def _told_at(finding: Finding) -> Range:
    return finding.lines.range(*_told_span(finding))


def _told_at_written(finding: Finding) -> str:
    return finding.lines.written_range(*_told_span(finding))


BETWEEN_LINES = " \t\\`,"
"""What may be between a flag and the end of its line if its value is on the next: continuations, and commas of lists."""


def _report(items: Iterable[str], text: str) -> Report:
    return Report(f"[{','.join(items)}]", text)


def _fault(fault: Exception) -> Item:
    """The diagnostic for a document that could not be read at all because of an internal fault."""
    return {
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
        "severity": SEVERITY["warning"],
        "source": "spec-lsp",
        "message": f"spec-lsp could not read this file: {type(fault).__name__}: {fault}. "
        "Nothing in it is checked. Please report that, with what stands in the log.",
    }


def _of_config_alone(diagnostic: Diagnostic, analysis: Analysis | None) -> bool:
    """Whether this is a finding of a `--config` file read by itself: the launches that use it know more."""
    if analysis is None or diagnostic.launch is None or diagnostic.launch >= len(analysis.launches):
        return False
    return analysis.launches[diagnostic.launch].launch.program == "config"


# --- how it is told ---------------------------------------------------------------------------------------------------


class Diagnostics:
    """Sends reports, or answers requests for them."""

    def __init__(self, ls: Host) -> None:
        self._ls = ls
        self._session = ls.session
        self.half_typed = HalfTyped(lambda name: self._look_again([name]))
        corrected_later = not ls.client.pull or "diagnostics" in ls.client.refreshes
        self.reporter = Reporter(ls.session, self.half_typed.withheld if corrected_later else None)
        self._edited: dict[str, None] = {}
        self._affected: dict[str, None] = {}
        """Documents to analyse again: those edited, and those whose surroundings changed."""
        self._scheduled = False
        self._sent: dict[str, tuple[OpenText | None, int, str]] = {}
        """What was last pushed, by document: for which text (None: it was not open), after which edit, and what."""
        self._targets: dict[str, set[str]] = {}
        """For each open document the other documents in which it has findings, or which it reads."""
        self._answered: dict[str, str] = {}
        """The result id of the last pull, by document."""
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_again = False
        self._since = 0.0

    # what happened

    def changed(self, name: str, affected: Iterable[str] = ()) -> None:
        """A document was opened or edited. Affected documents are analysed once the messages received so far are read."""
        if not self._edited:
            self._since = time.perf_counter()
        self._edited[name] = None
        self._look_again(affected)

    def surroundings_changed(self, affected: Iterable[str]) -> None:
        """Settings, or files that these open documents read, changed."""
        self._look_again(affected)

    def closed(self, text: OpenText, affected: Iterable[str]) -> None:
        """A document was closed: its own findings go, those of other documents in it stay."""
        self._answered.pop(text.name, None)
        self._edited.pop(text.name, None)
        targets = self._targets.pop(text.name, set())
        if not self._ls.client.pull:
            self._publish(text.name, text.uri)
        self._look_again([*targets, *affected])

    def _look_again(self, affected: Iterable[str]) -> None:
        self._affected.update(dict.fromkeys(affected))
        if not self._scheduled and (self._edited or self._affected):
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        alone = self._ls.client.pull and not self._others_open()  # then the analysis waits until it is pulled
        prepared = alone or self._session.prepare()
        if self._session.over:
            return
        if not prepared:
            asyncio.get_running_loop().call_soon(self._run)
            return
        self._scheduled = False
        edited, affected = list(self._edited), list(self._affected)
        self._edited.clear()
        self._affected.clear()
        self._tell(edited, affected)

    def _tell(self, edited: list[str], affected: list[str]) -> None:
        concerned = dict.fromkeys((*edited, *affected))
        for name in list(concerned):
            concerned.update(dict.fromkeys(self._follow(name)))
        for name in concerned:
            fault = self._session.fault(name)
            if fault is not None:
                self._ls.report_server_error(fault, type(fault))
        if self._ls.client.pull:
            self._refresh_where_different(name for name in concerned if name not in edited)
            return
        for name in concerned:
            self._try_to_publish(name)
        if edited:
            log.info("%.1f ms from the edit to diagnostics", 1000 * (time.perf_counter() - self._since))

    def _follow(self, name: str) -> set[str]:
        """The other documents whose findings may have changed because of this one's new analysis."""
        before = self._targets.pop(name, set())
        if self._session.text(name) is None:
            return before
        if self._ls.client.pull and not before and not self._others_open():
            return set()  # nothing to push: the analysis waits until it is pulled
        analysis = self._session.tried(name)
        found = set(map(DOCUMENT, analysis.diagnostics.anchored)) - {name} if analysis else set()
        now = found | set(self._session.reads(name))
        if now:
            self._targets[name] = now
        return before | now

    def _others_open(self) -> bool:
        return len(self._session.texts) > 1

    # push

    def _try_to_publish(self, name: str) -> None:
        """Publish a document's diagnostics; a failure for one document must not affect the others."""
        try:
            self._publish(name, self._session.uri(name))
        except Exception as error:
            log.exception("diagnostics of %s", name)
            self._ls.report_server_error(error, type(error))

    def _publish(self, name: str, uri: str) -> None:
        text = self._session.text(name)
        report = self.reporter.report(name) if text or self._is_target(name) else NOTHING
        said = (text, text.edits if text else 0, report.json)
        if said == self._sent.get(name, (None, 0, NOTHING.json)):
            return
        self._sent[name] = said
        if text is None and report.is_empty:
            del self._sent[name]
        version = f',"version":{written(text.version)}' if text is not None and text.version is not None else ""
        params = f'{{"uri":{written(uri)},"diagnostics":', report.json, f"{version}}}"
        self._ls.wire.notify_written(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, *params)

    def _is_target(self, name: str) -> bool:
        return any(name in targets for targets in self._targets.values())

    # pull

    def pull(self, name: str, previous: str | None) -> Written:
        """The answer to `textDocument/diagnostic`."""
        if self._session.text(name) is None:
            report = NOTHING
        else:
            began = time.perf_counter()
            report = self.reporter.report(name)
            self._answered[name] = report.result_id
            log.info("%.1f ms for the diagnostics of %s", 1000 * (time.perf_counter() - began), name)
        if previous == report.result_id:
            return Written(f'{{"kind":"unchanged","resultId":"{report.result_id}"}}')
        return Written(f'{{"kind":"full","resultId":"{report.result_id}","items":{report.json}}}')

    def _refresh_where_different(self, names: Iterable[str]) -> None:
        """Ask the client to pull again if the findings of documents changed that it did not edit."""
        for name in names:
            answered = self._answered.get(name)
            if answered is not None and self.reporter.report(name).result_id != answered:
                self._refresh()
                return

    def _refresh(self) -> None:
        """Only one refresh at a time, so that a slow client is not asked twice."""
        if "diagnostics" not in self._ls.client.refreshes:
            return
        if self._refreshing is not None and not self._refreshing.done():
            self._refresh_again = True
            return
        self._refreshing = asyncio.get_running_loop().create_task(self._ask_to_pull())

    async def _ask_to_pull(self) -> None:
        while True:
            self._refresh_again = False
            await self._ls.refresh(types.WORKSPACE_DIAGNOSTIC_REFRESH)
            if not self._refresh_again:
                return
