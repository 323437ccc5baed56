import pytest

from spec_lsp.catalog import history
from spec_lsp.catalog.history import Replacement, choice_span, flag_span, replacement, variable_span
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, releases

NEWEST = releases()[-1]


@pytest.mark.parametrize(
    ("spelling", "since", "until"),
    [
        ("--tp-size", "0.4.6.post5", None),
        ("--speculative-use-rejection-sampling", "0.5.14", None),
        ("--enable-ep-moe", "0.4.6.post5", "0.5.4.post3"),
        ("--cuda-graph-max-bs", "0.4.6.post5", "0.5.20"),
        ("--config", "0.5.3.post3", None),
    ],
)
def test_flags(spelling: str, since: str, until: str | None) -> None:
    span = flag_span(spelling)
    assert span is not None
    assert (str(span.since), span.until and str(span.until)) == (since, until)
    assert Release.parse(since) in span
    assert span.until is None or span.until not in span


def test_what_never_was() -> None:
    assert flag_span("--max-model-len") is None
    assert choice_span("attention_backend", "flash") is None
    assert variable_span("SGLANG_ARGS") is None


def test_choices_and_variables() -> None:
    span = choice_span("attention_backend", "dsv4")
    assert span is not None
    assert span.until is None
    assert not span.from_the_start
    spec = variable_span("SGLANG_ENABLE_SPEC_V2")
    assert spec is not None
    assert str(spec.until) == "0.5.21"


@pytest.mark.parametrize(
    ("name", "release", "instead"),
    [
        ("--cuda-graph-max-bs", "0.5.19", "--cuda-graph-max-bs-decode"),
        ("--nsa-prefill", "0.5.9", "--nsa-prefill-backend"),
        ("--nsa-prefill", "0.5.23", "--dsa-prefill-backend"),
        ("--enable-deepep-moe", "0.5.23", "--moe-a2a-backend deepep"),
        ("SGL_DG_CACHE_DIR", "0.5.23", "SGLANG_DG_CACHE_DIR"),
    ],
)
def test_replacements(name: str, release: str, instead: str) -> None:
    found = replacement(name, Release.parse(release))
    assert found is not None
    assert found.instead == instead


def test_nothing_replaces_what_is_fine() -> None:
    assert replacement("--tp-size") is None
    assert replacement("SGLANG_CACHE_DIR") is None


def test_every_removed_flag_has_an_entry() -> None:
    gone = [s for s, span in history._flags().items() if span.until is not None and not s.startswith("--no-")]
    assert [s for s in gone if replacement(s) is None] == []


def test_entries_name_what_exists() -> None:
    def exists(name: str) -> bool:
        return name in load(NEWEST).by_spelling or name in environment(NEWEST)

    for name, entry in history._replacements().items():
        assert (flag_span if name.startswith("-") else variable_span)(name), f"{name} never existed"
        found = replacement(name)
        assert found is not None
        assert not found.instead or exists(found.name), f"{name}: {found.instead} does not exist"
        flag = load(NEWEST).flag(found.name)
        value = found.instead.partition(" ")[2]
        assert not value or flag is None or not flag.choices or value in flag.choices, f"{name}: {found.instead}"
        assert entry.instead or entry.note


def test_the_name_of_a_replacement() -> None:
    assert Replacement("--moe-a2a-backend deepep").name == "--moe-a2a-backend"
    assert Replacement("SGLANG_X=1").name == "SGLANG_X"
