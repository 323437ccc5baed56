"""What Python's argparse does with the words of a command line, for parsers like SGLang's: optional arguments only, no groups.

Follows CPython 3.11 (`ArgumentParser._parse_known_args`, `_parse_optional`, `_get_values`), with one addition: a word whose text is
unknown. Such a word may be a value or a flag, and a splat any number of words; neither makes an error, and neither does a word
that could belong to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from spec_lsp.catalog.converters import Refusal, convert, lora_paths
from spec_lsp.catalog.model import Catalog, Flag
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.word import Word

Kind = Literal[
    "unknown-flag",
    "ambiguous-prefix",
    "invalid-choice",
    "invalid-value",
    "missing-value",
    "unexpected-value",
    "stray-argument",
    "removed-flag",
    "required",
]

_NEGATIVE_NUMBER = expression(r"-\d+$|-\d*\.\d+$")
_CLASSIFY, _CONSUME, _REQUIRED, _LEFT_OVER = range(4)
"""argparse reports one error: the first of the first of these phases that has any."""


@dataclass(slots=True)
class Arg:
    """One element of argv. `config` if a `--config` file brought it."""

    word: Word
    text: str | None
    config: bool = False


@dataclass(slots=True)
class Occurrence:
    """A given flag, with the value of its words. `matched` is its full spelling, `typed` the one that is written."""

    flag: Flag
    matched: str
    typed: str
    arg: Arg
    values: tuple[Word, ...]
    value: Any
    index: int
    sets: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """An error, also in argparse's own words (`says`); `index` is the element of argv where it is, `words` those that it covers."""

    kind: Kind
    phase: int
    index: int
    words: tuple[Word, ...]
    says: str
    flag: Flag | None = None
    typed: str = ""
    candidates: tuple[str, ...] = ()
    text: str = ""
    expected: str = ""
    config: bool = False


@dataclass
class Outcome:
    """`faults` in argparse's order; `open` are the indices of words that may stand for any flag; `help` is where help is asked for."""

    occurrences: list[Occurrence] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    help: Arg | None = None


@dataclass(slots=True)
class _Option:
    """A word that argparse takes for a flag: which one (None: no such flag), its full spelling, and a value after `=`."""

    flag: Flag | None
    matched: str
    typed: str
    explicit: Word | None = None
    explicit_text: str | None = None
    ambiguous: bool = False


_Class = _Option | Literal["value", "dashes", "one", "scalar", "any"]
"""What a word is: an option, a value, `--`, one unknown word, an unquoted unknown variable, any number of unknown words."""


def parse(catalog: Catalog, args: Sequence[Arg]) -> Outcome:
    """Bind `args` to the flags of the catalog."""
    return _Parser(catalog, args).run()


class _Parser:
    def __init__(self, catalog: Catalog, args: Sequence[Arg]) -> None:
        self.catalog = catalog
        self.release = catalog.release
        self.args = args
        self.outcome = Outcome()
        self.classes = list(self._classify())

    # --- what each word is ---------------------------------------------------------------------------------------------

    def _classify(self) -> Iterator[_Class]:
        spellings = self.catalog.by_spelling
        after_dashes = False
        for index, arg in enumerate(self.args):
            text = arg.text
            if text is None:
                if arg.word.splat:
                    yield "scalar" if arg.word.scalar else "any"
                else:
                    yield self._unknown(index, arg, after_dashes)
            elif after_dashes or not text or text[0] != "-":
                yield "value"
            elif text in spellings:
                yield _Option(spellings[text], text, text)
            elif text == "--":
                after_dashes = True
                yield "dashes"
            else:
                yield self._option(index, arg, text)

    def _unknown(self, index: int, arg: Arg, after_dashes: bool) -> _Class:
        start = arg.word.known_start
        if after_dashes or (start and start[0] != "-"):
            return "value"
        spelling, equals, _ = start.partition("=")
        if equals and start.startswith("--"):
            explicit = arg.word.split(len(spelling) + 1)[1]
            if spelling in self.catalog.by_spelling:
                return _Option(self.catalog.by_spelling[spelling], spelling, spelling, explicit)
            matches = self._starting_with(spelling)
            return self._matched(index, matches, spelling, explicit) if matches else _Option(None, start, spelling)
        return "one"

    def _option(self, index: int, arg: Arg, text: str) -> _Class:
        if len(text) == 1:
            return "value"
        spelling, equals, value = text.partition("=")
        explicit = arg.word.split(len(spelling) + 1)[1] if equals else None
        explicit_text = value if equals else None
        if equals and spelling in self.catalog.by_spelling:
            return _Option(self.catalog.by_spelling[spelling], spelling, spelling, explicit, explicit_text)
        if text[1] == "-":
            matches = self._starting_with(spelling)
        else:
            matches = [s for s in self.catalog.by_spelling if s == text[:2]]  # `-hx` is `-h x`
            if matches:
                spelling, explicit, explicit_text = text[:2], arg.word.split(2)[1], text[2:]
        if matches:
            return self._matched(index, matches, spelling, explicit, explicit_text)
        if _NEGATIVE_NUMBER.match(text) or " " in text:
            return "value"
        return _Option(None, text, spelling)

    def _matched(
        self, index: int, matches: list[str], spelling: str, explicit: Word | None, text: str | None = None
    ) -> _Option:
        """The flag that an abbreviation stands for, or a fault if it fits several."""
        if len(matches) == 1:
            return _Option(self.catalog.by_spelling[matches[0]], matches[0], spelling, explicit, text)
        word = self.args[index].word
        says = f"ambiguous option: {word.text or word.known_start} could match {', '.join(matches)}"
        self._fault("ambiguous-prefix", _CLASSIFY, index, (word,), says, typed=spelling, candidates=tuple(matches))
        return _Option(None, spelling, spelling, ambiguous=True)

    def _starting_with(self, prefix: str) -> list[str]:
        return [s for s in self.catalog.by_spelling if s.startswith(prefix)]

    # --- flags and their values ----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        index = 0
        shelter = False  # words here may belong to something unknown before them
        while index < len(self.args):
            kind = self.classes[index]
            if isinstance(kind, _Option):
                index, shelter = self._take(index, kind)
                continue
            if kind in ("one", "scalar", "any"):
                self.outcome.open.append(index)
                shelter = True
            elif kind == "dashes":
                self._left_over(index, len(self.args))
                break
            elif not shelter:
                end = self._run_of_values(index)
                self._left_over(index, end)
                index = end
                continue
            index += 1
        if self.outcome.help is None:
            self._require()
        else:  # argparse prints its help and exits before it looks at unrecognized words
            self.outcome.faults = [f for f in self.outcome.faults if f.phase < _REQUIRED]
        self.outcome.faults.sort(key=lambda f: f.phase)
        return self.outcome

    def _run_of_values(self, start: int) -> int:
        end = start
        while end < len(self.args) and self.classes[end] == "value":
            end += 1
        return end

    def _take(self, index: int, option: _Option) -> tuple[int, bool]:
        """Consume the option at `index`; returns where to continue, and whether words there may belong to something unknown."""
        flag = option.flag
        if flag is None:
            return self._take_unknown(index, option)
        if option.explicit is not None:
            self._take_explicit(index, option, flag, option.explicit)
            return index + 1, False
        if flag.nargs == 0:
            self._switch(index, option, flag)
            return index + 1, False
        values, end, certain = self._values(index + 1, flag)
        if not certain:
            self._add(index, option, flag, values, unknown="it comes from words the file does not tell")
        elif not values and flag.nargs in (None, "+"):
            self._missing(index, flag, f"expected {'one' if flag.nargs is None else 'at least one'} argument")
        elif isinstance(flag.nargs, int) and len(values) != flag.nargs:
            self._missing(index, flag, f"expected {flag.nargs} argument{'s' * (flag.nargs != 1)}")
        else:
            self._convert(index, option, flag, [(a.word, a.text) for a in values])
        return end, False

    def _values(self, start: int, flag: Flag) -> tuple[list[Arg], int, bool]:
        """The words that argparse gives to a flag, where they end, and whether it certainly gives exactly those."""
        if flag.nargs is None and start < len(self.args) and self.classes[start] == "value":
            return [self.args[start]], start + 1, True
        most = flag.nargs if isinstance(flag.nargs, int) else len(self.args) if flag.nargs in ("*", "+") else 1
        end = start
        certain = True
        while end < len(self.args) and end - start < most:
            kind = self.classes[end]
            if kind == "value":
                end += 1
            elif kind == "one" or (kind == "scalar" and flag.nargs is None):
                certain = certain and flag.nargs is None
                end += 1
            elif kind in ("scalar", "any"):
                return list(self.args[start:end]), end, end - start > 0 and flag.nargs is None
            else:
                break
        return list(self.args[start:end]), end, certain

    def _take_unknown(self, index: int, option: _Option) -> tuple[int, bool]:
        """A flag that does not exist or is ambiguous: what follows is assumed to be its values."""
        end = self._run_of_values(index + 1)
        if not option.ambiguous:
            self._left_over(index, end, option.typed)
        return end, True

    def _take_explicit(self, index: int, option: _Option, flag: Flag, explicit: Word) -> None:
        """`--flag=value`."""
        if flag.nargs == 0:
            says = f"argument {_name(flag)}: ignored explicit argument {option.explicit_text!r}"
            words = (self.args[index].word,)
            self._fault(
                "unexpected-value", _CONSUME, index, words, says, flag, option.typed, text=option.explicit_text or ""
            )
            return
        if isinstance(flag.nargs, int) and flag.nargs != 1:
            self._missing(index, flag, f"expected {flag.nargs} arguments")
            return
        # argparse drops a value that is `--`, wherever it comes from
        values = [] if option.explicit_text == "--" else [(explicit, option.explicit_text)]
        self._convert(index, option, flag, values)

    # --- values --------------------------------------------------------------------------------------------------------

    def _convert(self, index: int, option: _Option, flag: Flag, values: Sequence[tuple[Word, str | None]]) -> None:
        words = tuple([word for word, _ in values])
        unknown = next((word.reason for word, text in values if text is None), None)
        converted: list[Any] = []
        bad = False
        for word, text in values:
            if text is None:
                continue
            try:
                value = convert(flag.type, text, self.release)
            except Refusal as refusal:
                self._invalid(index, flag, option, word, text, refusal)
                bad = True
                continue
            converted.append(value)
        if flag.choices is not None and not bad:
            known = [(w, t) for w, t in values if t is not None]
            for (word, text), value in zip(known, converted, strict=True):
                if value not in flag.choices:
                    self._wrong_choice(index, flag, option, word, text, value)
                    bad = True
                    break
        if not bad:
            self._store(index, option, flag, words, converted, unknown)

    def _store(
        self,
        index: int,
        option: _Option,
        flag: Flag,
        words: tuple[Word, ...],
        converted: list[Any],
        unknown: str | None,
    ) -> None:
        if unknown is not None:
            self._add(index, option, flag, words, unknown=unknown)
            return
        value: Any = converted
        if flag.action == "deprecated-const" or (not words and flag.nargs == "?"):
            value = flag.const
        elif len(words) == 1 and flag.nargs in (None, "?"):
            value = converted[0]
        elif flag.action == "lora-paths":
            try:
                value = lora_paths(converted, self.release)
            except Refusal as refusal:
                self._invalid(index, flag, option, words[0], " ".join(converted), refusal)
                return
        self._add(index, option, flag, words, value=value)

    def _switch(self, index: int, option: _Option, flag: Flag) -> None:
        if flag.action == "help":
            self.outcome.help = self.outcome.help or self.args[index]
        elif flag.action == "boolean":
            self._add(index, option, flag, (), value=not option.matched.startswith("--no-"))
        elif flag.action == "deprecated":
            if flag.fatal:
                word = self.args[index].word
                self._fault("removed-flag", _CONSUME, index, (word,), "", flag, option.typed)
            self._add(index, option, flag, (), value=None, sets=False)
        else:
            self._add(index, option, flag, (), value=flag.const)

    def _add(
        self,
        index: int,
        option: _Option,
        flag: Flag,
        values: Sequence[Word | Arg],
        *,
        value: Any = None,
        unknown: str | None = None,
        sets: bool = True,
    ) -> None:
        words = tuple([v.word if isinstance(v, Arg) else v for v in values])
        found = value if unknown is None else Unknown(unknown)
        self.outcome.occurrences.append(
            Occurrence(flag, option.matched, option.typed, self.args[index], words, found, index, sets)
        )

    # --- errors --------------------------------------------------------------------------------------------------------

    def _fault(
        self,
        kind: Kind,
        phase: int,
        index: int,
        words: tuple[Word, ...],
        says: str,
        flag: Flag | None = None,
        typed: str = "",
        candidates: tuple[str, ...] = (),
        text: str = "",
        expected: str = "",
    ) -> None:
        config = bool(self.args) and index < len(self.args) and self.args[index].config
        if self.outcome.help is None:
            self.outcome.faults.append(
                Fault(kind, phase, index, words, says, flag, typed, candidates, text, expected, config)
            )

    def _missing(self, index: int, flag: Flag, what: str) -> None:
        word = self.args[index].word
        says = f"argument {_name(flag)}: {what}"
        self._fault("missing-value", _CONSUME, index, (word,), says, flag, self.args[index].text or flag.name)

    def _invalid(self, index: int, flag: Flag, option: _Option, word: Word, text: str, refusal: Refusal) -> None:
        said = refusal.says or f"invalid {flag.type} value: {text!r}"
        words = (self.args[index].word, word)
        says = f"argument {_name(flag)}: {said}"
        self._fault(
            "invalid-value", _CONSUME, index, words, says, flag, option.typed, text=text, expected=refusal.expected
        )

    def _wrong_choice(self, index: int, flag: Flag, option: _Option, word: Word, text: str, value: Any) -> None:
        choices = flag.choices or ()
        says = f"argument {_name(flag)}: invalid choice: {value!r} (choose from {', '.join(map(repr, choices))})"
        words = (self.args[index].word, word)
        candidates = tuple(str(c) for c in choices)
        self._fault("invalid-choice", _CONSUME, index, words, says, flag, option.typed, candidates, text)

    def _left_over(self, start: int, end: int, typed: str = "") -> None:
        """Words that no flag takes: argparse's "unrecognized arguments", all in one message."""
        words = [a.word for a in self.args[start:end] if a.text is not None or a.word.known_start]
        says = "unrecognized arguments: " + " ".join(a.text or "" for a in self.args[start:end])
        kind: Kind = "unknown-flag" if typed else "stray-argument"
        text = self.args[start].text or ""
        self._fault(kind, _LEFT_OVER, start, tuple(words), says, None, typed, text=text)

    def _require(self) -> None:
        given = {o.flag.dest for o in self.outcome.occurrences}
        attempted = {f.flag.dest for f in self.outcome.faults if f.flag is not None}  # only one error for one flag
        missing = [f for f in self.catalog.required if f.dest not in given and f.dest not in attempted]
        if missing and not self.outcome.open:
            says = f"the following arguments are required: {', '.join(map(_name, missing))}"
            for flag in missing:
                self._fault("required", _REQUIRED, len(self.args), (), says, flag, flag.name)


def _name(flag: Flag) -> str:
    return "/".join(flag.spellings)
