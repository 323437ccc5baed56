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


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("served_model_name: a\npage_size: 64\nmem_fraction_static: 0.8\n", False),
        ("tp_size: 8\ndp_size: 8\nmem_fraction_static: 0.8\npage-size: 64\n", False),
        ("served-model-name: a\npage-size: 64\nmem_fraction_static: 0.8\n", True),
        ("tp: 8\nep: 8\nport: 1\n", True),
    ],
)
def test_keys_with_underscores_are_of_another_program_unless_they_are_few(text: str, ours: bool) -> None:
    assert bool(read_document("/w/c.yaml", text, Memory()).launches) is ours


@pytest.mark.parametrize(
    ("config", "ours"),
    [
        ("{served-model-name: a, page-size: 64}", True),
        ("{host: a, port: 1, page-size: 64}", True),
        ("{page-size: 64, tp: 2, mem-fraction-static: 1, replicas: 2}", True),
        ("{host: a, port: 1}", False),
        ("{tp-size: 8, page-size: 64, num-prompts: 100}", False),
        ("{mem-fraction-static: 1, replicas: 2}", False),
        ("{gpu-memory-utilization: 1}", False),
    ],
)
def test_a_map_that_is_said_to_be_sglangs(config: str, ours: bool) -> None:
    text = f"backend:\n  type: SGLang\n  config: {config}\n"
    assert bool(read_document("/w/c.yaml", text, Memory()).launches) is ours


def test_language_is_kept() -> None:
    assert read_document("/w/serve", "echo", Memory(), "shellscript").language == "shellscript"


def test_a_sourced_script_is_read_from_the_workspace() -> None:
    workspace = Memory({"/w/common.sh": "TP=2\n"})
    text = "source common.sh\npython -m sglang.launch_server --model-path a --tp $TP\n"
    document = read_document("/w/a.sh", text, workspace)
    words = [w.text for w in document.launches[0].variants[0].words]
    assert words == ["--model-path", "a", "--tp", "2"]
