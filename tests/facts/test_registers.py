"""The names in SGLang's registries, and that the shipped tables are what the sources say."""

from __future__ import annotations

import json

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.facts.registers import register
from tests.sources import methods, registers
from tests.sources.table import FIRST, Table
from tests.sources.unpacked import unpacked


@pytest.mark.parametrize(
    ("name", "release", "some", "others"),
    [
        ("cpu_methods", "0.5.11", {"awq", "fp8"}, {"mxfp4", "gptq_marlin"}),
        ("cpu_methods", "0.5.23", {"awq", "mxfp4", "auto-round"}, {"gptq_marlin"}),
        ("mxfp4_runners", "0.5.23", {"auto", "triton_kernel", "flashinfer_mxfp4"}, {"cutlass", "flashinfer_trtllm"}),
        ("mxfp4_runners", "0.5.12", {"auto", "triton_kernel", "flashinfer_mxfp4"}, {"cutlass", "deep_gemm"}),
        ("fused_runners", "0.5.23", {"flashinfer_trtllm", "marlin", "hpc_ops"}, {"triton", "deep_gemm"}),
        ("exchanges_of_flashinfer_trtllm", "0.5.18", {"none"}, {"flashinfer"}),
        ("exchanges_of_flashinfer_trtllm", "0.5.19", {"none", "flashinfer"}, {"deepep"}),
        ("overlapping_classes", "0.5.23", {"Qwen3ForCausalLM"}, {"Qwen3MoeForCausalLM"}),
    ],
)
def test_a_register(name: str, release: str, some: set[str], others: set[str]) -> None:
    names = register(name, Release.parse(release))
    assert names is not None
    assert some <= names
    assert not others & names


def test_a_register_that_a_release_does_not_have() -> None:
    assert register("cpu_methods", Release.parse("0.5.10")) is None
    assert register("mxfp4_runners", Release.parse("0.5.10")) is None
    assert register("exchanges_of_triton_kernel", Release.parse("0.5.23")) is None


@pytest.mark.parametrize("table", [methods.TABLE, registers.TABLE], ids=["methods", "registers"])
def test_the_shipped_table_is_that_of_the_sources(table: Table) -> None:
    there = {r: root for r, root in unpacked().items() if r >= FIRST}
    if not there:
        pytest.skip("SPEC_LSP_SGLANG names no folder with SGLang's sources")
    shipped = json.loads(table.data.read_text("utf-8"))
    for release, root in there.items():
        if any(r > release and str(r).startswith(f"{release}.post") for r in there):
            continue  # its post release counts
        found = table.read(root.parent)
        for name in {*shipped, *found}:
            said = [facts for since, facts in shipped.get(name, {}).items() if Release.parse(since) <= release]
            assert (said[-1] if said else None) == found.get(name), (str(release), name)
