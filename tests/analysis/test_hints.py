"""What stands beside a launch without being written, and the lens's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.hints import LENS, Hint, Kind, assumed, hints, lens
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.report import Analysis
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware
from spec_lsp.workspace import DiskWorkspace

MODELS = Path(__file__).parent.parent / "models"
B200 = "# spec-lsp: sglang=0.5.23 gpu=b200\n"
NO_GPU = "# spec-lsp: sglang=0.5.23\n"
RUN = f"python -m sglang.launch_server --model-path {MODELS}/llama-3.1-8b"
BOTH: frozenset[Kind] = frozenset(("changed", "chosen"))
CHAIN = f"--speculative-algorithm EAGLE3 --speculative-draft-model-path {MODELS}/eagle3-draft"


def analysed(text: str, name: str = "/w/run.sh", options: Options | None = None) -> Analysis:
    workspace = DiskWorkspace()
    return analyse(read_document(name, text, workspace), options or Options(), workspace)


def shown(text: str, kinds: frozenset[Kind] = BOTH, name: str = "/w/run.sh") -> list[Hint]:
    return hints(analysed(text, name), 0, len(text), kinds)


def with_hints(text: str, kinds: frozenset[Kind] = BOTH, name: str = "/w/run.sh") -> str:
    """The text with its hints in it, in «»."""
    for hint in reversed(shown(text, kinds, name)):
        text = f"{text[: hint.offset]}«{hint.text}»{text[hint.offset :]}"
    return text


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("--attention-backend trtllm_mha --page-size 1", "--attention-backend trtllm_mha --page-size 1«→ 64»"),
        ("--page-size=1 --attention-backend trtllm_mha", "--page-size=1«→ 64» --attention-backend trtllm_mha"),
        ('--attention-backend trtllm_mha --page-size "1"', '--attention-backend trtllm_mha --page-size "1"«→ 64»'),
        ("--attention-backend trtllm_mha --page-size 64", "--attention-backend trtllm_mha --page-size 64"),
        ("--attention-backend triton --page-size 16", "--attention-backend triton --page-size 16"),
    ],
)
def test_changed_values(rest: str, expected: str) -> None:
    assert with_hints(f"{B200}{RUN} {rest}\n", frozenset(("changed",))) == f"{B200}{RUN} {expected}\n"


def test_a_changed_value_that_a_variable_holds_is_marked_where_it_is_used() -> None:
    text = f"{B200}PAGE=1\n{RUN} --attention-backend trtllm_mha --page-size $PAGE\n"
    assert with_hints(text, frozenset(("changed",))) == text.replace("$PAGE", "$PAGE«→ 64»")


@pytest.mark.parametrize(
    ("head", "rest", "expected"),
    [
        (B200, "", "chosen: attention trtllm_mha · page size 64"),
        (B200, " --attention-backend triton", "chosen: page size 1"),
        (B200, " --page-size 64", "chosen: attention trtllm_mha"),
        (B200, f" {CHAIN}", "chosen: attention flashinfer · page size 1 · steps 5 · topk 4 · draft tokens 8"),
        (B200, f" {CHAIN} --attention-backend triton", "chosen: page size 1 · steps 5 · topk 4 · draft tokens 8"),
        (NO_GPU, " --attention-backend triton", "chosen: page size 1"),
    ],
)
def test_chosen_values(head: str, rest: str, expected: str) -> None:
    text = f"{head}{RUN}{rest}\necho\n"
    found = shown(text, frozenset(("chosen",)))
    assert [h.text for h in found] == [expected]
    assert [h.offset for h in found] == [len(f"{head}{RUN}{rest}")]
    assert all(part.tooltip.startswith("`--") for part in found[0].parts[1::2])


def test_reasons_are_in_the_tooltips() -> None:
    (chosen,) = shown(f"{B200}{RUN}\n")
    assert chosen.parts[1].tooltip.startswith("`--attention-backend trtllm_mha`: ")
    assert len(chosen.parts[1].tooltip) > 50
    (changed,) = shown(f"{B200}{RUN} --attention-backend trtllm_mha --page-size 1\n", frozenset(("changed",)))
    assert "pages of" in changed.parts[0].tooltip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{B200}{RUN} --attention-backend trtllm_mla\n", id="refused"),
        pytest.param(f"{B200}{RUN} --no-such-flag\n", id="bad words"),
        pytest.param(f"{B200}{RUN} --attention-backend ascend\n", id="refused late"),
        pytest.param(f"{NO_GPU}{RUN} --page-size 16\n", id="the backend depends on the hardware"),
        pytest.param(f'{B200}{RUN} "$@"\n', id="more may come"),
        pytest.param("echo sglang\n", id="no launch"),
    ],
)
def test_nothing_where_nothing_is_known(text: str) -> None:
    assert shown(text) == []


def test_kinds_and_ranges() -> None:
    text = f"{B200}{RUN} --attention-backend trtllm_mha --page-size 1 --decode-log-interval 3\n{RUN}\n"
    assert [h.kind for h in shown(text)] == ["changed", "chosen"]
    assert [h.kind for h in shown(text, frozenset(("chosen",)))] == ["chosen"]
    assert shown(text, frozenset()) == []
    second = text.index(RUN, text.index(RUN) + 1)
    assert [h.kind for h in hints(analysed(text), second, len(text), BOTH)] == ["chosen"]
    assert [h.kind for h in hints(analysed(text), 0, second - 2, BOTH)] == ["changed"]
    assert hints(analysed(text), 0, 5, BOTH) == []


def test_config_files() -> None:
    text = f"{B200}model-path: '{MODELS}/llama-3.1-8b'\nattention-backend: trtllm_mha\npage-size: 1  # small\n\n"
    assert with_hints(text, name="/w/c.yaml") == text.replace("page-size: 1", "page-size: 1«→ 64»")
    text = f"{B200}model-path: '{MODELS}/llama-3.1-8b'\npage-size: 64\nlog-requests: true # x\n"
    assert with_hints(text, name="/w/c.yaml") == text.replace("# x", "# x«chosen: attention trtllm_mha»")


@pytest.mark.parametrize(
    ("head", "options", "expected"),
    [
        (B200, Options(), "SGLang 0.5.23 · B200 (directive)"),
        ("# spec-lsp: gpu=b200\n", Options(), "SGLang 0.5.23 (newest) · B200 (directive)"),
        (NO_GPU, Options(), "SGLang 0.5.23 (directive) · any GPU"),
        ("", Options(), "SGLang 0.5.23 (newest) · any GPU"),
        (
            "",
            Options(otherwise=Target(Release.parse("0.5.19"), DEVICES["h200"])),
            "SGLang 0.5.19 · H200 (settings)",
        ),
    ],
)
def test_what_is_assumed(head: str, options: Options, expected: str) -> None:
    (report,) = analysed(f"{head}{RUN}\n", options=options).launches
    assert assumed(report) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (B200, "Show: SGLang 0.5.23 · B200"),
        ("", "Show: SGLang 0.5.23 (newest) · any GPU"),
        ("# spec-lsp: gpu=hopper\n", "Show: SGLang 0.5.23 (newest) · Hopper"),
        ("export CUDA_VISIBLE_DEVICES=0\n", "Show: SGLang 0.5.23 · any NVIDIA GPU"),
    ],
)
def test_the_lens(head: str, expected: str) -> None:
    (report,) = analysed(f"{head}{RUN}\n").launches
    assert lens(report) == expected


@pytest.mark.parametrize("hardware", [*DEVICES.values(), *FAMILIES.values()], ids=lambda h: h.name)
def test_no_lens_is_long(hardware: Hardware) -> None:
    for release in ("0.5.23", "0.5.13.post1"):
        options = Options(otherwise=Target(Release.parse(release), hardware))
        (report,) = analysed(f"{RUN}\n", options=options).launches
        assert len(lens(report)) <= LENS
