"""Push and pull with a fake analysis: what is sent, when, and what is not sent again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.server.features import watching
from tests.server.fakes import LocalClient, range_

PUSH: dict[str, Any] = {
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "dataSupport": True, "tagSupport": {"valueSet": [1, 2]}}
    }
}
PULL: dict[str, Any] = {
    "workspace": {"diagnostics": {"refreshSupport": True}},
    "textDocument": {"diagnostic": {}, "publishDiagnostics": PUSH["textDocument"]["publishDiagnostics"]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def started(capabilities: dict[str, Any], folder: Path, **more: Any) -> LocalClient:
    client = LocalClient(capabilities, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}], **more)
    client.answers = {"workspace/diagnostic/refresh": lambda _: None, "client/registerCapability": lambda _: None}
    await client.start()
    return client


# --- push --------------------------------------------------------------------------------------------------------------


async def test_push_has_version_place_tags_and_data(folder: Path) -> None:
    client = await started(PUSH, folder)
    uri = (folder / "a b.sh").as_uri()
    client.open(uri, "x\n😀 BAD DEAD OLD\n", version=7)
    await client.quiet()
    (params,) = client.published(uri)
    assert params["version"] == 7
    bad, dead, old = params["diagnostics"]
    assert bad["range"] == range_(1, 3, 1, 6)
    assert (bad["severity"], bad["code"], bad["source"], bad["message"]) == (1, "bad-word", "spec-lsp", "BAD is found")
    assert bad["data"] == {"key": "bad-word#0", "document": str(folder / "a b.sh")}
    assert "tags" not in bad
    assert dead["tags"] == [1]
    assert old["tags"] == [2]
    assert "textDocument/diagnostic" not in client.methods()


async def test_what_the_client_does_not_take_is_not_sent(folder: Path) -> None:
    client = await started({}, folder)
    (folder / "x.yaml").write_text("BAD")
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "DEAD --config x.yaml")
    await client.quiet()
    for item in client.published(uri)[-1]["diagnostics"]:
        assert not {"tags", "data", "relatedInformation"} & item.keys()


async def test_every_version_that_was_analysed_is_published_once(folder: Path) -> None:
    """Also when the same is said of it: clients wait for the version."""
    client = await started(PUSH, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD\n\n# comment\n")
    await client.quiet()
    client.change(uri, 2, (2, 9, 2, 9, "s"))
    await client.quiet()
    client.change(uri, 3, (0, 3, 0, 3, "!"))
    client.change(uri, 4, "BAD!\n\n# comments\n")  # with the one before it: nobody analyses what is overtaken
    await client.quiet()
    assert [p["version"] for p in client.published(uri)] == [1, 2, 4]
    client.server.everything_changed()  # of the same version the same is not said again
    await client.quiet()
    assert len(client.published(uri)) == 3
    client.open(uri, "BAD!\n\n# comments\n", version=9)  # opened again
    await client.quiet()
    assert client.published(uri)[-1]["version"] == 9


async def test_a_clean_text_is_told_to_be_so_for_each_version(folder: Path) -> None:
    client = await started(PUSH, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "fine\n")
    for version in range(2, 6):
        await client.quiet()
        client.change(uri, version, f"fine {version}\n")
    await client.quiet()
    assert [(p["version"], p["diagnostics"]) for p in client.published(uri)] == [(v, []) for v in range(1, 6)]


async def test_edits_that_wait_together_are_analysed_once(folder: Path) -> None:
    client = await started(PUSH, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "")
    for version in range(2, 50):
        client.change(uri, version, (0, 0, 0, 0, "BAD "))
    await client.quiet()
    (params,) = client.published(uri)
    assert params["version"] == 49
    assert len(params["diagnostics"]) == 48
    assert client.engine.analysed.count(str(folder / "a.sh")) == 1


async def test_closing_clears(folder: Path) -> None:
    client = await started(PUSH, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD")
    await client.quiet()
    client.close(uri)
    await client.quiet()
    assert client.published(uri)[-1] == {"uri": uri, "diagnostics": []}
    client.open(uri, "BAD", version=1)
    await client.quiet()
    assert len(client.published(uri)[-1]["diagnostics"]) == 1


async def test_a_flaw_in_a_config_file_is_told_in_both_files(folder: Path) -> None:
    client = await started(PUSH, folder)
    (folder / "c d.yaml").write_text("# none\n")
    (folder / "x.yaml").write_text("key: BAD\n")
    script, config = (folder / "a.sh").as_uri(), (folder / "x.yaml").as_uri()
    client.open(script, "run --config x.yaml\n")
    await client.quiet()
    (in_script,) = client.published(script)[-1]["diagnostics"]
    (in_config,) = client.published(config)[-1]["diagnostics"]
    assert in_config["range"] == range_(0, 5, 0, 8)
    assert in_config["relatedInformation"][0]["location"] == {"uri": script, "range": range_(0, 0, 0, 3)}
    assert in_script["range"] == range_(0, 0, 0, 3)
    assert in_script["relatedInformation"][0]["location"] == {"uri": config, "range": range_(0, 5, 0, 8)}
    assert "version" not in client.published(config)[-1]

    client.open(config, "key: \n", "yaml")
    await client.quiet()
    assert client.published(script)[-1]["diagnostics"] == []
    assert client.published(config)[-1]["diagnostics"] == []
    client.change(config, 2, (0, 5, 0, 5, "BAD"))
    await client.quiet()
    assert len(client.published(script)[-1]["diagnostics"]) == 1
    assert client.published(config)[-1]["version"] == 2
    client.close(config)  # what is on the disk counts again
    await client.quiet()
    assert len(client.published(config)[-1]["diagnostics"]) == 1
    client.close(script)
    await client.quiet()
    assert client.published(config)[-1]["diagnostics"] == []


async def test_two_scripts_with_one_config_file_are_merged_there(folder: Path) -> None:
    client = await started(PUSH, folder)
    (folder / "x.yaml").write_text("key: BAD\n")
    scripts = [(folder / f"{n}.sh").as_uri() for n in "ab"]
    for script in scripts:
        client.open(script, "run --config x.yaml\n")
    await client.quiet()
    config = (folder / "x.yaml").as_uri()
    assert len(client.published(config)[-1]["diagnostics"]) == 1
    client.close(scripts[0])
    await client.quiet()
    assert len(client.published(config)[-1]["diagnostics"]) == 1
    client.change(scripts[1], 2, "run\n")
    await client.quiet()
    assert client.published(config)[-1]["diagnostics"] == []


async def test_watched_files_are_read_again(folder: Path) -> None:
    client = await started({**PUSH, "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}, folder)
    assert "client/registerCapability" in client.methods()
    (folder / "x.yaml").write_text("fine\n")
    script = (folder / "a.sh").as_uri()
    client.open(script, "run --config x.yaml\n")
    await client.quiet()
    assert client.published(script)[-1]["diagnostics"] == []
    (folder / "x.yaml").write_text("BAD\n")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": (folder / "x.yaml").as_uri(), "type": 2}]})
    await client.quiet()
    assert len(client.published(script)[-1]["diagnostics"]) == 1


async def looked(client: LocalClient) -> None:
    """Files are looked at beside the event loop."""
    for _ in range(10):
        await client.quiet()
        await asyncio.sleep(0.01)


async def test_a_client_that_watches_nothing_is_told_of_changed_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0)
    (folder / "x.yaml").write_text("fine")
    client = await started(PUSH, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD --config x.yaml")
    await looked(client)
    (folder / "x.yaml").write_text("BAD config")
    await looked(client)
    assert len(client.published(uri)[-1]["diagnostics"]) == 2
    (folder / "spec-lsp.toml").write_text('gpu = "h100"')
    await looked(client)
    assert client.server.session.scope(str(folder / "a.sh")).settings.gpu == "h100"
    client.server.wire.send_bytes = None
    await client.quiet()
    assert not [task for task in asyncio.all_tasks() if "look_around" in repr(task)]


NEOVIM: dict[str, Any] = {
    "workspace": {"inlayHint": {"refreshSupport": True}},
    "textDocument": {"diagnostic": {}, "publishDiagnostics": PUSH["textDocument"]["publishDiagnostics"]},
}


async def test_a_client_that_cannot_be_told_to_pull_again_is_pushed_to(folder: Path) -> None:
    """Neovim 0.11 pulls only what is edited: the finding in the other file would stay."""
    client = await started(NEOVIM, folder)
    script, config = (folder / "a.sh").as_uri(), (folder / "x.yaml").as_uri()
    client.open(script, "--config x.yaml")
    client.open(config, "BAD", "yaml")
    await client.quiet()
    assert client.published(script)[-1]["diagnostics"] != []
    client.change(config, 2, "fine")
    await client.quiet()
    assert client.published(script)[-1]["diagnostics"] == []
    assert "error" in await client.request("textDocument/diagnostic", {"textDocument": {"uri": script}})


async def test_a_config_file_that_is_made_later_is_noticed(folder: Path) -> None:
    client = await started(PUSH, folder)
    script = (folder / "a.sh").as_uri()
    client.open(script, "run --config sub/x.yaml\n")
    await client.quiet()
    client.open((folder / "sub" / "x.yaml").as_uri(), "BAD", "yaml")
    await client.quiet()
    assert len(client.published(script)[-1]["diagnostics"]) == 1


# --- pull --------------------------------------------------------------------------------------------------------------


async def test_pull_is_never_mixed_with_push(folder: Path) -> None:
    client = await started(PULL, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD")
    report = await client.pull(uri)
    assert report["kind"] == "full"
    assert [d["code"] for d in report["items"]] == ["bad-word"]
    client.change(uri, 2, "BAD BAD")
    await client.pull(uri)
    client.close(uri)
    await client.quiet()
    assert "textDocument/publishDiagnostics" not in client.methods()


async def test_pull_answers_unchanged_while_nothing_changed(folder: Path) -> None:
    client = await started(PULL, folder)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD")
    first = await client.pull(uri)
    again = await client.pull(uri, first["resultId"])
    assert again == {"kind": "unchanged", "resultId": first["resultId"]}
    client.change(uri, 2, "BAD ")
    changed = await client.pull(uri, first["resultId"])
    assert changed["kind"] == "full"
    client.change(uri, 3, "BAD")
    back = await client.pull(uri, first["resultId"])
    assert back["kind"] == "unchanged"  # the very same text and findings: a hash, not a counter


async def test_pull_of_what_is_not_open_is_empty(folder: Path) -> None:
    client = await started(PULL, folder)
    report = await client.pull((folder / "never.sh").as_uri())
    assert report == {"kind": "full", "resultId": "closed", "items": []}


async def test_each_document_reports_what_lies_in_it(folder: Path) -> None:
    client = await started(PULL, folder)
    script, config = (folder / "a.sh").as_uri(), (folder / "x.yaml").as_uri()
    client.open(script, "run --config x.yaml\n")
    client.open(config, "key: BAD\n", "yaml")
    (in_script,) = (await client.pull(script))["items"]
    in_config = (await client.pull(config))["items"]
    assert in_script["relatedInformation"][0]["location"]["uri"] == config
    assert {d["data"]["document"] for d in in_config} == {str(folder / "a.sh"), str(folder / "x.yaml")}


async def test_refresh_when_another_document_says_otherwise(folder: Path) -> None:
    client = await started(PULL, folder)
    script, config = (folder / "a.sh").as_uri(), (folder / "x.yaml").as_uri()
    client.open(script, "run --config x.yaml\n")
    client.open(config, "key: fine\n", "yaml")
    await client.pull(script)
    await client.pull(config)
    await client.quiet()
    client.messages.clear()
    client.change(config, 2, "key: finer\n")
    await client.quiet()
    assert "workspace/diagnostic/refresh" not in client.methods()
    client.change(config, 3, "key: BAD\n")
    await client.quiet()
    assert client.methods().count("workspace/diagnostic/refresh") == 1


async def test_a_client_that_never_answers_is_asked_once(folder: Path) -> None:
    client = await started(PULL, folder)
    client.answers.clear()
    script, config = (folder / "a.sh").as_uri(), (folder / "x.yaml").as_uri()
    client.open(script, "run --config x.yaml\n")
    client.open(config, "fine", "yaml")
    await client.pull(script)
    for version in range(2, 10):
        client.change(config, version, "BAD" * (version % 2) + "x")
        await client.quiet()
    assert client.methods().count("workspace/diagnostic/refresh") == 1


# --- settings ----------------------------------------------------------------------------------------------------------

CONFIGURATION: dict[str, Any] = {
    **PUSH,
    "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
}


@pytest.mark.parametrize(
    "options",
    [
        {"rules": {"SPC001": "hint"}, "nonsense": 1},
        {"settings": {"rules": {"SPC001": "hint"}, "nonsense": 1}},
        {"spec-lsp": {"rules": {"SPC001": "hint"}, "nonsense": 1}},
    ],
)
async def test_initialization_options_and_one_message_for_what_is_unknown(folder: Path, options: Any) -> None:
    client = await started(PUSH, folder, initializationOptions=options)
    for n in range(3):
        client.open((folder / f"{n}.sh").as_uri(), "BAD")
    await client.quiet()
    for method in ("window/logMessage", "window/showMessage"):
        lines = [m["params"]["message"] for m in client.messages if m.get("method") == method]
        assert sum("unknown setting `nonsense`" in line for line in lines) == 1


async def test_settings_are_pulled_and_pulled_again(folder: Path) -> None:
    values: dict[str, Any] = {"sglang": "0.5.19", "gpu": "", "nonsense": 1}
    client = LocalClient(CONFIGURATION, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}])
    client.answers = {
        "client/registerCapability": lambda _: None,
        "workspace/configuration": lambda params: [dict(values) for _ in params["items"]],
    }
    await client.start()
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD")
    await client.quiet()
    scope = client.server.session.scope(str(folder / "a.sh"))
    assert scope.settings.sglang == "0.5.19"
    (folder / "spec-lsp.toml").write_text('gpu = "b200"\nsglang = "0.5.9"\n')
    values["sglang"] = "0.5.12"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.quiet()
    settings = client.server.session.scope(str(folder / "a.sh")).settings
    assert (settings.sglang, settings.gpu) == ("0.5.12", "b200")  # the editor over the file, but not with a default


async def test_clients_without_configuration_push_their_settings(folder: Path) -> None:
    client = await started(PUSH, folder)
    client.notify("workspace/didChangeConfiguration", {"settings": {"spec-lsp": {"gpu": "h200"}}})
    await client.quiet()
    assert client.server.session.scope(str(folder / "a.sh")).settings.gpu == "h200"


async def test_settings_file_nearest_wins_and_changes_are_seen(folder: Path) -> None:
    client = await started(PUSH, folder)
    (folder / "sub").mkdir()
    (folder / "spec-lsp.toml").write_text('gpu = "h100"\n')
    name = str(folder / "sub" / "a.sh")
    assert client.server.session.scope(name).settings.gpu == "h100"
    (folder / "sub" / "pyproject.toml").write_text('[tool.spec-lsp]\ngpu = "b200"\n')
    client.notify(
        "workspace/didChangeWatchedFiles", {"changes": [{"uri": (folder / "sub/pyproject.toml").as_uri(), "type": 1}]}
    )
    await client.quiet()
    assert client.server.session.scope(name).settings.gpu == "b200"


@pytest.mark.parametrize("pulls", [True, False])
async def test_settings_that_cannot_be_used_are_told_in_their_file_while_it_is_open(folder: Path, pulls: bool) -> None:
    client = await started(PULL if pulls else PUSH, folder)
    uri = (folder / "spec-lsp.toml").as_uri()

    async def told() -> list[tuple[int, str, str]]:
        await client.quiet()
        items = (await client.pull(uri))["items"] if pulls else client.published(uri)[-1]["diagnostics"]
        return [(d["range"]["start"]["line"], d["code"], d["message"]) for d in items]

    client.open(uri, 'gpuu = "h100"\nmodels = ["m", "/etc"]\n', "toml")
    outside = "'/etc' lies outside the workspace: only the command line and the editor's settings may name it."
    assert await told() == [
        (0, "setting-not-used", "Unknown setting `gpuu`; did you mean `gpu`?"),
        (1, "setting-not-used", f"Setting `models`: {outside}"),
    ]
    client.change(uri, 2, "gpu = \n")
    assert await told() == [(0, "setting-not-used", "spec-lsp.toml cannot be read: invalid value.")]
    client.change(uri, 3, 'gpu = "h100"\n')
    assert await told() == []
