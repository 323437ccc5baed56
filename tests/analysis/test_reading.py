"""Which YAML file is a `--config` file of SGLang's."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.reading import looks_like_config, read_document
from tests.analysis.support import Memory


@pytest.mark.parametrize(
    ("keys", "ours"),
    [
        ({"model-path", "mem-fraction-static"}, True),
        ({"model-path", "tp-size", "page-size", "x"}, True),
        ({"speculative-algorithm", "speculative-eagle-topk"}, True),
        ({"model-path", "tp"}, True),
        # vLLM's and everybody's
        ({"model", "tensor-parallel-size", "port", "host", "dtype"}, False),
        ({"model", "gpu-memory-utilization", "max-model-len"}, False),
        ({"model-path"}, False),
        ({"name", "on", "jobs"}, False),
        ({"model-path", "tp-size", "a", "b", "c"}, False),
        (set(), False),
    ],
)
def test_looks_like_config(keys: set[str], ours: bool) -> None:
    assert looks_like_config(frozenset(keys)) is ours


def test_a_config_file_of_its_own() -> None:
    document = read_document("/w/c.yaml", "model-path: x\ntp-size: 2\nmem-fraction-static: 0.8\n", Memory())
    assert [launch.program for launch in document.launches] == ["config"]


def test_language_is_kept() -> None:
    assert read_document("/w/serve", "echo", Memory(), "shellscript").language == "shellscript"


def test_a_sourced_script_is_read_from_the_workspace() -> None:
    workspace = Memory({"/w/common.sh": "TP=2\n"})
    text = "source common.sh\npython -m sglang.launch_server --model-path a --tp $TP\n"
    document = read_document("/w/a.sh", text, workspace)
    words = [w.text for w in document.launches[0].variants[0].words]
    assert words == ["--model-path", "a", "--tp", "2"]
