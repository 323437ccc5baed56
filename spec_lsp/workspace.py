"""The files and models around a document, read from the disk; nothing is ever fetched or written.

Open editor buffers come first: the server hands their text in with `overlay`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.facts.model import ModelFacts

MAX_BYTES = 16 * 1024 * 1024
"""Larger files are not read: no launch script or config.json is that long."""

SETTINGS_FILE = "spec-lsp.toml"


def decode(data: bytes) -> str:
    """A file's text. UTF-8 (with or without byte order mark), else UTF-16 by its mark, else Latin-1, which takes any bytes."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class DiskWorkspace:
    """An `analysis.report.Workspace` over folders of the disk. Document names are absolute paths."""

    def __init__(
        self,
        roots: tuple[Path, ...] = (),
        *,
        models: tuple[Path, ...] = (),
        overlay: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        # a root behind a symbolic link is named both ways: documents come with either
        self.roots = tuple(dict.fromkeys(p for r in roots for p in (Path(os.path.abspath(r)), r.resolve())))
        self.models = models
        self.overlay = overlay
        self._models: dict[tuple[str, int], ModelFacts | None] = {}
        self._pins: dict[str, tuple[Release, str] | None] = {}
        self._help: dict[Path, Mapping[str, str]] = {}

    def forget(self) -> None:
        """Forget what was read of models and pins; call it when watched files change."""
        self._models.clear()
        self._pins.clear()

    # --- files

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        """A file of the workspace as `document` names it: relative to the document's folder, then to the roots."""
        for candidate in self._candidates(document, path):
            open_text = self.overlay(str(candidate))
            if open_text is not None:
                return str(candidate), open_text
            text = self._text(candidate)
            if text is not None:
                return str(candidate), text
        return None

    def _candidates(self, document: str, path: str) -> list[Path]:
        written = Path(os.path.expanduser(path))
        folder = Path(document).parent
        places = [written] if written.is_absolute() else [folder / written, *(root / written for root in self.roots)]
        normal = [Path(os.path.normpath(p)) for p in places]
        roots = self.roots or (Path(os.path.normpath(folder)),)
        return [p for p in dict.fromkeys(normal) if any(root == p or root in p.parents for root in roots)]

    def _text(self, path: Path) -> str | None:
        try:
            if not path.is_file() or path.stat().st_size > MAX_BYTES:
                return None
            return decode(path.read_bytes())
        except OSError:
            return None

    # --- models

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        """Facts of a model folder (in the workspace, a models folder, the local Hugging Face cache), else of a known id."""
        from spec_lsp.facts.well_known import find_model

        for config in self._model_configs(document, path_or_id):
            try:
                key = (str(config), config.stat().st_mtime_ns)
            except OSError:
                continue
            if key not in self._models:
                self._models[key] = self._read_model(config)
            if self._models[key] is not None:
                return self._models[key]
        return find_model(path_or_id)

    def _model_configs(self, document: str, path_or_id: str) -> list[Path]:
        folders = [Path(os.path.expanduser(path_or_id)), Path(document).parent / path_or_id]
        folders += [root / path_or_id for root in (*self.roots, *self.models)]
        found = [folder / "config.json" for folder in folders]
        return found + _cached_snapshots(path_or_id)

    @staticmethod
    def _read_model(config: Path) -> ModelFacts | None:
        try:
            values = json.loads(config.read_text("utf-8")) if config.stat().st_size < MAX_BYTES else None
        except (OSError, ValueError):
            return None
        return ModelFacts(values) if isinstance(values, dict) else None

    # --- pins

    def release(self, document: str) -> tuple[Release, str] | None:
        """The SGLang release that a requirements or lock file pins, in the document's folder or above it up to the root."""
        folder = Path(document).parent
        for parent in (folder, *folder.parents):
            key = str(parent)
            if key not in self._pins:
                self._pins[key] = self._pin_in(parent)
            if self._pins[key] is not None:
                return self._pins[key]
            if parent in self.roots or os.path.exists(parent / ".git"):
                break
        return None

    def _pin_in(self, folder: Path) -> tuple[Release, str] | None:
        """The pin of one folder. One listing of its names is cheaper than a question for each that would count."""
        names = _names_in(folder)
        below = _names_in(folder / "requirements") if "requirements" in names else []
        listed = [folder / n for n in names if fnmatchcase(n, "requirements*.txt")]
        listed += [folder / "requirements" / n for n in below if n.endswith(".txt")]
        listed += [folder / n for n in names if fnmatchcase(n, "constraints*.txt")]
        for file in [*listed, *(folder / n for n in _LOCKS if n in names)]:
            found = pinned_release(self._text(file) or "")
            if found is not None:
                return found, file.name
        return None

    # --- the reader's own SGLang

    def installed_help(self, document: str, spelling: str, python: str = "") -> str | None:
        """SGLang's own help for a flag: from the environment of the interpreter `python`, else from the installation nearest to
        the document (a virtual environment in its folders), else from the active one. Read from the source there and then; None
        without one."""
        package = self._installed(document, python)
        if package is None:
            return None
        if package not in self._help:
            self._help[package] = _help_of(package)
        return " ".join(self._help[package].get(spelling, "").split()) or None

    def _installed(self, document: str, python: str) -> Path | None:
        folder = Path(document).parent
        chosen = [Path(os.path.expanduser(python)).parent.parent] if python else []
        within = [p for p in (folder, *folder.parents) if any(p == r or r in p.parents for r in self.roots)]
        environments = [f / name for f in (*within, *self.roots) for name in (".venv", "venv", "env")]
        active = os.environ.get("VIRTUAL_ENV")
        for environment in dict.fromkeys([*chosen, *environments, *([Path(active)] if active else [])]):
            for package in environment.glob("lib/python3*/site-packages/sglang"):
                if (package / "srt" / "server_args.py").is_file():
                    return package
        return None

    # --- settings

    def settings(self, document: str) -> SettingsFound:
        """The nearest `spec-lsp.toml` or `[tool.spec-lsp]`: its table, its path, and a sentence when it does not parse."""
        folder = Path(document).parent
        found = (settings_in(parent) for parent in (folder, *folder.parents))
        return next(filter(None, found), NO_SETTINGS)


SettingsFound = tuple[Mapping[str, Any], Path | None, str]
NO_SETTINGS: SettingsFound = ({}, None, "")


def settings_in(folder: Path) -> SettingsFound | None:
    """The settings of one folder, as `DiskWorkspace.settings` gives them; None where it has none."""
    for name in (SETTINGS_FILE, "pyproject.toml"):
        table, problem = _toml_table(folder / name)
        if table is not None or problem:
            return table or {}, folder / name, problem
    return None


_LOCKS = (
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pyproject.toml",
    "environment.yml",
    "environment.yaml",
)
_PIN = re.compile(r"(?:^|[\s\"'-])sglang(?:\[[^\]]*\])?\s*==\s*([0-9][0-9A-Za-z.+]*)", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|[ \t])#[^\n]*", re.MULTILINE)
_PIPFILE = re.compile(r'"sglang": \{[^{}]*?"version": "==([^"]+)"')
_LOCKED = re.compile(r'name = "sglang"\s*\nversion = "([^"]+)"')


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def pinned_release(text: str) -> Release | None:
    """The release that a requirements or lock file pins SGLang to."""
    text = _COMMENT.sub("", text)
    match = _PIN.search(text) or _LOCKED.search(text) or _PIPFILE.search(text)
    return Release.read(match.group(1)) if match else None


def _help_of(package: Path) -> Mapping[str, str]:
    """The help texts of an installed SGLang, by spelling; none where its source cannot be read."""
    from spec_lsp.catalog.source import read_flags

    try:
        return read_flags(package).help
    except Exception:  # somebody else's source, of any release or in any state
        return {}


def _cached_snapshots(model_id: str) -> list[Path]:
    """config.json files of a model id in the local Hugging Face cache, newest first."""
    if model_id.count("/") != 1 or model_id.startswith((".", "/", "~")):
        return []
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = (
        Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / ("models--" + model_id.replace("/", "--")) / "snapshots"
    )
    try:
        return sorted(cache.glob("*/config.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    except OSError:
        return []


def _toml_table(path: Path) -> tuple[Mapping[str, Any] | None, str]:
    if not path.is_file():
        return None, ""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        values = tomllib.loads(decode(path.read_bytes()))
    except (OSError, tomllib.TOMLDecodeError) as error:
        return None, f"{path.name} cannot be read: {error}" if path.name == SETTINGS_FILE else ""
    if path.name == SETTINGS_FILE:
        return values, ""
    table = values.get("tool", {}).get("spec-lsp")
    return (table if isinstance(table, Mapping) else None), ""
