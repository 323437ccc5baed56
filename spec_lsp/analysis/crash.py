"""From what a server printed when it died to the rule that reports the cause beforehand.

A log is any text: its lines may begin with timestamps, ranks and container names, and it may hold several tracebacks and the output of
other processes. We look for tracebacks, the errors of SGLang's argument parser, the launch's command line or the settings that SGLang
prints (`server_args=ServerArgs(…)`), and the release.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.model import Catalog
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, nearest, releases
from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import DEVICES, Hardware
from spec_lsp.records import dataclass, field
from spec_lsp.resolution.engine import Rule

MAX_LINES = 200_000
"""The most lines that are read. Of longer logs one half is taken from the beginning, where the launch is, and one half from the end."""
MAX_LINE = 100_000
"""The most characters that are read of a line, or of a command over several lines; longer settings are not read at all."""
MAX_VALUE = 10_000
"""The longest printed setting, in characters, that is read."""

PREFIX = expression(r"^(?:[\w./-]+\s*\|\s?|\S+\s+(?:stdout|stderr)\s+[FP]\s)")
"""What Compose, Kubernetes and container runtimes write before each line."""
COLOUR = expression(r"\x1b\[[0-9;]*m")
START = expression(r"Traceback \(most recent call last\):")
FRAME = expression(r'File "(?P<file>[^"\n]{1,500})", line \d+, in (?P<function>[\w.<>]{1,200})')
EXCEPTION = expression(
    r"^(?:[\w.]{1,200}\.)?(?P<name>[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Warning)|Exception)(?::\s?(?P<message>.*))?$"
)
ARGPARSE = expression(r"\berror: (?P<said>(?:argument|unrecognized|ambiguous|the following|invalid)\b.*)")
COMMAND = expression(
    r"(?P<command>(?:(?<!\S)\S*python[\d.]*\s+(?:-\w+\s+){0,20}?-m\s+sglang\.launch_server|\bsglang\s+serve|\bsglang\.launch_server)\s.*)"
)
SETTINGS = expression(r"\b(?:server_args=)?ServerArgs\(")
RELEASE = expression(
    r"\bsglang(?:\[[^\]]{0,200}\])?(?:==|-v?|:v?|\s+v?|/)(?P<release>\d+\.\d+\.\d+(?:\.?post\d+)?)\b", re.IGNORECASE
)
WORD = expression(r"[a-z][a-z0-9]{2,}")

_TITLES = "|".join(re.escape(d.title) for d in sorted(DEVICES.values(), key=lambda d: -len(d.title)))
GPU = expression(rf"(?:NVIDIA|AMD Instinct) (?P<title>{_TITLES})\b")

ARGUMENT_RULES: tuple[tuple[str, str], ...] = (
    ("unrecognized arguments: -", "unknown-flag"),
    ("unrecognized arguments", "stray-argument"),
    ("ambiguous option", "ambiguous-flag"),
    ("invalid choice", "invalid-choice"),
    ("are required", "missing-flag"),
    ("expected one argument", "missing-value"),
    ("expected at least one argument", "missing-value"),
    ("ignored explicit argument", "unexpected-value"),
    ("value:", "invalid-value"),
)
"""The rule that an argparse error belongs to, by its wording (that of Python itself, in any release)."""

OUT_OF_MEMORY = expression(r"out of memory|OutOfMemoryError|cudaErrorMemoryAllocation", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Crash:
    """One refusal: a traceback with its functions in SGLang, the innermost last, or an error of the argument parser (no functions)."""

    exception: str
    message: str
    functions: tuple[tuple[str, str], ...] = ()
    """(path from `sglang/` on, function)."""

    @property
    def where(self) -> str:
        """The innermost function of SGLang: `speculative_hook.py:_handle_dspark`."""
        if not self.functions:
            return "the command line"
        file, function = self.functions[-1]
        return f"{file.rpartition('/')[2]}:{function}"


@dataclass(frozen=True, slots=True)
class Log:
    """What a log contains. `settings` are the fields of the last ServerArgs that was printed, as far as they are plain values."""

    crashes: tuple[Crash, ...] = ()
    commands: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    release: Release | None = None
    hardware: Hardware | None = None
    out_of_memory: bool = False


# --- reading -----------------------------------------------------------------------------------------------------------


def read_log(text: str) -> Log:
    """Read a log. Never raises; the work is linear in the text."""
    lines = [PREFIX.sub("", COLOUR.sub("", line[:MAX_LINE])).rstrip() for line in _ends(text.splitlines())]
    named = [m["release"] for line in lines if "sglang" in line.lower() for m in RELEASE.finditer(line)]
    found = [release for release in map(Release.read, named) if release is not None]
    return Log(
        tuple(dict.fromkeys(_crashes(lines))),
        tuple(dict.fromkeys(_commands(lines))),
        _settings(lines),
        found[-1] if found else None,
        _hardware(lines),
        any(OUT_OF_MEMORY.search(line) for line in lines),
    )


def _ends(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MAX_LINES else lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]


def _crashes(lines: Sequence[str]) -> Iterator[Crash]:
    functions: list[tuple[str, str]] | None = None
    for line in lines:
        frame = FRAME.search(line)
        if START.search(line):
            functions = []
        elif frame is not None:
            functions = [] if functions is None else functions
            path = frame["file"].replace("\\", "/")
            if "sglang/" in path:
                functions.append((path[path.rindex("sglang/") :], frame["function"]))
        elif functions is not None and (ended := EXCEPTION.match(line)):
            if functions:
                yield Crash(ended["name"], ended["message"] or "", tuple(functions))
            functions = None
        elif "error: " in line and (refused := ARGPARSE.search(line)):
            yield Crash("SystemExit", refused["said"])


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """The launches written in the log, with continued lines joined."""
    parts: list[str] = []
    length = 0
    for line in lines:
        parts.append(line)
        length += len(line)
        if line.endswith("\\") and length < MAX_LINE:
            parts[-1] = line[:-1] + " "
            continue
        joined = "".join(parts)
        parts, length = [], 0
        found = (
            COMMAND.search(joined) if "sglang" in joined else None
        )  # plain words are checked first: a regular expression takes long to fail
        if found and "ServerArgs(" not in joined and "usage:" not in joined:
            yield found["command"].strip(" '\"`")


def _settings(lines: Sequence[str]) -> Mapping[str, Any]:
    """The plain keyword values of the last `ServerArgs(…)`."""
    for line in reversed(lines):
        start = SETTINGS.search(line) if "ServerArgs(" in line else None
        if start is not None and len(line) < MAX_LINE:
            return dict(_keywords(line[start.end() :]))
    return {}


KEYWORD = expression(
    r"\s*(?P<name>[a-z_]\w*)="
    r"(?P<value>(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\[\]]*\])\s*|[^,()\[\]{}]+)(?:,|\)|$)"
)
OTHER = expression(r"[^,]*,?")


def _keywords(text: str) -> Iterator[tuple[str, Any]]:
    position = 0
    while position < len(text):
        match = KEYWORD.match(text, position)
        if match is None:
            position = OTHER.match(text, position).end() or position + 1  # type: ignore[union-attr]
            continue
        position = match.end()
        if len(match["value"]) > MAX_VALUE:
            continue
        try:
            yield match["name"], ast.literal_eval(match["value"].strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue  # an enum or a dataclass: no flag can express it


def _hardware(lines: Iterable[str]) -> Hardware | None:
    """The one GPU that the log names, as nvidia-smi and torch write it; None when it names several."""
    named = {m["title"] for line in lines if "NVIDIA" in line or "AMD" in line for m in GPU.finditer(line)}
    return next(d for d in DEVICES.values() if d.title in named) if len(named) == 1 else None


# --- which rule --------------------------------------------------------------------------------------------------------


def candidates(crash: Crash, release: Release | None) -> tuple[Rule, ...]:
    """The rules that report a refusal at this place with this exception, those whose words are most like the message's first.

    Without a release, the rules of all releases count. Empty when none is known.
    """
    if not crash.functions:
        name = next((rule for words, rule in ARGUMENT_RULES if words in crash.message), None)
        return tuple(rule for rule in all_rules() if rule.name == name)
    here = {_key(f"{file}:{function}") for file, function in crash.functions[-3:]}
    fitting = [rule for rule in all_rules() if here & set(_keys(rule, crash.exception, release))]
    said = _words(crash.message)
    return tuple(sorted(fitting, key=lambda rule: -_likeness(rule, said)))


def _likeness(rule: Rule, said: frozenset[str]) -> int:
    """How many of the message's words also occur in the rule; words of its name count twice."""
    words = _words(" ".join((rule.name, rule.summary, rule.explanation, *rule.bad)))
    return len(said & words) + len(said & _words(rule.name))


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.lower().replace("_", " ").replace("-", " ")))


def _keys(rule: Rule, exception: str, release: Release | None) -> Iterator[tuple[str, str]]:
    places = (
        [rule.place(release)]
        if release
        else [(rule.sglang, rule.raises), *((e.sglang, e.raises or rule.raises) for e in rule.earlier)]
    )
    for place, raises in places:
        if place and exception in raises.replace("/", " ").split():
            yield _key(place)


def _key(place: str) -> tuple[str, str]:
    """File and function without folders and classes, so that a traceback and a rule can be compared."""
    file, _, function = place.partition(":")
    return file.rpartition("/")[2], function.rpartition(".")[2]


# --- the launch --------------------------------------------------------------------------------------------------------


def launch_of(log: Log, release: Release | None) -> str:
    """The launch as a command line: the last one that the log shows, else one that gives the printed settings. Empty without either."""
    if log.commands:
        return log.commands[-1]
    if not log.settings:
        return ""
    catalog = load(nearest(release or log.release or releases()[-1]))
    return shlex.join(["python3", "-m", "sglang.launch_server", *_flags(log.settings, catalog)])


def _flags(settings: Mapping[str, Any], catalog: Catalog) -> Iterator[str]:
    """The settings that differ from their defaults, as flags."""
    for name, value in settings.items():
        flag = catalog.by_field.get(name)
        if flag is None or value is None or value == catalog.defaults.get(name):
            continue
        if flag.nargs == 0:
            if value is True:
                yield flag.name
        elif isinstance(value, (list, tuple)):
            if flag.nargs in ("+", "*") and value:
                yield from (flag.name, *map(str, value))
        elif not isinstance(value, bool):
            yield from (flag.name, str(value))


def told_by(rules: Iterable[Rule], found: Iterable[str]) -> tuple[Rule, ...]:
    """The rules that are also among the launch's findings, in their order: those that both the log and the launch show."""
    names = set(found)
    return tuple(rule for rule in rules if rule.name in names)
