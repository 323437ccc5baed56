"""What an upkeep report finds: in small packages what differs and who follows it, and of this checkout a copy that forgot a release."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from tests.sources import classes, methods, own, registers
from tests.sources.table import Table
from tests.upkeep import sites, tables
from tests.upkeep.forget import NEVER, forget
from tests.upkeep.forget import main as forgetting
from tests.upkeep.functions import Differences
from tests.upkeep.report import Part, text_of
from tests.upkeep.truth import ARGPARSE, Pointers, _wrong

BEFORE = releases()[-2]
HOOK = "srt/arg_groups/hicache_hook.py"
OLD = """
def handle_hicache(args):
    # a comment
    if limit(args) > 3:
        raise ValueError("too much")
    args.hicache_ratio = 2

def limit(args):
    return args.page_size

def _unused(args):
    return 1

def resolve_storage_layout_compatibility(args):
    return args.storage
"""


def package(folder: Path, text: str, file: str = HOOK) -> Path:
    path = folder / "sglang" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder / "sglang"


@pytest.fixture
def differences(tmp_path: Path) -> Any:
    def differences_(new: str, file: str = HOOK) -> Differences:
        return Differences(package(tmp_path / "old", OLD), package(tmp_path / "new", new, file), BEFORE)

    return differences_


def told(found: Differences) -> dict[str, tuple[str, bool]]:
    return {f.name: (f.kind, f.followed) for f in found.functions}


def test_what_reads_otherwise_and_does_the_same_is_no_difference(differences: Any) -> None:
    new = OLD.replace("# a comment", '"""Of another kind."""').replace("too much", "too many").replace("args", "given")
    assert told(differences(new)) == {}


def test_what_changed_is_told_with_those_who_follow_it_and_the_difference(differences: Any) -> None:
    found = differences(OLD.replace("> 3", "> 4"))
    assert told(found) == {"handle_hicache": ("changed", True)}
    [function] = found.functions
    assert "hicache.handle_hicache" in function.followers.handlers
    assert "-    if limit(args) > 3:" in function.difference
    assert "+    if limit(args) > 4:" in function.difference
    assert found.points_at("ServerArgs._handle_hicache") == "changed"


def test_a_helper_that_changed_is_told_with_those_who_follow_what_uses_it(differences: Any) -> None:
    found = differences(OLD.replace("args.page_size", "args.page_size + 1"))
    assert told(found) == {"limit": ("changed", True)}
    assert found.functions[0].through == (f"{HOOK}:handle_hicache",)
    assert found.points_at("handle_hicache") == "uses what changed"
    assert found.points_at("handle_load_format") == ""
    assert "what follows `handle_hicache`" in found.part().found[0]


def test_a_new_helper_with_a_name_that_others_have_is_not_told_with_those(differences: Any) -> None:
    found = differences("def limit(args):\n    return 2\n", "srt/arg_groups/new_hook.py")
    (Path(found._roots[1]) / HOOK).write_text(OLD)
    old, new = found._roots
    again = Differences(old, new, BEFORE)
    assert told(again) == {"limit": ("new", False)}


def test_what_came_went_and_moved(differences: Any) -> None:
    gone = OLD.replace("_unused", "brand_new").replace("return 1", "return 2")
    assert told(differences(gone)) == {"_unused": ("gone", False), "brand_new": ("new", False)}
    assert any("brand_new" in item for item in differences(gone).part().todo)
    moved = differences(OLD, "srt/arg_groups/cache_hook.py")
    (Path(moved._roots[1]) / HOOK).unlink()
    again = Differences(*moved._roots, BEFORE)
    assert told(again) == {}
    assert again.moved[f"{HOOK}:handle_hicache"] == "srt/arg_groups/cache_hook.py:handle_hicache"
    assert any("Name the new place of" in item for item in again.part().todo)


def test_what_decides_a_field(differences: Any) -> None:
    found = differences(OLD.replace("hicache_ratio = 2", "hicache_ratio = 3"))
    assert found.decides("hicache_ratio") == "`handle_hicache`"
    assert found.decides("hicache_io_backend") == "`handle_hicache` (changed)"  # by a step that follows it
    assert found.decides("api_key") == ""


def test_new_statements(tmp_path: Path) -> None:
    old = package(tmp_path / "old", OLD)
    new = package(
        tmp_path / "new",
        OLD.replace("def limit(args):", 'def limit(args):\n    assert args\n    if args:\n        raise KeyError("x")'),
    )
    found = sites.new_sites(old, new, ["arg_groups/**/*.py"])
    assert [(s.function, s.raises) for s in found] == [("limit", "AssertionError"), ("limit", "KeyError")]
    assert sites.functions_with_new_sites(old, new) == {"limit"}
    part = sites.part(old, new, NEVER)
    assert part.found[0] == "2 new in argument resolution:"
    assert "Give 2 new sites a rule or a reason" in part.todo[0]
    assert sites.new_sites(old, old, ["arg_groups/**/*.py"]) == []


def test_what_somebody_went_through_is_done(differences: Any, tmp_path: Path) -> None:
    found = differences(OLD.replace("> 3", "> 4"))
    assert found.part().todo
    assert found.part(gone_through=True).todo == []
    assert sites.gone_through(str(releases()[-1]))
    assert not sites.gone_through(NEVER)
    (item,) = sites.part(package(tmp_path / "a", OLD), package(tmp_path / "b", OLD), str(releases()[-1])).todo
    assert item.startswith("Complete docs/coverage.toml")


def test_a_release_is_added_to_a_table_and_added_again(tmp_path: Path) -> None:
    data = tmp_path / "table.json"
    data.write_text(
        json.dumps({"A": {"0.5.6": {"x": 1}}, "B": {"0.5.6": {"x": 1}, "0.5.8": None}, "C": {"0.5.6": {"x": 3}}})
    )
    table = Table(data, lambda root: {"A": {"x": 2}, "B": {"x": 1}, "D": {"x": 4}})
    changed = [("A", {"x": 1}, {"x": 2}), ("B", None, {"x": 1}), ("C", {"x": 3}, None), ("D", None, {"x": 4})]
    for _ in range(2):
        assert table.add(Release.parse("0.5.9.post1"), tmp_path) == changed
        known = json.loads(data.read_text())
        assert known["A"] == {"0.5.6": {"x": 1}, "0.5.9": {"x": 2}}
        assert known["C"] == {"0.5.6": {"x": 3}, "0.5.9": None}
        assert list(known) == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("row", "answer", "wrong"),
    [
        ({"outcome": "ok", "resolved": {"page_size": 1}}, {"verdict": "accepted", "resolved": {"page_size": 1}}, []),
        ({"outcome": "ok", "resolved": {"page_size": 1}}, {"verdict": "accepted", "resolved": {}}, []),
        (
            {"outcome": "ok", "resolved": {"hicache_ratio": 1}},
            {"verdict": "accepted", "resolved": {"hicache_ratio": 2}},
            [("`hicache_ratio`", "ends up otherwise", "`handle_hicache`")],
        ),
        (
            {"outcome": "refused", "error": {"at": "arg_groups/hicache_hook.py:handle_hicache"}},
            {"verdict": "accepted"},
            [("arg_groups/hicache_hook.py:handle_hicache", "not refused", "changed")],
        ),
        (
            {"outcome": "ok", "resolved": {}},
            {"verdict": "refused", "error": ("x", "hicache_hook.py:_handle_hicache")},
            [("hicache_hook.py:_handle_hicache", "refused by x", "changed")],
        ),
        (
            {"outcome": "refused", "error": {"at": "a.py:same"}},
            {"verdict": "refused", "error": ("x", "b.py:_same")},
            [],
        ),
        (
            {"outcome": "crashed", "error": {"at": "a.py:theirs"}},
            {"verdict": "refused", "error": ("x", "b.py:ours")},
            [("a.py:theirs", "told as x", "")],
        ),
        (
            {"outcome": "argparse", "error": {"at": ""}},
            {"verdict": "accepted"},
            [(ARGPARSE, "not refused", "flags changed")],
        ),
    ],
)
def test_disagreements_by_function(differences: Any, row: Any, answer: Any, wrong: Any) -> None:
    found = differences(OLD.replace("hicache_ratio = 2", "hicache_ratio = 3"))
    rule, sglang = answer.pop("error", ("", ""))
    answer["findings"] = [{"rule": rule, "sglang": sglang, "severity": "error", "late": False}] if rule else []
    assert list(_wrong(row, answer, Pointers(found, flags=frozenset({"page_size"})))) == wrong


def test_a_report_ends_with_what_is_left_to_do() -> None:
    parts = [Part("First", ["- a"], ["Do this"], ["a difference"]), Part("Second", [])]
    text = text_of("Title", parts, whole=False)
    assert text.endswith("## Checklist\n\n- [ ] Do this\n")
    assert "## Second\n\nNothing." in text
    assert "a difference" not in text
    assert "a difference" in text_of("Title", parts, whole=True)
    assert "Nothing is left to do" in text_of("Title", [Part("First", ["- a"])], whole=False)


def test_forgetting_says_what_to_do_next_and_takes_no_folder_that_exists(tmp_path: Path, capsys: Any) -> None:
    forgetting([str(tmp_path / "copy")])
    assert f"-m tests.upkeep {releases()[-1]}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        forgetting([str(tmp_path / "copy")])
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("gone_through", [False, True])
def test_what_a_table_gained_is_done_once_somebody_has_gone_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone_through: bool
) -> None:
    data = tmp_path / "table.json"
    data.write_text("{}")
    for module in (classes, methods, own, registers):
        monkeypatch.setattr(module, "TABLE", Table(data, lambda root: {"A": {"x": 1}}))
    part = tables.part(tmp_path, BEFORE, gone_through)
    assert "- `A`: none → `{'x': 1}`" in part.found
    assert [t for t in part.todo if "Look at 1 new model classes: `A`" in t] == part.todo[:1]
    assert bool(part.todo) is not gone_through


def test_a_copy_that_has_never_heard_of_the_newest_release(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    release = forget(copy)
    assert release == releases()[-1]
    for folder in ("resolution", "facts", "catalog"):
        for path in (copy / "spec_lsp" / folder).rglob("*.py"):
            assert str(release) not in path.read_text()
    gone = set(load(BEFORE).by_spelling) - set(load(release).by_spelling)
    replaced = (copy / "spec_lsp" / "catalog" / "replacements.toml").read_text()
    assert not any(f"\n{name} = " in replaced for name in gone)
    script = (
        "from spec_lsp.catalog.store import releases, load; from spec_lsp.resolution.following import followed\n"
        "from spec_lsp.resolution.handlers import handlers_of; newest = releases()[-1]\n"
        "print(newest, len(load(newest).flags) > 400, len(handlers_of(newest)) > 50, len(followed(newest)) > 100)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(BEFORE), "True", "True", "True"]
    assert NEVER in (copy / "spec_lsp" / "resolution" / "pipeline.py").read_text()
