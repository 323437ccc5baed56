"""spec-lsp for programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import spec_lsp

LAUNCH = """\
#!/bin/bash
TOPK=4
python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct \\
  --speculative-algorithm EAGLE3 --speculative-draft-model-path lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B \\
  --speculative-num-steps 3 --speculative-eagle-topk $TOPK --speculative-num-draft-tokens 8 --attention-backend trtllm_mha
"""


def test_a_refusal_has_its_place_and_fixes_that_hold() -> None:
    (finding,) = spec_lsp.check_text(LAUNCH, sglang="0.5.23", gpu="b200")
    assert (finding.rule, finding.severity, finding.file) == ("tree-drafting-on-trtllm-mha", "error", "launch.sh")
    line = LAUNCH.splitlines()[finding.line]
    assert line[finding.character : finding.end_character] == "--speculative-eagle-topk $TOPK"
    best = finding.fixes[0]
    assert best.text is not None
    assert best.text.splitlines()[1] == "TOPK=1"
    assert not any(f.severity == "error" for f in spec_lsp.check_text(best.text, sglang="0.5.23", gpu="b200"))


def test_without_fixes_the_same_is_found() -> None:
    (finding,) = spec_lsp.check_text(LAUNCH, sglang="0.5.23", gpu="b200", fixes=False)
    assert finding.fixes == ()


def test_several_gpus_must_all_accept() -> None:
    assert spec_lsp.check_text(LAUNCH, sglang="0.5.23", gpu=["h100", "b200"])
    assert spec_lsp.check_text("echo nothing is launched\n") == ()


def test_the_name_decides_how_a_text_is_read() -> None:
    compose = "services:\n  a:\n    command: python3 -m sglang.launch_server --model-path m --bogus-flag\n"
    assert [f.rule for f in spec_lsp.check_text(compose, "compose.yaml")] == ["unknown-flag"]


def test_files_are_handed_in() -> None:
    script = "python3 -m sglang.launch_server --model-path m --config conf/c.yaml\n"
    found = spec_lsp.check_text(script, "run/launch.sh", files={"run/conf/c.yaml": "attention-backend: flashinfr\n"})
    assert [(f.file, f.line) for f in found if f.severity == "error"] == [("run/conf/c.yaml", 0)]


def test_models_are_handed_in() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_size": 4096,
    }
    known = spec_lsp.resolve(["--model-path", "./m"], sglang="0.5.23", gpu="h200", models={"./m": config})
    assert known.accepted
    assert known.fields["attention_backend"] == "fa3"
    assert known.reasons["attention_backend"]


def test_a_refused_argument_list_says_why() -> None:
    refused = spec_lsp.resolve(["--model-path", "m", "--no-such-flag"], sglang="0.5.23", gpu="h200")
    assert refused.outcome == "bad-arguments"
    assert not refused.accepted
    assert [r.rule for r in refused.remarks] == ["unknown-flag"]


@pytest.mark.parametrize("named", [{"sglang": "main"}, {"gpu": "h2000"}])
def test_what_nobody_knows_is_a_value_error(named: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not a"):
        spec_lsp.check_text(LAUNCH, **named)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a"):
        spec_lsp.resolve(["--model-path", "m"], **named)  # type: ignore[arg-type]


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, spec_lsp; assert not [m for m in sys.modules if m.startswith('spec_lsp.')], 'too much'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_is_there() -> None:
    for name in spec_lsp.__all__:
        assert getattr(spec_lsp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'bogus'"):
        _ = spec_lsp.bogus
