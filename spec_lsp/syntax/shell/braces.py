"""Brace expansion: `{1,3,5}`, `{1..4}`. It depends only on the text, so it is done while reading, before any variable is known."""

from __future__ import annotations

from itertools import product

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell.ast import Lit, Part, WordNode

MAX_WORDS = 256
MAX_BRACES = 60
RANGE = expression(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z|([A-Za-z])\.\.([A-Za-z])\Z")

Atom = Part
"""A single unquoted character, or a part that braces cannot cut."""


def expand_braces(word: WordNode) -> list[WordNode]:
    """The words that a word with braces expands to; the word itself if there is nothing to expand."""
    if not any(isinstance(p, Lit) and not p.quoted and "{" in p.text for p in word.parts):
        return [word]
    if sum(p.text.count("{") for p in word.parts if isinstance(p, Lit)) > MAX_BRACES:
        return [word]
    expanded = _expand(_atoms(word.parts), 0)
    if expanded is None or not 1 < len(expanded) <= MAX_WORDS:
        return [word]
    return [_joined(word, atoms) for atoms in expanded if atoms]


def _atoms(parts: tuple[Part, ...]) -> list[Atom]:
    atoms: list[Atom] = []
    for part in parts:
        if isinstance(part, Lit) and not part.quoted and part.verbatim:
            atoms.extend(Lit(part.start + i, part.start + i + 1, c, False) for i, c in enumerate(part.text))
        else:
            atoms.append(part)
    return atoms


def _is(atom: Atom, char: str) -> bool:
    return isinstance(atom, Lit) and not atom.quoted and atom.text == char


def _expand(atoms: list[Atom], depth: int) -> list[list[Atom]] | None:
    """All expansions, left to right; None when there are too many."""
    for start, atom in enumerate(atoms):
        if depth < 8 and _is(atom, "{"):
            group = _group(atoms, start)
            if group is None:
                continue
            alternatives, end = group
            inner: list[list[Atom]] = []
            for alternative in alternatives:
                more = _expand(alternative, depth + 1)
                if more is None:
                    return None
                inner.extend(more)
            tails = _expand(atoms[end:], depth + 1)
            if tails is None or len(inner) * len(tails) > MAX_WORDS:
                return None
            return [atoms[:start] + middle + tail for middle, tail in product(inner, tails)]
    return [atoms]


def _group(atoms: list[Atom], start: int) -> tuple[list[list[Atom]], int] | None:
    """The alternatives of the brace at `start` and the index after it, None if it is not an expansion."""
    depth = 0
    pieces: list[list[Atom]] = [[]]
    for i in range(start + 1, len(atoms)):
        atom = atoms[i]
        if _is(atom, "}") and depth == 0:
            if len(pieces) > 1:
                return pieces, i + 1
            numbers = _range(pieces[0])
            return (numbers, i + 1) if numbers else None
        if _is(atom, ",") and depth == 0:
            pieces.append([])
            continue
        depth += _is(atom, "{") - _is(atom, "}")
        pieces[-1].append(atom)
    return None


def _range(atoms: list[Atom]) -> list[list[Atom]] | None:
    if not atoms or not all(isinstance(a, Lit) and not a.quoted for a in atoms):
        return None
    m = RANGE.match("".join(a.text for a in atoms if isinstance(a, Lit)))
    if not m:
        return None
    place = (atoms[0].start, atoms[-1].end)
    if m.group(4):
        low, high, step = ord(m.group(4)), ord(m.group(5)), 1
    else:
        if max(len(m.group(1)), len(m.group(2)), len(m.group(3) or "")) > 9:
            return None
        low, high, step = int(m.group(1)), int(m.group(2)), abs(int(m.group(3) or 1)) or 1
    if abs(high - low) // step >= MAX_WORDS:
        return None
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [[Lit(*place, chr(n) if m.group(4) else str(n), False, False)] for n in numbers]


def _joined(word: WordNode, atoms: list[Atom]) -> WordNode:
    """Atoms as a word; adjacent characters become one literal."""
    parts: list[Part] = []
    for atom in atoms:
        last = parts[-1] if parts else None
        if (
            isinstance(last, Lit)
            and isinstance(atom, Lit)
            and not (last.quoted or atom.quoted)
            and last.verbatim
            and atom.verbatim
            and last.end == atom.start
        ):
            parts[-1] = Lit(last.start, atom.end, last.text + atom.text, False)
        else:
            parts.append(atom)
    texts = [p.text if isinstance(p, Lit) else None for p in parts]
    literal = None if None in texts else "".join(t for t in texts if t is not None)
    return WordNode(word.start, word.end, tuple(parts), literal, word.quoted)
