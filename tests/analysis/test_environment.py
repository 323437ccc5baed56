"""Environment variables of a launch: which are told of, and the way out."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.environment import used_by
from spec_lsp.analysis.fixes import fix_all
from spec_lsp.analysis.inputs import Options
from tests.analysis.support import NOTHING, PINNED, SERVER, after, check, offered, only, repaired, said

RULES = ("unread-variable", "deprecated-variable", "variable-value")


CARRIERS = {
    "run.sh": f"docker run --gpus all -e NAME=1 IMAGE {SERVER}\n",
    "pod.yaml": (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: s\n    image: IMAGE\n"
        f"    command: [sh, -c, {SERVER}]\n    env:\n    - name: NAME\n      value: '1'\n"
    ),
    "compose.yaml": f"services:\n  s:\n    image: IMAGE\n    command: {SERVER}\n    environment:\n      NAME: '1'\n",
    "listed/compose.yaml": f"services:\n  s:\n    image: IMAGE\n    command: {SERVER}\n    environment:\n    - NAME=1\n",
    "Dockerfile": f"FROM IMAGE\nENV NAME=1\nCMD {SERVER}\n",
}
"""Files that give a variable `NAME` to a launch in an `IMAGE`."""


def told(text: str) -> list[tuple[str, str, str]]:
    return [one for one in said(text) if one[1] in RULES]


@pytest.mark.parametrize(
    ("before", "rule", "place", "part"),
    [
        ("export SGLANG_ENABLE_SPEC_V2=1\n", "unread-variable", "SGLANG_ENABLE_SPEC_V2=1", "since 0.5.21"),
        ("SGLANG_ENABLE_SPEC_V2=1 ", "unread-variable", "SGLANG_ENABLE_SPEC_V2=1", "overlap scheduler"),
        ("env SGLANG_ENABLE_SPEC_V2=1 ", "unread-variable", "SGLANG_ENABLE_SPEC_V2=1", "no longer reads"),
        ('export SGLANG_ENABLE_SPEC_V2="1"\n', "unread-variable", 'SGLANG_ENABLE_SPEC_V2="1"', "no longer"),
        ("ON=1\nexport SGLANG_ENABLE_SPEC_V2=$ON\n", "unread-variable", "SGLANG_ENABLE_SPEC_V2=$ON", "no longer"),
        ("SGLANG_MOE_USE_AITER=1 ", "unread-variable", "SGLANG_MOE_USE_AITER=1", "Use `SGLANG_USE_AITER` instead."),
        ("SGLANG_CUTLASS_MOE=1 ", "unread-variable", "SGLANG_CUTLASS_MOE=1", "`--moe-runner-backend cutlass`"),
        ("SGLANG_HACK_SEQ_BOOTSTRAP_ROOM=1 ", "unread-variable", "SGLANG_HACK_SEQ_BOOTSTRAP_ROOM=1", "No release"),
        ("SGLANG_USE_AITTER=1 ", "unread-variable", "SGLANG_USE_AITTER=1", "Did you mean `SGLANG_USE_AITER`?"),
        ("SGL_DG_CACHE_DIR=/x ", "deprecated-variable", "SGL_DG_CACHE_DIR=/x", "as `SGLANG_DG_CACHE_DIR`"),
        ("SGLANG_USE_AITER=maybe ", "variable-value", "maybe", "is a switch"),
        ("SGLANG_DISAGGREGATION_WAITING_TIMEOUT=5m ", "variable-value", "5m", "whole number"),
    ],
)
def test_told(before: str, rule: str, place: str, part: str) -> None:
    text = PINNED + before + SERVER
    assert told(text) == [("hint", rule, place)]
    assert part in only(text, rule).message


@pytest.mark.parametrize(
    "script",
    [
        f"SGLANG_USE_AITER=1 {SERVER}",
        f"SGLANG_USE_AITER=FALSE {SERVER}",
        f"SGLANG_USE_AITER={SERVER}",
        f"SGLANG_DISAGGREGATION_WAITING_TIMEOUT=600 {SERVER}",
        f"SGLANG_USE_AITER=$WHATEVER {SERVER}",
        # never given to the launch
        f"SGLANG_ENABLE_SPEC_V2=1\n{SERVER}",
        f"export SGLANG_ENABLE_SPEC_V2=1\nunset SGLANG_ENABLE_SPEC_V2\n{SERVER}",
        f"SGLANG_ENABLE_SPEC_V2=1 echo\n{SERVER}",
        f"export SGLANG_ENABLE_SPEC_V2=1\ndocker run lmsysorg/sglang:dev {SERVER}",
        # the script's own
        f"SGLANG_ARGS='--tp 2'\n{SERVER} $SGLANG_ARGS",
        f"export SGLANG_ARGS='--tp 2' SGLANG_DIR=/x SGLANG_IMAGE=y SGLANG_API_KEY=z\n{SERVER}",
        f"export SGLANG_FLAVOUR=3\necho $SGLANG_FLAVOUR\n{SERVER}",
        f"export SGLANG_FLAVOUR=3\npython -c 'import os; os.environ[\"SGLANG_FLAVOUR\"]'\n{SERVER}",
        f'export SGLANG_ENABLE_SPEC_V2=1\nif [ -n "$SGLANG_ENABLE_SPEC_V2" ]; then echo old; fi\n{SERVER}',
        # other programs'
        f"export SGLANG_ROUTER_LEVEL=3 SGL_KERNEL_WHAT=2 VLLM_USE_V1=1 FOO=2\n{SERVER}",
    ],
)
def test_silent(script: str) -> None:
    assert told(PINNED + script + "\n") == []


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        ("0.5.9", None),
        ("0.5.12", None),
        ("0.5.19", "deprecated-variable"),
        ("0.5.21", "unread-variable"),
        ("0.5.23", "unread-variable"),
        ("0.9.0", "unread-variable"),
    ],
)
def test_by_release(release: str, rule: str | None) -> None:
    text = f"# spec-lsp: sglang={release} gpu=h100\nSGLANG_ENABLE_SPEC_V2=1 {SERVER}"
    assert [found for _, found, _ in told(text)] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("release", "variable", "part"),
    [
        ("0.5.9", "SGLANG_DSPARK_USE_GREEDY_DRAFT", "only since 0.5.22; this launch runs 0.5.9"),
        ("0.5.6", "SGL_DG_CACHE_DIR", "as `SGLANG_DG_CACHE_DIR`"),
    ],
)
def test_older_releases(release: str, variable: str, part: str) -> None:
    (found,) = [
        d
        for d in check(f"# spec-lsp: sglang={release} gpu=h100\n{variable}=1 {SERVER}").diagnostics
        if d.rule.name in RULES
    ]
    assert part in found.message


def test_a_release_nobody_knows_may_read_any_name() -> None:
    assert told(f"# spec-lsp: sglang=0.9.0 gpu=h100\nSGLANG_BRAND_NEW_THING=1 {SERVER}") == []


@pytest.mark.parametrize(
    ("tag", "silent"),
    [("dev", True), ("dev-20260115-0a1b2c3d", True), ("some-model-blackwell", True), ("latest", False)],
)
def test_a_build_nobody_knows_may_read_any_name(tag: str, silent: bool) -> None:
    text = f"# spec-lsp: gpu=h100\ndocker run -e SGLANG_BRAND_NEW_THING=1 lmsysorg/sglang:{tag} {SERVER}"
    assert (told(text) == []) is silent


def test_release_not_named() -> None:
    text = f"# spec-lsp: gpu=h100\nSGLANG_ENABLE_SPEC_V2=1 SGLANG_USE_AITER=1 {SERVER}"
    assert told(text) == [("hint", "unread-variable", "SGLANG_ENABLE_SPEC_V2=1")]


def test_inside_a_container() -> None:
    text = PINNED + f'docker run -e "SGLANG_ENABLE_SPEC_V2=1" --env=SGLANG_MOE_USE_AITER=1 lmsysorg/sglang:dev {SERVER}'
    assert [place for _, _, place in told(text)] == ['SGLANG_ENABLE_SPEC_V2=1"', "SGLANG_MOE_USE_AITER=1"]


def test_once_for_all_ways_to_run_it() -> None:
    text = PINNED + f"export SGLANG_ENABLE_SPEC_V2=1\nif $1; then X='--tp 2'; fi\n{SERVER} $X"
    assert len(told(text)) == 1


# --- fixes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "rule", "titles", "result"),
    [
        (
            f"export SGLANG_ENABLE_SPEC_V2=1\n{SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_ENABLE_SPEC_V2`", "safe")],
            f"{SERVER}\n",
        ),
        (
            f"export A=1 SGLANG_ENABLE_SPEC_V2=1\n{SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_ENABLE_SPEC_V2`", "safe")],
            f"export A=1\n{SERVER}\n",
        ),
        (
            f"SGLANG_MOE_USE_AITER=1 {SERVER}\n",
            "unread-variable",
            [("Write `SGLANG_USE_AITER`", "unsafe"), ("Remove `SGLANG_MOE_USE_AITER`", "safe")],
            f"SGLANG_USE_AITER=1 {SERVER}\n",
        ),
        (
            f"SGL_DG_CACHE_DIR=/x \\\n  {SERVER}\n",
            "deprecated-variable",
            [("Write `SGLANG_DG_CACHE_DIR`", "safe")],
            f"SGLANG_DG_CACHE_DIR=/x \\\n  {SERVER}\n",
        ),
        (
            f"A=1 \\\n  SGLANG_CUTLASS_MOE=1 \\\n  {SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_CUTLASS_MOE`", "safe")],
            f"A=1 \\\n  {SERVER}\n",
        ),
        (
            f"docker run -e SGLANG_CUTLASS_MOE=1 --rm \\\n  lmsysorg/sglang:dev {SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_CUTLASS_MOE`", "safe")],
            f"docker run --rm \\\n  lmsysorg/sglang:dev {SERVER}\n",
        ),
        (
            f"docker run \\\n  -e SGLANG_CUTLASS_MOE=1 \\\n  lmsysorg/sglang:dev {SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_CUTLASS_MOE`", "safe")],
            f"docker run \\\n  lmsysorg/sglang:dev {SERVER}\n",
        ),
        (
            f"SGLANG_SOMETHING_ELSE_AGAIN=1 {SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_SOMETHING_ELSE_AGAIN`", "unsafe")],
            f"{SERVER}\n",
        ),
        (
            f"bash -c 'SGLANG_CUTLASS_MOE=1 {SERVER}'\n",
            "unread-variable",
            [("Remove `SGLANG_CUTLASS_MOE`", "safe")],
            f"bash -c '{SERVER}'\n",
        ),
        (
            f'docker run -e "SGLANG_CUTLASS_MOE=1" --rm lmsysorg/sglang:dev {SERVER}\n',
            "unread-variable",
            [("Remove `SGLANG_CUTLASS_MOE`", "safe")],
            f"docker run --rm lmsysorg/sglang:dev {SERVER}\n",
        ),
        # a block must not be left empty
        (f"if $X; then\n  export SGLANG_ENABLE_SPEC_V2=1\nfi\n{SERVER}\n", "unread-variable", [], ""),
        # what it means is the opposite: no mere renaming
        (
            f"SGLANG_DISABLE_TP_MEMORY_INBALANCE_CHECK=1 {SERVER}\n",
            "unread-variable",
            [("Remove `SGLANG_DISABLE_TP_MEMORY_INBALANCE_CHECK`", "safe")],
            f"{SERVER}\n",
        ),
    ],
)
def test_fixes(script: str, rule: str, titles: list[tuple[str, str]], result: str) -> None:
    fixes = offered(PINNED + script, rule)
    assert [(title, kind) for title, kind, _ in fixes] == titles
    if titles:
        assert fixes[0][2] == PINNED + result


def test_what_an_older_release_reads_is_not_taken_out_where_nobody_names_a_release() -> None:
    assert offered(f"# spec-lsp: gpu=h100\nexport SGLANG_ENABLE_SPEC_V2=1\n{SERVER}\n", "unread-variable") == []


@pytest.mark.parametrize(
    "before",
    [
        "export PYTHONPATH=$HERE/my-sglang:$PYTHONPATH\n",
        "pip install -e ./sglang/python\n",
        "pip install git+https://github.com/me/sglang.git@mine\n",
        "export PYTHONPATH=/work/sglang/python\n",
    ],
)
def test_a_build_of_ones_own_may_read_what_no_release_reads(before: str) -> None:
    text = f"{before}export SGLANG_MY_KERNEL=1\nexport SGLANG_ENABLE_SPEC_V2=1\n{SERVER}\n"
    found = [d for d in check(text).diagnostics if d.rule.name == "unread-variable"]
    assert [d.message.startswith("Stock SGLang") for d in found] == [True, True]
    assert not any(d.unnecessary for d in found)
    assert repaired(text) == text


@pytest.mark.parametrize("variable", ["SGLANG_NO_SUCH_THING", "SGLANG_ENABLE_SPEC_V2"])
@pytest.mark.parametrize(
    ("image", "told"),
    [
        ("lmsysorg/sglang:v0.5.23", "stock"),
        ("lmsysorg/sglang:latest", "stock"),
        ("me/own:1", "own"),
        ("registry.example.com:5000/llm/sglang-patched", "own"),
        ("lmsysorg/sglang:nightly-dev-20260115-0a1b2c3d", "nightly"),
    ],
)
@pytest.mark.parametrize(("name", "carrier"), CARRIERS.items(), ids=CARRIERS)
def test_every_carrier_tells_of_variables_that_its_image_may_not_read(
    name: str, carrier: str, image: str, told: str, variable: str
) -> None:
    """A nightly build may read what the next release will, but nothing that is gone."""
    text = carrier.replace("IMAGE", image).replace("NAME", variable)
    found = [d for d in check(text, name=f"/w/{name}").diagnostics if d.rule.name == "unread-variable"]
    if told == "nightly" and variable == "SGLANG_NO_SUCH_THING":
        assert found == []
        return
    (said,) = found
    assert said.severity == "hint"
    assert said.message.startswith("Stock SGLang") == (told != "stock"), said
    assert said.unnecessary == (told == "stock")


def test_whatever_is_said_of_variables_is_said_of_stock_sglang_beside_a_build_of_ones_own() -> None:
    """Each sentence that names what reads variables."""
    variables = (
        "SGLANG_MY_KERNEL=1",
        "SGLANG_ENABLE_SPEC_V2=1",
        "SGLANG_ENABLE_JIT_DEEPGEMM=maybe",
        "SGLANG_MAX_QUEUED_REQUESTS=32",
    )
    text = "pip install -e ./sglang/python\n" + "".join(f"export {v}\n" for v in variables) + f"{SERVER}\n"
    said = [d.message for d in check(text).diagnostics if d.rule.topic == "environment"]
    assert len(said) == len(variables)
    assert all("stock SGLang" in message or message.startswith("Stock SGLang") for message in said), said


@pytest.mark.parametrize(
    "before",
    ["pip install sglang\n", "pip install 'sglang[all]'\n", "export PYTHONPATH=/opt/tools\n", "PATH=/x/sglang/bin\n"],
)
def test_what_is_no_build_of_ones_own(before: str) -> None:
    text = f"{before}export SGLANG_MY_KERNEL=1\n{SERVER}\n"
    (found,) = [d for d in check(text).diagnostics if d.rule.name == "unread-variable"]
    assert found.message.startswith("No release")


@pytest.mark.parametrize("launcher", ["/entry.sh", "./scripts/run.sh"])
def test_a_launcher_of_ones_own_may_read_any_variable(launcher: str) -> None:
    text = f"SGLANG_MAX_QUEUED_REQUESTS=32 {launcher} {SERVER}\n"
    (found,) = [d for d in check(text).diagnostics if d.rule.name == "unread-variable"]
    assert found.message.startswith("Stock SGLang")
    assert offered(text, "unread-variable") == []


def test_fix_all() -> None:
    text = f"{PINNED}export SGLANG_ENABLE_SPEC_V2=1\nSGL_DG_CACHE_DIR=/x {SERVER}\n"
    assert repaired(text, unsafe=False) == f"{PINNED}SGLANG_DG_CACHE_DIR=/x {SERVER}\n"


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("echo $X_Y", True),
        ("echo ${X_Y}", True),
        ("echo ${X_Y:-3}", True),
        ("echo ${#X_Y}", True),
        ("printenv X_Y", True),
        ("[[ -v X_Y ]]", True),
        ("os.environ.get('X_Y')", True),
        ("os.getenv('X_Y')", True),
        ("export X_Y=1", False),
        ("export X_Y", False),
        ("X_Y=${X_Y:-1}", False),
        ("docker run -e X_Y=$X_Y i", False),
        ("echo $X_YZ $AX_Y", False),
    ],
)
def test_used_by(text: str, used: bool) -> None:
    assert used_by(text, "X_Y") is used


POD = "# spec-lsp: sglang=0.5.21\ncontainers:\n- image: lmsysorg/sglang\n  command: [sglang, serve, m]\n  env:\n"


@pytest.mark.parametrize(
    ("env", "places", "left"),
    [
        ("  - name: A\n    value: x\n  - name: SGLANG_ENABLE_SPEC_V2\n    value: \"1\"\n", ['name: SGLANG_ENABLE_SPEC_V2\n    value: "1"'], "  - name: A\n    value: x\n"),
        ("  - name: SGL_ENABLE_JIT_DEEPGEMM  # c\n    value: '0'\n", ["name: SGL_ENABLE_JIT_DEEPGEMM  # c\n    value: '0'"], "  - name: SGLANG_ENABLE_JIT_DEEPGEMM  # c\n    value: '0'\n"),
        ("    SGLANG_ENABLE_SPEC_V2: \"1\"\n    B: 1\n", ['SGLANG_ENABLE_SPEC_V2: "1"'], "    B: 1\n"),
        ("  - B=1\n  - SGLANG_ENABLE_SPEC_V2=1\n", ["SGLANG_ENABLE_SPEC_V2=1"], "  - B=1\n"),
    ],
)  # fmt: skip
def test_in_yaml(env: str, places: list[str], left: str) -> None:
    name = "/w/pod.yaml"
    found = [place for _, rule, place in said(POD + env, name=name) if rule in RULES]
    assert found == places
    changed = after(POD + env, fix_all(name, POD + env, Options(), NOTHING, unsafe=True), name)
    assert changed == POD + left


def test_what_others_merge_is_not_left_empty() -> None:
    text = (
        "# spec-lsp: sglang=0.5.21\nx-env: &env\n  SGLANG_ENABLE_SPEC_V2: '1'\nservices:\n  a:\n"
        "    command: sglang serve m\n    environment:\n      <<: *env\n      A: 1\n"
    )
    assert fix_all("/w/c.yaml", text, Options(), NOTHING, unsafe=True) == ()
    more = text.replace("services:", "  B: 1\nservices:")
    changed = after(more, fix_all("/w/c.yaml", more, Options(), NOTHING, unsafe=True), "/w/c.yaml")
    assert changed == more.replace("  SGLANG_ENABLE_SPEC_V2: '1'\n", "")
