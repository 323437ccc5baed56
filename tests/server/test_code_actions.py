"""Code actions and hover with a fake analysis."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place
from tests.server.fakes import LocalClient, range_
from tests.server.test_diagnostics import PUSH

URI = "file:///w/a.sh"
ACTIONS: dict[str, Any] = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source.fixAll"]}}}
RESOLVE: dict[str, Any] = {**ACTIONS, "dataSupport": True, "resolveSupport": {"properties": ["edit"]}}


def capabilities(action: dict[str, Any] = ACTIONS, *, versioned: bool = True) -> dict[str, Any]:
    return {
        "textDocument": {**PUSH["textDocument"], "codeAction": action},
        "workspace": {"workspaceEdit": {"documentChanges": versioned}},
    }


async def opened(text: str, capabilities: dict[str, Any], **more: Any) -> tuple[LocalClient, list[dict[str, Any]]]:
    client = LocalClient(capabilities, **more)
    await client.start()
    client.open(URI, text, version=5)
    await client.quiet()
    return client, client.published(URI)[-1]["diagnostics"]


async def actions(client: LocalClient, diagnostics: list[dict[str, Any]], *only: str) -> list[dict[str, Any]]:
    context = {"diagnostics": diagnostics, **({"only": list(only)} if only else {})}
    params = {"textDocument": {"uri": URI}, "range": range_(0, 0, 0, 1), "context": context}
    return (await client.request("textDocument/codeAction", params))["result"]


async def test_fixes_come_first_preferred_first_with_the_version() -> None:
    client, shown = await opened("a BAD\n", capabilities())
    found = await actions(client, shown, "quickfix")
    assert [a["title"] for a in found] == ["Write good", "Remove it", *IGNORES]
    assert [a.get("isPreferred", False) for a in found] == [True, False, False, False]
    assert found[0]["diagnostics"] == shown
    assert found[0]["edit"] == {
        "documentChanges": [
            {"textDocument": {"uri": URI, "version": 5}, "edits": [{"range": range_(0, 2, 0, 5), "newText": "good"}]}
        ]
    }


async def test_clients_without_versions_get_plain_changes() -> None:
    client, shown = await opened("a BAD\n", capabilities(versioned=False))
    found = await actions(client, shown, "quickfix")
    assert found[0]["edit"] == {"changes": {URI: [{"range": range_(0, 2, 0, 5), "newText": "good"}]}}


async def test_a_stale_diagnostic_gets_the_fix_of_the_present_text_or_none() -> None:
    client, shown = await opened("a BAD\n", capabilities())
    client.change(URI, 6, "some more BAD\n")
    (edit,) = (await actions(client, shown, "quickfix"))[0]["edit"]["documentChanges"]
    assert edit == {
        "textDocument": {"uri": URI, "version": 6},
        "edits": [{"range": range_(0, 10, 0, 13), "newText": "good"}],
    }
    client.change(URI, 7, "fine\n")
    assert await actions(client, shown, "quickfix") == []


async def test_typing_goes_before_code_actions() -> None:
    client, shown = await opened("BAD BAD BAD\n", capabilities())
    params = {"textDocument": {"uri": URI}, "range": range_(0, 0, 0, 1), "context": {"diagnostics": shown}}
    id_ = client.send("textDocument/codeAction", params)
    for _ in range(2):  # the request has begun
        await asyncio.sleep(0)
    client.change(URI, 6, "BAD\n")
    assert (await client.answer(id_))["error"]["code"] == -32801


async def test_diagnostics_that_lost_their_data_are_found_by_place() -> None:
    client, shown = await opened("a BAD\n", capabilities())
    bare = {k: v for k, v in shown[0].items() if k != "data"}
    assert (await actions(client, [bare], "quickfix"))[0]["title"] == "Write good"
    nameless = {k: v for k, v in bare.items() if k != "source"}
    assert (await actions(client, [nameless], "quickfix"))[0]["title"] == "Write good"
    assert await actions(client, [{**nameless, "code": "SC2086"}], "quickfix") == []
    assert await actions(client, [{**bare, "source": "shellcheck"}], "quickfix") == []
    assert await actions(client, [{**bare, "data": {"key": 3}}], "quickfix") == []


IGNORES = ["Ignore `bad-word` here", "Ignore `bad-word` in this file"]


async def test_repairs_of_all_findings_come_before_what_silences_one() -> None:
    client, shown = await opened("BAD DEAD\n", capabilities())
    titles = [a["title"] for a in await actions(client, shown)]
    silencing = [title.startswith("Ignore") for title in titles]
    assert sum(silencing) >= 2
    assert silencing == sorted(silencing)


async def test_a_rule_that_is_ignored_elsewhere_is_rather_ignored_in_the_file() -> None:
    client, shown = await opened("BAD  # spec-lsp: ignore[bad-word]\n\nBAD\n", capabilities())
    session = client.server.session
    directive = Directive("ignore[bad-word]", Place("/w/a.sh", 5, 34), own_line=False)
    analysis = session.analysis("/w/a.sh")
    assert analysis is not None
    commented = replace(analysis, document=replace(analysis.document, directives=(directive,)))
    session.analysis = lambda name: commented  # type: ignore[method-assign]
    assert [a["title"] for a in await actions(client, shown, "quickfix")][-2:] == IGNORES[::-1]


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("one\ntwo BAD\n", "here", "one\ntwo BAD  # spec-lsp: ignore[bad-word]\n"),
        ("one\r\ntwo BAD\r\n", "here", "one\r\ntwo BAD  # spec-lsp: ignore[bad-word]\r\n"),
        ("one\ntwo BAD\n", "in this file", "# spec-lsp: ignore-file[bad-word]\none\ntwo BAD\n"),
        ("#!/bin/sh\r\nBAD\r\n", "in this file", "#!/bin/sh\r\n# spec-lsp: ignore-file[bad-word]\r\nBAD\r\n"),
    ],
)
async def test_ignore(text: str, where: str, expected: str) -> None:
    for support in (ACTIONS, RESOLVE):
        client, shown = await opened(text, capabilities(support))
        offered = {a["title"]: a for a in await actions(client, shown, "quickfix")}
        action = offered[f"Ignore `bad-word` {where}"]
        if support is RESOLVE:
            assert "edit" not in action
            action = (await client.request("codeAction/resolve", action))["result"]
        (change,) = action["edit"]["documentChanges"]
        assert change["textDocument"]["version"] == 5
        client.change(URI, 6, *[(*_flat(e["range"]), e["newText"]) for e in change["edits"]])
        opened_text = client.server.session.text("/w/a.sh")
        assert opened_text is not None
        assert opened_text.text == expected


def _flat(r: dict[str, Any]) -> tuple[int, int, int, int]:
    return r["start"]["line"], r["start"]["character"], r["end"]["line"], r["end"]["character"]


@pytest.mark.parametrize("only", ["source", "source.fixAll", "source.fixAll.spec-lsp"])
async def test_fix_all_is_safe_unless_the_setting_says_otherwise(only: str) -> None:
    client, shown = await opened("BAD DEAD\n", capabilities())
    (action,) = await actions(client, shown, only)
    assert action["kind"] == "source.fixAll.spec-lsp"
    assert action["edit"]["documentChanges"][0]["edits"] == [{"range": range_(0, 4, 0, 8), "newText": "good"}]
    client, shown = await opened("BAD DEAD\n", capabilities(), initializationOptions={"unsafeFixes": True})
    (action,) = await actions(client, shown, only)
    assert action["edit"]["documentChanges"][0]["edits"] == [{"range": range_(0, 0, 0, 3), "newText": "good"}]


async def test_fix_all_of_nothing_is_no_action() -> None:
    client, shown = await opened("BAD\n", capabilities())
    assert await actions(client, shown, "source.fixAll") == []
    assert await actions(client, [], "refactor") == []


async def test_fix_all_is_resolved_late_when_nobody_asked_for_it() -> None:
    client, shown = await opened("BAD DEAD\n", capabilities(RESOLVE))
    (action,) = [a for a in await actions(client, shown) if a["kind"] == "source.fixAll.spec-lsp"]
    assert "edit" not in action
    resolved = (await client.request("codeAction/resolve", action))["result"]
    assert resolved["edit"]["documentChanges"][0]["textDocument"] == {"uri": URI, "version": 5}


@pytest.mark.parametrize("support", [ACTIONS, RESOLVE])
async def test_a_menu_has_no_fix_all_that_would_do_nothing(support: dict[str, Any]) -> None:
    client, shown = await opened("BAD\n", capabilities(support))
    assert {a["kind"] for a in await actions(client, shown)} == {"quickfix"}
    assert {a["kind"] for a in await actions(client, [])} == set()


async def test_resolving_what_is_gone_is_an_error() -> None:
    client, shown = await opened("BAD\n", capabilities(RESOLVE))
    action = (await actions(client, shown, "quickfix"))[-1]
    client.change(URI, 6, "fine\n")
    assert (await client.request("codeAction/resolve", action))["error"]["code"] == -32801


@pytest.mark.parametrize(
    ("formats", "kind", "value"),
    [(["markdown"], "markdown", "**hover** `BAD`"), (["plaintext"], "plaintext", "hover BAD")],
)
async def test_hover(formats: list[str], kind: str, value: str) -> None:
    client, _ = await opened("😀 BAD\n", {"textDocument": {"hover": {"contentFormat": formats}}})
    answer = await client.request(
        "textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 4}}
    )
    assert answer["result"] == {"contents": {"kind": kind, "value": value}, "range": range_(0, 3, 0, 6)}
