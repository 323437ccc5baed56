"""Makes the first keystroke as quick as the others: loads everything after the client has its first answer, in small steps between
messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from spec_lsp.server.lean import ignoring_errors, settle

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis
    from spec_lsp.server.host import Host

_HERE = {"textDocument": {"uri": "file:///warm.sh", "version": 1}}
_AT = {"line": 0, "character": 0}
_RANGE = {"start": _AT, "end": _AT}
_MESSAGES = (
    ("textDocument/didOpen", {"textDocument": {**_HERE["textDocument"], "languageId": "sh", "text": ""}}),
    ("textDocument/didChange", {**_HERE, "contentChanges": [{"range": _RANGE, "text": ""}]}),
    ("textDocument/hover", {**_HERE, "position": _AT}),
    ("textDocument/completion", {**_HERE, "position": _AT}),
    ("completionItem/resolve", {"label": ""}),
    ("textDocument/inlayHint", {**_HERE, "range": _RANGE}),
    ("textDocument/diagnostic", {**_HERE}),
    (
        "textDocument/codeAction",
        {
            **_HERE,
            "range": _RANGE,
            "context": {"diagnostics": [{"range": _RANGE, "message": "", "data": {}}], "only": ["quickfix"]},
        },
    ),
)
MANY_RELEASES = 64
"""More than are shipped; numbers that are too high are skipped."""

_SCRIPT = "# spec-lsp: gpu=h100\npython -m sglang.launch_server --model-path Qwen/Qwen3-8B --page-size 16\n"
_TYPED = (_SCRIPT.index("--page"), len(_SCRIPT) - 1)
"""A text with places at which something may be typed: a flag, a value."""


async def warm_up(ls: Host) -> None:
    """Import analysis, make it read a small launch, and let the converter compile what it needs for the usual messages."""
    made: list[Analysis] = []
    steps: list[Callable[[], object]] = [lambda: made.append(_analyse(ls))]
    steps += [lambda m=m: ls.wire.structure_message(json.loads(_request(*m))) for m in _MESSAGES]  # type: ignore[misc]
    steps += [settle, *_hover_steps(), *(lambda at=at: _complete(ls, made[0], at) for at in _TYPED)]
    for step in steps:
        await asyncio.sleep(0)
        ignoring_errors(step)


def _hover_steps() -> Iterator[Callable[[], object]]:
    """The catalogs of all releases, one at a time: a hover says since when a flag exists."""

    def load(number: int) -> object:
        from spec_lsp.catalog import store

        return store.load(store.releases()[number])

    def spans() -> object:
        from spec_lsp.catalog.history import flag_span

        return flag_span("--model-path")

    yield from (partial(load, number) for number in range(MANY_RELEASES))
    yield spans


def _request(method: str, params: object) -> str:
    identity = {} if method.startswith("textDocument/did") else {"id": 0}
    return json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params})


def _complete(ls: Host, analysis: Analysis, offset: int) -> None:
    scope = ls.session.scope("untitled:warm")
    ls.engine.complete(analysis, offset, scope.options, scope.workspace)


def _analyse(ls: Host) -> Analysis:
    scope = ls.session.scope("untitled:warm")
    return ls.engine.analyse("untitled:warm", _SCRIPT, "sh", scope.options, scope.workspace, ls.engine.new_cache())
