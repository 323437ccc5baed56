"""Commands that end sooner than they look: a comment, a blank or an empty line behind a backslash."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spec_lsp.syntax.launch import Edit, Problem
from spec_lsp.syntax.shell.ast import Simple
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Place


def broken_continuations(
    commands: Mapping[tuple[Place, Place], tuple[Simple, Source]], texts: Mapping[str, str]
) -> tuple[Problem, ...]:
    return ()
