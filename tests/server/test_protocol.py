"""Whatever comes in: requests are answered, notifications do no harm, nothing is kept."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.fakes import LocalClient

URI = "file:///w/a.sh"
AT = {"line": 0, "character": 0}


def error_code(answer: dict[str, Any]) -> int:
    return answer["error"]["code"]


@pytest.mark.parametrize(
    ("message", "id_", "code"),
    [
        (b"{nonsense", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b"[]", None, -32600),
        (b"3", None, -32600),
        ({"jsonrpc": "2.0", "id": 7}, 7, -32600),
        ({"id": 7, "method": "textDocument/hover"}, 7, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": 3}, 7, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "textDocument/hover"}, None, -32600),
        ({"jsonrpc": "2.0", "id": [1], "method": "textDocument/hover"}, None, -32600),
        ({"jsonrpc": "2.0", "id": "x", "method": "no/suchMethod", "params": {}}, "x", -32601),
        ({"jsonrpc": "2.0", "id": "x", "method": "no/suchMethod"}, "x", -32601),
        ({"jsonrpc": "2.0", "id": "x", "method": "textDocument/hover"}, "x", -32602),
        ({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": {}}, 7, -32602),
        ({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": []}, 7, -32602),
        (
            {"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": {"textDocument": 3, "position": AT}},
            7,
            -32602,
        ),
        (
            {"jsonrpc": "2.0", "id": 7, "method": "textDocument/codeAction", "params": {"textDocument": {"uri": URI}}},
            7,
            -32602,
        ),
        ({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"capabilities": {}}}, 7, -32600),
        ({"jsonrpc": "2.0", "id": 7, "method": "workspace/executeCommand", "params": {"command": "no"}}, 7, -32602),
    ],
)
async def test_malformed_messages_are_answered_with_errors(message: Any, id_: Any, code: int) -> None:
    client = LocalClient()
    await client.start()
    client.raw(message)
    answer = await client.answer(id_)
    assert error_code(answer) == code
    assert (await client.request("textDocument/hover", {"textDocument": {"uri": URI}, "position": AT}))[
        "result"
    ] is None


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "no/such", "params": {}},
        {"jsonrpc": "2.0", "method": "$/unknown"},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "zz"}},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": 3},
        {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {}},
        {
            "jsonrpc": "2.0",
            "method": "textDocument/didChange",
            "params": {"textDocument": {"uri": "file:///never", "version": 2}, "contentChanges": []},
        },
        {"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///never"}}},
        {"jsonrpc": "2.0", "id": 99, "result": None},
        {"jsonrpc": "2.0", "id": "zz", "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": [1], "result": None},
        {"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "purple"}},
    ],
)
async def test_odd_notifications_are_passed_over_in_silence(message: Any) -> None:
    client = LocalClient()
    await client.start()
    before = len(client.messages)
    client.raw(message)
    await client.quiet()
    assert client.messages[before:] == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "sh", "version": 1, "text": "BAD"}}),
        ("textDocument/didOpen", {}),
        ("textDocument/didSave", {"textDocument": {"uri": URI}}),
        ("initialized", {}),
        ("$/cancelRequest", {"id": 99}),
        ("$/setTrace", {"value": "off"}),
        ("workspace/didChangeConfiguration", {"settings": {}}),
    ],
)
async def test_a_notification_with_an_id_is_heard_and_answered(method: str, params: Any) -> None:
    client = LocalClient()
    await client.start()
    assert (await client.request(method, params))["result"] is None
    await client.quiet()
    assert bool(client.published(URI)) == (method == "textDocument/didOpen" and bool(params))


async def test_exit_with_an_id_ends_it() -> None:
    client = LocalClient()
    await client.start()
    await client.request("shutdown", None)
    client.send("exit", None)
    assert client.codes == [0]


async def test_order_of_life() -> None:
    client = LocalClient()
    assert (
        error_code(await client.request("textDocument/hover", {"textDocument": {"uri": URI}, "position": AT})) == -32002
    )
    client.open(URI, "BAD")  # nobody hears it yet
    await client.start()
    assert client.published(URI) == []
    assert await client.request("shutdown", None) == {"jsonrpc": "2.0", "id": client._id, "result": None}
    assert (
        error_code(await client.request("textDocument/hover", {"textDocument": {"uri": URI}, "position": AT})) == -32600
    )
    client.notify("exit", None)
    assert client.codes == [0]


@pytest.mark.parametrize("params", [None, {}, []])
async def test_shutdown_and_exit_take_any_parameters(params: Any) -> None:
    client = LocalClient()
    await client.start()
    assert (await client.request("shutdown", params))["result"] is None
    client.notify("exit", params)
    assert client.codes == [0]


async def test_exit_without_shutdown_is_an_error() -> None:
    client = LocalClient()
    client.notify("exit", None)
    assert client.codes == [1]


async def test_unknown_enum_values_survive() -> None:
    capabilities = {
        "general": {"positionEncodings": ["utf-7", "utf-32", "utf-8"]},
        "workspace": {
            "workspaceEdit": {"resourceOperations": ["explode"], "failureHandling": "shrug", "documentChanges": True}
        },
        "textDocument": {
            "hover": {"contentFormat": ["hologram", "markdown"]},
            "documentSymbol": {"symbolKind": {"valueSet": [1, 999]}},
            "completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [7]}}},
            "publishDiagnostics": {"tagSupport": {"valueSet": [1, 2, 77]}},
            "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "sorcery"]}}},
        },
    }
    client = LocalClient(capabilities, trace="loud")
    assert (await client.start())["capabilities"]["positionEncoding"] == "utf-32"
    assert client.server.client.tags == {1, 2, 77}


@pytest.mark.parametrize(
    "diagnostic",
    [
        {"severity": 17},
        {"tags": [1, 55]},
        {"severity": 2, "tags": [2]},
        {"code": 7, "data": {"x": [1]}, "source": "other"},
    ],
)
async def test_what_the_client_sends_goes_back_as_it_came(diagnostic: dict[str, Any]) -> None:
    """Values that nobody knows included: a code action carries the client's own diagnostics."""
    support = {"codeActionLiteralSupport": {}, "resolveSupport": {"properties": ["edit"]}}
    client = LocalClient({"textDocument": {"codeAction": support}})
    await client.start()
    place = {"start": AT, "end": {"line": 0, "character": 3}}
    action = {"title": "t", "kind": "sorcery", "diagnostics": [{"range": place, "message": "m", **diagnostic}]}
    assert (await client.request("codeAction/resolve", action))["result"] == action


@pytest.mark.parametrize(
    "capabilities",
    [
        None,
        7,
        [],
        {"textDocument": None, "workspace": 3, "general": {"positionEncodings": "utf-8"}},
        {"textDocument": {"codeAction": {"codeActionLiteralSupport": {}, "resolveSupport": {}}}},
        {"textDocument": {"completion": {"completionItem": {"tagSupport": {}}}, "hover": {"contentFormat": [3]}}},
        {"textDocument": {"publishDiagnostics": {"tagSupport": {"valueSet": "all"}}, "diagnostic": "yes"}},
        {"experimental": [1], "workspace": {"diagnostics": {"refreshSupport": "maybe"}}},
    ],
)
async def test_capabilities_of_any_shape_are_taken(capabilities: Any) -> None:
    client = LocalClient()
    params = {"processId": None, "rootUri": None, "capabilities": capabilities}
    answer = await client.request("initialize", params)
    assert answer["result"]["capabilities"]["positionEncoding"] == "utf-16"
    client.open(URI, "BAD")
    assert "result" in await client.request("textDocument/hover", {"textDocument": {"uri": URI}, "position": AT})


@pytest.mark.parametrize("result", [object(), {1: object()}, float("nan"), lambda: None, b"x"])
async def test_a_result_that_does_not_serialise_is_answered_with_an_error(result: Any) -> None:
    client = LocalClient()
    await client.start()

    @client.server.feature("test/oops")
    def oops(params: Any) -> Any:
        return result

    assert error_code(await client.request("test/oops", {})) == -32603


async def test_a_handler_that_fails_is_answered_and_says_so_once() -> None:
    def fail(text: str) -> None:
        raise ZeroDivisionError("no")

    client = LocalClient()
    await client.start()
    client.open(URI, "BAD")
    await client.quiet()
    client.engine.fail = fail
    for version in range(2, 6):
        client.change(URI, version, f"{version}")
        await client.quiet()
        answer = await client.request("textDocument/hover", {"textDocument": {"uri": URI}, "position": AT})
        assert error_code(answer) == -32603
        assert "traceback" not in json.dumps(answer).lower()
    assert client.methods().count("window/showMessage") == 1
    assert client.methods().count("window/logMessage") >= 4


async def test_a_cancelled_request_is_answered_so() -> None:
    client = LocalClient({"textDocument": {"diagnostic": {}}})
    await client.start()
    client.open(URI, "BAD")
    id_ = client.send("textDocument/diagnostic", {"textDocument": {"uri": URI}})
    client.notify("$/cancelRequest", {"id": id_})
    assert error_code(await client.answer(id_)) == -32800
    assert client.engine.analysed == ["untitled:warm"]


async def test_nothing_is_kept_of_5000_edits() -> None:
    client = LocalClient()
    await client.start()
    client.open(URI, "one\ntwo BAD\n" * 20)
    await client.quiet()

    async def type_(edits: range) -> None:
        for version in edits:
            client.change(URI, version, (0, 0, 0, version % 2, "x" if version % 2 == 0 else ""))
            if version % 50 == 0:
                await client.quiet()
                client.messages.clear()
                client.engine.analysed.clear()
        await client.quiet()
        gc.collect()

    await type_(range(2, 502))
    assert client.server._beginning
    await client.server._beginning  # it loads catalogs between the first messages
    assert client.server.wire._request_futures == {}
    gc.collect()
    before = len(gc.get_objects())
    await type_(range(502, 5502))
    assert client.server.wire._request_futures == {}
    assert len(gc.get_objects()) - before < 500


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["textDocument", "position", "uri", "line", "character", "context", "only", "range", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
METHODS = [
    "textDocument/hover",
    "textDocument/codeAction",
    "codeAction/resolve",
    "textDocument/diagnostic",
    "workspace/executeCommand",
    "nonsense",
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(messages=st.lists(st.tuples(st.sampled_from(METHODS), json_values), min_size=1, max_size=6))
async def test_any_parameters_are_answered(messages: list[tuple[str, Any]]) -> None:
    client = LocalClient(
        {"textDocument": {"diagnostic": {}, "codeAction": {"resolveSupport": {"properties": ["edit"]}}}}
    )
    await client.start()
    client.open(URI, "BAD")
    ids = [client.send(method, params) for method, params in messages]
    for id_ in ids:
        await client.answer(id_)
