"""How quick the language server is: `python tests/bench/bench_server.py [--quick] [--bash-ls COMMAND]`.

The file has 1,000 lines and 50 launches (generate.py). Start, first diagnostics, three kinds of keystroke, hover, code actions and memory
are measured on the real process over stdio, as medians and 95th percentiles in milliseconds; beside bash-language-server with
shellcheck on the same file in the same run, where they are installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from generate import LAUNCHES, script

HELLO = [sys.executable, str(Path(__file__).with_name("hello.py"))]
OURS = [sys.executable, "-m", "spec_lsp.cli", "server", "--stdio"]


def installed(folder: Path) -> dict[str, str]:
    """An environment in which our modules are compiled once and kept, as those of an installed package are, wherever this runs."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


class Client:
    """A client of few words, blocking, on a server's pipes."""

    def __init__(self, command: list[str], *, pull: bool, environment: dict[str, str] | None = None) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.pull = pull
        self._id = 0
        self.diagnostics: list[Any] = []
        diagnostic = {"diagnostic": {}} if pull else {}
        capabilities = {
            "general": {"positionEncodings": ["utf-8"]},
            "workspace": {"diagnostics": {"refreshSupport": True}},
            "textDocument": {
                **diagnostic,
                "publishDiagnostics": {"relatedInformation": True, "dataSupport": True},
                "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
            },
        }
        self.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities})
        self.started = time.perf_counter() - self.began
        self.notify("initialized", {})

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def read(self) -> Any:
        assert self.process.stdout
        length = 0
        while (line := self.process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message = json.loads(self.process.stdout.read(length))
        if "id" in message and "method" in message:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        return message

    def request(self, method: str, params: Any) -> Any:
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self._id and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def wait_for_diagnostics(self, uri: str) -> None:
        """The diagnostics of the document as it is: pulled, or the next that are pushed."""
        if self.pull:
            self.diagnostics = self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
            return
        while True:
            message = self.read()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                self.diagnostics = message["params"]["diagnostics"]
                return

    def open(self, uri: str, text: str) -> None:
        self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "shellscript", "version": 1, "text": text}},
        )

    def change(self, uri: str, version: int, line: int, start: int, end: int, text: str) -> None:
        span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"range": span, "text": text}]},
        )

    def memory(self) -> float:
        """Resident memory in MB; NaN where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return float("nan")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def end(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Document:
    """The generated script as one client has it open, and keystrokes in it."""

    def __init__(self, client: Client, folder: Path, *, hardware: bool, launches: int = LAUNCHES) -> None:
        self.client = client
        self.uri = (folder / "fifty.sh").as_uri()
        self.lines = script(hardware=hardware, launches=launches).split("\n")
        self._version = itertools.count(2)
        self._fresh = itertools.count(17)
        client.open(self.uri, "\n".join(self.lines))
        client.wait_for_diagnostics(self.uri)

    def _line(self, start: str, after: int = 0) -> int:
        return next(i for i, line in enumerate(self.lines) if i >= after and line.lstrip().startswith(start))

    def _rewrite(self, line: int, new: str) -> float:
        old = self.lines[line]
        self.lines[line] = new
        began = time.perf_counter()
        self.client.change(self.uri, next(self._version), line, 0, len(old), new)
        self.client.wait_for_diagnostics(self.uri)
        return 1000 * (time.perf_counter() - began)

    def in_one_launch(self) -> float:
        """A value of launch 25 that was not there before."""
        return self._rewrite(
            self._line("--max-running-requests", len(self.lines) // 2),
            f"  --max-running-requests {next(self._fresh)} \\",
        )

    def in_what_moves(self) -> float:
        """A character more or less at the end of a comment above half of the launches: all of these stand elsewhere then."""
        line = self._line("# server 25")
        return self._rewrite(line, "# server 25" + "." * (next(self._fresh) % 5))

    def in_the_shared_variable(self) -> float:
        """A page size that was not there before: all fifty launches read it."""
        return self._rewrite(self._line("PAGE="), f"PAGE={next(self._fresh)}")

    def in_a_comment(self) -> float:
        return self._rewrite(1, "# fifty servers" + "!" * (next(self._fresh) % 7))

    def hover(self) -> float:
        began = time.perf_counter()
        line = self._line("--attention-backend", 500)
        self.client.request(
            "textDocument/hover", {"textDocument": {"uri": self.uri}, "position": {"line": line, "character": 5}}
        )
        return 1000 * (time.perf_counter() - began)

    def code_actions(self) -> float:
        """The fixes of one diagnostic, of a text that they were not asked of before."""
        self.in_one_launch()
        began = time.perf_counter()
        params = {
            "textDocument": {"uri": self.uri},
            "range": self.client.diagnostics[0]["range"],
            "context": {"diagnostics": self.client.diagnostics[:1]},
        }
        self.client.request("textDocument/codeAction", params)
        return 1000 * (time.perf_counter() - began)

    def memory_after(self, edits: int) -> float:
        """Resident memory after that many keystrokes; read only every hundredth."""
        line = self._line("--port", 500)
        for number in range(edits):
            old = self.lines[line]
            self.lines[line] = f"  --port {31000 + number % 1000} \\"
            self.client.change(self.uri, next(self._version), line, 0, len(old), self.lines[line])
            if number % 100 == 99:
                self.client.wait_for_diagnostics(self.uri)
        return self.client.memory()


def measured(run: Callable[[], float], times: int) -> list[float]:
    return [run() for _ in range(times)]


def p95(samples: list[float]) -> float:
    return sorted(samples)[min(len(samples) - 1, round(0.95 * len(samples)))]


def ours(quick: bool, folder: Path) -> Iterator[tuple[str, list[float]]]:
    """Every figure of spec-lsp's, as (name, samples in ms)."""
    environment = installed(folder)
    for hardware in (False, True):  # the first run of all compiles
        starts, firsts = [], []
        for _ in range(4 if quick else 11):
            client = Client(OURS, pull=True, environment=environment)
            starts.append(1000 * client.started)
            began = time.perf_counter()
            Document(client, folder, hardware=hardware)
            firsts.append(1000 * (time.perf_counter() - began))
            client.end()
        if not hardware:
            yield "start → initialize", starts[1:]
        yield f"didOpen → diagnostics, just started{', hardware given' if hardware else ''}", firsts[1:]
    times = 20 if quick else 100
    for hardware in (True, False):
        client = Client(OURS, pull=True, environment=environment)
        document = Document(client, folder, hardware=hardware)
        suffix = "hardware given" if hardware else "hardware unknown"
        measured(document.in_one_launch, 5)
        yield f"key in one launch, {suffix}", measured(document.in_one_launch, times)
        yield f"key in the shared variable, {suffix}", measured(document.in_the_shared_variable, max(times // 5, 5))
        yield f"key that moves half of the launches, {suffix}", measured(document.in_what_moves, times)
        yield f"key in a comment, {suffix}", measured(document.in_a_comment, times)
        yield f"hover, {suffix}", measured(document.hover, times)
        if client.diagnostics:
            yield f"code actions, {suffix}", measured(document.code_actions, max(times // 5, 5))
        client.end()


def ratios(quick: bool, folder: Path) -> Iterator[str]:
    """What a key costs beside the same key in a server that does nothing, and in a file that is ten times as long: medians and 95th
    percentiles of this run, each server asked in turn."""
    environment, times = installed(folder), 40 if quick else 200
    servers = {
        "hello": (HELLO, {"hardware": False}),
        "hardware given": (OURS, {"hardware": True}),
        "hardware unknown": (OURS, {"hardware": False}),
        "hardware unknown, 10,000 lines": (OURS, {"hardware": False, "launches": 10 * LAUNCHES}),
        "nothing launched": (OURS, {"hardware": False, "launches": 0}),
    }
    clients = {name: Client(command, pull=False, environment=environment) for name, (command, _) in servers.items()}
    documents = {name: Document(clients[name], folder, **given) for name, (_, given) in servers.items()}
    keys = {name: d.in_a_comment if name == "nothing launched" else d.in_one_launch for name, d in documents.items()}
    samples: dict[str, list[float]] = {name: [] for name in keys}
    for number in range(times + 5):
        for name, key in keys.items():
            took = key()
            if number >= 5:
                samples[name].append(took)
    for name, took_each in samples.items():
        memory = clients[name].memory()
        clients[name].end()
        for other in ("hello", "hardware unknown") if "10,000" in name else ("hello",):
            median = statistics.median(took_each) / statistics.median(samples[other])
            yield f"{name:34} / {other:18} × {median:5.2f} median, × {p95(took_each) / p95(samples[other]):5.2f} p95, {memory:.0f} MB"


def starts(quick: bool, folder: Path) -> Iterator[str]:
    """What it costs from the process to the first diagnostics beside the server that does nothing, each started in turn: the least CPU, and
    the median of the wall's time."""
    environment = installed(folder)
    servers = {"hello": (HELLO, False), "hardware given": (OURS, True), "hardware unknown": (OURS, False)}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for number in range(6 if quick else 21):  # the first run of each compiles
        for name, (command, hardware) in servers.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            client = Client(command, pull=False, environment=environment)
            Document(client, folder, hardware=hardware)
            wall = time.perf_counter() - client.began
            client.process.kill()
            client.process.wait()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if number:
                took[name].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    cpu = {name: min(used for used, _ in each) for name, each in took.items()}
    waited = {name: statistics.median(wall for _, wall in each) for name, each in took.items()}
    for name in servers:
        yield (
            f"start → diagnostics, {name:17} CPU {1000 * cpu[name]:4.0f} ms × {cpu[name] / cpu['hello']:.2f}, "
            f"wall × {waited[name] / waited['hello']:.2f}"
        )


def memory(quick: bool, folder: Path) -> tuple[float, float]:
    """Resident MB after the first tenth of the edits and after all."""
    client = Client(OURS, pull=True, environment=installed(folder))
    document = Document(client, folder, hardware=False)
    edits = 2000 if quick else 20_000
    early = document.memory_after(edits // 10)
    late = document.memory_after(edits - edits // 10)
    client.end()
    return early, late


def peer(command: str, quick: bool, folder: Path) -> dict[str, list[float]]:
    """bash-language-server (it runs shellcheck) on the same file: its linting waits 500 ms after each key."""
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    starts, firsts, keys = [], [], []
    for _ in range(2 if quick else 5):
        client = Client([command, "start"], pull=False, environment=path)
        starts.append(1000 * client.started)
        began = time.perf_counter()
        document = Document(client, folder, hardware=False)
        firsts.append(1000 * (time.perf_counter() - began))
        keys += measured(document.in_one_launch, 3 if quick else 6)
        client.process.kill()
    return {
        "start → initialize": starts,
        "didOpen → diagnostics, just started": firsts,
        "key in one launch, hardware unknown": keys,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    arguments.add_argument("--quick", action="store_true", help="a fifth of the samples")
    arguments.add_argument("--bash-ls", default=shutil.which("bash-language-server") or "", help="the peer's command")
    arguments.add_argument(
        "--ratios",
        action="store_true",
        help="only what the start and a key cost beside pygls, and a key in longer files",
    )
    given = arguments.parse_args()
    if given.ratios:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            for line in itertools.chain(starts(given.quick, folder), ratios(given.quick, folder)):
                print(line, flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        theirs = peer(given.bash_ls, given.quick, folder) if given.bash_ls else {}
        print(f"{'':48} {'median':>8} {'p95':>8}   bash-language-server (median)")
        for label, samples in ours(given.quick, folder):
            beside = theirs.get(label)
            ratio = (
                f"{statistics.median(beside):8.0f}   × {statistics.median(beside) / statistics.median(samples):.1f}"
                if beside
                else ""
            )
            print(f"{label:48} {statistics.median(samples):8.1f} {p95(samples):8.1f}   {ratio}", flush=True)
        early, late = memory(given.quick, folder)
        print(
            f"memory in MB after a tenth of the edits {early:.1f}, after all {late:.1f} ({2000 if given.quick else 20_000} edits)"
        )


if __name__ == "__main__":
    main()
