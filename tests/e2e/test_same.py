"""The command line and the server say the same of every file of the corpus, from the same place on: editors underline a finding's first
line only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.processes import ended, start, wire_of
from tests.fuzz.cases import corpus

PULLS: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-32"]},
    "workspace": {"diagnostics": {"refreshSupport": True}},
    "textDocument": {"diagnostic": {}, "publishDiagnostics": {"relatedInformation": True}},
}
SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}


async def test_the_command_line_and_the_server_say_the_same(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name, text in corpus():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    names = [name for name, _ in corpus()]
    command = [sys.executable, "-m", "spec_lsp.cli", "check", "--format", "json", "--exit-zero", "--jobs", "1", *names]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=True)
    told: dict[str, list[Any]] = {name: [] for name in names}
    for found in json.loads(ran.stdout):
        said = (found["rule"], found["severity"], found["message"], found["range"]["start"])
        if found["file"] in told and said not in told[found["file"]]:
            told[found["file"]].append(said)

    process = await start("--stdio")
    wire = wire_of(process)
    await wire.start(PULLS, workspaceFolders=[{"uri": root.as_uri(), "name": "w"}])
    different = []
    for name, text in corpus():
        uri = (root / name).as_uri()
        wire.open(uri, text, "plaintext")
        answer = await wire.result("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        items = [(i["code"], SEVERITIES[i["severity"]], i["message"], i["range"]["start"]) for i in answer["items"]]
        wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        elsewhere = [i for i in items if i not in told[name]]
        missing = [i for i in told[name] if i not in items]
        if missing or elsewhere:
            different.append((name, missing, elsewhere))
    await wire.leave()
    assert await ended(process) == 0
    assert different == []
    assert sum(map(len, told.values())) > 50
