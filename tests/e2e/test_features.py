"""Completion, hints, lenses, definitions and links with the real process over stdio, in every encoding."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.e2e.shared import MODELS, PATIENCE, SERVER, Encoding, position, under

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
LAUNCH = f"""\
# spec-lsp: sglang=0.5.23 gpu=b200
PAGE=1  # 𝄞
sglang serve Qwen/Qwen3-8B
python -m sglang.launch_server --served-model-name "😀 é" --model-path '{MODELS}/llama-3.1-8b' \\
  --attention-backend trtllm_mha --page-size $PAGE
"""


def capabilities(encoding: Encoding) -> types.ClientCapabilities:
    """Neovim's, with snippets and an editor that shows the result of our command."""
    found = client_capabilities("neovim@v0.11")
    assert found.general is not None
    assert found.text_document is not None
    found.general.position_encodings = [encoding, "utf-16"]
    item = types.ClientCompletionItemOptions(snippet_support=True, documentation_format=[types.MarkupKind.Markdown])
    found.text_document.completion = types.CompletionClientCapabilities(completion_item=item)
    found.text_document.code_lens = types.CodeLensClientCapabilities()
    found.text_document.document_link = types.DocumentLinkClientCapabilities(tooltip_support=True)
    found.text_document.definition = types.DefinitionClientCapabilities(link_support=True)
    found.experimental = {"commands": {"commands": ["spec-lsp.showResolved"]}}
    return found


class Session:
    """An initialized client, and one open document; `‸` in its text is the cursor."""

    def __init__(self, client: LanguageClient, encoding: Encoding, folder: Path) -> None:
        self.client = client
        self.encoding = encoding
        self.folder = folder
        self.text = ""
        self.document = types.TextDocumentIdentifier("")
        self.cursor = types.Position(0, 0)

    def open(self, text: str, name: str = "run.sh") -> None:
        at = max(text.find("‸"), 0)
        self.text = text.replace("‸", "")
        self.document = types.TextDocumentIdentifier((self.folder / name).as_uri())
        self.cursor = types.Position(*position(self.text, at, self.encoding))
        item = types.TextDocumentItem(self.document.uri, "shellscript", 1, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def complete(self) -> types.CompletionList:
        params = types.CompletionParams(self.document, self.cursor)
        found = await asyncio.wait_for(self.client.text_document_completion_async(params), PATIENCE)
        assert isinstance(found, types.CompletionList)
        return found

    def under(self, span: Any) -> str:
        return under(self.text, span, self.encoding)


@pytest_lsp.fixture(params=ENCODINGS, config=ClientServerConfig(server_command=[*SERVER, "--stdio"]))
async def connected(request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path) -> AsyncIterator[None]:
    folder = tmp_path.resolve()
    params = types.InitializeParams(
        capabilities=capabilities(request.param),
        workspace_folders=[types.WorkspaceFolder(uri=folder.as_uri(), name="w")],
    )
    for method in (types.WORKSPACE_INLAY_HINT_REFRESH, types.WORKSPACE_CODE_LENS_REFRESH):
        lsp_client.feature(method)(lambda *_: None)
    await asyncio.wait_for(lsp_client.initialize_session(params), PATIENCE)
    lsp_client.session = Session(lsp_client, request.param, folder)  # type: ignore[attr-defined]
    yield
    if not lsp_client.stopped:
        await lsp_client.shutdown_session()


@pytest.fixture
def session(connected: Any) -> Session:
    return connected.session  # type: ignore[no-any-return]


async def test_completion_of_a_flag_and_its_documentation(session: Session) -> None:
    session.open(LAUNCH.replace("--page-size", "--pag‸e-size"))
    found = await session.complete()
    item = next(i for i in found.items if i.label == "--page-size")
    assert session.under(item.text_edit.range) == "--page-size"  # type: ignore[union-attr]
    resolved = await session.client.completion_item_resolve_async(item)
    assert isinstance(resolved.documentation, types.MarkupContent)
    assert "**`--page-size`**" in resolved.documentation.value


async def test_completion_of_a_value(session: Session) -> None:
    session.open(LAUNCH.replace("trtllm_mha", "‸"))
    items = {i.label: i for i in (await session.complete()).items}
    assert (items["fa3"].detail or "").startswith("refused on B200: ")
    assert items["trtllm_mha"].detail is None


async def test_inlay_hints(session: Session) -> None:
    session.open(LAUNCH)
    end = types.Position(*position(session.text, len(session.text), session.encoding))
    params = types.InlayHintParams(session.document, types.Range(types.Position(0, 0), end))
    found = list(await session.client.text_document_inlay_hint_async(params) or ())
    labels = {"".join(p.value for p in h.label if not isinstance(p, str)): h for h in found}
    at = session.text.index("$PAGE") + len("$PAGE")
    assert labels["→ 64"].position == types.Position(*position(session.text, at, session.encoding))
    assert any(label.startswith("chosen: attention ") for label in labels)


async def test_the_lens_shows_the_configuration(session: Session) -> None:
    session.open(LAUNCH)
    lenses = list(await session.client.text_document_code_lens_async(types.CodeLensParams(session.document)) or ())
    assert len(lenses) == 2
    command = lenses[1].command
    assert command is not None
    assert command.title == "Show: SGLang 0.5.23 · B200"
    assert session.under(lenses[1].range).startswith("python")
    run = types.ExecuteCommandParams(command=command.command, arguments=command.arguments)
    shown = await session.client.workspace_execute_command_async(run)
    assert re.search(r"\| page-size +\| `64` +\|", str(shown))


async def test_definition_and_links(session: Session) -> None:
    (session.folder / "c.yaml").write_text("tp-size: 1\n", "utf-8")
    session.open(LAUNCH.replace("$PAGE", "$PA‸GE --config c.yaml"))
    params = types.DefinitionParams(session.document, session.cursor)
    found: Any = await session.client.text_document_definition_async(params)
    (origin,) = found
    assert session.under(origin.origin_selection_range) == "$PAGE"
    assert session.under(origin.target_range) == "1"
    links = await session.client.text_document_document_link_async(types.DocumentLinkParams(session.document))
    assert [(session.under(link.range), link.target) for link in links or ()] == [
        ("Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B"),
        ("c.yaml", (session.folder / "c.yaml").as_uri()),
    ]
