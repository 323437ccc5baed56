"""The command-line words that a tool makes of the keys and values of a mapping."""

from __future__ import annotations

from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.nodes import Node, Part, is_list, is_null, is_scalar, items
from spec_lsp.syntax.yaml.words import loaded

BOOL = "tag:yaml.org,2002:bool"
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", BOOL)


def entry_words(part: Part, name: str, entry: tuple[Node, Node]) -> list[Word]:
    """The words that `name: value` becomes: `true` gives the flag alone, `false` and null give nothing, a list gives its items.

    A name may already have its dashes.
    """
    key, node = entry
    place = part.place_of(key)
    dashes = Fragment("--", Place(place.document, place.start, place.start), False, fixed=True)
    written = part.word(key)
    named = written.fragments if written.text == name else (Fragment(name, place, False),)
    flag = Word(named if name.startswith("--") else (dashes, *named), place)
    if is_list(node):
        return [flag, *(value_word(part, item) for item in items(node))] if items(node) else []
    if is_null(node):
        return []
    if is_scalar(node) and node.tag == BOOL:
        return [flag] if node.value.lower() in ("true", "yes", "on", "y") else []
    return [flag, value_word(part, node)]


def value_word(part: Part, node: Node) -> Word:
    """A value as the tool that reads the file passes it on: numbers as Python writes them."""
    word = part.word(node)
    if not is_scalar(node) or word.text is None or node.style:
        return word
    if node.tag in NUMBERS:
        data = loaded(node)
        if data is not None and str(data) != word.text:
            return Word((Fragment(str(data), word.place, False),), word.place)
    return word
