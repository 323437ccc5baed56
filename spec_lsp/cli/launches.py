"""`spec-lsp launches`: lists the launches in files, with their flags as spec-lsp reads them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Analysis, LaunchReport
from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.binding import Unknown
from spec_lsp.cli.check import files_to_read, named_paths
from spec_lsp.cli.checker import Checker, Recording, Task
from spec_lsp.cli.errors import CLEAN, FAILED
from spec_lsp.cli.printed import harmless, in_utf_8, json_text
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import Location
from spec_lsp.cli.sources import Sources, shown_name
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.worlds import read_gpu, sglang_named
from spec_lsp.files import UnreadableError
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Variant
from spec_lsp.syntax.word import Place, Word
from spec_lsp.workspace import decode

MAX_VALUE = 100
"""The longest value, in characters, in the text form; `--json` shows all of it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The launches of one file."""

    analysis: Analysis
    sources: Sources


def run(arguments: argparse.Namespace) -> int:
    """List the launches. Exit code 2 when a file could not be read."""
    all_rules()
    for gpu in arguments.gpu:
        read_gpu(gpu)
    task = Task(
        str(Path.cwd()),
        named_paths(arguments),
        tuple(arguments.models),
        tuple(map(sglang_named, arguments.sglang)),
        tuple(arguments.gpu),
    )
    checker = Checker(task)
    progress = Progress()
    style = style_for(sys.stdout, arguments.color)
    failed = False
    found = 0
    for path in files_to_read(arguments, task, checker.folders, progress):
        try:
            listed = _read(path, checker)
        except UnreadableError as error:
            progress.clear()
            print(f"spec-lsp: {harmless(shown_name(path, task.here))}: {error}", file=sys.stderr)
            failed = True
            continue
        progress.clear()
        for report in listed.analysis.launches:
            if arguments.json:
                print(json_text(as_json(report, listed.sources)), file=in_utf_8(sys.stdout))
            else:
                print(("\n" if found else "") + "\n".join(_lines(report, listed.sources, style)))
            found += 1
    progress.clear()
    if not found and not arguments.json:
        print("No launch of SGLang was found.")
    return FAILED if failed else CLEAN


def _read(path: str, checker: Checker) -> Listed:
    text = decode(checker.bytes(path))
    around = checker.folders.of(path)
    workspace = Recording(around, path, text)
    analysis = analyse(read_document(path, text, workspace), around.options, workspace)
    return Listed(analysis, Sources(workspace.texts, checker.task.here))


LOOKED_AT = {
    "pairs": "too many ways to list them all: any two ways of two switches come together in one of these",
    "some": "too many ways to list them all: each way of each switch is in one of these, as far as there is room",
}
"""The note on a launch of which not every way is looked at."""

# --- as text -----------------------------------------------------------------------------------------------------------


def _lines(report: LaunchReport, sources: Sources, style: Style) -> Iterator[str]:
    launch = report.launch
    at = sources.bare(launch.place)
    role = f" ({launch.role})" if launch.role else ""
    yield f"{style.paint(_at(at), 'bold')}  {launch.program}{role}"
    yield f"  {harmless(_world(report.worlds))}"
    if launch.ways != "all":
        yield f"  {LOOKED_AT[launch.ways]}"
    for number, variant in enumerate(launch.variants, 1):
        if len(launch.variants) > 1:
            when = " and ".join(choice.taken for choice in variant.choices) or "otherwise"
            yield f"  way {number} of {len(launch.variants)}: when {harmless(when)}"
        for name, word in variant.env.items():
            if name.startswith(("SGL", "CUDA_VISIBLE", "HIP_VISIBLE", "ROCR_VISIBLE", "ASCEND_")):
                yield f"  {harmless(name)}={_shown(word)}"
        yield from (f"  {line}" for line in _flags(variant))
    read = [s for s in report.main().binding.settings.values() if s.from_config]
    if read:
        yield "  from the `--config` file:"
        yield from (f"    {harmless(s.spelled)}" for s in read)


def _flags(variant: Variant) -> Iterator[str]:
    """The words, a flag with its values on each line."""
    line: list[str] = []
    for word in variant.words:
        if line and word.known_start.startswith("--"):
            yield " ".join(line)
            line = []
        line.append(_shown(word))
    if line:
        yield " ".join(line)


def _shown(word: Word) -> str:
    if word.splat:
        return harmless(f"<any words: {word.reason}>")
    text = "".join(f.text if f.text is not None else f"<{f.reason}>" for f in word.fragments)
    text = harmless(text.replace("\n", " "))
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _world(worlds: tuple[World, ...]) -> str:
    releases = dict.fromkeys(f"SGLang {w.release} ({w.release_from})" for w in worlds)
    named = dict.fromkeys(
        f"{w.hardware.title} ({w.hardware_from})" for w in worlds if w.hardware and w.hardware_from != "not named"
    )
    return ", ".join([*releases, *named]) + ("" if named else ", hardware not named")


def _at(location: Location) -> str:
    return f"{harmless(location.file)}:{location.start.line + 1}:{location.start.character + 1}"


# --- as JSON -----------------------------------------------------------------------------------------------------------


def as_json(report: LaunchReport, sources: Sources) -> dict[str, Any]:
    """One launch: where it is, how it is started, and each way it can be run with its words and what they set.

    Positions count from 0; `text` is null if the file does not determine it, and `unknown` then says why. `ways` says whether the variants
    are `all` ways to run it, or a selection: `pairs` contain any two ways of two switches together.
    """
    launch = report.launch
    main = report.main()
    return {
        "file": sources.bare(launch.place).file,
        "range": _range(launch.place, sources),
        "program": launch.program,
        "role": launch.role or None,
        "worlds": [
            {
                "sglang": str(w.release),
                "sglang_from": w.release_from,
                "hardware": w.hardware.name if w.hardware else None,
                "hardware_from": w.hardware_from,
            }
            for w in report.worlds
        ],
        "settings": {
            field: {
                "flag": setting.spelling,
                "value": None if isinstance(setting.value, Unknown) else setting.value,
                "known": setting.known,
            }
            for field, setting in main.binding.settings.items()
        },
        "ways": launch.ways,
        "variants": [_variant(variant, sources) for variant in launch.variants],
    }


def _variant(variant: Variant, sources: Sources) -> dict[str, Any]:
    return {
        "when": [choice.taken for choice in variant.choices],
        "words": [_word(word, sources) for word in variant.words],
        "env": {name: {"text": word.text, "unknown": word.reason or None} for name, word in variant.env.items()},
        "files": [file.name for file in variant.files],
    }


def _word(word: Word, sources: Sources) -> dict[str, Any]:
    found: dict[str, Any] = {"text": word.text, **_range(word.place, sources)}
    if word.text is None:
        found |= {"known_start": word.known_start, "unknown": word.reason, "any_number": word.splat}
    return found


def _range(place: Place, sources: Sources) -> dict[str, Any]:
    at = sources.bare(place)
    return {
        "file": at.file,
        "start": {"line": at.start.line, "character": at.start.character},
        "end": {"line": at.end.line, "character": at.end.character},
    }
