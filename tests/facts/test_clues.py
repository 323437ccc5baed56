"""What images, pins, schedulers and file names tell."""

from __future__ import annotations

import pytest

from spec_lsp.facts.clues import families_of, hardware_of, hint_of, image_parts, release_of
from spec_lsp.syntax.launch import Clue, ClueKind
from spec_lsp.syntax.word import Place


def clue(kind: ClueKind, text: str) -> Clue:
    return Clue(kind, text, Place("a.sh", 0, len(text)))


IMAGES: list[tuple[str, str | None]] = [
    # what SGLang publishes
    ("lmsysorg/sglang:v0.5.9", "0.5.9"),
    ("lmsysorg/sglang:v0.5.9-cu130", "0.5.9"),
    ("lmsysorg/sglang:v0.5.9-cu129-amd64", "0.5.9"),
    ("lmsysorg/sglang:v0.5.9-runtime", "0.5.9"),
    ("lmsysorg/sglang:v0.5.9-xeon", "0.5.9"),
    ("lmsysorg/sglang:v0.5.5.post3", "0.5.5.post3"),
    ("lmsysorg/sglang:v0.5.5.post3-cann8.3.rc1-910b", "0.5.5.post3"),
    ("lmsysorg/sglang:v0.5.3rc1-cu129-gb200", "0.5.3rc1"),
    ("lmsysorg/sglang:v0.5.9-rocm700-mi30x", "0.5.9"),
    ("lmsysorg/sglang-rocm:v0.5.12-rocm720-mi35x", "0.5.12"),
    ("rocm/sgl-dev:v0.5.9-rocm700-mi35x-20260201", "0.5.9"),
    ("rocm/sgl-dev:sglang-0.5.6.post1-rocm700-mi35x-mori-1224", "0.5.6.post1"),
    ("quay.io/ascend/sglang:v0.5.9-cann8.5.0-a3", "0.5.9"),
    ("docker.io/lmsysorg/sglang:v0.5.9", "0.5.9"),
    ("docker://lmsysorg/sglang:v0.5.9", "0.5.9"),
    ("docker://lmsysorg#sglang:v0.5.9", "0.5.9"),
    ("lmsysorg/sglang:v1.2.0", "1.2.0"),
    # mirrors
    ("registry.example.com:5000/mirror/sglang:v0.5.9", "0.5.9"),
    ("localhost:5000/sglang:0.5.9", "0.5.9"),
    ("ghcr.io/team/sglang-server:0.5.9", "0.5.9"),
    # digests
    ("lmsysorg/sglang:v0.5.9@sha256:0123456789abcdef", "0.5.9"),
    ("lmsysorg/sglang@sha256:0123456789abcdef", None),
    # archives
    ("/images/lmsysorg+sglang+v0.5.5.post2.sqsh", "0.5.5.post2"),
    ("/images/sglang-v0.5.9-cu130.sqsh", "0.5.9"),
    ("/images/lmsysorg_sglang_v0.5.9.sqsh", "0.5.9"),
    ("/images/lmsysorg+sglang+dev.sqsh", None),
    ("./sglang_0.5.9.sif", "0.5.9"),
    # no release
    ("lmsysorg/sglang", None),
    ("lmsysorg/sglang:latest", None),
    ("lmsysorg/sglang:latest-cu130", None),
    ("lmsysorg/sglang:dev", None),
    ("lmsysorg/sglang:dev-20260115-0a1b2c3d", None),
    ("lmsysorg/sglang:nightly-dev-cu13-20260115-0a1b2c3d", None),
    ("lmsysorg/sglang:deepseek-v4-blackwell", None),
    ("lmsysorg/sglang:v0.5", None),
    ("quay.io/ascend/sglang:main-cann8.5.0-a3", None),
    ("localhost:5000/sglang", None),
    # other numberings
    ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.0", None),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:latest", None),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:99.3.0", None),
    # a version of Dynamo is made for one of SGLang
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.0", "0.5.14"),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.8.1-cu13", "0.5.6.post2"),
    ("mirror.example.com/dynamo-sglang:0.8.1", None),
    ("nvcr.io/nvidia/sglang:25.12-py3", None),
    ("lmsysorg/sglang-router:v0.2.4", None),
    ("lmsysorg/sgl-model-gateway:v0.3.1", None),
    ("team/sglang-sidecar:0.5.9", None),
    ("team/sglang-server:2.1.0", None),
    ("vllm/vllm-openai:v0.11.0", None),
]


@pytest.mark.parametrize(("image", "release"), IMAGES)
def test_image(image: str, release: str | None) -> None:
    found = release_of(clue("image", image))
    assert (str(found) if found else None) == release


@pytest.mark.parametrize(
    ("pin", "release"),
    [
        ("sglang==0.5.9", "0.5.9"),
        ("sglang[all]==0.5.9", "0.5.9"),
        ("sglang[all] == 0.5.5.post3", "0.5.5.post3"),
        ("sglang===0.5.9", "0.5.9"),
        ("sglang==0.5.9+cu130", "0.5.9"),
        ("sglang==0.5.3rc0", "0.5.3rc0"),
        ("sglang[all]>=0.4.9.post1", None),
        ("sglang<0.5.9", None),
        ("sglang~=0.5.9", None),
        ("sglang==0.5.*", None),
        ("sglang==0.5.6.post2.dev8232", None),
        ("sglang-router==0.2.4", None),
        ("sglang", None),
    ],
)
def test_pin(pin: str, release: str | None) -> None:
    found = release_of(clue("pin", pin))
    assert (str(found) if found else None) == release


@pytest.mark.parametrize(
    ("kind", "text", "device"),
    [
        ("image", "lmsysorg/sglang:v0.5.9-rocm700-mi30x", "mi300"),
        ("image", "lmsysorg/sglang:v0.5.9-rocm720-mi35x", "mi355"),
        ("image", "rocm/sgl-dev:v0.5.9-rocm700-mi325-20260201", "mi325x"),
        ("image", "lmsysorg/sglang:v0.5.9-xeon", "cpu"),
        ("image", "lmsysorg/sglang:v0.5.9-cann8.3.rc1-910b", "npu"),
        ("image", "quay.io/ascend/sglang:v0.5.9-cann8.5.0-a3", "npu"),
        ("image", "quay.io/ascend/sglang:main", "npu"),
        ("image", "lmsysorg/sglang:v0.5.9-npu", "npu"),
        ("image", "lmsysorg/sglang:latest-xpu", "xpu"),
        ("image", "lmsysorg/sglang:v0.5.9-cu129-gb200", "sm100"),
        ("image", "lmsysorg/sglang:v0.5.9-cu128-b200", "sm100"),
        ("image", "lmsysorg/sglang:dev-b300", "sm103"),
        ("image", "lmsysorg/sglang:deepseek-v4-blackwell", None),
        ("image", "lmsysorg/sglang:v0.5.9-cu130", None),
        ("image", "lmsysorg/sglang:v0.5.9-cu130-amd64", None),
        ("image", "registry.b200.example.com/sglang:latest", None),
        ("gpu", "gpu:h200:8", "h200"),
        ("gpu", "gpu:a100:4", "a100"),
        ("gpu", "gpu:h100_nvl:2", "h100-nvl"),
        ("gpu", "h100:8", "h100"),
        ("gpu", "NVIDIA-H100-80GB-HBM3", "h100"),
        ("gpu", "NVIDIA-A100-SXM4-40GB", "a100-40gb"),
        ("gpu", "NVIDIA-GB200", "gb200"),
        ("gpu", "hopper", "hopper"),
        ("gpu", "h200|b200", None),
        ("gpu", "[h100|h200]", None),
        ("gpu", "h100|rack1", None),
        ("gpu", "h100|NVIDIA-H100-80GB-HBM3", "h100"),
        ("gpu", "(h100|h200)&ib", None),
        ("gpu", "h100&ib", "h100"),
        ("gpu", "p5.48xlarge", "h100"),
        ("gpu", "ml.p5.48xlarge", "h100"),
        ("gpu", "family=p5", "h100"),
        ("gpu", "family=a4x", "gb200"),
        ("gpu", "p5", None),
        ("gpu", "a4", None),
        ("gpu", "p5-rack", None),
        ("gpu", "g5.metal", "a10"),
        ("gpu", "p5e.48xlarge", "h200"),
        ("gpu", "p5en.48xlarge", "h200"),
        ("gpu", "p5.48xlarge|p5e.48xlarge", None),
        ("gpu", "p4d.24xlarge", "a100-40gb"),
        ("gpu", "p4de.24xlarge", "a100"),
        ("gpu", "p6-b200.48xlarge", "b200"),
        ("gpu", "p6-b300.48xlarge", "b300"),
        ("gpu", "p6e-gb200.36xlarge", "gb200"),
        ("gpu", "g6.12xlarge", "l4"),
        ("gpu", "g6e.12xlarge", "l40s"),
        ("gpu", "m7i.48xlarge", None),
        ("gpu", "a2-highgpu-8g", "a100-40gb"),
        ("gpu", "a2-ultragpu-8g", "a100"),
        ("gpu", "a3-megagpu-8g", "h100"),
        ("gpu", "a3-ultragpu-8g", "h200"),
        ("gpu", "a4-highgpu-8g", "b200"),
        ("gpu", "a4x-highgpu-4g", "gb200"),
        ("gpu", "g2-standard-48", "l4"),
        ("gpu", "n1-standard-8", None),
        ("gpu", "Standard_ND96isr_H100_v5", "h100"),
        ("gpu", "Standard_ND96isr_MI300X_v5", "mi300x"),
        ("gpu", "Standard_NC80adis_H100_v5", "h100-nvl"),
        ("gpu", "Standard_ND96asr_v4", "a100-40gb"),
        ("gpu", "Standard_D8s_v5", None),
        ("gpu", "BM.GPU.H200.8", "h200"),
        ("gpu", "BM.GPU4.8", "a100-40gb"),
        ("gpu", "H100_NVLINK_80GB", "h100"),
        ("gpu", "gpu:8", None),
        ("gpu", "bigmem", None),
        ("runner", "1-gpu-h100", "h100"),
        ("runner", "8-gpu-b200", "b200"),
        ("runner", "self-hosted,Linux,x64,H200", "h200"),
        ("runner", "1-gpu-h100|8-gpu-h100", "h100"),
        ("runner", "1-gpu-h100|8-gpu-b200", None),
        ("runner", "1-gpu-h100|?", None),
        ("runner", "h100,h200", None),
        ("runner", "1-gpu-l4", "l4"),
        ("runner", "linux-l4,a10,t4", None),
        ("runner", "ubuntu-latest", None),
        ("runner", "gpu-cpu", None),
        ("runner", "linux-mi325-8gpu", "mi325x"),
        ("runner", "linux-mi35x-gpu-8", "mi355"),
        ("runner", "admi35x", None),
        ("platform", "npu", "npu"),
        ("platform", "/dev/davinci0", "npu"),
        ("platform", "/dev/dri", None),
        ("platform", "/dev/kfd", None),
        ("platform", "linux/amd64", None),
        ("gpu-count", "8", None),
    ],
)
def test_hardware(kind: ClueKind, text: str, device: str | None) -> None:
    found = hardware_of(clue(kind, text))
    assert (found.name if found else None) == device


@pytest.mark.parametrize(
    ("kind", "text", "platforms"),
    [
        ("image", "lmsysorg/sglang:v0.5.9-cu130", {"cuda"}),
        ("image", "lmsysorg/sglang:v0.5.9-rocm700", {"hip"}),
        ("image", "rocm/sgl-dev:latest", {"hip"}),
        ("image", "lmsysorg/sglang:v0.5.9", set()),
        ("image", "lmsysorg/sglang:latest", set()),
        ("platform", "/dev/kfd", {"hip"}),
        ("platform", "nvidia", {"cuda"}),
        ("platform", "/dev/dri", set()),
        ("pin", "sglang==0.5.9", set()),
    ],
)
def test_families(kind: ClueKind, text: str, platforms: set[str]) -> None:
    assert {f.platform for f in families_of(clue(kind, text))} == platforms


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("/home/x/run_glm5_b200.sh", "b200"),
        ("recipes/gb300-fp8/1k1k.yaml", "gb300"),
        ("bench/mi355x/serve.sh", "mi355x"),
        ("h100_and_h200.sh", None),
        ("serve.sh", None),
        ("/srv/h200/tools/launch/serve.sh", None),
        ("cpu.sh", None),
        ("sb2000.sh", None),
    ],
)
def test_hint(name: str, device: str | None) -> None:
    found = hint_of(name)
    assert (found.name if found else None) == device


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("lmsysorg/sglang:v0.5.9-cu130", ("lmsysorg/sglang", "v0.5.9-cu130")),
        ("lmsysorg/sglang", ("lmsysorg/sglang", "")),
        ("localhost:5000/sglang", ("localhost:5000/sglang", "")),
        ("docker://r.io:443/a/b:c@sha256:00", ("r.io:443/a/b", "c")),
        ("sglang:dev", ("sglang", "dev")),
    ],
)
def test_image_parts(image: str, parts: tuple[str, str]) -> None:
    assert image_parts(image) == parts
