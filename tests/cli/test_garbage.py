"""When Python looks for garbage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOKS = """
import gc, sys
from spec_lsp.cli.main import process
gc.callbacks.append(lambda when, _: print("looked", file=sys.stderr))
process()
"""


def test_it_does_not_while_one_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text(
        "python3 -m sglang.launch_server --model-path acme/dense --attention-backend nope\n", "utf-8"
    )
    command = [sys.executable, "-c", LOOKS, "check", "--no-cache", "launch.sh"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
