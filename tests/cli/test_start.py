"""What a command imports: what other files need, or other answers, is not waited for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = "import sys; from spec_lsp.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
SCRIPT = "python3 -m sglang.launch_server --model-path acme/dense --attention-backend nope --tp-size 2\n"
OF_OTHERS = (
    "yaml", "multiprocessing", "lsprotocol", "pygls",
    "spec_lsp.syntax.yaml.reader", "spec_lsp.syntax.python", "spec_lsp.syntax.markdown", "spec_lsp.syntax.dockerfile",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_script_needs_nothing_of_other_files(name: str, modules: frozenset[str]) -> None:
    assert name not in modules


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """What is imported once a script with findings is checked."""
    path: Path = tmp_path_factory.mktemp("start") / "launch.sh"
    path.write_text(SCRIPT, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "check", path.name], cwd=path.parent, capture_output=True, text=True, check=True
    )
    assert "error" in done.stdout
    return frozenset(done.stdout.split("\n")[-2].split())
