"""Scripts with more switches than their ways can be listed: no flag and no launch is lost, any two come together, and nothing is invented."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax import shell as shell_reader
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from tests.draws import draws
from tests.syntax.support import START, check_maps
from tests.syntax.test_shell_bash import BASH, run_by_bash

SIZES = (10, 20, 40, 80)

KINDS = {
    "if": 'if [ "$S{i}" = on ]; then ARGS+=(--flag{i} {i}); fi',
    "default": 'if [[ "${{S{i}:-0}}" == 1 ]]; then ARGS+=(--flag{i} {i}); fi',
    "and": '[[ -n "${{S{i}:-}}" ]] && ARGS+=(--flag{i} {i})',
    "case": 'case "$S{i}" in on) ARGS+=(--flag{i} {i}) ;; *) ;; esac',
    "alternative": "ARGS+=(${{S{i}:+--flag{i} {i}}})",
    "text": 'if [ -n "$S{i}" ]; then EXTRA="$EXTRA --flag{i} {i}"; fi',
    "append": 'if [ -n "$S{i}" ]; then EXTRA+=" --flag{i} {i}"; fi',
    "in front": 'if [ -n "$S{i}" ]; then EXTRA="--flag{i} {i} $EXTRA"; fi',
    "array again": 'if [ -n "$S{i}" ]; then ARGS=("${{ARGS[@]}}" --flag{i} {i}); fi',
    "own array": 'X{i}=(); [[ "$S{i}" == yes ]] && X{i}=(--flag{i} {i}); ARGS+=("${{X{i}[@]}}")',
    "function": 'add{i}() {{ if [ "$1" = yes ]; then ARGS+=(--flag{i} {i}); fi; }}; add{i} "$S{i}"',
    "else": 'if [ "$S{i}" = on ]; then ARGS+=(--flag{i} {i}); else ARGS+=(--other{i}); fi',
    "two ways": 'V{i}=a; [ -n "$S{i}" ] && V{i}=b; ARGS+=(--value{i} "$V{i}"); [ "$V{i}" = b ] && ARGS+=(--flag{i} {i})',
}


def script(kinds: list[str], start: str = START) -> str:
    lines = [KINDS[kind].format(i=i) for i, kind in enumerate(kinds)]
    return "\n".join(["ARGS=()", "EXTRA=", *lines, f'{start} --model-path org/m "${{ARGS[@]}}" $EXTRA', ""])


def only_launch(text: str) -> Launch:
    document = parse("run.sh", text)
    check_maps(document)
    assert len(document.launches) == 1, document.launches
    return document.launches[0]


def flags_on(launch: Launch) -> list[set[int]]:
    return [
        {int(w.text[6:]) for w in v.words if w.text is not None and w.text.startswith("--flag")}
        for v in launch.variants
    ]


def missing_pairs(ways: list[set[int]], switches: int) -> set[tuple[int, bool, int, bool]]:
    wanted = {(a, x, b, y) for a, b in combinations(range(switches), 2) for x, y in product((False, True), repeat=2)}
    return wanted - {(a, a in way, b, b in way) for way in ways for a, b in combinations(range(switches), 2)}


@pytest.mark.parametrize("kind", KINDS)
def test_any_two_switches_come_together(kind: str) -> None:
    for switches in (10, 80):
        launch = only_launch(script([kind] * switches))
        assert not missing_pairs(flags_on(launch), switches)
        assert len(launch.variants) <= MAX_VARIANTS
        assert launch.ways == "pairs"
        assert not any(w.splat for v in launch.variants for w in v.words)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_is_linear_in_switches(kind: str) -> None:
    steps = {}
    for switches in SIZES:
        name = f"{kind}{switches}.sh"
        parse(name, script([kind] * switches))
        run = shell_reader._readings[name].run
        steps[switches] = run.evaluations + run.steps
    for switches in SIZES[:-1]:
        assert steps[2 * switches] <= 2.3 * steps[switches] + 64, steps


def test_few_switches_are_all_looked_at() -> None:
    launch = only_launch(script(["if"] * 5))
    assert launch.ways == "all"
    assert len(launch.variants) == 2**5


def test_a_launch_is_found_however_many_ways_lead_to_it() -> None:
    arms = "\n".join(
        f'  m{i}) MODEL="${{MODEL:-org/m{i}}}"; R="--reasoning-parser qwen3"; EXTRA="${{EXTRA:-}} --tool-call-parser p{i}" ;;'
        for i in range(20)
    )
    text = (
        'EXTRA="${EXTRA:-}"\ncase "$1" in\n' + arms + "\n  *) exit 1 ;;\nesac\n"
        'if [[ -n "${NGRAM:-}" ]]; then EXTRA="$EXTRA --speculative-algorithm NGRAM"; fi\n'
        f'if [[ "${{SECURE:-0}}" == "1" ]]; then CMD=(/usr/local/bin/other.py); else CMD=({START}); fi\n'
        'CMD+=(--model-path "$MODEL")\n[[ -n "$R" ]] && CMD+=($R)\n[[ -n "${EXTRA:-}" ]] && CMD+=($EXTRA)\nexec "${CMD[@]}"\n'
    )
    launch = only_launch(text)
    words = [[w.text for w in v.words] for v in launch.variants]
    for i in range(20):
        assert any(f"org/m{i}" in way and f"p{i}" in way for way in words)
        assert not any(f"org/m{i}" in way and f"p{j}" in way for way in words for j in range(20) if j != i)
    assert any("NGRAM" in way for way in words)


def test_a_switch_asked_about_twice_goes_one_way() -> None:
    body = "\n".join(
        f'if [ "$S{i}" = on ]; then ARGS+=(--flag{i} {i}); fi\nif [ "$S{i}" != on ]; then ARGS+=(--off{i}); fi'
        for i in range(12)
    )
    launch = only_launch(f'ARGS=()\n{body}\n{START} "${{ARGS[@]}}"\n')
    for variant in launch.variants:
        texts = {w.text for w in variant.words}
        assert all((f"--flag{i}" in texts) != (f"--off{i}" in texts) for i in range(12))


def test_arms_that_exclude_each_other_are_in_no_way_together() -> None:
    body = "\n".join(f'if [ "$MODE" = m{i} ]; then ARGS+=(--flag{i}); fi' for i in range(12))
    others = "\n".join(f'[ -n "$T{i}" ] && ARGS+=(--also{i})' for i in range(12))
    launch = only_launch(f'ARGS=()\n{body}\n{others}\n{START} "${{ARGS[@]}}"\n')
    found = flags_on(launch)
    assert set.union(*found) == set(range(12))
    assert all(len(way) <= 1 for way in found)


def test_ways_that_end_the_script_lead_to_no_launch() -> None:
    switches = script(["and"] * 20, START)
    guard = '[ -z "$EXTRA$S3" ] && exit 1\nif [[ -n "${S5:-}" ]]; then [[ -n "${S7:-}" ]] || exit 2; fi\n'
    found = flags_on(only_launch(switches.replace(START, guard + START)))
    assert found
    assert all(7 in way for way in found if 5 in way)


def test_functions_are_called_once_with_what_they_are_given() -> None:
    text = script(["if"] * 20, f'go() {{ {START} "$@"; }}\ngo')
    launch = only_launch(text)
    assert not missing_pairs(flags_on(launch), 20)


def test_a_text_that_a_shell_runs_keeps_its_ways() -> None:
    for run in ('eval "$CMD"', 'bash -c "$CMD"', 'ssh host "$CMD"', "$CMD"):
        lines = "\n".join(f'[ -n "$S{i}" ] && CMD="$CMD --flag{i} {i}"' for i in range(20))
        launch = only_launch(f"CMD='{START}'\n{lines}\n{run}\n")
        assert not missing_pairs(flags_on(launch), 20), run
        assert launch.ways == "pairs"


# What bash itself does.

SWITCHES = 4
ASKS = '[ "$S{a}" = on ]'
STATEMENTS = (
    f"if {ASKS}; then A+=(--a{{a}}); fi",
    f"if {ASKS}; then A+=(--b{{a}}); else A+=(--c{{a}}); fi",
    f'{ASKS} && E="$E --d{{a}}"',
    f'{ASKS} || E+=" --e{{a}}"',
    f'if {ASKS}; then if {ASKS.replace("a", "b")}; then A=("${{{{A[@]}}}}" --f{{a}}{{b}}); fi; fi',
    f'if {ASKS}; then X=x{{a}}; else X=y; fi; A+=(--x "$X")',
    f'if {ASKS}; then :; elif {ASKS.replace("a", "b")}; then A=(--g "${{{{A[@]}}}}"); else E=; fi',
    f'f{{a}}() {{{{ if {ASKS}; then A+=(--h "$1"); return; fi; A+=(--i); }}}}; f{{a}} "$X"',
    f"if {ASKS}; then A=(); fi",
    f"{ASKS} && {ASKS.replace('a', 'b')} && exit 3",
    'case "$C{a}" in on) A+=(--k{a}) ;; *) E="--l{a} $E" ;; esac',
    'for v in 1 2; do E="$E --j $v"; done',
)


def all_ways(script: str, folder: Path) -> set[tuple[str, ...]]:
    """The arguments of each launch that bash runs, whichever switches are on."""
    names = [f"{letter}{i}" for letter in "SC" for i in range(SWITCHES)]
    turns = " ".join(f"{name}=; (( n >> {i} & 1 )) && {name}=on;" for i, name in enumerate(names))
    return set(
        map(tuple, run_by_bash(f"for ((n = 0; n < {4**SWITCHES}; n++)); do (\n{turns}\n{script}\n); done\n", folder))
    )


@pytest.mark.skipif(BASH is None, reason="needs bash")
@draws(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.integers(0, SWITCHES - 1), st.integers(0, SWITCHES - 1)),
        min_size=12,
        max_size=20,
    )
)
def test_what_is_found_is_what_bash_can_do(tmp_path: Path, drawn: list[tuple[str, int, int]]) -> None:
    """Each way is one that bash goes, and no word that bash can pass is missing."""
    body = "\n".join(dict.fromkeys(statement.format(a=a, b=b) for statement, a, b in drawn))
    text = f'A=()\nE=\nX=\n{body}\n{START} "${{A[@]}}" $E\n'
    found = [v for launch in parse("run.sh", text).launches for v in launch.variants]
    there_are = all_ways(text, tmp_path)
    assert {tuple(w.text or "" for w in v.words) for v in found} <= there_are
    if not any(
        forgets in body for forgets in ("A=(); fi", "E=; fi")
    ):  # what is only there on three turns may not come up
        assert {w.text for v in found for w in v.words} == {word for way in there_are for word in way}
    assert bool(found) == bool(there_are)


@pytest.mark.parametrize("run", ["", "bash run.sh\n", "cat run.sh | bash\n", "chmod +x run.sh; ./run.sh\n"])
def test_a_file_that_a_script_writes_keeps_its_ways(run: str) -> None:
    lines = "".join(f'[ -n "$S{i}" ] && X="$X --flag{i} {i}"\n' for i in range(12))
    launch = only_launch(f"X=\n{lines}cat > run.sh <<EOF\n{START} $X\nEOF\n{run}")
    assert not missing_pairs(flags_on(launch), 12)
