"""Asks the installed SGLang about the launches of a saved document; off unless enabled in the editor's own settings.

SGLang is started once, when the first document is saved, and asked in a thread; its answers are shown with the source "sglang" until the
text changes. If it cannot be asked, the client's log says why, once, and everything else goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types

from spec_lsp.files import MIB
from spec_lsp.kept import Shelf
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis
    from spec_lsp.asking.launches import Way
    from spec_lsp.asking.process import SGLang
    from spec_lsp.asking.verify import Desk, Told
    from spec_lsp.server.host import Host
    from spec_lsp.server.text import OpenText
    from spec_lsp.workspace import DiskWorkspace

log = logging.getLogger(__name__)

T = TypeVar("T")

SEVERITY = {"error": 1, "warning": 2, "information": 3, "hint": 4}


class Verifying:
    """The documents to ask about, one after the other."""

    def __init__(self, ls: Host, retell: Callable[[list[str]], None]) -> None:
        """`retell` has the diagnostics of documents sent again."""
        self._ls = ls
        self._retell = retell
        self._waiting: dict[str, str] = {}
        """The interpreter for each document that was saved."""
        self._desks: dict[str, Desk] = {}
        self._working: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._asking: Future[Any] | None = None
        """The task that runs in the thread."""

    def saved(self, name: str) -> None:
        """A document was saved."""
        python = self._ls.session.asks(name)
        if python is None or self._ls.session.text(name) is None:
            return
        self._waiting[name] = python
        if self._working is None or self._working.done():
            self._working = asyncio.get_running_loop().create_task(self._work())

    def end(self) -> None:
        """The client leaves. A thread that waits for SGLang would go on after its task is cancelled, so SGLang's process is ended."""
        self._waiting.clear()
        if self._working is not None:
            self._working.cancel()
        asks = self._asking is not None and not self._asking.done()
        desks, self._desks = self._desks, {}
        for desk in desks.values():
            desk.kill() if asks else desk.close()

    async def _work(self) -> None:
        from spec_lsp.asking.process import CannotAskError

        while self._waiting:
            name = next(iter(self._waiting))
            python = self._waiting.pop(name)
            try:
                await self._ask(name, python)
            except CannotAskError as error:
                self._ls.session.report_once(f"SGLang was not asked: {error}")
            except Exception as error:
                log.exception("asking about %s", name)
                self._ls.report_server_error(error, type(error))

    async def _ask(self, name: str, python: str) -> None:
        session = self._ls.session
        await session.ready()
        text, analysis = session.text(name), session.tried(name)
        workspace: Any = session.scope(name).workspace
        if text is None or analysis is None or not analysis.launches:
            return
        edits, found = text.edits, []
        for index in range(len(analysis.launches)):
            found += await self._told(analysis, index, workspace, python)
            if session.text(name) is not text or text.edits != edits:
                return  # the text has changed, and will be saved again
        here = [(_item(told, text), told) for told in found if told.place.document == name]
        session.asked[name] = [item for item, _ in here]
        session.reports[name] = {
            item["message"]: told.verdict.report() for item, told in here if _is_disagreement(told)
        }
        self._retell([name])

    async def _told(self, analysis: Analysis, index: int, workspace: DiskWorkspace, python: str) -> list[Told]:
        """The diagnostics of one launch. Only the waiting happens in a thread: the session's data is used on the loop alone."""
        from spec_lsp.asking.verify import devices, questions, told, verdicts

        report, found = analysis.launches[index], []
        for device, own in devices(report):
            sglang = self._desk(python).sglang(device, own)
            ready = await self._in_thread(sglang.ready)
            asked = questions(analysis, index, workspace, ready)
            answers = await self._in_thread(partial(_answers, sglang, asked))
            answered = verdicts(asked, answers, analysis.document.name, workspace, sglang)
            found += told(analysis, report.launch, answered, workspace)
        return found

    async def _in_thread(self, call: Callable[[], T]) -> T:
        self._asking = asking = self._thread.submit(call)
        return await asyncio.wrap_future(asking)

    def _desk(self, python: str) -> Desk:
        from spec_lsp.asking.interpreter import interpreter
        from spec_lsp.asking.verify import Desk

        path = interpreter(python, anywhere=True)
        if path not in self._desks:
            self._desks[path] = Desk(path)
        return self._desks[path]


def _answers(sglang: SGLang, asked: list[Way]) -> list[Mapping[str, Any]]:
    from spec_lsp.asking.verify import cases

    return list(sglang.ask(cases(asked)))


def _item(told: Told, text: OpenText) -> dict[str, Any]:
    """A diagnostic as the protocol writes it."""
    item: dict[str, Any] = {
        "range": text.lines.range(told.place.start, told.place.end),
        "severity": SEVERITY[told.severity],
        "code": told.code,
        "source": "sglang",
        "message": f"{told.message} {HOW_TO_REPORT}" if _is_disagreement(told) else told.message,
    }
    return item


def _is_disagreement(told: Told) -> bool:
    from spec_lsp.asking.verdicts import DISAGREEMENTS

    return told.verdict.relation in DISAGREEMENTS


HOW_TO_REPORT = "`spec-lsp verify FILE --report report.md` writes what to send."


OPEN_REPORT = "spec-lsp.openReport"
REPORTS = Shelf("disagreements", files=16, size=MIB)
"""What a client was asked to open: it opens files only."""


def register(ls: Host) -> dict[str, Any]:
    @ls.command(OPEN_REPORT)
    async def open_report(uri: str, message: str) -> str | None:
        """The report of a disagreement, as Markdown, which the client is asked to open; None if the text has changed since."""
        report = ls.session.reports.get(name_of(uri), {}).get(message)
        if report is not None and ls.client.shows_documents:
            name = f"report-{hashlib.blake2b(report.encode(), digest_size=8).hexdigest()}.md"
            REPORTS.keep(name, report)
            if REPORTS.path(name).is_file():
                uri = REPORTS.path(name).as_uri()
                await ls.ask(types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(uri=uri, take_focus=True))
        return report

    return {}
