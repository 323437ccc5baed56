"""The estimate of a launch's memory."""

from __future__ import annotations

import pytest

from spec_lsp.analysis import memory
from spec_lsp.resolution.late.memory import Estimate
from tests.resolution.launching import answer


def estimate(launch: str) -> Estimate | None:
    main = answer(launch).main
    assert main is not None
    assert main.resolution is not None
    return memory.of(main.resolution.config)


def test_tokens_fit_into_what_the_weights_leave() -> None:
    found = estimate("gpu=h100 -- --mem-fraction-static 0.8")
    assert found is not None
    assert found.total is not None
    assert found.per_token == 131072
    assert found.tokens == int((0.8 * found.total - found.weights) / found.per_token)


@pytest.mark.parametrize(
    "launch",
    ["model=gemma-2-9b -- --tp-size 1", "gpu=rtx4090 -- --cpu-offload-gb 8", "gpu=h100 -- --torchao-config int8wo"],
)
def test_nothing_is_said_of_what_is_not_counted(launch: str) -> None:
    assert estimate(launch) is None


def test_a_family_of_gpus_has_no_tokens() -> None:
    found = estimate("gpu=hopper -- --tp-size 1")
    assert found is not None
    assert found.tokens is None


def test_quantization_shrinks_the_weights() -> None:
    plain, half = estimate("gpu=h100 -- --tp-size 1"), estimate("gpu=h100 -- --tp-size 1 --quantization fp8")
    assert plain is not None
    assert half is not None
    assert half.weights < 0.6 * plain.weights
