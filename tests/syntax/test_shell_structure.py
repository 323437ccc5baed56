"""The structure of statements: the forms that tree-sitter-bash reads otherwise than bash, and bash's own reading as the measure."""

from __future__ import annotations

import dataclasses
import inspect
import random
import shutil
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.shell import ast, structure
from spec_lsp.syntax.shell.scanner import ShellSyntaxError
from spec_lsp.syntax.shell.skeleton import parse_statement
from spec_lsp.syntax.shell.words import MAX_DEPTH
from tests.draws import draws
from tests.syntax.support import START, forget, launches

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="needs bash")
P = START


def script_of(text: str, *, tolerant: bool = False) -> ast.Script:
    statement, end = parse_statement(text, 0, len(text), tolerant=tolerant)
    assert end == len(text)
    return statement.script


def shape(node: Any, text: str) -> str:
    """A node as a line: `[a && b]` for a list, `[a | b]` for a pipeline, redirects behind `>`."""

    def of(node: Any) -> str:
        return shape(node, text)

    def word(word: ast.WordNode) -> str:
        return text[word.start : word.end]

    behind = "".join(f" {r.descriptor}{r.op}{word(r.target)}" for r in getattr(node, "redirects", ()))
    if isinstance(node, ast.Script):
        return "; ".join(map(of, node.items))
    if isinstance(node, ast.Simple):
        return " ".join([text[a.start : a.end] for a in node.assigns] + [word(w) for w in node.words]) + behind
    if isinstance(node, ast.AndOr):
        listed = of(node.first) + "".join(f" {op} {of(c)}" for op, c in node.rest)
        return f"[{listed}]" + " &" * node.background
    if isinstance(node, ast.Pipeline):
        return "! " * node.negated + f"[{' | '.join(map(of, node.commands))}]"
    if isinstance(node, ast.Group):
        return (f"({of(node.body)})" if node.subshell else f"{{{of(node.body)}}}") + behind
    if isinstance(node, ast.If):
        arms = " ".join(f"if {of(c)} then {of(b)}" for c, b in node.arms)
        return arms + (f" else {of(node.otherwise)}" if node.otherwise else "") + " fi" + behind
    if isinstance(node, ast.For):
        listed = "" if node.words is None else " in" + "".join(f" {word(w)}" for w in node.words)
        kind = "select" if node.select else "for"
        return f"{kind} {node.name}{listed} do {of(node.body)} done" + behind
    if isinstance(node, ast.While):
        return f"{'until' if node.until else 'while'} {of(node.condition)} do {of(node.body)} done" + behind
    if isinstance(node, ast.Case):
        arms = "".join(
            f" {'|'.join(word(p) for p in a.patterns)}) {of(a.body)} {';&' if a.falls_through else ';;'}"
            for a in node.arms
        )
        return f"case {word(node.subject)}{arms} esac" + behind
    if isinstance(node, ast.Function):
        return f"{node.name}() {of(node.body)}"
    if isinstance(node, ast.Test):
        return f"[[{of(node.expression)}]]" + behind
    if isinstance(node, ast.Both):
        return f"({of(node.left)} {'or' if node.either else 'and'} {of(node.right)})"
    if isinstance(node, ast.Not):
        return f"not {of(node.inner)}"
    if isinstance(node, ast.Compare):
        return f"{word(node.left) + ' ' if node.left else ''}{node.op} {word(node.right)}"
    assert isinstance(node, ast.ArithmeticCommand), node
    return f"(({word(node.expression)}))" + behind


MENDED = {
    # Words: their structure is ours.
    "a $A/$B.log http://$A:$B/x": "a $A/$B.log http://$A:$B/x",
    'a "  ${X}" "${X:-$((1+2))}" a\\ # c': 'a "  ${X}" "${X:-$((1+2))}" a\\ # c',
    "python3 - <<EOF\nx\nEOF": "python3 - <<EOF",
    "a $10 `b \\`c\\`` | d": "[a $10 `b \\`c\\`` | d]",
    "X=1 Y=$X\na": None,
    "a @(b|c) !(d|e)": "a @(b|c) !(d|e)",
    "a $[1 + 2] | b": "[a $[1 + 2] | b]",
    "x=(a $(b; c)\n d) e": "x=(a $(b; c)\n d) e",
    "x=(x=(y)": None,
    # Here-documents belong to the command they stand at.
    "a <<A <<B\n1\nA\n2\nB": "a <<A <<B",
    "a <<A && b\n1\nA": "[a <<A && b]",
    "a <<A &\n1\nA": "[a <<A] &",
    "a <<A; z\n1\nA": "a <<A; z",
    "a <<A 2>&1 | tee y\n1 | 2\nA": "[a <<A 2>&1 | tee y]",
    "a <<-A > f | y\n\t1\n\tA": "[a <<-A >f | y]",
    "if a <<A; then\nfi\nA\nb; fi": "if a <<A then b fi",
    "a <<'A' | while b; do c; done\n$(x\nA": "[a <<'A' | while b do c done]",
    # Redirects, too.
    "a && { b; } > f": "[a && {b} >f]",
    "a | b > f || c": "[[a | b >f] || c]",
    "> f a {fd}> g b <> h": "a b >f {fd}>g <>h",
    "exec {fd}<&0; a": "exec {fd}<&0; a",
    "{ a; } > f 2>&1 | b": "[{a} >f 2>&1 | b]",
    # Words before a pipeline.
    "! a | b": "! [a | b]",
    "! ! a": "a",
    "! ! ! a && b": "[! [a] && b]",
    "time { a; } && b": "[{a} && b]",
    "time -p a | b": "[a | b]",
    "coproc S { a; }": "{a}",
    "coproc S ( a )": "(a)",
    "coproc a b": "a b",
    "a | time b": "[a | time b]",
    # Functions and loops.
    "f() { a; } 2>&1 | b": "[f() {a} 2>&1 | b]",
    "f() for x in a; do b; done": "f() for x in a do b done",
    "f () while a; do b; done > g": "f() while a do b done >g",
    "f() case a in b) c;; esac": "f() case a b) c ;; esac",
    "function f { a; }": "f() {a}",
    "function f() (a)": "f() (a)",
    "f()\n{ a; }": "f() {a}",
    "f() ((1))": "f() ((1))",
    "f() [[ a ]]": "f() [[-n a]]",
    "for x in; do a; done": "for x in do a done",
    "for x in a; { b; }": "for x in a do b done",
    "for ((i=0; i<2; i++)) { a; } > f": "for i do a done >f",
    "for x\ndo a; done": "for x do a done",
    "select x in a b; do c; done": "select x in a b do c done",
    "until a; do b; done": "until a do b done",
    # Cases.
    "case x in a\\|b) c;; (d|\"e f\") g;;& *) h;& i) esac": 'case x a\\|b) c ;; d|"e f") g ;& *) h ;& i)  ;; esac',
    "case $x in @(a|b)) c;; esac": "case $x @(a|b)) c ;; esac",
    "case x\nin\na)\nb\n;;\nesac": "case x a) b ;; esac",
    "case x in a) b & ;; esac": "case x a) [b] & ;; esac",
    "case x in a) b;; esac|c": "[case x a) b ;; esac | c]",
    "case x in a) case y in b) c;; esac esac": "case x a) case y b) c ;; esac ;; esac",
    # Nothing need stand between a compound command and a reserved word.
    "{ { a; } }": "{{a}}",
    "if (a) then b; fi": "if (a) then b fi",
    "if a; then if b; then c; fi fi": "if a then if b then c fi fi",
    "while [[ a ]] do b; done": "while [[-n a]] do b done",
    "{ { a; } > f; } | (b > f)": "[{{a} >f} | (b >f)]",
    # Parentheses.
    "((a); b)": "((a); b)",
    "a; ((b) | c)": "a; ([(b) | c])",
    "((1 + 2)) && a": "[((1 + 2)) && a]",
    "(a) | (b)": "[(a) | (b)]",
    "$( (a); b )": "$( (a); b )",
    # Pipelines of three and more.
    "a | b | c && d": "[[a | b | c] && d]",
    "a | b | c || d | e | f && g": "[[a | b | c] || [d | e | f] && g]",
    "{ a | b | c\nif d; then e; fi; }": "{[a | b | c]; if d then e fi}",
    "a |\n b |& c": "[a | b | c]",
    "a &&\n\n b": "[a && b]",
    # Conditions.
    "[[ a && b || ! ( c -eq 1 ) ]] && d": "[[[((-n a and -n b) or not c -eq 1)]] && d]",
    "[[ -f a\n&& b == c*\n]]": "[[(-f a and b == c*)]]",
    "[[ a =~ ^(b|c)$ && d < e ]]": "[[(a =~ ^(b|c)$ and d < e)]]",
    "[[ ! -n a ]]": "[[not -n a]]",
    "[[ a || b && c ]]": "[[(-n a or (-n b and -n c))]]",
}  # fmt: skip
REFUSED = [
    "fi", "done", "}", "then a", "a; fi", "; a", "a;; b", "a; ; b", "a && && b", "a &&; b", "| a", "a | | b", "( a", "a )", "{ a", "{ a }", "if a; fi",
    "if a; then b; done", "while a; then b; fi", "case x in a) b", "for x in a; b; done", "[[ a", "[[ ( a ]]", "a (b)", "{ a; } b",
    "f() ", "a <<A\nb", "x=(a", 'a "b', "a 'b", "a `b", "a $(b", "a ${b", "a | ! b", "! | a", "{ a; ", "(a) b", "! && a", "while a; do b; done c", "(a;;)", "{ { a; } > f }",
]  # fmt: skip


@pytest.mark.parametrize("text", MENDED)
def test_forms_that_the_grammar_reads_otherwise(text: str) -> None:
    wanted = MENDED[text]
    if wanted is not None:
        assert shape(script_of(text), text) == wanted.rstrip()


@needs_bash
@pytest.mark.parametrize("text", [*MENDED, *REFUSED])
def test_what_bash_refuses_is_refused(text: str) -> None:
    bash = subprocess.run(
        [BASH or "bash", "-n", "-O", "extglob"], input=text.encode(), capture_output=True, timeout=20, check=False
    )
    refused = bash.returncode != 0 or bash.stderr != b""
    try:
        parse_statement(text, 0, len(text))
    except ShellSyntaxError:
        assert refused
    else:
        assert not refused


# Bash prints a function as it read it. What it printed has the structure of what was written.

PLAIN = [
    "a", "b", "c -x", 'd "$X"', "e $(f | g)", "X=1", "X=(1 2) a", "h `i`", "fi=1 done", "a\\\n  b", '"$E\\\na"', "a 'fi; }'", "a $[1+2]",
    "[[ a && ! b ]]", "[[ ( a == b || -f c ) && d =~ (e|f) ]]", "(( 1 + 2 ))", "[[ a < b\n|| c ]]",
]  # fmt: skip
REDIRECTS = ["", "", "", "", " > f", " 2>&1", " < f > g", " {fd}> f", " <<< x", " &> f"]
ENDS = ["; ", "\n", " & ", ";\n\n", " # c\n"]
JOINED = [" && ", " || ", " | ", " |\n", " && # c\n\n", "|"]
FRAMES = [
    "{ BODY}", "( BODY)", "if BODYthen BODYelse\nBODYfi", "if BODYthen BODYelif BODYthen BODYfi", "for x in a 'b c'; do BODYdone",
    "for x in; do BODYdone", "for ((i=0; i<2; i++)); do BODYdone", "for x in a; { BODY}", "while BODYdo BODYdone", "until BODYdo BODYdone",
    "case $x in\na|'b c') BODY\n;;\n(*) BODY\n;& @(d|e)) ;; esac", "{ { BODY} }", "if ( BODY) then BODYfi", "f() { BODY}", "function g { BODY}",
    "(( 1 + 2 ))", "((BODY) | a)",
]  # fmt: skip


def command(chance: random.Random, depth: int) -> str:
    if not depth or chance.random() < 0.3:
        return chance.choice(PLAIN) + chance.choice(REDIRECTS)
    frame = chance.choice(FRAMES).split("BODY")
    return frame[0] + "".join(body(chance, depth - 1) + piece for piece in frame[1:]) + chance.choice(REDIRECTS)


def body(chance: random.Random, depth: int) -> str:
    """A few lists of commands, each with what ends it."""
    found = ""
    for _ in range(chance.choice([1, 1, 2, 3])):
        found += chance.choice(["", "", "", "", "! ", "time ", "! ! "]) + command(chance, depth)
        for _ in range(chance.choice([0, 0, 1, 2, 4])):
            found += chance.choice(JOINED) + command(chance, depth)
        found += chance.choice(ENDS)
    return found


def meaning(node: Any) -> Any:
    """A node without its places; literal text that only a line's end divides is one, `elif` is `else if`."""
    if isinstance(node, tuple):
        found: list[Any] = []
        for one in map(meaning, node):
            if found and one[:1] == found[-1][:1] == ("Lit",) and one[2] == found[-1][2]:
                found[-1] = ("Lit", found[-1][1] + one[1], one[2])
            elif one != ("Lit", "", True):
                found.append(one)
        return tuple(found)
    if isinstance(node, ast.Lit):
        return ("Lit", node.text, node.quoted)
    if isinstance(node, ast.If) and len(node.arms) > 1:
        nested = dataclasses.replace(node, arms=node.arms[1:], redirects=())
        return meaning(dataclasses.replace(node, arms=node.arms[:1], otherwise=ast.Script(0, 0, (nested,))))
    if dataclasses.is_dataclass(node):
        fields = (getattr(node, f.name) for f in dataclasses.fields(node) if f.name not in ("start", "end"))
        return (type(node).__name__, *map(meaning, fields))
    return (node,)


@needs_bash
@given(st.integers(0, 1 << 30))
@draws(80)
def test_structure_is_that_of_bash(seed: int) -> None:
    text = f"outer() {{\n{body(random.Random(seed), 2)}\n}}\n"
    bash = subprocess.run(
        [BASH or "bash", "--norc", "-O", "extglob", "-c", f"{text}declare -f outer"],
        capture_output=True,
        timeout=20,
        check=False,
        env={"LC_ALL": "C.UTF-8"},
    )
    if bash.returncode:
        with pytest.raises(ShellSyntaxError):
            parse_statement(text, 0, len(text))
        return
    printed = bash.stdout.decode()
    assert meaning(script_of(text)) == meaning(script_of(printed)), printed


# Bounds.

LONG = {
    "pipes": lambda n: "a|" * n + "a\n",
    "lists": lambda n: "a &&\n" * n + "a\n",
    "arrays in arrays": lambda n: "x=(" * n + "\n",
    "groups": lambda n: "{ " * n + "a" + "; }" * n + "\n",
    "subshells": lambda n: "(" * n + "a" + ")" * n + "\n",
    "substitutions": lambda n: "a " + "$(" * n + "b" + ")" * n + "\n",
    "conditions": lambda n: "[[ " + "( a && " * n + "b" + " )" * n + " ]]\n",
    "negated": lambda n: "[[ " + "! " * n + "a ]]\n",
    "branches": lambda n: "if a; then\n" * n,
    "functions": lambda n: "f() " * n + "{ a; }\n",
    "here-documents": lambda n: "a <<A\n" * n,
}  # fmt: skip


@pytest.mark.parametrize("kind", LONG)
def test_what_is_long_or_deep_is_read_in_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the grammar reads grows with the text, and what is too deep costs its line."""
    read = 0
    parse = structure.parse

    def counting(skeleton: bytes) -> Any:
        nonlocal read
        read += len(skeleton)
        return parse(skeleton)

    monkeypatch.setattr(structure, "parse", counting)
    sizes = []
    for n in (300, 1200):
        read = 0
        forget()
        assert launches(LONG[kind](n) + f"{P} --tp 2\n")[-1][-1][-2:] == ["--tp", "2"]
        sizes.append(read)
    assert sizes[1] < 6 * sizes[0] + 2000


DEEP = {
    "functions": ("function f() {\n", ":\n", "}\n"),
    "tests": ("if :; then\n", ":\n", "fi\n"),
    "else": ("if :; then :; else\n", ":\n", "fi\n"),
    "cases": ("case $1 in a)\n", ":\n", ";; esac\n"),
    "substitutions": ("a $(", "b", ")"),
    "arrays of substitutions": ('a=(x "$(', "b", ')")'),
    "defaults": ('"${a:-', "b", '}"'),
}  # fmt: skip
LEFT = 600
"""Of the thousand that Python allows, what a caller leaves at least."""


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("n", [MAX_DEPTH - 3, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
def test_how_deep_is_read_does_not_depend_on_the_caller(kind: str, n: int) -> None:
    before, within, behind = DEEP[kind]
    text, limit = before * n + within + behind * n + "\n", sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + LEFT)
    try:
        parse_statement(text, 0, len(text))
    except ShellSyntaxError:
        assert n >= MAX_DEPTH - 2
    finally:
        sys.setrecursionlimit(limit)


def test_parsing_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the text is read line by line, and the commands of a line are read one after the other."""
    monkeypatch.setattr(structure, "MAX_REPORTS", 0)
    monkeypatch.setattr(structure, "CHARACTERS", 1 << 30)
    text = "if a; then\n" + "b || c\n" * 200 + f"{P} --tp 2 && d\nfi\n{P} --tp 4\n"
    with pytest.raises(ShellSyntaxError):
        parse_statement(text, 0, len(text))
    forget()
    assert launches(text) == [[["--tp", "2"]], [["--tp", "4"]]]
    piped = "a | " * 2000 + f"{P} --tp 8\n"
    assert len(script_of(piped, tolerant=True).items) == 2001
    forget()
    assert launches(piped) == [[["--tp", "8"]]]
    forget()


def test_the_longest_pipelines_are_read_in_full() -> None:
    text = "a|" * 20_000 + "a\n"
    assert len(script_of(text).items[0].commands) == 20_001  # type: ignore[union-attr]


@pytest.mark.parametrize("text", MENDED)
def test_open_lines_keep_what_they_hold(text: str) -> None:
    """A statement cut off is read as far as it goes, wherever it is cut."""
    for end in range(len(text)):
        cut = f"{P} --tp 2; {text[:end]}"
        first = script_of(cut.split("\n", 1)[0] + "\n", tolerant=True).items[0]
        assert isinstance(first, ast.Simple)
        assert len(first.words) == 5
