"""What the words of a launch mean to one release of SGLang: fields with typed values, and what its command line refuses.

This is `prepare_server_args` up to `ServerArgs(…)`: `sglang serve`'s own words, the `--config` file, then argparse, including its bugs.
Unknown words stay unknown, and nothing is assumed about what follows words that may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from spec_lsp.catalog import config_file
from spec_lsp.catalog.argparse_rules import Arg, Fault, Occurrence, Outcome, parse
from spec_lsp.catalog.diffusion import serves_diffusion
from spec_lsp.catalog.history import flag_span, replacement
from spec_lsp.catalog.messages import Wording
from spec_lsp.catalog.model import Catalog, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.suggest import MAX_SUGGESTED, is_certain, is_certain_flag, suggest_flag, suggest_value
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.catalog.wrappers import elsewhere, has_own, is_own, is_strict, without_own
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.launch import Program
from spec_lsp.syntax.word import Place, Word, literal

if TYPE_CHECKING:
    from spec_lsp.syntax.yaml.config import ConfigFile

__all__ = ["BindError", "Binding", "ErrorKind", "Note", "NoteKind", "Setting", "Unknown", "bind", "rebound"]

ErrorKind = Literal[
    "unknown-flag",
    "ambiguous-prefix",
    "invalid-choice",
    "invalid-value",
    "missing-value",
    "unexpected-value",
    "stray-argument",
    "required",
    "removed-flag",
    "config-missing",
    "config-not-mapping",
    "config-twice",
    "config-ignored",
]
NoteKind = Literal["prefix", "deprecated", "repeated", "help", "no-serve"]

ReadConfig = Callable[[str], "tuple[str, str] | ConfigFile | None"]
"""Returns a `--config` file by its path as typed: (document name, text), or the file already read. None if that is unknown here. Raises
FileNotFoundError if there certainly is no such file."""

_STRICT: frozenset[Program] = frozenset(("launch_server", "serve", "config"))
"""Programs that accept only the flags of `ServerArgs`. Of programs with flags of their own, `wrappers` knows which are as strict about the
rest."""

_SERVE = Release(0, 5, 5)
_SERVE_MODEL_TYPE = Release(0, 5, 10)
_SERVE_MODEL_ALIAS = Release(0, 5, 11)
_SERVE_POSITIONAL = Release(0, 5, 16)
LOG_LEVEL_CHECKED = Release(0, 5, 11)
LOG_LEVELS = frozenset(("CRITICAL", "FATAL", "ERROR", "WARNING", "WARN", "INFO", "DEBUG", "NOTSET"))


@dataclass(frozen=True, slots=True)
class Setting:
    """A field that the launch sets, by its last flag.

    `spelling` is the flag as typed, `flag` the word it is in (with the value, for `--tp=8`), `values` the words of its value.
    `losers` came earlier, the latest of them last.
    """

    field: str
    value: Any
    spelling: str
    flag: Word
    values: tuple[Word, ...]
    definition: Flag
    from_config: bool = False
    losers: tuple[Setting, ...] = ()
    keyword: bool = False
    """Whether it is a keyword argument of a Python call; `values` is then the source of its value."""

    @property
    def known(self) -> bool:
        return not isinstance(self.value, Unknown)

    @property
    def path_to_name(self) -> str | None:
        """The value as a path, of which the name at its end has to be known: an unknown folder above it is `…`."""
        if isinstance(self.value, str):
            return self.value
        end = self.values[0].known_end if len(self.values) == 1 and not self.keyword else ""
        return f"…{end}" if end.startswith("/") and end.strip("/") else None

    @property
    def spelled(self) -> str:
        """The flag with its value as written: `--tp 8`, `--tp=8`, `tp-size: 8` in a config file, `tp_size=8` in Python."""
        if self.keyword:
            return f"{self.spelling}={' '.join(w.text or '…' for w in self.values)}"
        return _spelled(self.spelling, self.flag, self.values, self.from_config)

    @property
    def is_key(self) -> bool:
        """Whether it is written as the key of a mapping."""
        return self.from_config or is_key(self.flag)


@dataclass(frozen=True, slots=True)
class BindError:
    """Something that SGLang's command line refuses (`fatal`), or silently ignores.

    `place` is None if the mistake is something missing (a flag). `says` is what argparse prints, in SGLang's own messages up to a colon.
    `typed` is the flag as typed, `text` the value; `candidates` are the flags that an abbreviation may mean or the values that a flag
    accepts; `suggestion` is the flag or value that was probably meant, or the replacement of a removed flag, with its value if that is
    fixed (`--moe-a2a-backend deepep`). `words` are those at fault, the flag's first.
    """

    kind: ErrorKind
    message: str
    place: Place | None
    fatal: bool = True
    says: str = ""
    words: tuple[Word, ...] = ()
    definition: Flag | None = None
    typed: str = ""
    text: str = ""
    candidates: tuple[str, ...] = ()
    suggestion: str | None = None
    from_config: bool = False
    related: tuple[tuple[Place, str], ...] = ()
    guess: bool = False
    """Whether the suggestion is only the most likely name, without other evidence."""

    @property
    def about(self) -> str:
        """The words that are wrong, as typed."""
        typed = " ".join(dict.fromkeys(filter(None, (self.typed, self.text))))
        return typed or " ".join(w.text or w.known_start for w in self.words) or self.kind


@dataclass(frozen=True, slots=True)
class Note:
    """Something that SGLang accepts but a person should know."""

    kind: NoteKind
    message: str
    place: Place
    definition: Flag | None = None
    typed: str = ""
    suggestion: str | None = None
    related: tuple[tuple[Place, str], ...] = ()
    word: Word | None = None
    """The flag's word, if the note is about a flag."""
    from_config: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """What a launch sets. `errors` are in the order in which SGLang meets them; a real launch ends at the first fatal one.

    `open` holds the words that may stand for any flag. `config` is the file that was asked for.
    """

    catalog: Catalog
    settings: Mapping[str, Setting]
    errors: tuple[BindError, ...] = ()
    notes: tuple[Note, ...] = ()
    open: tuple[Word, ...] = ()
    config: Word | None = None

    @property
    def fatal(self) -> bool:
        """Whether the real launch ends before its arguments are resolved."""
        return any(e.fatal for e in self.errors)


_OWN_CHOICES: Mapping[tuple[Program, str], tuple[str, ...]] = {
    ("dynamo", "load_format"): ("gms",),
    ("dynamo", "disaggregation_mode"): ("agg", "pd", "encode"),
}
"""Values that a program accepts for SGLang's flags in addition to SGLang's own: Dynamo loads weights through its GPU memory service."""


def bind(
    catalog: Catalog,
    words: Sequence[Word],
    *,
    program: Program = "launch_server",
    read_config: ReadConfig | None = None,
) -> Binding:
    """Bind the words that follow the entry point.

    For programs whose own flags are unknown (router, trainer), unknown words are not errors.
    """
    return _Binder(catalog, program, read_config).bind(words)


_ALIKE = frozenset((None, "int", "float", "str", "loads", "json_list_type", "human_readable_int", "nullable_str"))
"""Types that every release converts alike."""


def rebound(binding: Binding, catalog: Catalog) -> Binding | None:
    """The binding of `python -m sglang.launch_server`'s words in another release, if it clearly is the same: all flags are known, bind
    without a remark, and are defined alike in both releases. None: bind the words again."""
    if binding.errors or binding.notes or binding.open or binding.config is not None:
        return None
    settings: dict[str, Setting] = {}
    for field, setting in binding.settings.items():
        flag, other = setting.definition, catalog.by_spelling.get(setting.spelling)
        if other is None or setting.losers or not _alike(flag, other, setting.value):
            return None
        settings[field] = setting if other is flag else replace(setting, definition=other)
    level = settings.get("log_level")
    checked = level is None or str(level.value).upper() in LOG_LEVELS
    told = all(flag.field in settings for flag in catalog.required)
    return Binding(catalog, MappingProxyType(settings)) if checked and told else None


def _alike(flag: Flag, other: Flag, value: Any) -> bool:
    """Whether one flag's value is accepted by the other, with the same meaning."""
    if flag is other:
        return flag.type in _ALIKE
    same = (flag.field, flag.action, flag.nargs, flag.const, flag.type) == (
        other.field,
        other.action,
        other.nargs,
        other.const,
        other.type,
    )
    taken = other.choices is None or (flag.nargs is None and value in other.choices)
    return same and taken and flag.type in _ALIKE and not other.deprecated and not other.fatal


class _Binder:
    def __init__(self, catalog: Catalog, program: Program, read_config: ReadConfig | None) -> None:
        self.catalog = catalog
        self.release = catalog.release
        self.program = program
        self.read_config = read_config
        self.strict = program in _STRICT
        self.wording = Wording(catalog)
        self.errors: list[BindError] = []
        self.notes: list[Note] = []
        self.config: Word | None = None
        self.unread = False

    def bind(self, words: Sequence[Word]) -> Binding:
        args = [Arg(w, _text(w)) for w in words]
        if self.program == "serve" and serves_diffusion(w.known_start for w in words):
            return Binding(self.catalog, MappingProxyType({}), open=tuple(words))
        if self.program == "serve":
            args = self._serve(args)
        args = self._with_config(args)
        self.strict = self.strict or is_strict(self.program, args)
        if has_own(self.program):
            args = without_own(self.catalog, self.program, args)
        outcome = parse(self.catalog, args)
        settings = self._settings(outcome)
        self._faults(outcome, args)
        self._note_flags(outcome)
        if outcome.help is None:
            self._check_log_level(settings)
        opened = [args[i].word for i in outcome.open]
        if self.unread and self.config is not None:
            opened.append(self.config)
        return Binding(
            self.catalog,
            MappingProxyType(settings),
            tuple(self.errors),
            tuple(self.notes),
            tuple(opened),
            self.config,
        )

    # --- sglang serve --------------------------------------------------------------------------------------------------

    def _serve(self, args: list[Arg]) -> list[Arg]:
        """What `sglang serve` does to its words before it passes them on (`sglang/cli/serve.py`)."""
        if self.release < _SERVE:
            if args:
                message = f"SGLang {self.release} has no `sglang serve`; it came with 0.5.5. Use `python -m sglang.launch_server`."
                self.notes.append(Note("no-serve", message, args[0].word.place))
            return args
        if self.release >= _SERVE_MODEL_TYPE:
            args = _without_model_type(args)
        first = args[0].word if args else None
        positional = first is not None and (first.scalar or not first.splat) and first.known_start[:1] != "-"
        if positional and self.release >= _SERVE_POSITIONAL:
            assert first is not None
            flag = Word((), Place(first.place.document, first.place.start, first.place.start))
            return [Arg(flag, "--model-path"), *args]
        known = all(a.text is not None or (a.word.known_start and not a.word.splat) for a in args)
        if known and not self._names_model([a.text or a.word.known_start for a in args]):
            place = first.place if positional and first is not None else None
            definition = self.catalog.by_field["model_path"]
            message = self.wording.serve_without_model(positional and first is not None, first.text if first else None)
            says = "Error: --model-path is required. Please provide the path to the model."
            self.errors.append(
                BindError("required", message, place, says=says, definition=definition, typed="--model-path")
            )
        return args

    def _names_model(self, texts: Sequence[str]) -> bool:
        """Whether `sglang serve` finds the model: it looks for the exact flag, not in a `--config` file."""
        names = ("--model-path", "--model") if self.release >= _SERVE_MODEL_ALIAS else ("--model-path",)
        equals = tuple(n + "=" for n in names)
        return any(t.startswith(equals) or (t in names and i + 1 < len(texts)) for i, t in enumerate(texts)) or any(
            t in ("-h", "--help") for t in texts
        )

    # --- the config file -----------------------------------------------------------------------------------------------

    def _with_config(self, args: list[Arg]) -> list[Arg]:
        """The words, preceded by those of the `--config` file as SGLang inserts them."""
        places = [i for i, a in enumerate(args) if a.text == "--config"]
        if not places or "--config" not in self.catalog.by_spelling:
            return args
        at = places[0]
        if len(places) > 1:
            self._config_error("config-twice", args[places[1]].word, self.wording.config_twice, related=args[at].word)
            return _without_config(args)
        if at == len(args) - 1:
            self._config_error("missing-value", args[at].word, self.wording.config_without_path)
            return args[:at]
        path = args[at + 1].word
        self.config = path
        return self._config_words(path) + args[:at] + args[at + 2 :]

    def _config_words(self, path: Word) -> list[Arg]:
        name = path.text
        if name is None:
            self.unread = True
            return []
        if not name.lower().endswith((".yaml", ".yml")) or name.rsplit("/", 1)[-1].lower() in (".yaml", ".yml"):
            self._config_error("config-missing", path, self.wording.config_not_yaml(name))
            return []
        try:
            read = self.read_config(name) if self.read_config is not None else None
        except FileNotFoundError:
            self._config_error("config-missing", path, self.wording.config_missing(name))
            return []
        if read is None:
            self.unread = True
            return []
        from spec_lsp.syntax.yaml.config import read_config  # imports PyYAML, and few launches name a file

        return self._merge(path, read_config(*read) if isinstance(read, tuple) else read)

    def _merge(self, path: Word, file: ConfigFile) -> list[Arg]:
        if file.error is not None or file.root == "other":
            place = file.error.place if file.error is not None else path.place
            itself = path.text == path.place.document
            problem = file.error.message if file.error is not None else None
            message = self.wording.config_unusable("" if itself else path.text or "", problem)
            self.unread = True
            related = ((path.place, "the launch reads it here"),) if place != path.place and not itself else ()
            self.errors.append(
                BindError(
                    "config-not-mapping",
                    message,
                    place,
                    words=(path,),
                    text=path.text or "",
                    from_config=True,
                    related=related,
                )
            )
            return []
        args, bad = config_file.words_of(self.catalog, file)
        for key in bad:
            message = self.wording.config_key(key.word.text or "", key.flag)
            self.errors.append(
                BindError(
                    "config-not-mapping",
                    message,
                    key.word.place,
                    words=(key.word,),
                    definition=key.flag,
                    typed=key.word.text or "",
                    from_config=True,
                )
            )
        return args

    def _config_error(self, kind: ErrorKind, word: Word, message: str, related: Word | None = None) -> None:
        self.unread = True
        others = ((related.place, "the first one"),) if related is not None else ()
        self.errors.append(
            BindError(kind, message, word.place, words=(word,), typed="--config", text=word.text or "", related=others)
        )

    # --- fields --------------------------------------------------------------------------------------------------------

    def _settings(self, outcome: Outcome) -> dict[str, Setting]:
        found: dict[str, Setting] = {}
        for occurrence in outcome.occurrences:
            field = occurrence.flag.field
            if not occurrence.sets or field == "config":
                continue
            before = found.get(field)
            losers = (*before.losers, before) if before is not None else ()
            found[field] = _setting(occurrence, losers)
        return found

    def _note_flags(self, outcome: Outcome) -> None:
        for occurrence in outcome.occurrences:
            flag, place = occurrence.flag, occurrence.arg.word.place
            if flag.dest == "config":
                message = self.wording.config_ignored(occurrence.arg.text or occurrence.typed)
                self.errors.append(
                    BindError(
                        "config-ignored",
                        message,
                        place,
                        fatal=False,
                        words=(occurrence.arg.word, *occurrence.values),
                        definition=flag,
                        typed=occurrence.typed,
                        suggestion="--config",
                    )
                )
            if occurrence.typed != occurrence.matched:
                message = self.wording.abbreviated(occurrence.typed, occurrence.matched)
                word, config = occurrence.arg.word, occurrence.arg.config
                note = Note("prefix", message, place, flag, occurrence.typed, occurrence.matched, (), word, config)
                self.notes.append(note)
            if flag.deprecated and not flag.fatal:
                message, instead = self.wording.deprecated(flag, occurrence.matched)
                word, config = occurrence.arg.word, occurrence.arg.config
                self.notes.append(Note("deprecated", message, place, flag, occurrence.typed, instead, (), word, config))
        self._note_repeats(outcome)
        if outcome.help is not None:
            message = "SGLang prints its help and exits; no server starts."
            self.notes.append(Note("help", message, outcome.help.word.place))

    def _note_repeats(self, outcome: Outcome) -> None:
        """Note a flag that is given again later on the command line with another value."""
        last: dict[str, Occurrence] = {}
        for occurrence in reversed(outcome.occurrences):
            if not occurrence.sets or occurrence.arg.config:
                continue
            winner = last.setdefault(occurrence.flag.field, occurrence)
            if winner is occurrence or isinstance(winner.value, Unknown) or isinstance(occurrence.value, Unknown):
                continue
            if winner.value != occurrence.value or type(winner.value) is not type(occurrence.value):
                message = f"`{_as_written(occurrence)}` has no effect: `{_as_written(winner)}` comes later and wins."
                related = ((winner.arg.word.place, "this one wins"),)
                self.notes.append(
                    Note(
                        "repeated",
                        message,
                        occurrence.arg.word.place,
                        occurrence.flag,
                        occurrence.typed,
                        related=related,
                    )
                )

    # --- errors --------------------------------------------------------------------------------------------------------

    def _faults(self, outcome: Outcome, args: Sequence[Arg]) -> None:
        for fault in outcome.faults:
            own = ("unknown-flag", "stray-argument", "ambiguous-prefix", "required")
            if not self.strict and fault.kind in own:
                continue
            if has_own(self.program) and (fault.kind == "required" or self._is_own(fault)):
                continue
            if fault.flag is not None and fault.text in _OWN_CHOICES.get((self.program, fault.flag.field), ()):
                continue
            if fault.kind == "required" and (self.program == "config" or self._model_elsewhere(fault)):
                continue
            self.errors.append(self._error(fault, args))

    def _is_own(self, fault: Fault) -> bool:
        """Whether a flag abbreviates one that the program takes for itself: Dynamo does so before SGLang's parser sees it."""
        kinds = ("unknown-flag", "ambiguous-prefix") if self.program == "dynamo" else ("unknown-flag",)
        return fault.kind in kinds and is_own(self.program, self.release, fault.typed)

    def _model_elsewhere(self, fault: Fault) -> bool:
        """Whether a missing flag may come from a file that was not read, or is reported already."""
        return self.unread or any(e.kind == "required" and e.definition is fault.flag for e in self.errors)

    def _error(self, fault: Fault, args: Sequence[Arg]) -> BindError:
        suggestion = self._suggestion(fault)
        previous = args[fault.index - 1].text if 0 < fault.index <= len(args) else None
        word = fault.words[0] if fault.words else None
        shown = fault.words[-1] if fault.kind in ("invalid-choice", "invalid-value") else word
        message = self.wording.fault(fault, suggestion, previous)
        if fault.kind == "unknown-flag" and (told := elsewhere(self.program, fault.typed)):
            message = f"{message} Dynamo {told}; the version made for this SGLang hands it on."
        return BindError(
            fault.kind,
            message,
            shown.place if shown is not None else None,
            True,
            fault.says,
            fault.words,
            fault.flag,
            fault.typed,
            fault.text,
            fault.candidates,
            suggestion,
            fault.config,
            guess=suggestion is not None and self._is_guess(fault, suggestion),
        )

    def _is_guess(self, fault: Fault, suggestion: str) -> bool:
        """Whether a suggestion is only similar in spelling."""
        if fault.kind == "invalid-choice":
            field = fault.flag.field if fault.flag is not None else ""
            return not is_certain(fault.text, suggestion, fault.candidates, field)
        if suggestion not in self.catalog.by_spelling or flag_span(fault.typed) is not None:
            return False
        return not is_certain_flag(self.release, fault.typed, suggestion)

    def _suggestion(self, fault: Fault) -> str | None:
        """What was probably meant: the replacement of a removed flag, else a similarly spelled one."""
        if fault.kind == "invalid-choice":
            return suggest_value(fault.text, fault.candidates, fault.flag.field if fault.flag is not None else "")
        if fault.kind not in ("unknown-flag", "ambiguous-prefix", "removed-flag"):
            return None
        name = fault.flag.name if fault.flag is not None else fault.typed
        span = flag_span(name)
        gone = fault.kind == "removed-flag" or (
            span is not None and span.until is not None and span.until <= self.release
        )
        successor = replacement(name, self.release) if gone else None
        if successor is not None and successor.name in self.catalog.by_spelling:
            return successor.instead
        if fault.kind != "unknown-flag" or span is not None or len(self.errors) >= MAX_SUGGESTED:
            return None
        return suggest_flag(self.release, fault.typed)

    def _check_log_level(self, settings: Mapping[str, Setting]) -> None:
        """Since 0.5.11 `prepare_server_args` looks the level up in Python's logging module."""
        setting = settings.get("log_level")
        if self.release < LOG_LEVEL_CHECKED or setting is None or not isinstance(setting.value, str):
            return
        level = setting.value.upper()
        if level not in LOG_LEVELS:
            message = f"`{setting.value}` is no log level of Python; SGLang crashes at it. Use debug, info, warning, error or critical."
            word = setting.values[-1] if setting.values else setting.flag
            says = f"module 'logging' has no attribute '{level}'"
            self.errors.append(
                BindError(
                    "invalid-value",
                    message,
                    word.place,
                    True,
                    says,
                    (setting.flag, word),
                    setting.definition,
                    setting.spelling,
                    setting.value,
                    suggestion=suggest_value(setting.value, ("debug", "info", "warning", "error", "critical")),
                    from_config=setting.from_config,
                )
            )


def _text(word: Word) -> str | None:
    """`word.text`, faster for the usual word of one fragment."""
    return word.fragments[0].text if len(word.fragments) == 1 and not word.splat else word.text


def _setting(occurrence: Occurrence, losers: tuple[Setting, ...]) -> Setting:
    return Setting(
        occurrence.flag.field,
        occurrence.value,
        occurrence.typed,
        occurrence.arg.word,
        occurrence.values,
        occurrence.flag,
        occurrence.arg.config,
        losers,
    )


def _spelled(spelling: str, flag: Word, values: tuple[Word, ...], from_config: bool) -> str:
    """The flag with its value as a reader sees it."""
    texts = " ".join(f"{w.known_start}…{w.known_end}" if w.text is None else w.text for w in values)
    if from_config or is_key(flag):
        return f"{spelling.removeprefix('--')}: {texts or 'true'}"
    if not flag.fragments:  # the model that `sglang serve` takes as its first word
        return texts
    if not values:
        return spelling
    joined = values[0].place != flag.place and flag.place.contains(values[0].place)
    return f"{spelling}{'=' if joined else ' '}{texts}"


def is_key(flag: Word) -> bool:
    """Whether a flag is written as the key of a mapping, to which a tool adds the dashes."""
    return len(flag.fragments) > 1 and flag.fragments[0].fixed and flag.fragments[0].text == "--"


def _as_written(occurrence: Occurrence) -> str:
    return _spelled(occurrence.typed, occurrence.arg.word, occurrence.values, occurrence.arg.config)


def _without_model_type(args: list[Arg]) -> list[Arg]:
    """`sglang serve` keeps `--model-type` for itself."""
    found: list[Arg] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg.text == "--model-type":
            skip = True
        elif not arg.word.known_start.startswith("--model-type="):
            found.append(arg)
    return found


def _without_config(args: list[Arg]) -> list[Arg]:
    found: list[Arg] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg.text == "--config":
            skip = True
        else:
            found.append(arg)
    return found


def words_from(argv: Sequence[str], document: str = "argv") -> tuple[Word, ...]:
    """Words that are not in any file: character n of the argv joined by single spaces."""
    found: list[Word] = []
    position = 0
    for text in argv:
        found.append(literal(text, Place(document, position, position + len(text))))
        position += len(text) + 1
    return tuple(found)
