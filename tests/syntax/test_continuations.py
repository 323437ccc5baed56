"""Broken continuations: what bash loses is told, and the edits give what was meant."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import apply_edits
from tests.syntax.support import START

HEAD = f"if x; then\n  {START} \\\n    --a 1 \\\n"
ALL = ["--a", "1", "--b", "2", "--c", "3"]

# text, the rule, the characters it points at, what is launched, what is launched once repaired
CASES: list[tuple[str, str, str, list[str], list[str]]] = [
    (HEAD + "    # why\n    --b 2 \\\n    --c 3\nfi\n", "flags-after-comment", "# why", ["--a", "1"], ALL),
    (HEAD + "    # why \\\n    # more\n    --b 2 \\\n    # again\n    --c 3\nfi\n", "flags-after-comment", "# why \\", ["--a", "1"], ALL),
    (HEAD + "    --b 2 # why \\\n    --c 3\nfi\n", "flags-after-comment", "# why \\", ["--a", "1", "--b", "2"], ALL),
    (HEAD + "    --b 2 \\ \n    --c 3\nfi\n", "blank-after-backslash", "\\ ", ["--a", "1", "--b", "2"], ALL),
    (HEAD + "    --b 2 \\\t  \n    --c 3\nfi\n", "blank-after-backslash", "\\\t  ", ["--a", "1", "--b", "2"], ALL),
    (HEAD + "    --b 2 \\ # why\n    --c 3\nfi\n", "blank-after-backslash", "\\ ", ["--a", "1", "--b", "2"], ALL),
    (HEAD + "    --b 2 \\  # why\n    --c 3\nfi\n", "blank-after-backslash", "\\  ", ["--a", "1", "--b", "2"], ALL),
    (HEAD + "    --b 2 \\ \nfi\n", "blank-after-backslash", "\\ ", ["--a", "1", "--b", "2"], ["--a", "1", "--b", "2"]),
    (HEAD + "\n    --b 2 \\\n    --c 3\nfi\n", "empty-line-in-command", "\\\n", ["--a", "1"], ALL),
    (HEAD + "  \n\n    --b 2 \\\n    --c 3\nfi\n", "empty-line-in-command", "\\\n", ["--a", "1"], ALL),
    (HEAD + "    --b 2\n    --c 3\nfi\n", "missing-backslash", "2", ["--a", "1", "--b", "2"], ALL),
    ((HEAD + "    # why\n    --b 2 \\\n    --c 3\nfi\n").replace("\n", "\r\n"), "flags-after-comment", "# why", ["--a", "1"], ALL),
    (f"bash -c '{START} --a 1 \\\n  # why\n  --b 2 \\\n  --c 3'\n", "flags-after-comment", "# why", ["--a", "1"], ALL),
    (f"ssh h bash -s <<'EOF'\n{START} --a 1 \\\n\n  --b 2 --c 3\nEOF\n", "empty-line-in-command", "\\\n", ["--a", "1"], ALL),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "at", "before", "after"), CASES, ids=range(len(CASES)))
def test_broken(text: str, rule: str, at: str, before: list[str], after: list[str]) -> None:
    document = parse("run.sh", text)
    (launch,) = document.launches
    assert [w.text for w in launch.variants[0].words] == before
    (problem,) = document.problems
    assert problem.rule == rule
    assert text[problem.place.start : problem.place.end].replace("\r", "") == at
    assert problem.message
    for flag in after:
        if flag.startswith("--") and flag not in before:
            assert flag in problem.message
    fixed = apply_edits(text, "run.sh", problem.edits)
    assert fixed is not None
    again = parse("run.sh", fixed)
    assert again.problems == ()
    assert [w.text for w in again.launches[0].variants[0].words] == after
    assert fixed.count("#") == text.count("#")


MISTAKES = {
    "comment line": " \\\n    # why\n",
    "comment at the end": " # why\n",
    "comment behind the backslash": " \\ # why\n",
    "blank": " \\ \n",
    "empty line": " \\\n\n",
    "empty line and a comment": " \\\n\n    # why\n",
    "nothing": "\n",
    "none": " \\\n",
}


@pytest.mark.parametrize("first", [name for name in MISTAKES if name != "none"])
@pytest.mark.parametrize("second", MISTAKES)
@pytest.mark.parametrize("third", ["none", "blank", "comment line"])
def test_all_mistakes_of_a_command_are_mended_at_once(first: str, second: str, third: str) -> None:
    lines = (
        "    --b 2",
        MISTAKES[first],
        "    --c '# 3'",
        MISTAKES[second],
        "    --d 4",
        MISTAKES[third],
        "    --e 5\nfi\n",
    )
    text = HEAD + "".join(lines)
    (problem,) = parse("run.sh", text).problems
    assert all(flag in problem.message for flag in ("--c", "--d", "--e"))
    fixed = apply_edits(text, "run.sh", problem.edits)
    assert fixed is not None
    again = parse("run.sh", fixed)
    assert again.problems == ()
    words = [w.text for w in again.launches[0].variants[0].words]
    assert words == ["--a", "1", "--b", "2", "--c", "# 3", "--d", "4", "--e", "5"]
    assert fixed.count("# why") == text.count("# why")


def test_all_flags_between_comments_are_named_and_saved() -> None:
    text = (
        f"{START} --model-path m \\\n# a\n--page-size 64 \\\n### b\n#--x 2 \\\n#--y \\\n--trust-remote-code \\\n"
        "### c\n# --z\n--tp 16 \\\n--nnodes 2\necho\n"
    )
    (problem,) = parse("run.sh", text).problems
    assert all(flag in problem.message for flag in ("--page-size", "--trust-remote-code", "--tp", "--nnodes"))
    fixed = apply_edits(text, "run.sh", problem.edits) or ""
    again = parse("run.sh", fixed)
    assert again.problems == ()
    words = [w.text for w in again.launches[0].variants[0].words]
    assert words == ["--model-path", "m", "--page-size", "64", "--trust-remote-code", "--tp", "16", "--nnodes", "2"]
    assert all(f"{comment}\n" in fixed for comment in ("# a", "### b", "#--x 2 \\", "#--y \\", "### c", "# --z"))


FINE = [
    f'A=(\n  # why\n  --a 1\n\n  --b\n)\n{START} "${{A[@]}}"\n',
    f"{START} \\\n  --a 1 \\\n  # the end\n\necho\n",
    f"{START} \\\n  --a 1 \\\n\necho --b\n",
    f"{START} --a 1\n\n--b 2\n",
    f"{START} --a 1 && \\\n  echo x\n",
    f"{START} --a 1 # why\necho\n",
    f"{START} --a 1 \\\n  > log\n",
    f"echo {START} \\ \n  --a\n",
    f"{START} --a 'x \\\n # y\n'\n",
]


@pytest.mark.parametrize("text", FINE, ids=range(len(FINE)))
def test_fine(text: str) -> None:
    assert parse("run.sh", text).problems == ()
