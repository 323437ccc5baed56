"""What hover says, at a caret: `‸` marks the cursor."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.hover import HoverText, hover, type_of
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.wording import because
from spec_lsp.catalog import load, releases
from spec_lsp.facts.known import NotKnown
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
        (
            "--page-‸size 16",
            "--page-size",
            ["**`--page-size`** · integer\n", "- default: unset", "**Here** `16`, as typed."],
        ),
        ("--page-size 1‸6", "16", ["**`--page-size`**"]),
        ("--page-size=‸16", "--page-size=16", ["**`--page-size`**"]),
        ("--sampling-back‸end pytorch", "--sampling-backend", ["- choices: ", "`flashinfer`", "`pytorch`"]),
        (
            "--sampling-backend pyt‸orch",
            "pytorch",
            ["**`pytorch`** · value of `--sampling-backend`\n\nPyTorch samples"],
        ),
        (
            "--sampling-backend=pyt‸orch",
            "--sampling-backend=pytorch",
            ["**`pytorch`** · value of", "**Here** `pytorch`, as typed."],
        ),
        ("--sampling-back‸end=pytorch", "--sampling-backend=pytorch", ["**`--sampling-backend`** · text\n"]),
        ("--sampling-backend no‸pe", "nope", ["**Here** `nope`, as typed: SGLang does not accept it."]),
        ("--enable-metri‸cs", "--enable-metrics", ["**`--enable-metrics`** · switch\n", "**Here** on, as typed."]),
        ("--t‸p 2", "--tp", ["also `--tp-size`", "**Here** `2`, as typed."]),
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


def test_a_changed_value_and_what_sglang_would_choose() -> None:
    found, _ = at_caret(f"{HEAD.replace('h100', 'b200')}{LAUNCH}--attention-backend trtllm_mha --page-‸size 1\n")
    assert found is not None
    assert "**Here** `64` instead of `1`: TensorRT-LLM" in found.markdown
    assert "**Without it** the same." in found.markdown
    found, _ = at_caret(f"{HEAD.replace('h100', 'b200')}{LAUNCH}--attention-ba‸ckend triton\n")
    assert found is not None
    assert "**Without it** `trtllm_mha`: The fastest backend" in found.markdown


def test_a_refused_value_is_shown_as_typed() -> None:
    found, _ = at_caret(f"{HEAD}{LAUNCH}--attention-ba‸ckend trtllm_mla\n")
    assert found is not None
    assert "**Here** `trtllm_mla`, as typed: SGLang refuses it (`" in found.markdown


@pytest.mark.parametrize("flag", ["--attention-backend", "--page-size", "--tp", "--quantization", "--dtype"])
def test_what_nobody_can_tell_is_told_once(flag: str) -> None:
    found, _ = at_caret(f"{HEAD}{LAUNCH}{flag[:3]}‸{flag[3:]} $X\n")
    assert found is not None
    assert "**Here** `$X`, as typed. Unknown: from the environment." in found.markdown
    assert "depends on" not in found.markdown


def test_a_value_of_a_keyword_argument() -> None:
    found, _ = at_caret("import sglang\nsglang.Engine(model_path='m', attention_backend='trtllm‸_mha')\n", "/w/a.py")
    assert found is not None
    assert found.markdown.startswith("**`trtllm_mha`** · value of `attention_backend`")


def test_choices_are_told_whole_or_not_at_all() -> None:
    found, _ = at_caret(f"{HEAD}{LAUNCH}--quanti‸zation fp8\n")
    assert found is not None
    assert "choices" not in found.markdown
    assert "Rules that read it" not in found.markdown


@pytest.mark.parametrize(
    ("flag", "releases"),
    [("--tp-size 2", ""), ("--speculative-use-rejection-sampling", "- releases: since 0.5.1")],
)
def test_releases_are_told_where_not_all_have_it(flag: str, releases: str) -> None:
    found, _ = at_caret(f"{HEAD}{LAUNCH}{flag[:3]}‸{flag[3:]}\n")
    assert found is not None
    assert ("- releases: " in found.markdown) == bool(releases)
    assert releases in found.markdown


def test_hardware_that_nobody_named() -> None:
    found, _ = at_caret(f"# spec-lsp: sglang=0.5.23\n{LAUNCH}--page-‸size 16\n")
    assert found is not None
    assert "on any GPU: nothing names it. Values are those on Hopper (H100, H200).*" in found.markdown


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
    assert "**`--page-size`** · integer\n" in found.markdown


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


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("", "It depends on page_size."),
        (
            "depends on draft model: its config.json is not at hand",
            "It depends on the draft model: its config.json is not at hand.",
        ),
        ("depends on a: depends on tp_size: from the environment", "It depends on `tp-size`: from the environment."),
        ("one: two", "It is unknown: one: two."),
        ("depends on the random seed: it is drawn", "It depends on the random seed: it is drawn."),
    ],
)
def test_why_a_value_is_unknown_is_a_sentence(why: str, said: str) -> None:
    assert because(NotKnown("page_size", why)) == said


def test_the_type_of_each_flag_is_said_in_words() -> None:
    words = {type_of(flag) for release in releases() for flag in load(release).flags}
    assert {"switch", "text", "integer", "integer (64k, 1M)", "number, one or more", "JSON list"} <= words
    assert not [said for said in words if "_" in said], "names of SGLang's functions are no words"
