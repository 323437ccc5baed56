"""`spec-lsp launches`: what is read of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spec_lsp.cli.main import main

SCRIPT = """\
#!/bin/bash
# spec-lsp: sglang=0.5.23 gpu=h100
export SGLANG_LOG_MS=1
if [ "$1" = big ]; then TP=8; else TP=1; fi
python3 -m sglang.launch_server --model-path "$MODEL" \\
  --tp "$TP" --trust-remote-code $EXTRA
"""
CONFIG = "model-path: ./llama\npage-size: 16\nenable-metrics: true\nspeculative-algorithm: EAGLE3\n"


def launches(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["launches", *arguments])
    return code, capsys.readouterr().out


def test_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.sh").write_text(SCRIPT, "utf-8")
    code, out = launches(capsys, "run.sh")
    assert code == 0
    assert out == (
        "run.sh:5:1  launch_server\n"
        "  SGLang 0.5.23 (directive), H100 (directive)\n"
        '  way 1 of 2: when `[ "$1" = big ]` holds\n'
        "  SGLANG_LOG_MS=1\n"
        "  --model-path <from the environment>\n"
        "  --tp 8\n"
        "  --trust-remote-code <any words: from the environment>\n"
        '  way 2 of 2: when `[ "$1" = big ]` fails\n'
        "  SGLANG_LOG_MS=1\n"
        "  --model-path <from the environment>\n"
        "  --tp 1\n"
        "  --trust-remote-code <any words: from the environment>\n"
    )


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run.sh").write_text(SCRIPT, "utf-8")
    _, out = launches(capsys, "run.sh", "--json")
    (found,) = map(json.loads, out.splitlines())
    assert (found["program"], found["range"]["start"]) == ("launch_server", {"line": 4, "character": 0})
    assert found["worlds"] == [
        {"sglang": "0.5.23", "sglang_from": "directive", "hardware": "h100", "hardware_from": "directive"}
    ]
    first = found["variants"][0]
    assert first["when"] == ['`[ "$1" = big ]` holds']
    assert [w["text"] for w in first["words"]] == ["--model-path", None, "--tp", "8", "--trust-remote-code", None]
    assert first["words"][1]["unknown"] == "from the environment"
    assert first["env"]["SGLANG_LOG_MS"] == {"text": "1", "unknown": None}
    assert found["settings"]["tp_size"] == {"flag": "--tp", "value": 8, "known": True}
    assert found["settings"]["model_path"] == {"flag": "--model-path", "value": None, "known": False}


def test_config_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sglang.yaml").write_text(CONFIG, "utf-8")
    _, out = launches(capsys, "sglang.yaml", "--sglang", "0.5.23")
    assert "  from the `--config` file:\n    model-path: ./llama\n    page-size: 16\n" in out


def test_options_are_called_by_their_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plain.sh").write_text("sglang serve Qwen/Qwen3-8B\n")
    _, out = launches(capsys, "plain.sh", "--sglang", "0.5.23", "--gpu", "h100")
    assert "SGLang 0.5.23 (--sglang), H100 (--gpu)" in out
    (folder / "spec-lsp.toml").write_text('sglang = "0.5.19"\n')
    _, out = launches(capsys, "plain.sh")
    assert "SGLang 0.5.19 (settings), hardware not named" in out


def test_folder_and_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = launches(capsys, ".", "--exclude", "refused.sh")
    assert [line.split(":")[0] for line in out.splitlines() if "launch_server" in line] == ["clean.sh", "unknown.sh"]
    (folder / "empty").mkdir()
    assert launches(capsys, "empty") == (0, "No launch of SGLang was found.\n")


def test_unreadable_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.sh").symlink_to("nowhere.sh")
    code = main(["launches", "link.sh", "clean.sh"])
    ran = capsys.readouterr()
    assert code == 2
    assert "link.sh" in ran.err
    assert "clean.sh:2:1" in ran.out
