"""Programs around SGLang's parser: their own flags are theirs, the rest is as strict as SGLang."""

from __future__ import annotations

import pytest

from tests.catalog.test_binding import bound, kinds


@pytest.mark.parametrize("program", ["bench", "dynamo"])
@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ("--tp 2", []),
        ("--cuda-graph-max-bs 8", ["ambiguous-prefix"]),
        ("--disable-piecewise-cuda-graph", ["unknown-flag"]),
        ("--nonsense-flag 1", ["unknown-flag"]),
        ("--tp two", ["invalid-value"]),
        ("--tp 2 4", ["stray-argument"]),
        ("--prefill-round-robin-balance", ["unknown-flag"]),
        ("--nonsense-flag $X", ["unknown-flag"]),
        ("$@ --nonsense-flag", ["unknown-flag"]),
    ],
)
def test_the_rest_is_as_strict_as_sglang(program: str, line: str, errors: list[str]) -> None:
    assert set(kinds(bound(line, program=program))) == set(errors)


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("bench", "--num-prompts 9 --batch-size 1 16 64 --input-len 1024 --profile --result-filename=x.jsonl"),
        ("bench", "--batch 4"),
        ("bench", "--profile-activities CPU GPU --tp 2"),
        ("bench", "--num-prompts $N --dataset-name $X"),
        ("dynamo", "--dyn-tool-call-parser hermes --endpoint dyn://a.b.c --no-enable-rl --embedding-worker"),
        ("dynamo", "--router-of-tomorrow 3 --dyn-whatever"),
        ("dynamo", "--load-format gms --disaggregation-mode pd"),
        ("dynamo", "--image-diffusion-worker --of-the-diffusion-engine 3"),
        ("dynamo", "--output-modalities text image --tp 2"),
    ],
)
def test_its_own_flags_are_a_programs_own(program: str, line: str) -> None:
    assert kinds(bound(line, program=program)) == []


def test_a_model_may_come_from_elsewhere() -> None:
    assert kinds(bound("--tp 2", program="dynamo", model=False)) == []


@pytest.mark.parametrize("program", ["router", "trainer"])
def test_of_programs_whose_flags_nobody_knows_nothing_is_said(program: str) -> None:
    assert kinds(bound("--nonsense-flag 1", program=program)) == []
