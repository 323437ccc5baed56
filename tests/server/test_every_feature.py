"""Each request, notification and command that the server answers is tried over the wire by some test."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

FEATURES = Path(__file__).parents[2] / "spec_lsp" / "server" / "features"
OVER_THE_WIRE = (Path(__file__).parents[1] / "e2e", Path(__file__).parent)
FEATURE = re.compile(r"\.feature\((?:types\.([A-Z_]+)|\"([^\"]+)\")")
COMMAND = re.compile(r"\.command\(([A-Z_]+)\)")


def _registered() -> dict[str, str]:
    """Methods and commands, each with the module that registers it."""
    from lsprotocol import types

    found = {}
    for path in sorted(FEATURES.glob("*.py")):
        text = path.read_text("utf-8")
        module = importlib.import_module(f"spec_lsp.server.features.{path.stem}")
        found |= {written or getattr(types, name): path.name for name, written in FEATURE.findall(text)}
        found |= {getattr(module, name): path.name for name in COMMAND.findall(text)}
    return found


REGISTERED = _registered()


def _tests() -> str:
    own = Path(__file__).name
    paths = (path for folder in OVER_THE_WIRE for path in sorted(folder.rglob("*.py")) if path.name != own)
    return "\n".join(path.read_text("utf-8") for path in paths)


def _in_python(method: str) -> str:
    """`textDocument/didSave` as clients written in Python call it: `text_document_did_save`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.replace("/", "_")).lower()


def test_the_features_are_found() -> None:
    assert len(REGISTERED) > 20


@pytest.mark.parametrize("method", sorted(REGISTERED))
def test_some_test_sends_it(method: str) -> None:
    text = _tests()
    assert f'"{method}"' in text or _in_python(method) in text, (
        f"no test sends {method} ({REGISTERED[method]}): add one to tests/e2e/test_features.py, over the real protocol"
    )
