"""Settings: reading, merging, what analysis makes of them, and their schema."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields

import pytest
from jsonschema import Draft7Validator

from spec_lsp.analysis.inputs import Target
from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES, FAMILIES
from spec_lsp.settings import Settings, json_schema, merge, options, read_settings, targets


def test_defaults() -> None:
    settings, problems = read_settings({})
    assert settings == Settings()
    assert problems == []
    assert settings.inlay_hints
    assert not settings.unsafe_fixes


@pytest.mark.parametrize(
    ("values", "field", "value"),
    [
        ({"sglang": "0.5.19"}, "sglang", "0.5.19"),
        ({"sglang": "v0.5.19"}, "sglang", "v0.5.19"),
        ({"gpu": "h200"}, "gpu", "h200"),
        ({"gpu": "hopper"}, "gpu", "hopper"),
        ({"unsafe-fixes": True}, "unsafe_fixes", True),
        ({"unsafeFixes": True}, "unsafe_fixes", True),
        ({"fix-all": ["deprecated-flag", "SPC021"]}, "fix_all", ("deprecated-flag", "SPC021")),
        ({"fixAll": []}, "fix_all", ()),
        ({"workspaceDiagnostics": False}, "workspace_diagnostics", False),
        ({"inlayHints": False}, "inlay_hints", False),
        ({"exclude": ["old/"]}, "exclude", ("old/",)),
        ({"models": ["m"]}, "models", ("m",)),
        (
            {"rules": {"unknown-flag": "warning", "SPC020": "off"}},
            "rules",
            {"unknown-flag": "warning", "SPC020": "off"},
        ),
        ({"targets": [{"sglang": "0.5.19"}, {"gpu": "b200"}]}, "targets", ({"sglang": "0.5.19"}, {"gpu": "b200"})),
    ],
)
def test_good(values: dict[str, object], field: str, value: object) -> None:
    settings, problems = read_settings(values)
    assert problems == []
    assert getattr(settings, field) == value


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"colour": 1}, "unknown setting `colour`"),
        ({"sglang": 5}, "5 is not a string"),
        ({"sglang": "newest"}, "is not a release of SGLang"),
        ({"gpu": "h9000"}, "is not a GPU that spec-lsp knows"),
        ({"unsafe-fixes": "yes"}, "is not a boolean"),
        ({"fix-all": [3]}, "every entry must be a string"),
        ({"exclude": "old/"}, "is not an array"),
        ({"exclude": [1]}, "every entry must be a string"),
        ({"rules": ["unknown-flag"]}, "is not an object"),
        ({"rules": {"no-such-rule": "off"}}, "there is no rule 'no-such-rule'"),
        ({"rules": {"unknown-flag": "loud"}}, "'loud' is not one of error"),
        ({"targets": [{}]}, "each target is a table"),
        ({"targets": [{"cpu": "x"}]}, "each target is a table"),
        ({"targets": [{"gpu": "h9000"}]}, "is not a GPU that spec-lsp knows"),
        ({"targets": [{"sglang": "soon"}]}, "is not a release"),
    ],
)
def test_bad(values: dict[str, object], part: str) -> None:
    settings, (problem,) = read_settings(values)
    assert part in problem.message
    assert settings == Settings()


def test_a_bad_key_does_not_spoil_the_good_ones() -> None:
    settings, problems = read_settings({"gpu": "h9000", "sglang": "0.5.19"})
    assert settings.sglang == "0.5.19"
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        ([{"gpu": "h100"}, {"gpu": "b200"}], {"gpu": "b200"}),
        ([{"unsafe-fixes": True}, {"unsafeFixes": False}], {"unsafe_fixes": False}),
        ([{"gpu": "h100"}, {}], {"gpu": "h100"}),
        (
            [{"rules": {"a": "off", "b": "error"}}, {"rules": {"b": "hint"}}],
            {"rules": {"a": "off", "b": "hint"}},
        ),
        ([{"rules": {"a": "off"}}, {"rules": None}], {"rules": None}),
    ],
)
def test_merge(layers: list[dict[str, object]], merged: dict[str, object]) -> None:
    assert merge(*layers) == merged


def test_options() -> None:
    made = options(read_settings({"sglang": "0.5.19", "gpu": "h200", "rules": {"SPC001": "hint"}})[0])
    assert made.otherwise == Target(Release.parse("0.5.19"), DEVICES["h200"])
    assert made.targets == ()
    assert made.severities == {"unknown-flag": "hint"}
    assert made.honour_ignores


def test_targets_replace_what_holds_otherwise() -> None:
    made = options(read_settings({"sglang": "0.5.9", "targets": [{"gpu": "hopper"}, {"sglang": "0.5.19"}]})[0])
    assert made.targets == (Target(None, FAMILIES["hopper"]), Target(Release.parse("0.5.19"), None))
    assert made.otherwise == Target()


@pytest.mark.parametrize(
    ("releases", "gpus", "expected"),
    [
        ([], [], ()),
        (["0.5.9"], [], ({"sglang": "0.5.9"},)),
        ([], ["h100", "b200"], ({"gpu": "h100"}, {"gpu": "b200"})),
        (["0.5.9"], ["h100", "b200"], ({"sglang": "0.5.9", "gpu": "h100"}, {"sglang": "0.5.9", "gpu": "b200"})),
    ],
)
def test_targets(releases: list[str], gpus: list[str], expected: tuple[dict[str, str], ...]) -> None:
    assert targets(releases, gpus) == expected


def test_schema_has_every_setting() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == {f.name.replace("_", "-") for f in fields(Settings)}
    assert all(p["description"].endswith(".") and "type" in p for p in schema["properties"].values())
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({"rules": {"unknown-flag": "off", "SPC021": "hint"}}, True),
        ({"rules": {"unknwon-flag": "off"}}, False),
        ({"rules": {"unknown-flag": "loud"}}, False),
        ({"fix-all": ["all"]}, True),
        ({"fix-all": ["deprecated-flag", "SPC021"]}, True),
        ({"fix-all": ["deprecated"]}, False),
        ({"gpu": "NVIDIA H200", "sglang": "v0.5.19"}, True),
    ],
)
def test_the_schema_refuses_what_reading_refuses(values: dict[str, object], fits: bool) -> None:
    assert Draft7Validator(json_schema()).is_valid(values) == fits == (read_settings(values)[1] == [])


@pytest.mark.parametrize("setting", ["gpu", "sglang"])
def test_what_the_schema_offers_can_be_used(setting: str) -> None:
    for example in json_schema()["properties"][setting]["examples"]:
        assert read_settings({setting: example})[1] == []


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Target(Release.parse("0.5.9"), DEVICES["h100"]), "SGLang 0.5.9 on H100"),
        (Target(Release.parse("0.5.9")), "SGLang 0.5.9"),
        (Target(hardware=DEVICES["b200"]), "B200"),
    ],
)
def test_a_target_in_words(target: Target, text: str) -> None:
    assert str(target) == text


def test_every_rule_can_be_named_before_anything_else_is_loaded() -> None:
    program = (
        "import sys, json; from spec_lsp.settings import read_settings\n"
        'print(json.dumps(read_settings({"rules": json.loads(sys.argv[1])})[1]))'
    )
    named = json.dumps({rule.name: "off" for rule in all_rules()})
    done = subprocess.run([sys.executable, "-c", program, named], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_rule_that_there_is_not_lets_fix_all_apply_no_others() -> None:
    settings, (problem,) = read_settings({"fix-all": ["deprecated-flg"]})
    assert "did you mean `deprecated-flag`?" in problem.message
    assert options(settings).fix_all == frozenset()
