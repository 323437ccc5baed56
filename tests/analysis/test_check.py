"""What is said of whole texts: severity, rule, the text underlined, a part of the message."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.analysis import Cache, analyse, read_document
from spec_lsp.analysis.check import errors
from spec_lsp.analysis.inputs import Options
from spec_lsp.resolution.engine import RULES
from tests.analysis.support import NAME, NOTHING, PINNED, SERVER, Memory, check, offered, only, rules_of, said

DRAFT = "--speculative-algorithm EAGLE3 --speculative-draft-model-path eagle3-draft"


@pytest.mark.parametrize(
    ("words", "severity", "rule", "place", "part"),
    [
        # argparse
        ("--max-model-len 4096", "error", "unknown-flag", "--max-model-len", "`--context-length`"),
        ("--disable-flashinfer", "error", "ambiguous-flag", "--disable-flashinfer", "may mean"),
        ("--attention-backend flash", "error", "invalid-choice", "flash", ""),
        ("--attention-backend=flash", "error", "invalid-choice", "flash", ""),
        ("--tp two", "error", "invalid-value", "two", ""),
        ("--tp-size", "error", "missing-value", "--tp-size", ""),
        ("--trust-remote-code=true", "error", "unexpected-value", "--trust-remote-code=true", "switch"),
        ("--tp 2 4", "error", "stray-argument", "4", ""),
        ("--page-size 16 --page-size 32", "warning", "repeated-flag", "--page-size", "`--page-size 32` comes later"),
        ("--enable-dp-attention --dp 2 --tp 2", "hint", "deprecated-flag", "--enable-dp-attention", "deprecated"),
        ("--config a.yaml --config b.yaml", "error", "config-given-twice", "--config", "Merge the files"),
        ("--config=none.yaml", "warning", "config-ignored", "--config=none.yaml", ""),
        # resolution
        ("--tp 3", "error", "", "--tp 3", ""),
        ("--speculative-algorithm EAGLE3", "error", "draft-of-another-kind", "--speculative-algorithm EAGLE3", "weights"),
    ],
)  # fmt: skip
def test_one_finding(words: str, severity: str, rule: str, place: str, part: str) -> None:
    text = f"{PINNED}{SERVER} {words}\n"
    found = [d for d in check(text).diagnostics if d.severity == severity]
    shown = [(d.rule.name, text[d.place.start : d.place.end]) for d in found]
    assert any((rule or d.rule.name) == d.rule.name and text[d.place.start : d.place.end] == place for d in found), (
        shown
    )
    assert any(part in d.message for d in found)


@pytest.mark.parametrize(
    "text",
    [
        SERVER,
        f"{SERVER} --tp 2 --page-size 1",
        f"{SERVER} {DRAFT}",
        "",
        "echo hello\n",
        "python train.py --max-model-len 3\n",
        "sglang serve llama-3.1-8b --tp 2",
        f'{SERVER} "$@"',
        f"{SERVER} --tp $TP $EXTRA",
        f'{SERVER} --tp 2 --nnodes 2 --node-rank 0 "$@"',
        f"{SERVER} --tp 2 --nnodes 2 --node-rank $RANK $EXTRA",
        f"{SERVER} --tp 2 --nnodes 2 --node-rank 1 --config $CONFIG",
        f"{SERVER} --tp 2 --nnodes 2 --node-rank 1 --dist-init-addr $LEADER:5000",
        f"{SERVER} --tp 2 --nnodes $NODES --node-rank $RANK",
        f"export SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE=$METHOD\n{SERVER} --tp 2 --nnodes 2 --node-rank 1",
    ],
)
def test_nothing_wrong(text: str) -> None:
    assert [one for one in said(PINNED + text) if one[0] in ("error", "warning")] == []


def test_nodes_without_an_address_are_told_where_no_words_can_come() -> None:
    assert "nodes-without-meeting-place" in rules_of(f"{PINNED}{SERVER} --tp 2 --nnodes 2 --node-rank 0")


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "\0", "#", "a" * 5000, "'", "${", "python -m sglang.launch_server --tp", "((((", "a\r\nb\r"]
)
def test_any_text_is_taken(text: str) -> None:
    check(text)


# --- worlds ------------------------------------------------------------------------------------------------------------


def test_removed_flag_with_no_release_named_is_a_warning_since() -> None:
    text = f"# spec-lsp: gpu=h100\n{SERVER} --stream-output"
    found = only(text, "unknown-flag")
    assert found.severity == "warning"
    assert "since 0.5.20" in found.message


def test_flag_that_no_release_has_is_an_error() -> None:
    assert only(f"# spec-lsp: gpu=h100\n{SERVER} --no-such-flag-at-all 3", "unknown-flag").severity == "error"


def test_branch_of_the_script() -> None:
    text = f"{PINNED}if [ $1 = big ]; then TP=two; else TP=2; fi\n{SERVER} --tp $TP"
    found = only(text, "invalid-value")
    assert found.severity == "warning"
    assert "This holds when" in found.message


def test_hardware_that_refuses_is_named() -> None:
    text = f"# spec-lsp: sglang=0.5.23\n{SERVER} --attention-backend fa3"
    found = [d for d in check(text).diagnostics if d.severity in ("warning", "error")]
    assert all(d.severity == "warning" for d in found)
    assert all(" on " in d.message for d in found)


# --- places ------------------------------------------------------------------------------------------------------------


def test_value_from_a_variable_points_to_where_it_is_written() -> None:
    text = f"{PINNED}PAGE=banana\n{SERVER} --page-size $PAGE"
    found = only(text, "invalid-value")
    places = [found.place, *(r.place for r in found.related)]
    assert {text[p.start : p.end] for p in places} & {"$PAGE", "banana"}


def test_config_file_of_the_workspace() -> None:
    config = "tp-size: two\n"
    workspace = Memory({"/w/c.yaml": config})
    analysis = check(f"{PINNED}{SERVER} --config c.yaml", workspace=workspace)
    (found,) = [d for d in analysis.diagnostics if d.severity == "error"]
    assert found.place.document == "/w/c.yaml"
    assert config[found.place.start : found.place.end] == "two"
    assert [r.place.document for r in found.related if "uses this file" in r.message] == [NAME]
    assert "/w/c.yaml" in analysis.depends_on


def test_config_file_of_a_here_document() -> None:
    text = f"{PINNED}cat > c.yaml <<EOF\ntp-size: two\nEOF\n{SERVER} --config c.yaml"
    assert ("error", "invalid-value", "two") in said(text)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_line_ends(ends: str) -> None:
    text = (PINNED + f"# é‸😀\n{SERVER} \\\n  --tp two\n").replace("\n", ends)
    assert ("error", "invalid-value", "two") in said(text)


# --- order, keys, severities, cache ------------------------------------------------------------------------------------


def test_document_order() -> None:
    text = f"{PINNED}{SERVER} --tp two\n{SERVER} --pp three --max-model-len 3\n"
    starts = [d.place.start for d in check(text).diagnostics]
    assert starts == sorted(starts)


def test_keys_hold_no_offsets_and_tell_findings_apart() -> None:
    text = f"{SERVER} --tp two --pp three\n{SERVER} --tp two\n"
    keys = [d.key for d in check(PINNED + text).diagnostics]
    assert len(set(keys)) == len(keys) == 3
    assert [d.key for d in check(PINNED + "# more\n" * 5 + text).diagnostics] == keys


@pytest.mark.parametrize("severity", ["warning", "information", "hint"])
def test_severity_of_the_settings(severity: str) -> None:
    options = Options(severities={"invalid-value": severity})  # type: ignore[dict-item]
    assert only(f"{PINNED}{SERVER} --tp two", "invalid-value", options=options).severity == severity


def test_rule_that_is_off() -> None:
    assert rules_of(f"{PINNED}{SERVER} --tp two", options=Options(severities={"invalid-value": "off"})) == []


def test_errors_counts() -> None:
    assert errors(check(f"{PINNED}{SERVER} --tp two --pp three").diagnostics) == 2


def test_cache_gives_the_same_at_other_places() -> None:
    cache = Cache()
    text = f"{SERVER} --tp two\n"

    def run(prefix: str) -> list[tuple[str, str, int]]:
        document = read_document(NAME, PINNED + prefix + text, NOTHING)
        found = analyse(document, Options(), NOTHING, cache).diagnostics
        return [(d.key, d.message, d.place.start - len(prefix)) for d in found]

    assert run("") == run("# another line\n") == run("")


LAUNCH = "python -m sglang.launch_server --tp 3 --model-path"


@pytest.mark.parametrize(
    "text",
    [
        f"{LAUNCH} $MODELS/Qwen3-32B",
        f'{LAUNCH} "${{MODELS:?}}/Qwen/Qwen3-32B-AWQ"',
        f"{LAUNCH} $(pwd)/Qwen3-32B/",
        f"{LAUNCH}=$1/Qwen3-32B",
        f"for SIZE in 32B; do {LAUNCH} $HOME/Qwen3-$SIZE; done",
    ],
)
def test_a_model_in_a_folder_that_is_not_known_is_known_by_its_name(text: str) -> None:
    found = only(f"{PINNED}{text}\n", "attention-heads-not-divisible-by-ranks")
    assert "64 attention heads" in found.message


@pytest.mark.parametrize("path", ["$MODEL", "$MODELS/$NAME", "$MODELS/", "$PREFIX-Qwen3-32B", "Qwen3-32B/$REVISION"])
def test_a_name_that_is_not_known_whole_is_no_model(path: str) -> None:
    assert "attention-heads-not-divisible-by-ranks" not in rules_of(f"{PINNED}{LAUNCH} {path}\n")


def test_another_name_in_a_folder_that_is_not_known_is_another_model() -> None:
    cache = Cache()

    def heads(name: str) -> bool:
        document = read_document(NAME, f"{PINNED}{LAUNCH} $MODELS/{name}\n", NOTHING)
        found = analyse(document, Options(), NOTHING, cache).diagnostics
        return "attention-heads-not-divisible-by-ranks" in [d.rule.name for d in found]

    assert [heads(name) for name in ("Qwen3-32B", "nobody-knows", "Qwen3-32B")] == [True, False, True]


def test_cache_forgets_what_was_not_asked_for_longest() -> None:
    cache: Any = Cache(2)
    cache.put("a", "first")
    cache.put("b", "second")
    assert cache.get("a") == "first"
    cache.put("c", "third")
    assert [cache.get(key) for key in "abc"] == ["first", None, "third"]
    cache.clear()
    assert cache.get("a") is None


def test_every_rule_has_words_for_people() -> None:
    for rule in RULES.values():
        assert rule.summary.endswith("."), rule.name
        assert rule.explanation, rule.name
        assert rule.code[:3] == "SPC", rule.name


def test_broken_continuations_are_findings_of_the_document() -> None:
    text = f"{PINNED}{SERVER} \\\n  # a comment\n  --tp 2\n"
    found = only(text, "flags-after-comment")
    assert (found.severity, found.launch) == ("error", None)


def test_a_flag_that_launches_share_is_told_of_once() -> None:
    run = 'python -m sglang.launch_server "${COMMON[@]}"'
    text = PINNED + f"COMMON=(--model-path llama-3.1-8b --nope)\n{run} --tp 2\n{run} --tp 4 --no-such\n{run}\n"
    found = [d for d in check(text).diagnostics if d.rule.name == "unknown-flag"]
    assert [(text[d.place.start : d.place.end], d.launch, d.also) for d in found] == [
        ("--nope", 0, (1, 2)),
        ("--no-such", 1, ()),
    ]


def test_a_fix_of_what_launches_share_is_verified_in_all_of_them() -> None:
    run = 'python -m sglang.launch_server "${COMMON[@]}"'
    text = PINNED + f"COMMON=(--model-path llama-3.1-8b --max-model-len 4096)\n{run} --port 1\n{run} --port 2\n"
    (fix,) = offered(text, "unknown-flag")
    assert fix[2] == text.replace("--max-model-len", "--context-length")


@pytest.mark.parametrize("algorithm", ["NEXTN", "EAGLE", "eagle3", "DFLASH"])
@pytest.mark.parametrize("more", ["--some-flag-of-a-fork value", "$EXTRA", '"$@"'])
def test_an_algorithm_of_any_name_is_known_where_flags_are_not(algorithm: str, more: str) -> None:
    """NEXTN is resolved to EAGLE even if the draft and the target may be given elsewhere."""
    text = PINNED + f'python -m sglang.launch_server --model-path "$MODEL" --speculative-algorithm {algorithm} {more}'
    assert "unknown-speculative-algorithm" not in rules_of(text)
