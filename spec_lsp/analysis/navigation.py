"""Where parts of a launch come from and what they lead to: assignments, `--config` files and their keys, pages of models.

Plain data in character offsets; the server converts it to protocol types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from spec_lsp.analysis.check import document_names
from spec_lsp.analysis.diagnostics import named
from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.report import Analysis, LaunchReport
from spec_lsp.catalog.binding import Setting
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.word import Place, Word

HUB = "https://huggingface.co/"
MODEL_ID = expression(r"(?![.-])[A-Za-z0-9._-]{1,96}/(?![.-])[A-Za-z0-9._-]{1,96}(?<![.-])")
"""The form of a model id on the Hugging Face Hub: ORG/NAME."""

MODEL_FIELDS = ("model_path", "speculative_draft_model_path", "tokenizer_path")
"""Fields that take a model id or a folder."""

LOCAL_FOLDERS = frozenset(
    ("data", "home", "local", "mnt", "model", "models", "opt", "root", "tmp", "weights", "workspace")
)
"""First parts of relative paths in which people keep models; none is the name of a publisher."""


@dataclass(frozen=True, slots=True)
class Origin:
    """`target` is what the words at `place` come from or lead to."""

    place: Place
    target: Place


@dataclass(frozen=True, slots=True)
class Link:
    """The words at `place` name a document (by its name) or a page (by its address); one of the two is set."""

    place: Place
    document: str = ""
    address: str = ""
    tooltip: str = ""


# --- definition --------------------------------------------------------------------------------------------------------


def definitions(analysis: Analysis, offset: int, name: str, workspace: Workspace) -> list[Origin]:
    """Where the text at `offset` of document `name` comes from, each target once: assignments of an expanded variable, the file of
    `--config`, the key of that file that sets the same field as a flag."""
    naming = document_names(analysis.document, workspace)
    found: dict[Place, Origin] = {}
    for report in analysis.launches:
        for origin in (
            *_assignments(report, offset, name),
            *_files(report, offset, name),
            *_keys(report, offset, name),
        ):
            target = named(origin.target, naming)
            found.setdefault(target, Origin(origin.place, target))
    return list(found.values())


def _holds(place: Place, offset: int, name: str) -> bool:
    """Whether a cursor at `offset` is on the place; directly after its last character counts."""
    return place.document == name and place.start <= offset <= place.end and place.end > place.start


def _assignments(report: LaunchReport, offset: int, name: str) -> Iterator[Origin]:
    """From an expansion to what was assigned, one step at a time; of an array, to its first element. One for each variant."""
    for variant in report.launch.variants:
        seen: set[Place] = set()
        for word in (*variant.words, *variant.env.values()):
            for origin in _steps(word):
                if origin.place not in seen and _holds(origin.place, offset, name):
                    seen.add(origin.place)
                    yield origin


def _steps(word: Word) -> Iterator[Origin]:
    """From each expansion in a word's text to the next one, or to the text itself."""
    for fragment in word.fragments:
        chain = (*fragment.via, fragment.place)
        for seen, target in pairwise(chain):
            if not seen.contains(target):
                yield Origin(seen, target)


def _files(report: LaunchReport, offset: int, name: str) -> Iterator[Origin]:
    for flag, path in _config_words(report):
        if _holds(flag.place, offset, name) or _holds(path.place, offset, name):
            written = _written(report, path.text or "")
            yield Origin(path.place, written or Place(path.text or "", 0, 0))


def _config_words(report: LaunchReport) -> Iterator[tuple[Word, Word]]:
    """`--config` and its path, if both are written in the document."""
    if report.launch.program == "config":
        return
    for variant in report.launch.variants:
        for flag, path in pairwise(variant.words):
            if flag.text == "--config" and path.text:
                yield flag, path


def _written(report: LaunchReport, path: str) -> Place | None:
    """The start of a file's text that the document itself writes."""
    for variant in report.launch.variants:
        for file in variant.files:
            if file.name == path:
                return Place(file.content.place.document, file.content.place.start, file.content.place.start)
    return None


def _keys(report: LaunchReport, offset: int, name: str) -> Iterator[Origin]:
    """From a flag to the keys of the `--config` file that set the same field."""
    if report.launch.program == "config" or not any(_config_words(report)):
        return
    for setting in report.main().binding.settings.values():
        given = (setting, *setting.losers)
        here = [s for s in given if not s.from_config and _on(s, offset, name)]
        if here:
            yield from (Origin(here[0].flag.place, s.flag.place) for s in given if s.from_config)


def _on(setting: Setting, offset: int, name: str) -> bool:
    return _holds(setting.flag.place, offset, name)


# --- links -------------------------------------------------------------------------------------------------------------


def links(analysis: Analysis, workspace: Workspace) -> list[Link]:
    """The `--config` files and model ids in a document, in document order."""
    name = analysis.document.name
    found: dict[Place, Link] = {}
    for report in analysis.launches:
        for link in (*_file_links(report, name, workspace), *_model_links(report, name, workspace)):
            if link.place.document == name and link.place.end > link.place.start:
                found.setdefault(link.place, link)
    return [found[place] for place in sorted(found)]


def _file_links(report: LaunchReport, name: str, workspace: Workspace) -> Iterator[Link]:
    for _, path in _config_words(report):
        read = workspace.read(name, path.text or "") if _written(report, path.text or "") is None else None
        place = text_place(path)
        if read is not None and place is not None:
            yield Link(place, document=read[0], tooltip="Open the configuration file")


def _model_links(report: LaunchReport, name: str, workspace: Workspace) -> Iterator[Link]:
    for word in _model_words(report):
        text, place = word.text or "", text_place(word)
        if place is not None and is_model_id(text) and workspace.read(name, f"{text}/config.json") is None:
            yield Link(place, address=HUB + text, tooltip=f"{text} on Hugging Face")


def _model_words(report: LaunchReport) -> Iterable[Word]:
    """The words of model fields: those of the likeliest run, and in other variants those after the same flags."""
    binding = report.main().binding
    words = [s.values[-1] for f in MODEL_FIELDS if (s := binding.settings.get(f)) and s.values]
    spellings = {s for f in MODEL_FIELDS if (d := binding.catalog.by_field.get(f)) for s in d.spellings}
    for variant in report.launch.variants[1:]:
        words += [b for a, b in pairwise(variant.words) if a.text in spellings]
    return words


def is_model_id(text: str) -> bool:
    """Whether a text looks like a model id on the Hugging Face Hub rather than a path."""
    return MODEL_ID.fullmatch(text) is not None and text.partition("/")[0].lower() not in LOCAL_FOLDERS


def text_place(word: Word) -> Place | None:
    """Where the text of a word is written, without its quotes; None if not in one place."""
    text = word.text
    return word.place_of(0, len(text)) if text else None
