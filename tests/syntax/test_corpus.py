"""Every file of tests/corpus against its golden file: the launches in it and, but for shell, what is said of them on an H100.

`UPDATE_GOLDEN=1 pytest tests/syntax/test_corpus.py` writes the golden files anew: look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.facts.hardware import find
from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import apply_edits
from spec_lsp.syntax.launch import Document
from tests.analysis.support import check
from tests.syntax.support import argv, check_maps, told

CORPUS = Path(__file__).parent.parent / "corpus"
FOLDER = CORPUS / "shell"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
OTHERS = ("dockerfile", "systemd", "make", "markdown", "python", "other")


def is_golden(path: Path) -> bool:
    """Whether a file tells of the one that is named as it, but for a last `.json`."""
    return path.suffix == ".json" and path.with_name(path.stem).exists()


DOCUMENTS = sorted(p for folder in OTHERS for p in (CORPUS / folder).rglob("*") if p.is_file() and not is_golden(p))
ON_H100 = Options(targets=(Target(hardware=find("h100")),))


def golden(document: Document) -> dict[str, Any]:
    """What a golden file tells of a document."""
    text = document.text
    return {
        "launches": [
            {
                "program": launch.program,
                "entry": text[launch.place.start : launch.place.end],
                "clues": [f"{c.kind}: {c.text}" for c in launch.clues],
                "variants": [
                    {
                        "argv": argv(variant),
                        **({"env": {k: told(w) for k, w in variant.env.items()}} if variant.env else {}),
                        **({"when": [c.taken for c in variant.choices]} if variant.choices else {}),
                        **({"files": {f.name: told(f.content) for f in variant.files}} if variant.files else {}),
                    }
                    for variant in launch.variants
                ],
            }
            for launch in document.launches
        ],
        "problems": [
            {
                "rule": p.rule,
                "at": text[p.place.start : p.place.end],
                "message": p.message,
                "fixed": apply_edits(text, document.name, p.edits),
            }
            for p in document.problems
        ],
        "depends_on": sorted(document.depends_on),
    }


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    document = parse(path.name, path.read_bytes().decode("utf-8"))
    check_maps(document)
    compare(golden(document), path.with_suffix(".json"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.relative_to(CORPUS).as_posix())
def test_golden_document(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    analysis = check(text, name=path.relative_to(CORPUS).as_posix(), options=ON_H100)
    check_maps(analysis.document)
    findings = [f"{d.severity} {d.rule.name}: {text[d.place.start : d.place.end]}" for d in analysis.diagnostics]
    compare({**golden(analysis.document), "findings": findings}, path.with_name(path.name + ".json"))


def compare(found: dict[str, Any], file: Path) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))
