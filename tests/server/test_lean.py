"""Message classes that are made when they are needed are what lsprotocol's own would be."""

from __future__ import annotations

import json
import subprocess
import sys

ASK = """
import json, sys
if "lean" in sys.argv:
    from spec_lsp.server.lean import import_protocol
    import_protocol()
import attrs
from lsprotocol import converters, types
made = converters.get_converter()
tell = {
    name: [[f.name, str(f.type), f.default is attrs.NOTHING, type(f.validator).__name__] for f in attrs.fields(cls)]
    for name, cls in types.ALL_TYPES_MAP.items() if isinstance(cls, type) and attrs.has(cls)
}
hover = made.structure(json.loads('{"textDocument":{"uri":"a"},"position":{"line":1,"character":2}}'), types.HoverParams)
tell["a message"] = made.unstructure(hover)
try:
    types.Position(line="x", character=0)
except Exception as error:
    tell["refused"] = type(error).__name__
print(json.dumps(tell))
"""


def told(*how: str) -> dict[str, object]:
    run = subprocess.run([sys.executable, "-c", ASK, *how], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(run.stdout)
    return answer


def test_lean_classes_are_the_same() -> None:
    plain = told()
    assert len(plain) > 400
    assert told("lean") == plain
