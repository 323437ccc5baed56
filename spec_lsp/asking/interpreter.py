"""The Python interpreter whose SGLang is asked: named by the person, or from their environment. A repository never chooses it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from spec_lsp.asking.process import CannotAskError

HOW = "Name the Python interpreter that has SGLang (`--python`, or the setting `python` of your editor)."


def interpreter(named: str = "", environ: Mapping[str, str] = os.environ, *, anywhere: bool = False) -> str:
    """The full path of the interpreter: `named`, else that of the active virtual or conda environment, else python3 of the PATH.

    `anywhere`: it is named once for all folders, so a relative path would mean something else in each of them, and is refused. Raises
    CannotAskError if there is none.
    """
    if not hasattr(os, "fork"):  # reported before anything is started
        raise CannotAskError("SGLang can only be asked on a system where processes can be forked, such as Linux.")
    if named:
        path = os.path.expanduser(named)
        if anywhere and os.path.dirname(path) and not os.path.isabs(path):
            raise CannotAskError(f"The interpreter `{named}` is another one in each folder. Name it by its full path.")
        found = os.path.abspath(path) if os.path.dirname(path) else shutil.which(path, path=_absolute(environ))
        if found is None or not os.path.isfile(found):
            raise CannotAskError(f"There is no Python interpreter `{named}`. {HOW}")
        return found
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environ.get(variable, "")
        path = os.path.join(folder, "bin", "python")
        if os.path.isabs(folder) and os.path.isfile(path):
            return path
    found = shutil.which("python3", path=_absolute(environ))
    if found is None:
        raise CannotAskError(f"No Python interpreter is active. {HOW}")
    return found


def _absolute(environ: Mapping[str, str]) -> str:
    """The PATH without entries that depend on the current folder."""
    return os.pathsep.join(p for p in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(p))
