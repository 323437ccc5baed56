"""Scripts and argument lists that another document holds."""

from __future__ import annotations

import yaml

from spec_lsp.syntax.launch import EmbeddedFile
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_arguments, read_script
from spec_lsp.syntax.source import FileSource
from spec_lsp.syntax.word import Place, Word, literal
from spec_lsp.syntax.yaml.scalars import scalar_word

NAME = "pod.yaml"
POD = r"""command: ["bash", "-c"]
args:
  - |
    export TOPK=4
    python3 -m sglang.launch_server --model-path m \
      --tp ${TP:-8} $EXTRA --speculative-eagle-topk $TOPK --page-size $PS
  - "echo \"é\" && exec sglang serve \
     m --tp 2"
  - |
    if [ "$X" = 1 ]; then
      sglang serve broken --tp 2
"""


def items(key: str) -> list[Word]:
    root = yaml.compose(POD)
    nodes = next(value.value for name, value in root.value if name.value == key)
    source = FileSource(NAME, 0, POD)
    return [scalar_word(n.value, n.style, n.start_mark.index, n.end_mark.index, source) for n in nodes]


def texts(found: CommandResult) -> list[list[str | None]]:
    return [[word.text for word in variant.words] for launch in found.launches for variant in launch.variants]


def written(place: Place) -> str:
    return POD[place.start : place.end]


PAGE_SIZE = literal("64", Place(NAME, 0, 2))


def test_shell_of_an_argument_list_reads_its_script() -> None:
    found = read_arguments(NAME, [*items("command"), items("args")[0]], Around(env={"PS": PAGE_SIZE}))
    words = ["--model-path", "m", "--tp", "8", None, "--speculative-eagle-topk", "4", "--page-size", "64"]
    assert texts(found) == [words]
    (launch,) = found.launches
    (variant,) = launch.variants
    assert launch.syntax == "shell"
    assert written(launch.place) == "python3 -m sglang.launch_server"
    assert written(variant.words[3].place) == "${TP:-8}"
    assert [written(f.place) for f in variant.words[6].fragments] == ["4"]
    assert variant.env["PS"].text == "64"


def test_script_in_a_quoted_scalar_has_places_in_the_file() -> None:
    (launch,) = read_script(NAME, items("args")[1]).launches
    assert [(w.text, written(w.place)) for w in launch.variants[0].words] == [("m", "m"), ("--tp", "--tp"), ("2", "2")]


def test_broken_script_is_read_as_far_as_it_goes() -> None:
    assert texts(read_script(NAME, items("args")[2])) == [["broken", "--tp", "2"]]
    assert texts(read_arguments(NAME, [*items("command"), items("args")[2]])) == [["broken", "--tp", "2"]]


def test_argument_list_that_starts_the_server_itself() -> None:
    words = [
        literal(text, Place(NAME, i, i + 1))
        for i, text in enumerate(["env", "A=1", "sglang", "serve", "m", "--config", "/etc/c.yaml"])
    ]
    config = EmbeddedFile("/etc/c.yaml", literal("tp: 8", Place(NAME, 50, 55)))
    (launch,) = read_arguments(NAME, words, Around(env={"B": PAGE_SIZE}, files=(config,))).launches
    (variant,) = launch.variants
    assert launch.syntax == "yaml-words"
    assert [w.text for w in variant.words] == ["m", "--config", "/etc/c.yaml"]
    assert {name: word.text for name, word in variant.env.items()} == {"A": "1", "B": "64"}
    assert [(f.name, f.content.text) for f in variant.files] == [("/etc/c.yaml", "tp: 8")]


def test_nothing_is_started() -> None:
    assert read_arguments(NAME, []) == CommandResult()
    assert read_arguments(NAME, [literal("redis-server", Place(NAME, 0, 12))]) == CommandResult()
    assert read_script(NAME, Word((), Place(NAME, 0, 0))).launches == ()


def test_long_scripts_take_time_in_proportion() -> None:
    """A fragment is found by its offset, not by going through all of them."""
    line = "echo some words here\n"
    text = line * 3_000 + "sglang serve m --tp 2\n"
    word = Word(
        tuple(
            f
            for i, part in enumerate(text.splitlines(True))
            for f in literal(part, Place(NAME, i * 30, i * 30 + len(part))).fragments
        ),
        Place(NAME, 0, 100_000),
    )
    assert texts(read_script(NAME, word)) == [["m", "--tp", "2"]]
