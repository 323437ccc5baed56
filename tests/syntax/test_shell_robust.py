"""Scripts cut off, garbled or of thousands of lines: they are read, with places that hold, at a cost that grows as they do."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from tests.draws import draws
from tests.syntax.support import START, check_maps, forget

CORPUS = sorted((Path(__file__).parent.parent / "corpus" / "shell").glob("*.sh"))
TEXTS = [p.read_text(encoding="utf-8") for p in CORPUS]
P = START


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
@draws(60)
def test_scripts_cut_off(text: str, seed: int) -> None:
    chance = random.Random(seed)
    start = chance.choice([0, 0, chance.randrange(len(text))])
    check_maps(parse("x.sh", text[start : chance.randrange(start, len(text)) + 1]))


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30), st.integers(1, 8))
@draws(60)
def test_scripts_with_characters_swapped(text: str, seed: int, swaps: int) -> None:
    chance = random.Random(seed)
    characters = list(text)
    for _ in range(swaps):
        a, b = chance.randrange(len(text)), chance.randrange(len(text))
        characters[a], characters[b] = characters[b], characters[a]
    check_maps(parse("x.sh", "".join(characters)))


def test_reading_leaves_next_to_nothing_for_the_garbage_collector() -> None:
    """What refers to itself, as an inner function that calls itself does, stays until garbage is looked for: in a server that is seldom."""
    forget()
    for name in ("warm.sh", "x.sh"):
        gc.collect()
        for number, text in enumerate(TEXTS):
            parse(f"{number}/{name}", text)
        left = gc.collect()
    assert left < 3 * len(TEXTS)


def calls_to_read(text: str) -> int:
    """How many functions are called to read a text: its cost, whatever the machine."""
    count = 0

    def counting(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    forget()
    sys.setprofile(counting)
    try:
        parse("long.sh", text)
    finally:
        sys.setprofile(None)
    return count


LONG: dict[str, Callable[[int], str]] = {
    "commands": lambda n: "echo line\n" * n + f"{P} --tp 2\n",
    "launches": lambda n: "".join(f"{P} --port {i} --tp 2\n" for i in range(n)),
    "assignments": lambda n: "".join(f"X{i}={i}\n" for i in range(n)) + f"{P} --tp $X1\n",
    "array": lambda n: "A=(\n" + "  --x 1 # why\n" * n + f')\n{P} "${{A[@]}}"\n',
    "continued": lambda n: f"{P} \\\n" + "  --x 1 \\\n" * n + "  --y\n",
    "arms": lambda n: "case $1 in\n" + "".join(f"m{i}) X={i} ;;\n" for i in range(n)) + f"esac\n{P} --x\n",
    "here-document": lambda n: "ssh host <<EOF\n" + "echo hi\n" * n + f"{P} --tp 1\nEOF\n",
    "launches in a text": lambda n: "ssh host <<EOF\n" + f"{P} --tp 1\n" * n + "EOF\n",
    "files": lambda n: "".join(f"cat > s{i}.sh <<EOF\n{P} --x {i}\nEOF\nbash s{i}.sh\n" for i in range(n)),
    "functions": lambda n: "".join(f"f{i}() {{ {P} --x {i}; }}\nf{i}\n" for i in range(n)),
    "open quotes": lambda n: f"{P} --x it's {1}\n" * n,
    "lines read": lambda n: "mapfile -t A <<EOF\n" + "--x\n" * n + f'EOF\n{P} "${{A[@]}}"\n',
    "comments": lambda n: f"{P} --a \\\n" + "# why\n" * n,
}  # fmt: skip


@pytest.mark.parametrize("kind", LONG)
def test_cost_grows_with_the_script(kind: str) -> None:
    small, large = calls_to_read(LONG[kind](60)), calls_to_read(LONG[kind](240))
    assert large < 6 * small + 2000


@pytest.mark.parametrize("kind", LONG)
def test_long_scripts_are_read(kind: str) -> None:
    document = parse("long.sh", LONG[kind](400))
    check_maps(document)
    assert document.launches


@pytest.mark.parametrize(
    "text",
    [
        f"for ((;;)); do {P} --x; done\n",
        f"for ((i = 0; i < 1000000000; i++)); do {P} --x $i; done\n",
        f"i=0\nwhile (( i < 1000000 )); do ((i++)); done\n{P} $i\n",
        f"cat > s.sh <<'EOF'\nbash s.sh\n{P}\nEOF\nbash s.sh\n",
        f"cat > a.sh <<'EOF'\nbash b.sh; bash b.sh\nEOF\ncat > b.sh <<'EOF'\nbash a.sh; bash a.sh\nEOF\nbash a.sh\n{P}\n",
        f'while read -r x; do echo $x; done <<< "$(seq 1 200)"\n{P} $x\n',
        f"printf -v X '%s' {{1..200}}{{1..3}}\n{P} $X\n",
        f"declare -n A=B B=A\nA=1\n{P} $A $B\n",
        f"declare -n A=A\n{P} $A\n",
        f"for ((i=0; i<64; i++)); do for ((j=0; j<64; j++)); do {P} $i $j; done; done\n",
        f"X='a'; for i in $(seq 1 60); do printf -v X '%s%s' \"$X\" \"$X\"; done; {P} $X\n",
        f'X=a; for i in $(seq 1 60); do echo "$X$X" > f; read -r X < f; done; {P} $X\n',
        f'X=a; for i in $(seq 1 60); do read -r X <<< "$X$X"; done; {P} $X\n',
        f"X=\\'; for i in $(seq 1 60); do X=${{X@Q}}; done; {P} $X\n",
        f"for i in $(seq 1 60); do cat f >> f; echo $i >> f; tee f g < f; done; bash f; {P} $X\n",
        f'for i in $(seq 1 60); do set -- a "$@" "$@"; done; {P} "$@"\n',
        f'for i in $(seq 1 60); do Y=$(printf \'%s%s\' "$Y" "x$Y"); done; {P} $Y\n',
        f"cat s.sh > s.sh\nbash s.sh\n{P} --x\n",
        f"xargs -I\n{P} --x\n",
        f"parallel :::\nscreen -X stuff\ntmux send-keys\nsbatch --wrap\nread -a\nmapfile\nprintf -v\n{P} --x\n",
    ],
)
def test_scripts_that_never_end(text: str) -> None:
    document = parse("x.sh", text)
    check_maps(document)
    assert all(len(launch.variants) <= 64 for launch in document.launches)


WAITING = {
    "a menu": """
pick() {
  while true; do
    read -p "which? " N
    case $N in
      1) K=small; break ;;
      2) K=large; break ;;
      0) exit 0 ;;
      *) echo again ;;
    esac
  done
}
start() {
  local key=$1
  local model="${MODELS[$key]}" size="${SIZES[$key]}"
  if [ -n "$model" ]; then echo "$model"; fi
  [ -n "$size" ] && EXTRA="--tp $size"
  LAUNCH --model-path $model $EXTRA
}
declare -A MODELS=([small]=org/s [large]=org/l) SIZES=([small]=1 [large]=8)
if [ -n "$1" ]; then K=$1; else pick; fi
start "$K"
""",
    "a clock": """
boot() {
  local tag=$1; shift
  LAUNCH $* > $tag.log &
  local i=0
  while ((i < 1500)); do
    curl -sf localhost:30000/health && break
    pgrep -f sglang || { echo "$tag failed"; return 1; }
    sleep 10; i=$((i + 10))
  done
  ((i >= 1500)) && { echo "$tag is late"; return 1; }
  echo "$tag after ${i}s with $(grep -o tokens $tag.log | head -1)"
}
run() { local tag=$1; shift; boot $tag "$@" || return 1; echo done; }
run a --tp 2
run b --tp 4 --enable-metrics
run c --tp 8
""",
    "rounds": """
wait_for() {
  for i in {1..60}; do
    curl -s localhost:$1 && return 0
    kill -0 $2 || { R=lost; return 1; }
    [ $i -gt 30 ] && R=late
  done
  return 1
}
for m in a b c; do
  LAUNCH --model-path $m --port 30000 &
  wait_for 30000 $! || continue
  wait_for 30001 $! && echo "$R"
done
""",
    "counting": """
for ((i = 0; i < 60; i++)); do
  if probe $i; then P=$((30000 + i)); break; fi
  if other; then continue; fi
  Q="$Q $i"
done
LAUNCH --port $P
""",
}


@pytest.mark.parametrize("kind", WAITING)
def test_loops_that_may_be_left_at_every_round(kind: str) -> None:
    """What a loop leaves is told by few of its rounds: their ways would multiply."""
    text = WAITING[kind].replace("LAUNCH", P)
    document = parse("x.sh", text)
    check_maps(document)
    assert document.launches
    assert calls_to_read(text) < 1_000_000
