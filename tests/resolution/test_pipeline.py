"""SGLang's order, release by release."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.resolution.handlers import handlers_of
from spec_lsp.resolution.pipeline import NOT_FOLLOWED, all_names, names


def order(release: str) -> tuple[str, ...]:
    return names(Release.parse(release))


def test_every_release_from_0_5_1_has_an_order() -> None:
    for release in releases():
        assert bool(handlers_of(release)) == (release >= Release.parse("0.5.1"))


def test_what_is_not_followed_is_of_some_order_and_defined_nowhere() -> None:
    assert set(NOT_FOLLOWED) <= set(all_names())
    for name in NOT_FOLLOWED:
        module, _, attribute = name.partition(".")
        assert find_spec(f"spec_lsp.resolution.{module}") is None or not hasattr(
            import_module(f"spec_lsp.resolution.{module}"), attribute
        ), f"{name} is followed: it has no place in NOT_FOLLOWED"


def test_a_name_that_nothing_is_known_of_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import spec_lsp.resolution.pipeline as module

    release = Release.parse("0.5.23")
    monkeypatch.setattr(module, "names", lambda _: ("serving.handle_what_nobody_wrote",))
    with pytest.raises(AttributeError, match="handle_what_nobody_wrote"):
        list(module.handlers_by_name(release))


def test_the_order_before_0_5_6_leaves_the_rest_unknown() -> None:
    assert order("0.5.5.post3")[0].startswith("early.")
    assert not order("0.5.6")[0].startswith("early.")


@pytest.mark.parametrize(
    ("release", "first", "second"),
    [
        ("0.5.23", "memory.handle_gpu_memory_settings", "attention.handle_attention_backend_compatibility"),
        ("0.5.12", "attention.handle_deterministic_inference", "attention.handle_attention_backend_compatibility"),
        ("0.5.11", "speculative.handle_speculative_decoding", "attention.handle_deterministic_inference"),
        ("0.5.9", "attention.handle_attention_backend_compatibility", "hicache.handle_hicache"),
        ("0.5.7", "hicache.handle_hicache", "attention.handle_attention_backend_compatibility"),
        ("0.5.7", "platform.handle_cpu_backends", "memory.handle_gpu_memory_settings"),
        ("0.5.6", "memory.handle_gpu_memory_settings", "platform.handle_cpu_backends"),
        ("0.5.10", "speculative.handle_speculative_decoding", "disaggregation.handle_pd_disaggregation"),
        ("0.5.11", "disaggregation.handle_pd_disaggregation", "serving.handle_deprecated_args"),
    ],
)
def test_order_within_a_release(release: str, first: str, second: str) -> None:
    found = order(release)
    assert found.index(first) < found.index(second)


@pytest.mark.parametrize(
    ("name", "release", "times"),
    [
        ("memory.handle_offload_compatibility", "0.5.20", 2),
        ("memory.handle_offload_compatibility", "0.5.19", 0),
        ("context_parallel.handle_legacy_cp_arguments", "0.5.19", 2),
        ("context_parallel.handle_legacy_cp_arguments", "0.5.20", 0),
        ("cuda_graph.handle_piecewise_cuda_graph", "0.5.13", 1),
        ("cuda_graph.handle_piecewise_cuda_graph", "0.5.14", 0),
        ("kv_sharding.handle_kv_cache_sharding", "0.5.22", 2),
        ("model.build_model_config", "0.5.14", 1),
        ("model.build_model_config", "0.5.12", 1),
    ],
)
def test_what_a_release_calls(name: str, release: str, times: int) -> None:
    assert order(release).count(name) == times


def test_late_refusals_come_last() -> None:
    found = order("0.5.23")
    late = [name.startswith("late.") for name in found]
    assert late == sorted(late)
    assert any(late)


def test_every_reason_is_a_whole_sentence() -> None:
    """What a step's docstring says first is shown to the reader of a resolved configuration."""
    steps = {step.run: step for release in releases() for handler in handlers_of(release) for step in handler.steps}
    for step in steps.values():
        reason = step.reason
        assert reason.endswith((".", ".)")), reason
        assert reason.count("`") % 2 == 0, reason
