"""What was found before is told again only as long as all that it follows from is as it was; and then the very same is told."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spec_lsp import kept
from spec_lsp.analysis.inputs import Workspace
from spec_lsp.cli import checker, remembered
from spec_lsp.cli.check import NO_CACHE
from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.pool import check_all
from spec_lsp.cli.progress import Progress
from tests.bench.monorepo import write
from tests.cli.conftest import REFUSED, Ran
from tests.hostile.inputs import CANARY, HOSTILE, made, snapshot
from tests.test_workspace import SGLANG

Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is kept, empty."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.delenv(NO_CACHE, raising=False)
    monkeypatch.setattr(kept, "cache_folder", lambda: home)
    return home / "reports"


@pytest.fixture
def no_analysis(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, whoever checks a file anew fails."""

    def fail(*_: object) -> None:
        raise AssertionError("checked anew")

    return lambda: monkeypatch.setattr(checker, "analyse", fail)


FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "html")


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_is_told_without_a_look(form: str, run: Run, no_analysis: Callable[[], None]) -> None:
    first = run("check", ".", "--format", form)
    assert run("check", ".", "--format", form, "--no-cache") == first
    no_analysis()
    assert run("check", ".", "--format", form) == first
    assert run("check", "refused.sh", "--format", form).code == 1, "however it is named"


def test_a_tree_of_every_kind_of_file(tmp_path: Path, no_analysis: Callable[[], None]) -> None:
    root = write(tmp_path / "tree", files=80, launching=36, mentioning_=8)
    files = sorted(str(p) for p in root.rglob("*") if p.is_file() and p.suffix != ".png")
    alone = list(check_all(Task(str(root)), iter(files), 1, Progress()))
    half = Checker(Task(str(root), remember=True))
    for path in files[::2]:
        half.file(path)
    for jobs in (1, 3):  # what is known and what is not, in order
        assert list(check_all(Task(str(root), remember=True), iter(files), jobs, Progress())) == alone
    no_analysis()
    assert list(check_all(Task(str(root), remember=True), iter(files), 3, Progress())) == alone


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_repositories(
    name: str, tmp_path: Path, cache: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(name, tmp_path)
    monkeypatch.chdir(folder)
    before = snapshot(tmp_path, folder)
    said = [run("check", ".", *more) for more in ((), (), ("--no-cache",))]
    assert said[0] == said[1] == said[2]
    assert snapshot(tmp_path, folder) == before
    assert not any(CANARY in path.read_text() for path in (cache.iterdir() if cache.exists() else ()))


# --- what changes ----------------------------------------------------------------------------------------------------------


def rewritten(name: str, old: str, new: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(folder: Path, _: pytest.MonkeyPatch) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def written(name: str, text: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(folder: Path, _: pytest.MonkeyPatch) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    return change


def gone(name: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(folder: Path, _: pytest.MonkeyPatch) -> None:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()

    return change


def linked(name: str, to: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(folder: Path, _: pytest.MonkeyPatch) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(folder / to)

    return change


def downloaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that comes into the local Hugging Face cache."""
    hub = folder.parent / "hub"
    snapshot_ = hub / "models--acme--own" / "snapshots" / "1"
    snapshot_.mkdir(parents=True)
    shutil.copy(folder / "llama" / "config.json", snapshot_)
    (hub / "models--acme--own" / "refs").mkdir()
    (hub / "models--acme--own" / "refs" / "main").write_text("1")
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))


LAUNCH = "python3 -m sglang.launch_server --model-path {model} --attention-backend trtllm_mla {more}\n"
PAGED = "python3 -m sglang.launch_server --model-path ./llama --attention-backend trtllm_mla --page-size {page}\n"

CHANGES = {
    "the text": (REFUSED, rewritten("a.sh", "TOPK=4", "TOPK=1")),
    "a model": (LAUNCH.format(model="./llama", more=""), rewritten("llama/config.json", "LlamaForCausalLM", "DeepseekV3ForCausalLM")),
    "a model that goes": (LAUNCH.format(model="./llama", more=""), gone("llama")),
    "a model that comes": (LAUNCH.format(model="./other", more=""), lambda f, _: shutil.copytree(f / "llama", f / "other")),
    "a model that is downloaded": (LAUNCH.format(model="acme/own", more=""), downloaded),
    "a model that cannot be read": (LAUNCH.format(model="./llama", more=""), written("llama/config.json", "[")),
    "a sourced file": ("source ./env.sh\n" + PAGED.format(page="$PAGE"), rewritten("env.sh", "16", "64")),
    "a sourced file that goes": ("source ./env.sh\n" + PAGED.format(page="$PAGE"), gone("env.sh")),
    "a sourced file that comes": ("source ./other.sh\n" + PAGED.format(page="$PAGE"), written("other.sh", "PAGE=16\n")),
    "a sourced file that is led elsewhere": ("source ./env.sh\n" + PAGED.format(page="$PAGE"), linked("env.sh", "big.sh")),
    "one sourced by a sourced file": ("source ./outer.sh\n" + PAGED.format(page="$PAGE"), rewritten("env.sh", "16", "64")),
    "one that leads out now": ("source ./env.sh\n" + PAGED.format(page="$PAGE"), linked("env.sh", "../outside.sh")),
    "a file of flags": ("python3 -m sglang.launch_server --config engine.yaml\n", rewritten("engine.yaml", "16", "64")),
    "a file of flags that comes": ("python3 -m sglang.launch_server --config other.yaml\n", written("other.yaml", "model-path: ./llama\nattention-backend: trtllm_mla\n")),
    "a pin": (LAUNCH.format(model="./llama", more="--cuda-graph-max-bs 8"), written("requirements.txt", "sglang==0.5.9\n")),
    "settings that come": (REFUSED, written("spec-lsp.toml", '[rules]\nSPC123 = "hint"\n')),
    "settings of the worlds": (LAUNCH.format(model="./llama", more=""), written("spec-lsp.toml", 'gpu = "h100"\n')),
    "an SGLang that comes": (LAUNCH.format(model="./llama", more="--own 1"), written("third_party/sglang/python/sglang/srt/server_args.py", SGLANG)),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_is_seen(what: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text, change = CHANGES[what]
    (folder.parent / "outside.sh").write_text("PAGE=16\n")
    for name, page in (("env.sh", 16), ("big.sh", 64)):
        (folder / name).write_text(f"PAGE={page}\n")
    (folder / "outer.sh").write_text("source ./env.sh\n")
    (folder / "engine.yaml").write_text("model-path: ./llama\nattention-backend: trtllm_mla\npage-size: 16\n")
    (folder / "a.sh").write_text(text)
    command = ("check", "a.sh", "--format", "json")
    before = run(*command)
    assert run(*command) == before
    times = {p: p.stat() for p in folder.rglob("*") if p.is_file()}
    change(folder, monkeypatch)
    for path, status in times.items():  # what is written in the same instant is seen too
        if path.exists() and path.name != "config.json":
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    anew = run(*command, "--no-cache")
    assert anew.out != before.out
    assert run(*command) == anew
    assert run(*command) == anew


@pytest.mark.parametrize(
    "more",
    [
        ("--gpu", "h100"),
        ("--sglang", "0.5.19"),
        ("--ignore-directives",),
        ("--upgrade", "0.5.9"),
        ("--models", "llama"),
    ],
)
def test_another_way_of_checking_is_another_report(more: tuple[str, ...], folder: Path, run: Run) -> None:
    (folder / "refused.sh").write_text(
        "# spec-lsp: ignore-file\n" + REFUSED.replace("# spec-lsp: sglang=0.5.23 gpu=b200\n", "")
    )
    for words in ((), more, (), more):
        command = ("check", ".", "--format", "json", *words)
        assert run(*command) == run(*command, "--no-cache")


def test_another_spec_lsp_looks_anew(
    run: Run, no_analysis: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("check", "refused.sh")
    monkeypatch.setattr(remembered, "_ourselves", lambda: "another")
    no_analysis()
    assert "checked anew" in run("check", "refused.sh").err


def test_a_change_of_any_of_our_files_is_another_spec_lsp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours" / "data").mkdir(parents=True)
    for name in ("__init__.py", "data/flags.json"):
        (tmp_path / "ours" / name).write_text("1")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = [list(remembered._files("ours"))]
    (tmp_path / "ours" / "data" / "flags.json").write_text("12")
    seen.append(list(remembered._files("ours")))
    (tmp_path / "ours" / "more.py").write_text("")
    seen.append(list(remembered._files("ours")))
    assert [len(one) for one in seen] == [2, 2, 3]
    assert seen[0] != seen[1]


# --- what is kept ------------------------------------------------------------------------------------------------------------


def test_every_question_that_analysis_has_can_be_asked_again() -> None:
    asked = {name for name in vars(Workspace) if not name.startswith("_")}
    assert asked == set(remembered.QUESTIONS)


@pytest.mark.parametrize("words", [("--no-cache",), ("--fix",), ("--diff",)])
def test_nothing_is_kept_where_nobody_wants_it(words: tuple[str, ...], run: Run, cache: Path) -> None:
    run("check", ".", *words)
    assert not cache.exists()


def test_a_variable_switches_it_off_too(run: Run, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_CACHE, "1")
    run("check", ".")
    assert not cache.exists()


def test_what_a_fault_had_a_part_in_is_not_kept(run: Run, cache: Path, no_analysis: Callable[[], None]) -> None:
    no_analysis()
    run("check", ".")
    assert not cache.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "[1,2,3]", '["P",[],{"FileReport":[]}]', '["P",[],{"Path":["/"]}]', '["P",[["forget"],"x"],{}]',
     '["P",[[["forget"],"x"]],{"FileReport":["x"]}]', '["P",[],"x"]', "[" * 9000],
)  # fmt: skip
def test_what_cannot_be_used_is_made_anew(text: str, run: Run, cache: Path) -> None:
    first = run("check", "refused.sh")
    (file,) = cache.iterdir()
    proof = json.loads(file.read_text())[0]
    file.write_text(text.replace("P", proof, 1) if text.startswith('["P"') else text)
    assert run("check", "refused.sh") == first
    assert json.loads(file.read_text())[0] == proof


def test_somebody_without_a_cache_folder_checks_all_the_same(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("check", ".")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "file" / "below")
    assert run("check", ".", "--exclude", "file") == first
