"""The manifest of the VS Code extension: what activates it, and its settings: those of `spec_lsp.settings`, and its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spec_lsp.records import fields
from spec_lsp.settings import Settings, schema_of
from spec_lsp.syntax.carriers import CARRIERS

OWN: Mapping[str, Mapping[str, Any]] = {
    "path": {
        "type": "string",
        "default": "",
        "markdownDescription": "The program `spec-lsp`, or a Python interpreter that has it. Where this is empty, the selected "
        "Python environment and then `PATH` are looked through.",
    },
    "trace.server": {
        "type": "string",
        "enum": ["off", "messages", "verbose"],
        "default": "off",
        "markdownDescription": "What the server and VS Code say to each other, in the output channel.",
    },
}
"""Settings that are not sent to the server."""

PLAIN_TEXT = "plaintext"
"""VS Code's language for files that it knows no language for: the extension takes those whose names suggest launches."""

OF_THE_MACHINE = frozenset({"path", "python", "verifyOnSave"})
"""Settings that depend on the machine: they name programs, or let one be started."""


def properties() -> dict[str, dict[str, Any]]:
    """`contributes.configuration.properties`: every setting by its name in VS Code."""
    declared = {
        _camel(f.name): {
            **schema_of(f),
            "default": _default(f),
            "markdownDescription": f.metadata["description"],
        }
        for f in fields(Settings)
    }
    found = {**declared, **OWN}
    return {
        f"spec-lsp.{name}": {**schema, "scope": _scope(name), "order": order}
        for order, (name, schema) in enumerate(found.items())
    }


def updated(manifest: str) -> str:
    """The text of package.json with these settings, activated by the languages that the server reads."""
    content = json.loads(manifest)
    languages = [language for carrier in CARRIERS for language in carrier.vscode]
    content["activationEvents"] = [f"onLanguage:{language}" for language in (*languages, PLAIN_TEXT)]
    content["contributes"]["configuration"]["properties"] = properties()
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _scope(name: str) -> str:
    if name in OF_THE_MACHINE:
        return "machine-overridable"
    return "window" if name in OWN else "resource"


def _default(field: Any) -> Any:
    return json.loads(json.dumps(field.default_factory()))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))
