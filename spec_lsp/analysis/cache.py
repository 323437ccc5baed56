"""What is kept between analyses: verdicts, by what their launch reads, and the last analysis of each document."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache as once
from typing import TypeVar, cast

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.left_out import Named
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.report import Diagnostic
from spec_lsp.analysis.run import Condoned, ConfigSource
from spec_lsp.analysis.worlds import Assumed
from spec_lsp.catalog.release import Release
from spec_lsp.facts.model import ModelFacts
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Directive, Launch, Variant
from spec_lsp.syntax.word import Word

T = TypeVar("T")


@dataclass(slots=True)
class Entry:
    """A verdict, and the facts of the models that it was reached with."""

    verdict: Verdict
    models: Mapping[str, ModelFacts | None]


@dataclass(slots=True)
class Judged:
    """The last analysis of one launch. Its places, and those of its diagnostics, are anchored."""

    launch: Launch
    index: int
    read: Mapping[str, tuple[str, str] | None]
    """The `--config` files that it names."""
    names: frozenset[Named]
    assumed: Assumed
    verdict: Verdict
    diagnostics: list[Diagnostic]
    sets_variables: bool
    tells_role: bool
    unknown: Sequence[tuple[Release, Diagnostic]]
    """The diagnostics about releases it may run that are not shipped."""
    settled: bool
    """Whether nothing around the launch but directives can change its diagnostics."""
    given: tuple[str, ...] | None = None
    """The text in front of each clue that counts GPUs; None before it was looked at."""
    condoned: tuple[Condoned, list[Diagnostic]] | None = None
    """What its writer answers for, and the diagnostics with that refusing nothing."""
    gpus: list[Diagnostic] = field(default_factory=list)
    """The diagnostics about the number of GPUs."""


@dataclass(slots=True)
class PreviousAnalysis:
    """The last analysis of a document: its launches with their results, and everything else that decided these."""

    decided_by: tuple[object, ...]
    directives: Sequence[Directive]
    launches: Sequence[Launch]
    judged: Sequence[Judged | None]
    """None for a launch that could not be judged."""
    said: Sequence[list[Diagnostic]]
    """All that is said of each."""


MAX_DOCUMENTS = 64
"""Documents whose last analysis is kept."""


class Cache:
    """Verdicts by what a launch reads, so that only the launch being typed in is judged again. Clear it when models change."""

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._found: OrderedDict[tuple[int, Hashable], tuple[object, object]] = OrderedDict()
        self.kept: dict[str, PreviousAnalysis] = {}
        """By document. A launch that the reader returns as the very same object is not looked up by what it reads."""

    def get(self, key: Hashable) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: Hashable, entry: Entry) -> None:
        self._entries[key] = entry
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()
        self._found.clear()
        self.kept.clear()

    def found(self, about: object, part: Hashable, find: Callable[[], T]) -> T:
        """The result of `find` for a part of this very object, computed once while it is remembered."""
        key = id(about), part
        known = self._found.get(key)
        if known is None or known[0] is not about:
            known = self._found[key] = about, find()
            if len(self._found) > self._size:
                self._found.popitem(last=False)
        return cast(T, known[1])

    def keep(self, document: str, analysis: PreviousAnalysis) -> None:
        self.kept.pop(document, None)
        self.kept[document] = analysis
        if len(self.kept) > MAX_DOCUMENTS:
            del self.kept[next(iter(self.kept))]


class MemoizedWorkspace:
    """A workspace that answers each question once: the launches of a document ask the same questions."""

    def __init__(self, workspace: Workspace) -> None:
        self.read = once(workspace.read)
        self.left_out = once(workspace.left_out)
        self.unreadable_model = once(workspace.unreadable_model)
        self.model = once(workspace.model)
        self.release = once(workspace.release)
        self.sglang_at = once(workspace.sglang_at)
        self.unread_sglang = once(workspace.unread_sglang)


def launch_key(launch: Launch, assumed: Assumed, configs: ConfigSource) -> Hashable:
    """Everything a verdict depends on, without places."""
    return (
        launch.program,
        assumed.worlds,
        assumed.release_named,
        assumed.build,
        tuple(_variant_key(v, configs) for v in launch.variants),
    )


def _variant_key(variant: Variant, configs: ConfigSource) -> Hashable:
    texts = tuple(_word_key(w) for w in variant.words)
    env = tuple((name, _word_key(word)) for name, word in variant.env.items()) if variant.env else ()
    files = tuple((f.name, f.content.text) for f in variant.files)
    named: list[str | None] = []
    if "--config" in texts:
        named = [variant.words[i + 1].text for i, text in enumerate(texts[:-1]) if text == "--config"]
    return texts, env, files, tuple(configs(path) for path in named if path is not None)


def _word_key(word: Word) -> Hashable:
    """What identifies a word: its text and whether it is written as a key, or its known parts, what is unknown in it, and how many words it
    may become."""
    text = word.text
    if text is None:
        return word.splat, word.scalar, tuple((f.text, f.reason) for f in word.fragments)
    return (text, "key") if len(word.fragments) > 1 and word.fragments[0].fixed else text
