"""Completes what clients leave out, or send as null, where the meaning is clear: a text without a version, a change without a range, a code
action request without a context. Everything else that does not fit its type is rejected by the converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Params = dict[str, Any]

UNNUMBERED = -1
"""The version of a text for which the client sends none."""
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 2**31 - 1, "character": 0}}
"""The range of any document as a whole."""

THOSE_IN_RANGE = {"range": WHOLE, "message": "", "source": "spec-lsp", "data": {"those": "in the range"}}
"""The diagnostics of a code action request that names none."""


def read(method: str, params: Any) -> Any:
    """The parameters of a message, with missing parts filled in."""
    complete = _COMPLETE.get(method)
    return complete(dict(params)) if complete is not None and isinstance(params, dict) else params


def _opened(params: Params) -> Params:
    item = params.get("textDocument")
    if isinstance(item, dict):
        params["textDocument"] = {**item, **_or(item, languageId="", version=UNNUMBERED, text="")}
    return params


def _changed(params: Params) -> Params:
    """A change without a complete range replaces the whole text; a single change need not be in a list."""
    item = params.get("textDocument")
    if isinstance(item, dict):
        params["textDocument"] = {**item, **_or(item, version=UNNUMBERED)}
    changes = params.get("contentChanges")
    if isinstance(changes, dict):
        changes = [changes]
    if isinstance(changes, list):
        params["contentChanges"] = [_change(change) if isinstance(change, dict) else change for change in changes]
    return params


def _change(change: Params) -> Params:
    span = change.get("range")
    whole = not isinstance(span, dict) or not all(isinstance(span.get(end), dict) for end in ("start", "end"))
    return {key: value for key, value in change.items() if key == "text" or (key == "range" and not whole)}


def _asked_for_actions(params: Params) -> Params:
    """Without a range the whole text is meant, without diagnostics those found in the range."""
    if params.get("range") is None and params.get("context") is None:
        return params
    context = params.get("context")
    if context is None or isinstance(context, dict):
        context = context or {}
        given = context.get("diagnostics")
        if given is not None and not isinstance(given, list):
            return params
        given = [THOSE_IN_RANGE] if given is None else given
        diagnostics = [_diagnostic(one) if isinstance(one, dict) else one for one in given]
        params["context"] = {**context, "diagnostics": diagnostics}
    return {**params, **_or(params, range=WHOLE)}


def _diagnostic(diagnostic: Params) -> Params:
    nowhere = {"start": WHOLE["start"], "end": WHOLE["start"]}
    return {**diagnostic, **_or(diagnostic, range=nowhere, message="")}


def _with_range(params: Params) -> Params:
    return {**params, **_or(params, range=WHOLE)}


def _or(given: Params, **otherwise: Any) -> Params:
    """A key's value in `given`, or the default if it is missing or null."""
    return {key: value for key, value in otherwise.items() if given.get(key) is None}


_COMPLETE: dict[str, Callable[[Params], Params]] = {
    "textDocument/didOpen": _opened,
    "textDocument/didChange": _changed,
    "textDocument/codeAction": _asked_for_actions,
    "textDocument/inlayHint": _with_range,
}
