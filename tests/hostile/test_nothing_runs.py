"""Whoever looks at a repository runs nothing of it, and no program of their own machine either."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asking.fake import write
from tests.hostile.inputs import HOSTILE, made, snapshot

WATCHED = """
import os, sys
FORBIDDEN = ("subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "pty.", "ctypes.dlopen",
             "socket.connect", "socket.getaddrinfo", "socket.bind", "webbrowser.")
ALLOWED = os.environ.get("ALLOWED")
def watch(event, arguments):
    if event.startswith(FORBIDDEN) and not (event == "subprocess.Popen" and ALLOWED and arguments[0] == ALLOWED):
        os.write(2, f"WATCHED {event} {arguments!r}\\n".encode(errors="replace"))
        os._exit(99)
sys.addaudithook(watch)
from spec_lsp.cli.main import main
sys.exit(main())
"""
COMMANDS = {
    "check": ["check", "."],
    "fix": ["check", ".", "--fix", "--unsafe-fixes"],
    "launches": ["launches", "."],
    "settings": ["settings", "."],
}


def watched(folder: Path, *words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """`spec-lsp` in a process that ends when it starts a program or reaches for the network."""
    return subprocess.run(
        [sys.executable, "-c", WATCHED, *words], cwd=folder, capture_output=True, timeout=240, check=False, input=input
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_starts_a_program(name: str, tmp_path: Path) -> None:
    folder = made(name, tmp_path)
    for command in COMMANDS.values():
        ran = watched(folder, *command)
        assert b"WATCHED" not in ran.stderr
        assert b"internal error" not in ran.stderr
        assert ran.returncode in (0, 1, 2), ran.stderr
    assert not (folder / "ran").exists()


def test_whoever_asks_sglang_starts_the_interpreter_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of a repository runs in there, nor is anything of it, or beside it, changed: over all of them at once."""
    for name in HOSTILE:
        (tmp_path / name).mkdir()
        made(name, tmp_path / name)
    write(tmp_path / "packages")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("ALLOWED", sys.executable)
    before = [snapshot(tmp_path / name, tmp_path / name / name) for name in HOSTILE]
    ran = watched(tmp_path, "verify", ".", "--python", sys.executable)
    assert b"WATCHED" not in ran.stderr
    assert b"internal error" not in ran.stderr
    assert b"SGLang 0.5.23 on a simulated" in ran.stdout
    assert ran.returncode in (0, 1, 2), ran.stderr
    assert [snapshot(tmp_path / name, tmp_path / name / name) for name in HOSTILE] == before
    assert not any((tmp_path / name / name / "ran").exists() for name in HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_server_starts_no_program(name: str, tmp_path: Path) -> None:
    folder = made(name, tmp_path)
    ran = watched(folder, "server", "--stdio", input=session(folder))
    assert b"WATCHED" not in ran.stderr
    assert ran.returncode == 0, ran.stderr
    assert not (folder / "ran").exists()
    assert b'"id":"last"' in ran.stdout.replace(b" ", b"")


def session(folder: Path) -> bytes:
    """All that a client may send that opens a folder and looks at its files."""
    root = folder.as_uri()
    messages: list[dict[str, object]] = [
        {"id": 0, "method": "initialize", "params": {
            "processId": None, "capabilities": {}, "rootUri": root, "workspaceFolders": [{"uri": root, "name": "w"}],
        }},
        {"method": "initialized", "params": {}},
    ]  # fmt: skip
    for number, path in enumerate(sorted(p for p in folder.rglob("*") if p.suffix in (".sh", ".yaml", ".toml"))):
        if not path.is_file() or path.is_symlink():
            continue
        uri = path.as_uri() if str(path).isprintable() else "file://" + os.fsencode(path).hex()
        document = {"uri": uri, "languageId": "shellscript", "version": 1, "text": path.read_text(errors="replace")}
        at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 120}}
        messages.append({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        messages.append({"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}})
        messages += (
            {"id": f"{feature}{number}", "method": f"textDocument/{feature}", "params": at}
            for feature in ("hover", "completion", "definition")
        )
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        action = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}}
        messages.append({"id": f"action{number}", "method": "textDocument/codeAction", "params": action})
        messages.append({"id": f"link{number}", "method": "textDocument/documentLink", "params": at})
    messages.append({"id": "last", "method": "shutdown"})
    messages.append({"method": "exit"})
    bodies = (json.dumps({"jsonrpc": "2.0", **m}).encode() for m in messages)
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_no_program_is_executed(tmp_path: Path) -> None:
    """The same, asked of the system itself, workers included, over all repositories at once."""
    for name in HOSTILE:
        (tmp_path / name).mkdir()
        made(name, tmp_path / name)
    log = tmp_path / "calls"
    command = ["strace", "-f", "-qq", "-o", str(log), "-e", "trace=execve,execveat,connect", sys.executable]
    ran = subprocess.run(
        [*command, "-m", "spec_lsp.cli", "check", ".", "--jobs", "2"],
        cwd=tmp_path, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode in (1, 2), ran.stderr
    started = [line for line in log.read_text().splitlines() if "exec" in line or "connect" in line]
    assert len(started) == 1, started  # the command itself
