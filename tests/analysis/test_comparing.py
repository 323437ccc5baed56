"""One document on several targets."""

from __future__ import annotations

from spec_lsp.analysis.comparing import Comparison, compare
from spec_lsp.analysis.in_memory import InMemory
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.reading import read_document
from spec_lsp.settings import read_target

LLAMA = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"


def compared(text: str, *targets: dict[str, str]) -> tuple[Comparison, ...]:
    workspace = InMemory()
    return compare(read_document("launch.sh", text, workspace), Options(), workspace, [read_target(t) for t in targets])


def test_fields_that_differ_are_told_with_both_values() -> None:
    (one,) = compared(LLAMA, {"sglang": "0.5.23", "gpu": "h200"}, {"sglang": "0.5.23", "gpu": "b200"})
    assert [side.target for side in one.sides] == ["SGLang 0.5.23 on H200", "SGLang 0.5.23 on B200"]
    assert {d.field: d.values for d in one.differences}["attention_backend"] == ("fa3", "trtllm_mha")


def test_the_same_target_twice_differs_in_nothing() -> None:
    (one,) = compared(LLAMA, {"sglang": "0.5.23", "gpu": "h200"}, {"sglang": "0.5.23", "gpu": "h200"})
    assert one.differences == ()
    assert one.sides[0] == one.sides[1]


def test_each_side_says_what_it_refuses() -> None:
    (one,) = compared(
        f"{LLAMA} --cuda-graph-bs 8", {"sglang": "0.5.19", "gpu": "h200"}, {"sglang": "0.5.23", "gpu": "h200"}
    )
    assert [side.outcome for side in one.sides] == ["accepted", "bad-arguments"]
    assert one.sides[0].remarks == ()
    assert [r.rule for r in one.sides[1].remarks] == ["ambiguous-flag"]


def test_every_launch_has_its_comparison_and_an_open_target_is_any() -> None:
    found = compared(f"{LLAMA}\n{LLAMA} --tp 2\n", {}, {"gpu": "h200"})
    assert [c.place.start for c in found] == [0, len(LLAMA) + 1]
    assert found[0].sides[0].target == "any release and GPU"


def test_no_launch_no_comparison() -> None:
    assert compared("echo hello\n", {}, {}) == ()
