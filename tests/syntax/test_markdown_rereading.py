"""Reading a page after edits gives what reading it first gives, and leaves the blocks alone that were not edited."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import markdown, parse
from spec_lsp.syntax.launch import Document, Launch
from spec_lsp.syntax.standing import Launches
from tests.draws import draws
from tests.syntax.support import START, check_maps, forget
from tests.syntax.test_shell_rereading import edited

FOLDER = Path(__file__).parent.parent / "corpus" / "markdown"
TEXTS = [p.read_text(encoding="utf-8") for p in sorted(FOLDER.iterdir()) if p.suffix != ".json"]
TYPED = ["```\n", "```bash\n", "> ", "    ", "<!--", "-->\n", "pip install sglang==0.5.9\n", f"{START} --tp 2\n"]
BLOCK = f"Server @\n\n```bash\n# spec-lsp: gpu=h100\n{START} --model-path m@ \\\n  --tp 2\n```\n\n"
PAGE = "# Title\n\n" + "".join(BLOCK.replace("@", str(i)) for i in range(6))


def cold(name: str, text: str) -> Document:
    forget()
    markdown._readings.clear()
    return parse(name, text)


@pytest.mark.parametrize("name", ["page.md", "page.rst"])
@given(st.sampled_from(TEXTS), st.sampled_from([PAGE, *TEXTS]), st.integers(0, 1 << 30))
@draws(60)
def test_reading_after_edits_is_reading_afresh(name: str, first: str, second: str, seed: int) -> None:
    chance = random.Random(seed)
    text = f"{first}\n{second}"
    at, texts = chance.randrange(len(text) + 1), [text]
    for _ in range(8):
        text, at = edited(text, at, chance)
        if chance.random() < 0.3:
            at = text.find("\n", at) + 1
            text = text[:at] + chance.choice(TYPED) + text[at:]
        texts.append(text)
    cold(name, "")
    for document in [parse(name, each) for each in texts]:
        assert document == cold(name, document.text)
        check_maps(document)


def anchored(document: Document) -> list[Launch]:
    assert isinstance(document.launches, Launches)
    return list(document.launches.anchored)


EDITS: dict[str, tuple[Callable[[str], str], int]] = {
    "a letter": (lambda text: text.replace("m3", "m33", 1), 1),
    "a line in a block": (lambda text: text.replace("m3 \\\n", "m3 \\\n  --dp 2 \\\n", 1), 1),
    "text above all": (lambda text: f"More.\n\n{text}", 0),
    "text between": (lambda text: text.replace("Server 3", "The third\n\nserver", 1), 0),
    "a block": (lambda text: text.replace("Server 3", f"{BLOCK}Server 3", 1), 0),
    "a block less": (lambda text: text.replace(BLOCK.replace("@", "3"), "", 1), 1),
    "the release": (lambda text: f"{text}```bash\npip install sglang==0.5.9\n```\n", 6),
}


@pytest.mark.parametrize(("edit", "others"), EDITS.values(), ids=EDITS)
def test_launches_of_blocks_that_are_not_edited_are_the_very_same_objects(
    edit: Callable[[str], str], others: int
) -> None:
    before = anchored(cold("page.md", PAGE))
    after = anchored(parse("page.md", edit(PAGE)))
    assert len(before) == 6
    assert len([one for one in before if not any(one is other for other in after)]) == others


def test_a_block_that_reads_another_file_is_read_again_where_that_changed() -> None:
    text = f"```bash\nsource x.sh\n{START} --tp $N\n```\n"
    for number in ("2", "4"):
        document = parse("sourcing.md", text, {"x.sh": f"N={number}\n"}.get)
        assert [w.text for w in document.launches[0].variants[0].words][-1] == number
