"""The cases of a run, each named so that it can be made again: `file:SEED:NUMBER`, `edits:SEED:NUMBER`, `frames:SEED:NUMBER`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from spec_lsp.workspace import decode
from tests.fuzz.mutate import edit, mutated

CORPUS = Path(__file__).parents[1] / "corpus"
FOLDER = "/w"
"""Where the files seem to be: nothing of this machine is read."""


@cache
def corpus() -> tuple[tuple[str, str], ...]:
    """(name, text) of each file of the corpus that is no golden file."""
    files = [p for p in sorted(CORPUS.rglob("*")) if p.is_file()]
    goldens = {p for p in files if p.suffix == ".json" and _golden(p)}
    return tuple((p.relative_to(CORPUS).as_posix(), decode(p.read_bytes())) for p in files if p not in goldens)


def _golden(path: Path) -> bool:
    return any(path.with_suffix(suffix).exists() for suffix in ("", ".sh", ".yaml", ".yml"))


@dataclass(frozen=True, slots=True)
class Texts:
    """The versions of a document, one after the other."""

    case: str
    name: str
    versions: tuple[str, ...]


def changed_file(seed: str, number: int) -> Texts:
    """A file of the corpus, changed."""
    chance = random.Random(f"file:{seed}:{number}")
    name, text = chance.choice(corpus())
    return Texts(f"file:{seed}:{number}", f"{FOLDER}/{name}", (mutated(text, _others(name, chance), chance),))


def edited_file(seed: str, number: int) -> Texts:
    """A file of the corpus, changed in one case of three, and the texts that some twenty edits make of it."""
    chance = random.Random(f"edits:{seed}:{number}")
    name, text = chance.choice(corpus())
    others = _others(name, chance)
    if chance.random() < 0.33:
        text = mutated(text, others, chance)
    return Texts(f"edits:{seed}:{number}", f"{FOLDER}/{name}", tuple(_versions(text, others, chance)))


def _versions(text: str, others: list[str], chance: random.Random) -> Iterator[str]:
    yield text
    earlier = [text]
    for _ in range(chance.randrange(4, 24)):
        text = chance.choice(earlier[-6:]) if chance.random() < 0.15 else edit(text, others, chance)
        earlier.append(text)
        yield text


def _others(name: str, chance: random.Random) -> list[str]:
    """Texts to take parts of: mostly of the same kind."""
    folder = name.partition("/")[0]
    alike = [text for other, text in corpus() if other.startswith(folder)]
    return [*chance.choices(alike, k=4), chance.choice(corpus())[1]]


def case_of(name: str) -> Texts:
    """The case of a name. Raises ValueError for what names none."""
    kind, seed, number = name.rsplit(":", 2) if name.count(":") >= 2 else ("", "", "")
    makers = {"file": changed_file, "edits": edited_file}
    if kind not in makers or not number.isdigit():
        raise ValueError(f"`{name}` names no case; a case is named file:SEED:NUMBER or edits:SEED:NUMBER")
    return makers[kind](seed, int(number))
