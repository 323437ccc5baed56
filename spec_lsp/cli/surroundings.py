"""What applies to the files of one folder: settings, options of analysis, the workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from spec_lsp.analysis.inputs import Options
from spec_lsp.files import Area, workspace_of
from spec_lsp.patterns import Patterns
from spec_lsp.records import dataclass, replace
from spec_lsp.settings import Settings, merge, options, read_settings, targets
from spec_lsp.settings_file import SettingsFile
from spec_lsp.workspace import DiskWorkspace, in_workspace, settings_in


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`base` is the folder that the patterns of `exclude` are relative to."""

    settings: Settings
    file: SettingsFile | None
    options: Options
    workspace: DiskWorkspace
    excluded: Patterns
    base: Path

    def excludes(self, path: str) -> bool:
        """Whether the setting `exclude` excludes a file."""
        if not self.excluded:
            return False
        try:
            relative = Path(path).relative_to(self.base).as_posix()
        except ValueError:
            return False
        return self.excluded.match(relative)


class Folders:
    """The surroundings of folders, each determined once. `sglang` and `gpu` are the command line's and override settings.

    `paths` are those on the command line: they, and the checkouts around them, are the workspace. `typed`: files and models are named at
    the prompt, and may be anywhere.
    """

    def __init__(
        self,
        here: Path,
        sglang: Sequence[str] = (),
        gpu: Sequence[str] = (),
        *,
        paths: Iterable[str] = (),
        honour_ignores: bool = True,
        models: Sequence[str] = (),
        typed: bool = False,
    ) -> None:
        self._here = here
        self._named = targets(sglang, gpu)
        self._honour_ignores = honour_ignores
        self._models = tuple(Path(os.path.abspath(m)) for m in models)
        self._typed = typed
        self._workspace = workspace_of(list(paths) or [str(here)])
        self.area = Area(self._workspace)
        self._by_folder: dict[str, Surroundings] = {}
        self._by_base: dict[tuple[str, str], Surroundings] = {}
        self._settings: dict[Path, SettingsFile | None] = {}
        self._checkouts: dict[str, str | None] = {}
        self._areas: dict[str, Area] = {}

    def of(self, document: str) -> Surroundings:
        """The surroundings of a document (an absolute path)."""
        folder = os.path.dirname(document)
        if folder not in self._by_folder:
            self._by_folder[folder] = self._look(folder)
        return self._by_folder[folder]

    def settings_files(self) -> list[SettingsFile]:
        """The settings files found so far."""
        found = {around.file.path: around.file for around in self._by_base.values() if around.file is not None}
        return [found[path] for path in sorted(found)]

    def forget_file(self, name: str) -> None:
        """Drop the content of a file; to be called when it is rewritten."""
        for around in self._by_base.values():
            around.workspace.forget_file(name)

    def _look(self, folder: str) -> Surroundings:
        root = self._root(folder)
        file = self._settings_of(Path(folder), Path(self._settings_end(folder, root)))
        key = (root, file.path if file else "")
        if key not in self._by_base:
            self._by_base[key] = self._read(root, file)
        return self._by_base[key]

    def _read(self, root: str, file: SettingsFile | None) -> Surroundings:
        roots = dict.fromkeys((root, *self._workspace))
        if file is not None:
            file = in_workspace(file, Area(roots))
        named = {"targets": [dict(t) for t in self._named]} if self._named else {}
        settings, _ = read_settings(merge(file.table if file else {}, named))
        wished = options(settings, honour_ignores=self._honour_ignores)
        if named:
            asked = (replace(t, release_from="--sglang", hardware_from="--gpu") for t in wished.targets)
            wished = replace(wished, targets=tuple(asked))
        return Surroundings(
            settings,
            file,
            wished,
            DiskWorkspace(
                tuple(map(Path, roots)),
                models=(*self._models, *map(Path, settings.models)),
                typed=self._typed,
                watched=True,  # only this program changes files during a run: see `forget_file`
            ),
            Patterns(settings.exclude),
            Path(file.folder) if file else self._here,
        )

    def _settings_of(self, folder: Path, end: Path) -> SettingsFile | None:
        """The settings of a folder, or of the nearest above it up to `end` that has some. Each folder is searched once."""
        if folder not in self._settings:
            own = settings_in(folder, self._area_of(str(end)))
            last = folder == end or folder.parent == folder
            self._settings[folder] = own or (None if last else self._settings_of(folder.parent, end))
        return self._settings[folder]

    def _settings_end(self, folder: str, root: str) -> str:
        """The folder up to which settings are looked for: the workspace's root, or without a checkout the current folder's."""
        here = str(self._here)
        around = self._area_of(here)
        return here if around.names(folder) and around.names(root) and not self._checkout_of(folder) else root

    def _area_of(self, folder: str) -> Area:
        if folder not in self._areas:
            self._areas[folder] = Area((folder,))
        return self._areas[folder]

    def _root(self, folder: str) -> str:
        """The workspace of a folder: its checkout, else the command line's path that contains it, else the folder itself."""
        around = self._checkout_of(folder)
        if around is not None:
            return around
        return next((f for f in self._workspace if self._area_of(f).names(folder)), folder)

    def _checkout_of(self, folder: str) -> str | None:
        if folder not in self._checkouts:
            above = os.path.dirname(folder)
            here = os.path.lexists(os.path.join(folder, ".git"))
            self._checkouts[folder] = folder if here else self._checkout_of(above) if above != folder else None
        return self._checkouts[folder]
