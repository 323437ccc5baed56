"""Where things come from and lead to: `‸` marks the cursor."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.navigation import definitions, is_model_id, links
from spec_lsp.analysis.report import Analysis
from spec_lsp.workspace import DiskWorkspace

HEAD = "# spec-lsp: sglang=0.5.23 gpu=h100\n"
RUN = "python -m sglang.launch_server --model-path a/b"


def analysed(text: str, folder: Path) -> tuple[Analysis, DiskWorkspace]:
    workspace = DiskWorkspace((folder,))
    return analyse(read_document(str(folder / "run.sh"), text, workspace), Options(), workspace), workspace


def targets(text: str, folder: Path) -> list[tuple[str, str]]:
    """What the cursor is on and the line where that comes from, for each origin; lines of other files with their name."""
    offset = text.index("‸")
    text = text.replace("‸", "")
    name = str(folder / "run.sh")
    analysis, workspace = analysed(text, folder)
    found = []
    for origin in definitions(analysis, offset, name, workspace):
        target = origin.target
        where = text if target.document == name else Path(target.document).read_text("utf-8")
        line = where[where.rfind("\n", 0, target.start) + 1 :].partition("\n")[0]
        shown = line if target.document == name else f"{Path(target.document).name}: {line}"
        found.append((text[origin.place.start : origin.place.end], shown))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TOPK=4\n{run} --page-size $TO‸PK", [("$TOPK", "TOPK=4")]),
        ("TOPK=4\n{run} --page-size ‸$TOPK", [("$TOPK", "TOPK=4")]),
        ("TOPK=4\n{run} --page-size $TOPK‸", [("$TOPK", "TOPK=4")]),
        ("TOPK=4\n{run} --page-size=${{TO‸PK}}", [("${TOPK}", "TOPK=4")]),
        ('TOPK=4\n{run} --page-size "$TO‸PK"', [("$TOPK", "TOPK=4")]),
        ("A=4\nB=$A\n{run} --page-size $‸B", [("$B", "B=$A")]),
        ("A=4\nB=$‸A\n{run} --page-size $B", [("$A", "A=4")]),
        ("if x; then A=4; else\nA=8\nfi\n{run} --page-size $‸A", [("$A", "if x; then A=4; else"), ("$A", "A=8")]),
        ('A=(--tp 2\n--dp 2)\n{run} "${{A‸[@]}}"', [("${A[@]}", "A=(--tp 2")]),
        ("A=4\n{run} --page-si‸ze $A", []),
        ("A=‸4\n{run} --page-size $A", []),
        ("{run} --page-size $‸A", []),
        ("ec‸ho", []),
    ],
)
def test_assignments(text: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    found = targets(HEAD + text.format(run=RUN) + "\n", tmp_path)
    assert [where for _, where in found] == [where for _, where in expected]
    assert [what.strip('"') for what, _ in found] == [what for what, _ in expected]


def test_an_assignment_in_a_sourced_script(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text("# sizes\nPAGE=16\n", "utf-8")
    assert targets(f"source env.sh\n{RUN} --page-size $PA‸GE\n", tmp_path) == [("$PAGE", "env.sh: PAGE=16")]


@pytest.mark.parametrize("rest", ["--con‸fig c.yaml", "--config c.ya‸ml", "--config 'c.ya‸ml'"])
def test_the_configuration_file(rest: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# sizes\npage-size: 16\n", "utf-8")
    assert [where for _, where in targets(f"{HEAD}{RUN} {rest}\n", tmp_path)] == ["c.yaml: # sizes"]


def test_a_flag_that_the_configuration_file_gives_too(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("tp-size: 2\npage-size: 16\n", "utf-8")
    text = f"{HEAD}{RUN} --config c.yaml --page-si‸ze 32 --dp 2\n"
    assert targets(text, tmp_path) == [("--page-size", "c.yaml: page-size: 16")]
    assert targets(text.replace("‸", "").replace("--dp", "--d‸p"), tmp_path) == []


def test_a_configuration_file_that_the_script_writes(tmp_path: Path) -> None:
    text = f"{HEAD}cat > c.yaml <<EOF\ntp-size: 2\nEOF\n{RUN} --config c.ya‸ml\n"
    assert targets(text, tmp_path) == [("c.yaml", "tp-size: 2")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sglang serve Qwen/Qwen3-8B", [("Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B")]),
        (
            "python -m sglang.launch_server --model-path=Qwen/Qwen3-8B --speculative-draft-model-path 'a/b'",
            [("Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B"), ("a/b", "https://huggingface.co/a/b")],
        ),
        (f"MODEL=a/b\n{RUN.replace('a/b', '$MODEL')}", [("a/b", "https://huggingface.co/a/b")]),
        (RUN.replace("a/b", "/models/a/b"), []),
        (RUN.replace("a/b", "./a"), []),
        (RUN.replace("a/b", "models/qwen"), []),
        (RUN.replace("a/b", "$M"), []),
        (RUN.replace("a/b", "here/model"), []),
        ("echo a/b", []),
    ],
)
def test_pages_of_models(text: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    folder = tmp_path / "here" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", "utf-8")
    whole = HEAD + text + "\n"
    found = links(*analysed(whole, tmp_path))
    assert [(whole[link.place.start : link.place.end], link.address) for link in found] == expected


def test_links_to_configuration_files(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("tp-size: 2\n", "utf-8")
    text = f'{HEAD}{RUN} --config "c.yaml"\n{RUN} --config none.yaml\n'
    found = [link for link in links(*analysed(text, tmp_path)) if link.document]
    assert [(text[link.place.start : link.place.end], link.document) for link in found] == [
        ("c.yaml", str(tmp_path / "c.yaml"))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-8B", True),
        ("meta-llama/Llama-3.1-8B", True),
        ("Qwen3-8B", False),
        ("a/b/c", False),
        ("/a/b", False),
        ("./a", False),
        ("../a", False),
        ("~/a", False),
        ("a/", False),
        ("a b/c", False),
        ("models/x", False),
        ("-x/y", False),
        ("s3:/x", False),
    ],
)
def test_model_ids(text: str, expected: bool) -> None:
    assert is_model_id(text) is expected
