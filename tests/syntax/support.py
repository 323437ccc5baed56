"""What the tests of syntax/ share: launches as plain lists, and the laws every document keeps."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.analysis import reading
from spec_lsp.syntax import parse
from spec_lsp.syntax import shell as shell_reader
from spec_lsp.syntax.launch import Document, Variant
from spec_lsp.syntax.shell.statements import _cache
from spec_lsp.syntax.word import Word

START = "python -m sglang.launch_server"


def told(word: Word) -> str:
    """A word as tests write it: its text, `start?` with an unknown part, `?*` for a splat, `?+` for an unquoted variable alone."""
    if word.splat:
        return "?+" if word.scalar else "?*"
    return "".join("?" if f.text is None else f.text for f in word.fragments)


def argv(variant: Variant) -> list[str]:
    return [told(w) for w in variant.words]


def launches(
    text: str, read: Callable[[str], str | None] = lambda path: None, name: str = "run.sh"
) -> list[list[list[str]]]:
    """For each launch the argv of each of its variants."""
    return [[argv(v) for v in launch.variants] for launch in parse(name, text, read).launches]


def only(text: str) -> list[str]:
    """The argv of the only variant of the only launch."""
    found = launches(text)
    assert len(found) == 1, found
    assert len(found[0]) == 1, found
    return found[0][0]


def words_of(document: Document) -> list[Word]:
    found = []
    for launch in document.launches:
        for variant in launch.variants:
            found += [*variant.words, *variant.env.values(), *(f.content for f in variant.files)]
    return found


def check_maps(document: Document) -> None:
    """Every verbatim character of every word stands in the file where the map says; all places lie in the file."""
    text = document.text
    for word in words_of(document):
        assert 0 <= word.place.start <= word.place.end
        for fragment in word.fragments:
            place = fragment.place
            if place.document != document.name:
                continue
            assert 0 <= place.start <= place.end <= len(text)
            if fragment.text is not None and fragment.verbatim:
                assert text[place.start : place.end] == fragment.text
            for via in fragment.via:
                assert 0 <= via.start <= via.end
    for launch in document.launches:
        assert launch.variants
        assert 0 <= launch.place.start <= launch.place.end <= len(text) or launch.place.document != document.name
    for problem in document.problems:
        assert 0 <= problem.place.start <= problem.place.end <= len(text) or problem.place.document != document.name


def forget() -> None:
    """Empties what readers keep from one reading to the next."""
    reading._read.clear()
    shell_reader._readings.clear()
    _cache.__init__()  # type: ignore[misc]
