"""Converts between the client's URIs and document names: absolute paths for files, the URI itself for everything else.

Clients write one file's URI in many ways (`c%3A`, `C:`, `%20`, `file://localhost/`), so only names are ever compared, not URIs.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from urllib.parse import quote, unquote

from spec_lsp.expressions import expression

_DRIVE = expression(r"^/([A-Za-z]):(?=/|$)")


@lru_cache(maxsize=4096)
def name_of(uri: str) -> str:
    """The name of the document a URI stands for."""
    scheme, separator, rest = uri.partition(":")
    if not separator or scheme.lower() != "file":
        return uri
    rest = rest.partition("#")[0].partition("?")[0]
    host = ""
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        rest = "/" + rest
    path = unquote(rest, errors="surrogateescape")
    if host and host.lower() != "localhost":
        return f"//{unquote(host)}{path}"
    drive = _DRIVE.match(path)
    if drive:
        return f"{drive[1].upper()}:{path[3:] or '/'}".replace("/", os.sep)
    return os.path.normpath(path).replace("//", "/") if path else path


@lru_cache(maxsize=4096)
def uri_of(name: str) -> str:
    """A URI for a document name. For open documents use the client's own."""
    if name.startswith("//"):
        return "file:" + _quoted(name)
    if name.startswith("/"):
        return "file://" + _quoted(name)
    if re.match(r"^[A-Za-z]:[\\/]", name):
        return "file:///" + _quoted(name.replace("\\", "/"))
    return name


def is_file(name: str) -> bool:
    """Whether a document name is a path on this machine's disk."""
    return os.path.isabs(name)


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/:!$&'()*+,;=@~-._")
