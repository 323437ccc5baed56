"""Which reader a text goes to, and comments to spec-lsp."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import kind_of, parse
from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place
from tests.syntax.support import START

KINDS = [
    ("run.sh", "", None, "shell"),
    ("job.slurm", "", None, "shell"),
    ("job.sbatch", "", None, "shell"),
    ("c.yaml", "", None, "yaml"),
    ("c.yml", "", None, "yaml"),
    ("serve", "#!/usr/bin/env bash\n", None, "shell"),
    ("serve", "#!/bin/sh -e\n", None, "shell"),
    ("serve", "#!/usr/bin/env python3\n", None, ""),
    ("serve", START, None, "shell"),
    ("serve", "hello", None, ""),
    ("a.py", START, None, ""),
    ("README.md", START, None, ""),
    ("Dockerfile", START, None, ""),
    ("untitled:Untitled-1", "", "shellscript", "shell"),
    ("untitled:Untitled-1", "", "yaml", "yaml"),
    ("x.sh", START, "python", ""),
    ("x.sh", "#!/usr/bin/fish\n", None, ""),
    ("file:///a/b%20c/run.sh", "", None, "shell"),
]


@pytest.mark.parametrize(("name", "text", "language", "kind"), KINDS, ids=range(len(KINDS)))
def test_kind(name: str, text: str, language: str | None, kind: str) -> None:
    assert kind_of(name, text, language) == kind


def test_directives() -> None:
    text = f"# spec-lsp: sglang=0.5.19\n{START} \\\n  --a  # spec-lsp: ignore[x] why\nif x; then\n  #spec-lsp: y\n  z\nfi\necho '# spec-lsp: no'\ncat <<EOF\n# spec-lsp: no\nEOF\n# spec-lsp: end"
    found = parse("run.sh", text).directives
    assert [(d.text, d.own_line) for d in found] == [
        ("sglang=0.5.19", True),
        ("ignore[x] why", False),
        ("y", True),
        ("end", True),
    ]
    assert found[0] == Directive("sglang=0.5.19", Place("run.sh", 0, 25), True)


def test_directives_in_yaml() -> None:
    found = parse("c.yaml", "# spec-lsp: config\na: 1  # spec-lsp: ignore[x]\nb: x#spec-lsp: no\n").directives
    assert [(d.text, d.own_line) for d in found] == [("config", True), ("ignore[x]", False)]


def test_a_text_without_sglang_is_not_read() -> None:
    assert parse("run.sh", "echo " * 10).launches == ()
