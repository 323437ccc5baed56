"""Programs around SGLang's parser: their own flags are theirs, the rest is as strict as SGLang."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.catalog.wrappers import made_for, own
from spec_lsp.syntax.launch import BENCHES, Program
from tests.catalog.test_binding import bound, kinds


@pytest.mark.parametrize("program", ["one_batch", "offline_throughput", "dynamo"])
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
        ("one_batch", "--batch-size 1 16 64 --input-len 1024 --profile --result-filename=x.jsonl"),
        ("one_batch", "--batch 4"),
        ("one_batch", "--profile-activities CPU GPU --tp 2 --profile-record-shapes"),
        ("one_batch_server", "--flush-hicache-storage --gsp-question-len 8 --profile-start-step 2"),
        ("offline_throughput", "--num-prompts $N --dataset-name $X"),
        ("deep_gemm", "--timeout 60 --tp 2"),
        ("weight_cache", "--gpu-id 0 --force"),
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


@pytest.mark.parametrize(
    ("program", "line", "release", "errors"),
    [
        ("one_batch", "--profile-filename-prefix x", "0.5.20", []),
        ("one_batch", "--profile-filename-prefix x", "0.5.21", ["unknown-flag"]),
        ("one_batch", "--profile-steps 4", "0.5.9", ["unknown-flag"]),
        ("one_batch", "--num-prompts 4", "0.5.23", ["unknown-flag"]),
        ("offline_throughput", "--num-prompts 4", "0.5.23", []),
        ("offline_throughput", "--run-name x", "0.5.23", ["unknown-flag"]),
        ("one_batch_server", "--input-len-list 4", "0.5.22", ["unknown-flag"]),
        ("dynamo", "--multimodal-processor", "0.5.9", []),
        ("dynamo", "--multimodal-processor", "0.5.18", ["unknown-flag"]),
        ("dynamo", "--admission-control x", "0.5.9", ["unknown-flag"]),
        ("dynamo", "--dyn-of-tomorrow 3", "0.5.18", ["unknown-flag"]),
    ],
)
def test_flags_are_those_of_the_program_and_its_release(
    program: str, line: str, release: str, errors: list[str]
) -> None:
    assert kinds(bound(line, program=program, release=release)) == errors


def test_a_flag_of_another_dynamo_is_told_as_that() -> None:
    (error,) = bound("--multimodal-processor", program="dynamo", release="0.5.18").errors
    assert "Dynamo had before 1.1.0" in error.message
    (error,) = bound("--admission-control x", program="dynamo", release="0.5.9").errors
    assert "Dynamo has from 1.5.0 on" in error.message


@pytest.mark.parametrize(
    ("version", "release"), [("1.0.1", "0.5.9"), ("1.3.0", "0.5.14"), ("0.8.1", "0.5.6.post2"), ("7.0.0", None)]
)
def test_a_version_of_dynamo_is_made_for_a_release(version: str, release: str | None) -> None:
    assert made_for(version) == (Release.parse(release) if release else None)


@pytest.mark.parametrize("release", [r for r in releases() if r >= Release.parse("0.5.6")], ids=str)
@pytest.mark.parametrize("program", sorted({*BENCHES, "dynamo"} - {"weight_cache"}))
def test_every_release_has_its_flags(program: Program, release: Release) -> None:
    assert own(program, release)
    assert all(flag.startswith("--") and not flag.endswith("-") for flag in own(program, release))
