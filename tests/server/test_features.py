"""Completion, inlay hints, lenses, definitions and links: how the protocol has what analysis says. With the real analysis."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.server.engine import RealEngine
from spec_lsp.settings import read_settings
from tests.server.fakes import LocalClient, range_

MODELS = Path(__file__).parent.parent / "models"
HEAD = "# spec-lsp: sglang=0.5.23 gpu=b200\n"
RUN = f"python -m sglang.launch_server --model-path {MODELS}/llama-3.1-8b"
ALL: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-32"]},
    "workspace": {"inlayHint": {"refreshSupport": True}, "codeLens": {"refreshSupport": True}},
    "textDocument": {
        "completion": {
            "completionItem": {
                "snippetSupport": True,
                "deprecatedSupport": True,
                "tagSupport": {"valueSet": [1]},
                "documentationFormat": ["markdown"],
            }
        },
        "codeLens": {},
        "definition": {"linkSupport": True},
        "documentLink": {"tooltipSupport": True},
        "inlayHint": {},
    },
    "experimental": {"commands": {"commands": ["spec-lsp.showResolved"]}},
}
REFRESHES = ("workspace/inlayHint/refresh", "workspace/codeLens/refresh")


class Editor:
    """A client with one open document; `‸` in its text is the cursor."""

    def __init__(self, client: LocalClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.uri = ""
        self.text = ""
        self.at: dict[str, int] = {}

    def open(self, text: str, name: str = "run.sh", language: str = "shellscript") -> None:
        at = text.find("‸")
        self.text = text.replace("‸", "")
        before = text[: max(at, 0)]
        self.at = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        self.uri = (self.folder / name).as_uri()
        self.client.open(self.uri, self.text, language)

    async def ask(self, method: str, **more: Any) -> Any:
        answer = await self.client.request(f"textDocument/{method}", {"textDocument": {"uri": self.uri}, **more})
        return answer["result"]

    async def ask_here(self, method: str) -> Any:
        return await self.ask(method, position=self.at)

    async def hints(self) -> list[str]:
        lines = self.text.count("\n") + 1
        found = await self.ask("inlayHint", range=range_(0, 0, lines, 0))
        return ["".join(part["value"] for part in hint["label"]) for hint in found]

    def under(self, span: dict[str, Any]) -> str:
        assert span["start"]["line"] == span["end"]["line"]
        line = self.text.split("\n")[int(span["start"]["line"])]
        return line[int(span["start"]["character"]) : int(span["end"]["character"])]


async def editor(folder: Path, capabilities: dict[str, Any] = ALL, **options: Any) -> Editor:
    client = LocalClient(
        capabilities,
        RealEngine(),  # type: ignore[arg-type]
        workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}],
        initializationOptions=options,
    )
    client.answers = {method: lambda _: None for method in (*REFRESHES, "client/registerCapability")}
    await client.start()
    return Editor(client, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def test_what_is_offered(folder: Path) -> None:
    client = LocalClient(ALL)
    offered = (await client.start())["capabilities"]
    assert offered["completionProvider"] == {"triggerCharacters": ["-", "=", " ", "["], "resolveProvider": True}
    assert offered["inlayHintProvider"] is True
    assert offered["definitionProvider"] is True
    assert offered["codeLensProvider"] == {"resolveProvider": False}
    assert offered["documentLinkProvider"] == {"resolveProvider": False}
    assert "codeLensProvider" not in (await LocalClient({}).start())["capabilities"]


# --- completion --------------------------------------------------------------------------------------------------------


async def test_completion(folder: Path) -> None:
    ed = await editor(folder)
    ed.open(f"{HEAD}{RUN} --speculative-algorithm EAGLE3 \\\n  --sp‸\n")
    found = await ed.ask_here("completion")
    assert found["isIncomplete"] is False
    items = {item["label"]: item for item in found["items"]}
    steps = items["--speculative-num-steps"]
    assert ed.under(steps["textEdit"]["range"]) == "--sp"
    assert steps["textEdit"]["newText"] == "--speculative-num-steps $1"
    assert steps["insertTextFormat"] == 2
    assert "insertTextFormat" not in items["--speculative-use-rejection-sampling"]
    assert "documentation" not in steps
    order = sorted(found["items"], key=lambda i: i["sortText"])
    assert order[0]["label"].startswith("--speculative-")
    assert all("textEdit" in item for item in found["items"])


async def test_completion_in_a_settings_file(folder: Path) -> None:
    ed = await editor(folder)
    ed.open('gpu = "h‸"\n', "spec-lsp.toml", "toml")
    found = await ed.ask_here("completion")
    (h200,) = [item for item in found["items"] if item["label"] == "h200"]
    assert (ed.under(h200["textEdit"]["range"]), h200["textEdit"]["newText"]) == ("h", "h200")
    ed.open("[tool.ruff]\n‸\n", "pyproject.toml", "toml")
    assert await ed.ask_here("completion") is None


def with_defaults(*defaults: str) -> dict[str, Any]:
    """All, and defaults of completion lists that the client takes."""
    text = ALL["textDocument"]
    completion = {**text["completion"], "completionList": {"itemDefaults": [*defaults]}}
    return {**ALL, "textDocument": {**text, "completion": completion}}


def written_out(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of a list as they are with its defaults put into each, as the protocol defines them."""
    shared = dict(found.get("itemDefaults", {}))
    span = shared.pop("editRange", None)
    items = []
    for item in found["items"]:
        whole = {**shared, **item}
        text = whole.pop("textEditText", whole["label"])
        if span is not None:
            whole["textEdit"] = {"range": span, "newText": text}
        if whole.get("insertTextFormat") == 1:
            del whole["insertTextFormat"]
        items.append(whole)
    return items


@pytest.mark.parametrize(
    "defaults", [["editRange"], ["editRange", "insertTextFormat", "data"], ["insertTextFormat"], [7]]
)
@pytest.mark.parametrize("line", ["--‸", "--page-si‸ze 3", "--attention-backend ‸"])
async def test_defaults_say_the_same_in_fewer_words(folder: Path, defaults: list[Any], line: str) -> None:
    text = f"{HEAD}{RUN} {line}\n"
    ed, terse = await editor(folder), await editor(folder, with_defaults(*defaults))
    ed.open(text)
    terse.open(text)
    whole, short = await ed.ask_here("completion"), await terse.ask_here("completion")
    assert written_out(short) == whole["items"]
    if "editRange" in defaults and len(whole["items"]) > 1:
        assert len(json.dumps(short)) < 0.8 * len(json.dumps(whole))


@pytest.mark.parametrize(
    ("line", "first", "absent"),
    [
        ("--page-siz‸", "--page-size", "--model-path"),
        ("--PAGE‸", "--page-size", "--host"),
        ("--eagle-topk‸", "--speculative-eagle-topk", "--host"),
        ("--attention-backend tri‸", "triton", "fa3"),
        ("--attention-backend=tri‸", "triton", "fa3"),
    ],
)
async def test_what_cannot_be_meant_is_left_out(folder: Path, line: str, first: str, absent: str) -> None:
    """Neovim shows, and puts in, the first of all that it is sent."""
    ed = await editor(folder)
    ed.open(f"{HEAD}{RUN} {line}\n")
    found = (await ed.ask_here("completion"))["items"]
    assert min(found, key=lambda i: i["sortText"])["label"] == first
    assert absent not in {i["label"] for i in found}


async def test_completion_without_snippets_and_tags(folder: Path) -> None:
    ed = await editor(folder, {"general": {"positionEncodings": ["utf-32"]}})
    ed.open(f"{HEAD.replace('0.5.23', '0.5.12')}{RUN} --‸\n")
    found = await ed.ask_here("completion")
    assert all("insertTextFormat" not in i and "tags" not in i and "deprecated" not in i for i in found["items"])
    assert {i["textEdit"]["newText"] == i["label"] for i in found["items"]} == {True}


@pytest.mark.parametrize(
    ("support", "shown"),
    [({"tagSupport": {"valueSet": [1]}}, ("tags", [1])), ({"deprecatedSupport": True}, ("deprecated", True))],
)
async def test_deprecated_flags_are_marked(folder: Path, support: dict[str, Any], shown: tuple[str, Any]) -> None:
    ed = await editor(folder, {"textDocument": {"completion": {"completionItem": support}}})
    ed.open(f"{HEAD.replace('0.5.23', '0.5.12')}{RUN} --‸\n")
    found = await ed.ask_here("completion")
    marked = [i for i in found["items"] if shown[0] in i]
    assert marked
    assert {str(i[shown[0]]) for i in marked} == {str(shown[1])}
    assert min(i["sortText"] for i in marked) > max(i["sortText"] for i in found["items"] if i not in marked)


@pytest.mark.parametrize("formats", [["markdown", "plaintext"], ["plaintext"]])
async def test_documentation_comes_when_an_item_is_looked_at(folder: Path, formats: list[str]) -> None:
    item_support = {"documentationFormat": formats}
    ed = await editor(folder, {"textDocument": {"completion": {"completionItem": item_support}}})
    ed.open(f"{HEAD}{RUN} --page‸\n")
    found = await ed.ask_here("completion")
    item = next(i for i in found["items"] if i["label"] == "--page-size")
    resolved = (await ed.client.request("completionItem/resolve", item))["result"]
    assert {k: v for k, v in resolved.items() if k != "documentation"} == item
    assert resolved["documentation"]["kind"] == formats[0]
    assert ("**`--page-size`**" in resolved["documentation"]["value"]) == (formats[0] == "markdown")
    assert "--page-size" in resolved["documentation"]["value"]


@pytest.mark.parametrize("data", [None, 3, {"about": 3}, {"about": ["--page-size"]}, {"other": 1}])
async def test_items_that_are_not_ours_come_back_as_they_are(folder: Path, data: Any) -> None:
    ed = await editor(folder)
    item = {"label": "x", **({"data": data} if data is not None else {})}
    answer = await ed.client.request("completionItem/resolve", item)
    assert answer["result"] == item


@pytest.mark.parametrize("text", ["‸", "echo ‸\n", f"{HEAD}{RUN}\n--‸\n"])
async def test_no_completion_outside_of_launches(folder: Path, text: str) -> None:
    ed = await editor(folder)
    ed.open(text)
    assert await ed.ask_here("completion") is None


@pytest.mark.parametrize(
    ("text", "label", "under"),
    [
        ("‸", "page-size", ""),
        ("tp-size: 1\npage-si‸\n", "page-size", "page-si"),
        ("model-path: x\nattention-backend: tri‸\n", "triton", "tri"),
    ],
)
async def test_a_file_that_an_open_script_names_is_a_config_file(
    folder: Path, text: str, label: str, under: str
) -> None:
    """However little is in it by now."""
    ed = await editor(folder)
    (folder / "serve.yaml").write_text("")
    ed.open(text, "serve.yaml", "yaml")
    before = await ed.ask_here("completion")
    assert before is None or "attention" in text
    ed.client.open((folder / "run.sh").as_uri(), f"{HEAD}{RUN} --config serve.yaml\n")
    found = (await ed.ask_here("completion"))["items"]
    item = next(i for i in found if i["label"] == label)
    assert ed.under(item["textEdit"]["range"]) == under


async def test_hover_in_a_config_file_speaks_of_the_launch_that_uses_it(folder: Path) -> None:
    ed = await editor(folder)
    (folder / "serve.yaml").write_text("")
    ed.open("page-si‸ze: 1\n", "serve.yaml", "yaml")
    assert await ed.ask_here("hover") is None
    ed.client.open((folder / "run.sh").as_uri(), f"{HEAD}{RUN} --attention-backend trtllm_mha --config serve.yaml\n")
    found = await ed.ask_here("hover")
    assert "**Here** `64`" in found["contents"]["value"]
    assert "on B200" in found["contents"]["value"]
    assert ed.under(found["range"]) == "page-size"


async def test_completion_in_a_document_that_is_not_open(folder: Path) -> None:
    ed = await editor(folder)
    ed.uri, ed.at = (folder / "other.sh").as_uri(), {"line": 3, "character": 9}
    assert await ed.ask_here("completion") is None
    assert await ed.ask_here("definition") == []
    assert await ed.ask("codeLens") == []
    assert await ed.ask("documentLink") == []
    assert await ed.ask("inlayHint", range=range_(0, 0, 1, 0)) == []


async def test_positions_are_in_the_clients_units(folder: Path) -> None:
    ed = await editor(folder, {**ALL, "general": {"positionEncodings": ["utf-16"]}})
    ed.open(f"{HEAD}{RUN} --served-model-name 😀 --attention-backend ‸\n")
    ed.at["character"] += 1
    found = await ed.ask_here("completion")
    assert found["items"][0]["textEdit"]["range"] == {"start": ed.at, "end": ed.at}


# --- inlay hints -------------------------------------------------------------------------------------------------------

HINTED = f"{HEAD}{RUN} --attention-backend trtllm_mha --page-size 1\n{RUN}\n"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["→ 64", "chosen: attention trtllm_mha · page size 64"]),
        ({"changedValueHints": False}, ["chosen: attention trtllm_mha · page size 64"]),
        ({"chosenValueHints": False}, ["→ 64"]),
        ({"inlayHints": False}, []),
        ({"changedValueHints": False, "chosenValueHints": False}, []),
    ],
)
async def test_inlay_hints(folder: Path, settings: dict[str, Any], expected: list[str]) -> None:
    ed = await editor(folder, **settings)
    ed.open(HINTED)
    assert await ed.hints() == expected


async def test_places_and_reasons_of_inlay_hints(folder: Path) -> None:
    ed = await editor(folder)
    ed.open(HINTED)
    changed, chosen = await ed.ask("inlayHint", range=range_(0, 0, 3, 0))
    lines = HINTED.split("\n")
    assert changed["position"] == {"line": 1, "character": len(lines[1])}
    assert chosen["position"] == {"line": 2, "character": len(lines[2])}
    assert changed["paddingLeft"] is True
    assert changed["label"][0]["tooltip"]["kind"] == "markdown"
    assert "tooltip" not in chosen["label"][0]
    assert await ed.ask("inlayHint", range=range_(0, 0, 1, 5)) == []


# --- lenses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "settings", "shown"),
    [
        (ALL, {}, True),
        (ALL, {"codeLens": "never"}, False),
        ({"textDocument": {"codeLens": {}}}, {}, False),
        ({"textDocument": {"codeLens": {}}}, {"codeLens": "always"}, True),
        ({**ALL, "experimental": {"commands": {"commands": 7}}}, {}, False),
        ({**ALL, "experimental": [1]}, {}, False),
    ],
)
async def test_who_gets_lenses(
    folder: Path, capabilities: dict[str, Any], settings: dict[str, Any], shown: bool
) -> None:
    ed = await editor(folder, capabilities, **settings)
    ed.open(HINTED)
    assert len(await ed.ask("codeLens")) == (2 if shown else 0)


async def test_a_lens_runs_the_command_that_shows_the_configuration(folder: Path) -> None:
    ed = await editor(folder)
    ed.open(f"docker run --gpus all lmsysorg/sglang:v0.5.19 \\\n  {RUN}\n")
    (lens,) = await ed.ask("codeLens")
    title = lens["command"]["title"]
    assert title == "Show: SGLang 0.5.19 · any NVIDIA GPU"
    command = {"command": lens["command"]["command"], "arguments": lens["command"]["arguments"]}
    shown = (await ed.client.request("workspace/executeCommand", command))["result"]
    assert shown.startswith("# What SGLang will run")


# --- what is assumed, and what there is to choose from -------------------------------------------------------------------


async def ask_command(ed: Editor, command: str, *arguments: Any) -> Any:
    answer = await ed.client.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})
    return answer["result"]


async def test_commands_are_offered(folder: Path) -> None:
    offered = (await LocalClient(ALL).start())["capabilities"]["executeCommandProvider"]["commands"]
    named = ("showResolved", "assumed", "compare", "choices", "rulePage", "explainLog", "openReport")
    assert set(offered) == {f"spec-lsp.{name}" for name in named}


async def test_what_is_assumed_of_the_launch_at_a_line(folder: Path) -> None:
    ed = await editor(folder, gpu="h200")
    ed.open(f"# spec-lsp: sglang=0.5.23\n{RUN}\n")
    assumed = await ask_command(ed, "spec-lsp.assumed", ed.uri, 1)
    assert assumed == {
        "text": "SGLang 0.5.23 (directive) · H200 (settings)",
        "release": "0.5.23",
        "releaseFrom": "directive",
        "hardware": "h200",
        "hardwareTitle": "H200",
        "hardwareFrom": "settings",
    }


async def test_hardware_that_nobody_names_is_any(folder: Path) -> None:
    ed = await editor(folder)
    ed.open(f"{RUN}\n")
    assumed = await ask_command(ed, "spec-lsp.assumed", ed.uri, 0)
    assert assumed["text"] == "SGLang 0.5.23 (newest) · any GPU"
    assert (assumed["hardware"], assumed["hardwareTitle"], assumed["hardwareFrom"]) == ("", "any GPU", "not named")


async def test_nothing_is_assumed_where_nothing_is_launched(folder: Path) -> None:
    ed = await editor(folder)
    ed.open("echo sglang\n")
    assert await ask_command(ed, "spec-lsp.assumed", ed.uri, 0) is None
    assert await ask_command(ed, "spec-lsp.assumed", "file:///not/open.sh", 0) is None
    assert await ask_command(ed, "spec-lsp.showResolved", ed.uri, 0) is None


async def test_links_of_the_resolved_configuration(folder: Path) -> None:
    ed = await editor(folder)
    (folder / "serve.yaml").write_text("attention-backend: trtllm_mha\n")
    ed.open(f"{HEAD}{RUN} --config serve.yaml --page-size 8\n")
    plain = await ask_command(ed, "spec-lsp.showResolved", ed.uri, 1)
    view = await ask_command(ed, "spec-lsp.showResolved", ed.uri, 1, True)
    assert re.findall(r"\w+", re.sub(r"\]\(#\d+\)", "", view["text"])) == re.findall(r"\w+", plain)
    links = dict(re.findall(r"\[([^]]*)\]\(#(\d+)\)", view["text"]))
    flag = ed.text.split("\n")[1].index("--page-size")
    page, backend = (
        {"uri": uri, "range": where}
        for uri, where in (
            (ed.uri, range_(1, flag, 1, flag + len("--page-size 8"))),
            ((folder / "serve.yaml").as_uri(), range_(0, 0, 0, len("attention-backend: trtllm_mha"))),
        )
    )
    assert view["links"][int(links["page-size"])] == page
    assert view["links"][int(links["attention-backend"])] == backend
    assert view["links"][int(links["overridden-value"])] == {"rule": "overridden-value"}


async def test_every_choice_is_a_setting(folder: Path) -> None:
    choices = await ask_command(await editor(folder), "spec-lsp.choices")
    for key, setting in (("releases", "sglang"), ("hardware", "gpu")):
        for choice in choices[key]:
            assert read_settings({setting: choice["name"]})[1] == []
    assert read_settings({"rules": {rule["name"]: "off" for rule in choices["rules"]}})[1] == []
    newest, *_ = choices["releases"]
    assert newest["name"] == max((c["name"] for c in choices["releases"]), key=Release.parse)
    assert {"name": "h200", "title": "H200", "family": "hopper"} in choices["hardware"]


@pytest.mark.parametrize("name", ["tree-drafting-on-trtllm-mha", "SPC123"])
async def test_a_rule_is_explained(folder: Path, name: str) -> None:
    page = await ask_command(await editor(folder), "spec-lsp.rulePage", name)
    assert page.startswith("# tree-drafting-on-trtllm-mha\n\nSPC123 · error")


async def test_a_rule_that_does_not_exist_has_no_page(folder: Path) -> None:
    assert await ask_command(await editor(folder), "spec-lsp.rulePage", "no-such-rule") is None


@pytest.mark.parametrize(
    ("experimental", "told"),
    [({"spec-lsp": {"changed": True}}, True), ({"spec-lsp": {"changed": "yes"}}, False), ({"spec-lsp": []}, False)],
)
async def test_a_client_that_asks_is_told_that_answers_may_be_others(
    folder: Path, experimental: dict[str, Any], told: bool
) -> None:
    ed = await editor(folder, {**ALL, "experimental": experimental})
    ed.open(f"{RUN}\n")
    await ed.client.quiet()
    assert "spec-lsp/changed" not in ed.client.methods()
    ed.client.notify("workspace/didChangeConfiguration", {"settings": {"gpu": "b200"}})
    await ed.client.quiet()
    assert ("spec-lsp/changed" in ed.client.methods()) is told


# --- definition and links ----------------------------------------------------------------------------------------------


async def test_definition(folder: Path) -> None:
    ed = await editor(folder)
    ed.open(f"{HEAD}PAGE=16\n{RUN} --page-size $PA‸GE\n")
    (link,) = await ed.ask_here("definition")
    assert ed.under(link["originSelectionRange"]) == "$PAGE"
    assert link["targetUri"] == ed.uri
    assert ed.under(link["targetRange"]) == "16"
    assert link["targetSelectionRange"] == link["targetRange"]


async def test_definition_in_a_file_for_clients_without_links(folder: Path) -> None:
    (folder / "c d.yaml").write_text("# 😀\npage-size: 16\n", "utf-8")
    ed = await editor(folder, {})
    ed.open(f"{HEAD}{RUN} --config 'c d.yaml' --page-‸size 32\n")
    assert await ed.ask_here("definition") == [{"uri": (folder / "c d.yaml").as_uri(), "range": range_(1, 0, 1, 9)}]


async def test_document_links(folder: Path) -> None:
    (folder / "c.yaml").write_text("page-size: 16\n", "utf-8")
    ed = await editor(folder)
    ed.open(f"{HEAD}sglang serve Qwen/Qwen3-8B --config c.yaml\n")
    page, file = await ed.ask("documentLink")
    assert ed.under(page["range"]) == "Qwen/Qwen3-8B"
    assert page["target"] == "https://huggingface.co/Qwen/Qwen3-8B"
    assert page["tooltip"] == "Qwen/Qwen3-8B on Hugging Face"
    assert ed.under(file["range"]) == "c.yaml"
    assert file["target"] == (folder / "c.yaml").as_uri()


# --- asked again -------------------------------------------------------------------------------------------------------


async def test_hints_are_asked_for_again_when_what_they_depend_on_changes(folder: Path) -> None:
    (folder / "c.yaml").write_text("page-size: 16\n", "utf-8")
    ed = await editor(folder)
    ed.open(f"{HEAD}{RUN} --config c.yaml\n")
    ed.client.server.everything_changed()  # nothing is shown yet
    await ed.hints()
    await ed.ask("codeLens")
    await ed.client.quiet()
    assert not set(REFRESHES) & set(ed.client.methods())
    ed.client.open((folder / "c.yaml").as_uri(), "page-size: 16\n", "yaml")
    ed.client.change((folder / "c.yaml").as_uri(), 2, "page-size: 32\n")
    await ed.client.quiet()
    assert [ed.client.methods().count(method) for method in REFRESHES] == [1, 1]
    await ed.hints()
    ed.client.change((folder / "c.yaml").as_uri(), 3, "page-size: 64\n")
    await ed.client.quiet()
    assert [ed.client.methods().count(method) for method in REFRESHES] == [2, 2]


async def test_clients_that_cannot_are_not_asked(folder: Path) -> None:
    ed = await editor(folder, {})
    ed.open(HINTED)
    ed.client.server.everything_changed()
    await ed.client.quiet()
    assert not set(REFRESHES) & set(ed.client.methods())


async def test_targets_are_compared(folder: Path) -> None:
    ed = await editor(folder)
    ed.open("#!/bin/bash\npython3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-bs 8\n")
    targets = [{"sglang": "0.5.19", "gpu": "h200"}, {"sglang": "0.5.23", "gpu": "b200"}, "not a target", {"gpu": 8}]
    (found,) = await ask_command(ed, "spec-lsp.compare", ed.uri, *targets)
    assert (found["title"], found["line"]) == ("Qwen/Qwen3-8B", 1)
    assert [s["outcome"] for s in found["sides"]][:2] == ["accepted", "bad-arguments"]
    assert [s["target"] for s in found["sides"]][2:] == ["any release and GPU"]
    assert await ask_command(ed, "spec-lsp.compare", "file:///nowhere.sh", *targets) == []


async def test_a_log_is_explained(folder: Path) -> None:
    ed = await editor(folder)
    log = "usage: x\nlaunch_server.py: error: unrecognized arguments: --no-such-flag\n"
    (found,) = await ask_command(ed, "spec-lsp.explainLog", log, {"sglang": "0.5.23"})
    assert [r["name"] for r in found["rules"]] == ["unknown-flag"]
    assert await ask_command(ed, "spec-lsp.explainLog", "all is well") == []


# --- where findings are told, and silenced ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "underlined"),
    [
        ("RUN \\\n  --attention-backend \\\n    trtllm_mla \\\n  --tp 1\n", "run.sh", "--attention-backend"),
        ("RUN \\\n  --attention-backend trtllm_mla \\\n  --tp 1\n", "run.sh", "--attention-backend trtllm_mla"),
        ("args: [python, -m, sglang.launch_server, --model-path, m,\n  --attention-backend,\n  fa9]\n", "p.yaml", None),
    ],
)
async def test_a_squiggle_ends_at_the_words_on_one_line(
    folder: Path, text: str, name: str, underlined: str | None
) -> None:
    ed = await editor(folder)
    ed.open(
        "# spec-lsp: sglang=0.5.23 gpu=h100\n" + text.replace("RUN", RUN), name, "shellscript" if underlined else "yaml"
    )
    await ed.client.quiet()
    found = ed.client.published(ed.uri)[-1]["diagnostics"]
    assert found
    for item in found:
        shown = ed.under(item["range"])
        assert shown == (underlined or shown)
        assert shown == shown.strip(" \\,")


async def test_ignore_here_stands_above_the_command_with_room_for_a_reason(folder: Path) -> None:
    literals = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}
    ed = await editor(folder, {**ALL, "textDocument": {**ALL["textDocument"], "codeAction": literals}})
    ed.open(f"# spec-lsp: sglang=0.5.23 gpu=h100\nif true; then\n  {RUN} \\\n    --attention-backend trtllm_mla\nfi\n")
    await ed.client.quiet()
    (item,) = ed.client.published(ed.uri)[-1]["diagnostics"]
    context = {"diagnostics": [item], "only": ["quickfix"]}
    offered = await ed.ask("codeAction", range=item["range"], context=context)
    (ignore,) = [a for a in offered if a["title"].endswith("` here")]
    ((edit,),) = ([e["newText"] for e in c] for c in ignore["edit"]["changes"].values())
    assert edit == f"  # spec-lsp: ignore[{item['code']}]\n"
    ((at,),) = ([e["range"]["start"] for e in c] for c in ignore["edit"]["changes"].values())
    assert at == {"line": 2, "character": 0}


@pytest.mark.parametrize(
    ("command", "arguments", "told"),
    [
        (
            "spec-lsp.showResolved",
            [],
            "The command `spec-lsp.showResolved` expects `uri` (a text) and `line` (a whole number).",
        ),
        ("spec-lsp.showResolved", ["file:///a.sh"], "expects `uri` (a text) and `line` (a whole number)."),
        ("spec-lsp.showResolved", ["file:///a.sh", "first"], "expects `uri` (a text) and `line` (a whole number)."),
        ("spec-lsp.assumed", ["file:///a.sh", None], "expects `uri` (a text) and `line` (a whole number)."),
        ("spec-lsp.rulePage", [], "The command `spec-lsp.rulePage` expects `name` (a text)."),
        ("spec-lsp.nonsense", [], "There is no command `spec-lsp.nonsense`; there are `spec-lsp.assumed`, "),
    ],
)
async def test_what_a_command_expects_is_told(folder: Path, command: str, arguments: list[Any], told: str) -> None:
    ed = await editor(folder)
    answer = await ed.client.request("workspace/executeCommand", {"command": command, "arguments": arguments})
    assert answer["error"]["code"] == -32602
    assert told in answer["error"]["message"]


@pytest.mark.parametrize(("line", "found"), [(-5, True), (0, True), (10**9, True)])
async def test_a_line_that_is_not_there_is_the_nearest(folder: Path, line: int, found: bool) -> None:
    ed = await editor(folder)
    ed.open(f"{HEAD}{RUN}\n")
    assert bool(await ask_command(ed, "spec-lsp.showResolved", ed.uri, line)) is found
    assert await ask_command(ed, "spec-lsp.showResolved", "no address at all", line) is None


CELLS = {
    "a command": ("python", f"import os\n!{RUN} --bogus-flag 1\n"),
    "a command with Python's values": ("python", f"tp = 2\n!{RUN} --tp {{tp}} --bogus-flag 1 > log 2>&1 &\n"),
    "serve": ("python", "!sglang serve org/m --bogus-flag 1"),
    "a shell's cell": ("python", f"%%bash\nX=1\n{RUN} \\\n  --bogus-flag 1\n"),
    "a shell's cell that the editor knows": ("shellscript", f"%%bash\n{RUN} --bogus-flag 1\n"),
    "a shell's cell without magic": ("shellscript", f"{RUN} --bogus-flag 1\n"),
    "Python": ("python", f"import subprocess\nsubprocess.Popen({json.dumps(RUN.split())} + ['--bogus-flag', '1'])\n"),
}


@pytest.mark.parametrize(("language", "text"), CELLS.values(), ids=CELLS)
async def test_cells_of_a_notebook_are_read_like_those_of_the_file(folder: Path, language: str, text: str) -> None:
    client = (await editor(folder, {**ALL, "notebookDocument": {"synchronization": {}}})).client
    uri = f"vscode-notebook-cell:{(folder / 'a.ipynb').as_uri().removeprefix('file:')}#W0"
    cell = {"uri": uri, "languageId": language, "version": 1, "text": text}
    notebook = {"uri": (folder / "a.ipynb").as_uri(), "notebookType": "jupyter-notebook", "version": 1}
    whole = {**notebook, "cells": [{"kind": 2, "document": uri}]}
    client.notify("notebookDocument/didOpen", {"notebookDocument": whole, "cellTextDocuments": [cell]})
    await client.quiet()
    (found,) = [d for d in client.published(uri)[-1]["diagnostics"] if d["code"] == "unknown-flag"]
    lines = text.split("\n")
    line = next(n for n, written in enumerate(lines) if "--bogus-flag" in written)
    assert found["range"]["start"]["line"] == line
    assert lines[line][found["range"]["start"]["character"] :].lstrip("'").startswith("--bogus-flag")
