"""The files and models around a document, read from the disk; nothing is ever fetched or written.

What a document names is read only in the workspace and in the model folders, links followed (`files.Area`). Open editor buffers take
precedence: the server passes their text with `overlay`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from spec_lsp.analysis.worlds import is_path
from spec_lsp.catalog.installed import names_in, no_sglang, package_at, package_in, sglang_in, uv_cache
from spec_lsp.catalog.release import Release
from spec_lsp.expressions import expression
from spec_lsp.facts.known import ADAPTER
from spec_lsp.facts.model import ModelFacts
from spec_lsp.files import (
    MAX_DOCUMENT,
    MAX_MODEL,
    MAX_SETTINGS,
    Area,
    MissingError,
    OutsideError,
    UnreadableError,
    checkout_of,
)
from spec_lsp.records import replace
from spec_lsp.settings import Misfit, shown
from spec_lsp.settings_file import SETTINGS_FILES, SettingsFile, read_settings_file

T = TypeVar("T")

MAX_KEPT = 4_096
"""How many answers are kept in a workspace that is watched."""
MAX_KEPT_TEXT = 1_000_000
"""The longest text, in characters, that is kept there."""


def decode(data: bytes) -> str:
    """A file's text. UTF-8 (with or without byte order mark), else UTF-16 by its mark, else Latin-1, which takes any bytes."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class DiskWorkspace:
    """An `analysis.inputs.Workspace` over folders of the disk. Document names are absolute paths.

    `roots` are the workspace. Without any, a document's workspace is the checkout around it, else its own folder. `models` are
    folders that the reader names (never a repository's own files); `typed` says that a person types what is read, so that it may be
    anywhere. Where somebody watches what is `looked_at` and what documents read, and calls `forget` or `forget_file` when it changes,
    the workspace is `watched`: the disk is asked each question once, so that a key never waits for it.
    """

    def __init__(
        self,
        roots: tuple[Path, ...] = (),
        *,
        models: tuple[Path, ...] = (),
        overlay: Callable[[str], str | None] = lambda _: None,
        typed: bool = False,
        watched: bool = False,
    ) -> None:
        self._area = Area(roots)
        self.roots = tuple(map(Path, self._area.folders))
        self.models = models
        self.overlay = overlay
        self._typed = typed
        self._watched = watched
        self._answers: dict[tuple[object, ...], object] = {}
        """The disk's answers to questions, in a workspace that is watched."""
        self._models: dict[tuple[str, int], ModelFacts | None] = {}
        self._pins: dict[str, tuple[Release, str] | None] = {}
        self._pinning: dict[str, list[str]] = {}
        self._looked_at: dict[str, set[str]] = {}
        self._help: dict[Path, Mapping[str, str]] = {}
        self._builds: dict[Path, tuple[Release | None, str]] = {}

    def forget(self) -> None:
        """Drop what was read of models, pins and installations; to be called when watched files change."""
        self._builds.clear()
        self._help.clear()
        self._models.clear()
        self._pins.clear()
        self._looked_at.clear()
        self._answers.clear()

    def forget_file(self, name: str) -> None:
        """Drop the contents of a file, or of the files in a folder; to be called when one changes that documents read."""
        below = name + os.sep
        for question in list(self._answers):
            kind, path = question[:2]
            if kind == "text" and isinstance(path, str) and (path == name or path.startswith(below)):
                del self._answers[question]

    def _answer(self, find: Callable[[], T], *question: object) -> T:
        """What `find` finds on the disk, looked for only once if the workspace is watched."""
        if not self._watched:
            return find()
        if question not in self._answers:
            found = find()
            if isinstance(found, str) and len(found) > MAX_KEPT_TEXT:
                return found
            if len(self._answers) >= MAX_KEPT:
                self._answers.clear()
            self._answers[question] = found
        return cast(T, self._answers[question])

    def looked_at(self, document: str) -> frozenset[str]:
        """The files, existing or not, in which a document's pins and models were looked for."""
        return frozenset(self._looked_at.get(os.path.dirname(document), ()))

    def _looks_at(self, document: str, files: Iterable[str]) -> None:
        self._looked_at.setdefault(os.path.dirname(document), set()).update(files)

    def area(self, document: str) -> Area:
        """The part of the disk that may be read for a document."""
        if self._typed:
            return Area((os.path.abspath(os.sep),))
        if self.roots:
            return self._area
        folder = os.path.dirname(document) if os.path.isabs(document) else ""
        return self._answer(lambda: Area((checkout_of(folder) or folder,) if folder else ()), "area", folder)

    # --- files

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        """A file of the workspace as `document` names it: relative to the document's folder, then to the roots."""
        area = self.area(document)
        for candidate in self._candidates(document, path):
            if not area.names(candidate):
                continue
            written = self.overlay(candidate)
            if written is not None:
                return candidate, written
            # the document itself is always read anew: only files that it names are watched
            found = _read_text(candidate, area) if candidate == document else self._text(candidate, area)
            if not isinstance(found, UnreadableError):
                return candidate, found
        return None

    def _text(self, path: str, area: Area) -> str | UnreadableError:
        return self._answer(lambda: _read_text(path, area), "text", path, area.folders)

    def left_out(self, document: str, path: str) -> str:
        """Why a file that `read` does not return is left out, phrased to follow its name; empty if it is read, or does not exist."""
        area = self.area(document)
        for candidate in self._candidates(document, path):
            if self.overlay(candidate) is not None:
                return ""
            found = self._text(candidate, area)
            if not isinstance(found, MissingError):
                return str(found) if isinstance(found, UnreadableError) else ""
        return ""

    def _candidates(self, document: str, path: str) -> list[str]:
        written = os.path.expanduser(path)
        own = (os.path.dirname(document),) if os.path.isabs(document) else ()
        places = (written,) if os.path.isabs(written) else (os.path.join(f, written) for f in (*own, *self.roots))
        return list(dict.fromkeys(map(os.path.normpath, places)))

    # --- models

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        """Facts of a model folder (in the workspace, a models folder, the local Hugging Face cache), else of a known id."""
        return self._answer(lambda: self._model(document, path_or_id), "model", self._folder(document), path_or_id)

    @staticmethod
    def _folder(document: str) -> str:
        """The folder on disk of a document; empty if it has none."""
        return os.path.dirname(document) if os.path.isabs(document) else ""

    def _model(self, document: str, path_or_id: str) -> ModelFacts | None:
        from spec_lsp.facts.well_known import find_model

        found = self._model_in_folder(document, path_or_id)
        if found is None and os.path.basename(path_or_id) == ADAPTER:
            return None
        return found[1] if found else find_model(path_or_id)

    def model_folder(self, document: str, path_or_id: str) -> str | None:
        """The folder whose config.json `model` uses; None if it uses none, or facts of a known id."""
        found = self._model_in_folder(document, path_or_id)
        return found[0] if found else None

    def _model_in_folder(self, document: str, path_or_id: str) -> tuple[str, ModelFacts] | None:
        for config, area in self._model_configs(document, path_or_id):
            self._looks_at(document, [config])
            try:
                key = (config, os.stat(area.real_path(config)).st_mtime_ns)
            except (OSError, UnreadableError):
                continue
            if key not in self._models:
                self._models[key] = _read_model(config, area)
            facts = self._models[key]
            if facts is not None:
                return os.path.dirname(config), facts
        return None

    def unreadable_model(self, document: str, path_or_id: str) -> str:
        """Why the config.json of a model in a readable place cannot be used; empty if there is no such reason."""

        def find() -> str:
            configs = self._model_configs(document, path_or_id)
            named = (_why_unreadable(config, area) for config, area in configs if area.names(config))
            return next(filter(None, named), "")

        return self._answer(find, "unreadable model", self._folder(document), path_or_id)

    def _model_configs(self, document: str, path_or_id: str) -> Iterator[tuple[str, Area]]:
        """Where the config.json of a model (the adapter_config.json of an adapter) may be, and the area that it must be in."""
        folder_of, name = os.path.split(path_or_id)
        path_or_id, name = (folder_of, name) if name == ADAPTER else (path_or_id, "config.json")
        for folder in self._candidates(document, path_or_id):
            yield os.path.join(folder, name), self.area(document)
        for shelf in self.models:
            yield os.path.join(shelf, os.path.expanduser(path_or_id), name), Area((shelf,))
        if name == ADAPTER:
            return
        cache = _hub_cache()
        if (snapshots := _snapshots(cache, path_or_id)) is not None:
            self._looks_at(document, [str(snapshots)])
            yield from ((config, Area((cache,))) for config in _configs_in(snapshots))

    # --- the release

    def release(self, document: str, python: str = "") -> tuple[Release, str] | None:
        """The SGLang around a document: the one that is installed (see `_installed`), else a checkout of it in the workspace, else what
        a requirements or lock file pins, in the document's folder or above it up to the root."""
        folder = self._folder(document)
        found, _ = self._answer(lambda: self._at_hand(document, python), "at hand", folder, python)
        return found or self._answer(lambda: self._release(document), "pinned", folder)

    def unread_sglang(self, document: str, python: str = "") -> str:
        """What is said of the SGLang at hand that would come first, and cannot be read; empty where there is none."""
        return self._answer(lambda: self._at_hand(document, python), "at hand", self._folder(document), python)[1]

    def _at_hand(self, document: str, python: str) -> tuple[tuple[Release, str] | None, str]:
        """An SGLang that somebody has, with what has it (`.venv`, `third_party/sglang`); and what is said of the first one before it."""
        unread = ""
        for package, told in self._packages(document, python):
            self._looks_at(document, [str(package / "srt" / "server_args.py"), str(package.parent)])
            release, why = self._build(package)
            if release is not None:
                return (release, told), unread
            unread = unread or f"The SGLang of {told} {why}"
        return None, unread

    def sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        """The SGLang at a path that a directive or a setting names, or why there is none, as what is said of the path."""
        return self._answer(lambda: self._sglang_at(document, path), "sglang", self._folder(document), path)

    def _sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        outside, said = False, ""
        for folder in self._candidates(document, path):
            # in full, it is the settings that name it, and they were asked where they may lie
            area = Area((folder,)) if os.path.isabs(os.path.expanduser(path)) else self.area(document)
            outside = outside or not area.names(folder)
            package = sglang_in(folder, area, Area((*self.area(document).folders, *area.folders, uv_cache())))
            if package is not None:
                self._looks_at(document, [str(package / "srt" / "server_args.py")])
                return self._build(package)
            said = said or no_sglang(folder)
        return None, str(OutsideError()) if outside else said

    def _build(self, package: Path) -> tuple[Release | None, str]:
        """What is installed there, read once as long as nothing of it is heard to change; or why it cannot be read."""
        from spec_lsp.catalog.builds import NoBuildError, release_at  # reads Python's sources, and few files name any

        if package not in self._builds:
            try:
                self._builds[package] = release_at(package), ""
            except NoBuildError as error:
                self._builds[package] = None, str(error)
        return self._builds[package]

    def _release(self, document: str) -> tuple[Release, str] | None:
        area = self.area(document)
        folder = os.path.dirname(document)
        for parent in map(str, (Path(folder), *Path(folder).parents)):
            if not area.names(parent):
                break
            if parent not in self._pins:
                self._pinning[parent] = _pinning(parent, area)
                self._pins[parent] = _pin_in(self._pinning[parent], area)
            self._looks_at(document, (os.path.join(parent, name) for name in PIN_FILES))
            self._looks_at(document, self._pinning[parent])
            if self._pins[parent] is not None:
                return self._pins[parent]
            if Path(parent) in self.roots or os.path.lexists(os.path.join(parent, ".git")):
                break
        return None

    # --- the reader's own SGLang

    def installed_help(self, document: str, spelling: str, python: str = "") -> str | None:
        """SGLang's own help for a flag: from the environment of the interpreter `python`, else from the installation nearest to the
        document (a virtual environment in its folders), else from the active one. Read from the source each time; None without one."""
        package = self._installed(document, python)
        if package is None:
            return None
        if package not in self._help:
            self._help[package] = _help_of(package)
        return " ".join(self._help[package].get(spelling, "").split()) or None

    def _installed(self, document: str, python: str) -> Path | None:
        return next((package for package, _ in self._packages(document, python)), None)

    def _packages(self, document: str, python: str) -> Iterator[tuple[Path, str]]:
        """The SGLangs that somebody may mean, nearest first, each with what has it: the environment of the interpreter `python`, one that
        stands in the document's folders (uv, conda and pixi have theirs there too), the active one, a checkout in the workspace."""
        folder = os.path.dirname(document)
        area = self.area(document)
        within = [p for p in map(str, (Path(folder), *Path(folder).parents)) if area.names(p)]
        around = list(dict.fromkeys((*within, *map(str, self.roots))))
        chosen = _environment_of(python)
        anywhere, here = Area((os.path.abspath(os.sep),)), Area((*area.folders, uv_cache()))
        environments = [(chosen, Area((chosen,)), anywhere, f"interpreter in {chosen}")] if chosen else []
        environments += (
            (os.path.join(f, name), area, here, f"environment {name}") for f in around for name in ENVIRONMENTS
        )
        environments += (
            (active, Area((active,)), anywhere, f"environment of {variable}")
            for variable in ("VIRTUAL_ENV", "CONDA_PREFIX")
            if (active := os.environ.get(variable, ""))
        )
        for environment, own, beyond, told in environments:
            find = partial(package_in, environment, own, beyond)
            package = self._answer(find, "environment", environment, own.folders, beyond.folders)
            if package is not None:
                yield package, told
        for parent in around:
            for name in CHECKOUTS:
                find = partial(package_at, Path(parent, name), area)
                package = self._answer(find, "checkout", parent, name, area.folders)
                if package is not None:
                    yield package, f"checkout {name}" if name != "." else "checkout"

    # --- settings

    def settings(self, document: str) -> SettingsFile | None:
        """The nearest `spec-lsp.toml` or `[tool.spec-lsp]`, looked for up to the root of the workspace or of the surrounding checkout."""
        folder = os.path.dirname(document)
        roots = self.roots or (Path(folder),)
        above = [root for root in roots if root in (Path(folder), *Path(folder).parents)]
        area = Area(checkout_of(str(f)) or f for f in above or [Path(folder)])
        found = (settings_in(parent, area) for parent in (Path(folder), *Path(folder).parents) if area.names(parent))
        return next(filter(None, found), None)


def _read_text(path: str, area: Area) -> str | UnreadableError:
    """The content of a file, or why it cannot be read."""
    try:
        return decode(area.read(path, MAX_DOCUMENT))
    except UnreadableError as error:
        return error.with_traceback(None)


def settings_in(folder: Path, area: Area) -> SettingsFile | None:
    """The settings of one folder; None where it has none."""
    for name in SETTINGS_FILES:
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            continue
        try:
            found = read_settings_file(path, decode(area.read(path, MAX_SETTINGS)))
        except UnreadableError as error:
            missing = isinstance(error, MissingError) or name != SETTINGS_FILES[0]
            found = None if missing else SettingsFile.unusable(path, str(error))
        if found is not None:
            return found
    return None


def in_workspace(file: SettingsFile, area: Area) -> SettingsFile:
    """The same settings with full paths, except those outside of what may be read: these must be named on the command line or in the
    editor's settings."""
    table = dict(file.table)
    outside: list[Misfit] = []
    if isinstance(models := table.get("models"), list):
        table["models"] = [path for m in models if (path := _own_path("models", m, m, file, area, outside)) is not None]
    if isinstance(python := table.get("python"), str) and python:
        # the interpreter itself is a link out of most environments: what is read is the environment that it belongs to
        environment = os.path.dirname(os.path.dirname(os.path.expanduser(python)))
        found = _own_path("python", environment, python, file, area, outside)
        table["python"] = os.path.join(found, *python.replace(os.sep, "/").split("/")[-2:]) if found else ""
    if table.pop("verify-on-save", None) is not None:
        outside.append(Misfit(f"setting `verify-on-save`: {NEVER_BY_FILE}", ("verify-on-save",)))
    if isinstance(sglang := table.get("sglang"), str) and is_path(sglang):
        table["sglang"] = _own_sglang(sglang, ("sglang",), file, area, outside)
    if isinstance(targets := table.get("targets"), list):
        table["targets"] = [
            {**t, "sglang": _own_sglang(named, ("targets",), file, area, outside)}
            if isinstance(t, dict) and isinstance(named := t.get("sglang"), str) and is_path(named)
            else t
            for t in targets
        ]
    return replace(file.without(outside), table=table)


NEVER_BY_FILE = "it starts a program, so only the editor's settings may switch it on"


def _own_sglang(written: str, keys: tuple[str, ...], file: SettingsFile, area: Area, outside: list[Misfit]) -> str:
    """The path of an SGLang in full; empty, with a misfit more, where there is none that may be read."""
    found = _own_path(keys[0], os.path.expanduser(written), written, file, area, outside)
    if not found:
        return ""
    if sglang_in(found, area, Area((*area.folders, uv_cache()))) is None:
        message = f"setting `{keys[0]}`: {shown(written)} {no_sglang(found)}"
        outside.append(Misfit(message, (*keys, *(() if keys == ("sglang",) else (written,)))))
        return ""
    return str(found)


def _own_path(key: str, path: Any, written: Any, file: SettingsFile, area: Area, outside: list[Misfit]) -> Any:
    """A path of a settings file in full; None, with a misfit more, where it may not be read."""
    if not isinstance(path, str):
        return path
    full = os.path.normpath(os.path.join(file.folder, path))
    try:
        area.real_path(full)
    except UnreadableError as error:
        message = (
            f"setting `{key}`: {shown(written)} {error}: only the command line and the editor's settings may name it"
        )
        outside.append(Misfit(message, (key, written)))
        return None
    return full


ENVIRONMENTS = (".venv", "venv", "env", ".conda", "conda", ".pixi/envs/default")
"""Where environments stand in a folder, as uv, venv, conda and pixi make them."""
CHECKOUTS = (
    ".",
    "sglang",
    "third_party/sglang",
    "3rdparty/sglang",
    "vendor/sglang",
    "external/sglang",
    "submodules/sglang",
)
"""Where a checkout of SGLang stands in a folder: it is the folder, or a submodule of it."""


def _environment_of(python: str) -> str:
    """The environment that an interpreter belongs to; empty if the path is not one of an interpreter."""
    path = os.path.expanduser(python)
    bin_ = os.path.dirname(path)
    named = os.path.basename(bin_) in ("bin", "Scripts")
    return (os.path.dirname(bin_) if named else bin_) if os.path.isabs(path) and bin_ != os.sep else ""


def _read_model(config: str, area: Area) -> ModelFacts | None:
    try:
        values = json.loads(area.read(config, MAX_MODEL).decode())
    except (UnreadableError, ValueError, RecursionError):
        return None
    return ModelFacts(values) if isinstance(values, dict) else None


def _why_unreadable(config: str, area: Area) -> str:
    """Why a config.json cannot be used; empty if it can, or does not exist."""
    try:
        return "" if isinstance(json.loads(area.read(config, MAX_MODEL).decode()), dict) else "holds no object"
    except MissingError:
        return ""
    except UnreadableError as error:
        return str(error)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return "is not JSON"


def _pin_in(files: Iterable[str], area: Area) -> tuple[Release, str] | None:
    """The pin in one folder, from its files that may have one."""
    for file in files:
        try:
            found = pinned_release(decode(area.read(file, MAX_DOCUMENT)))
        except UnreadableError:
            continue
        if found is not None:
            return found, os.path.basename(file)
    return None


def _pinning(folder: str, area: Area) -> list[str]:
    """The files of a folder that may pin a release. Listing it once is cheaper than checking for each name."""
    names = names_in(folder, area)
    below = names_in(os.path.join(folder, "requirements"), area) if "requirements" in names else []
    listed = [n for n in names if fnmatchcase(n, "requirements*.txt")]
    listed += [os.path.join("requirements", n) for n in below if n.endswith(".txt")]
    listed += [n for n in names if fnmatchcase(n, "constraints*.txt")]
    return [os.path.join(folder, n) for n in (*listed, *(n for n in LOCKS if n in names))]


LOCKS = (
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pyproject.toml",
    "environment.yml",
    "environment.yaml",
)
PIN_FILES = ("requirements.txt", "requirements", "constraints.txt", *LOCKS)
"""The usual names of what pins a release: `requirements` is a folder, others have longer names."""
_PIN = expression(r"(?:^|[\s\"'-])sglang(?:\[[^\]]*\])?\s*==\s*([0-9][0-9A-Za-z.+]*)", re.MULTILINE)
_COMMENT = expression(r"(?:^|[ \t])#[^\n]*", re.MULTILINE)
_PIPFILE = expression(r'"sglang": \{[^{}]*?"version": "==([^"]+)"')
_LOCKED = expression(r'name = "sglang"\s*\nversion = "([^"]+)"')


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


def _hub_cache() -> str:
    """The local cache of the Hugging Face Hub, by the reader's environment; without a home folder, a path where nothing is."""
    own = os.path.expanduser("~/.cache/huggingface")
    home = os.environ.get("HF_HOME") or (own if os.path.isabs(own) else os.devnull)
    return os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")


def _snapshots(cache: str, model_id: str) -> Path | None:
    """The local Hugging Face cache's versions of a model, if it has any; None if the name is not a model id."""
    if model_id.count("/") != 1 or model_id.startswith((".", "/", "~")):
        return None
    return Path(cache) / ("models--" + model_id.replace("/", "--")) / "snapshots"


def _configs_in(snapshots: Path) -> list[str]:
    """The config.json files of the versions of a model, the newest first."""
    try:
        return [str(p) for p in sorted(snapshots.glob("*/config.json"), key=lambda p: p.stat().st_mtime, reverse=True)]
    except (OSError, ValueError):
        return []
