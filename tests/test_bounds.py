"""Everything ends: work grows with the text, not faster, and past a bound there is one line that says so.

Steps are counted, not time: the calls of our own functions, and the checkpoints of `spec_lsp.interruption`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import spec_lsp
from spec_lsp import interruption
from spec_lsp.analysis import Cache, analyse, read_document
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.report import Analysis
from spec_lsp.api import check_text
from spec_lsp.catalog.store import load, releases
from spec_lsp.interruption import Exhausted, bounded, checkpoint
from spec_lsp.syntax import MAX_STEPS
from tests.analysis.support import NOTHING
from tests.fuzz.cases import corpus

OURS = str(Path(spec_lsp.__file__).parent)
RUN = "python -m sglang.launch_server --model-path x"
ENGINE = "sgl.Engine(model_path=a)\n"
IMPORT = "import sglang as sgl\nimport subprocess, shlex\n"


def analysed(name: str, text: str) -> Analysis:
    return analyse(read_document(f"/w/{name}", text, NOTHING), Options(), NOTHING, Cache())


def calls(name: str, text: str) -> int:
    """Calls of our own functions while a text is read and judged."""
    count = 0

    def counted(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            count += 1

    sys.setprofile(counted)
    try:
        analysed(name, text)
    finally:
        sys.setprofile(None)
    return count


def steps(work: Callable[[], object]) -> int:
    """Checkpoints that some work passes."""
    before = interruption._left
    interruption._left = 10**12
    try:
        work()
        return int(10**12 - interruption._left)
    finally:
        interruption._left = before


# --- the bound ---------------------------------------------------------------------------------------------------------


def test_work_ends_at_its_bound() -> None:
    done: list[int] = []

    def work() -> None:
        with bounded(100):
            for i in range(1000):
                checkpoint()
                done.append(i)

    with pytest.raises(Exhausted):
        work()
    assert len(done) == 100
    checkpoint(10**9)  # outside, nothing is bounded


def test_what_is_within_counts_for_what_is_around() -> None:
    with bounded(100):
        with bounded(60):
            checkpoint(50)
        with bounded(60), pytest.raises(Exhausted):
            checkpoint(51)
        with pytest.raises(Exhausted):
            checkpoint()


def test_no_bound_is_met_by_what_people_write() -> None:
    for name, text in corpus():
        found = read_document(f"/w/{name}", text, NOTHING)
        assert not [p for p in found.problems if p.rule == "not-read-whole"], name
        assert steps(lambda name=name, text=text: read_document(f"/x/{name}", text, NOTHING)) < MAX_STEPS / 20  # type: ignore[misc]


# --- growth ------------------------------------------------------------------------------------------------------------

GROWING: dict[str, Callable[[int], str]] = {
    "launches.py": lambda n: IMPORT + "".join(f"sgl.Engine(model_path='x', page_size={i})\n" for i in range(n)),
    "commands.py": lambda n: IMPORT + "".join(f"subprocess.run(['sglang', 'serve', 'x', '--port', '{i}'])\n" for i in range(n)),
    "names.py": lambda n: IMPORT + "a = 'x'\n" + "a = a\n" * n + ENGINE,
    "sums.py": lambda n: IMPORT + "a = 'x'\n" + "a = a + 'y'\n" * n + ENGINE,
    "doubled sums.py": lambda n: IMPORT + "a = 'x'\n" + "a = a + a\n" * n + ENGINE,
    "formats.py": lambda n: IMPORT + "a = 'x'\n" + "a = f'{a}{a}'\n" * n + ENGINE,
    "lists.py": lambda n: IMPORT + "a = ['x']\n" + "a = [*a, *a]\n" * n + "sgl.Engine(model_path=' '.join(a))\n",
    "joins.py": lambda n: IMPORT + "a = 'xy'\n" + "a = a.join([a, a])\n" * n + ENGINE,
    "replaces.py": lambda n: IMPORT + "a = 'xx'\n" + "a = a.replace('x', 'xx')\n" * n + ENGINE,
    "splits.py": lambda n: IMPORT + "a = 'x '\n" + "a = a + a\nb = shlex.split(a)\n" * n + "sgl.Engine(model_path=b[0])\n",
    "comprehensions.py": lambda n: IMPORT + "r = [1, 2, 3]\na = ['x' " + "for i in r " * n + "]\n" + "sgl.Engine(model_path=a[0])\n",
    "loops.py": lambda n: IMPORT + "".join(" " * i + f"for x{i} in a:\n" for i in range(min(n, 60))) + " " * 60 + "sgl.Engine(model_path='x')\n",
    "entries.py": lambda n: IMPORT + "d = {}\n" + "".join(f"d['k{i}'] = {i}\n" for i in range(n)) + "sgl.Engine(model_path='x')\n",
    "keywords.py": lambda n: f"{IMPORT}sgl.Engine(model_path='x', {', '.join(f'pag_siz{i}=1' for i in range(n))})\n",
    "nested calls.py": lambda n: IMPORT + "a = " + "str(" * min(n, 50) + "'x'" + ")" * min(n, 50) + "\n" + ENGINE,
    "methods.py": lambda n: IMPORT + "class A:\n" + "".join(f" def m{i}(self):\n  subprocess.run(['sglang', 'serve', self.x])\n" for i in range(n)),
    "services.yaml": lambda n: "services:\n" + "".join(f"  s{i}:\n    image: lmsysorg/sglang:v0.5.9\n    command: {RUN} --port {i}\n" for i in range(n)),
    "steps.yaml": lambda n: "jobs:\n  x:\n    steps:\n" + "".join(f"    - run: {RUN} --port {i}\n" for i in range(n)),
    "documents.yaml": lambda n: "".join(f"---\ncommand: {RUN} --port {i}\n" for i in range(n)),
    "aliases.yaml": lambda n: f"a0: &a0 ['{RUN}']\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(n)) + f"command: *a{n}\n",
    "merges.yaml": lambda n: f"a0: &a0 {{command: '{RUN}'}}\n" + "".join(f"a{i + 1}: &a{i + 1}\n  <<: [*a{i}, *a{i}]\n" for i in range(n)) + f"x:\n  <<: *a{n}\n",
    "extends.gitlab-ci.yml": lambda n: "".join(f".a{i}:\n  extends: [.a{i + 1}, .a{i + 1}]\n" for i in range(n)) + f".a{n}:\n  script: ['{RUN}']\nj:\n  extends: .a0\n",
    "references.gitlab-ci.yml": lambda n: "".join(f".a{i}:\n  script: [!reference [.a{i + 1}, script], !reference [.a{i + 1}, script]]\n" for i in range(n)) + f".a{n}:\n  script: ['{RUN}']\nj:\n  script: [!reference [.a0, script]]\n",
    "templates.yaml": lambda n: f"command: {RUN} --x {'{{ x }}' * n}\n",
    "conditions.yaml": lambda n: f"command:\n- {RUN}\nargs:\n" + "".join(f"{{{{- if .Values.a{i} }}}}\n- --x{i}\n{{{{- end }}}}\n" for i in range(n)),
    "nested conditions.yaml": lambda n: "".join(f"{{% if a{i} %}}\n" for i in range(n)) + f"command: {RUN}\n" + "{% endif %}\n" * n,
    "fences.md": lambda n: "".join(f"```bash\n{RUN} --port {i}\n```\n" for i in range(n)),
    "runs.Dockerfile": lambda n: "FROM x\n" + "".join(f"RUN {RUN} --port {i}\n" for i in range(n)),
    "arguments.Dockerfile": lambda n: "FROM x\nARG A0=x\n" + "".join(f"ARG A{i + 1}=$A{i}$A{i}\n" for i in range(n)) + f"CMD {RUN} --x $A{n}\n",
    "names.justfile": lambda n: "a0 := 'x'\n" + "".join(f"a{i + 1} := a{i} + a{i}\n" for i in range(n)) + f"run:\n  {RUN} --x {{{{a{n}}}}}\n",
    "names.mk": lambda n: "A0=x\n" + "".join(f"A{i + 1}=$(A{i})$(A{i})\n" for i in range(n)) + f"run:\n\t{RUN} --x $(A{n})\n",
    "launches.sh": lambda n: "".join(f"{RUN} --port {i}\n" for i in range(n)),
    "findings.sh": lambda n: "".join(f"{RUN} --bogus {i}\n" for i in range(n)),
    "flags.sh": lambda n: RUN + "".join(f" --port {i}" for i in range(n)) + "\n",
    "typos.sh": lambda n: RUN + "".join(f" --pag-siz{i} 1" for i in range(n)) + "\n",
    "ignores.sh": lambda n: "".join(f"{RUN} --bogus {i}  # spec-lsp: ignore[unknown-flag]\n" for i in range(n)),
}  # fmt: skip
"""Constructs, each `n` times: the work for twice as many is twice the work, or less."""


SIZES = (12, 40, 80)


@pytest.mark.parametrize("construct", GROWING)
def test_work_grows_with_the_text(construct: str) -> None:
    make = GROWING[construct]
    for n in SIZES:
        analysed(f"before {construct}", make(n))  # tables are loaded once
    # the least of two counts: what is made on first use, or freed meanwhile, belongs to no construct
    few, some, many = (min(calls(construct, make(n)) for _ in range(2)) for n in SIZES)
    each = max((some - few) / (SIZES[1] - SIZES[0]), 30)
    assert many - some <= (SIZES[2] - SIZES[1]) * each * 1.5, (few, some, many)


def test_conditions_deep_in_each_other_are_each_looked_at_once() -> None:
    """Few are no measure: what they cost together is small beside what they cost each."""
    make = GROWING["nested conditions.yaml"]
    analysed("before.yaml", make(300))
    few, many = (calls("conditions.yaml", make(n)) for n in (300, 600))
    assert many <= 2.3 * few, (few, many)


# --- past the bounds ---------------------------------------------------------------------------------------------------

HOSTILE: dict[str, str] = {
    "doubled text.py": IMPORT + "a = 'aaaaaaaaaa'\n" + "a = a + a\n" * 60 + ENGINE,
    "doubled format.py": IMPORT + "a = 'x'\n" + "a = f'{a}{a}{a}'\n" * 60 + ENGINE,
    "power.py": f"{IMPORT}b = 10**10**10\na = 'x' * 10**9 + '%999999999s' % 1 + f'{{1:999999999}}' + ('x').ljust(10**9)\n{ENGINE}",
    "shift.py": f"{IMPORT}b = 1 << 10**9\na = str(1 << 10**9)\n{ENGINE}",
    "digits.py": f"{IMPORT}a = 0x{'f' * 200_000}\nb = int('{'9' * 200_000}')\n{ENGINE}sgl.Engine(tp_size=a, model_path=f'{{a}}{{b}}')\n",
    "turns.py": IMPORT + "".join(" " * i + f"for x{i} in [1, 2, 3, 4, 5, 6, 7, 8, 9]:\n" for i in range(15)) + " " * 15 + "sgl.Engine(model_path='x')\n",
    "comprehension.py": IMPORT + "r = [1, 2, 3, 4, 5, 6, 7, 8]\na = [x " + "for x in r if x " * 12 + "]\n" + ENGINE,
    "names.py": IMPORT + "a = 'x'\n" + "a = a\n" * 20_000 + ENGINE,
    "additions.py": IMPORT + "a = 'x'\n" + "a = a + 'sglang serve'\n" * 20_000 + ENGINE,
    "entries.py": IMPORT + "d = {}\n" + "".join(f"d['k{i}'] = {i}\n" for i in range(20_000)) + "sgl.Engine(**d)\n",
    "tests.py": IMPORT + "a = " + "(x or (y and " * 28 + "z" + "))" * 28 + "\n" + ENGINE,
    "elifs.py": IMPORT + "if x == 0:\n a = 'x'\n" + "".join(f"elif x == {i}:\n a = '{i}'\n" for i in range(900)) + ENGINE,
    "brackets.py": IMPORT + "a = " + "(" * 3000 + ")" * 3000 + "\n" + ENGINE,
    "aliases.yaml": f"a0: &a0 ['{RUN}', x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{','.join([f'*a{i}'] * 9)}]\n" for i in range(12)) + "command: *a12\n",
    "merges.yaml": f"a0: &a0 {{command: ['{RUN}']}}\n" + "".join(f"a{i + 1}: &a{i + 1}\n  <<: [{','.join([f'*a{i}'] * 9)}]\n" for i in range(12)) + "services:\n  x:\n    <<: *a12\n",
    "references.gitlab-ci.yml": "".join(f".a{i}:\n  script: [{', '.join([f'!reference [.a{i + 1}, script]'] * 9)}]\n" for i in range(12)) + f".a12:\n  script: ['{RUN}']\nj:\n  script:\n  - !reference [.a0, script]\n  - {RUN}\n",
    "extends.gitlab-ci.yml": "".join(f".a{i}:\n  extends: [{', '.join([f'.a{i + 1}'] * 9)}]\n" for i in range(12)) + f".a12:\n  script: ['{RUN}']\nj:\n  extends: .a0\n",
    "sexagesimal.yaml": f"page-size: 1{':59' * 2500}\nattention-backend: x\ntp-size: 2\n",
    "hexadecimal.yaml": f"page-size: 0x{'f' * 100_000}\nattention-backend: x\ntp-size: {'9' * 100_000}\n",
    "brackets.yaml": f"a: {'[' * 3000}{']' * 3000}\ncommand: {RUN}\n",
    "holes.yaml": f"command: {RUN} --x {'{{ x }}' * 20_000}\n",
    "arguments.Dockerfile": "FROM x\nARG A0=x\n" + "".join(f"ARG A{i + 1}=$A{i}$A{i}\n" for i in range(60)) + f"CMD {RUN} --x $A60\n",
    "names.justfile": "a0 := 'x'\n" + "".join(f"a{i + 1} := a{i} + a{i}\n" for i in range(60)) + f"run:\n  {RUN} --x {{{{a60}}}}\n",
    "names.mk": "A0=x\n" + "".join(f"A{i + 1}=$(A{i})$(A{i})\n" for i in range(60)) + f"run:\n\t{RUN} --x $(A60)\n",
    "quotes.md": ("> " * 300 + f"```bash\n{'> ' * 300}{RUN}\n{'> ' * 300}```\n") * 20,
    "cells.ipynb": '{"cells": [{"cell_type": "code", "source": ["a = \'sglang serve\'\\n", ' + '"a = a + a\\n", ' * 60 + '"import os\\nos.system(a)\\n"]}]}',
    "calls.py": IMPORT + "".join(f"def f{i}(x):\n    subprocess.run(['sglang', 'serve', x])\n" + f"    f{i + 1}(x)\n" * 4 for i in range(12)) + "f0('x')\n",
}  # fmt: skip


SILENT = ("aliases.yaml", "cells.ipynb")
"""Texts in which no launch is certain."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_read_in_bounded_steps(name: str) -> None:
    found = []
    taken = steps(lambda: found.append(read_document(f"/w/{name}", HOSTILE[name], NOTHING)))
    assert taken <= MAX_STEPS + 10_000
    analysis = analyse(found[0], Options(), NOTHING, Cache())
    assert not analysis.faults
    told = [d for d in analysis.diagnostics if d.rule.name == "not-read-whole"]
    assert len(told) <= 1
    assert analysis.launches or told or name in SILENT


def test_what_was_found_before_a_bound_is_kept() -> None:
    text = IMPORT + "sgl.Engine(model_path='x', page_sice=1)\n" + HOSTILE["turns.py"].removeprefix(IMPORT)
    analysis = analysed("a.py", text)
    assert [d.rule.name for d in analysis.diagnostics] == ["not-read-whole", "unknown-flag"]


@pytest.mark.parametrize("number", ["9" * 400, "2147483647", "-" + "9" * 30])
def test_no_number_is_counted_up_to(number: str) -> None:
    """Whatever number a flag is given: resolution makes no list and no loop of that length."""
    for flag in load(releases()[-1]).flags:
        if flag.type in ("int", "human_readable_int", "float") and flag.nargs is None:
            launch = f"python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B-FP8 {flag.name}={number}"
            check_text(f"{launch} --disable-cuda-graph-padding\n", sglang="0.5.23", gpu="h100", fixes=False)
