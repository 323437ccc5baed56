"""GPUs a launch needs on a node, against those it is given."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.gpus import counted, visible
from tests.analysis.support import PINNED, SERVER, check, only, rules_of

RULE = "more-gpus-than-visible"


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        (
            f"CUDA_VISIBLE_DEVICES=0,1 {SERVER} --tp 4",
            "--tp 4",
            "`--tp 4` needs 4 GPUs on a node, but `CUDA_VISIBLE_DEVICES=0,1` gives 2",
        ),
        (f"export CUDA_VISIBLE_DEVICES=0\n{SERVER} --tp-size=2", "--tp-size=2", "gives 1"),
        (f"CUDA_VISIBLE_DEVICES=0,1,2,3 {SERVER} --tp 4 --pp-size 2", "--tp 4", "needs 8"),
        (f"CUDA_VISIBLE_DEVICES=0,1,2,3 {SERVER} --tp 2 --dp 4", "--tp 2", "`--tp 2 --dp 4` needs 8"),
        (f"#SBATCH --gres=gpu:h100:8\n{SERVER} --tp 16", "--tp 16", "`--gres gpu:h100:8` gives 8"),
        (f"srun --gpus-per-node=4 {SERVER} --tp 8", "--tp 8", "gives 4"),
        (f"docker run --gpus 2 lmsysorg/sglang:dev {SERVER} --tp 4", "--tp 4", "gives 2"),
        (f"docker run --gpus '\"device=0,1\"' lmsysorg/sglang:dev {SERVER} --tp 4", "--tp 4", "gives 2"),
        (f"TP=8\nCUDA_VISIBLE_DEVICES=0,1,2,3 {SERVER} --tp $TP", "--tp $TP", "needs 8"),
    ],
)
def test_too_few(text: str, place: str, part: str) -> None:
    text = PINNED + text
    found = only(text, RULE)
    assert (found.severity, text[found.place.start : found.place.end]) == ("warning", place)
    assert part in found.message


@pytest.mark.parametrize(
    "text",
    [
        f"CUDA_VISIBLE_DEVICES=0,1,2,3 {SERVER} --tp 4",
        f"CUDA_VISIBLE_DEVICES=0,1,2,3 {SERVER} --tp 4 --dp 4 --enable-dp-attention",
        f"#SBATCH --gres=gpu:h100:8\n#SBATCH --nodes=2\n{SERVER} --tp 16 --nnodes 2",
        f"#SBATCH --nodes=2\n#SBATCH --gpus=16\n{SERVER} --tp 16",
        f"srun --gpus-per-task=1 {SERVER} --tp 8",
        f"docker run --gpus all lmsysorg/sglang:dev {SERVER} --tp 8",
        f"CUDA_VISIBLE_DEVICES=$GPUS {SERVER} --tp 8",
        f"CUDA_VISIBLE_DEVICES=0 {SERVER} --tp $TP",
        f"CUDA_VISIBLE_DEVICES=0 {SERVER} --tp 8 --nnodes $N",
        f'CUDA_VISIBLE_DEVICES=0 {SERVER} --tp 8 "$@"',
        f"CUDA_VISIBLE_DEVICES='' {SERVER} --tp 8",
        f"CUDA_VISIBLE_DEVICES=0,1 {SERVER} --tp 2 --base-gpu-id 1",
        f"export CUDA_VISIBLE_DEVICES=0\ndocker run lmsysorg/sglang:dev {SERVER} --tp 8",
        f"if $1; then export CUDA_VISIBLE_DEVICES=0; else export CUDA_VISIBLE_DEVICES=0,1; fi\n{SERVER} --tp 2",
        f"{SERVER} --tp 8",
    ],
)
def test_enough_or_not_known(text: str) -> None:
    assert RULE not in rules_of(PINNED + text)


def test_related_place() -> None:
    text = f"{PINNED}CUDA_VISIBLE_DEVICES=0,1 {SERVER} --tp 4"
    (related,) = next(d for d in check(text).diagnostics if d.rule.name == RULE).related
    assert text[related.place.start : related.place.end] == "0,1"


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 1), ("0,1", 2), ("0, 1", 2), ("0,0", 1), ("GPU-8932f937-d72c", 1), ("", None), ("-1", None), ("all", None)],
)
def test_visible(text: str, count: int | None) -> None:
    assert visible(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("8", 8), ("gpu:8", 8), ("gpu:h100:8", 8), ("h100:4", 4), ("gpu:a100:4(S:0-1)", 4), ("device=0,1", 2),
        ('"device=3"', 1), ("all", None), ("gpu", None), ("gpu:h100", None), ("gpu:2,shard:3", None),
    ],
)  # fmt: skip
def test_counted(text: str, count: int | None) -> None:
    assert counted(text) == count


def pod(resources: str, arguments: str) -> str:
    return f"""{PINNED}kind: Pod
spec:
  containers:
    - image: lmsysorg/sglang:v0.5.23
      command: [python3, -m, sglang.launch_server, --model-path, llama-3.1-8b]
      args: [{arguments}]
      resources:
        limits: {{{resources}}}
"""


def compose(device: str) -> str:
    return f"""{PINNED}services:
  server:
    image: lmsysorg/sglang:v0.5.23
    command: {SERVER} --tp 4
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              {device}
"""


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (pod('nvidia.com/gpu: "4"', '--tp, "8"'), "needs 8 GPUs on a node, but `nvidia.com/gpu: 4` gives 4"),
        (pod("amd.com/gpu: 1", "--tp=2"), "`amd.com/gpu: 1` gives 1"),
        (compose("count: 2"), "`count: 2` gives 2"),
        (compose('device_ids: ["0", "1"]'), "`device_ids: 0,1` gives 2"),
    ],
)
def test_too_few_for_a_container(text: str, part: str) -> None:
    assert part in only(text, RULE, name="/w/pod.yaml").message


@pytest.mark.parametrize(
    "text",
    [
        pod('nvidia.com/gpu: "8"', '--tp, "8"'),
        pod("cpu: 4", '--tp, "8"'),
        pod('nvidia.com/gpu: "4"', '--tp, "8", --nnodes, "2"'),
        compose("count: all"),
        compose("count: 4"),
    ],
)
def test_enough_for_a_container(text: str) -> None:
    assert RULE not in rules_of(text, name="/w/pod.yaml")
