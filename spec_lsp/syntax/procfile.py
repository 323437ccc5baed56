"""Procfiles (Heroku, foreman, honcho): a shell's command line after each name, with the variables of the `.env` file in the same folder."""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.env_file import file_variables
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.shell.embedding import Around, Collected, read_script
from spec_lsp.syntax.word import Place, literal

PROCESS = expression(r"^[A-Za-z0-9_-]+:[ \t]*(?P<command>\S[^\r\n]*)", re.M)
ENV_FILE = ".env"


def read_procfile(name: str, text: str, read: Read) -> Document:
    """All launches of a Procfile."""
    env = dict(file_variables(ENV_FILE, read(ENV_FILE) or ""))
    all_ = Collected(depends_on={ENV_FILE})
    for m in PROCESS.finditer(text):
        command = literal(m["command"], Place(name, *m.span("command")))
        found = read_script(name, command, Around(env, read=read))
        all_.add(found)
    return all_.document(name, text, directives_of(name, text))
