"""Whatever the text, `parse` answers; and what it kept from the last reading never shows."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from tests.draws import draws
from tests.syntax.support import START, check_maps, forget

CORPUS = sorted((Path(__file__).parent.parent / "corpus" / "shell").glob("*.sh"))
TEXTS = [p.read_text(encoding="utf-8") for p in CORPUS]

SCRAPS = ["'", '"', "`", "$(", "${", ")", "}", "\\", "\n", "<<EOF\n", "(", "{", "if ", "fi", "done", "case x in", "$((", "|", "&", ";;", "#", "\0", "\ud800", "\U0001f600", "[[ ", "]]", "A+=(", "=", "  ", "for x in ", "while :; do ", "\r", "function f", "$'", "$\"", "<(", "esac", "exit", "@", "\\\n"]  # fmt: skip

NASTY = [
    "sglang",
    "\0sglang\0",
    f"{START} \ud800",
    f"{START} '" + "a" * 1_000_000,
    f"{START} " + "a " * 200_000,
    "sglang " + "(" * 50_000,
    "sglang " + "$(" * 20_000,
    "sglang " + "${x:-" * 20_000,
    "sglang " + "`" * 20_001,
    "sglang " + "{a,b}" * 60,
    "sglang " + "{{{{{{{{{{" * 200,
    "sglang\n" + "if x; then\n" * 3_000,
    "sglang\n" + "'\n" * 3_001,
    "sglang\n" + 'a "b\n' * 2_001,
    "sglang\n" + "cat <<EOF\n" * 2_000,
    f"f() {{ f; }}\nf\n{START}",
    f"f() {{ f; f; }}\nf\n{START}",
    f"while true; do X=$X$X; {START} $X; done",
    f"X=aaaa\nfor i in {{1..60}}; do X=$X$X; done\n{START} $X",
    f"for a in {{1..60}}; do for b in {{1..60}}; do for c in {{1..60}}; do {START} $a$b$c; done; done; done",
    'eval "$X"\nX=\'eval "$X" sglang\'\neval "$X"',
    "X='eval \"$X$X\" sglang'\neval \"$X\"",
    f"source self.sh\n{START}",
    "\n".join(f"if [ $A{i} = x ]; then F=\"$F --f{i}\"; fi" for i in range(60)) + f"\n{START} $F",
    "\n".join(f"case $A{i} in a) B{i}=1;; b) B{i}=2;; *) B{i}=$B{i - 1};; esac" for i in range(40)) + f"\n{START} $B39",
    f"X=$(( {'(' * 500} 1 {')' * 500} ))\n{START} $X",
    f"X=$((2**60**60**60))\n{START} $X",
    f"[[ {'(' * 300} a {')' * 300} ]] && {START}",
    f"[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa =~ ^(a+)+$ ]] && {START}",
    f"X={'a' * 1900}b\n{START} ${{X##*a*a*a*a*a*a*a}}",
]  # fmt: skip


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_texts(text: str) -> None:
    document = parse("x.sh", text, {"self.sh": "source self.sh\n"}.get)
    check_maps(document)
    assert all(len(launch.variants) <= 64 for launch in document.launches)


LANGUAGES = (
    "python",
    "markdown",
    "dockerfile",
    "makefile",
    "just",
    "systemd",
    "yaml",
    "helm",
    "dockercompose",
    "json",
    "procfile",
    "supervisor",
    "jenkinsfile",
    "terraform",
    "toml",
    "",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_nasty_texts_in_every_language(language: str) -> None:
    """A client's language id may be any, whatever the text."""
    for text in (
        *(text[:5_000] for text in NASTY),
        "(",
        " sglang x",
        "sglang\n  )",
        " (sglang",
        "\n\t)sglang",
        "'sglang",
    ):
        check_maps(parse("/w/x", text, language=language))


@given(st.text(max_size=200))
@draws(60)
def test_any_text(text: str) -> None:
    for name in (
        "a.sh",
        "a.yaml",
        "a",
        "a.py",
        "Dockerfile",
        "a.json",
        "Procfile",
        "supervisord.conf",
        "Jenkinsfile",
        "a.tf",
    ):
        parse(name, "# sglang\n" + text, looks_like_config=lambda keys: True)


def mangled(text: str, chance: random.Random, edits: int) -> str:
    for _ in range(edits):
        at = chance.randrange(len(text) + 1)
        if chance.random() < 0.5:
            text = text[:at] + chance.choice(SCRAPS) + text[at:]
        else:
            text = text[:at] + text[at + chance.randrange(1, 30) :]
    return text


@given(st.sampled_from(TEXTS or [START]), st.integers(0, 1 << 30), st.integers(1, 6))
@draws(100)
def test_random_edits_never_raise_and_keep_maps(text: str, seed: int, edits: int) -> None:
    check_maps(parse("x.sh", mangled(text, random.Random(seed), edits)))


@given(st.sampled_from(TEXTS or [START]), st.integers(0, 1 << 30))
@draws(60)
def test_reading_again_is_reading_anew(text: str, seed: int) -> None:
    """A text read after many others gives what it gives when it is read first."""
    chance = random.Random(seed)
    for _ in range(4):
        text = mangled(text, chance, 1)
        warm = parse("x.sh", text)
        forget()
        cold = parse("x.sh", text)
        assert warm == cold
        parse("x.sh", text)


@pytest.mark.parametrize(
    "filling", ["--x y ", "$X ", "a", "'", '"a" ', "{a,b}", "`", "$(", "((", "; ", "\\ ", "|a", "{", "<<E "]
)
def test_a_line_of_ten_million_characters_is_left_alone_at_once(filling: str) -> None:
    text = f"python -m sglang.launch_server --tp 2 {filling * (10_000_000 // len(filling))}\n"
    began = time.monotonic()
    assert parse("run.sh", text).launches == ()
    assert time.monotonic() - began < 2


def test_a_file_of_many_long_lines_is_read() -> None:
    text = f"python -m sglang.launch_server --tp 2 # {'x' * 100_000}\n" * 8
    assert len(parse("run.sh", text).launches) == 8
