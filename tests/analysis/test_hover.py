"""What hover says, at a caret: `‸` marks the cursor."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.hover import HoverText, hover, resolved_text
from spec_lsp.analysis.report import Options
from spec_lsp.workspace import DiskWorkspace

MODELS = Path(__file__).parent.parent / "models"
HEAD = "# spec-lsp: sglang=0.5.23 gpu=h100\n"
LAUNCH = f"python -m sglang.launch_server --model-path {MODELS}/llama-3.1-8b "


def at_caret(text: str, name: str = "/w/run.sh") -> tuple[HoverText | None, str]:
    """The hover at the caret, and the characters it is about."""
    offset = text.index("‸")
    text = text.replace("‸", "")
    analysis = analyse(read_document(name, text, DiskWorkspace()), Options(), DiskWorkspace())
    found = hover(analysis, offset, name)
    return found, text[found.place.start : found.place.end] if found else ""


@pytest.mark.parametrize(
    ("rest", "about", "says"),
    [
        ("--page-‸size 16", "--page-size", ["**`--page-size`**", "- type: integer\n", "- releases: ", "**Resolved**"]),
        ("--page-size 1‸6", "16", ["**`--page-size`**"]),
        ("--page-size=‸16", "--page-size=16", ["**`--page-size`**"]),
        ("--sampling-back‸end pytorch", "--sampling-backend", ["- choices: ", "`flashinfer`", "`pytorch`"]),
        ("--enable-metri‸cs", "--enable-metrics", ["- type: switch\n", "**Resolved** on"]),
        ("--t‸p 2", "--tp", ["`--tp-size`", "**Resolved** `2`"]),
        ("--page-size 1‸6 --page-size 32", "16", ["Given again later: `--page-size 32` is what counts."]),
        ("--page-size 16", "", []),
    ],
)
def test_flags_and_values(rest: str, about: str, says: list[str]) -> None:
    text = HEAD + LAUNCH + rest
    found, covered = at_caret(text if "‸" in text else "# a comm‸ent\n" + text)
    assert covered == about
    for sentence in says:
        assert found is not None
        assert sentence in found.markdown
    if found:
        assert "*SGLang 0.5.23 (from the directive) on H100 (from the directive)*" in found.markdown


def test_the_assignment_a_value_comes_from() -> None:
    found, covered = at_caret(f"{HEAD}PAGE=1‸6\n{LAUNCH}--page-size $PAGE\n")
    assert covered == "16"
    assert found is not None
    assert "**`--page-size`**" in found.markdown


def test_the_chain_of_reasons() -> None:
    found, _ = at_caret(f"{HEAD.replace('h100', 'b200')}{LAUNCH}--attention-backend trtllm_mha --page-‸size 1\n")
    assert found is not None
    first, second = [line for line in found.markdown.split("\n") if line[:2] in ("1.", "2.")]
    assert first == "1. `1`: as typed (`--page-size 1`)"
    assert second.startswith("2. `64`: ")


def test_a_flag_of_another_release_only() -> None:
    found, _ = at_caret(f"{HEAD.replace('0.5.23', '0.5.9')}{LAUNCH}--speculative-use-rejection-‸sampling\n")
    assert found is not None
    assert "**SGLang 0.5.9 has no `--speculative-use-rejection-sampling`.**" in found.markdown
    assert "since 0.5.1" in found.markdown


def test_an_ignore_comment_explains_the_rule_under_the_cursor() -> None:
    found, _ = at_caret(f"# spec-lsp: ignore[tree-drafting-on-trtllm-mha, topk-without-‸steps] why\n{LAUNCH}\n")
    assert found is not None
    assert found.markdown.startswith("**`topk-without-steps`**")
    assert "trtllm" not in found.markdown


def test_an_environment_variable() -> None:
    found, _ = at_caret(f"{HEAD}SGLANG_RAGGED_VERIFY_MODE=stat‸ic {LAUNCH}\n")
    assert found is not None
    assert "**`SGLANG_RAGGED_VERIFY_MODE`** · environment variable" in found.markdown


def test_a_key_of_a_config_file() -> None:
    found, _ = at_caret("page-si‸ze: 16\nmem-fraction-static: 0.8\nchunked-prefill-size: 2048\n", "/w/config.yaml")
    assert found is not None
    assert "- type: integer\n" in found.markdown


def test_the_resolved_configuration() -> None:
    text = f"{HEAD}{LAUNCH}--page-size 16\n"
    analysis = analyse(read_document("/w/a.sh", text, DiskWorkspace()), Options(), DiskWorkspace())
    table = resolved_text(analysis.launches[0])
    assert re.search(r"^\| page-size +\| `16` +\| `--page-size 16` \|$", table, re.MULTILINE)
    assert re.search(r"^\| attention-backend +\| ", table, re.MULTILINE)


def test_the_table_reads_well_as_text_and_no_hover_has_a_table_without_a_head() -> None:
    """Terminal editors show Markdown as it is written."""
    text = f"{HEAD}{LAUNCH}--page-size 16\n"
    analysis = analyse(read_document("/w/a.sh", text, DiskWorkspace()), Options(), DiskWorkspace())
    rows = [line for line in resolved_text(analysis.launches[0]).split("\n") if line.startswith("|")]
    assert len({row.index("|", 1) for row in rows}) == 1, "the first column is as wide in every row"
    for flag in ("--page-size", "--model-path"):
        found = hover(analysis, text.index(flag), "/w/a.sh")
        assert found is not None
        assert "|" not in found.markdown


def test_what_a_launch_takes_of_the_memory() -> None:
    launch = "python -m sglang.launch_server --model-p‸ath meta-llama/Llama-3.1-8B-Instruct --tp 2"
    found, _ = at_caret(f"{HEAD}{launch}\n")
    assert found is not None
    assert (
        "**Memory** Weights on each GPU: 7.5 GiB (8.0 billion parameters, 2 bytes each in linear layers, over TP 2)."
        in found.markdown
    )
    assert "KV cache: 64.0 KiB for each token; about " in found.markdown
    assert "An estimate from config.json" in found.markdown


def test_a_model_that_is_not_counted_has_no_memory() -> None:
    found, _ = at_caret(f"{HEAD}python -m sglang.launch_server --model-p‸ath google/gemma-2-9b-it\n")
    assert found is not None
    assert "**Memory**" not in found.markdown


def test_what_a_quantization_method_asks_for() -> None:
    found, _ = at_caret(f"{HEAD}python -m sglang.launch_server --model-path Qwen/Qwen3-8B --quantization w8a8‸_fp8\n")
    assert found is not None
    assert "**Runs on** NVIDIA GPUs from SM89 (Ada or Hopper) on, with `float16`" in found.markdown
