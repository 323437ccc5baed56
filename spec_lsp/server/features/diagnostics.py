"""Diagnostics: pulled where the client offers it, pushed where it does not, never both.

A document's report holds the findings of its own analysis, and those that other open documents' launches have in it (a flaw written in
a `--config` file). A launch whose flaw lies in another file says so at the launch too, with the place as related
information.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.positions import Lines
from spec_lsp.server.protocol import Written, written
from spec_lsp.server.text import OpenText
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, Diagnostic
    from spec_lsp.server.server import Server
    from spec_lsp.server.session import Session
    from spec_lsp.syntax.word import Place

log = logging.getLogger(__name__)

Item = dict[str, Any]
"""A diagnostic as the protocol writes it. Plain: this is the hot path, and lsprotocol's objects cost more than the
analysis."""

SEVERITY = {"error": 1, "warning": 2, "information": 3, "hint": 4}
UNNECESSARY, DEPRECATED = 1, 2


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of one document, as objects and as JSON, and a hash of everything that decides it."""

    items: list[Item]
    json: str
    result_id: str


NOTHING = Report([], "[]", "closed")


# --- what is said -----------------------------------------------------------------------------------------------------


class Reporter:
    """Makes reports of a session's documents."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def report(self, name: str) -> Report:
        """All that is said of a document, open or not."""
        items = list(self._items(name))
        text = self._session.text(name)
        digest = hashlib.blake2b((text.text if text else "").encode("utf-8", "surrogatepass"), digest_size=12)
        text_of_items = written(items)
        digest.update(text_of_items.encode())
        return Report(items, text_of_items, digest.hexdigest())

    def _items(self, name: str) -> Iterator[Item]:
        lines = self._session.lines(name)
        if lines is None:
            return
        users = self.users(name)
        seen: set[tuple[str, str]] = set()
        own = self._session.analysis(name)
        if own is not None:
            for diagnostic in own.diagnostics:
                if diagnostic.place.document != name:
                    yield self._at_launch(diagnostic, own, lines)
                elif not (users and _of_config_alone(diagnostic, own)):
                    yield self._item(diagnostic, own, diagnostic.place, lines)
        for user in users:
            analysis = self._session.analysis(user)
            for diagnostic in analysis.diagnostics if analysis else ():
                if diagnostic.place.document == name:
                    item = self._item(diagnostic, analysis, diagnostic.place, lines)
                    key = (diagnostic.rule.name, str(item["range"]))
                    if key not in seen:
                        seen.add(key)
                        yield item

    def users(self, name: str) -> list[str]:
        """The other open documents with launches that read this one, in order of their names."""
        for text in self._session.texts:
            self._analysed(text.name)
        return sorted(self._session.dependants(name))

    def _analysed(self, name: str) -> None:
        """See to it that a document is analysed; if that fails, its own report will say so, and others must not suffer."""
        try:
            self._session.analysis(name)
        except Exception:
            log.exception("cannot analyse %s", name)

    def _at_launch(self, diagnostic: Diagnostic, analysis: Analysis, lines: Lines) -> Item:
        """A finding that lies in another file, told at the launch that uses the file."""
        launch = analysis.launches[diagnostic.launch or 0].launch if analysis.launches else None
        place = launch.place if launch else diagnostic.place
        return self._item(diagnostic, analysis, place, lines)

    def _item(self, diagnostic: Diagnostic, analysis: Any, place: Place, lines: Lines) -> Item:
        client = self._session.client
        item: Item = {
            "range": lines.range(place.start, place.end),
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
        if client.related_information:
            related = self._related(diagnostic, place)
            if related:
                item["relatedInformation"] = related
        if client.diagnostic_data:
            item["data"] = {"key": diagnostic.key, "document": analysis.document.name}
        return item

    def _related(self, diagnostic: Diagnostic, place: Place) -> list[dict[str, Any]]:
        told = [(r.place, r.message) for r in diagnostic.related if r.place != place]
        if diagnostic.place != place:
            told.insert(0, (diagnostic.place, "the value is written here"))
        found = []
        for where, message in told:
            lines = self._session.lines(where.document)
            if lines is not None:
                location = {"uri": self._session.uri(where.document), "range": lines.range(where.start, where.end)}
                found.append({"location": location, "message": message})
        return found


def _of_config_alone(diagnostic: Diagnostic, analysis: Analysis) -> bool:
    """Whether this is said of a `--config` file read by itself: the launches that use it know better."""
    if diagnostic.launch is None or diagnostic.launch >= len(analysis.launches):
        return False
    return analysis.launches[diagnostic.launch].launch.program == "config"


# --- how it is told ---------------------------------------------------------------------------------------------------


class Diagnostics:
    """Sends reports, or answers with them."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._session = ls.session
        self.reporter = Reporter(ls.session)
        self._edited: dict[str, None] = {}
        self._affected: dict[str, None] = {}
        """Documents to look at again: those edited, and those that something around them was."""
        self._scheduled = False
        self._sent: dict[str, list[Item]] = {}
        """What was last pushed, by document."""
        self._targets: dict[str, set[str]] = {}
        """For each open document the others in which it has findings, or which it reads."""
        self._answered: dict[str, str] = {}
        """The result id of the last pull, by document."""
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_again = False
        self._since = 0.0

    # what happened

    def changed(self, name: str, affected: Iterable[str] = ()) -> None:
        """A document was opened or edited. All are analysed once the messages that have come by now are read."""
        if not self._edited:
            self._since = time.perf_counter()
        self._edited[name] = None
        self._look_again(affected)

    def surroundings_changed(self, affected: Iterable[str]) -> None:
        """Settings, or files that these open documents read, changed."""
        self._look_again(affected)

    def closed(self, text: OpenText, affected: Iterable[str]) -> None:
        """A document was closed: its own findings go, those that others have in it stay."""
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
        try:
            self._tell(edited, affected)
        except (
            Exception
        ) as error:  # one document that cannot be analysed must not end the loop; the next edit tries again
            log.exception("diagnostics of %s", ", ".join((*edited, *affected)))
            self._ls.report_server_error(error, type(error))

    def _tell(self, edited: list[str], affected: list[str]) -> None:
        concerned = dict.fromkeys((*edited, *affected))
        for name in list(concerned):
            concerned.update(dict.fromkeys(self._follow(name)))
        if self._ls.client.pull:
            self._refresh_where_different(name for name in concerned if name not in edited)
        else:
            for name in concerned:
                self._publish(name, self._session.uri(name))
            if edited:
                log.info("%.1f ms from the edit to diagnostics", 1000 * (time.perf_counter() - self._since))

    def _follow(self, name: str) -> set[str]:
        """The other documents of which something else may be said because this one's analysis is another."""
        before = self._targets.pop(name, set())
        if self._session.text(name) is None:
            return before
        if self._ls.client.pull and not before and not self._others_open():
            return set()  # nobody else to tell: the analysis waits until it is pulled
        analysis = self._session.analysis(name)
        found = {d.place.document for d in analysis.diagnostics} - {name} if analysis else set()
        now = found | set(self._session.reads(name))
        if now:
            self._targets[name] = now
        return before | now

    def _others_open(self) -> bool:
        return len(self._session.texts) > 1

    # push

    def _publish(self, name: str, uri: str) -> None:
        text = self._session.text(name)
        report = self.reporter.report(name) if text or self._is_target(name) else NOTHING
        items = report.items
        last = self._sent.get(name, None if text else [])
        if items == last and (not items or text is None or not _moved(text, items)):
            if text is not None:
                text.touched.clear()
            return
        if text is None and not items:
            self._sent.pop(name, None)
        else:
            self._sent[name] = items
        version = ""
        if text is not None:
            text.touched.clear()
            if text.version is not None:
                version = f',"version":{written(text.version)}'
        params = f'{{"uri":{written(uri)},"diagnostics":{report.json}{version}}}'
        self._ls.wire.notify_written(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)

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
        """Ask the client to pull again if other things are to be said of documents that it did not edit."""
        for name in names:
            answered = self._answered.get(name)
            if answered is not None and self.reporter.report(name).result_id != answered:
                self._refresh()
                return

    def _refresh(self) -> None:
        """One refresh at a time: a client that answers slowly is not asked twice."""
        if "diagnostics" not in self._ls.client.refreshes:
            return
        if self._refreshing is not None and not self._refreshing.done():
            self._refresh_again = True
            return
        self._refreshing = asyncio.get_running_loop().create_task(self._ask_to_pull())

    async def _ask_to_pull(self) -> None:
        while True:
            self._refresh_again = False
            await self._ls.ask(types.WORKSPACE_DIAGNOSTIC_REFRESH, None)
            if not self._refresh_again:
                return


def _moved(text: OpenText, items: list[Item]) -> bool:
    """Whether the edits since the last publication may have moved or swallowed the client's own marks of these items."""
    first = min(item["range"]["start"]["line"] for item in items)
    last = max(item["range"]["end"]["line"] for item in items)
    return any(t.first <= last and (t.last >= first or t.shifts) for t in text.touched)


def register(ls: Server) -> dict[str, Any]:
    ls.diagnostics = Diagnostics(ls)
    if not ls.client.pull:
        return {}

    @ls.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
    async def diagnostic(params: types.DocumentDiagnosticParams) -> Written:
        """Lets the messages that have come by now be read first: a later edit or a cancellation saves the work."""
        await ls.session.ready()
        return ls.diagnostics.pull(name_of(params.text_document.uri), params.previous_result_id)

    return {
        "diagnosticProvider": {"identifier": "spec-lsp", "interFileDependencies": True, "workspaceDiagnostics": False}
    }
