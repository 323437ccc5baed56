"""Does a file survive another release, and what changes."""

from __future__ import annotations

import pytest

from spec_lsp.analysis import read_document
from spec_lsp.analysis.fixes import fixes_for
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.upgrade import Upgrade, upgrade
from spec_lsp.catalog.release import Release
from tests.analysis.support import NAME, NOTHING, SERVER, after, seen


def upgraded(text: str, target: str = "0.5.23") -> Upgrade:
    return upgrade(read_document(NAME, text, NOTHING), Options(), NOTHING, Release.parse(target))


def told(text: str, target: str = "0.5.23") -> list[tuple[str, str, str]]:
    """All but changed values."""
    found = [seen(text, d) for d in upgraded(text, target).diagnostics]
    return [one for one in found if one[1] != "changed-value"]


OLD = "# spec-lsp: sglang=0.5.9 gpu=h100\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--tp 2", []),
        # removed, with a successor
        ("--stream-output", [("error", "unknown-flag", "--stream-output")]),
        # newly ambiguous
        ("--cuda-graph-max-bs 64", [("error", "ambiguous-flag", "--cuda-graph-max-bs")]),
        # deprecated
        ("--tp 2 --dp 2 --enable-dp-attention", [("hint", "deprecated-flag", "--enable-dp-attention")]),
        # wrong already: the upgrade changes nothing about it
        ("--max-model-len 4096", []),
        ("--tp two", []),
    ],
)
def test_flags(words: str, expected: list[tuple[str, str, str]]) -> None:
    assert told(f"{OLD}{SERVER} {words}") == expected


def test_variables() -> None:
    text = f"{OLD}SGLANG_ENABLE_SPEC_V2=1 {SERVER}"
    assert told(text) == [("hint", "unread-variable", "SGLANG_ENABLE_SPEC_V2=1")]
    assert told(text, "0.5.12") == []


def test_back_to_an_older_release() -> None:
    text = f"# spec-lsp: sglang=0.5.23 gpu=h100\n{SERVER} --attn-dp-size 1"
    assert told(text, "0.5.9") == [("error", "unknown-flag", "--attn-dp-size")]


def test_release_that_is_not_named() -> None:
    """It is compared with the newest one that takes it."""
    text = f"# spec-lsp: gpu=h100\n{SERVER} --stream-output"
    result = upgraded(text)
    assert told(text) == [("error", "unknown-flag", "--stream-output")]
    assert [str(r) for r in result.present] == ["0.5.19"]


def test_each_launch_by_its_own_release() -> None:
    text = (
        "# spec-lsp: gpu=h100\n"
        f"docker run lmsysorg/sglang:v0.5.9 {SERVER} --stream-output\n"
        f"docker run lmsysorg/sglang:v0.5.21 {SERVER} --stream-output\n"
    )
    result = upgraded(text)
    assert [str(r) for r in result.present] == ["0.5.9", "0.5.21"]
    assert [d.launch for d in result.diagnostics if d.severity == "error"] == [0]


def test_changed_values() -> None:
    text = f"{OLD}{SERVER}"
    changed = {d.key.rpartition(":")[2]: d for d in upgraded(text).diagnostics if d.rule.name == "changed-value"}
    found = changed["hicache_mem_layout"]
    assert found.message == (
        "`--hicache-mem-layout` is `layer_first` in SGLang 0.5.9 and `page_first` in 0.5.23, its default."
    )
    assert text[found.place.start : found.place.end] == "python -m sglang.launch_server"
    assert "tp_size" not in changed


def test_a_typed_value_does_not_change() -> None:
    text = f"{OLD}{SERVER} --hicache-mem-layout layer_first"
    keys = {d.key.rpartition(":")[2] for d in upgraded(text).diagnostics}
    assert "hicache_mem_layout" not in keys


def test_nothing_changes_within_a_release() -> None:
    assert upgraded(f"# spec-lsp: sglang=0.5.23 gpu=h100\n{SERVER} --stream-output").diagnostics == ()


def test_fixes_are_those_of_the_target() -> None:
    text = f"{OLD}{SERVER} --stream-output"
    result = upgraded(text)
    (found,) = [d for d in result.diagnostics if d.rule.name == "unknown-flag"]
    (fix,) = fixes_for(result.analysis, found, result.options, NOTHING)
    assert after(text, fix.edits) == f"{OLD}{SERVER} --incremental-streaming-output"


def test_no_launch() -> None:
    assert upgraded("echo nothing\n").diagnostics == ()
