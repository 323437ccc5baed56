"""What a publisher needs agrees with itself."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import spec_lsp

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("pyproject.toml", r'^version = "(.+)"$'),
        ("editors/vscode/package.json", r'^  "version": "(.+)",$'),
        ("packaging/mason/package.yaml", r"^  id: pkg:pypi/spec-lsp@(.+)$"),
        ("packaging/nix/package.nix", r'^  version = "(.+)";$'),
    ],
)
def test_every_version_is_the_same(file: str, pattern: str) -> None:
    assert re.findall(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE) == [spec_lsp.__version__]


def test_the_nix_expression_names_every_dependency() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block
    needed = {
        re.split(r"[\[<>=; ]", d)[0].lower() for d in re.findall(r'"([^"]+)"', block[1]) if "python_version" not in d
    }
    nix = (PACKAGING / "nix" / "package.nix").read_text("utf-8")
    named = set(re.findall(r"^    python\.([\w-]+)$", nix, re.MULTILINE))
    assert named - {"websockets"} == needed  # which pygls brings by an extra
    if shutil.which("nix-instantiate"):
        subprocess.run(
            ["nix-instantiate", "--parse", PACKAGING / "nix" / "package.nix"], check=True, capture_output=True
        )


def test_the_formula_names_the_file_s_checksum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sdist = tmp_path / "spec_lsp-0.1.0.tar.gz"
    sdist.write_bytes(b"packed")
    monkeypatch.setattr(sys, "argv", ["formula.py", str(sdist), "https://example.com/spec_lsp-0.1.0.tar.gz"])
    runpy.run_path(str(PACKAGING / "homebrew" / "formula.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert f'sha256 "{hashlib.sha256(b"packed").hexdigest()}"' in out
    assert "#{bin}/spec-lsp" in out
    if shutil.which("ruby"):
        subprocess.run(["ruby", "-c"], input=out, text=True, check=True, capture_output=True)


def test_the_release_workflow_checks_what_it_publishes() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    assert "twine check --strict" in json.dumps(jobs["build"])
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert jobs["extension"]["needs"] == "pypi"


def test_mason_s_entry_starts_our_command() -> None:
    entry = yaml.safe_load((PACKAGING / "mason" / "package.yaml").read_text("utf-8"))
    assert entry["bin"] == {"spec-lsp": "pypi:spec-lsp"}
    assert (ROOT / "pyproject.toml").read_text("utf-8").count('spec-lsp = "spec_lsp.cli.main:') == 1


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", (PACKAGING / "README.md").read_text("utf-8")):
        assert (PACKAGING / target).exists(), target
