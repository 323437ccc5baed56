"""Taking a binding over to another release gives what binding there gives, or nothing."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.binding import bind, rebound, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from tests.truth.score import DATA, rows_of


@pytest.mark.parametrize("older", ["0.5.21", "0.5.16", "0.5.12", "0.5.9", "0.5.6"])
def test_rebound_is_bound(older: str) -> None:
    newest, catalog = load(releases()[-1]), load(Release.parse(older))
    taken = 0
    for row in rows_of(DATA / "0.5.23-h100.jsonl.gz")[:400]:
        words = words_from(row["argv"])
        again = rebound(bind(newest, words), catalog)
        if again is not None:
            taken += 1
            assert again == bind(catalog, words), row["argv"]
    assert taken
