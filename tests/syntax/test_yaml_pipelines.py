"""Commands in pipelines: GitHub's workflows, GitLab's jobs, Argo's templates."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.launch import Document
from tests.syntax.support import argv, check_maps, told


def read(text: str, name: str = "ci.yml") -> Document:
    document = parse(name, text, lambda path: None)
    check_maps(document)
    return document


def launched(text: str) -> list[str]:
    return [" ".join(argv(v)) for launch in read(text).launches for v in launch.variants]


def job(matrix: str, run: str = "sglang serve ${{ matrix.a }} ${{ matrix.b }}") -> str:
    return f"jobs:\n  x:\n    strategy:\n      matrix: {matrix}\n    steps:\n    - run: {run}\n"


MATRICES = [
    ("{a: [1, 2], b: [3]}", ["1 3", "2 3"]),
    ("{a: [1, 2], b: [3, 4], exclude: [{a: 1, b: 4}]}", ["1 3", "2 3", "2 4"]),
    ("{a: [1, 2], b: [3], include: [{a: 5, b: 6}]}", ["1 3", "2 3", "5 6"]),
    ("{a: [1, 2], include: [{a: 1, b: 7}]}", ["1 7", "2 ?+"]),
    ("{a: [1, 2], include: [{b: 7}]}", ["1 7", "2 7"]),
    ("{a: [1], include: [{b: 7}, {a: 2, b: 8}]}", ["1 7", "2 8"]),
    ("{include: [{a: 1, b: 2}, {a: 3, b: 4}]}", ["1 2", "3 4"]),
    ("{c: [1, 2], a: [1], b: [2]}", ["1 2"]),
    ("{a: '${{ fromJson(x) }}', b: [2, 3]}", ["?+ 2", "?+ 3"]),
    ("'${{ fromJson(x) }}'", ["?+ ?+"]),
    ("{a: [" + ", ".join(map(str, range(20))) + "], b: [1]}", ["?+ ?+"]),
]


@pytest.mark.parametrize(("matrix", "expected"), MATRICES, ids=range(len(MATRICES)))
def test_matrices(matrix: str, expected: list[str]) -> None:
    assert launched(job(matrix)) == expected


def test_values_that_are_mappings() -> None:
    text = job("{m: [{a: 1, gpu: {n: 8}}, {a: 2}]}", "sglang serve ${{ matrix.m.a }} --n=${{ matrix.m.gpu.n }}")
    assert launched(text) == ["1 --n=8", "2 --n=?"]


def test_what_is_taken_of_a_matrix() -> None:
    (launch,) = read(job("{a: [1, 2], b: [3]}")).launches
    assert [[c.taken for c in v.choices] for v in launch.variants] == [["matrix.a is 1"], ["matrix.a is 2"]]


INPUTS = "on:\n  workflow_dispatch:\n    inputs: {tp: {default: '4'}, model: {required: true}}\n"
EXPRESSIONS = [
    ("${{ inputs.tp }}", "4"),
    ("${{ github.event.inputs.tp }}", "4"),
    ("${{inputs.tp||'2'}}", "4"),
    ("${{ inputs.model || 'm' }}", "m"),
    ("${{ inputs.model }}", "?+"),
    ("${{ inputs.other || inputs.tp }}", "4"),
    ("${{ vars.X || 8 }}", "8"),
    ("${{ env.X }}", "4x"),
    ("${{ env.Y || 'y' }}", "?+"),
    ("${{ inputs.tp && 'a' || 'b' }}", "?+"),
    ("${{ format('{0}', inputs.tp) }}", "?+"),
    ("x${{ inputs.tp }}y", "x4y"),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_expressions(expression: str, expected: str) -> None:
    steps = f"env: {{X: '${{{{ inputs.tp }}}}x'}}\njobs:\n  x:\n    steps:\n    - run: sglang serve {expression}\n"
    assert launched(INPUTS + steps) == [expected]


def test_the_inputs_of_an_action_and_of_a_called_workflow() -> None:
    action = "inputs: {tp: {default: 2}}\nruns:\n  steps:\n  - run: sglang serve ${{ inputs.tp }}\n    shell: bash\n"
    called = "on: {workflow_call: {inputs: {tp: {default: 2}}}}\njobs: {x: {steps: [{run: 'sglang serve ${{ inputs.tp }}'}]}}\n"
    assert launched(action) == launched(called) == ["2"]


def test_an_image_that_an_input_names() -> None:
    text = "on: {workflow_call: {inputs: {tag: {default: v0.5.21}}}}\njobs:\n  x:\n    container: {image: 'lmsysorg/sglang:${{ inputs.tag }}'}\n"
    (launch,) = read(text + "    steps: [{run: sglang serve m}]\n").launches
    assert [c.text for c in launch.clues] == ["lmsysorg/sglang:v0.5.21"]


@pytest.mark.parametrize(
    "container",
    ["'lmsysorg/sglang:${{ matrix.v }}'", "{image: 'lmsysorg/sglang:${{ matrix.v }}', options: --gpus all}"],
)
def test_images_of_the_jobs_of_a_matrix(container: str) -> None:
    text = "jobs:\n  x:\n    strategy: {matrix: {v: %s}}\n    container: %s\n    steps: [{run: sglang serve m}]\n"
    (launch,) = read(text % ("[v0.5.9, v0.5.21]", container)).launches
    assert [c.text for c in launch.clues] == ["lmsysorg/sglang:v0.5.9", "lmsysorg/sglang:v0.5.21"]
    assert len({c.place for c in launch.clues}) == 1
    (launch,) = read(text % ("'${{ fromJson(x) }}'", container)).launches
    assert [c.text for c in launch.clues] == ["lmsysorg/sglang:"]


PINS = [
    ("- run: pip install 'sglang[all]==0.5.9'", ["sglang[all]==0.5.9"]),
    ("- run: pip install sglang", []),
    ("- {uses: ./setup, with: {sglang-version: v0.5.9}}", ["sglang==0.5.9"]),
    ("- {uses: ./setup, with: {version: v0.5.9}}", []),
    ("- run: pip install sglang==0.5.8\n    - run: pip install sglang==0.5.9", ["sglang==0.5.9"]),
]


@pytest.mark.parametrize(("steps", "pins"), PINS, ids=range(len(PINS)))
def test_pins_of_earlier_steps(steps: str, pins: list[str]) -> None:
    text = f"jobs:\n  a:\n    steps:\n    {steps}\n    - run: sglang serve m\n  b:\n    steps:\n    - run: sglang serve n\n"
    first, second = read(text).launches
    assert [c.text for c in first.clues if c.kind == "pin"] == pins
    assert second.clues == ()


@pytest.mark.parametrize(
    ("text", "pins"),
    [
        ("setup: |\n  pip install sglang==0.5.9\nrun: |\n  sglang serve m\n", ["sglang==0.5.9"]),
        ("run: sglang serve m\nenvs: {V: 0.5.9}\nsetup: uv pip install sglang==$V\n", ["sglang==0.5.9"]),
        ("setup: pip install sglang==0.5.9\nname: x\nother:\n  run: sglang serve m\n", []),
    ],
)
def test_what_is_set_up_is_what_runs(text: str, pins: list[str]) -> None:
    (launch,) = parse("sky.yaml", "# sglang\n" + text).launches
    assert [c.text for c in launch.clues if c.kind == "pin"] == pins


GITLAB = [
    ("x:\n  script: [sglang serve $TP]\n  variables: {TP: '2'}\n", ["2"]),
    ("before_script: [export TP=2]\nx:\n  script: [sglang serve $TP]\n", ["2"]),
    ("default: {before_script: [export TP=2]}\nx:\n  script: [sglang serve $TP]\n", ["2"]),
    (
        "default: {before_script: [export TP=2]}\nx:\n  before_script: []\n  script: [sglang serve --tp $TP]\n",
        ["--tp ?+"],
    ),
    (
        "x:\n  script: [sglang serve $TP $B]\n  parallel: {matrix: [{TP: [1, 2], B: a}, {TP: 4}]}\n",
        ["1 a", "2 a", "4 ?+"],
    ),
    (
        ".b: {script: [sglang serve $TP], variables: {TP: '2', B: '3'}}\nx:\n  extends: .b\n  variables: {TP: '4'}\n",
        ["4"],
    ),
    (
        ".b: {script: [sglang serve $TP $B], variables: {TP: '2', B: '3'}}\nx: {extends: [.b], variables: {TP: '4'}}\n",
        ["4 3"],
    ),
    (".a: {variables: {TP: '2'}}\n.b: {extends: .a}\nx: {extends: [.b], script: [sglang serve $TP]}\n", ["2"]),
    (".b: {before_script: [T=2], script: [a]}\nx: {extends: .b, script: [sglang serve $T]}\n", ["2"]),
    (".b: {script: [sglang serve m]}\n", []),
    (".b: {script: [T=2, U=3]}\nx:\n  script:\n  - !reference [.b, script]\n  - sglang serve $T $U\n", ["2 3"]),
    ("x:\n  extends: x\n  script: [sglang serve m]\n", ["m"]),
    ("x:\n  script:\n  - !reference [x, script]\n  - sglang serve m\n", None),
    ("x:\n  script: sglang serve m\n", ["m"]),
]


@pytest.mark.parametrize(("text", "expected"), GITLAB, ids=range(len(GITLAB)))
def test_gitlab(text: str, expected: list[str] | None) -> None:
    found = launched(text)
    assert expected is None or found == expected


def test_the_images_of_gitlab() -> None:
    for text in (
        "default: {image: 'lmsysorg/sglang:v0.5.9'}\nx: {script: [sglang serve m]}\n",
        "image: lmsysorg/sglang:v0.5.9\nx: {script: [sglang serve m]}\n",
        "variables: {TAG: v0.5.9}\nx: {image: 'lmsysorg/sglang:$TAG', script: [sglang serve m]}\n",
        "x: {variables: {TAG: v0.5.9}, image: 'lmsysorg/sglang:${TAG}', script: [sglang serve m]}\n",
        ".b: {image: 'lmsysorg/sglang:v0.5.9'}\nx: {extends: .b, script: [sglang serve m]}\n",
    ):
        (launch,) = read(text).launches
        assert [c.text for c in launch.clues] == ["lmsysorg/sglang:v0.5.9"], text


ARGO = [
    ("{{inputs.parameters.tp}}", "2"),
    ("{{ workflow.parameters.tp-size }}", "8"),
    ("{{inputs.parameters.model}}", "?"),
    ("{{inputs.parameters.other}}", "?"),
    ("{{workflow.name}}", "?"),
]


@pytest.mark.parametrize(("expression", "expected"), ARGO, ids=range(len(ARGO)))
def test_the_parameters_of_argo(expression: str, expected: str) -> None:
    text = (
        "kind: Workflow\nspec:\n  arguments: {parameters: [{name: tp-size, value: 8}]}\n  templates:\n"
        "  - name: a\n    inputs: {parameters: [{name: tp, value: '2'}, {name: model}, {name: other, value: 1}]}\n"
        f"    container: {{command: [sglang, serve, m, '--a={expression}']}}\n"
        "  - name: b\n    inputs: {parameters: [{name: other, value: 3}]}\n"
    )
    (launch,) = read(text).launches
    assert [told(w) for w in launch.variants[0].words] == ["m", f"--a={expected}"]


RUNNERS = [
    ("runs-on: 1-gpu-h100", "1-gpu-h100"),
    ("runs-on: [self-hosted, h200]", "self-hosted,h200"),
    ("runs-on: {group: gpus, labels: [8-gpu-b200]}", "8-gpu-b200"),
    ("runs-on: '${{ inputs.runner }}'", "l40s"),
    ("strategy: {matrix: {r: [1-gpu-h100, 8-gpu-b200]}}\n    runs-on: '${{ matrix.r }}'", "1-gpu-h100|8-gpu-b200"),
    ("strategy: {matrix: {r: [1-gpu-h100], a: [1, 2]}}\n    runs-on: '${{ matrix.r }}'", "1-gpu-h100"),
    ("runs-on: '${{ matrix.r }}'", "?"),
    ("tags: [h100]", None),
]


@pytest.mark.parametrize(("text", "labels"), RUNNERS, ids=range(len(RUNNERS)))
def test_the_runners_of_workflows(text: str, labels: str | None) -> None:
    whole = f"on: {{workflow_call: {{inputs: {{runner: {{default: l40s}}}}}}}}\njobs:\n  x:\n    {text}\n    steps: [{{run: sglang serve m}}]\n"
    (launch,) = read(whole).launches
    assert [c.text for c in launch.clues if c.kind == "runner"] == ([labels] if labels else [])


def test_the_tags_of_gitlab() -> None:
    (launch,) = read("default: {tags: [gpu, h100]}\nx: {script: [sglang serve m]}\n").launches
    assert [(c.kind, c.text) for c in launch.clues] == [("runner", "gpu,h100")]
