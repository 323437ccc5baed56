"""From what a server printed to the rule: refusals that people met, in logs as they look, their messages in other words."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.analysis.crash import MAX_LINE, MAX_LINES, Crash, candidates, launch_of, read_log
from spec_lsp.catalog.release import Release

LLAMA, V3, GPT_OSS = "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b"
NEXT, V32 = "Qwen/Qwen3-Next-80B-A3B-Instruct", "deepseek-ai/DeepSeek-V3.2"


@dataclass(frozen=True)
class Died:
    """What the innermost function of SGLang raised, and the rule that tells it."""

    release: str
    where: str
    exception: str
    message: str
    rule: str

    def traceback(self) -> str:
        file, _, function = self.where.partition(":")
        return (
            "Traceback (most recent call last):\n"
            '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
            '  File "/sgl-workspace/sglang/python/sglang/launch_server.py", line 36, in <module>\n'
            "    server_args = prepare_server_args(sys.argv[1:])\n"
            f'  File "/usr/lib/python3.12/site-packages/sglang/srt/{file}", line 812, in {function}\n'
            "    raise\n"
            f"{self.exception}{': ' + self.message if self.message else ''}\n"
        )


HOOKS = "arg_groups/"
DIED = [
    Died("0.5.23", f"{HOOKS}speculative_hook.py:_handle_eagle_family", "ValueError", "trtllm_mha: draft trees need topk 1", "tree-drafting-on-trtllm-mha"),
    Died("0.5.23", f"{HOOKS}speculative_hook.py:_handle_dspark", "ValueError", "DSPARK wants a draft: set --speculative-draft-model-path", "dspark-without-draft"),
    Died("0.5.23", f"{HOOKS}speculative_hook.py:_handle_dflash", "ValueError", "DFLASH wants a draft: set --speculative-draft-model-path", "dflash-without-draft"),
    Died("0.5.23", f"{HOOKS}validation_hook.py:check_two_batch_overlap", "ValueError", "two batch overlap without an a2a backend", "two-batch-overlap-without-exchange"),
    Died("0.5.23", f"{HOOKS}overrides.py:_mla_kv_cache_dtype_checks", "ValueError", "trtllm_mla is a backend for Blackwell (SM100, SM12x); use another", "trtllm-mla-off-blackwell"),
    Died("0.5.9", "server_args.py:_handle_attention_backend_compatibility", "ValueError", "trtllm_mla is a backend for Blackwell (SM100, SM12x); use another", "trtllm-mla-off-blackwell"),
    Died("0.5.12", "server_args.py:_handle_attention_backend_compatibility", "ValueError", "tokenspeed_mla runs on Blackwell GPUs alone", "tokenspeed-mla-off-blackwell"),
    Died("0.5.9", "server_args.py:_handle_model_specific_adjustments", "AssertionError", "gpt-oss: none of these attention backends has sinks", "gpt-oss-on-sinkless-backend"),
    Died("0.5.9", "server_args.py:check_lora_server_args", "ValueError", "LoRA goes with NGRAM speculative decoding alone", "lora-with-unfit-speculation"),
    Died("0.5.9", "server_args.py:_handle_kv4_compatibility", "AssertionError", "fp4 kv cache: another attention backend is wanted", "fp4-kv-cache-backend"),
    Died("0.5.9", "server_args.py:_handle_mamba_radix_cache", "AssertionError", "this model has no extra buffer for mamba", "extra-buffer-not-supported-by-model"),
    Died("0.5.9", "server_args.py:_handle_cache_compatibility", "ValueError", "offload of the decode kv cache is for decode servers", "decode-offload-off-decode-server"),
    Died("0.5.9", "server_args.py:_handle_cache_compatibility", "ValueError", "hierarchical host cache and no radix cache exclude each other", "host-cache-without-radix-cache"),
    Died("0.5.9", "server_args.py:_handle_speculative_decoding", "TypeError", "'>' between NoneType and int", "steps-without-topk"),
    Died("0.5.9", "server_args.py:_handle_speculative_decoding", "ValueError", "topk above 1 with a page size above 1 on a paged backend", "tree-drafting-on-paged-backend"),
    Died("0.5.12", "server_args.py:_handle_deterministic_inference", "ValueError", "deterministic inference takes fewer attention backends", "nondeterministic-attention-backend"),
    Died("0.5.12", "server_args.py:_handle_speculative_decoding", "ValueError", "an ngram corpus wants a budget above zero", "ngram-corpus-without-budget"),
    Died("0.5.23", "dllm/config.py:from_server_args", "RuntimeError", "no diffusion model: LlamaForCausalLM", "diffusion-algorithm-on-other-model"),
    Died("0.5.23", f"{HOOKS}kv_cache_hook.py:handle_cache_compatibility", "ValueError", "decode offload: the argument is for the decode side", "decode-offload-off-decode-server"),
    Died("0.5.23", "layers/attention/attention_registry.py:create_trtllm_mla_backend", "ValueError", "this model has no latent attention (MLA)", "latent-backend-for-plain-attention"),
    Died("0.5.23", "layers/attention/attention_registry.py:create_flashattention_v3_backend", "AssertionError", "fa3 wants Hopper", "fa3-off-hopper"),
]  # fmt: skip


@pytest.mark.parametrize("died", DIED, ids=lambda d: f"{d.release}-{d.rule}")
def test_a_traceback_leads_to_its_rule(died: Died) -> None:
    (crash,) = read_log(died.traceback()).crashes
    assert crash.where == f"{died.where.rpartition('/')[2]}"
    assert died.rule in [rule.name for rule in candidates(crash, Release.parse(died.release))[:3]]
    assert died.rule in [rule.name for rule in candidates(crash, None)]


ARGPARSE = [
    ("launch_server.py: error: unrecognized arguments: --no-such-flag 4", "unknown-flag"),
    ("sglang serve: error: unrecognized arguments: stray", "stray-argument"),
    (
        "launch_server.py: error: ambiguous option: --cuda-graph-bs could match --cuda-graph-bs-decode, …",
        "ambiguous-flag",
    ),
    (
        "launch_server.py: error: argument --attention-backend: invalid choice: 'flashinfr' (choose from …)",
        "invalid-choice",
    ),
    ("launch_server.py: error: argument --tp: invalid int value: 'eight'", "invalid-value"),
    ("launch_server.py: error: argument --page-size: expected one argument", "missing-value"),
    ("launch_server.py: error: argument --cuda-graph-bs: expected at least one argument", "missing-value"),
    ("launch_server.py: error: the following arguments are required: --model-path/--model", "missing-flag"),
    ("launch_server.py: error: argument --enable-metrics: ignored explicit argument 'true'", "unexpected-value"),
]


@pytest.mark.parametrize(("line", "rule"), ARGPARSE, ids=[f"{n}-{r}" for n, (_, r) in enumerate(ARGPARSE)])
def test_an_error_of_the_argument_parser_leads_to_its_rule(line: str, rule: str) -> None:
    (crash,) = read_log(f"usage: launch_server.py [-h] …\n{line}\n").crashes
    assert crash.where == "the command line"
    assert [r.name for r in candidates(crash, None)] == [rule]


def compose(text: str) -> str:
    return "".join(f"sglang-1  | {line}\n" for line in text.splitlines())


def containerd(text: str) -> str:
    return "".join(f"2026-11-02T10:00:00.000000000Z stderr F {line}\n" for line in text.splitlines())


def coloured(text: str) -> str:
    return "".join(f"\x1b[31m{line}\x1b[0m\n" for line in text.splitlines())


def of_a_rank(text: str) -> str:
    return "[2026-11-02 10:00:00 TP0] Scheduler hit an exception: " + text + "\n[2026-11-02 10:00:01] Killed\n"


@pytest.mark.parametrize("written", [compose, containerd, coloured, of_a_rank])
def test_what_stands_before_the_lines_is_no_obstacle(written: object) -> None:
    assert callable(written)
    (crash,) = read_log(written(DIED[0].traceback())).crashes
    assert candidates(crash, None)[0].name == DIED[0].rule


def test_eight_ranks_say_it_once() -> None:
    assert len(read_log("\n".join(of_a_rank(DIED[0].traceback()) for _ in range(8))).crashes) == 1


def test_a_chain_of_exceptions_is_told_from_its_root() -> None:
    chain = (
        DIED[0].traceback()
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + DIED[1].traceback()
    )
    assert [c.message for c in read_log(chain).crashes] == [DIED[0].message, DIED[1].message]


def test_other_programs_tracebacks_are_none() -> None:
    other = 'Traceback (most recent call last):\n  File "/app/main.py", line 3, in main\nValueError: mine\n'
    assert read_log(other).crashes == ()


def test_a_place_that_no_rule_tells_has_none() -> None:
    (crash,) = read_log(DIED[0].traceback().replace("_handle_eagle_family", "no_such_function")).crashes
    assert candidates(crash, None) == ()


# --- the launch --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "launch"),
    [
        (
            "+ python3 -m sglang.launch_server --model-path x --tp 8\nLoading …",
            "python3 -m sglang.launch_server --model-path x --tp 8",
        ),
        ("+ exec sglang serve x \\\n  --tp 8\n", "sglang serve x    --tp 8"),
        ("usage: python -m sglang.launch_server [-h]\n", ""),
        (
            f"[10:00] server_args=ServerArgs(model_path='{LLAMA}', tokenizer_path=None, tp_size=8, page_size=1, enable_metrics=True, "
            "lora_paths=[], cuda_graph_config=CudaGraphConfig(decode=Phase(max_bs=8), x={'a': 1}), attention_backend='fa3', port=30000)",
            f"python3 -m sglang.launch_server --model-path {LLAMA} --tp-size 8 --page-size 1 --enable-metrics --attention-backend fa3",
        ),
        ("nothing at all", ""),
    ],
)
def test_the_launch_is_found(log: str, launch: str) -> None:
    assert launch_of(read_log(log), Release.parse("0.5.19")) == launch


@pytest.mark.parametrize(
    ("log", "release"),
    [
        ("pip install sglang==0.5.9", "0.5.9"),
        ("image lmsysorg/sglang:v0.5.12.post1-cu130", "0.5.12.post1"),
        ("sglang 0.5.19 starts", "0.5.19"),
        ("/site-packages/sglang-0.5.20.dist-info", "0.5.20"),
        ("torch 2.9.1, flashinfer 0.5.3", None),
    ],
)
def test_the_release_is_found(log: str, release: str | None) -> None:
    found = read_log(log).release
    assert (str(found) if found else None) == release


def test_the_one_gpu_is_found() -> None:
    h100, both = read_log("| 0  NVIDIA H100 80GB HBM3 |").hardware, read_log("NVIDIA H100 and NVIDIA B200").hardware
    assert h100
    assert h100.name == "h100"
    assert both is None


@given(st.text(st.sampled_from("Traceback (most recent call last):\n File\"sglang/,in_ServerArgs('=)[]{}Error|\\")))
def test_any_text_is_read(text: str) -> None:
    log = read_log(text)
    assert all(isinstance(crash, Crash) for crash in log.crashes)
    launch_of(log, None)


# --- logs of any size ----------------------------------------------------------------------------------------------------

STARTED = "Traceback (most recent call last):\n"
REPEATED = [
    ("", "a", ""),
    ("", "python", ""),
    ("", "xpython3.", " "),
    ("", "-python ", ""),
    ("python ", "-m ", ""),
    ("", "sglang[", ""),
    ("sglang==", "1", ""),
    ("", "sglang.launch_server", ""),
    ("", "error: ", ""),
    ("", "\x1b[;", ""),
    ("", "x\\\n", ""),
    (STARTED, "a.", ""),
    (STARTED, "A", ""),
    ("", 'File "x", line 1', ""),
    ("", "ServerArgs(", ""),
    ("ServerArgs(", "a='", "("),
    ("ServerArgs(", "a=[", "("),
    ("ServerArgs(a=b", " ", "("),
    ("ServerArgs(a='b'", " ", "("),
    ("ServerArgs(a=", "-", "1)"),
    ("ServerArgs(a=", "1+", "1)"),
]
"""What quadratic expressions choke on: (before, repeated, after)."""


@pytest.mark.parametrize("parts", REPEATED, ids=[f"{n}-{r[1].strip()!r}" for n, r in enumerate(REPEATED)])
def test_a_long_line_is_read_at_once(parts: tuple[str, str, str]) -> None:
    before, repeated, after = parts
    began = time.process_time()
    read_log(before + repeated * ((MAX_LINE - 1000) // len(repeated)) + after)
    assert time.process_time() - began < 3  # far more than it takes, far less than what is quadratic in it


def test_what_lies_behind_a_line_without_end_is_found() -> None:
    assert read_log("{" + "x" * 1_000_000 + "}\n" + DIED[0].traceback()).crashes


def test_of_a_long_log_the_beginning_and_the_end_are_read() -> None:
    log = read_log("sglang serve x --tp 8\n" + "Decode batch\n" * (MAX_LINES + 1) + DIED[0].traceback())
    assert log.commands == ("sglang serve x --tp 8",)
    assert [crash.message for crash in log.crashes] == [DIED[0].message]
