"""What selections grow to and what can be folded."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.outline import enclosing, folds
from tests.syntax.support import START

P = START


def grown(text: str, name: str = "run.sh") -> list[str]:
    """What lies around the cursor `‸`, the smallest first."""
    offset = text.index("‸")
    text = text.replace("‸", "")
    document = parse(name, text)
    spans = enclosing(name, text, document.launches, offset, shell=name.endswith(".sh"))
    assert all(c <= a and b <= d for (a, b), (c, d) in pairwise(spans))
    return [text[a:b] for a, b in spans]


LAUNCH = f'{P} --tp 2 --model-path "$M" --lora-paths a b --x'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # From a word to its flag with the value, the launch, what is around it.
        (f"if a; then\n  {P} --tp ‸2 --x &\nfi\n", ["2", "--tp 2", f"{P} --tp 2 --x", f"{P} --tp 2 --x &", f"if a; then\n  {P} --tp 2 --x &\nfi"]),
        (LAUNCH.replace("M\"", "‸M\"") + "\n", ["$M", '"$M"', '--model-path "$M"', LAUNCH]),
        (LAUNCH.replace(" b", " ‸b") + "\n", ["b", "--lora-paths a b", LAUNCH]),
        (LAUNCH.replace("--x", "‸--x") + "\n", ["--x", LAUNCH]),
        (f"python ‸-m{P[9:]} --tp 2 # c\n", ["-m", P, f"{P} --tp 2"]),
        # In an array that a launch takes, and what is no launch.
        (f'A=(--tp ‸2 --x)\n{P} "${{A[@]}}"\n', ["2", "--tp 2", "A=(--tp 2 --x)"]),
        ("f() { echo $(cat ‸x | y) z; }\n", ["x", "cat x", "cat x | y", "$(cat x | y)", "echo $(cat x | y) z", "{ echo $(cat x | y) z; }", "f() { echo $(cat x | y) z; }"]),
        ("‸\n# nothing\n", []),
    ],
)  # fmt: skip
def test_selections(text: str, wanted: list[str]) -> None:
    assert grown(text) == wanted


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("c.yaml", f"run: |\n  {P} \\\n    --tp ‸2 --x\n", ["2", "--tp 2", f"{P} \\\n    --tp 2 --x"]),
        ("c.yaml", "command: [python, -m, sglang.launch_server, --tp, ‸'2']\n", None),
        ("Dockerfile", f"FROM x\nCMD {P} --tp ‸2\n", ["2", "--tp 2", f"{P} --tp 2"]),
        ("README.md", f"```bash\n{P} --tp ‸2\n```\n", ["2", "--tp 2", f"{P} --tp 2"]),
    ],
)
def test_selections_in_other_files(name: str, text: str, wanted: list[str] | None) -> None:
    found = grown(text, name)
    if wanted is None:
        assert found[0].strip("'") == "2"
        assert len(found) > 2
    else:
        assert found == wanted


FOLDED = """\
f() {
  a
}
if x; then
  a \\
    b
elif y; then
  c
else
  d
fi
A=(
  --x 1
  --y
)
cat > f <<EOF
one
two
EOF
case x in
  a)
    b
    ;;
  c) d ;;
esac
while a; do b; done
for x in 1; do
  { b
  }
done > log
python -m sglang.launch_server \\
  --tp 2 \\
  --x
X=$(a \\
  b)
(
  a "it
    is"; b
)
"""


def test_folds() -> None:
    shown = [(FOLDED.split("\n")[a], b - a) for a, b in folds(FOLDED)]
    assert shown == [
        ("f() {", 1),
        ("if x; then", 2),
        ("  a \\", 1),
        ("elif y; then", 1),
        ("else", 1),
        ("A=(", 2),
        ("cat > f <<EOF", 2),
        ("case x in", 4),
        ("  a)", 1),
        ("for x in 1; do", 2),
        ("python -m sglang.launch_server \\", 2),
        ("X=$(a \\", 1),
        ("(", 2),
        ('  a "it', 1),
    ]


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent.parent / "corpus" / "shell").glob("*.sh")), ids=lambda p: p.stem
)
def test_every_script_has_an_outline(path: Path) -> None:
    text = path.read_text("utf-8")
    document = parse(path.name, text)
    count = text.count("\n")
    assert all(0 <= a < b <= count for a, b in folds(text))
    for offset in range(0, len(text), 97):
        spans = enclosing(path.name, text, document.launches, offset, shell=True)
        assert all(a <= offset <= b for a, b in spans)
        assert all(c <= a and b <= d and (a, b) != (c, d) for (a, b), (c, d) in pairwise(spans))
