"""Whatever the text of a YAML file, it is read; and what was kept from the last reading never shows."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.analysis import reading
from spec_lsp.analysis.reading import read_with
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.yaml import nodes, reader
from tests.draws import draws
from tests.syntax.support import check_maps, forget

CORPUS = sorted(p for p in (Path(__file__).parent.parent / "corpus" / "yaml").iterdir() if p.suffix != ".json")
TEXTS = [p.read_bytes().decode("utf-8") for p in CORPUS]
SCRAPS = ["'", '"', "{", "}", "[", "]", "{{", "}}", "{%", "%}", "{{- if .x }}", "{{ end }}", "{{- else }}", ": ", "- ", "#", "&a ", "*a", "<<: *a\n", "|\n", ">\n", "---\n", "\n", "\t", "\r", "\0", "\ufeff", "\U0001f600", "\u2028", "!!x ", "? ", "$(", "${", "\\", "%", "@", "`", "  ", "sglang"]  # fmt: skip
NASTY = [
    "sglang: " + "[" * 50_000,
    "sglang: " + "{a: " * 50_000,
    "- " * 50_000 + "sglang",
    "sglang: &a [*a]",
    "a: &a {b: *a, command: [sglang, serve, m]}",
    "a: &a {<<: *a, command: [sglang, serve, m]}",
    "a: &a [x, *a]\nargs: *a\nimage: sglang",
    "x: &x " + "\n".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" if i else "a0: &a0 [sglang]" for i in range(40)),
    "\n".join(f"a{i}: &a{i} {{b: *a{i - 1}, c: *a{i - 1}}}" if i else "a0: &a0 {run: sglang serve m}" for i in range(40)),
    "image: sglang\nargs: [" + "--a, " * 10_000 + "]",
    "run: |\n" + "  sglang serve m\n" * 1_000,
    "sglang\n" + "---\n" * 20_000,
    "sglang: {{ " * 10_000,
    "sglang:\n" + "{{- if .a }}\n" * 3_000,
    "sglang:\n" + "\n".join(f"{{{{- if .a{i} }}}}\n- --x\n{{{{- end }}}}" for i in range(500)),
    "sglang: '" + "''" * 100_000,
    'sglang: "' + "\\n" * 100_000,
    "run: |\n  sglang serve m\n" + "\n" * 100_000,
    "services: {a: {extends: b, command: [sglang]}, b: {extends: a}}",
    "services: {a: {extends: {service: a}, image: sglang, command: [--a]}}",
    "base: {backend: {sglang_config: {decode: {a: 1}}}}\n" + "\n".join(f"override_{i}: {{name: x}}" for i in range(500)),
    "base: {backend: {sglang_config: {decode: {a: 1}}}}\nzip_override_a: {name: [" + "x, " * 5_000 + "]}",
    "backend: {sglang_config: [1]}",
    "backend: {sglang_config: {decode: [1], prefill: null, aggregated: 3}}",
    "? [sglang]\n: 1\n? {a: b}\n: run: sglang serve m",
]  # fmt: skip


def read(text: str) -> Document:
    return read_with("x.yaml", text, lambda path: None, "yaml")


def cold() -> None:
    forget()
    reading._read.clear()
    reader._readings.clear()
    nodes._roots.clear()


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_texts(text: str) -> None:
    began = time.process_time()
    document = read(text)
    check_maps(document)
    assert all(len(launch.variants) <= 64 for launch in document.launches)
    assert time.process_time() - began < 20


def mangled(text: str, chance: random.Random, edits: int) -> str:
    for _ in range(edits):
        at = chance.randrange(len(text) + 1)
        if chance.random() < 0.5:
            text = text[:at] + chance.choice(SCRAPS) + text[at:]
        else:
            text = text[:at] + text[at + chance.randrange(1, 30) :]
    return text


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30), st.integers(1, 6))
@draws(150)
def test_random_edits_never_raise_and_keep_maps(text: str, seed: int, edits: int) -> None:
    check_maps(read(mangled(text, random.Random(seed), edits)))


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
@draws(60)
def test_reading_again_is_reading_anew(text: str, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        text = mangled(text, chance, 1)
        warm = read(text)
        cold()
        assert warm == read(text)
        read(text)


@pytest.mark.parametrize("path", [p for p in CORPUS if b"\n---" in p.read_bytes()], ids=lambda p: p.name)
def test_documents_that_move_are_those_read_anew(path: Path) -> None:
    """Lines that come and go between the documents of a file move those below, and not what these read of those above."""
    text = path.read_bytes().decode("utf-8")
    pieces = text.split("\n---")
    for i in range(len(pieces)):
        cold()
        read(text)
        for lines in ("\n# a\n#", "\n#\n", ""):
            warm = read("\n---".join([*pieces[:i], pieces[i] + lines, *pieces[i + 1 :]]))
            cold()
            assert warm == read(warm.text)
            read(text)


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
@draws(60)
def test_a_document_cut_off_anywhere_is_read(text: str, seed: int) -> None:
    check_maps(read(text[: random.Random(seed).randrange(len(text) + 1)]))


@given(st.text("sglang:-|>{}[]'\"&*!#%@ \n\t\r\\$()aé\u2028", max_size=120))
@draws(150)
def test_any_text(text: str) -> None:
    check_maps(read("# sglang\n" + text))
