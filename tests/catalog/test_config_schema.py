"""The schema of `--config` files beside what SGLang's parser, as binding follows it, makes of the same files."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml

from spec_lsp.catalog.binding import bind, words_from
from spec_lsp.catalog.config_file import REFUSES_KEYS, SINCE, WRITES_JSON
from spec_lsp.catalog.config_schema import config_schema
from spec_lsp.catalog.model import Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases

RELEASES = [r for r in releases() if r >= SINCE]
VALUES: tuple[Any, ...] = (
    True, False, 0, 8, -1, 1.5, "8", "1_000", "8.5", "fa3", "auto", "none", "4k", "64Ki", "{}", "[1, 2]", "{", "full", "disabled",
    [1, 2], ["a", "b"], {"decode": {"max_bs": 8}}, {"decode": {"bogus": 8}}, {"bogus": {}}, {"a": 1},
)  # fmt: skip
JSON_TYPES = ("loads", "json_list_type", "parse_cuda_graph_config_arg")


def comparable(flag: Flag, release: Release, value: Any) -> bool:
    """Whether a schema can and should say what SGLang says. An empty list, and `false` for no switch in old releases, is no value."""
    if isinstance(value, bool) and release < REFUSES_KEYS:
        return flag.nargs == 0
    if isinstance(value, dict) and release < WRITES_JSON:
        return False
    return not (isinstance(value, str) and flag.type in JSON_TYPES) and not (
        flag.action == "lora-paths" and value == "{}"
    )


def accepted(release: Release, key: str, value: Any) -> bool:
    """Whether binding takes a file of this one key."""
    text = yaml.safe_dump({key: value})
    words = words_from(["--model-path", "m", "--config", "c.yaml"], "argv")
    return not bind(load(release), words, read_config=lambda path: (path, text)).errors


@cache
def validator(release: Release) -> jsonschema.Draft7Validator:
    schema = config_schema(load(release))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("release", [RELEASES[0], Release(0, 5, 9), RELEASES[-1]], ids=str)
def test_the_schema_takes_what_sglang_takes(release: Release) -> None:
    flags = load(release).by_spelling
    alike: dict[object, list[str]] = {}
    for key in config_schema(load(release))["properties"]:
        flag = flags[f"--{key}"]
        alike.setdefault((flag.action, flag.type, flag.nargs, flag.choices is None, flag.deprecated), []).append(key)
    wrong = [
        (key, value)
        for keys in alike.values()
        for key in (*keys[:5], *keys[-3:])
        for value in VALUES
        if comparable(flags[f"--{key}"], release, value)
        and validator(release).is_valid({key: value}) != accepted(release, key, value)
    ]
    assert wrong == []
    assert len(alike) > 10


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_flag_that_a_file_may_set_has_a_key(release: Release) -> None:
    keys = set(config_schema(load(release))["properties"])
    lacking = [
        flag.name
        for flag in load(release).flags
        if flag.name[2:] not in keys
        and any(accepted(release, flag.name[2:], value) for value in VALUES if value is not False)
    ]
    assert set(lacking) <= {"--help", "--config"}


@pytest.mark.parametrize(
    "file", [{"attention-backnd": "fa3"}, {"page_size": 1}, {"config": "x.yaml"}, ["tp-size"], {"tp-size": None}]
)
def test_what_sglang_would_not_understand_is_refused(file: Any) -> None:
    assert not validator(RELEASES[-1]).is_valid(file)


def test_an_empty_file_is_one() -> None:
    assert validator(RELEASES[-1]).is_valid(None)
    assert validator(RELEASES[-1]).is_valid({})


def test_a_release_without_config_files_says_so() -> None:
    with pytest.raises(ValueError, match=r"has no `--config`"):
        config_schema(load(releases()[0]))
