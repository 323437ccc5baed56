"""When Python looks for garbage."""

from __future__ import annotations

import gc

import pytest

from spec_lsp.cli.garbage import COLLECT_EVERY, collected_seldom


def test_python_looks_as_often_as_before_afterwards() -> None:
    before = gc.get_threshold()

    @collected_seldom()
    def seen() -> int:
        return gc.get_threshold()[0]

    @collected_seldom()
    def failing() -> None:
        raise LookupError

    assert seen() == seen() == COLLECT_EVERY
    with pytest.raises(LookupError):
        failing()
    assert gc.get_threshold() == before
