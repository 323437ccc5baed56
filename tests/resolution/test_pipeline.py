"""SGLang's order, release by release."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from spec_lsp.catalog.fingerprints import find, index, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.resolution.handlers import handlers_of
from spec_lsp.resolution.pipeline import NOT_FOLLOWED, all_names, handlers_by_name, names


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
    assert order("0.5.2")[0] == "early.unfollowed"
    assert "early.model_specific_adjustments" in order("0.5.5.post3")
    assert not any(name.startswith("early.") for name in order("0.5.6"))


BOUNDED = {
    "attention.handle_attention_backend_compatibility",
    "attention.handle_deterministic_inference",
    "disaggregation.handle_pd_disaggregation",
    "early_validation.handle_other_validations",
    "expert_exchange.handle_a2a_moe",
    "expert_parallel.handle_eplb_and_dispatch",
    "hicache.handle_hicache",
    "kv_cache.handle_cache_compatibility",
    "memory.handle_gpu_memory_settings",
    "model.build_model_config",
    "moe.handle_moe_kernel_config",
    "platform.find_device",
    "serving.handle_environment_variables",
    "serving.handle_missing_default_values",
    "serving.handle_tokenizer_batching",
    "speculative.handle_speculative_decoding",
    "validation.check_server_args",
}
"""Handlers whose functions 0.5.3, 0.5.4 or 0.5.5 has otherwise than 0.5.6: somebody read the difference, and bounded the steps by it or
found that no field of theirs hangs on it."""


@pytest.mark.parametrize("release", ["0.5.3.post3", "0.5.4.post3", "0.5.5.post3"])
def test_what_is_followed_before_0_5_6_is_as_in_0_5_6(release: str) -> None:
    old, oldest = (shipped(Release.parse(r)) for r in (release, "0.5.6"))
    differ = set()
    for name, handler in handlers_by_name(Release.parse(release)):
        if not name.startswith(("early.", "late.")):
            prints = [
                {known[k] for k in find(handler.place(Release.parse(release)), index(known))} for known in (old, oldest)
            ]
            differ |= {name} if prints[0] != prints[1] else set()
    assert differ <= BOUNDED


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
