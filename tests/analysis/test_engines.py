"""Engines in Python: what is said of their keyword arguments, and the repairs in Python's own form."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.fixes import fix_all
from spec_lsp.analysis.inputs import Options
from tests.analysis.support import NOTHING, after, only, said
from tests.analysis.test_completion import at_caret as completed
from tests.analysis.test_hover import at_caret as hovered

NAME = "/w/a.py"
HEAD = "import sglang as sgl\n# spec-lsp: sglang=0.5.21 gpu=h100\n"


def engine(arguments: str) -> str:
    return f'{HEAD}llm = sgl.Engine(model_path="llama-3.1-8b", {arguments})\n'


FINDINGS: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("tp_size=4", []),
    (
        "tp_size=4, dp_size=3, enable_dp_attention=True",
        [("error", "tp-size-not-divisible-by-attention-dp-size", "dp_size=3")],
    ),
    ("tp_size=4, dp_size=n, enable_dp_attention=True", []),
    (
        "tp_size=4, dp_size=3, enable_dp_attention=True, **more",
        [("warning", "tp-size-not-divisible-by-attention-dp-size", "dp_size=3")],
    ),
    ("max_model_len=1", [("error", "unknown-flag", "max_model_len")]),
    ('attention_backend="typo"', []),
    ('tp_size="2"', []),
    ("**more", []),
]


@pytest.mark.parametrize(("arguments", "expected"), FINDINGS)
def test_findings(arguments: str, expected: list[tuple[str, str, str]]) -> None:
    assert said(engine(arguments), name=NAME) == expected


@pytest.mark.parametrize("release", ["0.5.19", "0.5.21", "0.5.22", "0.5.23"])
def test_a_message_names_what_is_typed_and_stands_there(release: str) -> None:
    """From 0.5.22 on SGLang moves `--dp-size` to a field of its own, which nobody typed."""
    text = engine("tp_size=4, dp_size=3, enable_dp_attention=True").replace("0.5.21", release)
    rule = "tp-size-not-divisible-by-attention-dp-size"
    assert "`dp_size=3` does not divide `tp_size=4`" in only(text, rule, name=NAME).message
    assert ("error", rule, "dp_size=3") in said(text, name=NAME)
    shell = f"# spec-lsp: sglang={release} gpu=h100\nsglang serve llama-3.1-8b --tp 4 --dp 3 --enable-dp-attention\n"
    assert "`--dp 3` does not divide `--tp 4`" in only(shell, rule, name="/w/a.sh").message
    assert ("error", rule, "--dp 3") in said(shell, name="/w/a.sh")


REPAIRS = [
    ("tp_size=4, dp_size=3, enable_dp_attention=True", "tp_size=4, dp_size=4, enable_dp_attention=True"),
    ("max_model_len=1, tp_size=2", "context_length=1, tp_size=2"),
    ("tp=2", "tp_size=2"),
]


@pytest.mark.parametrize(("arguments", "expected"), REPAIRS)
def test_repairs(arguments: str, expected: str) -> None:
    text = engine(arguments)
    edits = fix_all(NAME, text, Options(), NOTHING, unsafe=True)
    assert after(text, edits, NAME) == engine(expected)


DRAFTING = """
    attention_backend={backend},
    speculative_algorithm="EAGLE3",  # why
    speculative_draft_model_path="llama-3.1-8b",
    speculative_num_steps=3,
    speculative_eagle_topk=4,
    speculative_num_draft_tokens=8,
    page_size=16,
"""


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_new_text_keeps_the_quotes(quote: str) -> None:
    from spec_lsp.analysis import analyse, read_document
    from spec_lsp.analysis.fixes import fixes_for

    text = engine(DRAFTING.format(backend=f"{quote}fa4{quote}"))
    analysis = analyse(read_document(NAME, text, NOTHING), Options(), NOTHING)
    (found,) = [d for d in analysis.diagnostics if d.rule.name == "tree-drafting-on-paged-backend"]
    titles = {f.title: after(text, f.edits, NAME) for f in fixes_for(analysis, found, Options(), NOTHING)}
    assert "Set `attention_backend` to `flashinfer`" in titles
    assert titles["Set `attention_backend` to `flashinfer`"] == engine(
        DRAFTING.format(backend=f"{quote}flashinfer{quote}")
    )


CARETS = [
    ('attention_‸backend="fa3"', "attention_backend"),
    ('attention_backend="f‸a3"', '"fa3"'),
    ("tp_size=‸2", "2"),
]


@pytest.mark.parametrize(("arguments", "about"), CARETS)
def test_hover(arguments: str, about: str) -> None:
    found, covered = hovered(engine(arguments), NAME)
    assert covered == about
    assert found is not None
    assert "SGLang 0.5.21" in found.markdown


COMPLETIONS = [
    ('attention_backend="‸"', "", "fa3"),
    ('attention_backend="f‸x"', "fx", "flashinfer"),
    ("attention_backend='‸'", "", "triton"),
]


@pytest.mark.parametrize(("arguments", "replaced", "offered"), COMPLETIONS)
def test_completion_of_values(arguments: str, replaced: str, offered: str) -> None:
    found, covered = completed(engine(arguments), NAME)
    assert found is not None
    assert covered == replaced
    labels = [item.label for item in found.items]
    assert offered in labels
    assert not [label for label in labels if label.startswith("--")]


@pytest.mark.parametrize("arguments", ["tp_‸size=2", "tp_size=‸", "tp_size=2, ‸"])
def test_no_flags_are_offered_among_keywords(arguments: str) -> None:
    found, _ = completed(engine(arguments), NAME)
    assert found is None or not [item for item in found.items if item.label.startswith("--")]
