"""What repairs change: what the writer would have done, and nothing by a guess."""

from __future__ import annotations

import pytest
import yaml

from spec_lsp.analysis.fixes import apply, fix_all, fixes_for
from spec_lsp.analysis.inputs import Options
from tests.analysis.support import NAME, NOTHING, PINNED, SERVER, Memory, check, rules_of


def repaired(
    text: str, *, unsafe: bool = True, name: str = NAME, workspace: Memory = NOTHING, options: Options | None = None
) -> str:
    edits = fix_all(name, text, options or Options(), workspace, unsafe=unsafe)
    edits = tuple(e for e in edits if e.place.document == name)
    return apply(text, edits) or text


# --- guesses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--quantisation fp8", "--quantization fp8"),
        ("--mem_fraction_static 0.8", "--mem-fraction-static 0.8"),
        ("--max-model-len 4096", "--context-length 4096"),
        (
            "--speculative-algorithm EGALE --speculative-draft-model-path llama-3.1-8b",
            "--speculative-algorithm EAGLE --speculative-draft-model-path llama-3.1-8b",
        ),
        ("--kv-cache-dtype fp8", "--kv-cache-dtype fp8_e4m3"),
        ("--attention-backend flashinfr", "--attention-backend flashinfer"),
    ],
)
def test_a_slip_is_mended(flags: str, expected: str) -> None:
    assert repaired(f"{PINNED}{SERVER} {flags}\n").startswith(f"{PINNED}{SERVER} {expected}")


@pytest.mark.parametrize(
    "flags",
    [
        "--enable-profiling",
        "--disable-flashinfer",
        "--kv-cache-dtype fp9_e4m3",
        "--attention-backend flash",
        "--attention-backend fa5",
        "--enable-cuda-graph",
    ],
)
def test_a_guess_is_offered_at_most(flags: str) -> None:
    text = f"{PINNED}{SERVER} {flags}\n"
    assert repaired(text) == text
    analysis = check(text)
    (found,) = [d for d in analysis.diagnostics if d.severity == "error"]
    assert not any(f.preferred for f in fixes_for(analysis, found, Options(), NOTHING))


# --- what runs stays as it is ----------------------------------------------------------------------------------------------

RUNS = (
    # remarks: what SGLang makes of a value
    ("overridden-value", "--page-size 16 --attention-backend flashmla --tp 8"),
    ("abbreviated-flag", "--enable-flashinfer"),
    ("grammar-without-tokenizer", "--skip-tokenizer-init --grammar-backend llguidance"),
    # hints whose fix changes what runs
    ("deprecated-flag", "--disable-cuda-graph"),
)  # fmt: skip


@pytest.mark.parametrize(("rule", "flags"), RUNS)
def test_a_launch_that_runs_is_left_as_it_is(rule: str, flags: str) -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', 'deepseek-v3')} {flags}\n"
    assert rule in {d.rule.name for d in check(text).diagnostics}
    assert repaired(text) == text
    assert not any(f.preferred for d in check(text).diagnostics for f in fixes_for(check(text), d, Options(), NOTHING))


def test_a_remark_is_applied_where_its_rule_is_named() -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', 'deepseek-v3')} {RUNS[0][1]}\n"
    assert repaired(text, unsafe=False, options=Options(fix_all=frozenset(("overridden-value",)))) != text


@pytest.mark.parametrize(
    ("model", "flags", "rule"),
    [
        # more GPUs, or a model that answers less well: somebody pays
        ("llama-3.3-70b", "", "weights-above-gpu-memory"),
        # another algorithm is another intention
        ("kimi-linear-48b", "--speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-draft --tp 4", "target-without-eagle3"),
        ("llama-3.1-8b", "--quantization mlx_q8", "quantization-not-on-this-device"),
    ],
)  # fmt: skip
def test_no_repair_gives_up_what_a_launch_is_about(model: str, flags: str, rule: str) -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', model)} {flags}".rstrip() + "\n"
    assert rule in {d.rule.name for d in check(text).diagnostics if d.severity == "error"}
    assert repaired(text) == text


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--nodes=3", "--nnodes=3"),
        ("--nnodes 3", "--nnodes 3"),
        ("--nnodes 2 --node-rank 1", "--nnodes 2 --node-rank 1"),
        ("--tp 8 --nnodes 3 --node-rank 0 --dist-init-addr a:50", "--tp 8 --nnodes 3 --node-rank 0 --dist-init-addr a:50"),
    ],
)  # fmt: skip
def test_no_repair_changes_the_number_of_nodes(flags: str, expected: str) -> None:
    """The name of the flag is mended; which machines there are, and how many GPUs they have, only the writer knows."""
    new = repaired(f"{PINNED}{SERVER} {flags}\n")
    assert new == f"{PINNED}{SERVER} {expected}\n"
    assert "gpus-not-divisible-by-nodes" in rules_of(new)


def test_nodes_stay_where_replicas_cannot_be_spread_over_them() -> None:
    new = repaired(f"{PINNED}{SERVER} --tp 2 --nnodes 2 --dist-init-addr 10.0.0.1:5000 --dp 2\n")
    assert "--nnodes 2" in new
    assert "error" not in {d.severity for d in check(new).diagnostics}


def test_the_checkpoint_says_which_quantization_was_meant() -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', 'qwen3-235b-fp8 --tp 4')} --quantization awq\n"
    assert repaired(text) == text.replace("awq", "fp8")


def test_a_repair_that_leaves_a_refusal_does_not_promise_acceptance() -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', 'llama-3.3-70b')} --page-size 16 --pp-size 1 --attention-backend ascend\n"
    analysis = check(text)
    refusals = [d for d in analysis.diagnostics if d.severity == "error"]
    assert "weights-above-gpu-memory" in {d.rule.name for d in refusals}
    for refusal in refusals:
        fixes = fixes_for(analysis, refusal, Options(), NOTHING)
        assert not any(f.title.startswith("Make SGLang accept") for f in fixes)
        assert any(f.preferred for f in fixes) == (refusal.rule.name != "weights-above-gpu-memory")


# --- what took the place of a flag ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--disable-piecewise-cuda-graph --tp=8", "--cuda-graph-backend-prefill disabled --tp=8"),
        ("--disable-piecewise-cuda-graph --tp 8", "--cuda-graph-backend-prefill disabled --tp 8"),
        (
            "--tp=8 --port=1 --dtype=auto --disable-piecewise-cuda-graph",
            "--tp=8 --port=1 --dtype=auto --cuda-graph-backend-prefill=disabled",
        ),
        ("--enable-deepep-moe --tp 8", "--moe-a2a-backend deepep --tp 8"),
        ("--tp 8 --cuda-graph-max-bs 8", "--tp 8 --cuda-graph-max-bs-decode 8"),
        ("--quantization none --tp 8", "--tp 8"),
        ("--quantization=None --tp 8", "--tp 8"),
        ("--tp 8 --dp 8 --enable-dp-attention", "--tp 8 --attn-dp-size 8"),
    ],
)
def test_a_flag_that_is_gone_becomes_what_took_its_place(flags: str, expected: str) -> None:
    server = SERVER.replace("llama-3.1-8b", "deepseek-v3")
    assert repaired(f"{PINNED}{server} {flags}\n") == f"{PINNED}{server} {expected}".rstrip(" ") + "\n"


def test_a_keyword_becomes_what_took_its_place() -> None:
    text = "import sglang as sgl\n# spec-lsp: sglang=0.5.23 gpu=h100\nsgl.Engine(model_path='llama-3.1-8b', disable_piecewise_cuda_graph=True)\n"
    new = repaired(text, name="/w/run.py")
    assert 'cuda_graph_backend_prefill="disabled")' in new
    compile(new, "run.py", "exec")


def test_a_slip_in_a_keywords_value_is_mended() -> None:
    text = "import sglang as sgl\n# spec-lsp: sglang=0.5.23 gpu=h100\nsgl.Engine(model_path='llama-3.1-8b', attention_backend='flashinfr')\n"
    assert repaired(text, name="/w/run.py") == text.replace("flashinfr", "flashinfer")


def test_keys_stay_keys() -> None:
    script = f"{PINNED}python -m sglang.launch_server --config c.yaml\n"
    config = "model-path: llama-3.1-8b\ndisable-cuda-graph: true\ntp-size: 2\n"
    workspace = Memory({"/w/c.yaml": config})
    edits = fix_all(NAME, script, Options(), workspace, unsafe=True)
    new = apply(config, [e for e in edits if e.place.document == "/w/c.yaml"])
    assert new is not None
    assert yaml.safe_load(new) == {
        "model-path": "llama-3.1-8b",
        "cuda-graph-backend-decode": "disabled",
        "cuda-graph-backend-prefill": "disabled",
        "tp-size": 2,
    }


def test_two_flags_for_one_are_only_written_where_every_release_knows_it() -> None:
    text = "python -m sglang.launch_server --model-path deepseek-v3 --tp 8 --dp 8 --enable-dp-attention\n"
    assert repaired(text) == text
    assert repaired("# spec-lsp: sglang=0.5.21\n" + text) == "# spec-lsp: sglang=0.5.21\n" + text


def test_what_is_safe_does_not_depend_on_a_release_that_nobody_named() -> None:
    text = f"SGL_DG_CACHE_DIR=/x {SERVER}\n"
    assert repaired(text, unsafe=False) == text
    assert repaired(PINNED + text, unsafe=False) == PINNED + text.replace("SGL_", "SGLANG_")


# --- told once -----------------------------------------------------------------------------------------------------------


def test_an_abbreviation_that_says_something_else_is_told() -> None:
    text = f"{PINNED}{SERVER} --enable-flashinfer --mem-fraction 0.8\n"
    (found,) = [d for d in check(text).diagnostics if d.rule.name == "abbreviated-flag"]
    assert "`--enable-flashinfer-allreduce-fusion`" in found.message


def test_a_deprecation_is_told_once_in_a_file() -> None:
    text = PINNED + f"{SERVER} --disable-cuda-graph\n" * 3
    (found,) = [d for d in check(text).diagnostics if d.rule.name == "deprecated-flag"]
    assert len(found.related) == 2
    assert "disable-cuda-graph" not in repaired(text, options=Options(fix_all=frozenset(("deprecated-flag",))))


def test_the_same_flag_in_two_branches_is_told_at_both_places() -> None:
    text = f'if [ -n "$X" ]; then A="--none-such 1"; else A="--none-such 1 --tp 2"; fi\n{PINNED}{SERVER} $A\n'
    places = {d.place for d in check(text).diagnostics if d.rule.name == "unknown-flag"}
    assert len(places) == 2


def test_the_same_word_in_several_ways_is_told_once() -> None:
    text = (
        f'A=(--none-such)\nif [ -n "$X" ]; then A+=(--nor-this); fi\nif [ -n "$Y" ]; then A=(--not-that "${{A[@]}}"); fi\n'
        f'{PINNED}{SERVER} "${{A[@]}}"\n'
    )
    found = [text[d.place.start : d.place.end] for d in check(text).diagnostics if d.rule.name == "unknown-flag"]
    assert sorted(found) == ["--none-such", "--nor-this", "--not-that"]


def test_a_key_that_every_release_refuses_is_told_once() -> None:
    """Old releases do not take it in a file, new ones have no such flag."""
    workspace = Memory({"/w/c.yaml": "model-path: llama-3.1-8b\nprefill-round-robin-balance: true\n"})
    (found,) = check("python -m sglang.launch_server --config c.yaml\n", workspace=workspace).diagnostics
    assert (found.rule.name, found.severity) == ("unknown-flag", "error")
    assert "removed in 0.5.20" in found.message


# --- releases that are not known -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag",
    [
        "--disable-mla",
        "--some-old-thing",
        "--enable-flashinfer-mla",
        "--enable-mla",
        "--enable-overlap-schedule",
        "--disable-flashinfer-sampling",
    ],
)
def test_a_release_older_than_any_that_is_known_may_have_had_a_flag(flag: str) -> None:
    text = f"docker run lmsysorg/sglang:v0.4.5-cu125 {SERVER} {flag}\n"
    assert [d.severity for d in check(text).diagnostics] == ["information"]


def test_a_flag_that_was_withdrawn_is_none_of_the_releases_that_say_so() -> None:
    text = f"docker run lmsysorg/sglang:v0.4.6.post5 {SERVER} --enable-flashinfer-mla\n"
    assert "removed-flag" in {d.rule.name for d in check(text).diagnostics}


@pytest.mark.parametrize("flag", ["--trust_remote_code", "--attenton-backend triton"])
def test_what_is_plainly_misspelt_is_no_flag_of_an_old_release(flag: str) -> None:
    text = f"docker run lmsysorg/sglang:v0.4.5-cu125 {SERVER} {flag}\n"
    assert "unknown-flag" in {d.rule.name for d in check(text).diagnostics}


def test_a_flag_that_came_later_is_none_of_an_older_release() -> None:
    text = f"docker run lmsysorg/sglang:v0.4.5-cu125 {SERVER} --attn-dp-size 2\n"
    assert "error" in {d.severity for d in check(text).diagnostics}


def test_a_launch_that_is_checked_by_its_flags_only_is_told_so() -> None:
    (found,) = check(f"docker run lmsysorg/sglang:v0.5.2 {SERVER}\n").diagnostics
    assert (found.rule.name, "flags only" in found.message) == ("unknown-release", True)


# --- the smallest set of changes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        # a value, not a removal
        ("--pp-size 2 --speculative-algorithm NGRAM", "--pp-size 1 --speculative-algorithm NGRAM"),
        # a companion, not a removal
        ("--enable-two-batch-overlap", "--enable-two-batch-overlap --moe-a2a-backend deepep"),
        # one that mends both
        ("--pp-size 2 --speculative-algorithm EAGLE --speculative-num-steps 2", None),
    ],
)
def test_the_least_that_makes_sglang_accept_a_launch(flags: str, expected: str | None) -> None:
    server = SERVER.replace("llama-3.1-8b", "qwen3-235b-fp8 --tp 4")
    new = repaired(f"{PINNED}{server} {flags}\n")
    assert expected is None or new == f"{PINNED}{server} {expected}\n"
    assert "error" not in {d.severity for d in check(new).diagnostics}


def test_stages_that_hold_the_weights_become_tensor_parallelism_where_drafts_run_in_none() -> None:
    """Without stages every GPU would hold all of a 70B model."""
    pinned = "# spec-lsp: sglang=0.5.23, gpu=h100\n"
    flags = (
        "--model-path meta-llama/Llama-3.1-70B-Instruct --speculative-algorithm STANDALONE --speculative-num-steps 3 "
        "--speculative-draft-model-path meta-llama/Llama-3.2-1B-Instruct --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4"
    )
    text = f"{pinned}python3 -m sglang.launch_server {flags} --pp-size 4\n"
    assert set(repaired(text).split()) - set(text.split()) == {"--tp-size"}
    assert "--pp-size" not in repaired(text)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--speculative-algorithm DFLASH", "--speculative-draft-model-path"),
        ("--ssl-certfile /c.pem", "--ssl-keyfile"),
        ("--enable-lora", "--lora-paths"),
    ],
)
def test_what_only_its_writer_knows_is_asked_for(flags: str, says: str) -> None:
    text = f"{PINNED}{SERVER} {flags}\n"
    assert repaired(text) == text
    (found,) = [d for d in check(text).diagnostics if d.severity == "error"]
    assert says in found.message


def test_a_launch_with_several_refusals_gets_one_action() -> None:
    text = f"{PINNED}{SERVER} --page-size 16 --speculative-algorithm NGRAM --pp-size 2 --tp 3\n"
    analysis = check(text)
    refusals = [d for d in analysis.diagnostics if d.severity == "error"]
    assert len(refusals) > 1
    for refusal in refusals:
        first = fixes_for(analysis, refusal, Options(), NOTHING)[0]
        assert (first.preferred, first.title.startswith("Make SGLang accept this launch: ")) == (True, True)


@pytest.mark.parametrize(
    "flags",
    ["--page-size 3", "--enable-mixed-chunk", "--chunked-prefill-size 65536 --tp 8 --dp 8 --enable-dp-attention"],
)
def test_a_launch_that_sglang_takes_keeps_its_values(flags: str) -> None:
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', 'deepseek-v3')} {flags}\n"
    before = [d for d in check(text).diagnostics if d.severity == "error"]
    assert before or all(word in repaired(text) for word in flags.split()[:2])


def test_dividing_a_value_among_ranks_is_no_override() -> None:
    text = "# spec-lsp: sglang=0.5.23 gpu=h200\npython -m sglang.launch_server --model-path deepseek-v3 --tp 8 --dp 8 --enable-dp-attention --chunked-prefill-size 65536\n"
    assert "overridden-value" not in {d.rule.name for d in check(text).diagnostics}


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1e-320", "0", "nan"])
def test_no_number_is_too_large_for_what_is_offered_instead(value: str) -> None:
    found = check(
        f"{PINNED}{SERVER} --mem-fraction-static {value} --page-size {value} --chunked-prefill-size {value}\n"
    )
    for diagnostic in found.diagnostics:
        fixes_for(found, diagnostic, Options(), NOTHING)


# --- a companion before a removal --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "flags", "added"),
    [
        ("mistral-7b", "--disaggregation-decode-enable-offload-kvcache", {"--disaggregation-mode decode", "--hicache-storage-backend file"}),
        ("deepseek-v3 --tp 8", "--enable-kv-cache-sharding --attention-backend fa3", {"--disaggregation-mode prefill"}),
        ("llama-3.1-8b", "--prefill-only-disable-kv-cache", {"--is-embedding", "--disable-radix-cache"}),
        ("llama-3.1-8b", "--prefill-only-disable-kv-cache --attention-backend triton", {"--is-embedding", "--disable-radix-cache"}),
    ],
)  # fmt: skip
def test_companions_are_added_before_a_flag_is_given_up(model: str, flags: str, added: set[str]) -> None:
    """However many it takes: a flag for one kind of server tells which kind was meant."""
    new = repaired(f"{PINNED}{SERVER.replace('llama-3.1-8b', model)} {flags}\n")
    kept = next(word for word in flags.split() if word.startswith("--"))
    assert kept in new
    assert all(words in new for words in added)
    assert "error" not in {d.severity for d in check(new).diagnostics}


@pytest.mark.parametrize(
    ("model", "flags", "gone"),
    [
        # its class cannot, whatever else is set
        ("deepseek-v3 --tp 8", "--enable-pdmux", "--enable-pdmux"),
        ("qwen3-8b", "--dllm-algorithm LowConfidence", "--dllm-algorithm"),
        ("qwen3-8b", "--enable-hisparse", "--enable-hisparse"),
        ("deepseek-v3.2 --tp 8", "--prefill-only-disable-kv-cache", "--prefill-only-disable-kv-cache"),
        # the server is told to be of another kind
        ("mistral-7b", "--disaggregation-mode prefill --disaggregation-decode-enable-offload-kvcache", "--disaggregation-decode-enable-offload-kvcache"),
    ],
)  # fmt: skip
def test_what_no_companion_mends_is_taken_out_alone(model: str, flags: str, gone: str) -> None:
    """What was tried on the way is not left behind."""
    text = f"{PINNED}{SERVER.replace('llama-3.1-8b', model)} {flags}\n"
    new = repaired(text)
    assert gone not in new
    assert set(new.split()) <= set(text.split())
    assert "error" not in {d.severity for d in check(new).diagnostics if d.rule.name != "weights-above-gpu-memory"}
