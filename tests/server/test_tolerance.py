"""What clients leave out, or write otherwise, is read as what it can mean."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis.report import Diagnostic
from spec_lsp.server import host
from spec_lsp.server.features import half_typed
from spec_lsp.server.session import settings_table
from spec_lsp.server.uris import name_of
from spec_lsp.syntax.word import Place
from tests.server.fakes import RULES, FakeEngine, LocalClient, range_

URI = "file:///w/a.sh"
PUSH: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"codeDescriptionSupport": True, "dataSupport": True}}}
LITERALS: dict[str, Any] = {
    "textDocument": {"publishDiagnostics": {"dataSupport": True}, "codeAction": {"codeActionLiteralSupport": {}}}
}


async def greeted(capabilities: dict[str, Any] = PUSH, **more: Any) -> LocalClient:
    client = LocalClient(capabilities, **more)
    await client.start()
    return client


def codes(publication: dict[str, Any]) -> list[str]:
    return [d["code"] for d in publication["diagnostics"]]


# --- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        {"languageId": "shellscript", "text": "BAD"},
        {"languageId": "shellscript", "version": None, "text": "BAD"},
        {"version": 3, "text": "BAD"},
        {"languageId": None, "version": 3, "text": "BAD"},
        {"text": "BAD"},
    ],
)
async def test_a_text_without_version_or_language_is_opened_and_edited(item: dict[str, Any]) -> None:
    client = await greeted()
    client.notify("textDocument/didOpen", {"textDocument": {"uri": URI, **item}})
    await client.quiet()
    assert codes(client.published(URI)[-1]) == ["bad-word"]
    assert client.published(URI)[-1].get("version") == item.get("version")
    for document in ({"uri": URI}, {"uri": URI, "version": None}):
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": "BAD DEAD"}]})
        await client.quiet()
        assert codes(client.published(URI)[-1]) == ["bad-word", "dead-word"]
        assert "version" not in client.published(URI)[-1]
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": {"text": "fine"}})
        await client.quiet()
        assert codes(client.published(URI)[-1]) == []


@pytest.mark.parametrize("span", [None, {}, {"start": {"line": 0, "character": 0}}, 3])
async def test_a_change_without_a_range_is_of_the_whole_text(span: Any) -> None:
    client = await greeted()
    client.open(URI, "BAD BAD")
    changes = [{"range": span, "rangeLength": None, "text": "one BAD"}]
    client.notify("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes})
    await client.quiet()
    assert codes(client.published(URI)[-1]) == ["bad-word"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_lone_surrogates_are_characters_as_others(encoding: str) -> None:
    client = await greeted({**PUSH, "general": {"positionEncodings": [encoding]}})
    uri = "file:///w/\ud800.sh"
    client.open(uri, "\ud800 \udc00\ud800 BAD")
    await client.quiet()
    (item,) = client.published(uri)[-1]["diagnostics"]
    start = item["range"]["start"]["character"]
    assert start == {"utf-8": 11, "utf-16": 5, "utf-32": 5}[encoding]
    hover = await client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": start}}
    )
    assert "BAD" in hover["result"]["contents"]["value"]


@pytest.mark.parametrize("method", ["didOpen", "didChange", "didSave", "didClose"])
@pytest.mark.parametrize("params", [None, {}, {"notebookDocument": {"uri": "file:///w/a.ipynb", "version": 1}}])
async def test_notebooks_are_passed_over(method: str, params: Any) -> None:
    client = await greeted()
    before = len(client.messages)
    client.notify(f"notebookDocument/{method}", params)
    await client.quiet()
    assert client.messages[before:] == []


async def test_a_notebook_is_synced_by_its_cells() -> None:
    client = await greeted({**PUSH, "notebookDocument": {"synchronization": {}}})
    notebook = {"uri": "file:///w/a.ipynb", "version": 1}
    first, second = ({"uri": f"vscode-notebook-cell:/w/a.ipynb#{n}"} for n in range(2))

    def cell(at: dict[str, str], text: str) -> dict[str, Any]:
        return {**at, "languageId": "python", "version": 1, "text": text}

    def changed(**cells: Any) -> None:
        client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": cells}})

    whole = {**notebook, "notebookType": "jupyter-notebook", "cells": [{"kind": 2, "document": first["uri"]}]}
    client.notify("notebookDocument/didOpen", {"notebookDocument": whole, "cellTextDocuments": [cell(first, "BAD")]})
    await client.quiet()
    assert codes(client.published(first["uri"])[-1]) == ["bad-word"]
    change = {"range": range_(0, 0, 0, 3), "text": "good"}
    changed(textContent=[{"document": {**first, "version": 2}, "changes": [change]}])
    changed(structure={"array": {"start": 1, "deleteCount": 0}, "didOpen": [cell(second, "OLD")]})
    await client.quiet()
    assert codes(client.published(first["uri"])[-1]) == []
    assert codes(client.published(second["uri"])[-1]) == ["old-word"]
    changed(structure={"array": {"start": 1, "deleteCount": 1}, "didClose": [second]})
    changed(metadata={})
    client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {}})
    client.notify("notebookDocument/didClose", {"notebookDocument": notebook, "cellTextDocuments": [first]})
    await client.quiet()
    assert codes(client.published(second["uri"])[-1]) == []
    assert "window/showMessage" not in client.methods()


async def test_cells_of_a_notebook_are_texts() -> None:
    """Clients that do not sync notebooks as such open the cells."""
    client = await greeted()
    uri = "vscode-notebook-cell:/w/a.ipynb#W0sZmlsZQ%3D%3D"
    client.open(uri, "BAD", "python")
    await client.quiet()
    assert codes(client.published(uri)[-1]) == ["bad-word"]


# --- code actions ------------------------------------------------------------------------------------------------------


async def actions(client: LocalClient, params: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.request("textDocument/codeAction", {"textDocument": {"uri": URI}, **params})
    return answer["result"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "params",
    [
        {"range": range_(0, 5, 0, 5), "context": {}},
        {"range": range_(0, 0, 0, 9), "context": {"diagnostics": None}},
        {"range": range_(0, 0, 0, 9), "context": {}},
        {"range": range_(0, 0, 0, 9), "context": None},
        {"range": range_(0, 0, 0, 9)},
        {"range": None, "context": {}},
        {"context": {"only": []}},
        {"range": range_(0, 0, 0, 9), "context": {"only": ["quickfix"]}},
    ],
)
async def test_without_diagnostics_those_of_the_range_are_meant(params: dict[str, Any]) -> None:
    client = await greeted(LITERALS)
    client.open(URI, "x\tBAD\ty")
    found = await actions(client, params)
    assert "Write good" in [a["title"] for a in found]
    fix = next(a for a in found if a["title"] == "Write good")
    assert [d["code"] for d in fix["diagnostics"]] == ["bad-word"]


async def test_what_lies_outside_the_range_is_not_meant() -> None:
    client = await greeted(LITERALS)
    client.open(URI, "x\nBAD\ny")
    assert await actions(client, {"range": range_(0, 0, 0, 1), "context": {}}) == []
    assert await actions(client, {"range": range_(0, 0, 2, 1), "context": {"diagnostics": []}}) == [], "it says: none"


async def test_no_kind_at_all_means_every_kind() -> None:
    client = await greeted(LITERALS)
    client.open(URI, "DEAD")
    for only in ({}, {"only": []}, {"only": None}):
        found = await actions(client, {"range": range_(0, 0, 0, 4), "context": only})
        assert {a["kind"] for a in found} == {"quickfix", "source.fixAll.spec-lsp"}


async def test_a_diagnostic_without_a_range_is_known_by_its_data() -> None:
    client = await greeted(LITERALS)
    client.open(URI, "BAD")
    await client.quiet()
    (item,) = client.published(URI)[-1]["diagnostics"]
    shown = {"data": item["data"], "message": None}
    found = await actions(client, {"range": range_(0, 0, 0, 1), "context": {"diagnostics": [shown]}})
    assert "Write good" in [a["title"] for a in found]


async def test_a_client_without_literals_is_given_commands() -> None:
    client = await greeted(
        {"textDocument": {"publishDiagnostics": {"dataSupport": True}}, "workspace": {"applyEdit": True}}
    )
    applied: list[Any] = []
    client.answers["workspace/applyEdit"] = lambda params: applied.append(params) or {"applied": True}
    client.open(URI, "BAD")
    found = await actions(client, {"range": range_(0, 0, 0, 3), "context": {}})
    command = next(a for a in found if a["title"] == "Write good")
    assert set(command) == {"title", "command", "arguments"}
    answer = await client.request(
        "workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]}
    )
    assert "error" not in answer
    ((edit,),) = applied[0]["edit"]["changes"].values()
    assert edit == {"range": range_(0, 0, 0, 3), "newText": "good"}


# --- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        {"gpu": "h200", "rules": {"unknown-flag": "off"}},
        {"spec-lsp": {"gpu": "h200", "rules": {"unknown-flag": "off"}}},
        {"specLsp": {"gpu": "h200", "rules": {"unknown-flag": "off"}}},
        {"settings": {"spec-lsp": {"gpu": "h200", "rules": {"unknown-flag": "off"}}}},
        {"spec-lsp.gpu": "h200", "spec-lsp.rules": {"unknown-flag": "off"}, "editor.fontSize": 12},
        {"spec-lsp.gpu": "h200", "spec-lsp.rules.unknown-flag": "off"},
        {"gpu": "h200", "rules.unknown-flag": "off"},
        {"spec-lsp": {"gpu": "h200", "rules.unknown-flag": "off"}},
        {"settings": {"spec-lsp.gpu": "h200", "spec-lsp.rules.unknown-flag": "off"}},
    ],
)
def test_settings_with_dots_or_nested(written: dict[str, Any]) -> None:
    assert settings_table(written) == {"gpu": "h200", "rules": {"unknown-flag": "off"}}


# --- diagnostics -------------------------------------------------------------------------------------------------------


async def test_a_document_that_fails_silences_no_other() -> None:
    engine = FakeEngine()

    def fail(text: str) -> None:
        if "CRASH" in text:
            raise ZeroDivisionError("no")

    engine.fail = fail
    client = await greeted(engine=engine)
    uris = [f"file:///w/{n}.sh" for n in "abc"]
    client.open(uris[0], "BAD")
    client.open(uris[1], "CRASH BAD")
    client.open(uris[2], "BAD")
    await client.quiet()
    assert [codes(client.published(uri)[-1]) for uri in (uris[0], uris[2])] == [["bad-word"]] * 2
    (item,) = client.published(uris[1])[-1]["diagnostics"]
    assert "ZeroDivisionError" in item["message"]
    assert client.published(uris[1])[-1]["version"] == 1
    before = engine.analysed.count("/w/b.sh")
    client.change(uris[0], 2, "BAD BAD")
    await client.quiet()
    assert len(client.published(uris[0])[-1]["diagnostics"]) == 2
    assert engine.analysed.count("/w/b.sh") == before, "what failed once is not tried again before it changes"
    client.change(uris[1], 2, "BAD")
    await client.quiet()
    assert codes(client.published(uris[1])[-1]) == ["bad-word"]


async def test_a_finding_links_to_the_page_of_its_rule() -> None:
    client = LocalClient(PUSH)
    client.server.engine = __import__("spec_lsp.server.engine", fromlist=["RealEngine"]).RealEngine()
    await client.start()
    client.open(URI, "python -m sglang.launch_server --model-path x --no-such-flag 1\n")
    await client.quiet()
    (item,) = [d for d in client.published(URI)[-1]["diagnostics"] if d["code"] == "unknown-flag"]
    path, _, line = item["codeDescription"]["href"].removeprefix("file://").partition("#L")
    assert Path(path).read_text("utf-8").split("\n")[int(line) - 1] == "### unknown-flag"


@pytest.mark.parametrize(
    ("formats", "kind"),
    [
        (["plaintext", "markdown"], "plaintext"),
        (["markdown", "plaintext"], "markdown"),
        (["plaintext"], "plaintext"),
        (["markdown"], "markdown"),
        (["hologram", "markdown"], "markdown"),
        ([], "markdown"),
    ],
)
async def test_the_format_that_is_named_first_is_spoken(formats: list[str], kind: str) -> None:
    client = await greeted({"textDocument": {"hover": {"contentFormat": formats}}})
    client.open(URI, "BAD")
    answer = await client.request(
        "textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    )
    assert answer["result"]["contents"]["kind"] == kind


# --- the word that is being typed --------------------------------------------------------------------------------------


@pytest.fixture
def spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """`BAD` is a word that is misspelt, `OLD` one that is wrong otherwise. Nobody waits long enough for a word to count as typed."""
    monkeypatch.setattr(half_typed, "PATIENCE", 3600.0)
    monkeypatch.setattr(half_typed, "SPELLING", frozenset({RULES["BAD"].name}))


@pytest.mark.usefixtures("spelling")
class TestTheWordBeingTyped:
    async def typing(self, capabilities: dict[str, Any] = PUSH, text: str = "a BA OLD\nBAD") -> LocalClient:
        client = await greeted(capabilities)
        client.open(URI, text)
        await client.quiet()
        client.change(URI, 2, (0, 4, 0, 4, "D"))
        await client.quiet()
        return client

    async def test_it_is_withheld_and_hides_nothing_else(self) -> None:
        client = await self.typing()
        last = client.published(URI)[-1]
        assert last["version"] == 2
        assert [(d["code"], d["range"]["start"]["line"]) for d in last["diagnostics"]] == [
            ("old-word", 0),
            ("bad-word", 1),
        ]

    async def test_another_rule_speaks_of_it_at_once(self) -> None:
        client = await self.typing(text="a OL")
        client.change(URI, 3, "a OL")
        client.change(URI, 4, (0, 4, 0, 4, "D"))
        await client.quiet()
        assert codes(client.published(URI)[-1]) == ["old-word"]

    @pytest.mark.parametrize(
        ("line", "typed"),
        [
            ("run --page-size 1", "run --page-size 16"),
            ("run --page-size=1", "run --page-size=16"),
            ("run \\\n  --page-size \\\n  1", "run \\\n  --page-size \\\n  16"),
        ],
    )
    async def test_a_value_that_is_typed_is_not_refused_yet(self, line: str, typed: str) -> None:
        """A rule that refuses the value of a flag, whose place is both, and one that speaks of another word."""
        client = await self.typing(text="a\nb")
        text = client.server.session.text(name_of(URI))
        assert text is not None
        half = client.server.diagnostics.half_typed
        start, end = typed.index("--page-size"), len(typed)
        refused = Diagnostic(RULES["BAD"], "error", "", Place(text.name, start, end), "k")
        other = replace(refused, rule=RULES["OLD"])
        elsewhere = replace(other, place=Place(text.name, 0, 3))
        client.change(URI, 3, line)
        client.change(URI, 4, (line.count("\n"), len(line) - line.rfind("\n") - 1, line.count("\n"), 99, "6"))
        await client.quiet()
        findings = [other, replace(other, severity="warning"), replace(other, severity="hint"), elsewhere]
        assert half.withheld(findings, text.name) == {0, 1}
        half.finish()
        assert not half.withheld(findings, text.name)

    async def test_an_edit_elsewhere_tells(self) -> None:
        client = await self.typing()
        client.change(URI, 3, (1, 3, 1, 3, " x"))
        await client.quiet()
        assert codes(client.published(URI)[-1]) == ["bad-word", "old-word", "bad-word"]

    async def test_a_blank_behind_it_tells(self) -> None:
        client = await self.typing()
        client.change(URI, 3, (0, 5, 0, 5, " "))
        await client.quiet()
        assert "bad-word" in codes(client.published(URI)[-1])[:1]

    async def test_a_save_tells(self) -> None:
        client = await self.typing()
        client.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
        await client.quiet()
        assert codes(client.published(URI)[-1])[0] == "bad-word"
        assert client.published(URI)[-1]["version"] == 2

    async def test_a_second_tells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(half_typed, "PATIENCE", 0.01)
        client = await self.typing()
        await asyncio.sleep(0.05)
        await client.quiet()
        assert codes(client.published(URI)[-1])[0] == "bad-word"

    async def test_text_in_one_piece_is_not_typed(self) -> None:
        client = await self.typing()
        client.change(URI, 3, "a BAD")
        await client.quiet()
        assert codes(client.published(URI)[-1]) == ["bad-word"]

    async def test_it_is_pulled_again_once_it_is_typed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(half_typed, "PATIENCE", 3600.0)
        client = await self.typing(
            {"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}}
        )
        first = await client.pull(URI)
        assert [d["code"] for d in first["items"]] == ["old-word", "bad-word"]
        client.server.diagnostics.half_typed.finish()
        await client.quiet()
        assert "workspace/diagnostic/refresh" in client.methods()
        assert (await client.pull(URI, first["resultId"]))["items"][0]["code"] == "bad-word"

    async def test_who_cannot_be_told_to_pull_again_is_told_at_once(self) -> None:
        client = await self.typing({"textDocument": {"diagnostic": {}}})
        assert (await client.pull(URI))["items"][0]["code"] == "bad-word"


# --- registrations that are never answered -----------------------------------------------------------------------------


async def test_a_registration_that_is_never_answered_blocks_nothing(tmp_path: Path) -> None:
    dynamic = {"dynamicRegistration": True}
    capabilities = {
        **PUSH,
        "workspace": {"configuration": True, "didChangeConfiguration": dynamic, "didChangeWatchedFiles": dynamic},
    }
    client = LocalClient(capabilities)
    client.answers["workspace/configuration"] = lambda params: [
        {"rules": {"bad-word": "warning"}} for _ in params["items"]
    ]
    await client.start()
    assert client.methods().count("client/registerCapability") == 2
    assert "workspace/configuration" in client.methods()
    assert client.engine.analysed == ["untitled:warm"], "it is warmed up"


async def test_a_refresh_that_is_never_answered_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "REFRESH_SECONDS", 0.01)
    client = LocalClient({"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}})
    await client.start()
    client.open(URI, "BAD")
    await client.pull(URI)
    for count in (1, 2):
        client.notify(
            "workspace/didChangeConfiguration", {"settings": {"gpu": f"{count}", "rules": {"unknown-flag": "off"}}}
        )
        client.engine.fail = lambda text, count=count: (_ for _ in ()).throw(ValueError(str(count)))  # type: ignore[misc]
        await client.quiet()
        await asyncio.sleep(0.05)
        assert client.methods().count("workspace/diagnostic/refresh") == count
        client.engine.fail = lambda _: None
        client.notify("workspace/didChangeConfiguration", {"settings": {}})
        await client.quiet()


async def test_a_folder_that_is_added_is_asked_for_its_settings(tmp_path: Path) -> None:
    asked: list[Any] = []
    client = LocalClient({**PUSH, "workspace": {"configuration": True, "workspaceFolders": True}})
    client.answers["workspace/configuration"] = lambda params: [
        asked.append(i.get("scopeUri")) for i in params["items"]
    ]
    await client.start()
    folder = {"uri": tmp_path.as_uri(), "name": "n"}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
    await client.quiet()
    assert tmp_path.as_uri() in asked


def test_the_messages_here_are_json() -> None:
    json.dumps("\ud800")  # what clients send for a lone surrogate
