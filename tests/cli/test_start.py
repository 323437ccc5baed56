"""What a command imports: what other files need, or other answers, is not waited for. Counted, as a limit of time would be of a machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = "import sys; from spec_lsp.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
SCRIPT = "python3 -m sglang.launch_server --model-path acme/dense --attention-backend nope --tp-size 2\n"
OF_OTHERS = (
    "yaml", "multiprocessing", "lsprotocol", "pygls", "ast", "traceback", "inspect", "dataclasses",
    "spec_lsp.syntax.yaml.reader", "spec_lsp.syntax.python", "spec_lsp.syntax.markdown", "spec_lsp.syntax.dockerfile",
    "spec_lsp.catalog.evaluate", "spec_lsp.catalog.fingerprints", "spec_lsp.catalog.keywords", "spec_lsp.server", "spec_lsp.asking",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_script_needs_nothing_of_other_files(name: str, modules: frozenset[str]) -> None:
    assert name not in modules


OF_FINDINGS = ("difflib", "spec_lsp.analysis.fixes", "spec_lsp.analysis.acceptance", "spec_lsp.syntax.edit")


@pytest.mark.parametrize("name", OF_FINDINGS)
def test_a_script_without_findings_needs_nothing_of_them(name: str, of_a_right_script: frozenset[str]) -> None:
    assert name not in of_a_right_script


MOST = 230
"""The modules of ours that checking a script without findings needs, and a few more."""


def test_how_many_modules_a_script_needs(of_a_right_script: frozenset[str]) -> None:
    assert len([name for name in of_a_right_script if name.startswith("spec_lsp")]) <= MOST


SERVED = """
import sys
from spec_lsp.server import _prepare
_prepare()
from spec_lsp.server import engine, server, transports
from spec_lsp.analysis.in_memory import InMemory
from spec_lsp.analysis.inputs import Options
real = engine.RealEngine()
real.analyse("launch.sh", sys.argv[1], "shellscript", Options(), InMemory(), real.new_cache())
print(*sys.modules)
"""


def test_a_server_tells_what_is_found_without_what_others_ask_for() -> None:
    """Fixes, connections of the network, an SGLang's sources."""
    done = subprocess.run([sys.executable, "-c", SERVED, SCRIPT], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"pygls", "spec_lsp.analysis.judge"} <= loaded
    assert not loaded & {
        "hmac", "secrets", "websockets", "yaml",
        "spec_lsp.analysis.fixes", "spec_lsp.analysis.hover", "spec_lsp.analysis.completion", "spec_lsp.catalog.evaluate", "spec_lsp.asking",
    }  # fmt: skip


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """What is imported once a script with findings is checked."""
    out = checked(tmp_path_factory.mktemp("start"), SCRIPT)
    assert "error" in out
    return frozenset(out.split("\n")[-2].split())


@pytest.fixture(scope="module")
def of_a_right_script(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """What is imported once a script without findings is checked."""
    out = checked(tmp_path_factory.mktemp("right"), SCRIPT.replace("nope", "triton"))
    assert "nothing to report" in out
    return frozenset(out.split("\n")[-2].split())


def checked(folder: Path, script: str) -> str:
    """What `check` prints about a script, and then the modules that are imported by then."""
    (folder / "launch.sh").write_text(script, "utf-8")
    command = [sys.executable, "-c", LOADED, "check", "--no-cache", "launch.sh"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
