"""The registry of the kinds of files that launches are written in: each row is whole."""

from __future__ import annotations

import inspect
import re

import pytest

from spec_lsp.syntax.carriers import BY_KIND, CARRIERS, FENCES, LANGUAGES, Carrier, reader_of
from spec_lsp.syntax.kinds import kind_of
from tests.syntax import carriers as written

EACH = pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.kind)
TEMPLATES = {"shell-template", "systemd-template"}
"""Their text is read as that of what they make."""


def test_kinds_and_languages_are_named_once() -> None:
    assert len(BY_KIND) == len(CARRIERS)
    for names in ("vscode", "vim", "languages"):
        languages = [name for carrier in CARRIERS for name in getattr(carrier, names)]
        assert len(set(languages)) == len(languages)
    owners = {name: {c.kind for c in CARRIERS if name in (*c.vscode, *c.vim, *c.languages)} for name in LANGUAGES}
    assert [name for name, kinds in owners.items() if len(kinds) > 1] == []
    assert all(name == name.lower() for carrier in CARRIERS for name in (*carrier.languages, *FENCES))


@EACH
def test_its_reader_is_there_and_takes_what_the_row_says(carrier: Carrier) -> None:
    taken = list(inspect.signature(reader_of(carrier.kind)).parameters)
    assert taken[:2] == ["name", "text"]
    assert "read" in taken
    assert ("nested" in taken) == (carrier.nesting or carrier.kind == "yaml"), (
        f"`nesting` of {carrier.kind} in carriers.py"
    )


@EACH
def test_a_client_or_a_path_can_name_it(carrier: Carrier) -> None:
    assert carrier.vscode or carrier.languages or carrier.names or carrier.kind in TEMPLATES, (
        f"give {carrier.kind} languages or `names`"
    )
    re.compile(carrier.names)
    assert carrier.kind in TEMPLATES or LANGUAGES[carrier.kind] == carrier.kind


@pytest.mark.parametrize("kind", sorted(set(BY_KIND) - TEMPLATES - {"shell"}))
def test_it_is_among_the_carriers_that_the_laws_are_tried_on(kind: str) -> None:
    tried = {kind_of(carrier.name, carrier.write(["--tp", "2"]), None) for carrier in written.CARRIERS}
    assert kind in tried, "write one in tests/syntax/carriers.py: its maps and edits are then tested"
