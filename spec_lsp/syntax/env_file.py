"""Files of `NAME=value` lines, whose variables Compose, systemd, editors and process managers give to a command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spec_lsp.expressions import expression
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

LINE = expression(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=([^\r\n]*)", re.M)


def file_variables(path: str, text: str, comments: bool = True, escaped: str = "") -> Iterator[tuple[str, Word]]:
    """The variables that the file at `path` sets, without the quotes around their values.

    `comments`: whether ` #` ends a value. `escaped` is the reason why a value with a backslash is unknown, for formats in which it is an
    escape.
    """
    for m in LINE.finditer(text):
        start = m.start(2)
        value = (m[2].split(" #")[0] if comments else m[2]).rstrip(" \t")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            start, value = start + 1, value[1:-1]
        place = Place(path, start, start + len(value))
        yield m[1], unknown(place, escaped) if escaped and "\\" in value else Word((Fragment(value, place),), place)
