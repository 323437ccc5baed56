"""Fixes: what is offered, how far it may be applied by itself, and the text afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.analysis.fixes import apply, fix_all, fixes_for, repair, title_of
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.run import bind_variant
from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import Change
from spec_lsp.settings import options, read_settings
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Place
from tests.analysis.support import NAME, NOTHING, PINNED, SERVER, Memory, after, check, offered, repaired


@pytest.mark.parametrize(
    ("words", "rule", "title", "applicability", "result"),
    [
        ("--max-model-len 4096", "unknown-flag", "Write `--context-length`", "unsafe", "--context-length 4096"),
        ("--max-model-len=4096", "unknown-flag", "Write `--context-length`", "unsafe", "--context-length=4096"),
        ("--stream-output", "unknown-flag", "Write `--incremental-streaming-output`", "unsafe", "--incremental-streaming-output"),
        ("--attention-backend flashinfr", "invalid-choice", "Write `--attention-backend flashinfer`", "unsafe", "--attention-backend flashinfer"),
        ("--attention-backend=flashinfr", "invalid-choice", "Write `--attention-backend flashinfer`", "unsafe", "--attention-backend=flashinfer"),
        ("--attention-backend 'flashinfr'", "invalid-choice", "Write `--attention-backend flashinfer`", "unsafe", "--attention-backend 'flashinfer'"),
        ("--trust-remote-code=true", "unexpected-value", "Write `--trust-remote-code` without a value", None, "--trust-remote-code"),
        ("--tp 2 4", "stray-argument", "Remove `4`", None, "--tp 2"),
        ("--page-size 16 --page-size 32", "repeated-flag", "Remove `--page-size 16`", "safe", "--page-size 32"),
    ],
)  # fmt: skip
def test_preferred(words: str, rule: str, title: str, applicability: str | None, result: str) -> None:
    fixes = offered(f"{PINNED}{SERVER} {words}\n", rule)
    assert fixes, "no fix"
    assert fixes[0][0] == title
    assert fixes[0][1] == (applicability or fixes[0][1])
    assert fixes[0][2] == f"{PINNED}{SERVER} {result}\n"


@pytest.mark.parametrize("words", ["--tp two", "--tp-size", "--no-such-flag-at-all 3", "--tp 2 --page-size banana"])
def test_nothing_is_invented(words: str) -> None:
    text = f"{PINNED}{SERVER} {words}\n"
    (rule,) = {d.rule.name for d in check(text).diagnostics}
    assert offered(text, rule) == []


def test_every_reading_of_an_abbreviation_is_offered() -> None:
    fixes = offered(f"{PINNED}{SERVER} --cuda-graph-max-bs 64\n", "ambiguous-flag")
    assert [title for title, _, _ in fixes][:1] == ["Write `--cuda-graph-max-bs-decode`"]


def test_a_value_is_changed_where_it_is_written() -> None:
    text = f"{PINNED}BACKEND=flashinfr\n{SERVER} --attention-backend $BACKEND\n"
    assert offered(text, "invalid-choice")[0][2] == text.replace("flashinfr", "flashinfer")


@pytest.mark.parametrize(
    ("before", "result"),
    [
        (f"{SERVER} \\\n  --max-model-len 4096 \\\n  --tp 2\n", f"{SERVER} \\\n  --context-length 4096 \\\n  --tp 2\n"),
        (f"ARGS=(--tp 2 --max-model-len 4096)\n{SERVER} \"${{ARGS[@]}}\"\n", f"ARGS=(--tp 2 --context-length 4096)\n{SERVER} \"${{ARGS[@]}}\"\n"),
        (f"ARGS='--max-model-len 4096'\n{SERVER} $ARGS\n", f"ARGS='--context-length 4096'\n{SERVER} $ARGS\n"),
        (f"{SERVER} \\\r\n  --max-model-len 4096\r\n", f"{SERVER} \\\r\n  --context-length 4096\r\n"),
        (f"bash -c '{SERVER} --max-model-len 4096'\n", f"bash -c '{SERVER} --context-length 4096'\n"),
    ],
)  # fmt: skip
def test_the_text_around_is_kept(before: str, result: str) -> None:
    assert offered(PINNED + before, "unknown-flag")[0][2] == PINNED + result


# --- config files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "rule", "result"),
    [
        ("tp_size: 2\n", "unknown-flag", "tp-size: 2\n"),
        ('enable-metrics: "true"\n', "stray-argument", "enable-metrics: true\n"),
        ("disable-radix-cache: 'false'  # why\n", "stray-argument", "disable-radix-cache: false  # why\n"),
        ("attention-backend: flashinfr\n", "invalid-choice", "attention-backend: flashinfer\n"),
    ],
)
def test_config_file(config: str, rule: str, result: str) -> None:
    workspace = Memory({"/w/c.yaml": config})
    text = f"{PINNED}{SERVER} --config c.yaml\n"
    edits = fix_all(NAME, text, Options(), workspace, unsafe=True)
    assert rule in {d.rule.name for d in check(text, workspace=workspace).diagnostics}
    assert {e.place.document for e in edits} == {"/w/c.yaml"}
    assert apply(config, edits) == result


# --- fix-all -----------------------------------------------------------------------------------------------------------


def test_fix_all_goes_on_until_nothing_is_left() -> None:
    text = f"{PINNED}{SERVER} --max-model-len 4096 --attention-backend flashinfr --tp 2 4\n"
    done = repaired(text)
    assert done == f"{PINNED}{SERVER} --context-length 4096 --attention-backend flashinfer --tp 2\n"
    assert repaired(done) == done


def test_only_safe_fixes_unless_asked() -> None:
    text = f"{PINNED}{SERVER} --max-model-len 4096 --page-size 16 --page-size 32\n"
    assert "--max-model-len 4096" in repaired(text, unsafe=False)


def test_fix_all_of_nothing() -> None:
    assert fix_all(NAME, f"{PINNED}{SERVER}\n", Options(), Memory(), unsafe=True) == ()


def test_fix_all_is_one_minimal_edit() -> None:
    text = f"{PINNED}{SERVER} --max-model-len 4096\n"
    (edit,) = fix_all(NAME, text, Options(), Memory(), unsafe=True)
    start = text.index("max-model-len")
    assert start <= edit.place.start < edit.place.end <= start + len("max-model-len")


# --- edits and titles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "result"),
    [
        ([], "abcdef"),
        ([(0, 1, "X")], "Xbcdef"),
        ([(3, 3, "-")], "abc-def"),
        ([(4, 6, ""), (0, 2, "Y")], "Ycd"),
        ([(0, 2, ""), (2, 4, "Z")], "Zef"),
        ([(0, 3, ""), (2, 4, "Z")], None),
    ],
)
def test_apply(edits: list[tuple[int, int, str]], result: str | None) -> None:
    assert apply("abcdef", [Edit(Place("a", s, e), t) for s, e, t in edits]) == result


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (Change(set={"page_size": 1}), "Set `--page-size` to `1`"),
        (Change(drop=("page_size",)), "Remove `--page-size`"),
        (Change(set={"page_size": 1}, drop=("tp_size",)), "Set `--page-size` to `1` and remove `--tp`"),
        (Change(set={"trust_remote_code": True}), "Turn `--trust-remote-code` on"),
        (Change(set={"trust_remote_code": False}), "Turn `--trust-remote-code` off"),
        (Change(set_env={"SGLANG_X": "1"}), "Set SGLANG_X=1"),
        (Change(drop_env=("SGLANG_X",)), "Remove SGLANG_X"),
        (
            Change(set={"page_size": 1, "dp_size": 2}, drop=("tp_size",)),
            "Set `--page-size` to `1`, set `--dp-size` to `2` and remove `--tp`",
        ),
    ],
)
def test_title(change: Change, title: str) -> None:
    launch = check(f"{PINNED}{SERVER} --tp 2 --page-size 16").document.launches[0]
    binding = bind_variant(launch, 0, Release.parse("0.5.23"), lambda _: None)
    assert title_of(change, binding) == title


@pytest.mark.parametrize("model", ["/models/private", "llama-3.1-8b"])
@pytest.mark.parametrize(
    ("backend", "page_one", "chain"),
    [("fa4", True, True), ("flashmla", False, True), ("torch_native", False, False), ("wave", False, False)],
)
def test_a_tree_on_pages_is_not_led_to_a_launch_that_dies_later(
    model: str, backend: str, page_one: bool, chain: bool
) -> None:
    text = (
        f"# spec-lsp: sglang=0.5.23 gpu=h100\npython -m sglang.launch_server --model-path {model} --speculative-algorithm EAGLE "
        "--speculative-draft-model-path d --speculative-num-steps 5 --speculative-eagle-topk 8 "
        f"--speculative-num-draft-tokens 16 --page-size 64 --attention-backend {backend}\n"
    )
    analysis = check(text)
    (found,) = [d for d in analysis.diagnostics if d.rule.name == "tree-drafting-on-paged-backend"]
    titles = [f.title for f in fixes_for(analysis, found, Options(), NOTHING)]
    assert ("Set `--page-size` to `1`" in titles) == page_one
    assert ("Set `--speculative-eagle-topk` to `1`" in titles) == chain
    assert "Set `--attention-backend` to `fa3`" in titles


def test_flags_with_their_values_in_one_item_are_joined() -> None:
    pod = """# spec-lsp: sglang=0.5.23 gpu=h100
spec:
  containers:
    - image: lmsysorg/sglang:v0.5.23
      command: [python3, -m, sglang.launch_server]
      args:
        - --model-path=llama-3.1-8b
        - --tp 8
        - "--page-size 64"
"""
    analysis = check(pod, name="/w/pod.yaml")
    (diagnostic,) = analysis.diagnostics
    (fix,) = fixes_for(analysis, diagnostic, Options(), NOTHING)
    assert fix.title == "Write `--tp=8` `--page-size=64`"
    assert apply(pod, fix.edits) == pod.replace("--tp 8", "--tp=8").replace("--page-size 64", "--page-size=64")


@pytest.mark.parametrize("rule", ["stray-argument", "missing-flag"])
def test_a_model_that_serve_does_not_take_as_a_bare_word_is_named(rule: str) -> None:
    text = "# spec-lsp: sglang=0.5.9 gpu=h100\nsglang serve llama-3.1-8b --tp 2\n"
    (fix,) = offered(text, rule)
    assert fix[2] == text.replace("serve llama", "serve --model-path llama")
    assert repaired(text) == fix[2]


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ("--trust-remote-code true", "stray-argument"),
        ("--max-model-len 4096", "unknown-flag"),
        ("--attention-backend flashinfr", "invalid-choice"),
    ],
)
def test_what_makes_a_launch_run_at_all_is_never_safe(flags: str, rule: str) -> None:
    assert [applicability for _, applicability, _ in offered(PINNED + f"{SERVER} {flags}\n", rule)] == ["unsafe"]


LOOP = (
    PINNED
    + "for kv in auto fp8_e4m3 fp8_e5m2; do\n  {server} --attention-backend flashinfer --kv-cache-dtype $kv {more}\ndone\n"
)


def test_a_fix_is_safe_only_if_every_way_runs_the_same() -> None:
    """A value that a loop gives is written once for several launches."""
    text = PINNED.replace("h100", "b200") + (
        f"for kv in auto fp8_e4m3 fp8_e5m2; do\n  {SERVER.replace('llama-3.1-8b', 'deepseek-v3')} --attention-backend trtllm_mla "
        "--kv-cache-dtype $kv\ndone\n"
    )
    analysis = check(text)
    offers = [f for d in analysis.diagnostics for f in fixes_for(analysis, d, Options(), NOTHING)]
    assert all(f.applicability == "unsafe" for f in offers)


def test_fix_all_leaves_what_only_some_hardware_refuses() -> None:
    text = f"# spec-lsp: sglang=0.5.23\n{SERVER} --page-size 5 --stream-interval 4\n"
    assert any(d.severity == "warning" and d.rule.severity == "error" for d in check(text).diagnostics)
    assert fix_all(NAME, text, Options(), NOTHING, unsafe=True) == ()


def test_every_fix_is_told() -> None:
    text = PINNED + f"{SERVER} --max-model-len 4096 --stream-outputs\n"
    edits, applied = repair(NAME, text, Options(), NOTHING, unsafe=True)
    assert [(a.line, a.diagnostic.rule.name) for a in applied] == [(1, "unknown-flag")] * len(applied)
    assert len(edits) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile", 'FROM lmsysorg/sglang:v0.5.9\nCMD ["sglang", "serve", "llama-3.1-8b", "--tp", "2"]\n'),
        ("c.yaml", "services:\n  s:\n    image: lmsysorg/sglang:v0.5.9\n    command:\n      - sglang\n      - serve\n      - llama-3.1-8b\n"),
        ("pod.json", '{"apiVersion": "v1", "spec": {"image": "lmsysorg/sglang:v0.5.9", "command": ["sglang", "serve", "llama-3.1-8b"]}}'),
        ("main.tf", 'resource "a" "b" {\n  image = "lmsysorg/sglang:v0.5.9"\n  command = ["sglang", "serve", "llama-3.1-8b"]\n}\n'),
        ("Jenkinsfile", 'node { docker.image("lmsysorg/sglang:v0.5.9").inside { sh "sglang serve llama-3.1-8b" } }\n'),
    ],
)  # fmt: skip
def test_a_model_is_named_as_the_document_writes_words(name: str, text: str) -> None:
    """In a list it is an item of its own."""
    edits = fix_all(name, text, Options(), NOTHING, unsafe=True)
    changed = text
    for edit in sorted(edits, key=lambda e: e.place.start, reverse=True):
        changed = changed[: edit.place.start] + edit.text + changed[edit.place.end :]
    words = [w.text for w in check(changed, name=name).launches[0].launch.variants[0].words]
    assert words[:2] == ["--model-path", "llama-3.1-8b"]
    assert [d for d in check(changed, name=name).diagnostics if d.severity == "error"] == []


@pytest.mark.parametrize(
    ("settings", "flag", "choice"),
    [
        ({}, "--attention-backend", "fcfs"),
        ({"fix-all": ["all"]}, "--attention-backend", "fcfs"),
        ({"fix-all": ["unknown-flag"]}, "--attention-backend", "fcfss"),
        ({"fix-all": ["invalid-choice"]}, "--attention-backnd", "fcfs"),
        ({"fix-all": []}, "--attention-backnd", "fcfss"),
    ],
)
def test_fix_all_applies_what_the_settings_name(settings: dict[str, Any], flag: str, choice: str) -> None:
    text = "python -m sglang.launch_server --model-path x --attention-backnd triton --schedule-policy fcfss\n"
    chosen = options(read_settings(settings)[0])
    assert after(text, fix_all(NAME, text, chosen, NOTHING, unsafe=True)) == text.replace(
        "--attention-backnd", flag
    ).replace("fcfss", choice)


KEYS = "# spec-lsp: config sglang=0.5.23 gpu=b200\nmodel-path: m\n"
AS_TYPED = [
    (f"{PINNED}{SERVER} --attention-backend trtllm_mh\n", "invalid-choice", "Write `--attention-backend trtllm_mha`"),
    (f"{KEYS}attention-backend: trtllm_mh\n", "invalid-choice", "Write `attention-backend: trtllm_mha`"),
    (f"{KEYS}page-sise: 3\n", "unknown-flag", "Write `page-size`"),
    (
        f"{KEYS}speculative-algorithm: EAGLE3\nspeculative-num-steps: 3\nspeculative-draft-model-path: x\n",
        "steps-without-topk",
        "Remove `speculative-num-steps`",
    ),
    (
        f"{KEYS}speculative-algorithm: EAGLE3\nspeculative-num-steps: 3\nspeculative-draft-model-path: x\n",
        "steps-without-topk",
        "Set `speculative-eagle-topk` to `1` and set `speculative-num-draft-tokens` to `4`",
    ),
    (
        f"{PINNED}{SERVER} --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-draft-model-path x\n",
        "steps-without-topk",
        "Remove `--speculative-num-steps`",
    ),
]


RECIPE = """\
name: x
model: {path: org/m, container: lmsysorg/sglang:v0.5.23}
backend:
  type: sglang
  sglang_config:
    prefill:
      tensor-parallel-size: 8
      disable-cuda-graph: true
"""


def test_successors_of_keys_are_keys() -> None:
    analysis = check(RECIPE, name="/w/recipe.yaml")
    (found,) = [d for d in analysis.diagnostics if d.rule.name == "deprecated-flag"]
    titles = [fix.title for fix in fixes_for(analysis, found, Options(), NOTHING)]
    assert titles[0] == "Write `cuda-graph-backend-decode: disabled` and `cuda-graph-backend-prefill: disabled`"


@pytest.mark.parametrize(("text", "rule", "title"), AS_TYPED)
def test_fixes_name_settings_as_they_are_typed(text: str, rule: str, title: str) -> None:
    """Flags with dashes, keys of a mapping without."""
    name = "/w/serve.yaml" if text.startswith(KEYS) else NAME
    analysis = check(text, name=name)
    found = [
        fix.title
        for d in analysis.diagnostics
        if d.rule.name == rule
        for fix in fixes_for(analysis, d, Options(), NOTHING)
    ]
    assert title in found
    assert name == NAME or not [t for t in found if "`--" in t]
