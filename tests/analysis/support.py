"""Analysing a text as if it were a file of a small workspace that exists in memory alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.fixes import apply, fix_all, fixes_for
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.report import Analysis, Diagnostic
from spec_lsp.catalog.release import Release
from spec_lsp.facts.model import ModelFacts
from spec_lsp.workspace import DiskWorkspace

MODELS = Path(__file__).parent.parent / "models"
NAME = "/w/run.sh"
PINNED = "# spec-lsp: sglang=0.5.23 gpu=h100\n"
"""One world, so that a test is quick."""
SERVER = "python -m sglang.launch_server --model-path llama-3.1-8b"

_disk = DiskWorkspace(models=(MODELS,))


@dataclass
class Memory:
    """A workspace whose files are `files` (by absolute name), and whose lock file pins `pin`."""

    files: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        name = os.path.normpath(os.path.join(os.path.dirname(document), path))
        return (name, self.files[name]) if name in self.files else None

    def left_out(self, document: str, path: str) -> str:
        return ""

    def unreadable_model(self, document: str, path_or_id: str) -> str:
        return ""

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        return _disk.model(document, path_or_id)

    def release(self, document: str, python: str = "") -> tuple[Release, str] | None:
        return (Release.parse(self.pin), "uv.lock") if self.pin else None

    def unread_sglang(self, document: str, python: str = "") -> str:
        return ""

    def sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        return None, "holds no SGLang"


NOTHING = Memory()


def check(text: str, *, name: str = NAME, options: Options | None = None, workspace: Memory = NOTHING) -> Analysis:
    return analyse(read_document(name, text, workspace), options or Options(), workspace)


def said(text: str, **more: object) -> list[tuple[str, str, str]]:
    """(severity, rule, underlined text) of each finding in the text."""
    return [seen(text, d) for d in check(text, **more).diagnostics]  # type: ignore[arg-type]


def seen(text: str, diagnostic: Diagnostic) -> tuple[str, str, str]:
    place = diagnostic.place
    return diagnostic.severity, diagnostic.rule.name, text[place.start : place.end]


def rules_of(text: str, **more: object) -> list[str]:
    return [rule for _, rule, _ in said(text, **more)]


def only(text: str, rule: str, **more: object) -> Diagnostic:
    """The one finding of this rule."""
    (found,) = [d for d in check(text, **more).diagnostics if d.rule.name == rule]  # type: ignore[arg-type]
    return found


def offered(
    text: str, rule: str, *, options: Options | None = None, workspace: Memory = NOTHING
) -> list[tuple[str, str, str]]:
    """(title, applicability, text afterwards) of each fix of the one finding of a rule."""
    options = options or Options()
    analysis = check(text, options=options, workspace=workspace)
    (diagnostic,) = [d for d in analysis.diagnostics if d.rule.name == rule]
    fixes = fixes_for(analysis, diagnostic, options, workspace)
    return [(f.title, f.applicability, after(text, f.edits)) for f in fixes]


def after(text: str, edits: Sequence[object], name: str = NAME) -> str:
    changed = apply(text, [e for e in edits if e.place.document == name])  # type: ignore[attr-defined, misc]
    assert changed is not None
    return changed


def repaired(text: str, *, unsafe: bool = True, workspace: Memory = NOTHING) -> str:
    """The text after fix-all."""
    return after(text, fix_all(NAME, text, Options(), workspace, unsafe=unsafe))
