"""What the keyword arguments of engines mean."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.catalog.binding import Binding, Unknown
from spec_lsp.catalog.keywords import bind_keywords, fields_of
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from spec_lsp.syntax.word import Place, Word, literal, unknown

NOWHERE = Place("a.py", 0, 0)


def bound(release: str = "", /, **sources: str | None) -> Binding:
    words: list[Word] = []
    for name, source in sources.items():
        words += [literal(name, NOWHERE), unknown(NOWHERE, "computed") if source is None else literal(source, NOWHERE)]
    return bind_keywords(load(Release.parse(release) if release else releases()[-1]), words)


VALUES: list[tuple[str, str, Any]] = [
    ("tp_size", "8", 8),
    ("tp_size", "0x10", 16),
    ("mem_fraction_static", "0.85", 0.85),
    ("mem_fraction_static", "1", 1),
    ("attention_backend", '"fa3"', "fa3"),
    ("attention_backend", "'fa3'", "fa3"),
    ("trust_remote_code", "True", True),
    ("disable_radix_cache", "False", False),
    ("cuda_graph_bs_decode", "[1, 2]", [1, 2]),
    ("cuda_graph_bs_decode", "(1, 2)", [1, 2]),
    ("quantization", "None", None),
    ("model_path", '"a" "b"', "ab"),
]


@pytest.mark.parametrize(("name", "source", "value"), VALUES)
def test_values(name: str, source: str, value: Any) -> None:
    binding = bound(**{name: source})
    assert binding.errors == ()
    setting = binding.settings[name]
    assert setting.value == value
    assert type(setting.value) is type(value)
    assert setting.spelled == f"{name}={source}"


UNKNOWN = [
    ("tp_size", '"8"'),  # no flag would give a text, and nobody checks it here
    ("tp_size", "True"),
    ("attention_backend", '"typo"'),  # choices are not checked at this entrance
    ("trust_remote_code", '"yes"'),
    ("cuda_graph_bs_decode", '["a"]'),
    ("tp_size", "None"),
    ("tp_size", "n"),
    ("tp_size", "(" * 500),
    ("tp_size", None),
]


@pytest.mark.parametrize(("name", "source"), UNKNOWN)
def test_values_that_no_flag_gives_are_unknown(name: str, source: str | None) -> None:
    binding = bound(**{name: source})
    assert binding.errors == ()
    assert isinstance(binding.settings[name].value, Unknown)


REFUSED = [
    ("tp", "tp_size", ""),
    ("dp", "dp_size", ""),
    ("tensor_parallel_size", "tp_size", ""),
    ("max_model_len", "context_length", ""),
    ("gpu_memory_utilization", "mem_fraction_static", ""),
    ("speculative_num_step", "speculative_num_steps", ""),
    ("zzz", None, ""),
    ("config", None, ""),
    ("help", None, ""),
    ("enable_ep_moe", None, "0.5.20"),
]


@pytest.mark.parametrize(("name", "suggestion", "release"), REFUSED)
def test_keywords_that_python_refuses(name: str, suggestion: str | None, release: str) -> None:
    (error,) = bound(release, **{name: "1"}).errors
    assert (error.kind, error.fatal, error.typed) == ("unknown-flag", True, name)
    assert error.suggestion == suggestion or (name in ("enable_ep_moe", "config", "help"))
    assert "TypeError" in error.message
    assert f"'{name}'" in error.says


@pytest.mark.parametrize("name", ["stat_loggers", "custom_sigquit_handler", "_private"])
def test_fields_without_a_flag(name: str) -> None:
    binding = bound(**{name: "1"})
    assert binding.errors == ()
    assert not binding.settings


def test_unknown_arguments_may_set_any_field() -> None:
    words = (literal("tp_size", NOWHERE), literal("2", NOWHERE), unknown(NOWHERE, "computed", splat=True))
    binding = bind_keywords(load(releases()[-1]), words)
    assert binding.settings["tp_size"].value == 2
    assert binding.open == (words[2],)


@pytest.mark.parametrize("release", [r for r in releases() if str(r) in ("0.4.9.post6", "0.5.9", "0.5.23")], ids=str)
def test_every_field_is_a_keyword(release: Release) -> None:
    fields = fields_of(load(release))
    assert {"model_path", "tp_size", "attention_backend", "page_size", "speculative_eagle_topk"} <= fields.keys()
    assert not {"config", "help"} & fields.keys()


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [
        ("'flashinfr'", "flashinfer"),
        ("'FlashInfer'", "flashinfer"),
        ("'flashinfer'", None),
        ("'somebodys_own'", None),
        ("backend", None),
        ("3", None),
    ],
)
def test_a_slip_in_a_value_is_told(value: str, suggestion: str | None) -> None:
    """Python takes any text, a plugin may know more names: only what is plainly a slip."""
    place = Place("a.py", 0, 1)
    words = [literal("attention_backend", place), literal(value, place)]
    errors = bind_keywords(load(Release.parse("0.5.23")), words).errors
    assert [e.suggestion for e in errors] == ([suggestion] if suggestion else [])
    assert not any(e.fatal for e in errors)
