"""A fake analysis, so that the server is tested apart from what it shows, and a client that lives in the same process.

The fake finds `BAD`, `DEAD` (unnecessary) and `OLD` (deprecated), and reads the file named behind `--config`: a `BAD` there is a finding
in that file. `# spec-lsp: ignore[bad-word]` silences a `BAD` on its line or the next, `ignore-file` all.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spec_lsp.analysis.inputs import Options, Workspace
from spec_lsp.analysis.report import Analysis, Diagnostic, Fix, LaunchReport, PlacedDiagnostics, Related
from spec_lsp.resolution.engine import Rule
from spec_lsp.server.server import Server
from spec_lsp.syntax.launch import Document, Edit, Launch, Variant
from spec_lsp.syntax.word import Place

RULES = {
    "BAD": Rule("TST001", "bad-word", "Bad words are refused.", "test", ""),
    "DEAD": Rule("TST002", "dead-word", "Dead words do nothing.", "test", "", severity="hint"),
    "OLD": Rule("TST003", "old-word", "Old words go away.", "test", "", severity="warning"),
}


@dataclass(frozen=True)
class FakeHover:
    markdown: str
    place: Place
    flag: str = ""


class FakeCache:
    def clear(self) -> None:
        pass


class FakeEngine:
    """See the module."""

    def __init__(self) -> None:
        self.analysed: list[str] = []
        self.fail: Callable[[str], None] = lambda _: None

    def new_cache(self) -> FakeCache:
        return FakeCache()

    def analyse(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, cache: Any
    ) -> Analysis:
        self.analysed.append(name)
        self.fail(text)
        launch = Launch("launch_server", Place(name, 0, min(3, len(text))), Place(name, 0, len(text)), (Variant(()),))
        found, ignored, needs = [], 0, set()
        for match in re.finditer("BAD|DEAD|OLD", text):
            if _ignored(text, match.start()):
                ignored += 1
            else:
                found.append(_diagnostic(match[0], Place(name, match.start(), match.end()), f"#{len(found)}", options))
        for path in re.findall(r"--config (\S+)", text):
            read = workspace.read(name, path)
            needs.add(read[0] if read else path)
            if read and "BAD" in read[1]:
                at = read[1].index("BAD")
                found.append(
                    _diagnostic(
                        "BAD", Place(read[0], at, at + 3), "config", options, Related(launch.place, "the launch")
                    )
                )
        launches = (LaunchReport(lambda: launch, (), _no_run),) if text else ()
        return Analysis(Document(name, text), PlacedDiagnostics(found), launches, ignored, frozenset(needs))

    def fixes(
        self, analysis: Analysis, diagnostic: Diagnostic, options: Options, workspace: Workspace, cache: Any
    ) -> tuple[Fix, ...]:
        return (
            Fix(
                "Write good",
                "safe" if diagnostic.rule is RULES["DEAD"] else "unsafe",
                (Edit(diagnostic.place, "good"),),
                preferred=True,
            ),
            Fix("Remove it", "unsafe", (Edit(diagnostic.place, ""),)),
        )

    def fix_all(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, unsafe: bool
    ) -> tuple[Edit, ...]:
        word = "BAD" if unsafe else "DEAD"
        return tuple(Edit(Place(name, m.start(), m.end()), "good") for m in re.finditer(word, text))

    def hover(self, analysis: Analysis, offset: int, name: str) -> FakeHover | None:
        for match in re.finditer(r"\S+", analysis.document.text):
            if match.start() <= offset < match.end():
                return FakeHover(f"**hover** `{match[0]}`", Place(name, match.start(), match.end()))
        return None

    def resolved(self, report: LaunchReport) -> str:
        return "# table"


def _no_run() -> Any:
    raise AssertionError("nobody asks the fake for a run")


def _ignored(text: str, at: int) -> bool:
    lines, number = text.split("\n"), text.count("\n", 0, at)
    if "ignore-file[bad-word]" in text:
        return True
    return any("ignore[bad-word]" in line for line in lines[max(number - 1, 0) : number + 1])


def _diagnostic(word: str, place: Place, key: str, options: Options, *related: Related) -> Diagnostic:
    rule = RULES[word]
    severity = options.severities.get(rule.name, rule.severity)
    return Diagnostic(
        rule,
        "hint" if severity == "off" else severity,
        f"{word} is found",
        place,
        f"{rule.name}{key}",
        related=related,
        unnecessary=word == "DEAD",
        deprecated=word == "OLD",
        launch=0,
    )


class LocalClient:
    """Talks to a server in the same process. What the server sends is in `messages`, in order."""

    def __init__(
        self, capabilities: dict[str, Any] | None = None, engine: FakeEngine | None = None, **initialize: Any
    ) -> None:
        self.engine = engine or FakeEngine()
        self.server = Server(self.engine)
        self.messages: list[dict[str, Any]] = []
        self.codes: list[int] = []
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.server.wire.send_bytes = self._take
        self.server.wire.on_exit = self.codes.append
        self._capabilities = capabilities or {}
        self._initialize = initialize
        self._id = 0

    def _take(self, body: bytes) -> None:
        message = json.loads(body)
        self.messages.append(message)
        if "method" in message and "id" in message and message["method"] in self.answers:
            reply = {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": self.answers[message["method"]](message["params"]),
            }
            asyncio.get_running_loop().call_soon(self.server.wire.receive, json.dumps(reply).encode())

    async def start(self) -> dict[str, Any]:
        result = await self.request(
            "initialize", {"processId": None, "rootUri": None, "capabilities": self._capabilities, **self._initialize}
        )
        self.notify("initialized", {})
        await self.quiet()
        return result["result"]

    def raw(self, message: Any) -> None:
        self.server.wire.receive(message if isinstance(message, bytes) else json.dumps(message).encode())

    def notify(self, method: str, params: Any) -> None:
        self.raw({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, method: str, params: Any) -> int:
        self._id += 1
        self.raw({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    async def request(self, method: str, params: Any) -> dict[str, Any]:
        return await self.answer(self.send(method, params))

    async def answer(self, id_: Any) -> dict[str, Any]:
        for _ in range(1000):
            for message in self.messages:
                if message.get("id") == id_ and "method" not in message:
                    return message
            await asyncio.sleep(0)
        raise AssertionError(f"request {id_} is not answered; got {self.messages}")

    async def quiet(self) -> None:
        """Let everything that is scheduled run."""
        for _ in range(100):
            await asyncio.sleep(0)

    # documents

    def open(self, uri: str, text: str, language: str = "shellscript", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, *changes: Any) -> None:
        """Each change is a whole text, or (start line, start, end line, end, text)."""
        events = [{"text": c} if isinstance(c, str) else {"range": range_(*c[:4]), "text": c[4]} for c in changes]
        self.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": events}
        )

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def published(self, uri: str) -> list[dict[str, Any]]:
        """All publications for a document, in order."""
        pushed = [m["params"] for m in self.messages if m.get("method") == "textDocument/publishDiagnostics"]
        return [p for p in pushed if p["uri"] == uri]

    async def pull(self, uri: str, previous: str | None = None) -> dict[str, Any]:
        params = {"textDocument": {"uri": uri}, **({"previousResultId": previous} if previous else {})}
        return (await self.request("textDocument/diagnostic", params))["result"]

    def methods(self) -> list[str]:
        return [m["method"] for m in self.messages if "method" in m]


def range_(start_line: int, start: int, end_line: int, end: int) -> dict[str, Any]:
    return {"start": {"line": start_line, "character": start}, "end": {"line": end_line, "character": end}}
