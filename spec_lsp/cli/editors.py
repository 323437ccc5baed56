"""The lists of file kinds in the configurations of editors, generated from the registry of carriers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping

from spec_lsp.cli.manifest import updated
from spec_lsp.expressions import expression
from spec_lsp.syntax.carriers import CARRIERS, SETTINGS_LANGUAGE

_LUA = expression(r"(?<=filetypes = \{\n).*?(?=^  \},$)", re.M | re.S)
_VIM = expression(r"(?<=\[)'sh',[^\]]*(?=\])")


def filetypes() -> tuple[str, ...]:
    """Those of Vim and Neovim that the server reads."""
    return (*(name for carrier in CARRIERS for name in carrier.vim), SETTINGS_LANGUAGE)


def in_lua(text: str) -> str:
    """A configuration of Neovim with these filetypes."""
    return _LUA.sub("".join(f'    "{name}",\n' for name in filetypes()), text)


def in_vim(text: str) -> str:
    """A page for Vim with these filetypes in every list."""
    listed = textwrap.wrap(", ".join(f"'{name}'" for name in filetypes()), 100)
    return _VIM.sub("\n  \\\\ ".join(listed), text)


WRITERS: Mapping[str, Callable[[str], str]] = {
    "vscode/package.json": updated,
    "neovim/lsp/spec_lsp.lua": in_lua,
    "vim.md": in_vim,
}
"""What renews each file of editors/."""
