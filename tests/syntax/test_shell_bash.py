"""Whole scripts that need nothing from outside: the launches that bash runs are those that are found, argument for argument."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from tests.draws import draws
from tests.syntax.support import START, check_maps

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")

P = START
STUB = '#!/bin/sh\nshift 2\nfor word in "$@"; do printf \'%s\\0\' "$word"; done >> "$RECORD"\nprintf \'\\1\\0\' >> "$RECORD"\n'


def run_by_bash(script: str, folder: Path, *arguments: str) -> list[list[str]]:
    """The arguments of each launch that bash runs, in order."""
    stub, record = folder / "python", folder / "record"
    stub.write_text(STUB)
    stub.chmod(0o755)
    record.write_bytes(b"")
    (folder / "run.sh").write_text(script, encoding="utf-8")
    subprocess.run(
        [BASH or "bash", "run.sh", *arguments],
        cwd=folder,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(record), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    words = record.read_text("utf-8").split("\0")[:-1]
    found: list[list[str]] = [[]]
    for word in words:
        if word == "\1":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


def found_in(script: str) -> list[list[str | None]]:
    document = parse("run.sh", script)
    check_maps(document)
    return [[w.text for w in variant.words] for launch in document.launches for variant in launch.variants]


SCRIPTS = [
    # Scripts that a script writes and runs.
    f"cat > s.sh <<'EOF'\n{P} --tp 4 \"$@\"\nEOF\nbash s.sh --port 1 'a b'\n",
    f"T=4\ncat <<EOF > ./s.sh\n#!/bin/bash\n{P} --tp $T \\\\\n  --port 1\nEOF\nchmod +x s.sh\n./s.sh\n",
    f"cat > s.sh <<-'EOF'\n\t{P} --tp 4\n\tEOF\nsh ./s.sh\n",
    f"echo '#!/bin/bash' > s.sh\necho \"{P} --tp 4 --m 'a b'\" >> s.sh\nbash s.sh\n",
    f"printf '#!/bin/bash\\n{P} --tp %s --x \"%s\"\\n' 4 'a b' > s.sh\nbash s.sh\n",
    f"tee s.sh > /dev/null <<EOF\n{P} --tp 4\nEOF\nbash s.sh\n",
    f"cat <<'EOF' | tee s.sh\n{P} --tp 4\nEOF\nbash s.sh\n",
    f"{{ echo '#!/bin/bash'; echo '{P} --tp 4'; }} > s.sh\nbash s.sh\n",
    f"for i in 1 2; do echo \"{P} --tp $i\"; done > s.sh\nbash s.sh\n",
    f"F=$(mktemp)\ncat > \"$F\" <<EOF\n{P} --tp 4\nEOF\nbash \"$F\"\nrm \"$F\"\n",
    "cat > env.sh <<'EOF'\nexport T=4\nA=(--tp \"$T\" --x 'a b')\nEOF\n" + f"source env.sh\n{P} \"${{A[@]}}\"\n. ./env.sh; {P} $T\n",
    f"cat > a.sh <<'EOF'\nbash b.sh \"$1\" 2\nEOF\ncat > b.sh <<'EOF'\n{P} --a $1 --b $2 $0\nEOF\nbash a.sh 1\n",
    f"cat > s.sh <<EOF\n{P} one\nEOF\nbash s.sh\ncat > s.sh <<EOF\n{P} two\nEOF\nbash s.sh\n",
    f"cat > s.py <<EOF\n#!/usr/bin/env python\n{P} one\nEOF\necho done\n",
    f"bash <<EOF\n{P} a\nEOF\nbash -s -- x 'y z' <<'EOF'\n{P} $2 $1\nEOF\n",
    f"cat > t.sh <<'EOF'\n{P} --tp TPX\nEOF\ncat t.sh | bash\ncat t.sh > u.sh\nbash u.sh\n",
    # Loops that count.
    f"for ((i = 0; i < 3; i++)); do {P} --port $((30000 + i)); done\n",
    f"for ((i=4;i>0;i/=2)) {{ {P} $i; }}\n",
    f"for ((i = 0, j = 8; i < 2; i++, j -= 2)); do {P} $i $j; done\n",
    f"for i in $(seq 0 2); do {P} $i; done\nfor i in $(seq 2); do {P} x$i; done\nfor i in $(seq 8 -4 0); do {P} y$i; done\n",
    f"i=0\nwhile (( i < 2 )); do {P} $i; ((i++)); done\n",
    f"i=0\nuntil [ $i -ge 2 ]; do {P} $i; let i+=1; done\n",
    f"i=0\nwhile true; do {P} $i; i=$((i + 1)); if [[ $i == 2 ]]; then break; fi; done\n",
    f"n=1\n((n <<= 3, n += 1))\n{P} $n\n((n--)); {P} $n; ((++n)); {P} $n\n",
    f"PORTS=(1 2 3)\nfor ((i = 0; i < ${{#PORTS[@]}}; i++)); do {P} ${{PORTS[$i]}} ${{PORTS[i]}}; done\n",
    # Structure that the grammar of tree-sitter reads otherwise.
    f"cat <<A <<B; {P} x | cat\n1\nA\n2\nB\n{P} y\n",
    f"cat <<A && {P} x &\n{P} no\nA\nwait\n",
    f"! ! {P} a | cat && {P} b\ntime {{ {P} c; }}\ncoproc S {{ {P} d; }}\nwait\n",
    f"f() {{ {P} $1; }} 2>&1 | cat\ng() for x in 1 2; do {P} $x; done\ng\n",
    f"f() {{ {P} $1; }} > f\nf a\nexec {{fd}}> g\n{P} $[1 + 2] >&$fd 5\n",
    f"shopt -s extglob\ncase ab in @(a|b)*) {P} x;;& a[b]) {P} y;; *) {P} z; esac|cat\n",
    f"{{ {{ {P} a; }} }}; if ({P} b) then {P} c; fi; ((false); {P} d)\n",
    f"for x in a b; {{ {P} $x; }}\nfor ((i = 0; i < 2; i++)) {{ {P} $i; }} > f\nfor x in; do {P} no; done\n",
    f"true | true | false || {P} a\ntrue | true | true && {P} b\n",
    f"E=1 Ea=2\n{P} \"$E\\\na\" $E\\\n\n",
    # Text read into variables.
    f"read -r A B <<< '4 2 3'\n{P} $A \"$B\"\n",
    f"IFS=, read -r A B C <<< 'x,,y z'\n{P} \"$A\" \"$B\" \"$C\"\n",
    f"read -r -a W <<< '  --tp 4  --dp 2 '\n{P} \"${{W[@]}}\"\nread -ra V <<< \"$(echo a b)\"\n{P} \"${{V[@]}}\"\n",
    f"IFS=: read -ra W <<< 'a:b c::d'\n{P} \"${{W[@]}}\"\n",
    f"for c in m,8 n,4; do IFS=',' read -r M T <<< \"$c\"; {P} --m $M --tp $T; done\n",
    f"while read -r M T; do {P} --m $M --tp $T; done <<EOF\na 1\nb 2 3\nEOF\n",
    f"while IFS='|' read -r M T; do {P} --m \"$M\" --tp \"$T\"; done <<'EOF'\na b|1\nc|2\nEOF\n",
    f"printf '%s\\n' a 'b c' | while read -r M; do {P} --m \"$M\"; done\n",
    f"cat > list <<EOF\na\nb\nEOF\nwhile read -r M; do {P} --m \"$M\"; done < list\n",
    f"mapfile -t W <<'EOF'\n--a\nb c\nEOF\n{P} \"${{W[@]}}\"\n",
    f"mapfile -t W <<< \"x y\"\n{P} \"${{W[@]}}\" ${{#W[@]}}\n",
    f"read -r -d '' X <<'EOF'\n--a 1 \\\n  --b 2\nEOF\n{P} $X\n",
    f"echo '--tp 4' | {{ read -r A B; {P} $A $B; }}\n",
    # printf and quoting.
    f"printf -v N '%02d-%s' 3 a\n{P} $N\nprintf -v L '%s,' a b c\n{P} ${{L%,}}\n",
    f"A=(--m \"it's\" '{{\"a\": 1}}' '' 'x y')\nC=$(printf '%q ' {P} \"${{A[@]}}\")\neval \"$C\"\nbash -c \"{P} ${{A[*]@Q}}\"\n",
    f"X='a \"b\"'\neval \"{P} ${{X@Q}}\"\n",
    f"A=$(printf -- '--lora %s ' x y)\n{P} $A\n",
    f"{P} $(printf '%s=%d ' a 1 b 2) $(IFS=,; echo \"a b\")\n",
    # Names of variables.
    f"go() {{ local -n args=$1; args+=(--x); {P} \"${{args[@]}}\" $2; }}\nA=(--tp 4)\nB=(--tp 8)\ngo A 1\ngo B 2\n{P} \"${{A[@]}}\"\n",
    f"T=4\ndeclare -n R=T\nR=8\n{P} $T $R\n",
    f"for n in A B; do declare \"$n=1\"; done\nV=A\n{P} x\n",
    # Options.
    f"set -- --tp 4 --fp8 x\nE=()\nwhile [[ $# -gt 0 ]]; do case $1 in --tp) T=$2; shift 2;; --fp8) E+=(--quantization fp8); shift;; *) E+=(\"$1\"); shift;; esac; done\n{P} --tp $T \"${{E[@]}}\"\n",
    f"go() {{ local m=$1; shift; {P} --m \"$m\" \"$@\"; }}\ngo a --tp 1\ngo 'b c'\n",
    f"retry() {{ local n=$1; shift; for i in $(seq $n); do \"$@\" && return 0; done; }}\nretry 1 {P} --tp 8\n",
    f"run() {{ echo \"+ $*\"; eval \"$*\"; }}\nrun {P} --tp 8 '--x \"a b\"'\n",
    f"coproc {P} --tp 4\nwait\n",
    f"nohup {P} --tp 4 > log 2>&1 &\nwait\nenv A=1 {P} x\ntimeout 20 {P} y\n",
    f"export A=1\n( cd / && {P} sub )\nif true; then {P} --y; fi\n",
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_launches_are_those_that_bash_runs(script: str, tmp_path: Path) -> None:
    ran = run_by_bash(script, tmp_path)
    found = found_in(script)
    assert set(map(tuple, ran)) == set(map(tuple, found))


formats = st.lists(
    st.sampled_from(
        ["%s", "%d", "%q", "%%", "%5s", "%-4s|", "%03d", "\\n", "\\t", " ", "a", "\\x41", "\\101", "'", "-"]
    ),
    max_size=5,
).map("".join)
arguments = st.lists(st.sampled_from(["a", "7", "x y", "it's", "", "-3", '"q"', "$V", "é", "\\"]), max_size=4)


@given(formats, arguments)
@draws(60)
def test_printf_prints_what_bash_prints(form: str, words: list[str]) -> None:
    if form.startswith("-"):
        return
    quoted = " ".join("'" + w.replace("'", "'\\''") + "'" for w in words)
    escaped = form.replace("'", "'\\''")
    script = f"printf -v X '{escaped}' {quoted}\n"
    bash = subprocess.run(
        [BASH or "bash", "--norc", "-c", f'{script}printf "%s" "$X"'],
        capture_output=True,
        env={"LC_ALL": "C.UTF-8"},
        timeout=20,
        check=False,
    )
    if bash.stderr:
        return
    ((found,),) = found_in(f'{script}{P} "$X"\n')
    if found is not None and "%q" not in form:
        assert found == bash.stdout.decode("utf-8")


@given(st.lists(st.sampled_from(["a", "b c", "it's", "", '{"a": 1}', "é$x", "\\n", "*"]), min_size=1, max_size=4))
@draws(40)
def test_quoted_words_read_back(words: list[str]) -> None:
    array = " ".join("'" + w.replace("'", "'\\''") + "'" for w in words)
    for command in (
        f'eval "{P} ${{A[*]@Q}}"',
        f'eval "$(printf "%q " {P} "${{A[@]}}")"',
        f'ssh host "{P} ${{A[@]@Q}}"',
    ):
        assert found_in(f"A=({array})\n{command}\n") == [words]


lines = st.text(alphabet="ab ,:\t", max_size=10)


@given(lines, st.sampled_from([" \t\n", ",", ":", ", ", " :"]), st.integers(1, 3))
@draws(60)
def test_read_splits_as_bash_does(line: str, separators: str, count: int) -> None:
    names = ["X", "Y", "Z"][:count]
    ifs = separators.replace("\n", "\\n").replace("\t", "\\t")
    script = f"IFS=$'{ifs}' read -r {' '.join(names)} <<< '{line}'\n"
    shown = " ".join(f'"${n}"' for n in names)
    bash = subprocess.run(
        [BASH or "bash", "--norc", "-c", f"{script}printf '%s\\0' {shown}"], capture_output=True, timeout=20, check=True
    )
    (found,) = found_in(f"{script}{P} {shown}\n")
    assert found == bash.stdout.decode().split("\0")[:-1]
