"""Binding on words with places; agreement with the real argparse is in `test_argparse.py`."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.binding import Binding, Unknown, bind, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.syntax.word import Fragment, Place, Word, literal, unknown
from spec_lsp.syntax.yaml.config import read_config

NEWEST = "0.5.23"


def bound(line: str, release: str = NEWEST, program: str = "launch_server", model: bool = True) -> Binding:
    """Bind a line of words; `$X` is an unknown word, `$@` any number of unknown words, `--flag=$X` has an unknown value."""
    text = ("--model-path m " if model else "") + line
    words: list[Word] = []
    position = 0
    for word in text.split(" "):
        place = Place("run.sh", position, position + len(word))
        position += len(word) + 1
        if word == "$@":
            words.append(unknown(place, "the script's own arguments", splat=True))
        elif "$" in word:
            at = word.index("$")
            known = Fragment(word[:at], Place("run.sh", place.start, place.start + at))
            rest = Fragment(None, Place("run.sh", place.start + at, place.end), False, "from the environment")
            words.append(Word((known, rest) if at else (rest,), place))
        else:
            words.append(literal(word, place))
    return bind(load(Release.parse(release)), words, program=program)


def kinds(binding: Binding) -> list[str]:
    return [e.kind for e in binding.errors]


# --- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--tp-size 8", "tp_size", 8),
        ("--tp 8", "tp_size", 8),
        ("--tensor-parallel-size=8", "tp_size", 8),
        ("--tp 4 --tp-size 8", "tp_size", 8),
        ("--mem-fraction-static .85", "mem_fraction_static", 0.85),
        ("--trust-remote-code", "trust_remote_code", True),
        ("--no-enable-tf32-matmul", "enable_tf32_matmul", False),
        ("--max-total-tokens 4Ki", "max_total_tokens", 4096),
        ("--max-total-tokens 1.5k", "max_total_tokens", 1500),
        ("--cuda-graph-bs-decode 1 2 4", "cuda_graph_bs_decode", [1, 2, 4]),
        ("--lora-paths a=/x {\"lora_name\":\"b\",\"lora_path\":\"/y\"}", "lora_paths", ["a=/x", {"lora_name": "b", "lora_path": "/y"}]),
        ("--quantization-param-path None", "quantization_param_path", None),
        ("--model-checksum --tp 2", "model_checksum", ""),
        ("--chunked-prefill-size -1", "chunked_prefill_size", -1),
        ("--monokernel-backend amd", "enable_amd_monokernel", True),
        ("--enable-dp-attention", "enable_dp_attention", True),
    ],
)  # fmt: skip
def test_values(line: str, field: str, value: object) -> None:
    binding = bound(line)
    assert not binding.errors
    assert binding.settings[field].value == value
    assert type(binding.settings[field].value) is type(value)


def test_old_releases_fill_the_same_fields() -> None:
    assert bound("--tensor-parallel-size 4 --ep 2", "0.5.9").settings.keys() == {"model_path", "tp_size", "ep_size"}


def test_a_setting_says_where_and_how_it_is_written() -> None:
    binding = bound("--page-size=16 --tp 8")
    page, tp = binding.settings["page_size"], binding.settings["tp_size"]
    assert (page.spelled, tp.spelled) == ("--page-size=16", "--tp 8")
    assert page.values[0].place == Place("run.sh", 27, 29)
    assert tp.flag.place == Place("run.sh", 30, 34)
    assert tp.spelling == "--tp"
    assert tp.definition.name == "--tp-size"


# --- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "at", "message"),
    [
        ("--max-model-len 4096", "unknown-flag", "--max-model-len", "has no flag `--max-model-len`. Did you mean `--context-length`?"),
        ("--tp_size 8", "unknown-flag", "--tp_size", "Did you mean `--tp-size`?"),
        ("--cuda-graph-max-bs 8", "ambiguous-prefix", "--cuda-graph-max-bs", "may mean `--cuda-graph-max-bs-"),
        ("--attention-backend flashinfr", "invalid-choice", "flashinfr", "Did you mean `flashinfer`?"),
        ("--tp-size two", "invalid-value", "two", "`--tp-size` expects a whole number, not `two`."),
        ("--tp-size=two", "invalid-value", "two", "`--tp-size` expects a whole number"),
        ("--tp-size", "missing-value", "--tp-size", "`--tp-size` needs a value, and none is given"),
        ("--cuda-graph-bs-decode --tp 2", "missing-value", "--cuda-graph-bs-decode", "at least one value"),
        ("--trust-remote-code=true", "unexpected-value", "--trust-remote-code=true", "is a switch and accepts no value"),
        ("--trust-remote-code true", "stray-argument", "true", "`--trust-remote-code` is a switch and accepts no value, so `true` belongs to no flag"),
        ("--tp-size 8 16", "stray-argument", "16", "`16` belongs to no flag"),
        ("--log-level loud", "invalid-value", "loud", "no log level"),
        ("--max-total-tokens 1.5Ki", "invalid-value", "1.5Ki", "a whole number before Ki"),
        ('--cuda-graph-config {"decode":{"size":1}}', "invalid-value", '{"decode":{"size":1}}', "not 'size'"),
        ("--lora-paths {\"a\":1}", "invalid-value", '{"a":1}', "lora_name"),
    ],
)  # fmt: skip
def test_errors(line: str, kind: str, at: str, message: str) -> None:
    binding = bound(line)
    assert kinds(binding) == [kind]
    error = binding.errors[0]
    assert error.fatal
    assert message in error.message
    assert error.place is not None
    assert ("--model-path m " + line)[error.place.start : error.place.end] == at


def test_a_missing_model() -> None:
    error = bound("--tp-size 8", model=False).errors[0]
    assert (error.kind, error.place, error.typed) == ("required", None, "--model-path")


def test_all_errors_are_reported_and_argparses_own_comes_first() -> None:
    binding = bound("--unknown-thing 3 --tp-size x --disable-flashinfer --page-size", model=False)
    assert kinds(binding) == ["ambiguous-prefix", "invalid-value", "missing-value", "required", "unknown-flag"]


@pytest.mark.parametrize(
    ("line", "release", "message"),
    [
        ("--attn-dp-size 8", "0.5.9", "it came with 0.5.22"),
        ("--cuda-graph-bs 1", "0.5.9", None),
        ("--enable-ep-moe", "0.5.9", "it was removed in"),
        ("--enable-ep-moe", "0.5.3.post3", "refuses to start with `--enable-ep-moe`"),
        ("--attention-backend dsv4", "0.5.9", "it came with"),
    ],
)
def test_an_error_knows_the_history(line: str, release: str, message: str | None) -> None:
    errors = bound(line, release).errors
    assert [message in e.message for e in errors if message] == ([True] if message else [])


@pytest.mark.parametrize(
    ("line", "release", "suggestion"),
    [
        ("--cuda-graph-max-bs 8", "0.5.23", "--cuda-graph-max-bs-decode"),
        ("--enable-deepep-moe", "0.5.23", "--moe-a2a-backend deepep"),
        ("--enable-deepep-moe", "0.5.3.post3", "--moe-a2a-backend deepep"),
        ("--attn-dp-size 2", "0.5.9", None),
        ("--gpu-memory-utilization 0.9", "0.5.9", "--mem-fraction-static"),
        ("--num-speculative-tokens 4", "0.5.9", "--speculative-num-draft-tokens"),
        ("--speculative-model x", "0.5.9", "--speculative-draft-model-path"),
        ("--atention-backend fa3", "0.5.9", "--attention-backend"),
        ("--attention-backend FA3", "0.5.9", "fa3"),
        ("--quantization nothing-like-it", "0.5.9", None),
        ("--no-such-thing-at-all", "0.5.9", None),
    ],
)
def test_suggestions(line: str, release: str, suggestion: str | None) -> None:
    assert [e.suggestion for e in bound(line, release).errors] == [suggestion]


# --- what the document does not tell -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["--tp-size $TP", "--tp-size=$TP", "--tp-size 4 --tp-size $TP", "--tensor-parallel-s=$TP"],
)
def test_an_unknown_value_is_unknown(line: str) -> None:
    binding = bound(line)
    assert not binding.errors
    assert isinstance(binding.settings["tp_size"].value, Unknown)
    assert binding.settings["tp_size"].value.reason == "from the environment"
    assert not binding.open


@pytest.mark.parametrize(
    "line",
    ["$@", "$EXTRA", "$EXTRA 8", "--trust-remote-code $EXTRA", "$@ --tp-size 8", "--tp-size $@", "--cuda-graph-bs-decode $@", "--$FLAG 8"],
)  # fmt: skip
def test_words_that_may_be_anything_make_no_error(line: str) -> None:
    binding = bound(line, model=False)
    assert not binding.errors
    assert binding.open


def test_errors_before_unknown_words_stay() -> None:
    assert kinds(bound("--tp-size x $@")) == ["invalid-value"]
    assert kinds(bound("$@ --no-such-flag 3")) == ["unknown-flag"]


@pytest.mark.parametrize(
    ("line", "opened"), [("--tp-size {}", False), ("{} --tp-size 2", True), ("--cuda-graph-bs-decode {}", True)]
)
def test_an_unquoted_variable_is_the_value_of_the_flag_before_it(line: str, opened: bool) -> None:
    words = []
    for i, text in enumerate(f"--model-path m {line}".split()):
        place = Place("run.sh", i * 100, i * 100 + len(text))
        variable = Word((Fragment(None, place, False, "from the environment"),), place, splat=True, scalar=True)
        words.append(variable if text == "{}" else literal(text, place))
    binding = bind(load(Release.parse(NEWEST)), words)
    assert not binding.errors
    assert bool(binding.open) is opened


@pytest.mark.parametrize(
    ("line", "kind", "typed"),
    [
        ("--nodes=$N", "unknown-flag", "--nodes"),
        ("--reasoning_parser=$P --tp-size 2", "unknown-flag", "--reasoning_parser"),
        ("--cuda-graph-bs=$N", "ambiguous-prefix", "--cuda-graph-bs"),
        ("--nodes=$N $@ --page-size 64", "unknown-flag", "--nodes"),
    ],
)
def test_a_flag_is_known_whatever_its_value_is(line: str, kind: str, typed: str) -> None:
    (error,) = bound(line, "0.5.23").errors
    assert (error.kind, error.typed) == (kind, typed)


def test_a_list_with_an_unknown_word_is_unknown() -> None:
    binding = bound("--cuda-graph-bs-decode 1 $X 4 --tp-size 8")
    assert isinstance(binding.settings["cuda_graph_bs_decode"].value, Unknown)
    assert binding.settings["tp_size"].value == 8


# --- notes -------------------------------------------------------------------------------------------------------------


def test_notes() -> None:
    notes = {n.kind: n for n in bound("--tp 2 --disable-cuda-graph --page-size 16 --page-size 64").notes}
    assert notes["prefix"].suggestion == "--tp-size"
    assert "`--page-size 16` has no effect: `--page-size 64` comes later and wins" in notes["repeated"].message
    assert "deprecated" in notes["deprecated"].message
    assert not [n for n in bound("--page-size 64 --page-size 64").notes if n.kind == "repeated"]
    assert [n.kind for n in bound("--help --no-such-flag").notes] == ["help"]
    assert not bound("--help --no-such-flag").errors


# --- sglang serve ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "release", "expected"),
    [
        ("m --tp-size 2", "0.5.23", []),
        ("m --tp-size 2", "0.5.9", ["required", "stray-argument"]),
        ("--model m", "0.5.23", []),
        ("--model m", "0.5.9", ["required"]),
        ("--model-path m", "0.5.9", []),
        ("--model-path=m", "0.5.9", []),
        ("--tp-size 2", "0.5.23", ["required"]),
        ("$MODEL --tp-size 2", "0.5.23", []),
        ("$@", "0.5.23", []),
        ("m --model-type llm", "0.5.23", []),
        ("--model-type=llm --model-path m", "0.5.10.post1", []),
        ("--model-type llm --model-path m", "0.5.9", ["unknown-flag"]),
        ("m --model-path n", "0.5.23", []),
    ],
)
def test_serve(line: str, release: str, expected: list[str]) -> None:
    assert kinds(bound(line, release, "serve", model=False)) == expected


def test_serve_takes_the_model_as_its_first_word() -> None:
    setting = bound("m", program="serve", model=False).settings["model_path"]
    assert (setting.value, setting.spelled) == ("m", "m")
    assert setting.values[0].place == Place("run.sh", 0, 1)


def test_serve_did_not_always_exist() -> None:
    assert [n.kind for n in bound("--model-path m", "0.5.2", "serve", model=False).notes] == ["no-serve"]


def test_programs_with_flags_of_their_own() -> None:
    binding = bound("--batch-size 1 --tp-size x", program="one_batch", model=False)
    assert kinds(binding) == ["invalid-value"]


# --- --config ----------------------------------------------------------------------------------------------------------


def with_file(line: str, text: str | None, release: str = NEWEST) -> Binding:
    def read(path: str) -> tuple[str, str]:
        if text is None or path != "c.yaml":
            raise FileNotFoundError(path)
        return path, text

    return bind(load(Release.parse(release)), words_from(line.split()), read_config=read)


@pytest.mark.parametrize(
    ("text", "release", "settings"),
    [
        ("model-path: m\ntp-size: 4\n", "0.5.23", {"model_path": "m", "tp_size": 4}),
        ("trust-remote-code: true\n", "0.5.23", {"trust_remote_code": True}),
        ("trust-remote-code: false\n", "0.5.23", {}),
        ("served-model-name: true\n", "0.5.23", {"served_model_name": "true"}),
        ("served-model-name: null\n", "0.5.23", {"served_model_name": "None"}),
        ("cuda-graph-bs-decode: [1, 2]\n", "0.5.23", {"cuda_graph_bs_decode": [1, 2]}),
        ("cuda-graph-bs-decode: []\n", "0.5.23", {}),
        ("mm-process-config: {image: {a: 1}}\n", "0.5.23", {"mm_process_config": {"image": {"a": 1}}}),
        ("json-model-override-args: {a: 1}\n", "0.5.9", {"json_model_override_args": "{'a': 1}"}),
        ("mamba-scheduler-strategy: auto\n", "0.5.9", {"mamba_scheduler_strategy": "auto"}),
    ],
)
def test_a_config_file_becomes_words(text: str, release: str, settings: dict[str, object]) -> None:
    binding = with_file(
        "--model-path x --config c.yaml" if "model-path" not in text else "--config c.yaml", text, release
    )
    assert not binding.errors
    found = {k: s.value for k, s in binding.settings.items() if s.from_config}
    assert found == settings


def test_the_command_line_wins_over_the_file() -> None:
    binding = with_file("--config c.yaml --tp-size 2 --model-path m", "tp-size: 4\n")
    setting = binding.settings["tp_size"]
    assert (setting.value, setting.from_config, [s.value for s in setting.losers]) == (2, False, [4])
    assert not binding.notes


@pytest.mark.parametrize(
    ("line", "text", "release", "expected", "fatal"),
    [
        ("--config c.yaml", "tp_size: 4\n", "0.5.23", "unknown-flag", True),
        ("--config c.yaml", "trust-remote-code: 'true'\n", "0.5.23", "stray-argument", True),
        ("--config c.yaml", "lora-paths: [a]\n", "0.5.23", "config-not-mapping", True),
        ("--config c.yaml", "- a\n", "0.5.23", "config-not-mapping", True),
        ("--config c.yaml", "a: [\n", "0.5.23", "config-not-mapping", True),
        ("--config c.yaml", None, "0.5.23", "config-missing", True),
        ("--config c.json", "", "0.5.23", "config-missing", True),
        ("--config c.yaml --config c.yaml", "", "0.5.23", "config-twice", True),
        ("--config", "", "0.5.23", "missing-value", True),
        ("--config=c.yaml", "", "0.5.23", "config-ignored", False),
        ("--conf c.yaml", "", "0.5.23", "config-ignored", False),
        ("--config c.yaml", "", "0.5.2", "unknown-flag", True),
    ],
)
def test_config_errors(line: str, text: str | None, release: str, expected: str, fatal: bool) -> None:
    binding = with_file(f"--model-path m {line}", text, release)
    assert kinds(binding) == [expected]
    assert binding.fatal is fatal


def test_a_file_that_cannot_be_seen_may_set_anything() -> None:
    words = words_from(["--config", "/etc/c.yaml", "--tp-size", "2"])
    binding = bind(load(Release.parse(NEWEST)), words, read_config=lambda _: None)
    assert not binding.errors
    assert binding.open


def test_a_config_file_that_no_launch_names() -> None:
    text = "tp-size: 4\npage_size: 64\n"
    words = words_from(["--config", "c.yaml"])
    binding = bind(load(Release.parse(NEWEST)), words, program="config", read_config=lambda name: (name, text))
    assert kinds(binding) == ["unknown-flag"]
    error = binding.errors[0]
    assert error.place is not None
    assert (error.place.document, text[error.place.start : error.place.end]) == ("c.yaml", "page_size")
    assert error.from_config
    assert (
        error.message
        == "SGLang turns the key `page_size` into the flag `--page_size`, which SGLang 0.5.23 does not have. Write `page-size`."
    )
    assert binding.settings["tp_size"].spelled == "tp-size: 4"


def test_a_file_that_was_read_already() -> None:
    file = read_config("run.sh", "tp-size: 4\n")
    binding = bind(
        load(Release.parse(NEWEST)), words_from(["--config", "c.yaml", "--model-path", "m"]), read_config=lambda _: file
    )
    assert binding.settings["tp_size"].value == 4


@pytest.mark.parametrize(
    ("text", "release", "expected"),
    [("8080: x\n", "0.5.23", ["config-not-mapping"]), ("8080: x\n", "0.5.7", ["unknown-flag"])],
)
def test_a_key_that_is_no_text(text: str, release: str, expected: list[str]) -> None:
    assert kinds(with_file("--model-path m --config c.yaml", text, release)) == expected


@pytest.mark.parametrize("text", ["--tp 8", "--trust-remote-code true", "--page-size  64"])
def test_a_flag_and_its_value_in_one_word(text: str) -> None:
    words = [*words_from(["--model-path", "m"]), literal(text, Place("pod.yaml", 0, len(text)))]
    (error,) = bind(load(Release.parse(NEWEST)), words).errors
    assert (error.kind, "one word here" in error.message) == ("stray-argument", True)


def test_values_that_dynamo_adds() -> None:
    assert kinds(bound("--load-format gms", program="dynamo")) == []
    assert kinds(bound("--load-format gms")) == ["invalid-choice"]
    assert kinds(bound("--load-format safetensor", program="dynamo")) == ["invalid-choice"]


def test_a_value_of_another_server_is_understood() -> None:
    (error,) = bound("--kv-cache-dtype fp8").errors
    assert error.suggestion == "fp8_e4m3"
