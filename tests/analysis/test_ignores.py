"""Comments to spec-lsp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.inputs import Options
from spec_lsp.workspace import DiskWorkspace
from tests.analysis.support import PINNED, SERVER, check, offered, rules_of, said

BAD = f"{SERVER} --tp two"


@pytest.mark.parametrize(
    "text",
    [
        f"{BAD}  # spec-lsp: ignore[invalid-value] for now\n",
        f"{BAD}  # spec-lsp: ignore[SPC004]\n",
        f"# spec-lsp: ignore[invalid-value] for now\n{BAD}\n",
        f"# spec-lsp: ignore[unknown-flag, invalid-value]\n{BAD} --max-model-len 3\n",
        f"# spec-lsp: ignore-file[invalid-value]\necho\n\n{BAD}\n{BAD}\n",
        f"{BAD}\n# spec-lsp: ignore-file[invalid-value]\n",
        f"# spec-lsp: ignore[invalid-value]\n{SERVER} \\\n  --page-size 1 \\\n  --tp two\n",
        f"{SERVER} --page-size 1 \\\n  --tp two # spec-lsp: ignore[invalid-value]\n",
        f"# spec-lsp: ignore[invalid-value]\r\n{BAD}\r\n",
    ],
)
def test_silences(text: str) -> None:
    analysis = check(PINNED + text)
    assert [d.rule.name for d in analysis.diagnostics] == []
    assert analysis.ignored > 0


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (f"{BAD}  # spec-lsp: ignore[unknown-flag]\n", ["invalid-value", "unused-ignore"]),
        (f"# spec-lsp: ignore[invalid-value]\n\n{BAD}\n", ["unused-ignore", "invalid-value"]),
        (f"# spec-lsp: ignore[invalid-value]\n{SERVER}\n{BAD}\n", ["unused-ignore", "invalid-value"]),
        (f"# spec-lsp: ignore[invalid-valu]\n{BAD}\n", ["unknown-directive", "invalid-value"]),
        (f"# spec-lsp: ignore\n{BAD}\n", ["unknown-directive", "invalid-value"]),
    ],
)
def test_does_not_silence(text: str, rules: list[str]) -> None:
    assert rules_of(PINNED + text) == rules


def test_ignores_that_are_not_honoured() -> None:
    text = f"{PINNED}{BAD}  # spec-lsp: ignore[invalid-value, unknown-flag]\n"
    assert rules_of(text, options=Options(honour_ignores=False)) == ["invalid-value"]


@pytest.mark.parametrize(
    ("comment", "part"),
    [
        ("sglang=newest", "`newest` is not a release of SGLang"),
        ("gpu=h9000", "`h9000` is not a GPU that spec-lsp knows"),
        ("colour=red", "`colour` is not a directive"),
        ("hello", "Known comments are"),
        ("ignore all", "names its rules in brackets"),
        ("ignore[nonsense]", "There is no rule `nonsense`"),
        ("ignore[invalid-value, nonsense]", "There is no rule `nonsense`"),
    ],
)
def test_unknown_directive(comment: str, part: str) -> None:
    text = f"{PINNED}# spec-lsp: {comment}\n{SERVER}\n"
    (found,) = [d for d in check(text).diagnostics if d.rule.name == "unknown-directive"]
    assert part in found.message
    assert found.severity == "warning"


@pytest.mark.parametrize(
    "comment",
    ["sglang=0.5.19", "gpu=b200", "gpu=hopper", "sglang=v0.5.19 gpu=h100", "sglang=0.5.19, gpu=h100", "sglang==0.5.19"],
)
def test_known_directive(comment: str) -> None:
    assert rules_of(f"# spec-lsp: {comment}\n{SERVER}\n") == []


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (f"# spec-lsp: ignore[unknown-flag]\n{SERVER}\n", f"{SERVER}\n"),
        (f"{SERVER}  # spec-lsp: ignore[unknown-flag] once\n", f"{SERVER}\n"),
    ],
)
def test_an_unused_ignore_is_removed(text: str, result: str) -> None:
    ((_, applicability, changed),) = offered(PINNED + text, "unused-ignore")
    assert (applicability, changed) == ("safe", PINNED + result)


def test_place_of_an_unused_ignore() -> None:
    text = f"{PINNED}{SERVER}  # spec-lsp: ignore[unknown-flag]\n"
    assert said(text) == [("hint", "unused-ignore", "# spec-lsp: ignore[unknown-flag]")]


MODELS = Path(__file__).parent.parent / "models"
RELEASE = "# spec-lsp: sglang=0.5.23\n"
PARTLY_REFUSED = [
    "llama-3.1-8b --attention-backend trtllm_mha --kv-cache-dtype fp8_e4m3",
    "nemotron-h-8b --mamba-backend flashinfer",
    "llama-3.1-8b --enable-deterministic-inference --attention-backend triton --tp-size 4 --disable-custom-all-reduce",
    "llama-3.1-8b --cuda-graph-bs 1 2",
]
"""Refused on some hardware, or since some release, only."""


@pytest.mark.parametrize("words", PARTLY_REFUSED)
@pytest.mark.parametrize("head", [RELEASE, ""])
@pytest.mark.parametrize(
    ("flag", "ignore", "rule"),
    [
        ("--my-flag", "ignore[unknown-flag] our own build", "unknown-flag"),
        ("--my-flag", "ignore-file[SPC001]", "unknown-flag"),
        ("--log-requests-level two", "ignore[invalid-value]", "invalid-value"),
    ],
)
def test_what_is_ignored_makes_nothing_else_worse(words: str, head: str, flag: str, ignore: str, rule: str) -> None:
    """A launch is judged beside an ignored refusal as without it: by comment, and by settings."""
    launch = f"python3 -m sglang.launch_server --model-path {MODELS}/{words}"

    def others(text: str, **options: Any) -> list[tuple[str, str, str]]:
        disk = DiskWorkspace()
        found = analyse(read_document("/w/a.sh", text, disk), Options(**options), disk).diagnostics
        return [(d.rule.name, d.severity, d.message) for d in found if d.rule.name != rule]

    without = others(f"{head}{launch}\n")
    assert without
    assert others(f"{head}# spec-lsp: {ignore}\n{launch} {flag}\n") == without
    assert others(f"{head}{launch} {flag}\n", severities={rule: "off"}) == without


def test_an_ignored_refusal_condones_no_other_of_its_rule() -> None:
    """The release is not named: what older ones say of their own unknown flags stays as it is."""
    launch = f"{SERVER} --enable-linear-replayssm --linear-attn-decode-backend flashinfer"
    told = [d.message for d in check(f"# spec-lsp: ignore[unknown-flag]\n{launch} --my-flag\n").diagnostics]
    assert told == [d.message for d in check(f"{launch}\n").diagnostics if d.rule.name != "unknown-flag"]


def test_comments_that_move_are_heeded_anew() -> None:
    """The launch is the very same object, what comments say of it is not."""
    disk, cache = DiskWorkspace(), Cache()
    launch = f"python3 -m sglang.launch_server --model-path {MODELS}/{PARTLY_REFUSED[0]} --my-flag\n"
    for between, severity in (("", "warning"), ("echo\n", "error"), ("", "warning")):
        text = f"{RELEASE}# spec-lsp: ignore[unknown-flag]\n{between}{launch}"
        found = analyse(read_document("/w/a.sh", text, disk), Options(), disk, cache).diagnostics
        assert [d.severity for d in found if d.rule.name == "trtllm-mha-fp8-prefill-on-sm120"] == [severity]
