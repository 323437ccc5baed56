"""`workspace/diagnostic`: findings of every file in the workspace folders that may launch SGLang, for clients that pull them.

Files are found in a thread. Each is analysed on the loop between messages and reported at once, with progress, to a client that gives
tokens for that. Open documents are pulled by themselves. Files that have not changed since the last time are not read again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.interruption import Interrupted
from spec_lsp.records import dataclass
from spec_lsp.server.features.diagnostics import NOTHING, Report
from spec_lsp.server.protocol import Written, written
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.shared import SharedHost

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 10.0
"""For how many seconds the list of files is used if the client does not report new and removed files."""
MAX_FILES = 5_000
"""The most files whose findings are reported: nobody could read more."""


@dataclass(frozen=True, slots=True)
class _Told:
    """The report on a file, the file's stamp then, and the round of changes in which it was made."""

    report: Report
    stamp: tuple[int, int]
    round: int


class WorkspaceDiagnostics:
    """Answers the requests of one connection."""

    def __init__(self, ls: SharedHost) -> None:
        self._ls = ls
        self._session = ls.session
        self._told: dict[str, _Told] = {}
        self._files: list[str] = []
        self._found_at = -1.0
        self._found_in = -1
        self.round = 0
        """Counts the changes around the files: settings, other files, folders."""

    async def answer(self, params: types.WorkspaceDiagnosticParams) -> Written:
        """The reports, except for those already sent to the client's token. Returns at once if the setting disables it."""
        previous = {name_of(p.uri): (p.uri, p.value) for p in params.previous_result_ids}
        token = params.partial_result_token
        rest: list[str] = []
        async with _Progress(self._ls, params.work_done_token) as progress:
            async for name, report in self._reports(progress):
                uri, last = previous.pop(name, (self._session.uri(name), None))
                if last is None and report.is_empty:
                    continue
                item = _as_json(uri, report, last)
                if token is None:
                    rest.append(item)
                else:
                    self._ls.wire.notify_written(
                        types.PROGRESS, f'{{"token":{written(token)},"value":{{"items":[{item}]}}}}'
                    )
        open_ = {text.name for text in self._session.texts}
        rest += [_as_json(uri, NOTHING, last) for name, (uri, last) in previous.items() if name not in open_]
        return Written(f'{{"items":[{",".join(rest)}]}}')

    async def _reports(self, progress: _Progress) -> AsyncIterator[tuple[str, Report]]:
        files = await self._all_files()
        for number, name in enumerate(files):
            await asyncio.sleep(0)
            if self._session.text(name) is None:
                progress.show(number, len(files), name)
                report = await self._report(name)
                if report is not None:
                    yield name, report

    async def _all_files(self) -> list[str]:
        """The files that may launch SGLang, searched for again when files may have been added or removed."""
        find, folders = self._ls.find_files, [str(root) for root in self._session.roots]
        wanted = [f for f in folders if self._session.scope(os.path.join(f, "_")).settings.workspace_diagnostics]
        if find is None or not wanted:
            return []
        stale = not self._ls.client.dynamic_watching and time.monotonic() - self._found_at > LOOK_AGAIN_SECONDS
        if stale or self._found_in != self.round:
            round_ = self.round
            found = await asyncio.get_running_loop().run_in_executor(None, lambda: list(find(wanted)))
            self._files = found[:MAX_FILES]
            self._told = {name: self._told[name] for name in self._files if name in self._told}
            self._found_at, self._found_in = time.monotonic(), round_
            if len(found) > MAX_FILES:
                self._session.report_once(f"{len(found)} files may launch SGLang: the first {MAX_FILES} are told of")
        return self._files

    async def _report(self, name: str) -> Report | None:
        """The report on a file; None if it cannot be read, is excluded, or was opened meanwhile."""
        stamp = _stamp(name)
        told = self._told.get(name)
        if stamp is None:
            return None
        if told is None or (told.stamp, told.round) != (stamp, self.round):
            round_ = self.round
            while True:
                try:
                    with self._session.cache.interruptible(), self._session.while_wanted(name):
                        report = self._ls.diagnostics.reporter.report_of_file(name)
                    break
                except Interrupted:
                    await asyncio.sleep(0)
                    if self._session.text(name) is not None:
                        return None
            if report is None:
                return None
            told = self._told[name] = _Told(report, stamp, round_)
        return told.report


def _stamp(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _as_json(uri: str, report: Report, last: str | None) -> str:
    known = f'"uri":{written(uri)},"version":null,"resultId":"{report.result_id}"'
    if last == report.result_id:
        return f'{{"kind":"unchanged",{known}}}'
    return f'{{"kind":"full",{known},"items":{report.json}}}'


class _Progress:
    """Progress of one request, if the client gave a token for it; it ends however the request ends."""

    def __init__(self, ls: SharedHost, token: int | str | None) -> None:
        self._ls = ls
        self._token = token
        self._next = 0.0

    async def __aenter__(self) -> _Progress:
        self._send({"kind": "begin", "title": "Checking launches", "cancellable": True, "percentage": 0})
        return self

    async def __aexit__(self, *_: object) -> None:
        self._send({"kind": "end"})

    def show(self, done: int, total: int, name: str) -> None:
        """Report the progress, but not too often."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 0.1
            message = f"{done}/{total} {os.path.basename(name)}"
            self._send({"kind": "report", "message": message, "percentage": 100 * done // max(total, 1)})

    def _send(self, value: dict[str, Any]) -> None:
        if self._token is not None:
            self._ls.wire.notify_plain(types.PROGRESS, {"token": self._token, "value": value})


def register(ls: SharedHost) -> dict[str, Any]:
    if not ls.client.pull or ls.find_files is None:
        return {}
    workspace = WorkspaceDiagnostics(ls)

    def changed() -> None:
        workspace.round += 1

    ls.surroundings_changed = changed

    @ls.feature(types.WORKSPACE_DIAGNOSTIC)
    async def diagnostic(params: types.WorkspaceDiagnosticParams) -> Written:
        return await workspace.answer(params)

    offered = {"identifier": "spec-lsp", "interFileDependencies": True, "workspaceDiagnostics": True}
    return {"diagnosticProvider": {**offered, "workDoneProgress": True}}
