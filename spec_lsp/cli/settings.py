"""`spec-lsp settings`: the settings that hold for a file, and where they come from."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.errors import CLEAN, FAILED
from spec_lsp.cli.printed import harmless, in_utf_8, json_text
from spec_lsp.cli.surroundings import Folders
from spec_lsp.records import fields
from spec_lsp.settings import Settings, json_schema


def run(arguments: argparse.Namespace) -> int:
    """Print the schema, the page docs/settings.md, or the settings of a path."""
    all_rules()
    if arguments.schema:
        print(json_text(json_schema(), indent=2), file=in_utf_8(sys.stdout))
        return CLEAN
    if arguments.markdown:
        from spec_lsp.cli.docs import settings_page

        print(settings_page(), end="")
        return CLEAN
    return _show(os.path.abspath(arguments.path))


def _show(path: str) -> int:
    document = os.path.join(path, "launch.sh") if os.path.isdir(path) else path
    around = Folders(Path.cwd(), paths=(path,)).of(document)
    path = harmless(around.file.path) if around.file else ""
    print(f"# {path or 'no settings file: the defaults'}")
    for f in fields(Settings):
        print(f"{f.name.replace('_', '-')} = {_toml(getattr(around.settings, f.name))}")
    flaws = around.file.flaws if around.file else ()
    for flaw in flaws:
        print(f"spec-lsp: warning: {path}: {harmless(flaw.message)}", file=sys.stderr)
    return FAILED if flaws else CLEAN


def _toml(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{harmless(key)} = {_toml(v)}" for key, v in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json_text(value)
