"""Asks the installed SGLang about the launches of a saved document; off unless enabled in the editor's own settings.

SGLang is started once, when the first document is saved, and asked in a thread; its answers are shown with the source "sglang" until the
text changes. If it cannot be asked, the client's log says why, once, and everything else goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis
    from spec_lsp.asking.launches import Way
    from spec_lsp.asking.process import SGLang
    from spec_lsp.asking.verify import Desk, Told
    from spec_lsp.server.server import Server
    from spec_lsp.server.text import OpenText
    from spec_lsp.workspace import DiskWorkspace

log = logging.getLogger(__name__)

T = TypeVar("T")

SEVERITY = {"error": 1, "warning": 2, "information": 3, "hint": 4}


class Verifying:
    """The documents to ask about, one after the other."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls
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
        session.asked[name] = [_item(told, text) for told in found if told.place.document == name]
        self._ls.diagnostics.surroundings_changed([name])

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
    from spec_lsp.asking.verdicts import DISAGREEMENTS

    item: dict[str, Any] = {
        "range": text.lines.range(told.place.start, told.place.end),
        "severity": SEVERITY[told.severity],
        "code": told.code,
        "source": "sglang",
        "message": f"{told.message} {HOW_TO_REPORT}" if told.verdict.relation in DISAGREEMENTS else told.message,
    }
    return item


HOW_TO_REPORT = "`spec-lsp verify FILE --report report.md` writes what to send."


def register(ls: Server) -> dict[str, Any]:
    ls.verifying = Verifying(ls)
    return {}
