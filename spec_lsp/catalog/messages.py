"""The messages for what binding finds: what was typed, what SGLang does, why, and the way out."""

from __future__ import annotations

from collections.abc import Sequence

from spec_lsp.catalog.argparse_rules import Fault
from spec_lsp.catalog.history import Replacement, Span, choice_span, field_span, flag_span, replacement
from spec_lsp.catalog.model import Catalog, Flag

MOST = 12
"""The most values or flags that a message lists."""


class Wording:
    """Sentences about one release's command line."""

    config_twice = "`--config` is given twice; SGLang accepts one file and stops. Merge the files."
    config_without_path = "`--config` needs the path of a YAML file, and none is given, so SGLang stops."

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.name = f"SGLang {catalog.release}"

    # --- argparse ------------------------------------------------------------------------------------------------------

    def fault(self, fault: Fault, suggestion: str | None, previous: str | None) -> str:
        if fault.kind == "unknown-flag":
            return self._unknown_flag(fault, suggestion)
        if fault.kind == "ambiguous-prefix":
            span = flag_span(fault.typed)
            if suggestion and span is not None:
                was = _when(span, self.catalog)
                return f"`{fault.typed}` may mean {_one_of(fault.candidates)} ({was}), so {self.name} stops. Use `{suggestion}`."
            return (
                f"`{fault.typed}` may mean {_one_of(fault.candidates)}, so {self.name} stops. Write the flag in full."
            )
        if fault.kind == "stray-argument":
            return self._stray(fault, previous)
        if fault.kind == "required" or fault.flag is None:
            return f"`{fault.typed}` is missing; {self.name} cannot start without it."
        return self._of_flag(fault, fault.flag, suggestion)

    def _of_flag(self, fault: Fault, flag: Flag, suggestion: str | None) -> str:
        typed = f"`{fault.typed}`"
        if fault.kind == "invalid-choice":
            span = choice_span(flag.field, fault.text)
            when = f" ({_when(span, self.catalog)})" if span is not None else ""
            meant = f" Did you mean `{suggestion}`?" if suggestion and not when else ""
            return f"{typed} does not accept `{fault.text}` in {self.name}{when}.{meant} It accepts {_one_of(fault.candidates)}."
        if fault.kind == "invalid-value":
            return f"{typed} expects {fault.expected}, not `{fault.text}`."
        if fault.kind == "missing-value":
            what = "at least one value" if flag.nargs == "+" else "a value"
            return f"{typed} needs {what}, and none is given, so {self.name} stops."
        if fault.kind == "unexpected-value":
            off = f" Write `--no-{fault.typed[2:]}` to turn it off." if flag.action == "boolean" else ""
            return f"{typed} is a switch and accepts no value, so `={fault.text}` stops the launch.{off}"
        return f"{self.name} refuses to start with {typed}.{_instead(replacement(flag.name, self.catalog.release))}"

    def _unknown_flag(self, fault: Fault, suggestion: str | None) -> str:
        span = flag_span(fault.typed)
        if fault.config:
            key = fault.typed.removeprefix("--")
            way = f" Write `{suggestion.removeprefix('--')}`." if suggestion else ""
            was = f": {_when(span, self.catalog)}" if span is not None else ""
            return f"SGLang turns the key `{key}` into the flag `--{key}`, which {self.name} does not have{was}.{way}"
        if span is not None:
            instead = (
                replacement(fault.typed) if span.until is not None and span.until <= self.catalog.release else None
            )
            way = _instead(instead) or (
                f" Did you mean `{suggestion}`?" if suggestion and span.until is not None else ""
            )
            return f"{self.name} has no flag `{fault.typed}`: {_when(span, self.catalog)}.{way}"
        meant = f" Did you mean `{suggestion}`?" if suggestion else ""
        return f"{self.name} has no flag `{fault.typed}`.{meant}"

    def unknown_keyword(self, name: str, suggestion: str | None) -> str:
        """Of `Engine(…)` and `ServerArgs(…)`."""
        span = field_span(name)
        when = f" ({_when(span, self.catalog)})" if span is not None and self.catalog.release not in span else ""
        meant = f" Did you mean `{suggestion}`?" if suggestion else ""
        meant = f" Use `{suggestion}`." if suggestion and span is not None else meant
        return f"The engine of {self.name} accepts no argument `{name}`{when}, so Python stops with a TypeError.{meant}"

    def misspelt_keyword(self, name: str, text: str, near: str) -> str:
        """For a value that `Engine(…)` uses as it is."""
        return f"{self.name} has no `{text}` for `{name}`: the engine fails when it looks the name up. Did you mean `{near}`?"

    def _stray(self, fault: Fault, previous: str | None) -> str:
        texts = (w.text.replace("\n", "\\n") for w in fault.words if w.text is not None)
        words = " ".join(f"`{text}`" for text in texts) or "a word"
        verb = "belongs" if len(fault.words) == 1 else "belong"
        flag = self.catalog.flag(previous) if previous else None
        if flag is not None and flag.nargs == 0:
            return (
                f"`{previous}` is a switch and accepts no value, so {words} {verb} to no flag, and {self.name} stops."
            )
        if any(flag_and_value(w.text) for w in fault.words):
            return f"{words} {verb} to no flag, and {self.name} stops: flag and value are written as one word here, with a blank in it."
        return f"{words} {verb} to no flag, and {self.name} stops."

    def abbreviated(self, typed: str, matched: str) -> str:
        """For an abbreviated flag."""
        span = flag_span(typed)
        was = f" ({_when(span, self.catalog)})" if span is not None else ""
        return f"{self.name} has no flag `{typed}`{was}: it reads the word as an abbreviation of `{matched}`."

    def deprecated(self, flag: Flag, spelling: str) -> tuple[str, str | None]:
        """The message, and what to write instead."""
        found = replacement(spelling, self.catalog.release)
        if flag.action == "deprecated":
            return (
                f"`{spelling}` does nothing any more and will be removed.{_instead(found)}",
                found.instead if found else None,
            )
        return f"`{spelling}` is deprecated and will be removed.{_instead(found)}", found.instead if found else None

    # --- sglang serve and --config -------------------------------------------------------------------------------------

    def serve_without_model(self, positional: bool, word: str | None) -> str:
        if positional and word is not None:
            return (
                f"`sglang serve` of {self.name} does not accept the model as a bare word (that came with 0.5.16); "
                f"write `--model-path {word}`."
            )
        return (
            f"`sglang serve` of {self.name} looks for the model on the command line itself, not in a --config file, "
            "and finds none; add `--model-path`."
        )

    def config_not_yaml(self, name: str) -> str:
        return f"`{name}` does not end in .yaml or .yml; SGLang accepts no other file for --config."

    def config_missing(self, name: str) -> str:
        return f"There is no file `{name}`; SGLang reads its --config file first and stops."

    def config_unusable(self, name: str, problem: str | None) -> str:
        """`name` is empty for a file that is looked at by itself."""
        file = f"`{name}`" if name else "This file"
        if problem is None:
            return f"{file} must hold one mapping of flags to values; SGLang stops at anything else."
        return f"{file} cannot be read as YAML: {problem}. SGLang stops."

    def config_key(self, key: str, flag: Flag | None) -> str:
        if flag is None:
            return f"The key `{key}` is not a text, so {self.name} crashes."
        name = flag.name
        return f"{self.name} does not accept `{key}` in a --config file and stops. Give `{name}` on the command line."

    def config_ignored(self, typed: str) -> str:
        return f"SGLang ignores the file of `{typed}`: it looks for the exact word `--config` with the path as the next word."


def _one_of(names: Sequence[str]) -> str:
    shown = [f"`{n}`" for n in names[:MOST]]
    if len(names) > MOST:
        return f"{', '.join(shown)} or {len(names) - MOST} more"
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _when(span: Span, catalog: Catalog) -> str:
    if catalog.release < span.since:
        return f"it came with {span.since}"
    if span.until is not None and span.until <= catalog.release:
        return f"it was removed in {span.until}"
    return f"it came with {span.since}"


def _instead(found: Replacement | None) -> str:
    if found is None:
        return ""
    use = f" Use `{found.instead}`." if found.instead else ""
    return f"{use} {found.note}".rstrip() if found.note else use


def flag_and_value(text: str | None) -> tuple[str, str] | None:
    """The parts of one word that should be two: `--tp 8` as an item of a YAML list."""
    flag, blank, value = (text or "").partition(" ")
    return (
        (flag, value.strip())
        if blank and value.strip() and flag.startswith("--") and len(flag) > 3 and "=" not in flag
        else None
    )
