"""A fault of ours costs the launch it happens in."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.analysis import check as checking
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.hints import hints
from spec_lsp.analysis.hover import hover
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.navigation import links
from spec_lsp.analysis.reading import read_document
from spec_lsp.interruption import Interrupted
from tests.analysis.support import NOTHING, PINNED, check

RUN = "python -m sglang.launch_server --model-path x"
THREE = f"{PINNED}{RUN} --bogus 1\nSGLANG_HOST_IP=10.0.0.1 {RUN} --tp 13\n{RUN} --bogus 3\n"
WHERE = ("judge", "variables_of", "gpu_count_of", "assume")
"""What looks at one launch."""


def break_for(monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException) -> None:
    """Make a function of the analysis fail for the launch with `--tp 13`."""
    real = getattr(checking, function)

    def broken(*given: Any, **named: Any) -> Any:
        launches = [g for g in given if hasattr(g, "variants")]
        if any(word.text == "13" for launch in launches for word in launch.variants[0].words):
            raise error
        return real(*given, **named)

    monkeypatch.setattr(checking, function, broken)


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), ZeroDivisionError()], ids=repr)
@pytest.mark.parametrize("function", WHERE)
def test_the_launch_is_told_and_the_others_are_judged(
    function: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_for(monkeypatch, function, error)
    analysis = check(THREE)
    assert [(d.rule.name, d.launch) for d in analysis.diagnostics] == [
        ("unknown-flag", 0),
        ("not-judged", 1),
        ("unknown-flag", 2),
    ]
    told = analysis.diagnostics[1].message
    assert type(error).__name__ in told
    assert len(analysis.faults) == 1
    assert analysis.launches[1].verdict is None
    assert len(analysis.launches) == 3


def test_what_is_asked_of_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    break_for(monkeypatch, "judge", KeyError("x"))
    analysis = check(THREE)
    for offset in range(len(THREE)):
        hover(analysis, offset, analysis.document.name)
    assert links(analysis, NOTHING) == []
    hints(analysis, 0, len(THREE), frozenset(("chosen", "changed")))  # type: ignore[arg-type]


def test_it_is_judged_when_the_fault_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache()
    document = read_document("/w/a.sh", THREE, NOTHING)
    with monkeypatch.context() as patch:
        break_for(patch, "judge", KeyError("x"))
        assert analyse(document, Options(), NOTHING, cache).faults
    after = analyse(document, Options(), NOTHING, cache)
    assert not after.faults
    assert after.launches[1].verdict is not None


def test_an_interruption_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    break_for(monkeypatch, "judge", Interrupted())
    with pytest.raises(Interrupted):
        check(THREE)
