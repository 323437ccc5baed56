"""What a person names on the command line: releases and GPUs.

Names that mean nothing end the command with what is known.
"""

from __future__ import annotations

import os
from pathlib import Path

from spec_lsp.analysis.worlds import is_path
from spec_lsp.catalog.installed import no_sglang, sglang_in
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.cli.errors import UsageError, did_you_mean
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware, find
from spec_lsp.files import Area


def read_release(text: str) -> Release:
    """The release a person names. Raises UsageError for what is none."""
    release = Release.read(text)
    if release is None:
        known = releases()
        span = f", known are {known[0]} to {known[-1]} (`spec-lsp catalog list`)" if known else ""
        raise UsageError(f"`{text}` is not a release of SGLang; write it as 0.5.19{span}")
    return release


def sglang_named(text: str) -> str:
    """What a person names as the SGLang that will run: a release, or a path, which comes back in full. Raises UsageError."""
    if not is_path(text):
        read_release(text)
        return text
    path = os.path.abspath(os.path.expanduser(text))
    package = sglang_at(path, f"`{text}`")
    # an editable install of an environment lies elsewhere
    return path if str(package).startswith(path) else str(package)


def sglang_at(path: str, shown: str) -> Path:
    """The package of the SGLang that a person names by its path. Raises UsageError."""
    found = sglang_in(path, Area((path,)), Area((os.path.abspath(os.sep),)))
    if found is None:
        raise UsageError(f"{shown} {no_sglang(path)}")
    return found


def read_gpu(text: str) -> Hardware:
    """The GPU a person names. Raises UsageError for what is none."""
    hardware = find(text)
    if hardware is None:
        names = ", ".join(DEVICES)
        near = did_you_mean(text.lower(), [*DEVICES, *FAMILIES])
        raise UsageError(
            f"`{text}` is not a GPU that spec-lsp knows.{near} It knows {names}, and the families {', '.join(FAMILIES)}"
        )
    return hardware
