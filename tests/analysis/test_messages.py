"""The sentences a reader sees: where and when a finding holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.merge import where_of
from spec_lsp.analysis.messages import when_of
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES
from spec_lsp.syntax.launch import Choice, Launch, Variant
from spec_lsp.syntax.word import Place
from tests.analysis.support import PINNED, SERVER, check

NOWHERE = Place("a.sh", 0, 0)


def launch(*ways: tuple[str, ...]) -> Launch:
    """A launch whose variants take these ways."""
    variants = tuple(Variant((), choices=tuple(Choice(NOWHERE, taken) for taken in way)) for way in ways)
    return Launch("launch_server", NOWHERE, NOWHERE, variants)


@pytest.mark.parametrize(
    ("ways", "variants", "text"),
    [
        ([("x",), ("y",)], (), ""),
        ([("$1 is big",), ("$1 is small",)], (0,), "when $1 is big"),
        ([("a", "b"), ("a", "c")], (0,), "when b"),
        ([("a", "b"), ("c", "d")], (0,), "when a and b"),
        ([("a", "b"), ("a", "c"), ("d", "b")], (0, 1), "when a"),
        ([("a",), ("b",), ("c",)], (0, 1), "in some branches of the script"),
        ([("a", "x", "y", "z"), ("b", "x", "y", "z"), ("b", "w", "y", "z")], (0,), "when a and x"),
        ([("a", "x", "y", "z"), ("b", "x", "v", "z"), ("c", "w", "y", "u")], (0,), "when a"),
        ([("a", "x", "y", "z", "q"), ("b", "x", "v", "z", "q"), ("a", "w", "y", "u", "r")], (0,), "when y and q"),
        # `elif`: what holds, not what does not above it.
        (
            [("not a", "not b", "not c", "d"), ("a",), ("not a", "b"), ("not a", "not b"), ("not a", "not b", "c")],
            (0,),
            "when d",
        ),
    ],
)
def test_when(ways: list[tuple[str, ...]], variants: tuple[int, ...], text: str) -> None:
    assert when_of(variants, launch(*ways)) == text


def messages(text: str, options: Options | None = None) -> str:
    return "\n".join(d.message for d in check(text, options=options).diagnostics)


def test_targets_are_named() -> None:
    targets = tuple(Target(Release.parse(r), DEVICES["h100"]) for r in ("0.5.9", "0.5.23"))
    found = messages(f"{SERVER} --stream-output", Options(targets))
    assert "This holds on SGLang 0.5.23." in found


def test_every_target_refuses() -> None:
    targets = tuple(Target(Release.parse(r), DEVICES["h100"]) for r in ("0.5.21", "0.5.23"))
    assert "This holds" not in messages(f"{SERVER} --stream-output", Options(targets))


def test_late_findings_say_so() -> None:
    found = messages(f"{PINNED}{SERVER} --tp 3")
    assert "The server finds out only after loading the weights." in found


def test_since() -> None:
    assert "This holds since 0.5.20." in messages(f"# spec-lsp: gpu=h100\n{SERVER} --stream-output")


def test_a_branch() -> None:
    found = messages(f"{PINNED}if [ \"$1\" = big ]; then P='--tp two'; else P=; fi\n{SERVER} $P\n")
    assert "This holds when" in found
    assert "big" in found


def test_messages_are_sentences() -> None:
    text = f"{PINNED}SGLANG_ENABLE_SPEC_V2=1 {SERVER} --tp 3 --max-model-len 3 --page-size 1 --page-size 2 5\n"
    for diagnostic in check(text).diagnostics:
        assert diagnostic.message[-1] in ".?", diagnostic.message
        assert diagnostic.message[0].isupper() or diagnostic.message[0] in "`", diagnostic.message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"docker run lmsysorg/sglang:v0.5.9 {SERVER} --enable-strict-thinking", "This launch runs 0.5.9 (image tag)."),
        (f"pip install sglang==0.5.9\n{SERVER} --enable-strict-thinking", "This launch runs 0.5.9 (pip pin)."),
        (f"docker run lmsysorg/sglang:v0.5.23 {SERVER} --cuda-graph-max-bs 3", "This launch runs 0.5.23 (image tag)."),
    ],
)
def test_who_names_the_release(text: str, part: str) -> None:
    assert part in messages(f"# spec-lsp: gpu=h100\n{text}\n")


@pytest.mark.parametrize(
    "text",
    [
        f"# spec-lsp: sglang=0.5.9 gpu=h100\n{SERVER} --enable-strict-thinking",
        f"# spec-lsp: gpu=h100\ndocker run lmsysorg/sglang:v0.5.9 {SERVER} --no-such-flag-at-all",
    ],
)
def test_nobody_needs_to_hear_it(text: str) -> None:
    assert "This launch runs" not in messages(text + "\n")


def test_a_finding_of_runs_without_hardware_names_no_hardware() -> None:
    launch = check(f"{PINNED}{SERVER}").launches[0]
    assert launch.verdict is not None
    (run,) = launch.verdict.runs
    bare = replace(run, world=replace(run.world, hardware=None))
    assert where_of([bare], [bare, run]) == ""
    assert where_of([run], [bare, run]) == "on H100"


RELATED = [
    ("--page-size 64", "`--page-size 64` takes part"),
    ("--page-size=64", "`--page-size=64` takes part"),
    ("--page-siz 64", "`--page-siz 64` takes part"),
]


@pytest.mark.parametrize(("typed", "note"), RELATED)
def test_what_takes_part_is_named_as_typed(typed: str, note: str) -> None:
    tree = (
        "--speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 16 --attention-backend fa4"
    )
    text = f"{PINNED}{SERVER} --speculative-algorithm EAGLE --speculative-draft-model-path d {tree} {typed}\n"
    notes = [r.message for d in check(text).diagnostics for r in d.related]
    assert note in notes
    assert "`--attention-backend fa4` takes part" in notes
