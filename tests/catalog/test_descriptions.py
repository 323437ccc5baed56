import re

import pytest

from spec_lsp.catalog.descriptions import FOLDER, describe, describe_value, described_values, descriptions
from spec_lsp.catalog.store import load, releases


@pytest.mark.parametrize("release", releases(), ids=str)
def test_no_flag_is_without_a_description(release) -> None:
    assert [f.name for f in load(release).flags if not describe(f)] == []


def test_nothing_is_described_twice_or_in_vain() -> None:
    keys = [m[1] for p in FOLDER.glob("*.toml") for m in re.finditer(r"^(\w+) = ", p.read_text("utf-8"), re.M)]
    assert len(keys) == len(set(keys))
    known = {n for r in releases() for f in load(r).flags for n in (f.field, f.name[2:].replace("-", "_"))}
    assert sorted(set(keys) - known) == []


TOPICS = {
    "speculative": "speculative",
    "disaggregation": "disaggregation",
    "lora": "adapters",
    "hicache": "memory",
    "eplb": "experts",
}
"""Where flags of one beginning are described."""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_a_description_is_in_the_file_of_its_topic(path) -> None:
    newest = {name for f in load(releases()[-1]).flags for name in (f.field, f.name[2:].replace("-", "_"))}
    keys = re.findall(r"^(\w+) = ", path.read_text("utf-8"), re.M)
    if path.stem == "removed":
        assert [key for key in keys if key in newest] == [], (
            "the newest release has them: describe them with their topic"
        )
        return
    assert [key for key in keys if key not in newest] == [], (
        "the newest release lacks them: they belong in removed.toml"
    )
    elsewhere = {key: topic for key in keys if (topic := TOPICS.get(key.partition("_")[0], path.stem)) != path.stem}
    assert elsewhere == {}, "each belongs in the file named beside it"


@pytest.mark.parametrize("name", sorted(descriptions()))
def test_a_description_is_one_or_two_plain_sentences(name: str) -> None:
    text = descriptions()[name]
    assert text[0].isupper() or text[0] == "`"
    assert text.endswith(".")
    assert len(text) <= 240
    assert text.count("`") % 2 == 0


def test_flags_that_descriptions_name_exist() -> None:
    known = {s for r in releases() for s in load(r).by_spelling} | {"--no-ple-offload-embedding", "--model-type"}
    named = {(n, f) for n, t in descriptions().items() for f in re.findall(r"`(--[a-z0-9-]+)", t)}
    assert sorted((n, f) for n, f in named if f not in known) == []


@pytest.mark.parametrize("name", ["tp_size", "tensor_parallel_size"])
def test_by_name(name: str) -> None:
    assert describe(name) == describe(load(releases()[0]).by_spelling["--tp-size"])
    assert describe("no_such_field") == ""


def test_values_that_are_described_exist() -> None:
    for field, values in described_values().items():
        flags = [flag for release in releases() if (flag := load(release).by_field.get(field)) is not None]
        choices = {str(choice) for flag in flags for choice in flag.choices or ()}
        assert not values.keys() - choices, field


def test_values_are_described_for_every_field_that_takes_them() -> None:
    assert describe_value("attention_backend", "fa3")
    assert describe_value("speculative_draft_attention_backend", "fa3") == describe_value("attention_backend", "fa3")
    assert describe_value("attention_backend", "no-such") == ""
