"""The flags that programs around SGLang's parser take for themselves. All others go to that parser and are checked as usual.

The benches put theirs beside SGLang's in one parser (`BenchArgs.add_cli_args` of `sglang/bench_*.py`, since 0.5.15 `sglang/benchmark/*.py`;
`sglang/compile_deep_gemm.py`; `sglang/srt/weight_cache/daemon.py`). Dynamo reads its own first and passes on the rest
(`dynamo/sglang/args.py:parse_args`). A launch does not show the release of Dynamo, so the flags of all its releases are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from spec_lsp.catalog.argparse_rules import Arg
from spec_lsp.catalog.model import Catalog
from spec_lsp.syntax.launch import Program

Values = str
"""How many words follow a flag: none (""), one ("1"), any number ("*")."""


def _flags(none: str = "", one: str = "", many: str = "", either: str = "") -> Iterator[tuple[str, Values]]:
    """`either`: switches that also have a `--no-…` form."""
    yield from ((f"--{name}", "") for name in none.split())
    yield from ((f"--{name}", "1") for name in one.split())
    yield from ((f"--{name}", "*") for name in many.split())
    for name in either.split():
        yield f"--{name}", ""
        yield f"--no-{name}", ""


_BENCH = dict(
    _flags(
        none="apply-chat-template correctness-test disable-ignore-eos do-not-exit enable-multi-batch fake-prefill flush- "
        "hicache-storage force no-append-to-github-summary parallel-batch profile profile-by-stage profile-record- "
        "shapes return-logprob show-report skip-token-capacity-check skip-warmup",
        one="backend base-url cache-hit-rate client-stream-interval cut-len dataset-name dataset-path dist-init-method "
        "extra-request-body fixed-prompt-file gpu-id gsp-num-groups gsp-output-len gsp-prompts-per-group gsp-question- "
        "len gsp-system-prompt-len input-len-list input-len-step-percentage local-tokenizer-path log-decode-step "
        "logprob-start-len lora-request-distribution lora-zipf-alpha num-prompts output-path pp-rank profile-filename- "
        "prefix profile-output-dir profile-prefix profile-stage profile-start-step profile-steps prompt-filename "
        "prompt-suffix pydantic-result-filename random-input-len random-output-len random-range-ratio result-filename "
        "run-name seed sharegpt-context-len sharegpt-output-len temperature timeout tp-rank",
        many="batch-size input-len lora-name output-len profile-activities server-args-for-metrics",
    )
)

_DYNAMO = dict(
    _flags(
        none="help version",
        one="active-decode-blocks-threshold active-prefill-tokens-threshold active-prefill-tokens-threshold-frac admission- "
        "control component config-key custom-jinja-template disagg-config disagg-config-key discovery-backend dump- "
        "config-to embedding-transfer-mode enable-local-indexer endpoint endpoint-types engine-request-limit event- "
        "plane health-check-payload image-diffusion-base-url image-diffusion-fs-url kv-overlap-score-weight kv-state- "
        "endpoint media-output-fs-url media-output-http-url migration-limit multimodal-embedding-cache-capacity-gb "
        "namespace postprocessor preprocessor request-plane response-plane sglang-trace-level shared-cache-multiplier "
        "shared-cache-type store-kv",
        many="connector output-modalities",
        either="assume-kv-reuse dedicated-mm-encoder durable-kv-events embedding-worker enable-multimodal enable-rl enforce- "
        "disagg exclude-tools-when-tool-choice-none fpm-trace frontend-decoding image-diffusion-worker kv-events load- "
        "aware multimodal-embedding-cache-publisher multimodal-encode-worker multimodal-processor multimodal-worker "
        "serve-indexer track-active-blocks track-output-blocks use-remote-indexer use-sglang-tokenizer video- "
        "generation-worker",
    )
)
_DYNAMO["--no-enable-local-indexer"] = ""

OWN: Mapping[Program, Mapping[str, Values]] = MappingProxyType({"bench": _BENCH, "dynamo": _DYNAMO})

_FAMILIES: Mapping[Program, tuple[str, ...]] = {
    "dynamo": (
        "--dyn-",
        "--no-dyn-",
        "--router-",
        "--no-router-",
        "--afd-",
        "--tcp-tls-",
        "--no-tcp-tls-",
        "--nats-tls-",
        "--no-nats-tls-",
    )
}
"""Prefixes of flags that belong to the program, whatever follows: each release adds more."""

OTHER_ENGINE = frozenset(("--image-diffusion-worker", "--video-generation-worker"))
"""Flags with which Dynamo passes the rest to another parser than SGLang's."""


def is_strict(program: Program, args: Sequence[Arg]) -> bool:
    """Whether flags that are not the program's own are passed to SGLang's parser."""
    return program in OWN and not any(a.text in OTHER_ENGINE for a in args)


def is_own(program: Program, flag: str) -> bool:
    """Whether a program takes a flag for itself, including its abbreviations."""
    names = OWN.get(program, {})
    return flag.startswith(_FAMILIES.get(program, ())) or any(name.startswith(flag) for name in names)


def without_own(catalog: Catalog, program: Program, args: Sequence[Arg]) -> list[Arg]:
    """The words without the program's own flags and their values. Flags that SGLang's parser has under the same name are kept."""
    names, families = OWN.get(program, {}), _FAMILIES.get(program, ())
    kept: list[Arg] = []
    at = 0
    while at < len(args):
        arg = args[at]
        flag = (arg.text if arg.text is not None else arg.word.known_start).partition("=")[0]
        own = flag in names or flag.startswith(families or ("\0",))
        at += 1
        if not own or flag in catalog.by_spelling:
            kept.append(arg)
            continue
        joined = "=" in (arg.text if arg.text is not None else arg.word.known_start)
        values = "" if joined else names.get(flag, "?")
        while values and at < len(args) and _may_be_value(args[at]):
            at += 1
            if values != "*":
                break
    return kept


def _may_be_value(arg: Arg) -> bool:
    return not arg.word.splat if arg.text is None else not arg.text.startswith("-")
