"""A language server that only writes down what its client says of itself.

Point an editor at `python record.py OUT.json`, open a file, and OUT.json holds the `initialize` parameters but for what belongs to one
machine or one session (process, folders, paths). That is where the files beside this one come from, where they are recorded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT = ("clientInfo", "capabilities")


def read() -> Any:
    length = 0
    while (line := sys.stdin.buffer.readline()).strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.strip().lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if line else None


def write(message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def main(out: Path) -> None:
    while (message := read()) is not None:
        if message.get("method") == "initialize":
            told = {key: message["params"][key] for key in KEPT if key in message["params"]}
            out.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")
        if message.get("method") == "exit":
            return
        if "id" in message and "method" in message:
            write({"id": message["id"], "result": {"capabilities": {}} if message["method"] == "initialize" else None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
