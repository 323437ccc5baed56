"""`explain`, `rules`, `settings`, `resolve`, `catalog`: what people ask at the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.resolve import entry_point
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize("name", ["SPC003", "spc003", "invalid-choice"])
def test_a_rule_by_any_of_its_names(name: str, run: Run) -> None:
    ran = run("explain", name)
    assert ran.code == 0
    assert ran.out.startswith("invalid-choice[SPC003]  error\n\nThe flag does not accept this value.")
    assert "# spec-lsp: ignore[invalid-choice] reason" in ran.out


def test_every_rule_can_be_explained(run: Run) -> None:
    for rule in all_rules():
        ran = run("explain", rule.code)
        assert (ran.code, ran.err) == (0, "")
        assert rule.name in ran.out


FLAGS = [
    (["--page-size"], ["--page-size  (SGLang 0.", "type:       integer", "releases:   all known releases"]),
    (["page_size"], ["--page-size  (SGLang 0."]),
    (["--attention-backend", "--sglang", "0.5.9"], ["(SGLang 0.5.9)", "choices:    triton, torch_native"]),
    (["--tp"], ["--tp-size, --tensor-parallel-size  (SGLang 0."]),
    (["--trust-remote-code"], ["type:       switch", "default:    off"]),
]


@pytest.mark.parametrize(("words", "says"), FLAGS, ids=[" ".join(w) for w, _ in FLAGS])
def test_a_flag(words: list[str], says: list[str], run: Run) -> None:
    ran = run("explain", *words)
    assert ran.code == 0
    for part in says:
        assert part in ran.out


def test_a_flag_names_the_rules_that_read_it(run: Run) -> None:
    assert "tree-drafting-on-trtllm-mha" in run("explain", "--speculative-eagle-topk").out


def test_the_rules_that_read_a_flag_are_in_the_order_of_their_numbers(run: Run) -> None:
    told = run("explain", "--page-size").out.partition("rules that read it:")[2].split()
    numbers = [int(word.removeprefix("SPC")) for word in told if word.startswith("SPC")]
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 1000


VARIABLES = [
    (["SGLANG_ENABLE_SPEC_V2"], ["SGLANG_ENABLE_SPEC_V2  environment variable (SGLang 0.", "needs no switch.\n\nreleases:   "]),
    (["SGLANG_ENABLE_SPEC_V2", "--sglang", "0.5.23"], ["(SGLang 0.5.23)\n\nSGLang 0.5.23 does not read it.\n", "gone in "]),
    (["SGLANG_LOG_MS"], ["type:       bool\ndefault:    off"]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "says"), VARIABLES, ids=[" ".join(w) for w, _ in VARIABLES])
def test_an_environment_variable(words: list[str], says: list[str], run: Run) -> None:
    ran = run("explain", *words)
    assert (ran.code, ran.err) == (0, "")
    for part in says:
        assert part in ran.out


def test_another_release_than_the_named_one_is_said(run: Run) -> None:
    ran = run("explain", "--page-size", "--sglang", "9.9")
    assert ran.code == 0
    assert ran.err.startswith("spec-lsp: warning: SGLang 9.9 is not known; this is 0.")


UNKNOWN = [
    (["SGLANG_ENABLE_SPEC_V9"], "reads a variable `SGLANG_ENABLE_SPEC_V9`. Did you mean `SGLANG_ENABLE_SPEC_V2`?"),
    (["invalid-chioce"], "Did you mean `invalid-choice`?"),
    (["SPC000"], "is no rule"),
    (["--max-model-len"], "no known SGLang release has `--max-model-len`. Did you mean `--context-length`?"),
    (["--speculative-"], "fits several flags"),
    ([], "name a rule, a code, a flag or an environment variable"),
    (["--page-size", "--sglang", "x"], "`x` is not a release"),
]


@pytest.mark.parametrize(("words", "says"), UNKNOWN, ids=[" ".join(w) for w, _ in UNKNOWN])
def test_what_is_unknown_is_told_with_what_was_meant(words: list[str], says: str, run: Run) -> None:
    ran = run("explain", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_rules(run: Run) -> None:
    table = run("rules").out
    listed = json.loads(run("rules", "--json").out)
    assert [r["code"] for r in listed] == [r.code for r in all_rules()]
    assert all(r["summary"] and r["topic"] and r["severity"] for r in listed)
    for rule in all_rules():
        assert rule.name in table


def test_settings(run: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.spec-lsp]\ngpu = "h200"\nrules = { SPC021 = "off" }\n')
    ran = run("settings", "clean.sh")
    assert ran.code == 0
    assert f"# {folder}/pyproject.toml" in ran.out
    assert 'gpu = "h200"' in ran.out
    assert 'rules = { SPC021 = "off" }' in ran.out


def test_settings_schema(run: Run) -> None:
    schema = json.loads(run("settings", "--schema").out)
    assert schema["properties"]["targets"]["type"] == "array"


def test_catalog_list(run: Run) -> None:
    lines = run("catalog", "list").out.splitlines()
    assert len(lines) >= 5
    assert any(line.startswith("0.5.23 ") for line in lines)


def test_catalog_build_says_what_is_wrong(run: Run) -> None:
    ran = run("catalog", "build", "llama")
    assert ran.code == 2
    assert "no sglang/srt/server_args.py in llama" in ran.err


# --- resolve -----------------------------------------------------------------------------------------------------------


def test_resolve_tells_value_and_reason(run: Run) -> None:
    ran = run("resolve", "--sglang", "0.5.23", "--gpu", "h100", "--", "--model-path", "./llama", "--page-size", "16")
    assert ran.code == 0
    assert "SGLang    0.5.23  (--sglang)" in ran.out
    assert "hardware  H100  (--gpu)" in ran.out
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line[:1].islower()}
    assert rows["page-size"] == ["16", "As", "typed:", "`--page-size", "16`."]
    assert rows["attention-backend"][0] == "fa3"
    assert ran.out.startswith("SGLang accepts this launch.\n")
    assert ran.out.index("What you typed\n") < ran.out.index("What SGLang decides for this launch\n")
    assert json.loads(re.search(r"^cuda-graph-config: (\{.*?\}\})$", ran.out, re.MULTILINE | re.DOTALL)[1])


def test_resolve_as_json(run: Run) -> None:
    ran = run("resolve", "--json", "--all", "--sglang", "0.5.23", "--gpu", "h100", "--", "--model-path", "./llama")
    told = json.loads(ran.out)
    assert told["outcome"] == "accepted"
    assert told["assumed"] == {"sglang": "0.5.23", "sglang_from": "--sglang", "gpu": "h100", "gpu_from": "--gpu"}
    assert told["fields"]["attention_backend"]["value"] == "fa3"
    assert told["fields"]["attention_backend"]["why"]
    assert told["fields"]["random_seed"]["why"][-1] == "It depends on the random seed: it is drawn at the start."
    assert len(told["fields"]) > 300


def test_resolve_tells_which_words_decide_and_which_rules_speak(run: Run) -> None:
    words = ("--gpu", "h100", "--", "--model-path", "./llama", "--attention-backend", "trtllm_mha", "--page-size", "8")
    told = " ".join(run("resolve", "--sglang", "0.5.23", *words).out.split())
    assert "Follows from `--attention-backend trtllm_mha`. See overridden-value." in told
    page = json.loads(run("resolve", "--json", "--sglang", "0.5.23", *words).out)["fields"]["page_size"]
    assert (page["value"], page["decided_by"], page["rules"]) == (64, ["attention_backend"], ["overridden-value"])


def test_resolve_lists_the_rest_when_asked(run: Run) -> None:
    words = ("resolve", "--sglang", "0.5.23", "--gpu", "h100")
    assert "--all shows it" in run(*words, "--", "--model-path", "./llama").out
    rest = run(*words, "--all", "--", "--model-path", "./llama").out.partition("What stays at its default\n")[2]
    assert re.search(r"^tp-size +1$", rest, re.MULTILINE)


def test_resolve_says_what_it_assumed(run: Run, folder: Path) -> None:
    bare = run("resolve", "--", "--model-path", "./llama").out
    assert "the newest known; name one with --sglang" in bare
    assert "not named" in bare
    (folder / "requirements.txt").write_text("sglang==0.5.9\n")
    (folder / "spec-lsp.toml").write_text('gpu = "b200"\n')
    told = run("resolve", "--", "--model-path", "./llama").out
    assert "0.5.9  (requirements.txt)" in told
    assert "B200  (settings)" in told


def test_resolve_refuses(run: Run) -> None:
    ran = run("resolve", "--sglang", "0.5.23", "--gpu", "h100", "--", "--model-path", "./llama", "--no-such-flag")
    assert ran.code == 1
    assert "error: unknown-flag[SPC001]: " in ran.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--"], "there is no launch"),
        (["--env", "X", "--", "--tp", "2"], "`--env X`: write it as NAME=VALUE"),
        (["--gpu", "x", "--", "y"], "is not a GPU"),
    ],
)
def test_resolve_usage(words: list[str], says: str, run: Run) -> None:
    ran = run("resolve", *words)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.parametrize(
    ("words", "program", "argv"),
    [
        (["python", "-m", "sglang.launch_server", "--tp", "2"], "launch_server", ["--tp", "2"]),
        (["/usr/bin/python3.11", "-m", "sglang.launch_server"], "launch_server", []),
        (["sglang", "serve", "model", "--tp", "2"], "serve", ["model", "--tp", "2"]),
        (["--tp", "2"], "launch_server", ["--tp", "2"]),
    ],
)
def test_entry_points(words: list[str], program: str, argv: list[str]) -> None:
    assert entry_point(words) == (program, argv)
