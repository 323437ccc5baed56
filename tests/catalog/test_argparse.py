"""Binding against the real argparse, on random command lines. `compare_with_argparse.py` runs many more by hand."""

from __future__ import annotations

import random
import sys

import pytest

from .parsers import difference, random_argv, real_parser, rows


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="argparse of 3.13 reads `-hx` and `--flag=--` otherwise; SGLang runs on 3.10 to 3.12",
)
@pytest.mark.parametrize("release", ["0.4.6.post5", "0.5.3.post3", "0.5.9", "0.5.14", "0.5.19", "0.5.23"])
def test_random_command_lines(release: str) -> None:
    rng = random.Random(release)
    for _ in range(400):
        argv = random_argv(rng, release)
        assert difference(release, argv) is None, argv


@pytest.mark.parametrize("release", list(rows()))
def test_nothing_typed_gives_the_defaults(release: str) -> None:
    assert difference(release, ["--model-path", "m"]) is None
    assert real_parser(release).parse_args(["--model-path", "m"]).model_path == "m"
