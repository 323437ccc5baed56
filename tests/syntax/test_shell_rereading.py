"""Reading a text after edits gives what reading it first gives, and costs what the edits change."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.launch import Document, Launch
from spec_lsp.syntax.shell import interpreter as interpreter_module
from spec_lsp.syntax.shell.statements import restate, stated, statements
from spec_lsp.syntax.standing import Launches
from tests.draws import draws
from tests.syntax.support import START, check_maps, forget

CORPUS = sorted((Path(__file__).parent.parent / "corpus" / "shell").glob("*.sh"))
TEXTS = [p.read_text(encoding="utf-8") for p in CORPUS]
Edit = Callable[[str, random.Random], str]
TYPED = ["1", "a", " ", "\n", "-", '"', "'", "$X", "#", "\\", "(", ")", "fi\n", "X=1\n"]


def edited(text: str, at: int, chance: random.Random) -> tuple[str, int]:
    """The text after one more edit of somebody who works at `at`."""
    kind = chance.random()
    at = min(at, len(text))
    if kind < 0.55:
        new = chance.choice(TYPED)
        return text[:at] + new + text[at:], at + len(new)
    if kind < 0.75:
        return text[: max(at - 1, 0)] + text[at:], max(at - 1, 0)
    if kind < 0.85:
        return text, chance.randrange(len(text) + 1)
    lines = text.split("\n")
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(chance.randrange(len(lines) + 1), line)
    return "\n".join(lines), at


@given(st.sampled_from(TEXTS), st.sampled_from(["", *TEXTS]), st.integers(0, 1 << 30))
@draws(60)
def test_reading_after_edits_is_reading_afresh(first: str, second: str, seed: int) -> None:
    chance = random.Random(seed)
    text = f"{first}\n{second}"
    at = chance.randrange(len(text) + 1)
    texts = [text]
    for _ in range(8):
        text, at = edited(text, at, chance)
        texts.append(text)
    forget()
    warm = [parse("x.sh", each) for each in texts]
    for document in warm:
        forget()
        assert document == parse("x.sh", document.text)
        check_maps(document)


@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
@draws(60)
def test_statements_after_an_edit_are_those_of_the_text(text: str, seed: int) -> None:
    chance = random.Random(seed)
    before, at = text, chance.randrange(len(text) + 1)
    known = stated(text)
    for _ in range(4):
        after, at = edited(before, at, chance)
        found = restate(after, before, known)
        assert found is not None
        told = [(start, s.text, s.broken) for s, start in zip(found.parts, found.starts, strict=True)]
        assert told == [(s.start, s.text, s.broken) for s in statements(after)]
        bases = [s.start for s in found.parts]
        assert bases == sorted(set(bases))
        before, known = after, found


def test_comments_to_spec_lsp_are_found_wherever_they_stand_and_again_after_edits() -> None:
    """Above, behind and inside statements, whether the script is read for the first time or again."""
    text = "#!/bin/sh\n# spec-lsp: a\nX=1 # spec-lsp: b\nif y; then\n  # spec-lsp: c\n  z\nfi\n# spec-lsp: d\nw\n# spec-lsp: e"
    forget()
    said = ["a", "b", "c", "d", "e"]
    assert [d.text for d in parse("x.sh", f"{text}\n# sglang\n").directives] == said
    for edit in ("X=1", "y;", "  z", "\nw", "#!/bin/sh"):
        document = parse("x.sh", f"{text.replace(edit, edit + 'x')}\n# sglang\n")
        assert [d.text for d in document.directives] == said
        assert [document.text[d.place.start : d.place.end] for d in document.directives] == [
            f"# spec-lsp: {d}" for d in said
        ]


def fifty(tp: str = "2", page: str = "1") -> str:
    launch = (
        'echo "{i}" > "log{i}"\nPORT_{i}=$((30000 + {i}))\n' + START + " --port $PORT_{i} --page $PAGE --tp {tp} &\n"
    )
    body = "".join(launch.format(i=i, tp=tp if i == 25 else "4") for i in range(50))
    return f"PAGE={page}\nf() {{ if $1; then X=1; else X=2; fi; }}\nf $Q\n{body}{START} --x $X $PORT_40\n"


def commands_run(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Document, int]:
    ran = 0
    execute = interpreter_module.Interpreter.execute

    def counting(self: interpreter_module.Interpreter, node: object, source: object) -> None:
        nonlocal ran
        ran += 1
        execute(self, node, source)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(interpreter_module.Interpreter, "execute", counting)
        return parse("x.sh", text), ran


def test_a_keystroke_in_a_launch_runs_that_launch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    _, all_commands = commands_run(fifty(), monkeypatch)
    assert all_commands > 150
    for tp in ("16", "1", "128"):
        document, ran = commands_run(fifty(tp), monkeypatch)
        assert [w.text for w in document.launches[25].variants[0].words][-1] == tp
        assert len(document.launches) == 51
        assert len(document.launches[50].variants) == 2
        check_maps(document)
    assert ran <= 3


@pytest.mark.parametrize(
    "behind", ['>> "$LOG_{i}" 2>&1 &', "> run{i}.log &", "| tee run.log", "2>&1 | tee -a run{i}.log &", "&> run{i}.log"]
)
def test_a_keystroke_in_a_launch_that_logs_to_a_file_runs_that_launch_alone(
    behind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def text(tp: str) -> str:
        log = 'LOG_{i}=run{i}.log\necho "server {i}" > "$LOG_{i}"\n'
        launch = f"{log}{START} --tp {{tp}} {behind}\nwait\n"
        return "".join(launch.format(i=i, tp=tp if i == 25 else 2) for i in range(50))

    forget()
    commands_run(text("1"), monkeypatch)
    for tp in ("16", "128", "4"):
        document, ran = commands_run(text(tp), monkeypatch)
        assert [w.text for w in document.launches[25].variants[0].words][:2] == ["--tp", tp]
    assert ran <= 6


def anchored(document: Document) -> list[Launch]:
    assert isinstance(document.launches, Launches)
    return list(document.launches.anchored)


EDITS: dict[str, Edit] = {
    "a letter in a comment": lambda text, chance: inserted(text, "# launch 25", chance.choice("xyz ")),
    "a line above all": lambda text, _: f"# more\n{text}",
    "a line in the middle": lambda text, _: inserted(text, "# launch 25", "\n"),
    "a statement in the middle": lambda text, _: inserted(text, "# launch 25", "\nNEW=1\n"),
    "a word in a launch": lambda text, chance: text.replace(" --tp 9", f" --tp 9{chance.choice('123')}", 1),
    "a flag in a launch": lambda text, chance: text.replace(" --tp 9", f" --tp 9 --port {chance.randrange(9)}", 1),
    "an open quote in a launch": lambda text, _: text.replace(" --tp 9", " --tp '9", 1),
    "a launch in the middle": lambda text, _: inserted(text, "# launch 25", f"\n{START} --tp 7\n"),
    "a launch less": lambda text, _: text.replace(START + " --tp 9\n", "", 1),
    "the end": lambda text, _: f"{text}# the end",
}


def inserted(text: str, behind: str, new: str) -> str:
    at = text.index(behind) + len(behind)
    return text[:at] + new + text[at:]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("kind", ["plain", "variables", "switches"])
def test_launches_of_untouched_statements_are_the_very_same_objects(kind: str, edit: Edit) -> None:
    """Whatever is typed elsewhere, again and again: what is above an edit, and what is below."""
    given = {"plain": "", "variables": ' --port $P --page $((Q + 1)) "${A[@]}"', "switches": " --x $X"}[kind]
    head = "P=1\nQ=2\nA=(--a 1)\nif $1; then X=1; else X=2; fi\n"
    launches = "".join(f"# launch {i}\n{START} --tp {i % 3}{given}\n" for i in range(50))
    at = launches.index("# launch 25")
    text = f"{head}{launches[:at]}{START} --tp 9\n{launches[at:]}"
    chance = random.Random(7)
    forget()
    before = anchored(parse("x.sh", text))
    for _ in range(4):
        text = edit(text, chance)
        document = parse("x.sh", text)
        now = anchored(document)
        kept = {id(launch) for launch in now}
        assert [i for i, launch in enumerate(before) if id(launch) not in kept] in ([], [25])
        check_maps(document)
        before = now


def test_a_script_typed_line_by_line_in_the_middle_is_read_right() -> None:
    """Also where there is no room left between the bases of its statements."""
    forget()
    text, mark = f"A=1\n{START} --tp 1\nB=2\n", "A=1\n"
    for i in range(200):
        at = text.index(mark) + len(mark) if i % 2 else text.index("B=2")
        text = f"{text[:at]}X{i}={i}\n{text[at:]}"
        document = parse("x.sh", text)
        if i % 40 == 39:
            check_maps(document)
            assert document.launches[0].extent.start == text.index(START)


def test_what_every_launch_reads_is_read_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    parse("x.sh", fifty())
    document, ran = commands_run(fifty(page="16"), monkeypatch)
    assert ran > 150
    assert {w.text for launch in document.launches[:50] for w in launch.variants[0].words[3:4]} == {"16"}


def test_a_changed_sourced_file_is_read_again() -> None:
    forget()
    text = f"source lib.sh\n{START} --tp $TP\n"
    found = [parse("x.sh", text, {"lib.sh": f"TP={tp}\n"}.get).launches[0].variants[0].words[1].text for tp in (1, 2)]
    assert found == ["1", "2"]
    found = [
        parse("x.sh", text + "\n" * i, {"lib.sh": f"TP={i}\n"}.get).launches[0].variants[0].words[1].text
        for i in (3, 4)
    ]
    assert found == ["3", "4"]


def test_a_variable_set_further_down_changes_what_is_taken_to_be_unset() -> None:
    forget()
    text = f"{START} --a ${{X:-1}} $X\n"
    first = parse("x.sh", text)
    second = parse("x.sh", text + "X=2\n")
    forget()
    assert second == parse("x.sh", text + "X=2\n")
    assert first.launches[0].variants != second.launches[0].variants


def test_a_quote_that_is_open_for_a_moment() -> None:
    text = f"X=1\nexit_early() {{ exit 1; }}\n{START} --tp $X\nexit 0\n{START} --tp 2\n"
    for each in (text, text.replace("=1", '="1'), text.replace("=1", '="1"'), text):
        warm = parse("x.sh", each)
        forget()
        assert warm == parse("x.sh", each)


@pytest.mark.parametrize(
    "text",
    [
        "A=1\nX=$(sglang serve m)\n",
        "A=1\nX=$(sglang serve m; echo 2)\nsglang serve $X\n",
        "A=1\nX=$(pip install sglang==0.5.9)\nsglang serve $Q\n",
        "A=1\ng() { sglang serve $X; }\nX=$(g)\n",
        "A=(\n x $(true\n   -- python3 train.py \\\n   --sglang-tp 1\n)\n",
    ],
)
def test_what_a_substitution_starts_is_told_again(text: str) -> None:
    for changed in (text, text.replace("A=1", "A=2"), f"B=0\n{text}"):
        forget()
        afresh = parse("x.sh", changed)
        forget()
        parse("x.sh", text)
        assert parse("x.sh", changed) == afresh
    assert afresh.launches


def test_a_variable_is_the_same_question_in_every_run() -> None:
    """What an assignment depended on in the last run is known to the next but one, though it was taken over in between."""
    half = f"X=${{1:-a}}\ncase $X in\n  a) M=1; ARGS=--a ;;\n  b) M=2; ARGS=--b ;;\nesac\n{START} --m $M $ARGS"
    text = f"{half}\n{half} $Y\n"
    changed = text.replace(" $Y", " $Z")
    texts = [
        text,
        changed,
        changed.replace("b) M=2; ARGS=--b ", "b) M=2; ARGS=--c ", 1),
        changed.replace("ARGS=--a ", ""),
    ]
    forget()
    warm = [parse("x.sh", each) for each in texts]
    forget()
    assert warm[-1] == parse("x.sh", texts[-1])
