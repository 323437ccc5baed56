"""Whether a launch runs SGLang as released, or somebody's own build, which may take flags and read variables that no release has."""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.syntax.launch import Document, Launch

_SOURCES = expression(r"sgl|(?:^|/)python/?(?:$|:)", re.IGNORECASE)
"""An entry of PYTHONPATH that holds SGLang: a folder named like it, or `python`, where SGLang's repository keeps its package."""

_SCRIPT = expression(r"/[\w-]+\.py\b")
"""SGLang's script, started by its path: `python3 fork/sglang/launch_server.py`."""

_LAUNCHER = expression(
    r"(?:^|[\s\"'\[=])(?P<path>(?:\.{0,2}/)?(?:[\w.-]+/)*[\w.-]+\.(?:sh|bash)|(?:\.{1,2})?/[\w./-]+)(?=[\s\"',\]]|$)"
)
_PROGRAMS = expression(r"/s?bin/|/(?:env|tini|dumb-init|python[\d.]*)$")
"""Paths of programs that only pass their arguments on and read none of SGLang's variables."""


def own_build(launch: Launch, written: str) -> str:
    """What shows that the launch, whose entry point is written like this, runs somebody's own build, apart from its clues: "the SGLang on
    PYTHONPATH"; empty where nothing does."""
    if _SCRIPT.search(written):
        return "the SGLang whose script is started"
    if any(_names_sources(v.env["PYTHONPATH"].fragments) for v in launch.variants if "PYTHONPATH" in v.env):
        return "the SGLang on PYTHONPATH"
    return ""


def own_launcher(document: Document, launch: Launch) -> bool:
    """Whether a script of somebody's own starts the launch: it may read any variable (an image's ENTRYPOINT, `./run.sh python3 -m …`)."""
    place, extent = launch.place, launch.extent
    if place.document != document.name or extent.document != document.name:
        return False
    before = document.text[extent.start : place.start]
    first = re.match(r"[\"'\[]*(/[\w./-]+)", before)
    scripts = [m["path"] for m in _LAUNCHER.finditer(before) if m["path"].endswith((".sh", ".bash"))]
    return bool(scripts) or (first is not None and not _PROGRAMS.search(first[1]))


def _names_sources(fragments: object) -> bool:
    assert isinstance(fragments, tuple)
    return any(f.text is not None and _SOURCES.search(f.text) for f in fragments)
