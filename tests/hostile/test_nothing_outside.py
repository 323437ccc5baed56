"""What does not belong to a repository is neither read nor changed, whatever the repository names; and everything else is checked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_lsp.cli.main import main
from tests.hostile.inputs import CANARY, FLAWED, HOSTILE, made, snapshot
from tests.hostile.test_nothing_runs import COMMANDS, session

SAID = {
    "links_to_what_is_read": ["`v.sh` lies outside the workspace", "`up/canary.sh` lies outside", "`../canary.sh` lies outside",
                              "`c.yaml` lies outside", "`up/canary.yaml` lies outside"],
    "links_to_what_is_changed": ["`v.sh` lies outside the workspace", "`w/outside.sh` lies outside"],
    "links_to_settings_and_pins": ["spec-lsp.toml lies outside the workspace"],
    "settings_that_name_folders": ["'/etc' lies outside the workspace", "'..' lies outside the workspace", "venv/bin/python' lies outside"],
    "settings_that_start_programs": ["only the editor's settings may switch it on"],
    "models_that_are_no_files": ["`./pipe` is not a regular file", "`./folder` is not a regular file", "`./deep` is nested too deeply",
                                 "`./huge` is larger than 4 MiB"],
    "files_that_are_no_files": ["`pipe.sh` is not a regular file", "`zero.sh` lies outside", "`pipe.yaml` is not a regular file",
                                "`zero.yaml` lies outside", "spec-lsp.toml is not a regular file"],
    "settings_of_every_kind": ["`tool` is 5, not a table", "`tool.spec-lsp` is [1], not a table", "is nested too deeply",
                               "pyproject.toml cannot be read: invalid value", "5 is not an array", "'x' is not an object",
                               "unknown setting", "'x[' matches nothing"],
}  # fmt: skip
"""What is told of what is left out."""


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `spec-lsp` in a folder: its exit code, and all that it prints."""

    def run_(folder: Path, *words: str) -> tuple[int, str]:
        monkeypatch.chdir(folder)
        code = main(words)
        said = capfd.readouterr()
        return code, said.out + said.err

    return run_


@pytest.mark.parametrize("name", HOSTILE)
def test_commands_quote_nothing_and_change_nothing(name: str, tmp_path: Path, run: Run) -> None:
    folder = made(name, tmp_path)
    before = snapshot(tmp_path, folder)
    for words in (*COMMANDS.values(), ["check", ".", "--format", "json"], ["check", ".", "--diff", "--unsafe-fixes"]):
        code, text = run(folder, *words)
        assert CANARY not in text
        assert code in (0, 1, 2)
        assert "internal error" not in text
        assert snapshot(tmp_path, folder) == before


@pytest.mark.parametrize("name", HOSTILE)
def test_everything_else_is_checked_and_what_is_left_out_is_told(name: str, tmp_path: Path, run: Run) -> None:
    folder = made(name, tmp_path)
    flawed = any(
        p.read_bytes().endswith(FLAWED.encode()) for p in folder.rglob("*.sh") if p.is_file() and not p.is_symlink()
    )
    code, text = run(folder, "check", ".")
    assert code in (0, 1)
    assert "not checked" not in text
    assert ("overridden-value" in text) >= flawed
    for said in SAID.get(name, ()):
        assert said.casefold() in text.casefold()


@pytest.mark.parametrize("name", HOSTILE)
def test_the_server_quotes_nothing(name: str, tmp_path: Path) -> None:
    folder = made(name, tmp_path)
    before = snapshot(tmp_path, folder)
    ran = subprocess.run(
        [sys.executable, "-m", "spec_lsp.cli", "server", "--stdio", "-vv"],
        cwd=folder, input=session(folder), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0
    assert CANARY.encode() not in ran.stdout + ran.stderr
    assert b"Traceback" not in ran.stderr
    assert snapshot(tmp_path, folder) == before


# --- any tree of links --------------------------------------------------------------------------------------------------

TARGETS = ("canary.sh", "canary.yaml", "outside.sh", "model", "model/config.json", ".", "folder/inner.sh", "folder")
INSIDE = ("x", "y.sh", "z.yaml", "sub/x", "sub/y.sh", "m", "sub/m/config.json", ".env")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, tuple[str, str]]:
    """Links by their name: how they are written, and where they lead, out or (sometimes) to one another."""
    names = draw(st.lists(st.sampled_from(INSIDE), min_size=1, max_size=5, unique=True))
    how = st.sampled_from(["absolute", "relative", "through"])
    to = st.sampled_from([*(f"out:{t}" for t in TARGETS), *(f"in:{n}" for n in INSIDE)])
    return {name: (draw(how), draw(to)) for name in names}


def grown(folder: Path, tree: dict[str, tuple[str, str]]) -> None:
    outside = folder.parent
    (outside / "folder").mkdir(exist_ok=True)
    (outside / "folder" / "inner.sh").write_text(f"PAGE={CANARY}\n")
    (folder / "sub").mkdir()
    for name, (how, to) in tree.items():
        link = folder / name
        kind, _, path = to.partition(":")
        target = str((outside if kind == "out" else folder) / path)
        if how == "relative":
            target = ("../" * len(Path(name).parent.parts)) + ("../" if kind == "out" else "") + path
        if how == "through":
            (folder / "hop").unlink(missing_ok=True)
            (folder / "hop").symlink_to(outside)
            target = str(folder / "hop" / path)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(target)
    named = [
        *INSIDE,
        *(f"x/{t}" for t in TARGETS),
        *(f"hop/{t}" for t in TARGETS),
        *(f"sub/x/{t}" for t in TARGETS),
        *(f"../{t}" for t in TARGETS),
    ]
    launch = f"{FLAWED.strip()} --served-model-name $CANARY$PAGE"
    lines = [*(f"source {n}" for n in named), *(f"{launch} --config {n}" for n in named if n.endswith("yaml"))]
    (folder / "all.sh").write_text("\n".join(lines) + f"\n{FLAWED}")


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees())
def test_no_link_leads_out(
    tree: dict[str, tuple[str, str]], tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("links")
    HOSTILE.setdefault("nothing", lambda folder: None)
    folder = made("nothing", outside)
    del HOSTILE["nothing"]
    grown(folder, tree)
    before = snapshot(outside, folder)
    for words in (["check", str(folder), "--fix", "--unsafe-fixes"], ["launches", str(folder), "--json"]):
        assert main(words) in (0, 1, 2)
        said = capfd.readouterr()
        assert CANARY not in said.out + said.err
        assert "internal error" not in said.err
        assert snapshot(outside, folder) == before
