"""Nothing is carried from one launch to another; what was not edited is neither read nor judged nor told anew."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis import check as checking
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.judge import judge
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.report import Analysis
from spec_lsp.syntax.launch import Launch
from tests.analysis.support import NOTHING, check
from tests.syntax.support import forget

RUN = "python -m sglang.launch_server --model-path x"
ALIKE = {
    "plain": f"{RUN} --bogus 7\n",
    "lower": f"\n\n# a comment\n{RUN} --bogus 7\n",
    "variable": f"P=7\n{RUN} --bogus $P\n",
    "far variable": f"P=7\n{'# far' * 200}\n{RUN} --bogus $P\n",
    "near variable": f"P=7\n# near\n{RUN} --bogus $P\n",
    "variable of a variable": f"Q=7\nP=$Q\n{RUN} --bogus $P\n",
    "two parts": f"A=bo\nB=gus\n{RUN} --$A$B 7\n",
    "quoted": f"{RUN} '--bogus' \"7\"\n",
    "array": f"A=(--bogus 7)\n{RUN} \"${{A[@]}}\"\n",
    "string": f'A="--bogus 7"\n{RUN} $A\n',
    "lines": f"{RUN} \\\n  --bogus \\\n  7\n",
    "blanks": f"{RUN}   --bogus     7\n",
    "model": "M=x\npython -m sglang.launch_server --model-path $M --bogus 7\n",
    "default": f"{RUN} --bogus ${{P:-7}}\n",
    "no variable": f"P=7\n{RUN} --bogus 7\n",
    "function": f"run() {{ {RUN} --bogus $1; }}\nrun 7\n",
    "bash -c": f"bash -c '{RUN} --bogus 7'\n",
}  # fmt: skip
"""One launch, written in ways that read the same."""


def seen(analysis: Analysis) -> list[object]:
    return [(d.rule.name, d.severity, d.message, d.place, d.related, d.launch) for d in analysis.diagnostics]


def analysed(text: str, cache: Cache, name: str = "/w/a.sh") -> list[object]:
    return seen(analyse(read_document(name, text, NOTHING), Options(), NOTHING, cache))


FRESH = {text: analysed(text, Cache()) for text in ALIKE.values()}


@pytest.mark.parametrize(("first", "second"), list(permutations(ALIKE, 2)))
def test_what_was_seen_before_changes_nothing(first: str, second: str) -> None:
    cache = Cache()
    for text in (ALIKE[first], ALIKE[second], ALIKE[first]):
        assert analysed(text, cache) == FRESH[text]


@pytest.mark.parametrize(("first", "second"), list(permutations(ALIKE, 2)))
def test_nor_what_stands_above(first: str, second: str) -> None:
    text = ALIKE[first] + ALIKE[second]
    lower = len(ALIKE[first])
    places = [d.place.start - lower for d in check(text).diagnostics if d.launch == 1 and d.rule.name == "unknown-flag"]
    alone = [d.place.start for d in check(ALIKE[second]).diagnostics if d.rule.name == "unknown-flag"]
    assert places == alone


ABOVE = {"comment": "# one more line\n", "empty": "\n", "launch": f"{RUN} --tp 4\n"}


ASKS_HOW_IT_ENDED = ("function", "bash -c")
"""What a function or another shell does may depend on how the launch above ended."""


@pytest.mark.parametrize(
    ("above", "text"),
    [
        pytest.param(above, text, id=f"{where}-{how}")
        for where, above in ABOVE.items()
        for how, text in ALIKE.items()
        if where != "launch" or how not in ASKS_HOW_IT_ENDED
    ],
)
def test_lines_above_leave_all_as_it_was(above: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very objects: nothing is judged or bound anew for an edit above a launch."""
    forget()
    cache = Cache()
    text = f"{RUN} --tp 2\n{text}"
    before = analyse(read_document("/w/a.sh", text, NOTHING), Options(), NOTHING, cache)
    judged = list(cache.kept["/w/a.sh"].judged)
    with monkeypatch.context() as patch:
        for name in ("judge", "diagnostics_of") if RUN not in above else ():
            patch.setattr(checking, name, None)
        after = analyse(read_document("/w/a.sh", above + text, NOTHING), Options(), NOTHING, cache)
    now = list(cache.kept["/w/a.sh"].judged)[-len(judged) :]
    assert all(one.launch is was.launch and one.verdict is was.verdict for one, was in zip(now, judged, strict=True))
    shifted = [
        (d.rule, d.message, d.place.start - len(above)) for d in after.diagnostics if d.launch != 0 or above[0] in "#X"
    ]
    assert shifted == [(d.rule, d.message, d.place.start) for d in before.diagnostics]


def test_an_ignored_line_leaves_the_others_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment to spec-lsp decides what is shown, and what is found beside it in its launch alone."""
    cache, text = Cache(), f"{RUN} --bogus 7\n" * 3
    analyse(read_document("/w/a.sh", text, NOTHING), Options(), NOTHING, cache)
    asked: list[Launch] = []

    def judged(launch: Launch, *given: Any, **named: Any) -> Verdict:
        asked.append(launch)
        return judge(launch, *given, **named)

    monkeypatch.setattr(checking, "judge", judged)
    ignored = f"# spec-lsp: ignore[unknown-flag] mine\n{text}"
    after = analyse(read_document("/w/a.sh", ignored, NOTHING), Options(), NOTHING, cache)
    assert [d.launch for d in after.diagnostics if d.rule.name == "unknown-flag"] == [1, 2]
    assert after.ignored == 1
    assert len(asked) == 1


def test_a_branch_is_told_by_its_own_words() -> None:
    """The same ways of a launch, chosen by other tests."""
    cache = Cache()
    for name in ("BIG", "WIDE"):
        text = f'if [ "${name}" = 1 ]; then T="--bogus 1"; else T="--tp 2"; fi\n{RUN} $T\n'
        assert analysed(text, cache) == analysed(text, Cache())


def test_a_model_is_that_of_the_documents_own_folder(tmp_path: object) -> None:
    from pathlib import Path

    from spec_lsp.workspace import DiskWorkspace

    folder = Path(str(tmp_path))
    for name, heads in (("a", 8), ("b", 6)):
        (folder / name / "m").mkdir(parents=True)
        config = f'{{"architectures": ["LlamaForCausalLM"], "num_attention_heads": {heads}, "num_hidden_layers": 2}}'
        (folder / name / "m" / "config.json").write_text(config)
    text = "# spec-lsp: sglang=0.5.23 gpu=h100\npython -m sglang.launch_server --model-path ./m --tp 4\n"
    workspace = DiskWorkspace([folder])
    shared = Cache()

    def told(name: str, cache: Cache) -> list[object]:
        path = str(folder / name / "run.sh")
        return seen(analyse(read_document(path, text, workspace), Options(), workspace, cache))

    for name in ("a", "b", "a"):
        found = told(name, shared)
        assert [f[:3] for f in found] == [f[:3] for f in told(name, Cache())]  # type: ignore[index]
