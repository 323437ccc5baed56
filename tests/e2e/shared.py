"""What the end-to-end tests share: the server's command line, a script with a flaw, and waiting for conditions."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")

SERVER = [sys.executable, "-m", "spec_lsp.cli", "server"]
PATIENCE = 90.0
"""Seconds after which a condition is given up: generous, because the machine may be slow and busy."""

MODELS = Path(__file__).resolve().parent.parent / "models"
RULE = "tree-drafting-on-trtllm-mha"
SCRIPT = f"""\
#!/bin/bash
# spec-lsp: sglang=0.5.23 gpu=b200
TOPK=8  # 𝄞 and 😀 lie outside the BMP
python -m sglang.launch_server --model-path '{MODELS}/llama-3.1-8b' \\
  --speculative-algorithm EAGLE3 --speculative-draft-model-path '{MODELS}/eagle3-draft' \\
  --served-model-name "😀 é" --attention-backend trtllm_mha --speculative-num-steps 5 \\
  --speculative-eagle-topk $TOPK --speculative-num-draft-tokens 32
"""
"""SGLang refuses it: trtllm_mha cannot verify a tree of drafts. The fix is `TOPK=1`: see `repaired`."""

CONFIG = f"""\
# spec-lsp: sglang=0.5.23 gpu=b200
model-path: '{MODELS}/llama-3.1-8b'
served-model-name: "😀 é"  # 𝄞
speculative-algorithm: EAGLE3
speculative-draft-model-path: '{MODELS}/eagle3-draft'
attention-backend: trtllm_mha
speculative-num-steps: 5
speculative-eagle-topk: 8
speculative-num-draft-tokens: 32
"""
"""The same as a `--config` file."""


def repaired(text: str) -> str:
    """The script after its preferred fix."""
    return text.replace("TOPK=8", "TOPK=1")


Encoding = Literal["utf-8", "utf-16", "utf-32"]
_CODEC = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def lines_of(text: str) -> list[str]:
    """Lines with their ends, split as the protocol says."""
    lines, start = [], 0
    for at, char in enumerate(text):
        if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
            lines.append(text[start : at + 1])
            start = at + 1
    return [*lines, text[start:]]


def offset(text: str, line: int, character: int, encoding: Encoding) -> int:
    """The character at a position, worked out on encoded bytes: independent of the server's own conversion."""
    codec, width = _CODEC[encoding]
    lines = lines_of(text)
    head = lines[line].encode(codec)[: character * width].decode(codec)
    return sum(map(len, lines[:line])) + len(head)


def position(text: str, at: int, encoding: Encoding) -> tuple[int, int]:
    """The position of a character."""
    codec, width = _CODEC[encoding]
    before = lines_of(text[:at])
    return len(before) - 1, len(before[-1].encode(codec)) // width


def under(text: str, range_: Any, encoding: Encoding) -> str:
    """The characters of a range (an object of lsprotocol)."""
    start = offset(text, range_.start.line, range_.start.character, encoding)
    return text[start : offset(text, range_.end.line, range_.end.character, encoding)]


def applied(text: str, edits: Sequence[Any], encoding: Encoding) -> str:
    """The text after TextEdits."""
    spans = [(offset(text, e.range.start.line, e.range.start.character, encoding), e) for e in edits]
    for start, edit in sorted(spans, key=lambda s: s[0], reverse=True):
        end = offset(text, edit.range.end.line, edit.range.end.character, encoding)
        text = text[:start] + edit.new_text + text[end:]
    return text


async def until(condition: Callable[[], T | Awaitable[T]], what: str) -> T:
    """Wait for a condition to give something true, and give that back."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found: Any = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found  # type: ignore[no-any-return]
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE:.0f} s for {what}")
        await asyncio.sleep(0.02)
