"""The configuration that a launch will run with: what the view says, in which order, and where its links lead."""

from __future__ import annotations

import json
import re

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.faults import unjudged
from spec_lsp.analysis.hover import hover
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.resolved import Text, resolved_text
from spec_lsp.syntax.word import Place
from spec_lsp.workspace import DiskWorkspace
from tests.analysis.test_hover import HEAD, LAUNCH


def resolved(rest: str, head: str = HEAD) -> str:
    text = f"{head}{LAUNCH}{rest}\n"
    return resolved_text(
        analyse(read_document("/w/a.sh", text, DiskWorkspace()), Options(), DiskWorkspace()).launches[0]
    )


def test_the_resolved_configuration() -> None:
    view = resolved("--page-size 16")
    title, verdict, typed, decided = (
        view.index(part)
        for part in (
            "# What SGLang will run",
            "**Nothing that is known speaks against this launch.**",
            "## What you typed",
            "## What SGLang decides",
        )
    )
    assert title < verdict < typed < decided
    row = re.search(r"^\| page-size +\| `16` +\| As typed: `--page-size 16`. \|$", view, re.MULTILINE)
    assert row is not None
    assert typed < row.start() < decided
    row = re.search(r"^\| attention-backend +\| `\w+` +\| [A-Z].*\. \|$", view, re.MULTILINE)
    assert row is not None
    assert row.start() > decided
    assert "enable-tf32-matmul" not in view, "what stays off"


def test_long_values_are_json_below_the_table() -> None:
    view = resolved("--page-size 16")
    assert re.search(r"^\| cuda-graph-config +\| see below", view, re.MULTILINE)
    block = re.search(r"^`cuda-graph-config`:\n\n```json\n(.*)\n```$", view, re.MULTILINE)
    assert block is not None
    assert json.loads(block[1])["decode"]["backend"] == "full"


@pytest.mark.parametrize(
    ("rest", "head", "verdict"),
    [
        ("--attention-backend trtllm_mla", HEAD, "**SGLang refuses this launch.**\n\n- **trtllm-mla-off-blackwell**: "),
        ("--no-such-flag", HEAD, "**SGLang does not accept these arguments.**\n\n- **unknown-flag**: "),
        (
            "--attention-backend trtllm_mha",
            "# spec-lsp: sglang=0.5.23\n",
            "**SGLang accepts this launch on Hopper, SM100, SM103 and SM120, not on ",
        ),
        (
            "--attention-backend ascend",
            HEAD,
            "**SGLang accepts these arguments, but the server does not start.**\n\n- **",
        ),
    ],
)
def test_the_view_starts_with_the_verdict(rest: str, head: str, verdict: str) -> None:
    assert resolved(rest, head).startswith(f"# What SGLang will run\n\n{verdict}")


def test_the_table_reads_well_as_text_and_no_hover_has_a_table_without_a_head() -> None:
    """Terminal editors show Markdown as it is written."""
    text = f"{HEAD}{LAUNCH}--page-size 16\n"
    analysis = analyse(read_document("/w/a.sh", text, DiskWorkspace()), Options(), DiskWorkspace())
    for table in resolved_text(analysis.launches[0]).split("\n\n"):
        rows = [line for line in table.split("\n") if line.startswith("|")]
        assert len({row.index("|", 1) for row in rows}) <= 1, "the first column is as wide in every row"
    for flag in ("--page-size", "--model-path"):
        found = hover(analysis, text.index(flag), "/w/a.sh")
        assert found is not None
        assert "|" not in found.markdown


def test_a_launch_that_could_not_be_judged() -> None:
    document = read_document("/w/a.sh", LAUNCH, DiskWorkspace())
    assert "**This launch could not be judged.**" in resolved_text(unjudged(document.launches[0]))


def linked(rest: str, head: str = HEAD) -> tuple[str, dict[str, str]]:
    """The view with its links written out: the rule or the words of the document that each leads to; and the rows by name."""
    source = f"{head}{LAUNCH}{rest}\n"
    text = Text(links=True)
    view = resolved_text(
        analyse(read_document("/w/a.sh", source, DiskWorkspace()), Options(), DiskWorkspace()).launches[0], text
    )

    def target(match: re.Match[str]) -> str:
        to = text.targets[int(match[2])]
        return f"<{match[1]} → {source[to.start : to.end] if isinstance(to, Place) else to}>"

    view = re.sub(r"\[([^]]*)\]\(#(\d+)\)", target, view)
    return view, {row[1]: row[0] for row in re.finditer(r"^\| (?:<)?([\w-]+) .*$", view, re.MULTILINE)}


DRAFT = "--speculative-draft-model-path x/eagle --speculative-num-steps 3 --speculative-num-draft-tokens 8"


def test_a_refused_value_leads_to_its_rule_and_its_word() -> None:
    view, rows = linked(
        f"--speculative-algorithm EAGLE3 --speculative-eagle-topk 4 {DRAFT} --attention-backend trtllm_mha"
    )
    assert (
        "- **<tree-drafting-on-trtllm-mha → tree-drafting-on-trtllm-mha>** at "
        "<`--speculative-eagle-topk 4` → --speculative-eagle-topk 4>: `--speculative-eagle-topk 4` is refused"
    ) in view
    row = rows["speculative-eagle-topk"]
    assert "<speculative-eagle-topk → --speculative-eagle-topk 4>" in row
    assert "SGLang refuses it (<tree-drafting-on-trtllm-mha → tree-drafting-on-trtllm-mha>)." in row
    assert "is unknown" not in row


@pytest.mark.parametrize(
    ("rest", "field", "words"),
    [
        (f"--speculative-algorithm EAGLE3 {DRAFT}", "max-running-requests", "--speculative-algorithm EAGLE3"),
        ("--page-size 16", "attention-backend", ""),
        ("--attention-backend trtllm_mla --page-size 16", "page-size", ""),
        ("--deepep-mode normal --moe-a2a-backend deepep --tp 4", "ep-size", "--moe-a2a-backend deepep"),
        ("--served-model-name x", "served-model-name", ""),
    ],
)
def test_a_decided_value_leads_to_the_words_that_decide_it(rest: str, field: str, words: str) -> None:
    _, rows = linked(rest)
    assert (f" → {words}" in rows[field] and "Follows from" in rows[field]) if words else "Follows" not in rows[field]


def test_a_changed_value_leads_to_the_rule_that_says_so() -> None:
    _, rows = linked("--attention-backend trtllm_mha --page-size 8")
    assert "Instead of `8`, which was typed." in rows["page-size"]
    assert re.search(r"See <([\w-]+) → \1>", rows["page-size"])
    assert "Follows from <`--attention-backend trtllm_mha` → --attention-backend trtllm_mha>" in rows["page-size"]


def test_an_unknown_flag_leads_to_its_word() -> None:
    view, _ = linked("--no-such-flag 3")
    assert "- **<unknown-flag → unknown-flag>** at <`--no-such-flag` → --no-such-flag>: " in view


def test_a_view_without_links_has_none() -> None:
    assert "](" not in resolved("--attention-backend trtllm_mha --page-size 8")
