"""The state of one connection: open texts, settings, and the analyses of the texts, each made at most once for the same input."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spec_lsp.files import Area
from spec_lsp.interruption import Interrupted, stopped_when
from spec_lsp.records import dataclass, replace
from spec_lsp.server.client import Client
from spec_lsp.server.inbox import Inbox
from spec_lsp.server.interruption import InterruptibleCache
from spec_lsp.server.positions import Lines
from spec_lsp.server.protocol import ContentModified
from spec_lsp.server.text import OpenText, TextStore
from spec_lsp.server.uris import is_file, name_of, uri_of

if TYPE_CHECKING:
    from spec_lsp.analysis.in_memory import InMemory
    from spec_lsp.analysis.inputs import Options
    from spec_lsp.analysis.report import Analysis, Diagnostic
    from spec_lsp.server.engine import Engine
    from spec_lsp.settings import Misfit, Settings
    from spec_lsp.settings_file import SettingsFile
    from spec_lsp.workspace import DiskWorkspace

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scope:
    """What settings decide for the documents of one folder."""

    settings: Settings
    options: Options
    workspace: DiskWorkspace | InMemory
    excluded: Callable[[str], bool]


@dataclass(slots=True)
class _Made:
    """An analysis and the version of the text it was made of."""

    version: int
    analysis: Analysis


class Session:
    """The state of one connection. Everything in it is used from the event loop only."""

    def __init__(
        self,
        client: Client,
        engine: Engine,
        report: Callable[[str], None],
        warn: Callable[[str], None],
        inbox: Inbox | None = None,
        under_way: Callable[[Any], bool] = lambda _: False,
        *,
        reads_disk: bool = True,
    ) -> None:
        """`report` writes a line to the client's log, `warn` shows one to the user; unhandled messages wait in `inbox`; `under_way` says
        whether a request, by its id, is in progress. Without `reads_disk` only the client's texts are used: no file, model, pin or settings
        file is looked at."""
        self.client = client
        self.engine = engine
        self.texts = TextStore()
        self.reads_disk = reads_disk
        folders = client.folders if reads_disk else ()
        self.roots: tuple[Path, ...] = tuple(Path(name_of(f)) for f in folders if is_file(name_of(f)))
        self.given: Mapping[str, Any] = settings_table(client.initialization_options)
        """Settings from `initialize`."""
        self.pulled: dict[str, Mapping[str, Any]] = {}
        """Settings that the client sent since, by workspace folder name; "" for those of all folders."""
        self._report = report
        self._warn = warn
        self._reported: set[str] = set()
        self._made: dict[str, _Made] = {}
        self._faults: dict[str, Exception] = {}
        """What went wrong with the current texts of documents that could not be analysed."""
        self.asked: dict[str, list[dict[str, Any]]] = {}
        """What the installed SGLang says about the current texts of documents that it was asked about, as the protocol writes it."""
        self.reports: dict[str, dict[str, str]] = {}
        """Of these, what is to be reported: reports in Markdown by document and message."""
        self._scopes: dict[str, Scope] = {}
        self._workspaces: dict[tuple[Path, ...], DiskWorkspace] = {}
        self.over = False
        """Whether the client has ended the session: no analysis is wanted any more."""
        self._inbox = inbox
        self._under_way = under_way
        self._cache: InterruptibleCache | None = None
        self._edits = 0

    def end(self) -> None:
        """The client has ended the session, or has just gone."""
        self.over = True

    # --- texts

    def text(self, name: str) -> OpenText | None:
        return self.texts.get(name)

    def open(self, uri: str, language: str, version: int | None, text: str) -> OpenText:
        opened = OpenText(name_of(uri), uri, language, version, text, self.client.encoding)
        self.texts.open(opened)
        return opened

    def close(self, name: str) -> OpenText | None:
        return self.texts.close(name)

    def edited(self, name: str) -> list[str]:
        """A document was edited: drop what was computed from it, and return the documents that read it, which are dropped too."""
        dependants = self.dependants(name)
        for concerned in (name, *dependants):
            self._made.pop(concerned, None)
            self._faults.pop(concerned, None)
            self.asked.pop(concerned, None)
            self.reports.pop(concerned, None)
        return dependants

    def uri(self, name: str) -> str:
        """The URI by which the client calls a document, if known."""
        opened = self.texts.get(name)
        return opened.uri if opened else uri_of(name)

    def lines(self, name: str) -> Lines | None:
        """The lines of any document, open or on disk."""
        opened = self.texts.get(name)
        if opened is not None:
            return opened.lines
        text = self._read(name)
        return None if text is None else Lines(text, self.client.encoding)

    def _read(self, name: str) -> str | None:
        found = self.scope(name).workspace.read(name, name) if is_file(name) else None
        return None if found is None else found[1]

    def _open_text(self, name: str) -> str | None:
        opened = self.texts.get(name)
        return opened.text if opened else None

    # --- analyses

    def analysis(self, name: str) -> Analysis | None:
        """The analysis of an open document, None when it is not open or excluded.

        Raises whatever went wrong with this version of it, each time it is called.
        """
        opened = self.texts.get(name)
        if opened is None:
            return None
        made = self._made.get(name)
        if made is None:
            if name in self._faults:
                raise self._faults[name].with_traceback(None)
            scope = self.scope(name)
            if scope.excluded(name):
                return None
            try:
                analysis = self.engine.analyse(
                    name, opened.text, opened.language, scope.options, scope.workspace, self.cache
                )
            except Exception as problem:
                log.exception("cannot analyse %s", name)
                self._faults[name] = problem
                raise
            for fault in analysis.faults:
                log.error("%s: a launch could not be judged\n%s", name, fault)
            made = self._made[name] = _Made(self._next_edit(), analysis)
        return made.analysis

    def analysis_of_file(self, name: str) -> tuple[str, Analysis] | None:
        """The text of a file that is not open, and its analysis; None if it is excluded, cannot be read, or exceeds our limits."""
        scope = self.scope(name)
        found = None if scope.excluded(name) else scope.workspace.read(name, name)
        if found is None:
            return None
        try:
            return found[1], self.engine.analyse(name, found[1], "", scope.options, scope.workspace, self.cache)
        except Exception:
            log.exception("cannot analyse %s", name)
            return None

    def tried(self, name: str) -> Analysis | None:
        """The analysis of an open document, None also if something went wrong: see `fault`."""
        try:
            return self.analysis(name)
        except Exception:  # it is already logged
            return None

    def fault(self, name: str) -> Exception | None:
        """What went wrong with the current version of a document, if anything did."""
        return self._faults.get(name)

    @property
    def cache(self) -> InterruptibleCache:
        """The verdicts of all documents."""
        if self._cache is None:
            waits = self._inbox.waits if self._inbox is not None else lambda: False
            self._cache = InterruptibleCache(self.engine.new_cache(), waits)
        return self._cache

    def prepare(self) -> bool:
        """Analyse open documents that are not analysed yet; False if messages wait and it was interrupted."""
        with self.cache.interruptible():
            return all(self.over or self._prepared(text.name) for text in self.texts)

    def _prepared(self, name: str) -> bool:
        try:
            with self.while_wanted(name):
                self.analysis(name)
        except Interrupted:
            return False
        except Exception:  # whoever asks for this document's analysis gets the same error, and reports it
            log.debug("cannot analyse %s", name, exc_info=True)
        return True

    def while_wanted(self, name: str) -> AbstractContextManager[None]:
        """Within this context, work on a document ends with Interrupted when a message arrives that makes it pointless."""
        if self._inbox is None:
            return nullcontext()
        return stopped_when(self._inbox.overtakes(name, self._under_way))

    async def ready(self) -> None:
        """Wait until all open documents are analysed; messages are handled meanwhile."""
        while True:
            await asyncio.sleep(0)
            if self.prepare():
                break
        if self.over:
            raise asyncio.CancelledError

    async def work(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make` for an open document; messages that arrive meanwhile may make it pointless.

        Raises ContentModified when the text has changed by then, CancelledError when the client has cancelled the request.
        """
        text = self.texts.get(name)
        edits = text.edits if text else 0
        while True:
            await asyncio.sleep(0)
            now = self.texts.get(name)
            if now is not text or (now is not None and now.edits != edits):
                raise ContentModified
            try:
                with self.while_wanted(name):
                    return make()
            except Interrupted:
                log.debug("work on %s was stopped", name)

    def stamp(self, name: str) -> int:
        """A number that changes whenever the document is analysed again."""
        made = self._made.get(name)
        return made.version if made else -1

    def _next_edit(self) -> int:
        self._edits += 1
        return self._edits

    def dependants(self, name: str) -> list[str]:
        """The other open documents whose analysis reads this one."""
        return [other for other, made in self._made.items() if other != name and self._depends(other, made, name)]

    def views(self, name: str) -> list[Analysis]:
        """The analyses that say something about an open document, the most relevant first.

        For a `--config` file those of the launches that use it, for any other document its own.
        """
        own = self.analysis(name)
        if own is None:
            return []
        users = [made for user in self.dependants(name) if (made := self.analysis(user)) is not None]
        alone = all(report.launch.program == "config" for report in own.launches)
        return [*users, own] if alone else [own, *users]

    def reads(self, name: str) -> list[str]:
        """The other open documents that this one's analysis reads, as far as it has been made."""
        made = self._made.get(name)
        if made is None:
            return []
        return [text.name for text in self.texts if text.name != name and self._depends(name, made, text.name)]

    def surroundings(self) -> set[str]:
        """The files that are not open (existing or not) whose change may change the findings of open documents. Only files that may be
        read: looking at one elsewhere may contact another machine."""
        if not self.reads_disk:
            return set()
        from spec_lsp.settings_file import SETTINGS_FILES

        around: set[str] = set()
        for text in self.texts:
            if is_file(text.name):
                folders = Path(text.name).parents
                around.update(str(folder / settings) for folder in folders for settings in SETTINGS_FILES)
        for name, made in self._made.items():
            area = self._workspace(()).area(name)
            needed = (os.path.join(os.path.dirname(name), other) for other in made.analysis.depends_on)
            around.update(other for other in needed if area.names(other))
            around.update(file for workspace in self._workspaces.values() for file in workspace.looked_at(name))
        return {name for name in around if self.texts.get(name) is None}

    def in_folders(self, path: str) -> bool:
        """Whether a path without links lies in a folder of the workspace."""
        return bool(self.roots) and Area(self.roots).holds(path)

    @staticmethod
    def _depends(other: str, made: _Made, name: str) -> bool:
        needed = made.analysis.depends_on
        if name in needed:
            return True
        folder = os.path.dirname(other)  # a file that does not exist (yet) keeps the name as written
        return any(os.path.normpath(os.path.join(folder, n)) == name for n in needed if not os.path.isabs(n))

    # --- settings

    def scope(self, name: str) -> Scope:
        """Settings, options and workspace of a document."""
        folder = name.rpartition("/")[0] if is_file(name) else ""
        scope = self._scopes.get(folder)
        if scope is None:
            scope = self._scopes[folder] = self._scope(name)
        return scope

    def _scope(self, name: str) -> Scope:
        from spec_lsp import settings as declared

        if not self.reads_disk:
            return self._scope_in_memory(name)
        file = self._settings_file(name) if is_file(name) else None
        of_editor = self._from_editor(name, declared.Settings())
        values, _ = declared.read_settings(declared.merge(file.table if file else {}, of_editor))
        for flaw in file.flaws if file else ():
            self.report_once(f"{file.path if file else ''}: {flaw.message}")
        self._warn_of(declared.read_settings(of_editor)[1])
        base = Path(file.folder) if file else (self.roots[0] if self.roots else Path("/"))
        models = tuple(base / folder for folder in values.models)
        return Scope(values, declared.options(values), self._workspace(models), _exclusion(base, values.exclude))

    def _scope_in_memory(self, name: str) -> Scope:
        """The client's own settings, without those that name paths."""
        from spec_lsp import settings as declared
        from spec_lsp.analysis.in_memory import InMemory

        values, misfits = declared.read_settings(declared.merge(self._from_editor(name, declared.Settings())))
        self._warn_of(misfits)
        values = replace(values, python="", models=(), exclude=())
        return Scope(values, declared.options(values), InMemory(), lambda _: False)

    def _settings_file(self, name: str) -> SettingsFile | None:
        """The settings file that applies to a document on disk."""
        from spec_lsp.workspace import in_workspace

        workspace = self._workspace(())
        found = workspace.settings(name)
        return in_workspace(found, workspace.area(name)) if found else None

    def holds_settings(self, name: str) -> bool:
        """Whether a document is a settings file, if such files are read."""
        from spec_lsp.settings_file import is_settings_file

        return self.reads_disk and is_settings_file(name)

    def settings_flaws(self, name: str) -> list[Diagnostic]:
        """The unusable settings in an open settings file, by its text in the editor."""
        from spec_lsp.analysis.check import with_severity
        from spec_lsp.settings_file import flaws_of, read_settings_file
        from spec_lsp.workspace import in_workspace

        opened = self.texts.get(name)
        if opened is None or not self.holds_settings(name):
            return []
        found = read_settings_file(name, opened.text)
        if found is None:
            return []
        flaws = flaws_of(in_workspace(found, self._workspace(()).area(name)))
        return [flaw for f in flaws if (flaw := with_severity(f, self.scope(name).options)) is not None]

    def asks(self, name: str) -> str | None:
        """The interpreter whose SGLang is asked about a document when it is saved, from the editor's own settings (empty: that of the
        environment); None if they do not enable that."""
        from spec_lsp import settings as declared

        if not self.reads_disk or not is_file(name) or self.scope(name).excluded(name):
            return None
        values, _ = declared.read_settings(self._from_editor(name, declared.Settings()))
        return values.python if values.verify_on_save else None

    def _from_editor(self, name: str, defaults: Settings) -> Mapping[str, Any]:
        """The editor's settings for a document. Editors send defaults too; a default does not count as set."""
        from spec_lsp import settings as declared

        layers = [self.given, self.pulled.get("", {})]
        layers += [table for folder, table in self.pulled.items() if folder and name.startswith(folder + "/")]
        wished: dict[str, Any] = declared.merge(*layers)
        return {k: v for k, v in wished.items() if not _is_default(v, getattr(defaults, k, _NONE))}

    def _workspace(self, models: tuple[Path, ...]) -> DiskWorkspace:
        from spec_lsp.workspace import DiskWorkspace

        if models not in self._workspaces:
            self._workspaces[models] = DiskWorkspace(self.roots, models=models, overlay=self._open_text, watched=True)
        return self._workspaces[models]

    def report_once(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _warn_of(self, misfits: Iterable[Misfit]) -> None:
        """Tell the user, once, which of the editor's settings cannot be used: there is no file of ours to show that in."""
        for misfit in misfits:
            if misfit.message not in self._reported:
                self._reported.add(misfit.message)
                self._warn(f"Settings of the editor: {misfit.message}.")

    # --- changes around the texts

    def settings_changed(self) -> None:
        """Settings, pins, models or folders have changed: everything is computed again on demand."""
        self._scopes.clear()
        self._made.clear()
        self._faults.clear()
        for workspace in self._workspaces.values():
            workspace.forget()
        if self._cache is not None:
            self._cache.clear()

    def folders_changed(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Workspace folders came or went (URIs)."""
        gone = {name_of(uri) for uri in removed}
        kept = [root for root in self.roots if str(root) not in gone]
        kept += [Path(name_of(uri)) for uri in added if is_file(name_of(uri)) and self.reads_disk]
        self.roots = tuple(dict.fromkeys(kept))
        self._workspaces.clear()
        self.settings_changed()

    def files_changed(self, names: Iterable[str]) -> list[str]:
        """Files changed on disk. Returns the open documents whose findings may have changed."""
        concerned: dict[str, None] = {}
        looked_at = {
            one for workspace in self._workspaces.values() for t in self.texts for one in workspace.looked_at(t.name)
        }
        for name in names:
            for workspace in self._workspaces.values():
                workspace.forget_file(name)
            below = name + os.sep
            if name in looked_at or any(one.startswith(below) for one in looked_at):
                self.settings_changed()
                return [text.name for text in self.texts]
            if not OTHERS.isdisjoint(name.split(os.sep)):
                continue
            if counts_for_all(name):
                self.settings_changed()
                return [text.name for text in self.texts]
            for one in (name, *self._read_below(name)):
                if self.texts.get(one) is None:
                    concerned.update(dict.fromkeys(self.edited(one)))
        return list(concerned)

    def _read_below(self, folder: str) -> set[str]:
        """The files below a folder that open documents read: the folder may have been added, removed or renamed as a whole."""
        read = (path for name, made in self._made.items() for path in self._needed(name, made))
        return {path for path in read if path.startswith(folder + os.sep)}

    @staticmethod
    def _needed(name: str, made: _Made) -> Iterator[str]:
        folder = os.path.dirname(name)
        return (os.path.normpath(os.path.join(folder, needed)) for needed in made.analysis.depends_on)


OTHERS = frozenset({".git", "node_modules", "site-packages", "__pycache__"})
"""Folders that hold other programs' files: changes in them do not matter."""


def counts_for_all(name: str) -> bool:
    """Whether a file of this name may hold settings, pin a release or describe a model, so that all documents around it are affected."""
    from spec_lsp.settings_file import SETTINGS_FILES
    from spec_lsp.workspace import LOCKS

    folder, base = os.path.split(name)
    return (
        base in SETTINGS_FILES
        or base == "config.json"
        or base in LOCKS
        or (base.startswith(("requirements", "constraints")) and base.endswith(".txt"))
        or (os.path.basename(folder) == "requirements" and base.endswith(".txt"))
    )


_NONE = object()


def _is_default(value: Any, default: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return default is not _NONE and type(value) is type(default) and value == default


def settings_table(options: Any) -> Mapping[str, Any]:
    """The settings in what a client sends: directly, or under `spec-lsp` (or `specLsp`), or under `settings`; nested or with dots, as in
    `{"spec-lsp.rules.unknown-flag": "off"}`."""
    if not isinstance(options, Mapping):
        return {}
    nested = _nested(options)
    for key in ("settings", *SECTIONS):
        inner = nested.get(key)
        if isinstance(inner, Mapping):
            return settings_table(inner)
    return nested


SECTIONS = ("spec-lsp", "specLsp", "spec_lsp")


def _nested(options: Mapping[Any, Any]) -> dict[str, Any]:
    """The same with a table for each part of a dotted key. Under `rules` keys are rule names and are not split."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        first, dot, rest = str(key).partition(".")
        inner = {rest: value} if dot else value
        before = found.get(first)
        if isinstance(before, Mapping) and isinstance(inner, Mapping):
            inner = {**before, **inner}
        found[first] = inner
    return found


def _exclusion(base: Path, patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a document is excluded. Patterns are relative to `base`, the settings file's folder."""
    if not patterns:
        return lambda _: False
    from spec_lsp.patterns import Patterns

    matcher = Patterns(patterns)
    prefix = f"{base}/"
    return lambda name: name.startswith(prefix) and matcher.match(name.removeprefix(prefix))
