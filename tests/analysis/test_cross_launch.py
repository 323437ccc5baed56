"""Launches of one document that run together."""

from __future__ import annotations

import pytest

from spec_lsp.resolution.engine import RULES
from tests.analysis.support import PINNED, SERVER, check, offered, only, repaired, said

PREFILL = f"{SERVER} --disaggregation-mode prefill"
DECODE = f"{SERVER} --disaggregation-mode decode"
RANK = f"{SERVER} --tp 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000"
EAGLE = "--speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-num-draft-tokens 8"


def together(text: str) -> list[tuple[str, str]]:
    """(rule, underlined text) of what is said of the launches together."""
    return [(rule, place) for _, rule, place in said(PINNED + text) if RULES[rule].code in CODES]


CODES = {f"SPC{n:03}" for n in range(50, 59)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{PREFILL} --page-size 64 &\n{DECODE} --page-size 16", [("page-sizes-differ", "--page-size 16")]),
        (f"{PREFILL} &\n{DECODE} --page-size 16", [("page-sizes-differ", "--page-size 16")]),
        (f"{DECODE} --page-size 16 &\n{PREFILL} --page-size 64", [("page-sizes-differ", "--page-size 16")]),
        (f"{PREFILL} --kv-cache-dtype fp8_e4m3 &\n{DECODE}", [("kv-cache-dtypes-differ", "python -m sglang.launch_server")]),
        (
            f"{PREFILL} --kv-cache-dtype fp8_e4m3 &\n{DECODE} --kv-cache-dtype fp8_e5m2",
            [("kv-cache-dtypes-differ", "--kv-cache-dtype fp8_e5m2")],
        ),
        (f"{PREFILL} --pp-size 4 &\n{DECODE} --pp-size 2", [("pipeline-sizes-differ", "--pp-size 2")]),
        (
            f"{PREFILL} --disaggregation-transfer-backend nixl &\n{DECODE}",
            [("transfer-backends-differ", "python -m sglang.launch_server")],
        ),
        (
            f"{PREFILL} {EAGLE} --speculative-draft-model-path a --speculative-eagle-topk 1 &\n"
            f"{DECODE} {EAGLE} --speculative-draft-model-path b --speculative-eagle-topk 2",
            [
                ("draft-models-differ", "--speculative-draft-model-path b"),
                ("tree-wider-than-prefills", "--speculative-eagle-topk 2"),
            ],
        ),
        (f"{RANK} --node-rank 0 &\n{RANK} --node-rank 1 --page-size 64", [("ranks-differ", "--page-size 64")]),
        (
            f"{RANK} --node-rank 0 --enable-dp-attention --dp 2 &\n{RANK} --node-rank 1",
            [("ranks-differ", "python -m sglang.launch_server")],
        ),
        (
            f"{RANK} --node-rank 0 &\n{RANK.replace('10.0.0.1', '10.0.0.2')} --node-rank 1",
            [("ranks-do-not-meet", "--dist-init-addr 10.0.0.2:5000")],
        ),
        *(
            (
                f"{RANK.replace('10.0.0.1:5000', one)} --node-rank 0 &\n{RANK.replace('10.0.0.1:5000', other)} --node-rank 1",
                [("ranks-do-not-meet", f"--dist-init-addr {other}")],
            )
            for one, other in [("head:5000", "head:6000"), ("head:5000", "10.0.0.1:6000"), ("node1:5000", "node10:5000")]
        ),
        (f"#SBATCH --gres=gpu:8\n{RANK} --node-rank 0 &\n{RANK} --node-rank 1", [("more-gpus-together", "--tp 16")]),
    ],
)  # fmt: skip
def test_disagreement(text: str, found: list[tuple[str, str]]) -> None:
    assert sorted(together(text)) == sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        f"{PREFILL} &\n{DECODE}",
        f"{PREFILL} --page-size 64 &\n{DECODE} --page-size 64",
        f"{PREFILL} --page-size $SIZE &\n{DECODE} --page-size 16",
        f"{PREFILL} $MORE &\n{DECODE} --page-size 16",
        f"{PREFILL} --pp-size 4 &\n{DECODE}",
        f"{PREFILL} --tp 8 &\n{DECODE} --tp 4",
        f"{PREFILL} &\n{DECODE} {EAGLE} --speculative-eagle-topk 1 --speculative-draft-model-path a",
        # Another recipe of the same file agrees with it.
        f"{PREFILL} --page-size 64 &\n{PREFILL} --page-size 16 &\n{DECODE} --page-size 16",
        # Another model's server is no partner.
        f"{PREFILL.replace('llama-3.1-8b', 'qwen3-8b')} --page-size 64 &\n{DECODE} --page-size 16",
        # What `auto` comes to is not known.
        f"{PREFILL.replace('llama-3.1-8b', '/m')} --kv-cache-dtype fp8_e4m3 &\n{DECODE.replace('llama-3.1-8b', '/m')}",
        f"PAGE=${{PAGE:-64}}\n{PREFILL} --page-size $PAGE &\n{DECODE} --page-size $PAGE",
        # Ranks.
        f"{RANK} --node-rank 0 &\n{RANK} --node-rank 1 --port 40000 --log-level debug",
        f"{RANK} --node-rank 0 &\n{RANK.replace('10.0.0.1', '$HEAD')} --node-rank 1",
        # Rank 0 listens everywhere: others reach it by a name.
        f"{RANK.replace('10.0.0.1', '0.0.0.0')} --node-rank 0 &\n{RANK.replace('10.0.0.1', 'head-0.svc')} --node-rank 1",
        f"{RANK.replace('10.0.0.1', '[::]')} --node-rank 0 &\n{RANK.replace('10.0.0.1', 'head-0.svc')} --node-rank 1",
        # A name and a number may be of one node, and so may a name and the same with its domain.
        *(
            f"{RANK.replace('10.0.0.1', one)} --node-rank 0 &\n{RANK.replace('10.0.0.1', other)} --node-rank 1"
            for one, other in [
                ("localhost", "127.0.0.1"),
                ("[::1]", "localhost"),
                ("10.0.0.1", "head"),
                ("head", "10.0.0.1"),
                ("head-0", "head-0.head-svc"),
                ("node1.cluster", "node1"),
                ("Node1", "tcp://node1"),
            ]
        ),
        f"{RANK} --node-rank $RANK --page-size 64\n{RANK} --node-rank 1",
        f"{RANK} --node-rank 0 --page-size 64\n{RANK} --node-rank 0\n{RANK} --node-rank 1",
        f"#SBATCH --gres=gpu:16\n{RANK} --node-rank 0 &\n{RANK} --node-rank 1",
    ],
)
def test_agreement(text: str) -> None:
    assert together(text) == []


def test_releases_that_do_not_compare_page_sizes() -> None:
    text = f"{PREFILL} --page-size 64 &\n{DECODE} --page-size 16"
    rules = [d.rule.name for d in check(f"# spec-lsp: sglang=0.5.7 gpu=h100\n{text}").diagnostics]
    assert "page-sizes-differ" not in rules


def test_message_and_partner() -> None:
    text = PINNED + f"{PREFILL} --page-size 64 &\n{DECODE} --page-size 16"
    found = only(text, "page-sizes-differ")
    assert found.severity == "warning"
    assert found.message == (
        "The decode server runs with `--page-size 16` and its prefill server with `--page-size 64`: the decode server refuses every request."
    )
    (related,) = found.related
    assert text[related.place.start : related.place.end] == "--page-size 64"


def test_fix_takes_over_what_the_partner_has() -> None:
    text = PINNED + f"{PREFILL} --page-size 64 &\n{DECODE} --page-size 16"
    (fix,) = offered(text, "page-sizes-differ")
    assert fix == ("Set `--page-size` to `64`", "unsafe", text.replace("--page-size 16", "--page-size 64"))
    text = PINNED + f"{PREFILL} &\n{DECODE} --disaggregation-transfer-backend nixl"
    ((title, _, after),) = offered(text, "transfer-backends-differ")
    assert title == "Remove `--disaggregation-transfer-backend`"
    assert after == text.replace(" --disaggregation-transfer-backend nixl", "")


def test_an_address_that_is_good_for_its_own_node_only_is_never_copied() -> None:
    text = f"{RANK.replace('10.0.0.1', '0.0.0.0')} --node-rank 0 &\n{RANK.replace('10.0.0.1:5000', 'head:6000')} --node-rank 1\n"
    assert "ranks-do-not-meet" in {d.rule.name for d in check(text).diagnostics}
    assert repaired(text) == text
