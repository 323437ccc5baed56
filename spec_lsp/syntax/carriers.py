"""The kinds of files in which launches are written, one row each.

A new kind of file needs a reader in a module of its own and a row here. The tests in `tests/syntax/test_carriers.py` and of the editors'
lists say what else it needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Document

Read = Callable[[str], str | None]
"""Returns the text of another file, by its path as the document writes it, or None."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """One kind of file.

    `reader` is `module:function` in this package: `(name, text, read) -> Document`; if it is `nesting`, it takes one more argument, which
    reads a text of any kind. It is imported for the first text of its kind, as most runs see few kinds.
    """

    kind: str
    reader: str
    vscode: tuple[str, ...] = ()
    """Language ids of VS Code and its extensions."""
    vim: tuple[str, ...] = ()
    """Filetypes of Vim and Neovim."""
    languages: tuple[str, ...] = ()
    """Names that other clients have for it, in lower case."""
    names: str = ""
    """A regular expression for the ends of paths, case-insensitive."""
    fences: tuple[str, ...] | None = None
    """Other names for it after the fence of a code block in Markdown. None: such blocks are not read, or the Markdown reader does so
    itself."""
    in_here_documents: bool = False
    """Whether such a file is also read if a script writes it in a here-document."""
    nesting: bool = False


CARRIERS = (
    Carrier(
        "shell", "shell:read_shell",
        vscode=("shellscript", "slurm"), vim=("sh", "bash", "zsh"), languages=("shell", "ksh", "sbatch"),
        in_here_documents=True,
    ),
    Carrier("shell-template", "shell_template:read_shell_template"),
    Carrier(
        "yaml", "yaml.reader:read_yaml",
        vscode=("yaml", "dockercompose", "helm", "github-actions-workflow", "azure-pipelines", "ansible"),
        vim=("yaml", "yaml.docker-compose", "yaml.ghaction", "helm"),
        names=r"\.ya?ml(?:\.(?:j2|jinja2?|tmpl|tpl|gotmpl|template|in|dist|example|sample))?$",
        fences=("yml",),
    ),
    Carrier(
        "dockerfile", "dockerfile:read_dockerfile",
        vscode=("dockerfile",), vim=("dockerfile",), languages=("containerfile", "docker"),
        names=r"(?:^|[/\\])(?:Dockerfile|Containerfile)(?:[.\-_][^/\\]*)?$|\.(?:dockerfile|containerfile)$",
        fences=("docker", "containerfile"), in_here_documents=True,
    ),
    Carrier(
        "systemd", "systemd:read_systemd",
        vscode=("systemd-unit-file",), vim=("systemd",), languages=("systemd-conf",),
        names=r"\.(?:service|container)(?:\.(?:in|dist|example|sample))?$|\.(?:service|container)\.d[/\\][^/\\]+\.conf$",
        fences=("service",), in_here_documents=True,
    ),
    Carrier(
        "systemd-template", "shell_template:read_systemd_template",
        names=r"\.(?:service|container)\.(?:j2|jinja2?|tmpl|tpl|gotmpl|template)$",
    ),
    Carrier(
        "makefile", "makefile:read_makefile",
        vscode=("makefile",), vim=("make",), languages=("makefile-gmake", "makefile-bsdmake", "makefile-automake"),
        names=r"(?:^|[/\\])(?:GNUmakefile|Makefile)(?:[.\-_][^/\\]*)?$|\.(?:mk|mak)$",
        fences=("make",), in_here_documents=True,
    ),
    Carrier(
        "justfile", "justfile:read_justfile", vscode=("just",), vim=("just",), languages=("justfile",),
        names=r"(?:^|[/\\])\.?justfile$|\.just$", fences=("just",), in_here_documents=True,
    ),
    Carrier(
        "markdown", "markdown:read_markdown",
        vscode=("markdown", "mdx", "restructuredtext", "quarto"), vim=("markdown",), languages=("gfm", "rst", "rmd"),
        names=r"\.(?:md|mdx|markdown|rst|qmd)$", nesting=True,
    ),
    Carrier(
        "python", "python:read_python", vscode=("python",), vim=("python",), languages=("py",),
        names=r"\.pyi?$", fences=("py", "python3", "ipython"), nesting=True,
    ),
    Carrier("notebook", "notebook:read_notebook", languages=("notebook", "jupyter", "ipynb"), names=r"\.ipynb$", nesting=True),
    Carrier("notebook-cell", "notebook:read_cell", languages=("notebook-cell",)),
    Carrier(
        "json", "jsonc:read_json",
        vscode=("json", "jsonc"), vim=("json", "jsonc"), languages=("json5", "jsonwithcomments"),
        names=r"\.(?:jsonc?|json5|code-workspace)$", fences=("jsonc", "json5"), in_here_documents=True,
    ),
    Carrier(
        "procfile", "procfile:read_procfile", vscode=("procfile",), vim=("procfile",),
        names=r"(?:^|[/\\])Procfile(?:[.\-_][^/\\]*)?$|\.procfile$", fences=(), in_here_documents=True,
    ),
    Carrier(
        "supervisor", "supervisor:read_supervisor",
        vscode=("ini", "properties"), vim=("conf", "dosini"), languages=("supervisor", "supervisord"),
        names=r"(?:^|[/\\])supervisord?[^/\\]*\.(?:conf|ini)$", fences=("supervisord",), in_here_documents=True,
    ),
    Carrier(
        "jenkinsfile", "jenkinsfile:read_jenkinsfile",
        vscode=("groovy", "jenkinsfile"), vim=("groovy", "Jenkinsfile"), languages=("jenkins", "declarative-jenkinsfile"),
        names=r"(?:^|[/\\])Jenkinsfile(?:[.\-_][^/\\]*)?$|\.(?:jenkinsfile|groovy)$",
        fences=("groovy",), in_here_documents=True,
    ),
    Carrier(
        "terraform", "terraform:read_terraform",
        vscode=("terraform", "opentofu", "hcl"), vim=("terraform", "hcl"), languages=("terraform-vars", "tf"),
        names=r"\.(?:tf|tofu|hcl)$", fences=("hcl", "tf", "opentofu"), in_here_documents=True, nesting=True,
    ),
)  # fmt: skip

BY_KIND = {carrier.kind: carrier for carrier in CARRIERS}
INI = frozenset(("ini", "dosini", "conf", "properties"))
"""What clients call any INI file: its sections show which program it is for."""
LANGUAGES = {
    language.lower(): carrier.kind
    for carrier in CARRIERS
    for language in (*carrier.vscode, *carrier.vim, *carrier.languages)
    if language not in INI
}
SETTINGS_LANGUAGE = "toml"
"""The languages of settings files, which hold no launch; their unusable settings are reported."""
NAMES = tuple((expression(carrier.names, re.I), carrier.kind) for carrier in CARRIERS if carrier.names)
FENCES = {
    name: carrier.kind for carrier in CARRIERS if carrier.fences is not None for name in (carrier.kind, *carrier.fences)
}


@cache
def reader_of(kind: str) -> Callable[..., Document]:
    """The reader of a kind. `KeyError` if there is none."""
    module, _, function = BY_KIND[kind].reader.partition(":")
    reader: Callable[..., Document] = getattr(import_module(f"{__package__}.{module}"), function)
    return reader
