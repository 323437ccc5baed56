"""Each output format, from the same hand-made reports."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from textwrap import dedent
from typing import Any

import pytest

from spec_lsp.cli.formats.github import annotation
from spec_lsp.cli.report import FileReport
from spec_lsp.cli.style import Style, plain
from tests.cli.samples import HINT, LATE, REMARK, REPORTS, TREE, written

# --- text --------------------------------------------------------------------------------------------------------------


def test_text() -> None:
    text = written("text", REPORTS[:2])
    assert text.startswith(
        dedent("""\
        error: tree-drafting-on-trtllm-mha[SPC123]: `trtllm_mha` verifies chains only, so `--speculative-eagle-topk 4` is refused.
         --> run/lаunch é.sh:5:3
          |
        4 |   --attention-backend trtllm_mha \\
          |   --------------------- `attention_backend` takes part
        5 |   --speculative-eagle-topk 4
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = fix: set `--speculative-eagle-topk 1` (changes what runs)
          = or: set `--attention-backend fa3` (changes what runs)

        warning: late-thing[SPC900]: Fails: 100% of the time,
        """)
    )
    assert text.endswith(
        "Checked 2 launches in 2 files: 1 error, 1 warning, 1 remark, 1 hint, 2 ignored by comments.\n"
        "1 can be fixed with `--fix`, 1 more with `--unsafe-fixes`, which changes what runs.\n"
    )


def test_text_shows_no_control_characters_of_the_file() -> None:
    assert "\x1b" not in written("text")


def test_colours_add_nothing_but_colour() -> None:
    coloured = written("text", style=Style(True))
    assert "\x1b[1;31merror\x1b[0m" in coloured
    assert plain(coloured).replace("`", "") == written("text").replace("`", "")


SUMS = [
    ((), {}, "Checked 0 launches in 0 files: nothing to report.\n"),
    (REPORTS[2:3], {}, "Checked 3 launches in 1 file: nothing to report.\n"),
    (REPORTS[2:], {}, "Checked 3 launches in 3 files: nothing to report, 1 file not checked.\n"),
    (REPORTS[:1], {}, "1 can be fixed with `--fix --unsafe-fixes`, which changes what runs.\n"),
    (REPORTS[:1], {"fixing": "fix"}, "1 more can be fixed with `--unsafe-fixes`, which changes what runs.\n"),
    ((FileReport("a", (REMARK,)),), {}, "1 can be fixed with `--fix`.\n"),
    ((FileReport("a", fixed=("a:1: x[Y]: done",)),), {"fixing": "fix"}, "fixed: a:1: x[Y]: done\nChecked 0 launches in 1 file: nothing to report, 1 fixed.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("reports", "more", "end"), SUMS)
def test_the_sum(reports: tuple[FileReport, ...], more: dict[str, Any], end: str) -> None:
    assert written("text", reports, **more).endswith(end)


def test_statistics_count_by_rule() -> None:
    lines = written("text", [*REPORTS, REPORTS[0]], statistics=True).splitlines()
    assert lines[:4] == [
        "2  error    tree-drafting-on-trtllm-mha[SPC123]",
        "1  warning  late-thing[SPC900]",
        "1  info     overridden-value[SPC022]",
        "1  hint     unused-ignore[SPC040]",
    ]


def test_statistics_as_json() -> None:
    counts = json.loads(written("json", [*REPORTS, REPORTS[0]], statistics=True))
    assert counts[0] == {"rule": "tree-drafting-on-trtllm-mha", "code": "SPC123", "severity": "error", "count": 2}
    assert [c["count"] for c in counts] == [2, 1, 1, 1]
    assert json.loads(written("json", [], statistics=True)) == []


def test_a_diff_is_shown_whole() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"
    assert written("text", [FileReport("a", diff=diff)]).startswith(diff)
    assert plain(written("text", [FileReport("a", diff=diff)], Style(True))).startswith(diff)


# --- json --------------------------------------------------------------------------------------------------------------


def test_json_is_one_list_with_all_that_is_known() -> None:
    found = json.loads(written("json"))
    assert [f["code"] for f in found] == ["SPC123", "SPC900", "SPC040", "SPC022"]
    assert found[0] == {
        "file": "run/lаunch é.sh",
        "rule": "tree-drafting-on-trtllm-mha",
        "code": "SPC123",
        "severity": "error",
        "message": TREE.message,
        "range": {"start": {"line": 4, "character": 2}, "end": {"line": 4, "character": 28}},
        "late": False,
        "related": [
            {
                "file": "run/lаunch é.sh",
                "range": {"start": {"line": 3, "character": 2}, "end": {"line": 3, "character": 23}},
                "message": "`attention_backend` takes part",
            }
        ],
        "fixes": [
            {
                "title": "set `--speculative-eagle-topk 1`",
                "applicability": "unsafe",
                "preferred": True,
                "edits": [
                    {
                        "file": "run/lаunch é.sh",
                        "range": {"start": {"line": 4, "character": 27}, "end": {"line": 4, "character": 28}},
                        "text": "1",
                    }
                ],
            },
            {
                "title": "set `--attention-backend fa3`",
                "applicability": "unsafe",
                "preferred": False,
                "edits": [
                    {
                        "file": "run/lаunch é.sh",
                        "range": {"start": {"line": 3, "character": 22}, "end": {"line": 3, "character": 32}},
                        "text": "fa3",
                    }
                ],
            },
        ],
    }
    assert found[1]["late"]


def test_json_of_nothing_is_an_empty_list() -> None:
    assert json.loads(written("json", ())) == []


# --- sarif -------------------------------------------------------------------------------------------------------------


def sarif() -> dict[str, Any]:
    log: dict[str, Any] = json.loads(written("sarif"))
    return log


def test_sarif_results() -> None:
    run = sarif()["runs"][0]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("SPC123", "error"), ("SPC900", "warning"), ("SPC040", "note"), ("SPC022", "note"),
    ]  # fmt: skip
    first = run["results"][0]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "run/l%D0%B0unch%20%C3%A9.sh", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 5, "startColumn": 3, "endLine": 5, "endColumn": 29},
    }
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "1"
    related = run["results"][1]["relatedLocations"][0]["physicalLocation"]["artifactLocation"]
    assert related == {"uri": "file:///elsewhere/b.sh"}


def test_sarif_describes_every_rule_once_and_points_at_it() -> None:
    run = sarif()["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len({r["id"] for r in rules}) == len(rules) > 20
    for result in run["results"]:
        if "ruleIndex" in result:
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert all(r["shortDescription"]["text"] and r["help"]["text"] for r in rules)


def test_sarif_tells_what_could_not_be_checked() -> None:
    invocation = sarif()["runs"][0]["invocations"][0]
    assert not invocation["executionSuccessful"]
    assert "Permission denied" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_has_the_shape_its_schema_asks_for() -> None:
    """The rules of the 2.1.0 schema that a writer can break: names of properties, types, minimums, formats."""
    log = sarif()
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    for result in log["runs"][0]["results"]:
        assert set(result) <= {
            "ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations", "fixes", "partialFingerprints", "properties",
        }  # fmt: skip
        assert result["level"] in ("none", "note", "warning", "error")
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            physical = location["physicalLocation"]
            assert all(isinstance(v, int) and v >= 1 for v in physical["region"].values())
            assert re.fullmatch(r"[!-~]+", physical["artifactLocation"]["uri"])


# --- the others --------------------------------------------------------------------------------------------------------


def test_github() -> None:
    lines = written("github").splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(
        "::error file=run/lаunch é.sh,line=5,endLine=5,col=3,endColumn=29,title=spec-lsp tree-drafting-on-trtllm-mha[SPC123]::`trt"
    )
    assert lines[0].endswith("%0AFix: set `--speculative-eagle-topk 1`")
    assert lines[1].startswith("::warning ")
    assert lines[1].endswith("::Fails: 100%25 of the time,%0Alate.")
    assert lines[2].startswith("::notice ")
    assert "col=" not in annotation(REMARK), "GitHub refuses columns for several lines"


def test_github_escapes_what_would_end_a_property() -> None:
    odd = FileReport("a,b:c%.sh", (HINT,))
    assert odd.found[0].location.file == "config.yaml"
    from dataclasses import replace

    moved = replace(HINT, location=replace(HINT.location, file="a,b:c%.sh"))
    assert "file=a%2Cb%3Ac%25.sh," in annotation(moved)


def test_gitlab() -> None:
    entries = json.loads(written("gitlab"))
    assert [e["severity"] for e in entries] == ["critical", "major", "info", "minor"]
    assert len({e["fingerprint"] for e in entries}) == 4
    assert entries[0]["location"] == {
        "path": "run/lаunch é.sh",
        "positions": {"begin": {"line": 5, "column": 3}, "end": {"line": 5, "column": 29}},
        "lines": {"begin": 5, "end": 5},
    }


def test_junit() -> None:
    root = ET.fromstring(written("junit"))
    assert root.attrib == {"name": "spec-lsp", "tests": "6", "failures": "1", "errors": "1"}
    suites = {s.attrib["name"]: s for s in root}
    assert list(suites) == ["run/lаunch é.sh", "config.yaml", "clean.sh", "gone.sh"], (
        "what launches nothing is no suite"
    )
    failure = suites["run/lаunch é.sh"][0][0]
    assert failure.attrib == {"type": "SPC123", "message": TREE.message}
    assert "fix: set `--speculative-eagle-topk 1`" in (failure.text or "")
    assert [case[0].tag for case in suites["config.yaml"]] == ["system-out"] * 3
    assert len(suites["clean.sh"][0]) == 0
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite)


def test_junit_of_nothing() -> None:
    assert ET.fromstring(written("junit", ())).attrib["tests"] == "0"


@pytest.mark.parametrize("name", ["text", "json", "sarif", "github", "gitlab", "junit"])
def test_every_format_takes_everything(name: str) -> None:
    assert written(name, [FileReport("x", failure="Traceback"), FileReport("y", (LATE, LATE))])
