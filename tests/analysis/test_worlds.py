"""Which release and hardware a launch is taken to run on, and who says so."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.inputs import Options, Target, World
from spec_lsp.analysis.worlds import Assumed, assume
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import catalog_of
from spec_lsp.facts.hardware import DEVICES, FAMILIES
from spec_lsp.settings import options, read_settings
from tests.analysis.support import NAME, PINNED, SERVER, Memory, check, only, rules_of

FAMILY_NAMES = set(FAMILIES)


def assumed(text: str, *, name: str = NAME, given: Options | None = None, pin: str = "") -> Assumed:
    workspace = Memory(pin=pin)
    document = check(text, name=name, workspace=workspace).document
    return assume(document.launches[0], document.directives, given or Options(), workspace, name)


def settings(**values: object) -> Options:
    read, problems = read_settings(values)
    assert not problems
    return options(read)


def releases(found: Assumed) -> set[tuple[str, str]]:
    return {(str(w.release), w.release_from) for w in found.worlds}


def devices(found: Assumed) -> set[tuple[str, str]]:
    return {(w.hardware.name, w.hardware_from) for w in found.worlds if w.hardware}


IMAGE = f"docker run lmsysorg/sglang:v0.5.12 {SERVER}"
DIRECTIVE = "# spec-lsp: sglang=0.5.16 gpu=b200\n"
PIN = "pip install 'sglang[all]==0.5.14'\n"


@pytest.mark.parametrize(
    ("text", "given", "pin", "expected"),
    [
        (SERVER, Options(), "", ("0.5.23", "not named")),
        (SERVER, Options(), "0.5.15", ("0.5.15", "uv.lock")),
        (SERVER, settings(sglang="0.5.19"), "0.5.15", ("0.5.19", "settings")),
        (PIN + SERVER, settings(sglang="0.5.19"), "0.5.15", ("0.5.14", "pip pin")),
        (PIN + IMAGE, settings(sglang="0.5.19"), "0.5.15", ("0.5.12", "image tag")),
        (IMAGE, Options((Target(Release.parse("0.5.20")),)), "", ("0.5.20", "settings")),
        (DIRECTIVE + IMAGE, Options((Target(Release.parse("0.5.20")),)), "", ("0.5.16", "directive")),
        (IMAGE, Options(release=Release.parse("0.5.21")), "", ("0.5.21", "asked for")),
        (DIRECTIVE + IMAGE, Options(release=Release.parse("0.5.21")), "", ("0.5.21", "asked for")),
        (IMAGE.replace("v0.5.12", "latest"), settings(sglang="0.5.19"), "", ("0.5.19", "settings")),
        (IMAGE.replace("v0.5.12", "latest"), Options(), "", ("0.5.23", "not named")),
    ],
)
def test_release(text: str, given: Options, pin: str, expected: tuple[str, str]) -> None:
    found = assumed(text, given=given, pin=pin)
    assert releases(found) == {expected}
    assert found.release_named is (expected[1] != "not named")


def test_pins_that_differ_are_all_possible() -> None:
    text = f"if $1; then pip install sglang==0.5.9; else pip install sglang==0.5.12; fi\n{SERVER}"
    assert releases(assumed(text)) == {("0.5.9", "pip pin"), ("0.5.12", "pip pin")}


def test_images_of_the_jobs_of_a_matrix_are_all_possible() -> None:
    run = f"docker run lmsysorg/sglang:${{{{ matrix.v }}}} {SERVER}"
    text = f"jobs: {{x: {{strategy: {{matrix: {{v: [v0.5.9, v0.5.12]}}}}, steps: [{{run: '{run}'}}]}}}}\n"
    assert releases(assumed(text, name="/w/ci.yml")) == {("0.5.9", "image tag"), ("0.5.12", "image tag")}


def test_each_launch_has_its_own_image() -> None:
    text = f"docker run lmsysorg/sglang:v0.5.9 {SERVER}\ndocker run lmsysorg/sglang:v0.5.12 {SERVER}\n"
    found = check(text)
    assert [str(report.worlds[0].release) for report in found.launches] == ["0.5.9", "0.5.12"]


def test_a_directive_in_a_block_of_a_page_holds_for_the_block() -> None:
    block = f"```bash\n# spec-lsp: sglang=0.5.16\n{SERVER}\n```\n"
    found = check(f"{block}\n```bash\n{SERVER}\n```\n<!-- spec-lsp: sglang=0.5.16 -->\n{block}", name="a.md")
    assert [report.worlds[0].release_from for report in found.launches] == ["directive", "not named", "directive"]


def test_a_directive_holds_for_what_follows() -> None:
    text = f"{SERVER}\n# spec-lsp: sglang=0.5.9\n{SERVER}\n"
    found = check(text)
    assert [report.worlds[0].release_from for report in found.launches] == ["not named", "directive"]


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (f"#SBATCH --gres=gpu:h200:8\n{SERVER}", Options(), {("h200", "scheduler or selector")}),
        (f"#SBATCH --constraint=b200\n{SERVER}", settings(gpu="h100"), {("b200", "scheduler or selector")}),
        (f"srun --gres=gpu:a100:4 {SERVER}", Options(), {("a100", "scheduler or selector")}),
        (f"docker run lmsysorg/sglang:v0.5.12-xeon {SERVER}", Options(), {("cpu", "image tag")}),
        (f"docker run lmsysorg/sglang:v0.5.12-rocm720-mi35x {SERVER}", Options(), {("mi355", "image tag")}),
        (f"docker run --device=/dev/davinci0 lmsysorg/sglang:main {SERVER}", Options(), {("npu", "--device")}),
        (SERVER, settings(gpu="h100"), {("h100", "settings")}),
        (DIRECTIVE + SERVER, settings(gpu="h100"), {("b200", "directive")}),
        (DIRECTIVE + SERVER, Options((Target(hardware=DEVICES["h20"]),)), {("b200", "directive")}),
        (f"#SBATCH --gres=gpu:h200:8\n{SERVER}", Options((Target(hardware=DEVICES["h20"]),)), {("h20", "settings")}),
        (SERVER, Options(), {(name, "not named") for name in FAMILY_NAMES}),
    ],
)
def test_hardware(text: str, given: Options, expected: set[tuple[str, str]]) -> None:
    assert devices(assumed(text, given=given)) == expected


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        (f"docker run --device=/dev/kfd --device=/dev/dri lmsysorg/sglang:v0.5.12-rocm700 {SERVER}", "hip"),
        (f"HIP_VISIBLE_DEVICES=0 {SERVER}", "hip"),
        (f"docker run lmsysorg/sglang:v0.5.12-cu130 {SERVER}", "cuda"),
    ],
)
def test_a_maker_leaves_its_families(text: str, platform: str) -> None:
    found = assumed(text)
    assert {w.hardware.platform for w in found.worlds if w.hardware} == {platform}
    assert {w.hardware_from for w in found.worlds} <= {"not named", "file name"}


def test_ascend_by_its_variable() -> None:
    assert devices(assumed(f"ASCEND_RT_VISIBLE_DEVICES=0 {SERVER}")) == {("npu", "environment variable")}


def test_a_file_name_is_the_last_hint() -> None:
    found = assumed(SERVER, name="/w/run_b200.sh")
    assert ("b200", "file name") in devices(found)
    assert len(devices(found)) == len(FAMILY_NAMES)
    assert {w.hardware_from for w in found.worlds} <= {"not named", "file name"}
    assert devices(assumed("# spec-lsp: gpu=h100\n" + SERVER, name="/w/run_b200.sh")) == {("h100", "directive")}


@pytest.mark.parametrize(
    "flags",
    [
        "--model-path deepseek-v3 --attention-backend trtllm_mla",
        "--model-path llama-3.1-8b --attention-backend fa3",
        "--model-path deepseek-v3 --attention-backend fa3",
        "--model-path llama-3.1-8b --attention-backend ascend",
        "--model-path llama-3.1-8b --decode-attention-backend ascend",
    ],
)
def test_what_is_typed_says_which_hardware_it_is_for(flags: str) -> None:
    text = f"# spec-lsp: sglang=0.5.23\npython -m sglang.launch_server {flags} --tp 8\n"
    assert [d for d in check(text).diagnostics if d.severity in ("error", "warning")] == []
    wrong = "h100" if "trtllm" in flags else "b200"
    assert [d.severity for d in check(text.replace("0.5.23", f"0.5.23 gpu={wrong}")).diagnostics][:1] == ["error"]


def test_a_file_name_decides_what_is_shown_but_no_error() -> None:
    text = f"# spec-lsp: sglang=0.5.23\n{SERVER.replace('llama-3.1-8b', 'deepseek-v3')} --tp 8 --attention-backend trtllm_mla"
    named = check(text, name="/w/run_h100.sh")
    assert named.launches[0].main().world.hardware_from != "file name"  # it cannot run there
    assert [d.severity for d in named.diagnostics if d.severity == "error"] == []
    plain = check(f"# spec-lsp: sglang=0.5.23\n{SERVER}", name="/w/run_b200.sh")
    assert plain.launches[0].main().world == World(Release.parse("0.5.23"), DEVICES["b200"], "directive", "file name")


# --- releases that are not shipped -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "stands_for"),
    [
        ("0.5.9", "0.5.9"),
        ("0.5.8", "0.5.8.post1"),
        ("0.5.10", "0.5.10.post1"),
        ("0.5.5.post1", "0.5.5.post3"),
        ("0.5.9rc1", "0.5.9"),
        ("0.5.9.post2", "0.5.9"),
        ("0.5.99", "0.5.23"),
        ("1.0.0", "0.5.23"),
        ("0.5.0", "0.4.10.post2"),
        ("0.1.0", "0.4.6.post5"),
    ],
)
def test_the_catalog_of_a_release(release: str, stands_for: str) -> None:
    assert str(catalog_of(Release.parse(release)).release) == stands_for


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        (
            "# spec-lsp: sglang=0.5.10 gpu=h100\n" + SERVER,
            "# spec-lsp: sglang=0.5.10 gpu=h100",
            "checked against 0.5.10.post1",
        ),
        (f"# spec-lsp: gpu=h100\ndocker run lmsysorg/sglang:v0.5.8 {SERVER}", "lmsysorg/sglang:v0.5.8", "0.5.8.post1"),
        ("# spec-lsp: gpu=h100\npip install sglang==0.5.30\n" + SERVER, "sglang==0.5.30", "newer than any release"),
    ],
)
def test_unknown_release(text: str, place: str, part: str) -> None:
    found = only(text, "unknown-release")
    assert (found.severity, text[found.place.start : found.place.end]) == ("information", place)
    assert part in found.message


def test_unknown_release_is_said_once() -> None:
    text = f"# spec-lsp: sglang=0.5.10 gpu=h100\n{SERVER}\n{SERVER}\n"
    assert rules_of(text) == ["unknown-release"]


def test_unknown_release_of_the_settings() -> None:
    found = only(SERVER, "unknown-release", options=settings(sglang="0.5.10", gpu="h100"))
    assert SERVER[found.place.start : found.place.end] == "python -m sglang.launch_server"


@pytest.mark.parametrize("release", ["0.5.9", "0.5.23"])
def test_nothing_is_said_of_a_known_release(release: str) -> None:
    assert rules_of(f"# spec-lsp: sglang={release} gpu=h100\n{SERVER}") == []


@pytest.mark.parametrize("words", ["--flag-of-tomorrow 3", "--attention-backend backend_of_tomorrow"])
def test_on_a_newer_release_unknown_names_are_warnings(words: str) -> None:
    text = f"# spec-lsp: sglang=0.5.99 gpu=h100\n{SERVER} {words}"
    assert {d.severity for d in check(text).diagnostics} <= {"warning", "information"}
    assert any(d.severity == "error" for d in check(text.replace("0.5.99", "0.5.23")).diagnostics)


@pytest.mark.parametrize("words", ["--flag-of-a-fork 3", "--attention-backend backend_of_a_fork"])
@pytest.mark.parametrize(
    ("image", "severity"),
    [
        ("me/sglang-fork:latest", "warning"),
        ("registry.me:5000/sglang:cu130", "warning"),
        ("lmsysorg/sglang:nightly-dev-20260901-0a1b2c3d", "warning"),
        ("rocm/sgl-dev:20260901", "warning"),
        ("lmsysorg/sglang:latest", "error"),
        ("docker.io/lmsysorg/sglang", "error"),
        ("me/sglang:v0.5.21", "error"),
        ("python:3.12", "error"),
    ],
)
def test_in_a_build_that_is_no_release_unknown_names_are_warnings(image: str, severity: str, words: str) -> None:
    text = f"docker run {image} python3 -m sglang.launch_server --model-path llama-3.1-8b {words}\n"
    (found,) = [d for d in check(text).diagnostics if d.severity in ("error", "warning")]
    assert (found.severity, "build" in found.message) == (severity, severity == "warning")
    directed = check("# spec-lsp: sglang=0.5.23\n" + text)
    assert [d.severity for d in directed.diagnostics if d.severity in ("error", "warning")] == ["error"]


@pytest.mark.parametrize(
    ("flags", "severities"),
    [
        ("--cuda-graph-max-bs 8 --kv-cache-dtype none_such", ["warning", "error"]),
        ("--disable-piecewise-cuda-graph --kv-cache-dtype none_such", ["warning", "error"]),
        ("--cuda-graph-backend-prefill none_such --kv-cache-dtype none_such", ["error", "error"]),
        ("--none-such --disable-piecewise-cuda-graph", ["error", "warning"]),
    ],
)
def test_a_flag_that_older_releases_take_is_a_warning_beside_an_error_of_all(flags: str, severities: list[str]) -> None:
    found = check(f"python3 -m sglang.launch_server --model-path llama-3.1-8b {flags}\n").diagnostics
    assert [d.severity for d in found if d.severity in ("error", "warning")] == severities


TOPK_ALONE = "--speculative-algorithm EAGLE --speculative-draft-model-path llama-3.1-8b --speculative-eagle-topk 4"


@pytest.mark.parametrize(
    ("faulty", "rule"),
    [
        ("--cuda-graph-max-bs 64", "ambiguous-flag"),
        ("--enable", "ambiguous-flag"),
        ("--speculative-num-stps 3", None),
        ("--nothing-like-it", "unknown-flag"),
        ("--max-model-len 4096", "unknown-flag"),
        ("--disable-piecewise-cuda-graph", "unknown-flag"),
        ("--page-size two", "invalid-value"),
        ("--kv-cache-dtype none_such", "invalid-choice"),
        ("stray", "stray-argument"),
    ],
)
def test_a_mistake_of_arguments_hides_only_what_it_can_have_meant(faulty: str, rule: str | None) -> None:
    text = PINNED + f"{SERVER} {TOPK_ALONE} {faulty}\n"
    rules = [d.rule.name for d in check(text).diagnostics if d.severity == "error"]
    assert ("topk-without-steps" in rules, rule in rules) == ((True, True) if rule else (False, False))
    assert len(rules) == (2 if rule else 1)


def test_three_mistakes_are_three_findings() -> None:
    text = PINNED + f"{SERVER} {TOPK_ALONE} --cuda-graph-max-bs 8 --quantisation fp8\n"
    rules = {d.rule.name for d in check(text).diagnostics if d.severity == "error"}
    assert rules == {"topk-without-steps", "ambiguous-flag", "unknown-flag"}


def test_a_launch_that_each_release_refuses_for_its_own_reason_is_an_error() -> None:
    """`--cuda-graph-max-bs` is ambiguous since 0.5.20, `--attn-dp-size` unknown before 0.5.22."""
    text = f"{SERVER} --cuda-graph-max-bs 8 --attn-dp-size 1\n"
    found = [d for d in check(text).diagnostics if d.severity in ("error", "warning")]
    assert "error" in {d.severity for d in found}
    assert all("This holds" in d.message for d in found)


@pytest.mark.parametrize(
    "flags",
    [
        "--model-path llama-3.1-8b",
        "--model-path llama-3.1-8b --attention-backend trtllm_mha",
        "--model-path deepseek-v3 --attention-backend trtllm_mla",
        "--model-path llama-3.1-8b --attention-backend aiter",
        "--model-path llama-3.1-8b --attention-backend fa3",
    ],
)
def test_removed_flag_is_no_error_where_an_older_release_takes_the_launch_on_some_hardware(flags: str) -> None:
    """Whichever hardware the other flags name: older releases are asked on it."""
    text = f"python -m sglang.launch_server {flags} --cuda-graph-max-bs 256"
    found = only(text, "ambiguous-flag")
    assert (found.severity, "since 0.5.20" in found.message) == ("warning", True)


CUDA = {name for name, family in FAMILIES.items() if family.platform == "cuda"}
HIP = {name for name, family in FAMILIES.items() if family.platform == "hip"}
POD = """apiVersion: v1
kind: Pod
spec:
  containers:
    - image: lmsysorg/sglang:latest
      command: [python3, -m, sglang.launch_server, --model-path, m]
      {}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What only NVIDIA's machines have.
        (f"N=$(nvidia-smi -L | wc -l)\n{SERVER} --tp $N", CUDA),
        (f"export CUDA_VISIBLE_DEVICES=0,1\n{SERVER}", CUDA),
        (f"NCCL_DEBUG=INFO {SERVER}", CUDA),
        (f"docker run --gpus all lmsysorg/sglang {SERVER}", CUDA),
        (f"docker run --gpus 8 lmsysorg/sglang {SERVER}", CUDA),
        (f"docker run --device nvidia.com/gpu=all lmsysorg/sglang {SERVER}", CUDA),
        (f"bash -c 'nvidia-smi; {SERVER}'", CUDA),
        # What only AMD's have: ROCm takes CUDA's and NCCL's variables too.
        (f"export HIP_VISIBLE_DEVICES=0\n{SERVER}", HIP),
        (f"docker run --device=/dev/kfd --device=/dev/dri lmsysorg/sglang {SERVER}", HIP),
        (f"rocm-smi\n{SERVER}", HIP),
        (f"export NCCL_DEBUG=INFO SGLANG_USE_AITER=1\n{SERVER}", HIP),
        (f"export CUDA_VISIBLE_DEVICES=0\ndocker run -e NCCL_DEBUG=1 lmsysorg/sglang:v0.5.9-rocm700 {SERVER}", HIP),
        (f"CUDA_VISIBLE_DEVICES=0 {SERVER} --attention-backend aiter", CUDA | HIP),
        # Ascend's.
        (f"export ASCEND_MF_STORE_URL=tcp://a:1\n{SERVER}", {"npu"}),
        (f"HCCL_BUFFSIZE=200 {SERVER}", {"npu"}),
        (f"npu-smi info\n{SERVER}", {"npu"}),
        # A script for several makers' machines, and one that says nothing.
        (f"if command -v nvidia-smi; then :; elif command -v rocm-smi; then :; fi\n{SERVER}", CUDA | HIP),
        (f"command -v nvidia-smi || echo 'on ROCm'\n{SERVER}", CUDA | HIP),
        (f"# nvidia-smi\n#nvidia-smi\n{SERVER}", CUDA | HIP),
        (f"#SBATCH --gpus=8\n{SERVER}", CUDA | HIP),
        (SERVER, CUDA | HIP),
    ],
)
def test_a_maker_narrows_the_worlds(text: str, expected: set[str]) -> None:
    assert {name for name, _ in devices(assumed(text))} == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("resources: {limits: {nvidia.com/gpu: 8}}", CUDA),
        ("resources: {limits: {amd.com/gpu: 8}}", HIP),
        ("resources: {limits: {huawei.com/Ascend910: 8}}", {"npu"}),
        ("env: [{name: NCCL_SOCKET_IFNAME, value: eth0}]", CUDA),
        ("env: [{name: ASCEND_RT_VISIBLE_DEVICES, value: '0'}]", {"npu"}),
        ("nodeSelector: {node.kubernetes.io/instance-type: g7.xlarge}", CUDA),
        ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-next}", CUDA),
        ("nodeSelector: {amd.com/gpu.product-name: AMD_Instinct_Next}", HIP),
        ("nodeSelector: {node.kubernetes.io/instance-type: c7.large}", CUDA | HIP),
    ],
)
def test_a_maker_named_in_a_manifest_narrows_the_worlds(more: str, expected: set[str]) -> None:
    assert {name for name, _ in devices(assumed(POD.format(more), name="pod.yaml"))} == expected


def test_nothing_of_amd_is_told_of_nvidias_machine() -> None:
    flags = "--model-path m --attention-backend fa3"
    told = check(f"python -m sglang.launch_server {flags}\n").diagnostics
    narrowed = check(f"nvidia-smi\npython -m sglang.launch_server {flags}\n").diagnostics
    assert not any("MI3" in d.message for d in narrowed)
    assert len(narrowed) <= len(told)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("justfile", "pinned +args:\n  uvx --with 'sglang==0.5.14' {{{{args}}}}\nserve:\n  just pinned {}\n", "0.5.14"),
        ("justfile", "setup:\n  uv pip install sglang==0.5.14\nserve: setup\n  {}\n", "0.5.14"),
        ("justfile", "setup:\n  uv pip install sglang==0.5.14\nserve:\n  {}\n", "0.5.23"),
        ("justfile", "serve:\n  uv run --with sglang==0.5.14 {}\n", "0.5.14"),
        ("Makefile", "pinned:\n\tuvx --with 'sglang==0.5.14' $(ARGS)\nserve:\n\t$(MAKE) pinned ARGS='{}'\n", "0.5.14"),
        ("Makefile", "pinned:\n\tuvx --with 'sglang==0.5.14' $(ARGS)\nserve:\n\tmake -s pinned ARGS='{}'\n", "0.5.14"),
        ("Makefile", "install:\n\tpip install sglang==0.5.14\nserve: install\n\t{}\n", "0.5.14"),
        ("Makefile", "install:\n\tpip install sglang==0.5.14\nserve:\n\t{}\n", "0.5.23"),
        ("Makefile", "RUN = uvx --from sglang==0.5.14\nserve:\n\t$(RUN) {}\n", "0.5.14"),
    ],
)
def test_pins_behind_recipes(name: str, text: str, expected: str) -> None:
    assert {release for release, _ in releases(assumed(text.format(SERVER), name=name))} == {expected}


def test_clues_of_recipes() -> None:
    recipe = """name: x
model: {path: m, container: c}
identity: {frameworks: {sglang: "0.5.11"}}
backend: {sglang_config: {aggregated: {tensor-parallel-size: 4}}}
"""
    assert releases(assumed(recipe, name="r.yaml")) == {("0.5.11", "pip pin")}
    image = "lmsysorg/sglang-rocm:v0.5.13.post1-rocm720-mi35x-20260623"
    found = assumed(
        recipe.replace('identity: {frameworks: {sglang: "0.5.11"}}', f"runtime: {{image: {image}}}"), name="r.yaml"
    )
    assert releases(found) == {("0.5.13.post1", "image tag")}
    assert devices(found) == {("mi355", "image tag")}


@pytest.mark.parametrize("name", ["run.sh", "Makefile", "justfile", "a.service", "Procfile", "supervisord.conf"])
def test_a_byte_order_mark_is_no_obstacle_to_a_directive(name: str) -> None:
    texts = {
        "run.sh": SERVER,
        "Makefile": f"a:\n\t{SERVER}",
        "justfile": f"a:\n  {SERVER}",
        "a.service": f"[Service]\nExecStart={SERVER}",
        "Procfile": f"a: {SERVER}",
        "supervisord.conf": f"[program:a]\ncommand={SERVER}",
    }
    found = assumed(f"\ufeff# spec-lsp: sglang=0.5.16 gpu=b200\n{texts[name]}\n", name=name)
    assert (releases(found), devices(found)) == ({("0.5.16", "directive")}, {("b200", "directive")})
