"""Whatever a script says, reading it ends: each construct costs in proportion to its size, and never more than is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax import shell as shell_reader
from spec_lsp.syntax.shell import arithmetic, conditions, patterns
from spec_lsp.syntax.shell.machine import MAX_EVALUATIONS, MAX_STEPS
from tests.syntax.support import START, forget

KINDS: dict[str, Callable[[int], str]] = {
    "nested tests of one variable": lambda n: "if [ $a = 1 ]; then\n" * n + "x=1\n" + "fi\n" * n,
    "nested tests": lambda n: "".join(f'if [ $a{i} = 1 ]; then X="$X {i}"\n' for i in range(n)) + "fi\n" * n,
    "one test again and again": lambda n: "if [ $a = 1 ]; then b=$a; fi\n" * n,
    "tests for many values": lambda n: "".join(f"if [ $a = {i} ]; then b={i}; fi\n" for i in range(n)),
    "elif": lambda n: "if :; then :\n" + "".join(f"elif [ $a{i} = {i} ]; then b={i}\n" for i in range(n)) + "fi\n",
    "arms": lambda n: "case $a in\n" + "".join(f"{i}) b={i} ;;\n" for i in range(n)) + "esac\n[ $b = 3 ] && c=1\n",
    "a loop that prints": lambda n: (
        f"{{\n for v in {' '.join(f'V{i}' for i in range(n))}; do\n"
        '  if [[ -n "${!v+x}" ]]; then printf "%s=%s\\n" "$v" "${!v}"; fi\n done\n} > "$O"\n'
    ),
    "lines printed to a file": lambda n: "".join(f"[ $a{i} ] && echo --f{i} >> f\n" for i in range(n)) + "X=$(cat f)\n",
    "substitutions that ask": lambda n: "".join(
        f"x=$(if [ $a{i} ]; then echo $x 1; else echo $x 2; fi)\n" for i in range(n)
    ),
    "doubled text": lambda n: "x=aaaaaaaaaa\n" + "x=$x$x\n" * n,
    "doubled array": lambda n: "x=(a b c)\n" + 'x=("${x[@]}" "${x[@]}")\n' * n,
    "doubled unknown": lambda n: "x=$(foo)\n" + 'x="$x,$x"\n' * n,
    "replaced by more": lambda n: "x=aa\n" + "x=${x//a/aa}\n" * n,
    "here-documents": lambda n: "".join(f"cat > f{i} <<E\n$x$x\nE\nx=$(cat f{i})\n" for i in range(n)),
    "functions that return": lambda n: (
        "f() {\n" + "".join(f'if [ "$1" = {i} ]; then X={i}; return; fi\n' for i in range(n)) + "}\nf $1\n"
    ),
    "launches": lambda n: "".join(f'[ $a{i} ] && X+=" --f{i}"\n{START} $X\n' for i in range(n)),
}


def steps(text: str) -> int:
    forget()
    document = parse("run.sh", text + f"{START} --tp 2\n")
    assert document.launches
    run = shell_reader._readings["run.sh"].run
    return run.steps + run.evaluations


@pytest.mark.parametrize("kind", KINDS)
def test_steps_grow_with_the_script(kind: str) -> None:
    small, large = steps(KINDS[kind](25)), steps(KINDS[kind](50))
    assert large <= 4 * small + 200, (small, large)


@pytest.mark.parametrize("kind", ["elif", "arms", "tests for many values"])
def test_what_is_long_is_not_deep(kind: str) -> None:
    """The stack does not grow with the number of arms."""
    forget()
    document = parse("run.sh", KINDS[kind](1500) + f"{START} --tp 2\n")
    assert (len(document.launches), document.problems) == (1, ())


ENDLESS = {
    "recursion": 'f() { f "$@" a; f b; }\nf\n',
    "functions that call twice": "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; }}\n" for i in range(60)) + "f0\n",
    "loops in loops": "".join(f"for i{k} in 1 2 3 4 5 6 7 8 9; do\n" for k in range(12)) + "x=1\n" + "done\n" * 12,
    "counting": "for ((i=0;i<1000000;i++)); do for ((j=0;j<1000000;j++)); do x+=aa; done; done\n",
    "a text that runs itself": 'f="eval \\"\\$f; \\$f\\""\neval "$f"\n',
    "copies": "x=(a b c)\n" + 'x=("${x[@]}" "${x[@]}")\n' * 9 + 'x=("${x[@]}")\n' * 2_000,
    "numbers that name each other": "".join(f"v{i}=v{i + 1}+v{i + 1}\n" for i in range(40)) + "v40=1\nx=$((v0))\n",
    "wide numbers": "x=$(printf '%900000000s%.900000000d' 1 1)\nprintf -v y '%0999999999d' 3\n",
    "a sequence": "for i in $(seq 1 1000000000) {1..1000000000}; do x=$i; done\n",
    "braces": "echo " + "{a,b}" * 60 + "{1..100}{1..100}{1..100}\n",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_does_not_end_ends_here(kind: str) -> None:
    """The launch behind it is found all the same, and a bound that was met is told in one line."""
    forget()
    document = parse("run.sh", ENDLESS[kind] + f"{START} --tp 2\n")
    run = shell_reader._readings["run.sh"].run
    assert [w.text for w in document.launches[0].variants[0].words] == ["--tp", "2"]
    assert run.steps <= 1.2 * MAX_STEPS
    assert run.evaluations <= 1.2 * MAX_EVALUATIONS
    assert [p.rule for p in document.problems] == (["not-read-whole"] if run.exhausted else [])


@pytest.mark.parametrize(
    "pattern", ["a*" * 8 + "b", "(a|a)" * 30 + "b", "^(a+)+b", "a?" * 30 + "a" * 30 + "b", "^((a|ab)(c|bcd)(d*))*b"]
)
def test_a_regular_expression_that_tries_too_much_is_not_known(pattern: str) -> None:
    assert conditions._regex("a" * 200, pattern) is None


@pytest.mark.parametrize(
    "pattern",
    ["a*" * 7 + "b", "*a" * 200 + "b", "+(a|aa)b", "*(a|*(a|*(a)))b", "@(a|a)" * 14 + "b", "?(a|)" * 25 + "b"],
)
def test_a_pattern_that_tries_too_much_is_not_known(pattern: str) -> None:
    assert patterns.matches("a" * 200, pattern) is None


def test_what_is_plain_is_known() -> None:
    assert conditions._regex("v0.5.9-cu130", "^v[0-9]+[.][0-9]+") is True
    assert patterns.matches("meta-llama/Llama-3.1-8B-Instruct", "*[Ll]lama*Instruct*") is True
    assert patterns.matches("b200", "@(b200|gb200|b300)") is True
    assert arithmetic.evaluate("2**10 + (1 << 4)", lambda name: None) == 1040


DEEP: dict[str, tuple[str, str]] = {
    "groups": ("{ ", "; }"),
    "subshells": ("( ", " )"),
    "branches": ("if w; then ", "; fi"),
    "loops": ("while w; do ", "; done"),
    "substitutions": ("x=$( ", " )"),
    "functions": ("f() { ", "; }"),
}


@pytest.mark.parametrize("depth", [41, 300, 3000])
@pytest.mark.parametrize("kind", DEEP)
def test_a_launch_that_is_nested_too_deeply_is_told(kind: str, depth: int) -> None:
    opened, closed = DEEP[kind]
    script = f"{opened * depth}{START.strip()}{closed * depth}\n"
    carried = f"command: [bash, -c, {json.dumps(script)}]\n"
    for name, text in (("run.sh", script), ("job.yaml", carried)):
        forget()
        document = parse(name, text)
        assert document.launches or [p.rule for p in document.problems] == ["not-read-whole"], name


def test_what_is_nested_deeply_and_launches_nothing_is_not_told() -> None:
    assert parse("run.sh", "{ " * 60 + "true" + "; }" * 60 + "\n").problems == ()
