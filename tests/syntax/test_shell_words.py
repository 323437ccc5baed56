"""Words against bash itself: what we say a known command's argv is, is what bash passes."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from tests.draws import draws
from tests.syntax.support import START, check_maps

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")

plain = st.text("ab1-_.=:,/@%+{}[]!#~^é\U0001f600", min_size=1, max_size=4).filter(
    lambda s: not s.startswith(("#", "~"))
)
inside_single = st.text('ab \t"\\$`#{}*é\U0001f600\n', max_size=5)
inside_double = st.lists(
    st.sampled_from(
        [
            "a",
            " ",
            "'",
            "#",
            '\\"',
            "\\$",
            "\\\\",
            "\\`",
            "\\a",
            "\\\n",
            "\n",
            "$V",
            "${V}",
            "${W:-d}",
            "é",
            "\U0001f600",
            "$E",
            "${#V}",
        ]
    ),
    max_size=5,
).map("".join)
inside_ansi = st.lists(
    st.sampled_from(
        ["a", " ", "\\n", "\\t", "\\'", "\\\\", "\\x41", "\\101", "\\u00e9", "\\U0001F600", '"', "$V", "\\q", "é"]
    ),
    max_size=4,
).map("".join)
escape = st.sampled_from(["\\ ", "\\'", '\\"', "\\$", "\\\\", "\\a", "\\#", "\\\n", "\\&", "\\é"])
expansion = st.sampled_from(
    ["$V", "${V}", "$W", "${W:-x y}", "${W-'p  q'}", '${W:+"$V"}', "${V:+$V-z}", "$E", '"$E"', '"${A[@]}"', "${A[@]}", '"${A[*]}"',
     "${A[1]}", "${#A[@]}", "${V#a}", "${V%%[cd]*}", "${V/b/ZZ}", "${V//b/}", "${V:1:2}", "$((1 + N * 2))", "${V^^}", "${A[@]:1}", '"${B[@]}"',
     '"$E\\\na"', "$V\\\n", '"$\\\nV"', "$[1 + N * 2]", '"$[N]x"', "`echo \\`echo z\\``", "$(echo $(echo z))", "${W:-`echo z`}", "$((N+$[1]))",
     '"${B[*]}"', '${B[@]+"${B[@]}"}', '"x${A[@]}y"', "$(echo z)", "`echo z`", "${N}", "${A[-1]}", '"${A[@]#p}"']
)  # fmt: skip
piece = st.one_of(
    plain,
    inside_single.map(lambda s: f"'{s}'"),
    inside_double.map(lambda s: f'"{s}"'),
    inside_ansi.map(lambda s: f"$'{s}'"),
    escape,
    expansion,
)
word = st.lists(piece, min_size=1, max_size=3).map("".join).filter(lambda w: not w.startswith(("#", "\\ #")))
separator = st.sampled_from([" ", "  ", "\t", " \\\n  "])
PREAMBLE = "V='ab cbd'\nunset W\nE=\nA=(p 'q r' \"\")\nB=()\nN=4\n"


def bash_argv(script: str) -> list[str] | None:
    """The argv that bash passes, None if it refuses the script."""
    run = subprocess.run(
        [BASH or "bash", "--norc", "-c", "python() { shift 2; printf '%s\\0' \"$@\"; }; " + script],
        capture_output=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        cwd="/",
        timeout=20,
    )
    if run.stderr or run.returncode:
        return None
    return run.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@given(st.lists(st.tuples(separator, word), min_size=1, max_size=4).map(lambda ws: "".join(a + b for a, b in ws)))
@draws(120)
@example(" {a,b}{1..3} x{a}")
@example(' --j {"a":1,"b":2}')
@example(" ${W:-{}}")
def test_words_are_those_of_bash(words: str) -> None:
    script = PREAMBLE + f"set -f\n{START}{words} end\n"
    expected = bash_argv(script)
    document = parse("run.sh", script)
    if expected is None:
        return
    (launch,) = document.launches
    (variant,) = launch.variants
    check_maps(document)
    found = [w.text for w in variant.words]
    assert None in found or found == expected


@given(st.lists(word.filter(lambda w: "[" not in w), min_size=1, max_size=3))
@draws(60)
def test_arrays_and_strings_are_those_of_bash(words: list[str]) -> None:
    joined = " ".join(words)
    script = PREAMBLE + f'set -f\nX=(--a {joined})\nY="{START} "\nX+=(z)\n$Y "${{X[@]}}" ${{X[*]}}\n'
    expected = bash_argv(script)
    if expected is None:
        return
    document = parse("run.sh", script)
    check_maps(document)
    (launch,) = document.launches
    found = [w.text for w in launch.variants[0].words]
    assert None in found or found == expected


@given(st.lists(word, min_size=1, max_size=2), st.sampled_from(["eval", "bash -c", "eval-heredoc"]))
@draws(60)
def test_nested_texts_are_those_of_bash(words: list[str], how: str) -> None:
    inner = f"{START} {' '.join(words)} end"
    if how == "bash -c":
        quoted = "'" + inner.replace("'", "'\\''") + "'"
        script = f"export V='ab cbd' E= N=4\nexport -f python\nset -f\nbash -f -c {quoted}\n"
    elif how == "eval":
        quoted = "'" + inner.replace("'", "'\\''") + "'"
        script = PREAMBLE + f'set -f\nC={quoted}\neval "$C"\n'
    else:
        script = PREAMBLE + f"set -f\nC=$(cat <<'EOF'\n{inner}\nEOF\n)\neval \"$C\"\n"
    expected = bash_argv(script)
    if expected is None:
        return
    document = parse("run.sh", script)
    check_maps(document)
    (launch,) = document.launches
    found = [w.text for w in launch.variants[0].words]
    assert None in found or found == expected
