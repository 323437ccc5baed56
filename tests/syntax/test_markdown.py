"""Markdown, MDX and reStructuredText: which blocks are read, what is typed in them, and what readers must fill in."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.markdown import blocks
from tests.syntax.support import argv, check_maps


def words(text: str, name: str = "README.md") -> list[list[str]]:
    document = parse(name, text)
    check_maps(document)
    return [argv(launch.variants[0]) for launch in document.launches]


LANGUAGES = [
    ("bash", True), ("sh", True), ("shell", True), ("zsh", True), ("Bash", True), ("console", True), ("shell-session", True),
    ("bash title='x'", True), ("bash Launch", True), ("{.bash .numberLines}", True), ("{code-block} bash", True), ("{bash}", True),
    ("bash {1,3}", True), ("", True), ("text", True),
    ("json", False), ("diff", False), ("js", False), ("mermaid", False), ("powershell", False), ("toml", False),
]  # fmt: skip


@pytest.mark.parametrize(("info", "is_read"), LANGUAGES)
def test_languages(info: str, is_read: bool) -> None:
    assert words(f"```{info}\nsglang serve m\n```\n") == ([["m"]] if is_read else [])


BLOCKS: list[tuple[str, list[list[str]]]] = [
    ("~~~bash\nsglang serve m\n~~~\n", [["m"]]),
    ("````bash\nsglang serve m\n```\nsglang serve n\n````\n", [["m"], ["n"]]),
    ("```bash\nsglang serve m\n", [["m"]]),
    ("- a\n  ```bash\n  sglang serve m \\\n    --tp 8\n  ```\n", [["m", "--tp", "8"]]),
    ("1. ```bash\n   sglang serve m\n   ```\n", [["m"]]),
    ("> ```bash\n> sglang serve m \\\n>   --tp 8\n> ```\n", [["m", "--tp", "8"]]),
    ("> > ```bash\n> > sglang serve m\n> > ```\n", [["m"]]),
    ("\t```bash\n\tsglang serve m\n\t```\n", [["m"]]),
    ("```\nINFO sglang serve m\n```\n", []),
    ("```\n$ sglang serve m\nINFO\n```\n", [["m"]]),
    ("text\n\n    sglang serve m\n", [["m"]]),
    ("text\n    sglang serve m\n", []),
    ("`sglang serve m` and ```sglang serve n``` in a line\n", []),
    ("sglang serve m\n", []),
    ("```bash\nexport TP=8\n```\n```bash\nsglang serve m --tp $TP\n```\n", [["m", "--tp", "?+"]]),
    ("```bash\nexport TP=8\nsglang serve m --tp $TP\n```\n", [["m", "--tp", "8"]]),
    ("```bash\n# sglang serve m\n```\n", []),
    ("<Tab>\n```bash\nsglang serve m\n```\n</Tab>\n", [["m"]]),
    (
        ".. code-block:: bash\n   :name: x\n\n   sglang serve m \\\n     --tp 8\n\nsglang serve n\n",
        [["m", "--tp", "8"]],
    ),
    (".. code-block:: python\n\n   print('sglang serve m')\n", []),
    ("Run it::\n\n  sglang serve m \\\n    --tp 8\n\nThen wait.\n", [["m", "--tp", "8"]]),
    ("Run it: ::\n\n  $ sglang serve m\n  INFO\n", [["m"]]),
    ("- Run it\n\n  ::\n\n    sglang serve m\n\n  and wait\n", [["m"]]),
    ("Run it::\n\nsglang serve m\n", []),
    ("Run it::\n  sglang serve m\n", []),
    # Blocks that say no language.
    ("```\ncd x && sglang serve m\n```\n", [["m"]]),
    ("```\n. venv/bin/activate; TP=2 sglang serve m\n```\n", [["m"]]),
    ("```\nnsys profile -o x python3 -m sglang.bench_one_batch --tp 2\n```\n", [["--tp", "2"]]),
    ("```\ndocker run --gpus all img sglang serve m\n```\n", [["m"]]),
    ("```\nINFO: run sglang serve m\n```\n", []),
    ("```\nusage: sglang serve [-h]\n```\n", []),
    # A unit, whatever its block is called.
    (
        "```ini\n# a.service\n[Unit]\nx=y\n[Service]\nExecStart=/bin/sglang serve m \\\n  --tp 2\n```\n",
        [["m", "--tp", "2"]],
    ),
    ("```\n[Service]\nExecStart=docker run img sglang serve m\n```\n", [["m"]]),
    ("```ini\n[run]\ncommand=sglang serve m\n```\n", []),
    # What is not on the page.
    ("<!--\n```bash\nsglang serve m\n```\n-->\n```bash\nsglang serve n\n```\n", [["n"]]),
    ("<!-- old: ```bash\nsglang serve m\n``` -->\n\n    sglang serve n\n", [["n"]]),
    ("<!-- never closed\n```bash\nsglang serve m\n```\n", []),
    ("```bash\n# <!--\nsglang serve m\n```\n", [["m"]]),
    ("a <!-- b\n```bash\nsglang serve m\n```\n", [["m"]]),
]


@pytest.mark.parametrize(("text", "expected"), BLOCKS, ids=range(len(BLOCKS)))
def test_blocks(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


PROMPTS: list[tuple[str, list[list[str]]]] = [
    ("$ sglang serve m\nsglang serve n\n", [["m"]]),
    ("# sglang serve m\nReady\n", [["m"]]),
    ("$ ls\n# sglang serve m\n", []),
    ("(venv) $ sglang serve m\n", [["m"]]),
    ("user@host:~/x$ sglang serve m\n", [["m"]]),
    ("root@host:/# sglang serve m\n", [["m"]]),
    ("% sglang serve m\n", [["m"]]),
    ("❯ sglang serve m\n", [["m"]]),
    ("$ sglang serve m \\\n>   --tp 8\nout\n", [["m", "--tp", "8"]]),
    ("$ sglang serve m \\\n    --tp 8\nout\n", [["m", "--tp", "8"]]),
    ("sglang serve m\n", [["m"]]),
]


CELLS: list[tuple[str, list[list[str]]]] = [
    ("!sglang serve m\n", [["m"]]),
    ("%cd /x\n!nohup python -m sglang.launch_server --tp 2 \\\n  --port 3 > log &\n", [["--tp", "2", "--port", "3"]]),
    ("!pip install sglang\n!sglang serve m\n!!sglang serve n\n", [["m"], ["n"]]),
    ("!sglang serve {model} --tp 2\n", [["?+", "--tp", "2"]]),
    ("!sglang serve <your-model> --tp 2\n", [["?+", "--tp", "2"]]),
    ("!echo sglang serve m\n", []),
]


@pytest.mark.parametrize("language", ["bash", "python", ""])
@pytest.mark.parametrize(("body", "expected"), CELLS, ids=range(len(CELLS)))
def test_lines_that_a_notebook_hands_to_the_shell(body: str, expected: list[list[str]], language: str) -> None:
    assert words(f"```{language}\n{body}```\n") == expected


def test_python_around_lines_that_a_notebook_hands_to_the_shell() -> None:
    body = "!pip install sglang\nimport sglang as sgl\nsgl.Engine(model_path='m')\n!sglang serve n\n"
    assert words(f"```python\n{body}```\n") == [["model_path", "'m'"], ["n"]]


@pytest.mark.parametrize(
    ("first", "is_read"),
    [("#!/bin/bash", True), ("#!/usr/bin/env bash", True), ("#!/usr/bin/env python", False), ("# bash", False)],
)
def test_a_script_in_a_block_that_says_no_language(first: str, is_read: bool) -> None:
    body = f'{first}\n#SBATCH -N 1\nsrun bash -c "cd /x; \\\npython \\\n-m sglang.launch_server --tp 2"\n'
    assert words(f"```\n{body}```\n") == ([["--tp", "2"]] if is_read else [])


@pytest.mark.parametrize(("body", "expected"), PROMPTS, ids=range(len(PROMPTS)))
def test_prompts(body: str, expected: list[list[str]]) -> None:
    assert words(f"```console\n{body}```\n") == expected


PLACEHOLDERS: list[tuple[str, list[str]]] = [
    ("<your-model>", ["?+"]),
    ("<path/to model>", ["?+"]),
    ("--model-path=<model>", ["--model-path=?"]),
    ("{model}", ["?+"]),
    ("{{ model }}", ["?+"]),
    ("/models/{name}/x", ["/models/?/x"]),
    ("[options]", ["?+"]),
    ("[--tp TP]", ["?+"]),
    ("...", ["?+"]),
    ("--tp N --port PORT", ["--tp", "?+", "--port", "?+"]),
    ("--host YOUR_IP", ["--host", "?+"]),
    ("{auto,fp8}", ["?+"]),
    ("--speculative-algorithm EAGLE3", ["--speculative-algorithm", "EAGLE3"]),
    ("--x '{\"a\": 1}'", ["--x", '{"a": 1}']),
    ("--x '[1, 2]'", ["--x", "[1, 2]"]),
    ("--x ${X:-1}", ["--x", "1"]),
    ("m > log.txt", ["m"]),
    ("m <in >out", ["m"]),
]


@pytest.mark.parametrize(("written", "expected"), PLACEHOLDERS)
def test_placeholders(written: str, expected: list[str]) -> None:
    assert words(f"```bash\nsglang serve {written}\n```\n") == [expected]


NESTED: list[tuple[str, str, list[list[str]]]] = [
    ("dockerfile", 'FROM a\nCMD ["sglang", "serve", "m"]\n', [["m"]]),
    ("yaml", "services:\n  a:\n    command: sglang serve m --tp 8\n    image: sglang\n", [["m", "--tp", "8"]]),
    ("python", "import sglang as sgl\nsgl.Engine(model_path='m')\n", [["model_path", "'m'"]]),
    ("makefile", "serve:\n\tsglang serve m\n", [["m"]]),
    ("just", "serve:\n  sglang serve m\n", [["m"]]),
    ("systemd", "[Service]\nExecStart=/bin/sglang serve m\n", [["m"]]),
]


@pytest.mark.parametrize("lead", ["", "   ", "> "])
@pytest.mark.parametrize(("language", "body", "expected"), NESTED, ids=[n[0] for n in NESTED])
def test_documents_in_blocks(language: str, body: str, expected: list[list[str]], lead: str) -> None:
    text = "".join(f"{lead}{line}\n" for line in [f"```{language}", *body.splitlines(), "```"])
    assert words(f"# A page\n\n{text}") == expected


def test_places_of_a_document_in_a_block() -> None:
    text = '1. x\n\n   ```dockerfile\n   FROM a\n   CMD ["sglang", \\\n     "serve", "m"]\n   ```\n'
    (launch,) = parse("a.md", text).launches
    assert text[launch.place.start : launch.place.end].split() == ['"sglang",', "\\", '"serve"']
    (word,) = launch.variants[0].words
    assert text[word.place.start : word.place.end] == '"m"'


def test_elided_lines_are_no_broken_command() -> None:
    broken = "```bash\nsglang serve m \\\n  # why\n  --tp 8\n```\n"
    assert [p.rule for p in parse("a.md", broken).problems] == ["flags-after-comment"]
    assert parse("a.md", broken.replace("# why", "...")).problems == ()


def test_pin_of_the_page() -> None:
    install = "```bash\npip install sglang==0.5.9\n```\n"
    start = "```bash\nsglang serve m\n```\n```bash\ndocker run lmsysorg/sglang:v0.5.12 sglang serve n\n```\n"
    found = parse("a.md", install + start).launches
    assert [[c.text for c in launch.clues] for launch in found] == [["sglang==0.5.9"], ["lmsysorg/sglang:v0.5.12"]]
    two = install + install.replace("0.5.9", "0.5.10") + start
    assert [[c.kind for c in launch.clues] for launch in parse("a.md", two).launches] == [[], ["image"]]


COMMENTS: list[tuple[str, str, list[tuple[str, bool, str | None]]]] = [
    ("a.md", "<!-- spec-lsp: gpu=h100 -->\ntext\n\n```bash\nsglang serve m\n```\n", [("gpu=h100", True, None)]),
    ("a.md", "<!-- spec-lsp: ignore[x] why -->\n\n```bash\nsglang serve m\n```\n", [("ignore[x] why", True, "```bash\nsglang serve m\n```")]),
    ("a.mdx", "{/* spec-lsp: gpu=h100 */}\ntext\n", [("gpu=h100", True, None)]),
    ("a.rst", ".. spec-lsp: gpu=h100\n\ntext\n", [("gpu=h100", True, None)]),
    ("a.md", "```bash\n# spec-lsp: gpu=h100\nsglang serve m # spec-lsp: ignore[x]\n```\n", [("gpu=h100", True, None), ("ignore[x]", False, None)]),
    ("a.md", "```bash\n# spec-lsp: gpu=h100\nls\n```\n", []),
    ("a.md", "# spec-lsp: a tool\n", []),
    ("a.md", "```html\n<!-- spec-lsp: gpu=h100 -->\n```\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), COMMENTS, ids=range(len(COMMENTS)))
def test_comments(name: str, text: str, expected: list[tuple[str, bool, str | None]]) -> None:
    text = text + "\nsglang\n"
    found = parse(name, text).directives
    assert [(d.text, d.own_line, text[d.scope.start : d.scope.end] if d.scope else None) for d in found] == expected


def test_a_comment_in_a_block_speaks_for_the_block() -> None:
    text = "```bash\n# spec-lsp: gpu=h100\nsglang serve m\n```\n```bash\nsglang serve n\n```\n"
    (directive,) = parse("a.md", text).directives
    assert directive.within is not None
    assert [directive.within.contains(launch.extent) for launch in parse("a.md", text).launches] == [True, False]


def test_blocks_stand_where_they_are_written() -> None:
    text = "> ~~~sh\n> a\n>  b\n> ~~~\nx\n"
    (block,) = blocks("a.md", text)
    assert (block.language, block.body.text) == ("sh", "a\n b\n")
    assert text[block.extent.start : block.extent.end] == "> ~~~sh\n> a\n>  b\n> ~~~"


def test_a_long_page_takes_time_in_proportion() -> None:
    text = "text\n\n    an indented line\n\n- item\n\n```bash\nls\n```\n" * 3_000 + "```bash\nsglang serve m\n```\n"
    assert words(text) == [["m"]]


@pytest.mark.parametrize(
    "bit", ["<!-- spec-lsp:", "{/* spec-lsp: ", ".. code-block:: bash\n", "\n", "> ", "<a", "    x\n"]
)
def test_a_page_of_what_is_never_closed_takes_time_in_proportion(bit: str) -> None:
    text = f"sglang\n{bit * 20_000}"
    assert parse("a.md", text).launches == ()


@pytest.mark.parametrize(
    ("language", "body"),
    [
        ("ini", "[Service]\nExecStart=/usr/bin/sglang serve m --tp 2\n"),
        ("ini", "[program:llm]\ncommand=sglang serve m --tp 2\n"),
        ("conf", "[program:llm]\ncommand=sglang serve m\n  --tp 2\n"),
        ("", "[Service]\nExecStart=/usr/bin/sglang serve m --tp 2\n"),
        ("json", '{"scripts": {"serve": "sglang serve m --tp 2"}}\n'),
        ("jsonc", '{"tasks": [{"command": "sglang serve m --tp 2"}], /* why */ }\n'),
        ("procfile", "llm: sglang serve m --tp 2\n"),
        ("groovy", "node { sh 'sglang serve m --tp 2' }\n"),
        ("hcl", 'resource "a" "b" {\n  user_data = <<-EOT\n    sglang serve m --tp 2\n  EOT\n}\n'),
        ("terraform", 'resource "a" "b" {\n  command = ["sglang", "serve", "m", "--tp", "2"]\n}\n'),
    ],
)
def test_fences_of_other_files(language: str, body: str) -> None:
    document = parse("a.md", f"# x\n\n```{language}\n{body}```\n")
    check_maps(document)
    assert [argv(v) for launch in document.launches for v in launch.variants] == [["m", "--tp", "2"]]
    quoted = parse("a.yaml", "readme: |\n  " + f"# x\n\n```{language}\n{body}```\n".replace("\n", "\n  "))
    check_maps(quoted)
    assert [argv(v) for launch in quoted.launches for v in launch.variants] == [["m", "--tp", "2"]]
