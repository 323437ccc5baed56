"""Chooses the reader of a text: by the language that a client names, else by the file's name, else by the content."""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.syntax.carriers import INI, LANGUAGES, NAMES

Kind = str
"""The `kind` of a carrier (`carriers.py`); "" for none."""

INI_NAMES = expression(r"\.(?:ini|conf)$", re.I)
SHELL_NAMES = expression(
    r"\.(?:sh|bash|zsh|ksh|slurm|sbatch|sub|env|command|bats)\"?$|(?:^|/)\.?(?:bashrc|profile|envrc)$", re.I
)
OTHER_NAMES = expression(
    r"\.(?:txt|jsonl|toml|js|jsx|ts|tsx|html|css|rs|go|c|cc|cpp|h|cu|nix|lock|log|cfg|fish|ps1|bat)$", re.I
)
CELL = expression(r"[\w.-]*notebook-cell:", re.I)
"""What editors call a cell of a notebook that they have open as a text."""
OTHERS = frozenset((
    "rust", "go", "c", "cpp", "java", "javascript", "typescript", "javascriptreact", "typescriptreact", "lua", "perl", "ruby", "html",
    "css", "fish", "powershell", "bat", "toml", "log", "diff", "sql", "csharp", "swift", "kotlin", "nix", "xml", "latex", "tex",
))  # fmt: skip
"""Languages that we have no reader for, whatever the file's name."""
SHEBANG = expression(
    r"#!\s*\S*?(?:/env\s+(?:-S\s*)?)?(?:\S*/)?(bash|sh|zsh|dash|ksh|python[\d.]*|just|make|fish|perl|node)\b"
)
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh"))
TEMPLATE_NAMES = expression(r"\.(?:j2|jinja2?|tpl|tmpl|gotmpl)$", re.I)
SUPERVISED = expression(r"^[ \t]*\[(?:program|fcgi-program|eventlistener):[^\]\n]+\]", re.M)
"""A section of supervisord's, which may be in a file of any name."""
STARTS_LIKE_SHELL = expression(
    r"^[^#\n]*(?:-m[ \t]+(?:sglang|dynamo\.sglang|sglang_router)[.\w]*|\bsglang[ \t]+serve\b)", re.M
)


def kind_of(name: str, text: str, language: str | None) -> Kind:
    """The kind of reader for a text, "" for none. For an unknown language the file's name decides."""
    lowered = (language or "").lower().removesuffix("-ts")  # Emacs' modes based on tree-sitter
    found = LANGUAGES.get(lowered)
    if CELL.match(name) and (not lowered or found == "python" or (found == "shell" and text.startswith("%%"))):
        return "notebook-cell"
    if found == "shell":
        return "shell" if _interpreter(text) in ("", "shell") else ""
    if found is not None:
        return found
    if lowered.startswith("yaml") or lowered.endswith("yaml"):
        return "yaml"
    if lowered in OTHERS:
        return ""
    found = _by_name(name)
    if found is not None:
        return found
    if (INI_NAMES.search(name) or lowered in INI) and SUPERVISED.search(text):
        return "supervisor"
    if lowered in INI or name.lower().endswith(".ini"):
        return ""
    if TEMPLATE_NAMES.search(name):
        return "shell-template" if STARTS_LIKE_SHELL.search(text) else ""
    interpreter = _interpreter(text)
    if interpreter:
        return "" if interpreter == "other" else interpreter
    if SHELL_NAMES.search(name):
        return "shell"
    if OTHER_NAMES.search(name):
        return ""
    return "shell" if STARTS_LIKE_SHELL.search(text) else ""


def _by_name(name: str) -> Kind | None:
    end = max(name.rfind("/", 0, name.rfind("/")), 0)  # the name and folder decide
    return next((kind for pattern, kind in NAMES if pattern.search(name, end)), None)


def _interpreter(text: str) -> Kind:
    """What a shebang names: a kind of reader, "other", or "" if there is no shebang."""
    shebang = SHEBANG.match(text)
    if shebang is None:
        return ""
    program = shebang.group(1)
    if program in SHELLS:
        return "shell"
    return {"just": "justfile", "make": "makefile"}.get(program, "python" if program.startswith("python") else "other")


def may_hold_launches(name: str) -> bool:
    """Whether a file of this name may be for one of our readers; one without a telling name may be."""
    return _by_name(name) is not None or not OTHER_NAMES.search(name)


SIGNS = (b"sglang", b"sgl-dev", b"srt-slurm")
"""In lower case. They are searched one by one, which is a hundred times faster than a case-insensitive expression."""
CONFIG_SIGNS = expression(
    rb"\n[\"']?(?:attention-backend|chunked-prefill|context-length|cuda-graph|disable-|disaggregation-|enable-|max-running-requests"
    rb"|mem-fraction|moe-|page-size|schedule-|speculative-|[dte]p(?:-size)?[\"']?:)|\n[ \t]*#[ \t]*spec-lsp:[ \t]*config\b"
)  # fmt: skip
"""Top-level keys of an SGLang `--config` file, which need not mention SGLang, and the comment that says so.
The line feed before each makes the search fast."""


def may_launch(name: str, data: bytes) -> bool:
    """Whether a file with this content may launch SGLang, by a quick look at its bytes; no file that does is missed, except in UTF-16."""
    kind = _by_name(name)
    if kind is None and OTHER_NAMES.search(name):
        return False
    lowered = data.lower()
    if any(sign in lowered for sign in SIGNS):
        return True
    return kind == "yaml" and CONFIG_SIGNS.search(b"\n" + data) is not None
