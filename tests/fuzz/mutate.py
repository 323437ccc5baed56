"""Changes a text at random: its bytes, its tokens, its lines. The same `random.Random` makes the same changes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from spec_lsp.workspace import decode

MAX_CHARACTERS = 60_000
"""What a changed text may grow to: repeated blocks double it again and again."""

TOKENS = re.compile(r"[\w.-]+|[ \t]+|\n|.", re.S)
PIECES = (
    "'", '"', "`", "\\", "\\\n", "\n", "\r", "\r\n", "\t", " ", "\0", "\ufeff", "\u2028", "é", "\U0001f600", "\ud800", "\x1b[31m",
    "$", "${", "}", "$(", ")", "((", "))", "[[", "]]", "$((1<<99))", "${X:-", "${#", "${!", "$@", '"$@"', "$*", "`", "<<EOF\n", "<<-'E'\n",
    "EOF\n", "|", "||", "&&", "&", ";", ";;", "! ", "{", "}", "(", "if ", "then\n", "else\n", "fi\n", "for i in ", "do\n", "done\n",
    "while :; ", "case $x in ", "esac\n", "function f ", "eval ", "source ", "export ", "set -u\n", "shift\n", "exec ", "printf '%*s' ",
    "{1..9999999}", "{a,b}{a,b}{a,b}", "*", "?", "[a-z]", "~", "#", "# spec-lsp: ignore[unknown-flag]", "# spec-lsp: sglang=0.5.9 gpu=b200\n",
    ": ", "- ", "? ", "&a ", "*a ", "<<: *a\n", "!!", "!reference [.a, script]", "|\n", ">-\n", "---\n", "...\n", "%YAML 1.2\n", "[", "]",
    "{{ ", " }}", "{% if x %}", "{% else %}", "{% endif %}", "{% for i in x %}", "{% endfor %}", "{{- range .x }}", "{{ end }}", "{#",
    "f'{", "f\"", '"""', "lambda: ", "def f(x):\n", "class A:\n", "    ", "return ", "yield ", "await ", "import os\n", "x = x + x\n",
    "10**10**10", "'x' * 10**9", "[", "for x in range(10**9)", "**", "*args", "@", ":=", "sgl.Engine(", "subprocess.run([", ".join(",
    "FROM ", "RUN ", "CMD [", "ENTRYPOINT ", "ONBUILD ", "ARG X=", "ENV X=", "COPY <<E /x\n", "```bash\n", "```\n", "ExecStart=", "[Service]\n",
    "\t@", "$(shell ", "$(foreach ", "ifeq (", "endif\n", "define x\n", "endef\n", "set dotenv-load\n", "{{x}}", "--", "-m", "=", ",",
    "python -m sglang.launch_server ", "--model-path ", "--tp ", "--tp=", "8", "0", "-1", "1e999", "0x7f", "1:59:59", "99999999999999999999",
    "--config x.yaml", "--page-size 7 ", "--attention-backend trtllm_mha ", "--pag-siz 1 ", "sglang serve ", "null", "true", "~", "NaN",
)  # fmt: skip
"""What starts, ends or upsets something in one of the languages."""


def mutated(text: str, others: Sequence[str], chance: random.Random) -> str:
    """The text with one to eight changes; some bring in parts of `others`."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        text = chance.choice(CHANGES)(text, others, chance)[:MAX_CHARACTERS]
    return text


def edit(text: str, others: Sequence[str], chance: random.Random) -> str:
    """The text after something that a person does: a key, a word, a line, a paste, an undone deletion."""
    return chance.choice(EDITS)(text, others, chance)[:MAX_CHARACTERS]


# --- bytes -------------------------------------------------------------------------------------------------------------


def _bytes(text: str, others: Sequence[str], chance: random.Random) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 4)))
            case 1:
                del data[at : at + chance.randrange(1, 9)]
            case 2 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case _:
                del data[at : len(data) if chance.random() < 0.1 else at + 1]
    return decode(bytes(data))


# --- tokens ------------------------------------------------------------------------------------------------------------


def _tokens(text: str, others: Sequence[str], chance: random.Random) -> str:
    tokens = TOKENS.findall(text) or [""]
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                tokens[at:at] = [chance.choice(PIECES)]
            case 1:
                tokens[at] = chance.choice(PIECES)
            case 2:
                tokens[at] = ""
            case 3:
                other = chance.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                tokens[at] = tokens[at] * chance.choice((2, 3, 50))
    return "".join(tokens)


def _piece(text: str, others: Sequence[str], chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(PIECES) * chance.choice((1, 1, 1, 2, 30)) + text[at:]


# --- lines -------------------------------------------------------------------------------------------------------------


def _lines(text: str, others: Sequence[str], chance: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    start = chance.randrange(len(lines))
    end = min(len(lines), start + chance.choice((1, 1, 2, 5, 20)))
    block = lines[start:end]
    match chance.randrange(8):
        case 0:
            del lines[start:end]
        case 1:
            lines[end:end] = block * chance.choice((1, 2, 10, 40))
        case 2:
            del lines[start:end]
            at = chance.randrange(len(lines) + 1)
            lines[at:at] = block
        case 3:
            by = chance.choice(("  ", "    ", "\t", "# ", "- "))
            lines[start:end] = [by + line for line in block]
        case 4:
            lines[start:end] = [line.lstrip() for line in block]
        case 5:
            lines[start:end] = ["".join(line.rstrip("\r\n") for line in block)]
        case 6:
            lines[start:end] = [line.rstrip("\r\n") + " \\\n" for line in block]
        case _:
            lines[start:end] = reversed(block)
    return "".join(lines)


def _splice(text: str, others: Sequence[str], chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    other = chance.choice(others).splitlines(keepends=True) if others else []
    start = chance.randrange(len(other) + 1)
    at = chance.randrange(len(lines) + 1)
    lines[at:at] = other[start : start + chance.choice((1, 3, 10, 40))]
    return "".join(lines)


def _nest(text: str, others: Sequence[str], chance: random.Random) -> str:
    """Some lines, or a place in a line, inside the same brackets many times."""
    opens, closes = chance.choice(NESTS)
    depth = chance.choice((1, 2, 8, 70, 300))
    lines = text.splitlines(keepends=True)
    start = chance.randrange(len(lines) + 1)
    end = min(len(lines), start + chance.choice((0, 1, 3)))
    return "".join([*lines[:start], opens * depth, *lines[start:end], closes * depth, *lines[end:]])


NESTS = (
    ("if [ $a = 1 ]; then\n", "fi\n"), ("for i in 1 2 3; do\n", "done\n"), ("while read x; do\n", "done\n"), ("case $x in a)\n", ";; esac\n"),
    ("(", ")"), ("{ ", "; }\n"), ("$(", ")"), ("`", "`"), ('"', '"'), ("${x:-", "}"), ("$((", "))"), ("[", "]"), ("{a: ", "}"), ("- ", "\n"),
    ("{% if x %}\n", "{% endif %}\n"), ("{{ if .x }}\n", "{{ end }}\n"), ("{% for i in x %}", "{% endfor %}"), ("f(", ")"), ("not ", ""),
    ("-", ""), ("if x:\n ", "\n"), ("ifeq (a,b)\n", "endif\n"), ("> ", "\n"), ("```\n", "```\n"), ("bash -c '", "'"), ("function f() {\n", "}\n"),
)  # fmt: skip

CHANGES: Sequence[Callable[[str, Sequence[str], random.Random], str]] = (
    _bytes, _bytes, _tokens, _tokens, _tokens, _piece, _piece, _lines, _lines, _splice, _nest,
)  # fmt: skip


# --- edits -------------------------------------------------------------------------------------------------------------


def _key(text: str, others: Sequence[str], chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    if chance.random() < 0.4:
        return text[: max(at - 1, 0)] + text[at:]
    return text[:at] + chance.choice("aeiou0123456789 \n\\\"'$-#:=[](){}.,;|&/*") + text[at:]


def _line_above(text: str, others: Sequence[str], chance: random.Random) -> str:
    at = text.rfind("\n", 0, chance.randrange(len(text) + 1)) + 1
    return text[:at] + chance.choice(("\n", "# a comment\n", "X=1\n", "echo hello\n", "a: b\n", "x = 1\n")) + text[at:]


def _cut(text: str, others: Sequence[str], chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.choice((1, 2, 8, 40, 400)) :]


EDITS = (_key, _key, _key, _key, _line_above, _line_above, _cut, _piece, _tokens, _lines, _splice)
