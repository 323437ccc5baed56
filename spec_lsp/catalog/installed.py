"""Finds an SGLang on the disk: the package `sglang` in a folder, or the one installed in an environment.

An editable install names a checkout elsewhere, and an environment of links leads to files elsewhere (uv's cache): these count if they may
be read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.files import MAX_SETTINGS, Area, UnreadableError

SERVER_ARGS = os.path.join("srt", "server_args.py")
_MAPPED = expression(r"""['"]sglang['"]\s*:\s*('[^'\n]*'|"[^"\n]*")""")
"""The folder of the package, as the finder of an editable install (setuptools) maps it."""
MAX_NAMING = 64
"""The most files of one site-packages that are searched for the name of a checkout."""


def sglang_in(folder: str, area: Area, beyond: Area | None = None) -> Path | None:
    """The package of a checkout, an unpacked wheel or an environment; `beyond` is where an environment's install may lie (`area`)."""
    return package_at(Path(folder), area) or package_in(folder, area, beyond)


def no_sglang(path: str) -> str:
    """The message for a path at which there is no SGLang."""
    if path.endswith(".whl") and os.path.isfile(path):
        return "is a packed wheel: unpack it (it is a zip file), and name the folder"
    return "holds no SGLang (no srt/server_args.py)"


def package_at(path: Path, area: Area) -> Path | None:
    """The package `sglang` in a folder: the folder itself, of an unpacked wheel or a checkout (`python/sglang`)."""
    folders = (path, path / "sglang", path / "python" / "sglang")
    return next(filter(None, (_package(folder, area) for folder in folders)), None)


def package_in(environment: str, area: Area, beyond: Area | None = None) -> Path | None:
    """The SGLang that is installed in an environment (`lib/python3.12/site-packages`, on Windows `Lib/site-packages`)."""
    if not os.path.lexists(environment):
        return None
    folder = Path(environment)
    versions = (n for n in names_in(str(folder / "lib"), area) if n.startswith("python3"))
    for site in (folder / "Lib" / "site-packages", *(folder / "lib" / n / "site-packages" for n in versions)):
        if os.path.lexists(site / "sglang" / SERVER_ARGS):
            return _package(site / "sglang", beyond or area)
        checkouts = (package_at(Path(path), beyond or area) for path in _checkouts(site, area))
        if (found := next(filter(None, checkouts), None)) is not None:
            return found
    return None


def _checkouts(site: Path, area: Area) -> Iterator[str]:
    """The folders that an editable install in a site-packages may name, in the formats of pip, uv and build backends."""
    from spec_lsp.catalog.evaluate import FAILS

    names = names_in(str(site), area)
    naming = [n for n in names if n.startswith("sglang") and n.endswith((".dist-info", ".egg-link"))]
    naming += [n for n in names if n.endswith(".pth") or ("sglang" in n and n.endswith("_finder.py"))]
    for name in naming[:MAX_NAMING]:
        path = site / name / "direct_url.json" if name.endswith(".dist-info") else site / name
        try:
            text = area.read(path, MAX_SETTINGS).decode()
            named = _from_url(text) if name.endswith(".dist-info") else _from_lines(text, mapped=name.endswith(".py"))
        except (UnreadableError, *FAILS):
            continue
        yield from (os.path.join(site, folder) for folder in named)


def _from_url(text: str) -> list[str]:
    """The folder in a direct_url.json of an editable install. Raises various errors for any other text."""
    from urllib.parse import urlsplit  # few environments have such an install, and these take a while to import
    from urllib.request import url2pathname

    told: Any = json.loads(text)
    url = urlsplit(told["url"])
    if url.scheme != "file" or not told.get("dir_info", {}).get("editable"):
        return []
    folder = url2pathname(url.path)
    return [os.path.join(folder, told["subdirectory"]), folder] if told.get("subdirectory") else [folder]


def _from_lines(text: str, *, mapped: bool) -> list[str]:
    """The folders in a file of paths, or in the module of a finder."""
    if mapped:
        import ast

        return [ast.literal_eval(m[1]) for m in _MAPPED.finditer(text)]
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]


def _package(folder: Path, area: Area) -> Path | None:
    """The folder itself if it is the package; if its files are links (uv's symlink mode), the folder that they lead to."""
    if not os.path.lexists(folder / SERVER_ARGS):  # most folders have none: following links costs ten times as much
        return None
    try:
        real = area.real_path(folder / SERVER_ARGS)
    except UnreadableError:
        return None
    if not os.path.isfile(real):
        return None
    return Path(real).parents[1] if os.path.islink(folder / SERVER_ARGS) else folder


def names_in(folder: str, area: Area) -> list[str]:
    """The sorted names in a folder; empty if it may not be read or does not exist."""
    try:
        return sorted(os.listdir(area.real_path(folder)))
    except (OSError, UnreadableError):
        return []


def uv_cache() -> str:
    """uv's package cache, to which environments of links lead; if there is none, a path that cannot exist."""
    own = os.environ.get("UV_CACHE_DIR", "")
    if sys.platform == "win32":
        user = os.path.join(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local"), "uv", "cache")
    else:
        user = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uv")
    found = own or user
    return found if os.path.isabs(found) else os.devnull
