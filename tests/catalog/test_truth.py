"""Binding against verdicts of the real SGLang on misspelt, abbreviated, repeated and mistyped launches and `--config` files."""

from __future__ import annotations

import gzip
import json

import pytest

from spec_lsp.catalog.binding import Binding, bind, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load

from .parsers import DATA

CASES = [json.loads(line) for line in gzip.decompress((DATA / "verdicts.jsonl.gz").read_bytes()).splitlines()]


def bound(case: dict) -> Binding:
    def read(path: str) -> tuple[str, str]:
        name = path.removeprefix("{files}/")
        if name not in case.get("files", {}):
            raise FileNotFoundError(path)
        return name, case["files"][name]

    return bind(load(Release.parse(case["release"])), words_from(case["argv"]), read_config=read)


@pytest.mark.parametrize("release", sorted({c["release"] for c in CASES}, key=Release.parse))
def test_verdicts(release: str) -> None:
    for case in (c for c in CASES if c["release"] == release):
        assert bound(case).fatal is case["refused"], case
