"""`spec-lsp batch`: one answer a line, in order, whatever the lines are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import MODELS, Ran

Spawn = Callable[..., Ran]


def case(*argv: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "argv": ["--model-path", "{models}/llama-3.1-8b", *argv],
        "env": {},
        "version": "0.5.23",
        "gpu": "h100",
        **more,
    }


def ask(spawn: Spawn, *cases: Any, words: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    lines = [c if isinstance(c, str) else json.dumps(c) for c in cases]
    ran = spawn("batch", "--models", MODELS, *words, input="\n".join(lines).encode(errors="surrogatepass") + b"\n")
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_verdicts(spawn: Spawn) -> None:
    answers = ask(
        spawn,
        case(id=1),
        case("--no-such-flag", id="two"),
        case("--attention-backend", "trtllm_mha", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "{models}/eagle3-draft",
             "--speculative-num-steps", "3", "--speculative-eagle-topk", "4", "--speculative-num-draft-tokens", "8", id=3, gpu="b200"),
    )  # fmt: skip
    assert [(a["id"], a["verdict"]) for a in answers] == [(1, "accepted"), ("two", "bad-arguments"), (3, "refused")]
    assert answers[0]["findings"] == []
    assert answers[0]["resolved"]["attention_backend"] == "fa3"
    assert "model_path" not in answers[0]["resolved"], "what {models} stands for is the asker's"
    assert answers[1]["findings"][0]["rule"] == "unknown-flag"
    first = answers[2]["findings"][0]
    assert (first["severity"], first["late"], first["raises"]) == ("error", False, "ValueError")
    assert first["sglang"].endswith(":_handle_eagle_family")


def test_early_errors_and_refusals_go_together(spawn: Spawn) -> None:
    cases = [case("--page-size", size, "--attention-backend", backend, gpu=gpu, version=version)
             for size in ("1", "16") for backend in ("fa3", "trtllm_mha", "flashmla") for gpu in ("h100", None) for version in ("0.5.9", None)]  # fmt: skip
    for answer in ask(spawn, *cases):
        early = [f for f in answer["findings"] if f["severity"] == "error" and not f["late"]]
        assert bool(early) == (answer["verdict"] in ("refused", "bad-arguments"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[]", "`argv` must be"),
        ("null", "`argv` must be"),
        ('{"id": 1}', "`argv` must be"),
        ('{"id": 1, "argv": "--tp 2"}', "`argv` must be"),
        ('{"id": 1, "argv": [1]}', "`argv` must be"),
        ('{"id": 1, "argv": [], "env": {"A": 1}}', "`env` must map"),
        ('{"id": 1, "argv": [], "version": "9.9.9"}', "no SGLang release '9.9.9'"),
        ('{"id": 1, "argv": [], "version": "0.5.9", "gpu": "tpu"}', "no GPU 'tpu'"),
        ("\ud800", "not JSON"),
    ],
)
def test_a_line_that_is_no_case_is_answered(line: str, why: str, spawn: Spawn) -> None:
    answers = ask(spawn, line, case(id="after"))
    assert [a["verdict"] for a in answers] == ["unknown", "accepted"]
    assert why in answers[0]["error"]
    assert answers[1]["id"] == "after"


def test_files_of_a_case(spawn: Spawn) -> None:
    config = case("--config", "{files}/c.yaml", files={"c.yaml": "page-size: 16\nno-such-key: 1\n"})
    answers = ask(spawn, config, case("--config", "{files}/gone.yaml", files={}))
    assert [f["rule"] for f in answers[0]["findings"]] == ["unknown-flag"]
    assert answers[0]["verdict"] == "bad-arguments"
    assert answers[1]["verdict"] != "accepted", "what a file says that nobody gave is not known"


def test_several_processes_answer_in_order(spawn: Spawn) -> None:
    cases = [case(id=n) for n in range(300)]
    assert [a["id"] for a in ask(spawn, *cases, words=("--jobs", "2"))] == list(range(300))


def test_blank_lines_are_no_questions(spawn: Spawn) -> None:
    assert [a["id"] for a in ask(spawn, "", case(id=1), "  ", case(id=2))] == [1, 2]
