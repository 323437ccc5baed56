"""The kinds of files that launches are written in, one row each.

A new kind of file is a reader in a module of its own and a row here. The tests of `tests/syntax/test_carriers.py` and of the editors' lists
say what else it needs.
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
"""The text of another file, named by a path as the document writes it, or None."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """One kind of file.

    `reader` is `module:function` in this package: `(name, text, read) -> Document`, and one more argument, which reads a text of any
    kind, where it is `nesting`. It is imported with the first text of its kind: most runs see few kinds.
    """

    kind: str
    reader: str
    languages: tuple[str, ...] = ()
    """Language ids that clients name it by, in lower case."""
    names: str = ""
    """A regular expression for the ends of paths, without regard to case."""
    fences: tuple[str, ...] | None = None
    """Other names on the fence of a code block in Markdown. None: such blocks are not read, or the Markdown reader does so itself."""
    in_here_documents: bool = False
    """Whether what a script writes to such a file is read."""
    nesting: bool = False


CARRIERS = (
    Carrier(
        "shell", "shell:read_shell",
        ("shell", "shellscript", "bash", "sh", "zsh", "ksh", "slurm", "sbatch"), in_here_documents=True,
    ),
    Carrier("shell-template", "shell_template:read_shell_template"),
    Carrier(
        "yaml", "yaml.reader:read_yaml",
        ("yaml", "dockercompose", "helm", "github-actions-workflow", "azure-pipelines", "ansible"),
        names=r"\.ya?ml(?:\.(?:j2|jinja2?|tmpl|tpl|gotmpl|template|in|dist|example|sample))?$",
        fences=("yml",),
    ),
    Carrier(
        "dockerfile", "dockerfile:read_dockerfile", ("dockerfile", "containerfile", "docker"),
        names=r"(?:^|[/\\])(?:Dockerfile|Containerfile)(?:[.\-_][^/\\]*)?$|\.(?:dockerfile|containerfile)$",
        fences=("docker", "containerfile"), in_here_documents=True,
    ),
    Carrier(
        "systemd", "systemd:read_systemd", ("systemd", "systemd-unit-file", "systemd-conf"),
        names=r"\.(?:service|container)(?:\.(?:in|dist|example|sample))?$|\.(?:service|container)\.d[/\\][^/\\]+\.conf$",
        fences=("service",), in_here_documents=True,
    ),
    Carrier(
        "systemd-template", "shell_template:read_systemd_template",
        names=r"\.(?:service|container)\.(?:j2|jinja2?|tmpl|tpl|gotmpl|template)$",
    ),
    Carrier(
        "makefile", "makefile:read_makefile", ("makefile", "make", "makefile-gmake", "makefile-bsdmake", "makefile-automake"),
        names=r"(?:^|[/\\])(?:GNUmakefile|Makefile)(?:[.\-_][^/\\]*)?$|\.(?:mk|mak)$",
        fences=("make",), in_here_documents=True,
    ),
    Carrier(
        "justfile", "justfile:read_justfile", ("justfile", "just",),
        names=r"(?:^|[/\\])\.?justfile$|\.just$", fences=("just",), in_here_documents=True,
    ),
    Carrier(
        "markdown", "markdown:read_markdown", ("markdown", "gfm", "mdx", "restructuredtext", "rst", "quarto", "rmd"),
        names=r"\.(?:md|mdx|markdown|rst|qmd)$", nesting=True,
    ),
    Carrier(
        "python", "python:read_python", ("python", "py",),
        names=r"\.pyi?$", fences=("py", "python3", "ipython"), nesting=True,
    ),
    Carrier("notebook", "notebook:read_notebook", ("notebook", "jupyter", "ipynb"), names=r"\.ipynb$", nesting=True),
    Carrier(
        "json", "jsonc:read_json", ("json", "jsonc", "json5", "jsonwithcomments"),
        names=r"\.(?:jsonc?|json5|code-workspace)$", fences=("jsonc", "json5"), in_here_documents=True,
    ),
    Carrier(
        "procfile", "procfile:read_procfile", ("procfile",),
        names=r"(?:^|[/\\])Procfile(?:[.\-_][^/\\]*)?$|\.procfile$", fences=(), in_here_documents=True,
    ),
    Carrier(
        "supervisor", "supervisor:read_supervisor", ("supervisor", "supervisord",),
        names=r"(?:^|[/\\])supervisord?[^/\\]*\.(?:conf|ini)$", fences=("supervisord",), in_here_documents=True,
    ),
    Carrier(
        "jenkinsfile", "jenkinsfile:read_jenkinsfile", ("jenkinsfile", "jenkins", "groovy", "declarative-jenkinsfile"),
        names=r"(?:^|[/\\])Jenkinsfile(?:[.\-_][^/\\]*)?$|\.(?:jenkinsfile|groovy)$",
        fences=("groovy",), in_here_documents=True,
    ),
    Carrier(
        "terraform", "terraform:read_terraform", ("terraform", "terraform-vars", "opentofu", "tf", "hcl"),
        names=r"\.(?:tf|tofu|hcl)$", fences=("hcl", "tf", "opentofu"), in_here_documents=True, nesting=True,
    ),
)  # fmt: skip

BY_KIND = {carrier.kind: carrier for carrier in CARRIERS}
LANGUAGES = {language: carrier.kind for carrier in CARRIERS for language in carrier.languages}
NAMES = tuple((expression(carrier.names, re.I), carrier.kind) for carrier in CARRIERS if carrier.names)
FENCES = {
    name: carrier.kind for carrier in CARRIERS if carrier.fences is not None for name in (carrier.kind, *carrier.fences)
}


@cache
def reader_of(kind: str) -> Callable[..., Document]:
    """The reader of a kind. `KeyError` for one that there is none of."""
    module, _, function = BY_KIND[kind].reader.partition(":")
    reader: Callable[..., Document] = getattr(import_module(f"{__package__}.{module}"), function)
    return reader
