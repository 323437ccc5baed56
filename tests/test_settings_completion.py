"""What may be typed in files with settings."""

from __future__ import annotations

import pytest

from spec_lsp.settings import SEVERITIES, read_settings
from spec_lsp.settings_completion import DECLARED, complete_settings
from spec_lsp.settings_file import read_settings_file

OWN, SHARED = "spec-lsp.toml", "pyproject.toml"


def offered(text: str, name: str = OWN) -> tuple[str, list[str]]:
    """What is replaced at the `‸`, and what by."""
    at = text.index("‸")
    text = text.replace("‸", "")
    found = complete_settings(f"/w/{name}", text, at)
    return ("", []) if found is None else (text[found.place.start : found.place.end], [i.text for i in found.items])


@pytest.mark.parametrize(
    ("text", "replaced", "first"),
    [
        ("‸", "", "sglang = "),
        ("in‸", "in", "sglang = "),
        ('sglang = "0.5.9"\n‸\ntargets = []', "", "gpu = "),
        ("gpu = ‸", "", '"v100"'),
        ('gpu = "h‸"', "h", "v100"),
        ('gpu = "h‸\n', "h", 'v100"'),
        ("inlay-hints = f‸", "f", "true"),
        ("code-lens = ‸", "", '"auto"'),
        ("rules = { unk‸ }", "unk", "unknown-flag = "),
        ('rules = { unknown-flag = "off", amb‸ }', "amb", "ambiguous-flag = "),
        ("[rules]\nunknown-flag = ‸", "", '"error"'),
        ("fix-all = [‸]", "", '"all"'),
        ('fix-all = [\n  "unknown-flag", # why\n  "dep‸",\n]', "dep", "all"),
        ('targets = [{ sglang = "0.5.9", ‸ }]', "", "gpu = "),
        ('[[targets]]\nsglang = "‸"', "", "0.5.23"),
        ("[ru‸]", "ru", "rules"),
    ],
)
def test_in_a_file_of_its_own(text: str, replaced: str, first: str) -> None:
    span, texts = offered(text)
    assert (span, texts[0]) == (replaced, first)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("[tool.‸]", "tool.spec-lsp"),
        ("[project]\nname = [\n  1,\n]\n[tool.spec-lsp]\ng‸", "sglang = "),
        ("[tool.spec-lsp.rules]\nunknown-flag = ‸", '"error"'),
        ("[tool]\nspec-lsp.gpu = ‸", '"v100"'),
    ],
)
def test_in_a_file_that_is_shared(text: str, first: str) -> None:
    assert offered(text, SHARED)[1][0] == first


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# gpu‸", OWN),
        ('gpu = "h100" ‸', OWN),
        ('gpu = "h100" # ‸', OWN),
        ('exclude = ["‸"]', OWN),
        ("nonsense = ‸", OWN),
        ("‸", SHARED),
        ("[tool.ruff]\ng‸", SHARED),
        ("[project]\nname = ‸", SHARED),
    ],
)
def test_nothing_where_nothing_of_ours_stands(text: str, name: str) -> None:
    assert offered(text, name) == ("", [])


@pytest.mark.parametrize("setting", DECLARED)
def test_every_value_that_is_offered_can_be_used(setting: str) -> None:
    keys = offered("‸")[1]
    assert f"{setting} = " in keys
    for value in offered(f"{setting} = ‸")[1] + [
        f"[{v}]" for v in offered(f"{setting} = [‸]")[1] if setting == "fix-all"
    ]:
        if setting == "fix-all" and not value.startswith("["):
            continue
        read = read_settings_file(f"/w/{OWN}", f"{setting} = {value}\n")
        assert read is not None
        assert read.flaws == (), value


def test_every_rule_and_severity_that_is_offered_can_be_used() -> None:
    rules = [text.removesuffix(" = ") for text in offered("[rules]\n‸")[1]]
    severities = [text.strip('"') for text in offered("[rules]\nunknown-flag = ‸")[1]]
    assert severities == list(SEVERITIES)
    assert read_settings({"rules": dict.fromkeys(rules, severities[0])})[1] == []
