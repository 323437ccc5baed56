"""From the text of a file to the launches in it, each word with an exact map back to the file.

`parse` is the door. It picks a reader by the language a client names, else by the file's name, else by what the text looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.shell import read_shell
from spec_lsp.syntax.yaml import read_yaml

__all__ = ["parse"]

SHELL_LANGUAGES = frozenset({"shellscript", "shell", "bash", "sh", "zsh", "ksh", "slurm", "sbatch"})
SHELL_NAMES = re.compile(
    r"\.(?:sh|bash|zsh|ksh|slurm|sbatch|sub|env|command|bats)\"?$|(?:^|/)\.?(?:bashrc|profile|envrc)$", re.I
)
YAML_NAMES = re.compile(r"\.ya?ml$", re.I)
OTHER_NAMES = re.compile(
    r"\.(?:py|pyi|ipynb|md|mdx|rst|txt|json|jsonl|toml|js|jsx|ts|tsx|html|css|rs|go|c|cc|cpp|h|cu|j2|nix|service|lock|log|ini|cfg|fish|ps1|bat)$"
    r"|(?:^|/)(?:Dockerfile|Containerfile|Makefile|GNUmakefile|justfile)[^/]*$|\.(?:Dockerfile|mk|just)$",
    re.I,
)
MAX_LINE = 500_000
"""Characters of a line beyond which a script is not read."""
SHEBANG = re.compile(r"#!\s*\S*?(?:/env\s+(?:-S\s*)?)?(?:\S*/)?(bash|sh|zsh|dash|ksh|python[\d.]*|fish|perl|node)\b")


def nothing(path: str) -> str | None:
    """The `read` of a caller that has no other files."""
    return None


def parse(
    name: str,
    text: str,
    read: Callable[[str], str | None] = nothing,
    language: str | None = None,
    looks_like_config: Callable[[frozenset[str]], bool] | None = None,
) -> Document:
    """All that can be read of a text. Never raises, whatever the text.

    `name` is how the caller names the document; places carry it. `read` gives the text of another file, named by a path as the
    document writes it (relative to the document), or None. `language` is a client's language id. `looks_like_config` says whether
    a YAML mapping with these keys (kebab case) is a `--config` file of SGLang's.
    """
    try:
        kind = kind_of(name, text, language)
        if kind == "yaml":
            return read_yaml(name, text, looks_like_config)
        if kind == "shell" and "sglang" in text and not has_huge_line(text):
            return read_shell(name, text, read)
    except RecursionError:
        pass
    return Document(name, text)


def has_huge_line(text: str) -> bool:
    """Whether a line is longer than any person or program writes a command: data, which would take seconds to read as words."""
    return len(text) > MAX_LINE and any(len(line) > MAX_LINE for line in text.split("\n"))


def kind_of(name: str, text: str, language: str | None) -> str:
    """Which reader a text is for: "shell", "yaml", or "" for none."""
    if language:
        lowered = language.lower()
        if lowered in SHELL_LANGUAGES:
            return "shell" if not other_shebang(text) else ""
        if lowered.startswith("yaml") or lowered.endswith("yaml"):
            return "yaml"
        if lowered not in ("plaintext", "text"):
            return ""
    if YAML_NAMES.search(name):
        return "yaml"
    shebang = SHEBANG.match(text)
    if shebang:
        return "shell" if shebang.group(1) in ("bash", "sh", "zsh", "dash", "ksh") else ""
    if SHELL_NAMES.search(name):
        return "shell"
    if OTHER_NAMES.search(name):
        return ""
    return "shell" if looks_like_shell(text) else ""


def other_shebang(text: str) -> bool:
    """Whether a shebang names something other than a shell we read."""
    shebang = SHEBANG.match(text)
    return shebang is not None and shebang.group(1) not in ("bash", "sh", "zsh", "dash", "ksh")


def looks_like_shell(text: str) -> bool:
    """Whether a text without a telling name starts SGLang on some line as a shell does."""
    return bool(
        re.search(
            r"^[^#\n]*(?:-m[ \t]+(?:sglang|dynamo\.sglang|sglang_router)[.\w]*|\bsglang[ \t]+serve\b)", text, re.M
        )
    )
