"""Commands in YAML files, found by their structure."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.yaml.templates import read_template
from tests.syntax.support import argv, check_maps, told

FILES = {
    ".env": "TP=4\nexport NAME='a b' # c\nEMPTY=\n",
    "more.env": "SGLANG_A=1\n# SGLANG_B=2\n",
    "flags.sh": 'FLAGS="--tp 8"\n',
}


def looks_like(keys: frozenset[str]) -> bool:
    return len(keys & {"tp", "tp-size", "page-size", "mem-fraction-static", "chunked-prefill-size"}) >= 2


def read(text: str, name: str = "x.yaml") -> Document:
    document = parse(name, text, FILES.get, None, looks_like)
    check_maps(document)
    return document


def launched(text: str) -> list[str]:
    """The words of each variant of each launch."""
    return [" ".join(argv(v)) for launch in read(text).launches for v in launch.variants]


PY = "python3, -m, sglang.launch_server"
RUN = "python3 -m sglang.launch_server"
COMMANDS: list[tuple[str, list[str]]] = [
    (f"command: [{PY}]\nargs: [--tp, '2']", ["--tp 2"]),
    (f"command: [{PY}, --tp]\nargs: [2]", ["--tp 2"]),
    (f"command: [bash]\nargs: [-c, {RUN} --tp 2]", ["--tp 2"]),
    (f'command: [sh, -c]\nargs: ["exec {RUN} \\"$@\\"", x, --tp, "2"]', ["--tp 2"]),
    (f"command: [/usr/bin/tini, --, {PY}, --tp, '2']", ["--tp 2"]),
    (f"command: [env, A=1, {PY}, --tp, '2']", ["--tp 2"]),
    (f"command: [numactl, -N, '0', {PY}, --tp, '2']", ["--tp 2"]),
    ("command: [torchrun, -m, sglang.launch_server, --tp, '2']", ["--tp 2"]),
    (f"command: {RUN}\nargs: [--tp, '2']", ["--tp 2"]),
    (f"command: {RUN}\nargs: --tp 2", ["--tp 2"]),
    (f"command: |\n  {RUN} \\\n    --tp 2", ["--tp 2"]),
    (f"entrypoint: [{PY}]\ncommand: [--tp, '2']", ["--tp 2"]),
    (f"entrypoint: [bash, /x/entrypoint.sh]\ncommand: [{PY}, --tp, '2']", ["--tp 2"]),
    (f"command: [/opt/prepare]\nargs: [{PY}, --tp, '2']", ["--tp 2"]),
    (f"command: [/bin/sh, -c]\nargs: [{PY}, --tp, '2']", []),
    (f"command: [bash, prepare.sh, {PY}, --tp, '2']", ["--tp 2"]),
    ("command: [sglang, serve, m]", ["m"]),
    # What reads a command without any argument adds those that other keys tell it.
    (f"server_command: {RUN}\nflags_of_server:\n  tp_size: 2\n", ["?+"]),
    ("server_command: |\n  sglang serve\n", ["?+"]),
    (f"server_command: {RUN} --tp 2", ["--tp 2"]),
    (f"run: {RUN}", [""]),
    (f"image: my/llm:1\nargs:\n- >\n  {RUN}\n  --tp 2\n", ["--tp 2"]),
    ("image: lmsysorg/sglang:v1\nargs: [--tp, '2']", ["--tp 2 --model-path ?"]),
    ("image: lmsysorg/sglang:v1\nargs: [--model, m, --tp, '2']", ["--model m --tp 2"]),
    ("image: lmsysorg/sglang:v1\nargs: [--config, m.yaml]", ["--config m.yaml"]),
    ("image: lmsysorg/sglang-router:v1\nargs: [--tp, '2']", []),
    ("image: vllm/vllm-openai:v1 # no sglang\nargs: [--tp, '2', --page-size, '1']", []),
    ("image: my/llm:1\nname: sglang\nargs: [--tp, '2', --page-size, '1']", ["--tp 2 --page-size 1"]),
    ("image: my/llm:1\nname: sglang\nargs: [--tp, '2', --policy, random]", []),
    ("name: sglang\ncommand: [redis-server]\nargs: [--tp, '2', --page-size, '1']", []),
    (f"command: [{PY}]\nargs:\n- --tp\n-\n- --x", ["--tp --x"]),
    (f"command: [{PY}]\nargs: [--tp, {{a: b}}]", ["--tp ?"]),
    (f"command: [{PY}]\nargs: [[--tp, '2'], --x]", ["?* --x"]),
    (f"run: {RUN} --tp 2", ["--tp 2"]),
    (f"runcmd:\n- [{PY}, --tp, '2']", ["--tp 2"]),
    (f"script:\n- [cd x, T=2]\n- {RUN} --tp $T", ["--tp 2"]),
    (f"commands:\n- export T=2\n- {RUN} --tp $T\n- sglang serve $T", ["--tp 2", "2"]),
    (f"script: [{PY}, --tp, '2']", ["--tp 2"]),
    (f"startCommand: {RUN} --tp 2", ["--tp 2"]),
    (f"server_start_cmd: {RUN} --tp 2", ["--tp 2"]),
    (f"description: {RUN} --tp 2", []),
    (f"shell: python\nrun: {RUN} --tp 2", []),
    (f"shell: bash -e {{0}}\nrun: {RUN} --tp 2", ["--tp 2"]),
    (f"shell: {RUN} --tp 2", ["--tp 2"]),
    (f"title: x\nnotes: [{RUN} --tp 2]", []),
    (f"data: {{run.sh: '{RUN} --tp 2', README: '{RUN} --tp 3'}}", ["--tp 2"]),
    (f"content: |\n  #!/bin/sh\n  {RUN} --tp 2", ["--tp 2"]),
    (f"run: source flags.sh && {RUN} $FLAGS", ["--tp 8"]),
    (f"run: |\n  # {RUN} --tp 1\n  echo '{RUN} --tp 3'", []),
    (f"command: {RUN} --tp ${{gpus.count}} ${{more.args}} --x ${{oc.env:X,${{a.b}}}}", ["--tp ?+ ?+ --x ?+"]),
    (f"server_cmd: '{RUN} --tp {{tp}} --x=a{{b}}'", ["--tp ?+ --x=a? ?+"]),
    (f"command: '{RUN} --tp {{tp}}'", ["--tp ?+ ?+"]),
    (f"run: |\n  {RUN} \\\n    --tp {{tp}}", ["--tp ?+ ?+"]),
    (f"run: |\n  {RUN} --tp {{tp}}\n  echo", ["--tp {tp}"]),
    (f"run: {RUN} --x '{{\"a\":1}}' --y {{}} --z %{{a}}", ['--x {"a":1} --y {} --z %{a}']),
    ("livenessProbe: {exec: {command: [pgrep, -f, sglang.launch_server]}}", []),
    ("command: [python3, -m, sglang_router.launch_router, --tp, '2']", []),
    ("command: [python3, -m, sglang.bench_serving, --backend, sglang]", []),
    ("command: [python3, -m, sgl_jax.launch_server, --tp, '2'] # sglang", []),
    ("command: [python3, -m, dynamo.sglang, --tp, '2']", ["--tp 2"]),
    ("image: sglang:0.5.6-diffusion-cuda129\ncommand: [sglang, serve, --model-path, m, --tp, '2']", []),
    ("command: [python3, -m, dynamo.sglang.worker, --tp, '2']", ["--tp 2"]),
    ("command: [python3, -m, dynamo.sglang.decode_worker, --tp, '2']", ["--tp 2"]),
    ("command: [python3, -m, dynamo.vllm, --tp, '2'] # sglang", []),
    ("", []),
    ("sglang", []),
    ("- sglang\n- [sglang, serve]", []),
]


@pytest.mark.parametrize(("text", "expected"), COMMANDS, ids=range(len(COMMANDS)))
def test_commands(text: str, expected: list[str]) -> None:
    inside = "spec:\n  containers:\n  -\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    assert launched("# sglang\n" + text + "\n") == expected
    assert launched("# sglang\n" + inside) == expected


COMPOSE: list[tuple[str, list[str] | None]] = [
    (f"command: {RUN} --tp ${{TP}} --name $NAME --x ${{X}} --y ${{X:-1}} --z ${{X-}}", ["--tp 4 --name a b --x ?+ --y 1 --z"]),
    (f"command: {RUN} --a ${{TP:+x}} --c ${{X:?needed}} --d ${{X:-${{TP}}}}", ["--a x --c ?+ --d 4"]),
    (f"command: {RUN} --a ${{X:+--b $X}} --c", ["--a --b ?+ --c", "--a --c"]),
    (f"command: {RUN} ${{X+--b}} ${{X:-d}} ${{X-e}} $X", ["--b ?+ ?+ ?+", "d e"]),
    (f"command: {RUN} ${{X:+--b ${{TP:+t$TP}} ${{Y:-y}}}}", ["--b t4 y", ""]),
    (f"command: {RUN} ${{X:+--x}} ${{Y+--y}}", ["--x --y", "--x", "--y", ""]),
    (f"command: {RUN} ${{EMPTY:+--x}} ${{EMPTY+--y}} ${{EMPTY:-d}} ${{EMPTY-e}} $EMPTY", ["--y d"]),
    (f"command: {RUN} $${{X:+--b}}", ["${X:+--b}"]),
    (f"command: {RUN} --j '${{X:+{{\"a\":{{\"b\":1}}}}}}'", ['--j {"a":{"b":1}}', "--j "]),
    (f"command: {RUN} " + " ".join(f"${{X{i}:+--x{i}}}" for i in range(9)), None),
    (f"command: bash -c '{RUN} ${{X:+--b $X}} $${{Y:+--c}}'", ["--b ?+", "--b ?+ --c", "", "--c"]),
    (f"command: {RUN} --a 'x  y' \"b c\" d\\ e $$HOME", ["--a x  y b c d e $HOME"]),
    (f"command: bash -c '{RUN} --tp $$TP'\nenvironment: [TP=2]", ["--tp 2"]),
    (f"command: [sh, -c, '{RUN} --tp $${{T:-3}}']", ["--tp 3"]),
    (f"entrypoint: {RUN}\ncommand: >-\n  --tp 2\n  --x", ["--tp 2 --x"]),
    (f"entrypoint: ./entrypoint.sh\ncommand: {RUN} --tp 2", ["--tp 2"]),
    ("image: lmsysorg/sglang\ncommand: --tp 2", ["--tp 2"]),
    ("image: lmsysorg/sglang\ncommand: bash", []),
    (f"command: {RUN}\nenv_file: more.env", [""]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMPOSE, ids=range(len(COMPOSE)))
def test_compose(text: str, expected: list[str] | None) -> None:
    inside = "services:\n  s:\n" + "".join(f"    {line}\n" for line in text.split("\n"))
    found = launched("# sglang\n" + inside)
    if expected is None:
        assert {word for way in found for word in way.split()} == {f"--x{i}" for i in range(9)}
    else:
        assert found == expected


BASES = {
    "base.yml": (
        "services:\n  common:\n    image: lmsysorg/sglang:v0.5.21\n    environment: {SGLANG_A: '1', SGLANG_B: '1'}\n"
        f"  run:\n    extends: common\n    command: {RUN} --tp 2\n  run3:\n    extends: {{file: more.yml, service: s}}\n  run2:\n    command: [{PY}, --tp, '2']\n"
    ),
    "more.yml": f"services: {{s: {{image: 'sglang:3', command: '{RUN} --tp 3', extends: {{file: base.yml, service: run3}}}}}}\n",
}
EXTENDS = [
    ("{file: base.yml, service: common}", f"command: {RUN} --tp 4", ["--tp 4"], ["lmsysorg/sglang:v0.5.21"]),
    ("{file: base.yml, service: common}", f"image: x\n    command: {RUN} --tp 4", ["--tp 4"], ["x"]),
    ("{file: base.yml, service: run2}", "image: sglang:1", ["--tp 2"], ["sglang:1"]),
    ("{file: base.yml, service: run}", "", ["--tp 2"], ["lmsysorg/sglang:v0.5.21"]),
    ("{file: base.yml, service: run3}", "", ["--tp 3"], ["sglang:3"]),
    ("{file: base.yml, service: other}", f"command: {RUN} --tp 4", ["--tp 4"], []),
    ("{file: other.yml, service: run}", "", [], []),
]


@pytest.mark.parametrize(("extends", "more", "expected", "images"), EXTENDS, ids=range(len(EXTENDS)))
def test_services_that_extend_those_of_other_files(
    extends: str, more: str, expected: list[str], images: list[str]
) -> None:
    text = f"# sglang\nservices:\n  s:\n    extends: {extends}\n    {more}\n"
    document = parse("compose.yml", text, BASES.get)
    check_maps(document)
    assert [" ".join(argv(v)) for launch in document.launches for v in launch.variants] == expected
    assert [c.text for launch in document.launches for c in launch.clues] == images
    assert all(launch.place.document == "compose.yml" for launch in document.launches)
    assert document.depends_on == ({"base.yml", "more.yml"} if "base" in extends else set())


def test_a_file_that_extends_itself_by_name() -> None:
    text = f"services:\n  a:\n    command: {RUN} --tp 2\n  b:\n    image: sglang\n    extends: {{file: c.yml, service: a}}\n"
    document = parse("c.yml", text, {"c.yml": text}.get)
    assert [" ".join(argv(v)) for launch in document.launches for v in launch.variants] == ["--tp 2"]
    assert document.launches[0].place.start == text.index("python3")


def test_variables_of_compose_come_from_its_files() -> None:
    document = read(f"services:\n  s:\n    command: {RUN} --tp $TP\n    env_file: [{{path: more.env}}]\n")
    (launch,) = document.launches
    (variant,) = launch.variants
    assert {n: told(w) for n, w in variant.env.items()} == {"SGLANG_A": "1"}
    tp = variant.words[1].fragments[0]
    assert (tp.place.document, FILES[".env"][tp.place.start : tp.place.end]) == (".env", "4")
    assert document.text[variant.words[1].place.start : variant.words[1].place.end] == "$TP"
    assert document.depends_on == {".env", "more.env"}


BEGUN = [
    ("more: [{name: a, args: [--tp, '2']}, {args: [--model-path, m]}]", ["--tp 2 --model-path ?", "--model-path m"]),
    ("more: {deep: {args: [--model-path, m]}}", ["--model-path m"]),
    ("more: [{image: other, args: [--tp, '2']}]", [""]),
    ("more: [{command: [x], args: [--tp, '2']}]", [""]),
    ("lifecycle: {preStop: {exec: {command: [sleep, '1']}}}", [""]),
    ("args: [--model-path, m]\nmore: [{args: [--tp, '2']}]", ["--model-path m"]),
    ("more: [{args: [warm, up]}]", [""]),
]


@pytest.mark.parametrize(("text", "expected"), BEGUN, ids=range(len(BEGUN)))
def test_commands_that_arguments_further_in_go_on_with(text: str, expected: list[str]) -> None:
    assert launched(f"image: lmsysorg/sglang\ncommand: [{PY}]\n{text}\n") == expected


MAPS = [
    ("image: lmsysorg/sglang:v1\nconfig: {tp: 2, page-size: 1}", ["--tp 2 --page-size 1"]),
    ("type: SGLang\nconfig: {tp-size: 2, page-size: 1}", ["--tp-size 2 --page-size 1"]),
    ("type: SGLang\nconfig: {page-size: 1}", ["--page-size 1"]),
    ("type: SGLang\nconfig: {mem-fraction-static: 1}", ["--mem-fraction-static 1"]),
    ("type: SGLang\nconfig: {page-size: 1, tp: '', x: a}", ["--page-size 1 --tp --x a"]),
    ("type: SGLang\nconfig: {host: a, replicas: 2}", []),
    ("type: vLLM\nconfig: {tp-size: 2, page-size: 1}", []),
    ("image: lmsysorg/sglang-router\nconfig: {page-size: 1, tp-size: 2}", []),
    ("image: lmsysorg/sglang:v1\ninner: {image: other, config: {page-size: 1, tp-size: 2}}", []),
    ("config: {tp-size: 2, page-size: 1}", []),
    (
        "server_cls: x.SGLangServer\nengine_kwargs: {tp_size: 2, page_size: 1, a_b: true}",
        ["--tp-size 2 --page-size 1 --a-b"],
    ),
    (
        "module: sglang\noptions: {--tp-size: 2, --page-size: 1, --a-b: true, --c: [1, 2], --d: false}",
        ["--tp-size 2 --page-size 1 --a-b --c 1 2"],
    ),
    (
        "module: sglang\nargs: {--tp-size: 2, --page-size: 1, about: x, --other: 1}",
        ["--tp-size 2 --page-size 1 --other 1"],
    ),
    ("module: sglang\nargs: {--random-input-len: 2, --max-concurrency: 1}", []),
    ("engine_kwargs: {tp_size: 2, page_size: 1}", []),
    ("server_cls: x.Other\nengine_kwargs: {tp_size: 2, page_size: 1}", []),
]


@pytest.mark.parametrize(("text", "expected"), MAPS, ids=range(len(MAPS)))
def test_maps_of_flags_of_what_says_whose_they_are(text: str, expected: list[str]) -> None:
    assert (
        launched("about: sglang\nbackend:\n  workers:\n  -\n" + "".join(f"    {t}\n" for t in text.split("\n")))
        == expected
    )


ENVIRONMENTS = [
    ("env: [{name: A, value: '1'}, {name: B, valueFrom: {x: y}}, {value: 3}]", {"A": "1", "B": "?"}),
    ("env: [A=1, B, 'C=x y']", {"A": "1", "B": "?", "C": "x y"}),
    ("env: {A: 1, B: , C: {value: 2, description: x}}", {"A": "1", "B": "?", "C": "2"}),
    ("environment: {A: 1}\nenvs: {A: 0, B: 2}", {"A": "1", "B": "2"}),
    ("runtime_env: {env_vars: {A: 1}}", {"A": "1"}),
    ("envFrom: [{secretRef: {name: x}}]", {}),
    ("env: 3", {}),
]


@pytest.mark.parametrize(("text", "expected"), ENVIRONMENTS, ids=range(len(ENVIRONMENTS)))
def test_environments(text: str, expected: dict[str, str]) -> None:
    (launch,) = read(f"run: sglang serve m\n{text}\n").launches
    assert {n: told(w) for n, w in launch.variants[0].env.items()} == expected


DATA = "---\nkind: ConfigMap\nmetadata: {name: c}\ndata: {TP: '2', SGLANG_A: x y}\n"
FROM_DATA = [
    ("envFrom: [{configMapRef: {name: c}}]", {"TP": "2", "SGLANG_A": "x y"}, "2"),
    ("envFrom: [{configMapRef: {name: c}, prefix: B_}]", {"B_TP": "2", "B_SGLANG_A": "x y"}, "?"),
    ("envFrom: [{configMapRef: {name: d}}, {secretRef: {name: c}}]", {}, "?"),
    ("envFrom: [{configMapRef: {name: c}}]\nenv: [{name: TP, value: '4'}]", {"TP": "4", "SGLANG_A": "x y"}, "4"),
    ("env: [{name: TP, valueFrom: {configMapKeyRef: {name: c, key: TP}}}]", {"TP": "2"}, "2"),
    ("env: [{name: TP, valueFrom: {configMapKeyRef: {name: c, key: x}}}]", {"TP": "?"}, "?"),
    ("env: [{name: TP, valueFrom: {secretKeyRef: {name: c, key: TP}}}]", {"TP": "?"}, "?"),
]


@pytest.mark.parametrize(("text", "env", "tp"), FROM_DATA, ids=range(len(FROM_DATA)))
def test_variables_from_config_maps(text: str, env: dict[str, str], tp: str) -> None:
    for body in (f"command: [{PY}, --tp, $(TP)]\n{text}\n{DATA}", f"{DATA}---\ncommand: [{PY}, --tp, $(TP)]\n{text}\n"):
        (launch,) = read(body).launches
        assert {n: told(w) for n, w in launch.variants[0].env.items()} == env
        assert [told(w) for w in launch.variants[0].words] == ["--tp", tp]


CLUES = [
    ("image: {repository: lmsysorg/sglang, tag: v0.5.9}", ["image: lmsysorg/sglang:v0.5.9"]),
    ("image: {registry: a.b, name: sglang}", ["image: a.b/sglang"]),
    ("resources: {limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 8}}", ["platform: nvidia", "gpu-count: 8"]),
    ("resources: {requests: {amd.com/gpu: '2'}}", ["platform: amd.com/gpu", "gpu-count: 2"]),
    ("resources: {accelerators: 'H100:8'}", ["gpu: H100:8"]),
    ("resources: {accelerators: {H200: 8}}", ["gpu: H200"]),
    ("resources: {accelerators: {H200: 8, A100: 8}}", []),
    ("resources: {gpu: {name: H100, count: 2}}", ["gpu: H100"]),
    ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S, disk: ssd}", ["gpu: NVIDIA-L40S"]),
    ("nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}", ["gpu: p5.48xlarge"]),
    ("nodeSelector: {karpenter.k8s.aws/instance-family: p5}", ["gpu: family=p5"]),
    ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}", ["gpu: nvidia-h100-80gb"]),
    ("nodeSelector: {gpu.nvidia.com/class: H100_NVLINK_80GB}", ["gpu: H100_NVLINK_80GB"]),
    ("resources: {instance_type: g6e.12xlarge}", ["gpu: g6e.12xlarge"]),
    ("gpu: true", []),
    ("sglang_image: lmsysorg/sglang:v0.5.9", ["image: lmsysorg/sglang:v0.5.9"]),
    ("router_image: lmsysorg/sglang-router:v0.3.1", []),
    ("initImage: busybox", []),
]


@pytest.mark.parametrize(("text", "expected"), CLUES, ids=range(len(CLUES)))
def test_clues(text: str, expected: list[str]) -> None:
    (launch,) = read(f"run: sglang serve m\n{text}\n").launches
    assert [f"{c.kind}: {c.text}" for c in launch.clues] == expected


@pytest.mark.parametrize(
    ("dockerfile", "target", "expected"),
    [
        ("FROM lmsysorg/sglang:v0.5.9", "", ["image: lmsysorg/sglang:v0.5.9"]),
        ("FROM python:3.12\nRUN pip install sglang==0.5.9", "", ["pin: sglang==0.5.9"]),
        ("FROM lmsysorg/sglang:v0.5.9\nRUN pip install \\\\\n  sglang==0.5.10", "", ["pin: sglang==0.5.10"]),
        ("ARG V=v0.5.9\nFROM lmsysorg/sglang:$${V}", "", ["image: lmsysorg/sglang:v0.5.9"]),
        ("FROM lmsysorg/sglang:${TAG:-v0.5.9}", "", ["image: lmsysorg/sglang:v0.5.9"]),
        ("FROM lmsysorg/sglang:${TAG}", "", []),
        ("FROM lmsysorg/sglang:v0.5.9 AS a\nFROM python:3.12", "", ["image: python:3.12"]),
        ("FROM lmsysorg/sglang:v0.5.9 AS a\nFROM python:3.12", "a", ["image: lmsysorg/sglang:v0.5.9"]),
    ],
)
def test_a_dockerfile_within_compose_tells_the_release(dockerfile: str, target: str, expected: list[str]) -> None:
    lines = "".join(f"        {line}\n" for line in dockerfile.replace("\\\\", "\\").split("\n"))
    chosen = f"      target: {target}\n" if target else ""
    text = f"services:\n  s:\n    build:\n{chosen}      dockerfile_inline: |\n{lines}    command: sglang serve m\n"
    (launch,) = read(text, "/w/compose.yaml").launches
    assert [f"{c.kind}: {c.text}" for c in launch.clues] == expected
    written = [text[c.place.start : c.place.end] for c in launch.clues]
    assert all("$" in text or w in c.text for w, c in zip(written, launch.clues, strict=True))


def test_what_is_further_in_comes_first() -> None:
    text = "image: sglang:1\nenv: {A: 1, B: 1}\ninner:\n  env: {A: 2}\n  image: sglang:2\n  run: sglang serve m\nrun: sglang serve n\n"
    inner, outer = read(text).launches
    assert {n: told(w) for n, w in inner.variants[0].env.items()} == {"A": "2", "B": "1"}
    assert [c.text for c in inner.clues] == ["sglang:2"]
    assert [c.text for c in outer.clues] == ["sglang:1"]


def test_roles_and_groups() -> None:
    text = (
        "roles:\n- {name: prefill, run: sglang serve a}\n- {name: decode, run: sglang serve b}\n"
        "workerTemplate: {run: sglang serve c}\n---\nrun: sglang serve d\n"
    )
    launches = read(text).launches
    assert [launch.role for launch in launches] == ["prefill", "decode", "worker", ""]
    assert len({launch.group for launch in launches}) == 2


# --- templates ---------------------------------------------------------------------------------------------------------


def pod(*lines: str) -> str:
    return f"image: sglang\ncommand: [{PY}]\nargs:\n" + "\n".join(lines) + "\n"


TEMPLATES: list[tuple[str, list[str]]] = [
    (pod("- --tp", "- {{ .Values.tp }}", '- "--x={{ .x }}"'), ["--tp ? --x=?"]),
    (pod("- --a", "{{- toYaml .Values.args | nindent 2 }}", "- --b"), ["--a ?* --b"]),
    (pod("- --a", "{{/* note */}}", "- --b"), ["--a --b"]),
    (pod("{{- if .x }}", "- --a", "{{- end }}", "- --b"), ["--a --b", "--b"]),
    (pod("{{- if .x }}", "- --a", "{{- else }}", "- --b", "{{- end }}"), ["--a", "--b"]),
    (pod("{{- if not .x }}", "- --a", "{{- else if .y }}", "- --b", "{{- end }}"), ["--b", "", "--a"]),
    (pod('{{- if eq .r "p" }}', "- --a", "{{- end }}", '{{- if eq .r "q" }}', "- --b", "{{- end }}"), ["--a", "--b", ""]),
    (pod("{{- range .l }}", "- {{ . }}", "{{- end }}"), ["?*"]),
    (pod("{{- range $k, $v := .l }}", "- --{{ $k }}={{ $v }}", "{{- end }}"), ["--?=?"]),
    (pod("{{- with .l }}", "- --a={{ . }}", "{{- end }}"), ["--a=?", ""]),
    (pod("- --a{{ if .x }}=1{{ end }}"), ["--a=1", "--a"]),
    (pod("- {{ if .x }}--a{{ end }}", "- --b"), ["--a --b", "--b"]),
    (pod("- {{- if .x }} --a{{ end }}", "- --b"), ["--a --b", "--b"]),
    (pod('- "{{ if .x }}8{{ else }}4{{ end }}"'), ["8", "4"]),
    (pod("- --a={{ if .x -}} 8 {{- else -}} 4 {{- end }}"), ["--a=8", "--a=4"]),
    (pod("- '{{ if .x }}--a{{ if .y }}=1{{ end }}{{ end }}'", "- --b"), ["--a=1 --b", "--a --b", " --b"]),
    (pod("- {% if x %}--a{% elif y == 'z' %}--b{% else %}--c{% endif %}"), ["--a", "--b", "--c"]),
    (pod("- --a{{ range .l }}={{ . }}{{ end }}"), ["--a?"]),
    (pod("- --a{{ if .x }}{{ range .l }}={{ . }}{{ end }}{{ end }}"), ["--a?"]),
    (pod("- --a{{/* why */}}=1", "- {{/* why */}}--b"), ["--a=1 --b"]),
    (f"command: [{PY}, {{{{ if .x }}}}'--a',{{{{ end }}}} \"--b\"]\n", ["--a --b", "--b"]),
    (f"command: [{PY},\n  {{{{- if .x }}}}\"--a\",{{{{ end }}}}\n  '--b']\n", ["--a --b", "--b"]),
    ("{{ if .x }}run: sglang serve m{{ end }}\nname: x\n", ["m"]),
    (pod("- --tp", "- {{ .Values.tp | default 8 }}"), ["--tp 8"]),
    (pod("- --tp={{ default 8 .Values.tp }}", "- --x={{ .Values.x | quote }}"), ["--tp=8 --x=?"]),
    (pod("- {{ .Values.x | default \"a b\" | quote }}", "- --x={{ `y` }}"), ["a b --x=y"]),
    (pod("- {{ x | default('a') }}", "- {{ y|default(3, true)|int }}", "- {{ z | default(w) }}"), ["a 3 ?"]),
    (pod("- {{ .a | default .b | default 3 }}", "- {{ include \"x\" . | default 3 }}"), ["3 ?"]),
    (pod("- {{ if .tp }}--tp={{ .tp | default 8 }}{{ end }}", "- {{ .tp | default 8 }}"), ["--tp=? ?", "8"]),
    (pod('- {{ if eq .r "p" }}--role={{ .r }}{{ end }}', "- {{ .r | default 8 }}"), ["--role=p p", "?"]),
    (pod("- {{ with .tp }}--tp={{ . }}{{ end }}", "- {{ .tp | default 8 }}"), ["--tp=? ?", "8"]),
    ("run: sglang serve {{ .m | default \"a b\" | quote }} --x '{{ .y | default 1 }}'\n", ["a b --x 1"]),
    (pod("- --a", "{% if x == 'y' %}", "- --b", "{% elif z %}", "- --c", "{% endif %}"), ["--a --b", "--a --c", "--a"]),
    (pod("- --a", "{{- if .x", "- --b"), ["--a --b"]),
    ("{{- define \"x\" }}\nrun: sglang serve m\n{{- end }}\n", ["m"]),
    ("{{ .x }}:\n  run: sglang serve {{ .m }} --tp={{ .t }}\n", ["?+ --tp=?"]),
    ("run: |\n  sglang serve m \\\n  {{- if .x }}\n    --a \\\n  {{- end }}\n    --b\n", ["m --a --b", "m --b"]),
    ("run: |\n  sglang serve m\n  {{- if .x }} --a{{ end }}\n  {{- with .y }} --b {{ . }}{{ end }} --c\n  ls\n",
     ["m --a --b ?+ --c", "m --a --c", "m --b ?+ --c", "m --c"]),
    ("run: |\n  sglang serve m --a\n  {{- range .l }} --{{ . }}{{ end }} --b\n", ["m --a? --b"]),
    ("run: |\n  sglang serve m {{ .y -}}\n  --a {{/* why */ -}}\n  --b\n", ["m ?--a --b"]),
    ("run: >\n  sglang serve m\n  {{- if .x }}\n  --a\n  {{- end }}\n  --b\n", ["m --a --b", "m --b"]),
    ("run: sglang serve m {{- if .x }} --a {{- end }} --b\n", ["m --a --b", "m --b"]),
    ("run: |\n  T={{ if .x }}8{{ else }}4{{ end }}\n  sglang serve m --tp $T\n", ["m --tp 8", "m --tp 4"]),
    ("run: |\n  sglang serve m {{ if .x -}}\n    --a\n  {{- end }}\n", ["m ?+"]),
    (pod("- --a", "{{- /*", "- --no", "*/ -}}", "- --b"), ["--a --b"]),
    (pod("- --a", '{{- include "x" (dict', '   "y" 1) }}', "- --b={{ dict", ' "z" }}'), ["--a ?* --b=?"]),
    ("run: |\n  printf '{%s' x {{ .y }}\n  A=(1 2); echo ${#A[@]} '#}'\n  sglang serve m\n", ["m"]),
    ("env: {T: 2}\njobs: {a: {run: 'sglang serve ${{ env.T }} ${{ inputs.x }}'}}\n", ["2 ?+"]),
    ("strategy: {matrix: {t: [1, 2]}}\nrun: sglang serve ${{ matrix.t }}\n", ["1", "2"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEMPLATES, ids=range(len(TEMPLATES)))
def test_templates(text: str, expected: list[str]) -> None:
    found = launched("# sglang\n" + text)
    assert sorted(found) == sorted(expected)
    assert read("# sglang\n" + text).problems == ()


CHART = "tp: 8\nmodel: {name: org/m, path: ''}\nratio: 0.80\non: true\noff: false\nempty:\nlist: [a]\nrole: decode\n"
VALUES = [
    ("{{ .Values.tp }} {{ .Values.tp | default 4 }} {{ $.Values.tp }}", ["8 8 8"]),
    ("{{ .Values.model.name }} {{ .Values.model.path | default .Values.model.name }}", ["org/m org/m"]),
    ("{{ .Values.ratio }} {{ .Values.on }} {{ .Values.off | default 3 }} {{ .Values.off }}", ["0.8 true 3 false"]),
    ("x{{ .Values.empty }} x{{ .Values.list }} x{{ .Values.other }} x{{ .Release.tp }}", ["x? x? x? x?"]),
    ("x{{ .Values.other | default 3 }}", ["x3"]),
    ("{{ if .Values.tp }}--tp {{ .Values.tp }}{{ end }}", ["--tp 8", ""]),
    ("{{ if .Values.off }}--x x{{ .Values.off }}{{ end }}", ["--x x?", ""]),
    ("{{ with .Values.model }}{{ .name }}{{ end }}", ["org/m", ""]),
    (
        '{{ if eq .Values.role "decode" }}--d {{ .Values.role }}{{ else }}--e x{{ .Values.role }}{{ end }}',
        ["--d decode", "--e x?"],
    ),
    ('{{ if ne .Values.role "prefill" }}--d x{{ .Values.role }}{{ end }} {{ .Values.role }}', ["--d x? ?+", "prefill"]),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=range(len(VALUES)))
def test_values_of_charts(text: str, expected: list[str]) -> None:
    body = f"# sglang\nrun: sglang serve --x {text}\n"
    for name, path in (("c/templates/a.yaml", "../values.yaml"), ("/c/templates/b/a.yaml", "../../values.yaml")):
        document = parse(name, body, {path: CHART}.get, None, looks_like)
        check_maps(document)
        found = [" ".join(argv(v)[1:]) for launch in document.launches for v in launch.variants]
        assert sorted(found) == sorted(expected)
        assert document.depends_on == {path}
    without = parse("c/a.yaml", body, {"../values.yaml": CHART, "values.yaml": CHART}.get, None, looks_like)
    assert without.depends_on == frozenset()


LISTS = [
    (("{{- range .Values.args }}", "- {{ . }}", "{{- end }}"), ["--a --tp 8 --z"]),
    (("{{- range $i, $x := $.Values.args }}", "- {{ $x | quote }}", "{{- end }}"), ["--a --tp 8 --z"]),
    (("{{- range .Values.names }}", "- --n", "- x-{{ . }}", "{{- end }}"), ["--a --n x-p --n x-q --z"]),
    (("{{- toYaml .Values.args | nindent 0 }}",), ["--a --tp 8 --z"]),
    (("{{- with .Values.args }}", "{{- toYaml . | nindent 2 }}", "{{- end }}"), ["--a --tp 8 --z"]),
    (("{{- toYaml .Values.args }}", "{{- toYaml .Values.other }}"), ["--a --tp 8 ?* --z"]),
    (("{{- range .Values.none }}", "- {{ . }}", "{{- end }}"), ["--a ?* --z"]),
    (("{{- range .Values.maps }}", "- {{ .a }}", "{{- end }}"), ["--a ?* --z"]),
    (("{{- toYaml .Values.none }}",), ["--a ?* --z"]),
    (("{{- toYaml .Values.args | trim | nindent 0 }}",), ["--a ?* --z"]),
    (
        ("{{- with .Values.m }}", "{{- range .l }}", "- {{ .tp }}", "{{- end }}", "{{- end }}"),
        ["--a ?* --z", "--a --z"],
    ),
    (
        ("{{- range $k, $v := .Values.flags }}", "- --{{ $k }}={{ $v }}", "{{- end }}"),
        ["--a --b=x --on=true --tp=8 --z"],
    ),
    (
        ("{{- range $k, $v := .Values.flags }}", "- --{{ $k }}", "- {{ $v | quote }}", "{{- end }}"),
        ["--a --b x --on true --tp 8 --z"],
    ),
    (
        ("{{- range $k, $v := .Values.flags }}", "{{- if $v }}", "- --{{ $k }}", "{{- end }}", "{{- end }}"),
        ["--a --? --z", "--a --z"],
    ),
    (("{{- range .Values.flags }}", "- x{{ . }}", "{{- end }}"), ["--a xx xtrue x8 --z"]),
    (("{{- range $k, $v := .Values.m }}", "- --{{ $k }}={{ $v }}", "{{- end }}"), ["--a --?=? --z"]),
]


@pytest.mark.parametrize(("lines", "expected"), LISTS, ids=range(len(LISTS)))
def test_lists_of_charts(lines: tuple[str, ...], expected: list[str]) -> None:
    values = "args: [--tp, 8]\nnames: [p, q]\nnone: []\nmaps: [{a: 1}]\nm: {tp: 3, l: [{tp: 4}]}\nflags: {tp: 8, b: x, on: true}\ntp: 5\n"
    document = parse("c/templates/a.yaml", pod("- --a", *lines, "- --z"), {"../values.yaml": values}.get)
    check_maps(document)
    assert sorted(" ".join(argv(v)) for launch in document.launches for v in launch.variants) == sorted(expected)
    without = parse("c/templates/a.yaml", pod("- --a", *lines, "- --z"))
    assert all("?" in " ".join(argv(v)) or v.choices for launch in without.launches for v in launch.variants)


def test_a_value_of_a_chart_stands_in_its_file() -> None:
    text = "# sglang\nimage: {repository: lmsysorg/sglang, tag: '{{ .Values.tag }}'}\nrun: sglang serve --tp {{ .Values.tp }}\n"
    document = parse("c/templates/a.yaml", text, {"../values.yaml": "tag: v0.5.21\ntp: 8\n"}.get)
    (launch,) = document.launches
    assert [c.text for c in launch.clues] == ["lmsysorg/sglang:v0.5.21"]
    fragment = launch.variants[0].words[1].fragments[0]
    assert (fragment.text, fragment.place) == ("8", ("../values.yaml", 17, 18))
    word = launch.variants[0].words[1].place
    assert text[word.start : word.end] == "{{ .Values.tp }}"


def test_a_masked_text_has_the_length_of_the_text() -> None:
    text = "a: {{ b }}\n{{- if x }}\n- c {{ d\n{% end %}\n{# e\nf #}\n${{ g }} {{ if h }}i{{ else }}j{{ end }}\n"
    template = read_template(text)
    assert len(template.masked) == len(text)
    assert "{{" not in template.masked
    assert template.holes == sorted(template.holes, key=lambda h: h.start)
    assert all(a.end <= b.start for a, b in zip(template.holes, template.holes[1:], strict=False))


def test_any_two_answers_come_together_in_a_way() -> None:
    for count in (5, 9, 15):
        text = pod(*(f"- {{{{ if .v{i} }}}}--f{i}{{{{ end }}}}" for i in range(count)))
        (launch,) = read("# sglang\n" + text).launches
        assert len(launch.variants) <= 16
        given = [frozenset(argv(v)) for v in launch.variants]
        for i in range(count):
            for j in range(i):
                assert len({(f"--f{i}" in flags, f"--f{j}" in flags) for flags in given}) == 4


def test_many_conditions_stay_few_ways() -> None:
    text = pod(*(line for i in range(40) for line in (f"{{{{- if .v{i} }}}}", f"- --f{i}", "{{- end }}")))
    (launch,) = read("# sglang\n" + text).launches
    assert 1 < len(launch.variants) <= 16


# --- half typed --------------------------------------------------------------------------------------------------------

HALF = [
    (pod("- --tp", '- "8', "- --x", '- "y"'), ["--tp 8 --x y"]),
    (pod("- --tp", "- '8", "- --x"), ["--tp 8 --x"]),
    (pod("- --tp", "  - 8", "- --x: ", "- --y"), None),
    (pod("- --tp", "-"), ["--tp"]),
    (pod("- --tp") + "resources: {limits: {\n---\nrun: sglang serve m\n", ["--tp", "m"]),
    (pod("- --tp") + "  key without colon\n---\nrun: sglang serve m\n", None),
    ("command: [sglang, serve, m, --tp\nenv:\n- name: A\n", ["m --tp"]),
    ("command: [sglang, serve, m,\n  --tp,\n  \"2\"  # c\nenv: []\n", ["m --tp 2"]),
    ("a:\n- command: [sglang, serve, m, --a\n  env: {A: [1, 2\n- command: [sglang, serve, n]\n", ["m --a", "n"]),
    ("{command: [sglang, serve, m, --a\n", ["m --a"]),
    ("command: [sglang, serve, \"m, --a]\nargs: []\n", None),
    ("a: [sglang\n---\nrun: sglang serve m\n", ["m"]),
    ("run: \"sglang serve m --tp 2\n", ["m --tp 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), HALF, ids=range(len(HALF)))
def test_half_typed(text: str, expected: list[str] | None) -> None:
    found = launched(text)
    assert found if expected is None else found == expected


# --- recipes -----------------------------------------------------------------------------------------------------------


def recipe(*flags: str, more: str = "") -> str:
    return "backend:\n  sglang_config:\n    aggregated:\n" + "".join(f"      {f}\n" for f in flags) + more


RECIPES = [
    (recipe("a-b: 1", "c_d: x", "e: true", "f: false", "g:", "h: [1, 2]"), ["--a-b 1 --c-d x --e --h 1 2"]),
    (recipe("a: 0.80", "b: 1_000", "c: '0.80'", "d: 0x10", "e: 1e-3"), ["--a 0.8 --b 1000 --c 0.80 --d 16 --e 1e-3"]),
    (recipe("a: yes", "b: off", "c: 'yes'", "d: {x: 1}"), ["--a --c yes --d ?"]),
    (recipe("a: '{b}-x'", "c: '{\"d\": 1}'"), ['--a ?-x --c {"d": 1}']),
]


@pytest.mark.parametrize(("text", "expected"), RECIPES, ids=range(len(RECIPES)))
def test_recipes(text: str, expected: list[str]) -> None:
    added = "--model-path ? --host ? --port ? --dist-init-addr ? --node-rank ? --nnodes ? "
    assert launched(text) == [added + words for words in expected]


EVENTS: list[tuple[str, dict[str, bool]]] = [
    ("backend: {kv_events_config: true, ROLES}", {"prefill": True, "decode": True, "aggregated": False}),
    ("backend: {kv_events_config: {prefill: {topic: t}, aggregated: true}, ROLES}", {"prefill": True, "decode": False, "aggregated": True}),
    ("backend: {kv_events_config: false, ROLES}", {"prefill": False, "decode": False, "aggregated": False}),
    ("backend: {ROLES}", {"prefill": False, "decode": False, "aggregated": False}),
    (
        "engine: sglang\nroles: {prefill: {kv_events: {topic: t}, args: {a: 1}}, decode: {kv_events: false, args: {a: 1}}, "
        "agg: {kv_events: true, args: {a: 1}}}",
        {"prefill": True, "decode": False, "aggregated": True},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EVENTS, ids=range(len(EVENTS)))
def test_roles_whose_events_the_tool_publishes(text: str, expected: dict[str, bool]) -> None:
    roles = "sglang_config: {prefill: {a: 1}, decode: {a: 1}, aggregated: {a: 1}}"
    launches = read("# sglang\n" + text.replace("ROLES", roles) + "\n").launches
    assert {one.role: "--kv-events-config" in argv(one.variants[0]) for one in launches} == expected


@pytest.mark.parametrize("frontend", ["sglang", "sidecar", "sgl-router"])
def test_frontends_that_need_servers_of_sglangs_own(frontend: str) -> None:
    text = f"# sglang\nfrontend: {{type: {frontend}}}\n" + recipe("a: 1")
    assert [one.program for one in read(text).launches] == ["launch_server"]
    assert [one.program for one in read(text.replace(frontend + "}", "dynamo}")).launches] == ["dynamo"]


def test_a_job_for_each_override() -> None:
    text = (
        "base:\n  backend: {sglang_config: {decode: {a: 1, b: 2, port: 3, host: h, model-path: m, nnodes: 1, node-rank: 0, dist-init-addr: d}}}\n"
        "override_x: {backend: {sglang_config: {decode: {a: 9, b: null}}}}\n"
        "zip_override_y: {backend: {sglang_config: {decode: {a: [5, 6], c: [7]}}}}\n"
        "override_z: {benchmark: {a: 1}}\n"
    )
    (launch,) = read("# sglang\n" + text).launches
    own = "--port 3 --host h --model-path m --nnodes 1 --node-rank 0 --dist-init-addr d"
    head = "--disaggregation-mode decode"
    assert [" ".join(argv(v)) for v in launch.variants] == [
        f"{head} --a 9 {own}",
        f"{head} --a 5 --b 2 {own} --c 7",
        f"{head} --a 6 --b 2 {own} --c 7",
        f"{head} --a 1 --b 2 {own}",
    ]
    assert [v.choices[0].taken for v in launch.variants][1] == "the job is zip_override_y[0]"


def test_other_schemas_are_left_alone() -> None:
    for text in (
        "sglang: {tp_size: 2, page_size: 16, mem_fraction_static: 0.8}\n",
        "rollout: {engine_kwargs: {sglang: {tp_size: 2, page_size: 1}}}\n",
        "sglang_cfg: {tp-size: 2, pageSize: 1, mem-fraction-static: 1}\n",
    ):
        assert launched(text) == []
    assert launched("sglang_args: {tp-size: 2, page-size: 1}\n") == ["--tp-size 2 --page-size 1"]


def test_a_script_that_writes_a_page_is_a_script() -> None:
    """Fences in a text that a shell reads are what it prints; in a text for people they are examples."""
    script = "sglang serve m --tp 2\ncat > R.md <<'E'\n```bash\nsglang serve n\n```\nE\n".replace("\n", "\n    ")
    text = f"jobs:\n  a:\n    run: |\n      {script}"
    (launch,) = parse("w.yaml", text.replace("\n    ", "\n      ")).launches
    assert [w.text for w in launch.variants[0].words] == ["m", "--tp", "2"]
    (launch,) = parse("p.yaml", "about: |\n  See:\n  ```bash\n  sglang serve n\n  ```\n").launches
    assert [w.text for w in launch.variants[0].words] == ["n"]


@pytest.mark.parametrize("escaped", [r"\ud800", r"\uDFFF", r"\ud83d\ude00", r"\\\\ud83d", r"\u00e9"])
def test_a_string_with_escapes_of_json_is_read(escaped: str) -> None:
    document = parse(
        "job.yaml", f"command: \"python3 -m sglang.launch_server --served-model-name '{escaped}' --tp 2\"\n"
    )
    (launch,) = document.launches
    assert [w.text for w in launch.variants[0].words][-2:] == ["--tp", "2"]
