"""A settings file, `spec-lsp.toml` or `pyproject.toml`: its table, and its unusable parts with their places."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spec_lsp.analysis.report import Diagnostic
from spec_lsp.analysis.rules import SETTING_NOT_USED
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.settings import Misfit, read_settings, shown
from spec_lsp.syntax.word import Place

SETTINGS_FILES = ("spec-lsp.toml", "pyproject.toml")
MAX_DOTS = 100
"""The most dots in a key: TOML parsers take time quadratic in them."""

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that cannot be used. `start` and `end` are characters of the file. `fatal`: nothing of the file is used."""

    message: str
    start: int = 0
    end: int = 0
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings of a file, as TOML gives them, and what cannot be used."""

    path: str
    text: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)
    prefix: Keys = ()
    """The keys of the table in the file: `tool`, `spec-lsp` in a pyproject.toml."""
    flaws: tuple[Flaw, ...] = ()

    @classmethod
    def unusable(cls, path: str, why: str, text: str = "", start: int = 0, end: int = 0) -> SettingsFile:
        """A file of which nothing can be used; `why` is phrased to follow the file's name."""
        return cls(path, text, flaws=(Flaw(f"{os.path.basename(path)} {why}", start, end, fatal=True),))

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    def without(self, misfits: Sequence[Misfit]) -> SettingsFile:
        """The same with more flaws: settings that are present but not used."""
        if not misfits:
            return self
        written = dict(_written_keys(self.text))
        more = (Flaw(m.message, *_place(self.text, written, self.prefix, m.keys)) for m in misfits)
        return replace(self, flaws=(*self.flaws, *more))


def flaws_of(file: SettingsFile) -> list[Diagnostic]:
    """The flaws of a file as findings. If nothing of a file is used, that is an error: rules that it switches off are reported, files that
    it names are not checked."""
    return [
        Diagnostic(
            SETTING_NOT_USED,
            "error" if flaw.fatal and os.path.basename(file.path) == SETTINGS_FILES[0] else SETTING_NOT_USED.severity,
            _capital(flaw.message),
            Place(file.path, flaw.start, flaw.end),
            f"{SETTING_NOT_USED.name}:{flaw.message}",
        )
        for flaw in file.flaws
    ]


def _capital(sentence: str) -> str:
    first = sentence if sentence.startswith(SETTINGS_FILES) else sentence[:1].upper() + sentence[1:]
    return first if first.endswith("?") else first + "."


def is_settings_file(name: str) -> bool:
    """Whether a document of this name may hold settings."""
    return os.path.basename(name) in SETTINGS_FILES


def read_settings_file(path: str, text: str) -> SettingsFile | None:
    """The settings in a text; None for a pyproject.toml that has none of ours."""
    own = os.path.basename(path) == SETTINGS_FILES[0]
    try:
        values = _toml(text)
    except ValueError as error:
        start, end = _told_place(text, str(error))
        return SettingsFile.unusable(path, f"cannot be read: {_sentence(str(error))}", text, start, end)
    except RecursionError:
        return SettingsFile.unusable(
            path, "cannot be read: it is nested too deeply", text, 0, text.find("\n") % (len(text) + 1)
        )
    prefix: Keys = () if own else ("tool", "spec-lsp")
    table: Any = values
    for depth, key in enumerate(prefix):
        table = table.get(key)
        if table is None:
            return None
        if not isinstance(table, Mapping):
            name = ".".join(prefix[: depth + 1])
            found = SettingsFile(path, text, prefix=prefix[:depth])
            return found.without(
                [Misfit(f"`{name}` is {shown(table)}, not a table: no setting of spec-lsp is read from it", (key,))]
            )
    found = SettingsFile(path, text, table, prefix)
    return found.without(read_settings(table)[1])


def _toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises ValueError if it is not TOML, RecursionError if it is nested too deeply."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    for line in text.split("\n"):
        if (
            line.count(".") > MAX_DOTS
            and re.match(r"\s*[\[\w\"'-]", line)
            and line.partition("=")[0].count(".") > MAX_DOTS
        ):
            raise RecursionError
    values: dict[str, Any] = tomllib.loads(text.replace("\r\n", "\n"))
    return values


_AT = expression(r"\(at line (\d+), column (\d+)\)$")


def _told_place(text: str, error: str) -> tuple[int, int]:
    """The characters that an error of the TOML parser refers to: from its position to the end of the line, at least one."""
    told = _AT.search(error)
    lines = text.split("\n")
    line, column = (int(told[1]) - 1, int(told[2]) - 1) if told else (len(lines) - 1, len(lines[-1]))
    line = min(line, len(lines) - 1)
    start = sum(len(one) + 1 for one in lines[:line])
    column = min(column, max(len(lines[line].rstrip("\r")) - 1, 0))
    return start + column, start + max(len(lines[line].rstrip("\r")), column)


def _sentence(error: str) -> str:
    told = _AT.search(error)
    words = error[: told.start()].rstrip() if told else error.removesuffix(" (at end of document)")
    return words[:1].lower() + words[1:]


# --- where keys are written ------------------------------------------------------------------------------------------


def _place(text: str, written: Mapping[Keys, tuple[int, int]], prefix: Keys, keys: Keys) -> tuple[int, int]:
    """Where a key is written: its own place, else that of the nearest enclosing key, and there the text that looks like it."""
    for depth in range(len(prefix) + len(keys), 0, -1):
        found = written.get((*prefix, *keys)[:depth])
        if found is None:
            continue
        rest = (*prefix, *keys)[depth:]
        stop = text.find("\n\n", found[1]) % (len(text) + 1)
        at = text.find(rest[-1], found[1], stop) if rest and rest[-1] else -1
        return found if at < 0 else (at, at + len(rest[-1]))
    return 0, text.find("\n") % (len(text) + 1)


def _written_keys(text: str) -> Iterator[tuple[Keys, tuple[int, int]]]:
    """The keys at the beginning of lines, in full, with their places."""
    table: Keys = ()
    start = 0
    for line in text.split("\n"):
        lead = len(line) - len(line.lstrip())
        if line[lead : lead + 1] == "[":
            inner = line[lead:].strip("[] \t\r")
            keys = _keys(inner.partition("]")[0])
            if keys:
                table = keys
                yield table, (start + lead, start + len(line.rstrip()))
        else:
            equals = _equals(line)
            keys = _keys(line[lead:equals]) if equals > 0 else ()
            if keys:
                yield (*table, *keys), (start + lead, start + len(line[:equals].rstrip()))
        start += len(line) + 1


def _equals(line: str) -> int:
    """Where the `=` behind a key is; -1 without one."""
    quote = ""
    for i, c in enumerate(line[:500]):
        if quote:
            quote = "" if c == quote and line[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c == "=":
            return i
    return -1


def _keys(written: str) -> Keys:
    """The parts of a key as written; none if it is not a key."""
    if not written or len(written) > 500:
        return ()
    try:
        table: Any = _toml(f"{written} = 0")
    except (ValueError, RecursionError):
        return ()
    found: list[str] = []
    while isinstance(table, dict) and len(table) == 1:
        (key, table), *_ = table.items()
        found.append(key)
    return tuple(found) if table == 0 else ()
