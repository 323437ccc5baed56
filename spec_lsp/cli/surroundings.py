"""What holds for the files of one folder: settings, options of analysis, the workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spec_lsp.analysis.report import Options
from spec_lsp.facts.model import ModelFacts
from spec_lsp.patterns import Patterns
from spec_lsp.settings import Settings, merge, options, read_settings, targets
from spec_lsp.workspace import NO_SETTINGS, DiskWorkspace, SettingsFound, settings_in


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`notes` are what is wrong with the settings file, a line each; `base` is the folder its paths are relative to."""

    settings: Settings
    settings_file: Path | None
    options: Options
    workspace: DiskWorkspace
    excluded: Patterns
    base: Path
    notes: tuple[str, ...] = ()
    unreadable: str = ""
    """Why the settings file cannot be read at all."""
    models: dict[tuple[str, str], ModelFacts | None] = field(default_factory=dict)
    """What was looked up of models, by folder and name."""

    def excludes(self, path: str) -> bool:
        """Whether the setting `exclude` leaves a file out."""
        if not self.excluded:
            return False
        try:
            relative = Path(path).relative_to(self.base).as_posix()
        except ValueError:
            return False
        return self.excluded.match(relative)


class Folders:
    """The surroundings of folders, each found once. `sglang` and `gpu` are the command line's and win over settings."""

    def __init__(
        self,
        here: Path,
        sglang: Sequence[str] = (),
        gpu: Sequence[str] = (),
        *,
        honour_ignores: bool = True,
        models: Sequence[str] = (),
    ) -> None:
        self._here = here
        self._named = targets(sglang, gpu)
        self._honour_ignores = honour_ignores
        self._models = tuple(Path(m) for m in models)
        self._by_folder: dict[str, Surroundings] = {}
        self._by_base: dict[tuple[Path, Path | None], Surroundings] = {}
        self._settings: dict[Path, SettingsFound] = {}
        self._checkouts: dict[Path, Path | None] = {}

    def of(self, document: str) -> Surroundings:
        """What holds for a document (an absolute path)."""
        folder = os.path.dirname(document)
        if folder not in self._by_folder:
            self._by_folder[folder] = self._look(Path(folder))
        return self._by_folder[folder]

    def _look(self, folder: Path) -> Surroundings:
        root = self._root(folder)
        table, file, problem = self._settings_of(folder)
        key = (root, file)
        if key not in self._by_base:
            self._by_base[key] = self._read(root, dict(table), file, problem)
        return self._by_base[key]

    def _read(self, root: Path, table: dict[str, object], file: Path | None, problem: str) -> Surroundings:
        named = {"targets": [dict(t) for t in self._named]} if self._named else {}
        settings, problems = read_settings(merge(table, named))
        base = file.parent if file else self._here
        models = (*self._models, *(base / m for m in settings.models))
        notes = tuple(f"{file}: {p}" for p in ([problem] if problem else problems)) if file else ()
        return Surroundings(
            settings,
            file,
            options(settings, honour_ignores=self._honour_ignores),
            DiskWorkspace((root,), models=models),
            Patterns(settings.exclude),
            base,
            notes,
            f"{file}: {problem}" if problem else "",
        )

    def _settings_of(self, folder: Path) -> SettingsFound:
        """The settings of a folder or of the nearest above it that has some. Each folder is looked into once."""
        if folder not in self._settings:
            above = NO_SETTINGS if folder.parent == folder else self._settings_of(folder.parent)
            self._settings[folder] = settings_in(folder) or above
        return self._settings[folder]

    def _root(self, folder: Path) -> Path:
        """The workspace of a folder: its checkout, else the current folder where that is above it, else itself."""
        checkout = self._checkout_of(folder)
        if checkout is not None:
            return checkout
        return self._here if self._here in (folder, *folder.parents) else folder

    def _checkout_of(self, folder: Path) -> Path | None:
        if folder not in self._checkouts:
            above = None if folder.parent == folder else folder.parent
            own = folder if os.path.exists(folder / ".git") else None
            self._checkouts[folder] = own or (self._checkout_of(above) if above else None)
        return self._checkouts[folder]
