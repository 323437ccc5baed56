"""A whole session with the real process over stdio: every encoding, pushed and pulled, LF and CRLF."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.e2e.shared import CONFIG, PATIENCE, RULE, SCRIPT, SERVER, Encoding, applied, position, repaired, under, until

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
MODES = [f"{encoding} {how}" for encoding in ENCODINGS for how in ("push", "pull")]


@dataclass
class Session:
    """An initialized client, and one open document."""

    client: LanguageClient
    encoding: Encoding
    pulls: bool
    folder: Path
    capabilities: types.ServerCapabilities
    uri: str = ""
    text: str = ""
    version: int = 0

    def open(self, name: str, text: str, language: str = "shellscript") -> None:
        self.uri, self.text, self.version = (self.folder / name).as_uri(), text, 1
        item = types.TextDocumentItem(uri=self.uri, language_id=language, version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, start: int, end: int, new: str) -> None:
        """Replace characters, as an incremental change."""
        span = types.Range(
            types.Position(*position(self.text, start, self.encoding)),
            types.Position(*position(self.text, end, self.encoding)),
        )
        self.text = self.text[:start] + new + self.text[end:]
        self.version += 1
        change = types.TextDocumentContentChangePartial(range=span, text=new)
        document = types.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(text_document=document, content_changes=[change])
        )

    def replace(self, old: str, new: str) -> None:
        at = self.text.index(old)
        self.edit(at, at + len(old), new)

    async def diagnostics(self) -> list[types.Diagnostic] | None:
        """What is said of the document as it is now; None while a push is awaited."""
        if not self.pulls:
            return self.client.diagnostics.get(self.uri)  # type: ignore[return-value]
        params = types.DocumentDiagnosticParams(text_document=types.TextDocumentIdentifier(self.uri))
        report = await self.client.text_document_diagnostic_async(params)
        return list(report.items)

    async def found(self, rule: str = RULE) -> types.Diagnostic:
        async def one() -> Any:
            return next((d for d in await self.diagnostics() or () if d.code == rule), None)

        return await until(one, f"{rule} to be found")

    async def gone(self, rule: str = RULE) -> None:
        async def none() -> bool:
            shown = await self.diagnostics()
            return shown is not None and not any(d.code == rule for d in shown)

        await until(none, f"{rule} to go")

    async def actions(self, diagnostics: list[types.Diagnostic], *only: str) -> list[types.CodeAction]:
        context = types.CodeActionContext(diagnostics=diagnostics, only=list(only) or None)
        span = diagnostics[0].range if diagnostics else types.Range(types.Position(0, 0), types.Position(0, 0))
        params = types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(self.uri), range=span, context=context
        )
        return list(await asyncio.wait_for(self.client.text_document_code_action_async(params), PATIENCE) or ())

    def apply(self, action: types.CodeAction) -> None:
        assert action.edit is not None
        (change,) = action.edit.document_changes or ()
        assert change.text_document.version == self.version
        whole = applied(self.text, change.edits, self.encoding)
        self.edit(0, len(self.text), whole)


def client_of(encoding: Encoding, pulls: bool) -> types.ClientCapabilities:
    """Neovim's capabilities, with versioned edits, and but for the encoding and for whether it pulls."""
    capabilities = client_capabilities("neovim@v0.11")
    capabilities.general.position_encodings = [encoding, "utf-16"]
    capabilities.workspace.workspace_edit.document_changes = True
    capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities() if pulls else None
    capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    return capabilities


@pytest_lsp.fixture(params=MODES, config=ClientServerConfig(server_command=[*SERVER, "--stdio"]))
async def connected(request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path) -> AsyncIterator[None]:
    encoding, how = request.param.split()
    folder = tmp_path.resolve()
    for method in (types.WORKSPACE_INLAY_HINT_REFRESH, types.WORKSPACE_CODE_LENS_REFRESH):
        lsp_client.feature(method)(lambda *_: None)
    params = types.InitializeParams(
        capabilities=client_of(encoding, how == "pull"),
        workspace_folders=[types.WorkspaceFolder(uri=folder.as_uri(), name="w")],
    )
    result = await asyncio.wait_for(lsp_client.initialize_session(params), PATIENCE)
    lsp_client.session = Session(lsp_client, encoding, how == "pull", folder, result.capabilities)
    yield  # pytest-lsp gives the client to the test, whatever is yielded
    if not lsp_client.stopped:
        await asyncio.wait_for(lsp_client.shutdown_session(), PATIENCE)


@pytest.fixture
def session(connected: LanguageClient) -> Session:
    return connected.session  # type: ignore[attr-defined,no-any-return]


async def test_a_day_with_a_script(session: Session) -> None:
    assert session.capabilities.position_encoding == session.encoding
    assert (session.capabilities.diagnostic_provider is not None) == session.pulls

    session.open("run here.sh", SCRIPT)
    found = await session.found()
    assert found.severity == types.DiagnosticSeverity.Error
    assert found.source == "spec-lsp"
    assert under(SCRIPT, found.range, session.encoding) in (
        "--attention-backend trtllm_mha",
        "--speculative-eagle-topk $TOPK",
    )
    assert "8" in [under(SCRIPT, r.location.range, session.encoding) for r in found.related_information or ()]

    session.replace("  # 𝄞 and 😀 lie outside the BMP", " # €")
    session.replace("😀 é", "😀😀")
    found = await session.found()

    hover = await session.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(session.uri), found.range.start)
    )
    assert hover is not None
    assert hover.range is not None
    assert "**" in hover.contents.value
    assert under(session.text, hover.range, session.encoding) in session.text

    actions = await session.actions([found], "quickfix")
    assert actions[0].is_preferred
    assert actions[0].kind == "quickfix"
    session.apply(actions[0])
    await session.gone()
    edited = SCRIPT.replace("  # 𝄞 and 😀 lie outside the BMP", " # €").replace("😀 é", "😀😀")
    assert session.text == repaired(edited)


async def test_a_config_file_with_crlf(session: Session) -> None:
    session.open("config.yaml", CONFIG.replace("\n", "\r\n"), "yaml")
    found = await session.found()
    assert under(session.text, found.range, session.encoding) in (
        "attention-backend: trtllm_mha",
        "speculative-eagle-topk: 8",
    )
    session.replace("# 𝄞", "# 😀😀")
    session.replace("topk: 8", "topk: 1")
    await session.gone()
    session.replace("topk: 1\r\n", "topk: 4\r\n")
    await session.found()


async def test_ignore_here(session: Session) -> None:
    session.open("a.sh", SCRIPT)
    found = await session.found()
    actions = await session.actions([found], "quickfix")
    ignore = next(a for a in actions if a.title == f"Ignore `{RULE}` here")
    if ignore.edit is None:
        ignore = await asyncio.wait_for(session.client.code_action_resolve_async(ignore), PATIENCE)
    session.apply(ignore)
    await session.gone()
    assert f"# spec-lsp: ignore[{RULE}]" in session.text


async def test_nothing_is_pushed_where_it_is_pulled(session: Session) -> None:
    session.open("a.sh", SCRIPT)
    await session.found()
    if session.pulls:
        assert session.client.diagnostics == {}


async def test_close_and_open_again(session: Session) -> None:
    session.open("a.sh", SCRIPT)
    await session.found()
    session.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(session.uri)))
    await session.gone()
    session.open("a.sh", SCRIPT)
    await session.found()


async def test_an_empty_and_an_odd_document(session: Session) -> None:
    for n, text in enumerate(
        ["", "\x00\x01\x02", "\n" * 50, "(((((", "x" * 100_000, "python -m sglang.launch_server --"]
    ):
        session.open(f"{n}.sh", text)
        hover = await session.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(session.uri), types.Position(0, 0))
        )
        assert hover is None or hover.contents.value
