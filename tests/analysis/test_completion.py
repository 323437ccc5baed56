"""What may be typed at a caret: `‸` marks the cursor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.completion import Completion, Item, complete, document
from spec_lsp.analysis.inputs import Options
from spec_lsp.workspace import DiskWorkspace

MODELS = Path(__file__).parent.parent / "models"
HEAD = "# spec-lsp: sglang=0.5.23 gpu=h100\n"
RUN = f"python -m sglang.launch_server --model-path {MODELS}/llama-3.1-8b "
KEYS = f"{HEAD}model-path: a/b\npage-size: 16\nattention-backend: fa3\n"


def at_caret(text: str, name: str = "/w/run.sh") -> tuple[Completion | None, str]:
    """The completion at the caret, and the characters it replaces."""
    offset = text.index("‸")
    text = text.replace("‸", "")
    workspace = DiskWorkspace()
    analysis = analyse(read_document(name, text, workspace), Options(), workspace)
    found = complete(analysis, offset, Options(), workspace)
    if found is not None:
        assert found.place.document == name
        assert found.place.start <= offset <= found.place.end
    return found, text[found.place.start : found.place.end] if found else ""


def items(text: str, name: str = "/w/run.sh") -> dict[str, Item]:
    found, _ = at_caret(text, name)
    assert found is not None
    assert len({i.label for i in found.items}) == len(found.items), "a label twice"
    return {item.label: item for item in found.items}


@pytest.mark.parametrize(
    ("text", "replaced", "offered"),
    [
        pytest.param(f"{RUN}‸", "", "--page-size", id="behind a blank"),
        pytest.param(f"{RUN}-‸", "-", "--page-size", id="one dash"),
        pytest.param(f"{RUN}--‸", "--", "--page-size", id="two dashes"),
        pytest.param(f"{RUN}--pa‸ge-size 16", "--page-size", "--page-size", id="within a flag"),
        pytest.param(f"{RUN}--pa‸ge-size=16", "--page-size", "--page-size", id="within a flag with its value"),
        pytest.param(f"{RUN}page‸", "page", "--page-size", id="without dashes"),
        pytest.param(f"{RUN}--tp 2 \\\n  ‸\n", "", "--page-size", id="next line"),
        pytest.param(f"{RUN}\\\n  --tp 2 \\\n  --pa‸ \\\n  --dp 2\n", "--pa", "--page-size", id="between lines"),
        pytest.param(f"{RUN}--enable-metrics --pa‸ && echo", "--pa", "--page-size", id="in a list of commands"),
        pytest.param(f'A=(--tp 2 --pa‸)\n{RUN}"${{A[@]}}"', "--pa", "--page-size", id="array"),
        pytest.param(f'A="--tp 2 --pa‸"\n{RUN}$A', "--pa", "--page-size", id="string of flags"),
        pytest.param(f'{RUN}"--pa‸"', "--pa", "--page-size", id="quoted"),
        pytest.param(f"bash -c '{RUN}--pa‸'", "--pa", "--page-size", id="in another script's text"),
        pytest.param(f"{RUN}--tp 2 \\\r\n  --pa‸\r\n", "--pa", "--page-size", id="lines that end in CRLF"),
        pytest.param(f"{RUN}--attention-backend ‸", "", "fa3", id="value"),
        pytest.param(f"{RUN}--attention-backend ‸ --tp 2", "", "fa3", id="value before a flag"),
        pytest.param(f"{RUN}--attention-backend f‸a", "fa", "fa3", id="within a value"),
        pytest.param(f"{RUN}--attention-backend=‸", "", "fa3", id="value behind ="),
        pytest.param(f"{RUN}--attention-backend=f‸x --tp 2", "fx", "fa3", id="within a value behind ="),
        pytest.param(f'{RUN}--attention-backend "f‸"', "f", "fa3", id="quoted value"),
        pytest.param(f"{RUN}--attention-backend 'f‸", "f", "fa3", id="open quote"),
        pytest.param(f"{RUN}--attention-b f‸", "f", "fa3", id="abbreviated flag"),
        pytest.param(f"{RUN}--attention-backend \\\n  ‸", "", "fa3", id="value on the next line"),
        pytest.param(f"B=f‸\n{RUN}--attention-backend $B", "f", "fa3", id="assignment"),
        pytest.param(f"{RUN}--page-size ‸", "", "64", id="common size"),
        pytest.param(f"{RUN}--lora-target-modules q_proj ‸", "", "k_proj", id="one more value"),
        pytest.param(f"{RUN}--lora-target-modules q_proj ‸", "", "--page-size", id="or a flag"),
        pytest.param("sglang serve Qwen/‸", "Qwen/", "Qwen/Qwen3-8B", id="model of sglang serve"),
        pytest.param(f"{RUN}--speculative-draft-model-path ‸", "", "Qwen/Qwen3-8B", id="model"),
        pytest.param(
            f"cat > c.yaml <<EOF\nmodel-path: a/b\npa‸\nEOF\n{RUN}--config c.yaml",
            "pa",
            "page-size",
            id="here-document",
        ),
        pytest.param(f"cat > c.yaml <<EOF\nattention-backend: ‸\nEOF\n{RUN}--config c.yaml", "", "fa3", id="its value"),
    ],
)
def test_in_words(text: str, replaced: str, offered: str) -> None:
    found, covered = at_caret(HEAD + text)
    assert covered == replaced
    assert found is not None
    assert offered in {i.label for i in found.items}


@pytest.mark.parametrize(
    "text",
    [
        f"# a comm‸ent\n{RUN}",
        f"{RUN}# --‸",
        f"{RUN}--tp 2\n--‸",
        f"{RUN}--tp 2\n\n  ‸\n",
        f"ec‸ho\n{RUN}",
        f"{RUN}| tee ‸",
        f"{RUN}> ‸",
        f"{RUN}&& ls --‸",
        f"{RUN}--page-size $X‸",
        f'X=1\n{RUN}--page-size "‸$X"',
        f"X=1\n{RUN}--page-size 6‸$X",
        f"{RUN}--page-size $(cat ‸)",
        f"{RUN}--enable-metrics=‸",
        f"{RUN}--no-such-flag=‸",
        "ls --‸",
        "‸",
    ],
)
def test_nothing_outside_of_launches_and_of_what_is_known(text: str) -> None:
    assert at_caret(HEAD + text)[0] is None


@pytest.mark.parametrize(
    ("text", "replaced", "label", "written"),
    [
        ("‸", "", "tp-size", "tp-size: "),
        ("tp‸", "tp", "tp-size", "tp-size: "),
        ("tp‸: 2", "tp", "tp-size", "tp-size"),
        ("enable-m‸", "enable-m", "enable-metrics", "enable-metrics: true"),
        ("kv-cache-dtype: ‸", "", "auto", "auto"),
        ("kv-cache-dtype:‸", "", "auto", " auto"),
        ("kv-cache-dtype: fp‸x # why", "fpx", "fp8_e5m2", "fp8_e5m2"),
        ('kv-cache-dtype: "fp‸"', "fp", "fp8_e5m2", "fp8_e5m2"),
        ("enable-metrics: ‸", "", "true", "true"),
        ("log-requests: True\nenable-metrics: ‸", "", "False", "False"),
        ("log-requests: yes\nenable-metrics: ‸", "", "no", "no"),
        ("log-requests: on\nenable-m‸", "enable-m", "enable-metrics", "enable-metrics: on"),
        ("lora-target-modules: [q_proj, k‸]", "k", "k_proj", "k_proj"),
        ("lora-target-modules:\n  - q_proj\n  - ‸", "", "k_proj", "k_proj"),
        ("lora-target-modules:\n- ‸", "", "k_proj", "k_proj"),
        ("tp-size: ‸", "", "8", "8"),
    ],
)
def test_in_config_files(text: str, replaced: str, label: str, written: str) -> None:
    found, covered = at_caret(KEYS + text, "/w/c.yaml")
    assert covered == replaced
    assert found is not None
    assert {i.label: i.text for i in found.items}[label] == written


@pytest.mark.parametrize("text", ["# tp‸", "tp-size: 2 # ‸", "  tp‸", "no-such-key: ‸", "- ‸"])
def test_nothing_elsewhere_in_config_files(text: str) -> None:
    assert at_caret(KEYS + text, "/w/c.yaml")[0] is None


def test_keys_are_quoted_where_the_file_quotes_them() -> None:
    quoted = f"{HEAD}'model-path': a/b\n'page-size': 16\n'attention-backend': fa3\n"
    assert items(f"{quoted}tp‸", "/w/c.yaml")["tp-size"].text == "'tp-size': "
    assert items(f"{quoted}'tp‸'", "/w/c.yaml")["tp-size"].text == "tp-size"


def test_keys_that_sglang_refuses_are_not_offered() -> None:
    offered = items(f"{KEYS}‸", "/w/c.yaml")
    assert not {"config", "help", "no-lora-strict-loading"} & offered.keys()


def test_values_that_yaml_reads_otherwise_are_quoted() -> None:
    assert all(i.text != "null" for i in items(f"{KEYS}quantization: ‸", "/w/c.yaml").values())


@pytest.mark.parametrize(
    ("rest", "ranks"),
    [
        ("‸", {"--tp-size": 1, "--enable-metrics": 2, "--tensor-parallel-size": 3, "--model-path": 4, "--model": 4}),
        ("--tp 2 ‸", {"--tp-size": 4, "--tensor-parallel-size": 4}),
        ("--speculative-algorithm EAGLE3 ‸", {"--speculative-num-steps": 0, "--tp-size": 1, "--hicache-size": 2}),
        ("--enable-hierarchical-cache ‸", {"--hicache-size": 0, "--speculative-num-steps": 2}),
        ("--config c.yaml ‸", {"--config": 4}),
        ("--tp‸ --page-size 4", {"--page-size": 4}),
    ],
)
def test_order_of_flags(rest: str, ranks: dict[str, int]) -> None:
    offered = items(f"{HEAD}{RUN}{rest}")
    assert {label: offered[label].rank for label in ranks} == ranks


def test_what_is_missing_comes_first() -> None:
    assert items(f"{HEAD}python -m sglang.launch_server --‸")["--model-path"].rank == 0


def test_deprecated_flags_come_last_and_name_their_successor() -> None:
    offered = items(f"{HEAD.replace('0.5.23', '0.5.12')}{RUN}‸")
    old = [i for i in offered.values() if i.deprecated]
    assert old
    assert {i.rank for i in old} == {5}
    assert any(i.detail.startswith("deprecated: use `--") or i.detail.startswith("deprecated: use --") for i in old)


def test_only_flags_of_the_release() -> None:
    assert "--cuda-graph-max-bs-decode" in items(f"{HEAD}{RUN}‸")
    assert "--cuda-graph-max-bs-decode" not in items(f"{HEAD.replace('0.5.23', '0.5.9')}{RUN}‸")


@pytest.mark.parametrize(
    ("text", "label", "snippet"),
    [
        (f"{RUN}‸", "--page-size", "--page-size $1"),
        (f"{RUN}‸", "--port", "--port ${1:30000}"),
        (f"{RUN}‸", "--enable-metrics", ""),
        (f"{RUN}‸", "--grammar-backend", "--grammar-backend ${1|xgrammar,outlines,llguidance,none|}"),
        (f"{RUN}--po‸ 3", "--port", ""),
        (f"{RUN}--po‸=3", "--port", ""),
        (f"{RUN}--po‸ --tp 2", "--port", "--port ${1:30000}"),
    ],
)
def test_snippets_where_no_value_follows(text: str, label: str, snippet: str) -> None:
    item = items(HEAD + text)[label]
    assert item.snippet == snippet
    assert item.text == label


@pytest.mark.parametrize(
    ("gpu", "rest", "says"),
    [
        ("h100", "--attention-backend ‸", {"fa3": "", "trtllm_mla": "refused on H100: "}),
        ("b200", "--attention-backend ‸", {"fa3": "refused on B200: ", "trtllm_mha": ""}),
        ("b200", "--attention-backend trtllm_mha --page-size ‸", {"1": "becomes 64", "64": "", "32": ""}),
        ("b200", "--attention-backend=‸ --page-size 1", {"trtllm_mha": ""}),
        ("h100", "--reasoning-parser ‸", {"qwen3": ""}),
    ],
)
def test_values_that_cannot_run_say_why(gpu: str, rest: str, says: dict[str, str]) -> None:
    offered = items(f"{HEAD.replace('h100', gpu)}{RUN}{rest}")
    for label, detail in says.items():
        assert offered[label].detail.startswith(detail), offered[label]
        assert bool(offered[label].detail) == bool(detail), offered[label]
        assert (offered[label].rank > 0) == detail.startswith("refused")


@pytest.mark.parametrize(
    ("release", "rest", "offered", "others"),
    [
        ("0.5.23", "--speculative-algorithm ‸", {"EAGLE3", "NEXTN", "NGRAM", "DSPARK", "UNO"}, {"NONE"}),
        ("0.5.14", "--speculative-algorithm ‸", {"EAGLE3", "NGRAM", "DFLASH"}, {"DSPARK", "UNO"}),
        ("0.5.23", "--speculative-algorithm EAGLE3 --speculative-draft-attention-backend ‸", {"fa3", "triton"}, set()),
        ("0.5.23", "--model-config-parser ‸", {"auto", "hf", "mistral"}, set()),
        ("0.5.23", "--eplb-algorithm ‸", {"deepseek", "elasticity_aware"}, set()),
        ("0.5.23", "--dllm-algorithm=‸", {"LowConfidence", "Gemma4Renoise"}, set()),
        ("0.5.23", "--reasoning-parser ‸", {"qwen3"}, set()),
        ("0.5.23", "--quantization ‸", {"fp8"}, set()),
        ("0.5.23", "--device ‸", {"cuda", "npu"}, set()),
    ],
)
def test_values_that_only_rules_know(release: str, rest: str, offered: set[str], others: set[str]) -> None:
    found = items(f"{HEAD.replace('0.5.23', release)}{RUN}{rest}")
    assert offered <= found.keys()
    assert not others & found.keys()


def test_a_draft_backend_that_cannot_run_here_comes_last_and_says_why() -> None:
    draft = f"--speculative-algorithm EAGLE3 --speculative-draft-model-path {MODELS}/eagle3-draft"
    found = items(f"{HEAD}{RUN}{draft} --speculative-draft-attention-backend ‸")
    assert found["fa3"].rank == 0
    assert found["torch_native"].rank == 2
    assert "has no draft implementation" in found["torch_native"].detail


@pytest.mark.parametrize(
    ("model", "algorithm", "first", "fits"),
    [
        ("Qwen/Qwen3-8B", "EAGLE3", {"Tengyunw/qwen3_8b_eagle3", "AngelSlim/Qwen3-8B_eagle3"}, True),
        ("Qwen/Qwen3-8B", "eagle3", {"Tengyunw/qwen3_8b_eagle3", "AngelSlim/Qwen3-8B_eagle3"}, True),
        ("meta-llama/Llama-3.1-8B-Instruct", "EAGLE", {"lmsys/sglang-EAGLE-LLaMA3-Instruct-8B"}, True),
        ("Qwen/Qwen3-8B", "STANDALONE", {"Qwen/Qwen3-0.6B"}, True),
        ("no/such-model", "EAGLE3", {"Qwen/Qwen3-8B"}, False),
        ("$MODEL", "EAGLE3", {"Qwen/Qwen3-8B"}, False),
    ],
)
def test_drafts_that_fit_the_model_come_first(model: str, algorithm: str, first: set[str], fits: bool) -> None:
    launch = f"python -m sglang.launch_server --model-path {model} --speculative-algorithm {algorithm}"
    offered = items(f"{HEAD}{launch} --speculative-draft-model-path ‸")
    best = [item for item in offered.values() if item.rank == 0]
    assert first <= {item.label for item in best}
    assert all(item.detail == ("a draft of the model's sizes" if fits else "a model spec-lsp knows") for item in best)
    assert (len(best) < len(offered)) == fits


@pytest.mark.parametrize(
    ("comment", "replaced", "first", "documented"),
    [
        ("# spec-lsp: ‸", "", "sglang=", False),
        ("# spec-lsp: ig‸", "ig", "sglang=", False),
        ("# spec-lsp: sglang=‸", "", "0.5.23", False),
        ("# spec-lsp: sglang=0.5.2‸1 gpu=b200", "0.5.21", "0.5.23", False),
        ("# spec-lsp: sglang=0.5.21 gp‸", "gp", "sglang=", False),
        ("# spec-lsp: sglang=0.5.21 gpu=‸", "", "h100", False),
        ("# spec-lsp: ignore[‸]", "", "unknown-speculative-algorithm", True),
        ("# spec-lsp: ignore[unknown-flag, page-‸", "page-", "unknown-speculative-algorithm", True),
        ("# spec-lsp: ignore-file[‸", "", "unknown-speculative-algorithm", True),
    ],
)
@pytest.mark.parametrize("name", ["/w/run.sh", "/w/pod.yaml"])
def test_in_comments_to_spec_lsp(name: str, comment: str, replaced: str, first: str, documented: bool) -> None:
    launch = f"{RUN}--speculative-algorithm NO\n"
    rest = launch if name.endswith(".sh") else f"run: {launch}"
    found, covered = at_caret(f"{comment}\n{rest}", name)
    assert found is not None
    assert covered == replaced
    best = [item for item in found.items if item.rank == 0]
    assert first in [item.label for item in best]
    assert all(item.detail for item in best if "sglang=" not in comment or item.label[0].isalpha())
    assert bool(document(best[0].about)) == documented


@pytest.mark.parametrize(
    "comment", ["# spec-lsp: ignore[unknown-flag] becau‸", "# see spec-lsp‸", "# spec-lsp: sglang=0.5.9\n# fo‸"]
)
def test_nothing_elsewhere_in_comments(comment: str) -> None:
    assert at_caret(f"{comment}\n{RUN}\n")[0] is None


def test_hardware_that_nobody_named() -> None:
    text = f"# spec-lsp: sglang=0.5.23\npython -m sglang.launch_server --model-path {MODELS}/deepseek-v3 --attention-backend ‸"
    offered = items(text)
    assert offered["trtllm_mla"].detail.startswith("runs on SM100 (B200, GB200), not on Hopper (H100, H200): ")
    assert offered["trtllm_mla"].rank == 1
    assert offered["ascend"].detail.startswith("refused on Hopper")


def test_a_refusal_that_has_nothing_to_do_with_the_value_does_not_count() -> None:
    offered = items(f"{HEAD}{RUN}--speculative-eagle-topk 4 --speculative-algorithm EAGLE3 --attention-backend ‸")
    assert not offered["triton"].detail


@pytest.mark.parametrize(
    ("about", "says"),
    [
        (("--page-size", "0.5.23"), ["**`--page-size`** · integer\n", "- default: "]),
        (("--tensor-parallel-size", "0.5.23"), ["**`--tensor-parallel-size`**", "also `--tp-size`"]),
        (
            ("--attention-backend", "0.5.23", "dsa", "why"),
            ["**`dsa`** · value of `--attention-backend` · since 0.5.", "sparse attention", "why"],
        ),
    ],
)
def test_documentation(about: tuple[str, ...], says: list[str]) -> None:
    text = document(about)
    for sentence in says:
        assert sentence in text


@pytest.mark.parametrize("about", [(), ("--page-size",), ("--no-such", "0.5.23"), ("--page-size", "x")])
def test_no_documentation(about: tuple[str, ...]) -> None:
    assert document(about) == ""


POD = (
    "containers:\n- image: lmsysorg/sglang:v0.5.21\n  command: [python3, -m, sglang.launch_server]\n"
    "  args:\n  - --model-path\n  - m\n"
)
OPTIONS = "module: sglang\noptions:\n  --tp-size: 8\n  --mem-fraction-static: 0.8\n  --page-size: 1\n"
RECIPE = "backend:\n  sglang_config:\n    decode:\n      tensor-parallel-size: 8\n"


@pytest.mark.parametrize(
    ("text", "replaced", "item"),
    [
        (POD + "  - --attention-ba‸\n", "--attention-ba", "--attention-backend"),
        (POD + "  - --attention-backend\n  - f‸\n", "f", "fa3"),
        (POD + "  - --page-size\n  - ‸\n", "", '"64"'),
        (POD + '  - --page-size\n  - "‸"\n', "", "64"),
        (POD.replace("\n  - --model-path\n  - m\n", " [--model-path, m, --att‸]\n"), "--att", "--attention-backend"),
        ('run: "sglang serve m --attention-backend f‸"\n', "f", "fa3"),
        (
            "services:\n  s:\n    command: >\n      sglang serve m\n      --att‸\n      --tp 2\n",
            "--att",
            "--attention-backend",
        ),
        (RECIPE + "      attention-b‸\n", "attention-b", "attention-backend"),
        (RECIPE + "      attention-b‸: fa3\n", "attention-b", "attention-backend"),
        (RECIPE + "      attention-backend: ‸\n", "", "fa3"),
        (RECIPE + "      ‸\n", "", "page-size"),
        (RECIPE + "  ‸\n", "", None),
        (OPTIONS + "  --attention-b‸\n", "--attention-b", "--attention-backend"),
        (OPTIONS + "  --attention-backend: ‸\n", "", "fa3"),
        (OPTIONS.replace("--", "") + "  attention-b‸\n", "attention-b", "attention-backend"),
    ],
)
def test_in_yaml(text: str, replaced: str, item: str | None) -> None:
    found, range_ = at_caret(text, "/w/pod.yaml")
    if item is None:
        assert found is None
        return
    assert found is not None
    assert range_ == replaced
    assert item in [i.text for i in found.items]
    in_a_string = "run:" in text or "command: >" in text
    assert in_a_string or all(" " not in i.snippet for i in found.items)


ENGINE = f"{HEAD}import sglang as sgl\n"


@pytest.mark.parametrize(
    ("text", "replaced", "text_of_item"),
    [
        ("sgl.Engine(model_path='m', tp‸)", "tp", "tp_size="),
        ("sgl.Engine(tp‸)", "tp", "tp_size="),
        ("sgl.Engine(‸)", "", "tp_size="),
        ("sgl.Engine(model_path='m', ‸)", "", "tp_size="),
        ("sgl.Engine(model_path='m', tp‸", "tp", "tp_size="),
        ("sgl.Engine(\n    tp‸\n    model_path='m',\n)", "tp", "tp_size="),
        ("sgl.Engine(\n    model_path='m',\n    tp‸\n)", "tp", "tp_size="),
        ("sgl.Engine(model_path='m', t‸p, page_size=1)", "tp", "tp_size="),
        ("sgl.Engine(model_path='m', tp‸_siz=2)", "tp_siz", "tp_size"),
        ("from sglang.srt.server_args import ServerArgs\nServerArgs(\n    tp‸,\n)", "tp", "tp_size="),
    ],
)
@pytest.mark.parametrize("form", ["py", "md", "ipynb"])
def test_names_of_arguments(form: str, text: str, replaced: str, text_of_item: str) -> None:
    """In a file, a fence and a cell; the launch around it tells what is given already."""
    whole = ENGINE + text + "\n"
    if form == "md":
        whole = f"# Page\n\n```python\n{whole}```\n"
    elif form == "ipynb":
        source = json.dumps(whole.splitlines(keepends=True), ensure_ascii=False)
        whole = f'{{"cells": [{{"cell_type": "code", "source": {source}}}]}}'
    found, gone = at_caret(whole, f"/w/a.{form}")
    assert found is not None
    assert gone == replaced
    by_label = {item.label: item for item in found.items}
    assert by_label["tp_size"].text == text_of_item
    assert by_label["tp_size"].kind == "key"
    assert document(by_label["page_size"].about)
    assert "config" not in by_label
    assert by_label["model_path"].rank == (4 if "model_path" in text else 0)


@pytest.mark.parametrize(
    "text",
    [
        "sgl.Engine(model_path=‸)",
        "sgl.Engine(model_path=m‸)",
        "sgl.Engine(model_path='m', tp_size=ns.‸)",
        "f(tp‸)",
        "sgl.Engine('m')\ntp‸",
        "sgl.Engine(model_path='m')\nf(a, tp‸)",
        "sgl.Engine(f(tp‸))",
        "vllm.Engine(tp‸)",
        "# sgl.Engine(tp‸)",
        "x = 'sgl.Engine(tp‸)'",
    ],
)
def test_no_names_of_arguments(text: str) -> None:
    assert at_caret(f"{ENGINE}{text}\n", "/w/a.py")[0] is None


DRAFT = "--speculative-algorithm EAGLE --speculative-draft-model-path c/d --speculative-draft-model-quantization"


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param("Qwen/Qwen3-8B --quantization", id="known checkpoint"),
        pytest.param(f"{MODELS}/llama-3.1-8b --quantization", id="known in part"),
        pytest.param("a/b --quantization", id="unknown model"),
        pytest.param(f"a/b {DRAFT}", id="draft"),
    ],
)
@pytest.mark.parametrize(
    ("release", "gpu", "runs", "reasons"),
    [
        ("0.5.23", "h100", "modelopt_fp4 w8a8_fp8 fp8", {"mxfp8": "needs SM100 (Blackwell)", "nvfp4_online": "SM100"}),
        ("0.5.9", "h100", "modelopt_fp8 fp8", {"modelopt_fp4": "needs SM100 (Blackwell)"}),
        ("0.5.23", "b200", "mxfp8 nvfp4_online w8a8_fp8", {}),
        ("0.5.23", "a100", "fp8", dict.fromkeys(("w8a8_fp8", "modelopt_fp8", "w4afp8", "mxfp8"), "needs SM")),
        ("0.5.23", "mi300x", "fp8", dict.fromkeys(("awq_marlin", "gptq_marlin", "modelopt_fp8"), "ROCm")),
    ],
)
def test_quantization_methods_that_cannot_run_on_the_gpu_come_last(
    asked: str, release: str, gpu: str, runs: str, reasons: dict[str, str]
) -> None:
    head = f"# spec-lsp: sglang={release} gpu={gpu}\npython -m sglang.launch_server --model-path "
    found = items(f"{head}{asked} ‸\n")
    assert {name: found[name].rank for name in runs.split()} == dict.fromkeys(runs.split(), 0)
    for name, reason in reasons.items():
        assert found[name].rank == 2, name
        assert reason in found[name].detail, found[name]
        assert reason in document(found[name].about)


@pytest.mark.parametrize("asked", ["--quantization", DRAFT])
def test_quantization_methods_that_some_gpu_runs_are_not_last_where_none_is_named(asked: str) -> None:
    found = items(f"# spec-lsp: sglang=0.5.23\npython -m sglang.launch_server --model-path a/b {asked} ‸\n")
    assert {name: found[name].rank for name in ("mxfp8", "w8a8_fp8", "awq_marlin")} == dict.fromkeys(
        ("mxfp8", "w8a8_fp8", "awq_marlin"), 0
    )
