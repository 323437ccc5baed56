"""Every file of tests/corpus/yaml against its golden file: the launches that are read, and what is said of them.

`UPDATE_GOLDEN=1 pytest tests/syntax/test_yaml_corpus.py` writes the golden files anew: look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.reading import read_with
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES
from tests.analysis.support import Memory
from tests.syntax.support import check_maps, forget
from tests.syntax.test_corpus import golden

FOLDER = Path(__file__).parent.parent / "corpus" / "yaml"
FILES = sorted(p for p in FOLDER.iterdir() if p.suffix != ".json")
BESIDE = {
    ".env": "TP=4\nPAGE=64\n",
    "common.yml": (
        "services:\n  sglang:\n    image: lmsysorg/sglang:v0.5.21\n    environment:\n      SGLANG_ENABLE_JIT_DEEPGEMM: '1'\n"
        "    command: python3 -m sglang.launch_server --model-path org/model --tp ${TP:-1} --attention-backend fa5\n"
    ),
}
"""Files that every one of them finds beside it."""


def said(path: Path, text: str) -> dict[str, Any]:
    document = read_with(path.name, text, BESIDE.get, None)
    check_maps(document)
    found = golden(document)
    for told, launch in zip(found["launches"], document.launches, strict=True):
        told["syntax"] = launch.syntax
        if launch.role:
            told["role"] = launch.role
    options = Options(targets=(Target(Release.parse("0.5.21"), DEVICES["h100"]),))
    analysis = analyse(document, options, Memory(BESIDE))
    found["findings"] = [
        f"{d.severity} {d.rule.name} at {text[d.place.start : d.place.end]!r}"
        for d in analysis.diagnostics
        if d.place.document == document.name
    ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_golden(path: Path) -> None:
    forget()
    found = said(path, path.read_bytes().decode("utf-8"))
    file = path.with_name(path.name + ".json")
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))
