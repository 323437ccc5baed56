from typing import Any

import pytest

from spec_lsp.catalog import store
from spec_lsp.catalog.model import Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import fields_of_any, load, releases

from .parsers import rows

CLASSES = {
    "store": "_StoreAction",
    "store-true": "_StoreTrueAction",
    "boolean": "BooleanOptionalAction",
    "help": "_HelpAction",
    "lora-paths": "LoRAPathAction",
    "deprecated": "DeprecatedAction",
    "deprecated-true": "DeprecatedStoreTrueAction",
    "deprecated-const": "DeprecatedStoreConstAction",
    "deprecated-alias": "DeprecatedAliasStoreAction",
}


def as_argparse(flag: Flag) -> dict[str, Any]:
    return {
        "flags": list(flag.spellings),
        "dest": flag.dest,
        "nargs": flag.nargs,
        "const": None
        if flag.action == "deprecated-const"
        else flag.const,  # SGLang keeps it in an attribute of its own
        "default": flag.default,
        "type": flag.type,
        "choices": sorted(map(str, flag.choices)) if flag.choices else None,
        "required": flag.required,
        "action": CLASSES[flag.action],
    }


def test_every_release_is_shipped() -> None:
    assert [str(r) for r in store.releases()] == list(rows())
    assert len(rows()) == 31


@pytest.mark.parametrize("name", list(rows()))
def test_every_flag_is_as_argparse_has_it(name: str) -> None:
    flags = store.load(Release.parse(name)).flags
    assert [as_argparse(f) for f in flags] == rows()[name]
    assert [type(f.default) for f in flags] == [type(r["default"]) for r in rows()[name]]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("0.5.9", "0.5.9"),
        ("0.5.9.post1", "0.5.9"),
        ("0.5.13", "0.5.12.post1"),
        ("0.5.99", "0.5.23"),
        ("0.3.0", "0.4.6.post5"),
    ],
)
def test_a_release_that_is_not_shipped_takes_the_nearest_older_one(asked: str, given: str) -> None:
    assert str(store.nearest(Release.parse(asked))) == given


def test_the_data_is_small() -> None:
    assert sum(f.stat().st_size for f in store.DATA.iterdir()) < 400_000


def test_fields_and_spellings() -> None:
    old, new = store.load(Release.parse("0.5.9")), store.load(Release.parse("0.5.23"))
    for catalog in (old, new):
        assert catalog.by_spelling["--tp-size"].field == "tp_size"
        assert catalog.by_field["tp_size"].name in ("--tensor-parallel-size", "--tp-size")
        assert catalog.defaults["tp_size"] == 1
        assert catalog.flag("--no-such-flag") is None
    aliases = store.load(Release.parse("0.5.18")).by_field
    assert aliases["cuda_graph_max_bs_decode"].name == "--cuda-graph-max-bs-decode"


def test_the_same_rows_give_the_same_bytes(tmp_path, monkeypatch) -> None:
    table = store.read_table(store.FLAGS)
    before = (store.DATA / store.FLAGS).read_bytes()
    monkeypatch.setattr(store, "DATA", tmp_path)
    store.write_table(store.FLAGS, {r: [table.rows[i] for i in ids] for r, ids in table.members.items()})
    assert (tmp_path / store.FLAGS).read_bytes() == before


@pytest.mark.parametrize(
    ("release", "name", "type_", "default"),
    [
        ("0.5.9", "SGLANG_ENABLE_SPEC_V2", "bool", False),
        ("0.5.23", "SGLANG_RAGGED_VERIFY_MODE", "str", "static"),
    ],
)
def test_environment(release: str, name: str, type_: str, default: object) -> None:
    variable = store.environment(Release.parse(release))[name]
    assert (variable.type, variable.default) == (type_, default)


def test_a_variable_that_was_removed() -> None:
    assert "SGLANG_ENABLE_SPEC_V2" not in store.environment(Release.parse("0.5.23"))


def test_fields_of_any_release() -> None:
    assert fields_of_any() == frozenset().union(*(load(release).defaults for release in releases()))
