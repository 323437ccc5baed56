"""`spec-lsp explain --log`: from what a server printed when it died to the rule, the launch and the fix."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from spec_lsp.analysis.crash import Log, read_log
from spec_lsp.analysis.crash_explained import Explained, explain
from spec_lsp.cli.errors import CLEAN, FINDINGS, UsageError
from spec_lsp.cli.formats.text import offer
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.table import fold, paragraphs, width
from spec_lsp.cli.worlds import read_gpu, read_release
from spec_lsp.files import MAX_DOCUMENT, UnreadableError, read_ends
from spec_lsp.workspace import decode

STDIN = "-"
HALF = MAX_DOCUMENT // 2
"""How many bytes are read of the beginning, and of the end, of a long log."""


def run(arguments: argparse.Namespace) -> int:
    """Explain the refusals in the log; exit code 1 when none is known."""
    release = read_release(arguments.sglang) if arguments.sglang else None
    gpu = read_gpu(arguments.gpu) if arguments.gpu else None
    log = read_log(_text(arguments.log))
    explained = list(explain(log, release, gpu))
    print("\n".join(_lines(log, explained, style_for(sys.stdout, arguments.color))))
    return CLEAN if any(one.rules for one in explained) else FINDINGS


def _text(path: str) -> str:
    if path == STDIN:
        return decode(_ends(sys.stdin.buffer))
    try:
        return decode(read_ends(path))
    except UnreadableError as error:
        raise UsageError(f"`{path}` {error}") from error


def _ends(stream: BinaryIO) -> bytes:
    """A whole stream; of a long one its beginning, where the launch is, and its end."""
    beginning, end = stream.read(HALF), b""
    is_whole = True
    while part := stream.read(HALF):
        is_whole = is_whole and not end
        end = (end + part)[-HALF:]
    return beginning + end if is_whole else beginning + b"\n" + end


# --- what is printed ---------------------------------------------------------------------------------------------------


def _lines(log: Log, explained: Sequence[Explained], style: Style) -> Iterator[str]:
    if not explained:
        yield "There is no refusal of SGLang in this log: no traceback with its functions, and no error of its command line."
    for number, one in enumerate(explained):
        if number:
            yield ""
        yield from _crash(one, style)
    if log.out_of_memory and not any(one.rules for one in explained):
        yield ""
        yield from fold(
            "The GPU ran out of memory. No flag is wrong in itself: lower --mem-fraction-static, --chunked-prefill-size or "
            "--cuda-graph-max-bs, quantize, or use more GPUs (--tp-size).",
            width(),
        )


def _crash(one: Explained, style: Style) -> Iterator[str]:
    crash = one.crash
    yield f"{style.paint('SGLang stopped', 'error')} in {harmless(crash.where)} with {harmless(crash.exception)}"
    if crash.message:
        yield from (f"  | {line}" for line in fold(harmless(crash.message), width() - 4)[:6])
    yield ""
    if not one.rules:
        yield "spec-lsp has no rule for this place: it is new, or it does not depend on flags."
        return
    if not one.sure:
        yield f"One of {len(one.rules)} rules that this place may speak of; the likeliest comes first:"
    for rule in one.rules:
        yield f"{style.paint(f'{rule.name}[{rule.code}]', 'bold')}  {rule.summary}"
    if one.sure and one.rules[0].explanation:
        yield ""
        yield from paragraphs(one.rules[0].explanation, style)
    yield from _way_out(one, style)
    yield ""
    yield style.prose(f"`spec-lsp explain {one.rules[0].code}` tells more.")


def _way_out(one: Explained, style: Style) -> Iterator[str]:
    for diagnostic, fixes in one.findings:
        yield ""
        yield style.prose(harmless(diagnostic.message))
        for number, fix in enumerate(fixes):
            label, title = offer(number, fix)
            yield f"  {style.paint('=', 'frame')} {style.paint(label, 'bold')}: {style.prose(harmless(title))}"
    if one.repaired:
        yield ""
        yield "The launch with the first of them:"
        yield from (f"  {line}" for line in fold(harmless(one.repaired), width() - 2))
