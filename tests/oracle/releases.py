"""SGLang's releases on this machine: what it takes to ask them, from the package registry.

One folder (`$ORACLE`, else `oracle` in the user's cache) holds an environment that all releases share, the sources of each release, and
each transformers release that one of them pins. No GPU and no weights are needed, and no compiled kernels.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

SHARED = (
    "torch==2.13.0", "triton==3.6.0", "transformers==5.19.0", "msgspec", "numpy", "orjson", "pyzmq", "psutil", "requests", "aiohttp", "fastapi",
    "uvicorn", "pydantic", "pillow", "tqdm", "einops", "packaging", "setproctitle", "PyYAML", "pybase64", "IPython", "prometheus-client",
    "uvloop", "regex", "partial_json_parser", "xxhash", "zstandard", "python-multipart", "compressed-tensors==0.18.0", "tiktoken",
    "sentencepiece", "cffi", "httpcore", "h11", "httpx",
)  # fmt: skip
WITHOUT_DEPENDENCIES = (
    "torchvision==0.28.0", "scipy", "openai==2.8.0", "anyio", "distro", "sniffio", "jiter", "watchfiles", "cloudpickle", "dill", "soundfile",
)  # fmt: skip
"""What SGLang imports for what argument resolution does not do."""
COMPILED = (".so", ".a", ".cubin")
_PIN = re.compile(r"^Requires-Dist: transformers==(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Oracle:
    """The folder, and where things are in it."""

    root: Path

    @classmethod
    def here(cls) -> Oracle:
        """The one that `$ORACLE` names, else that of this user."""
        named = os.environ.get("ORACLE")
        return cls(Path(named) if named else Path.home() / ".cache" / "spec-lsp" / "oracle")

    @property
    def python(self) -> Path:
        return self.root / "venv" / "bin" / "python"

    @property
    def sources(self) -> Path:
        """A folder that holds each release as RELEASE/sglang, as tests.docs and tests.sources take it."""
        return self.root / "sg"

    def packages(self, release: str) -> list[Path]:
        """What is put before the environment's own packages to ask a release. Raises FileNotFoundError where it is not set up."""
        tree = self.sources / release
        if not (tree / "sglang").is_dir():
            raise FileNotFoundError(f"SGLang {release} is not set up: python -m tests.oracle setup {release}")
        pinned = self.root / "tf" / self.transformers(release)
        return [tree, *([pinned] if pinned.is_dir() else [])]

    def transformers(self, release: str) -> str:
        """The transformers release that SGLang's own metadata pins; empty where it pins none."""
        metadata = self.sources / release / "METADATA"
        found = _PIN.search(metadata.read_text("utf-8")) if metadata.is_file() else None
        return found[1] if found else ""

    # --- setting up

    def set_up(self, releases: list[str]) -> None:
        """Install what is missing. Some minutes for the environment, and half a minute for each release."""
        self.root.mkdir(parents=True, exist_ok=True)
        ready = self.root / "venv" / "ready"
        if not ready.exists():
            if not self.python.exists():
                subprocess.run([sys.executable, "-m", "venv", str(self.root / "venv")], check=True)
            self._pip("install", *SHARED)
            self._pip("install", "--no-deps", *WITHOUT_DEPENDENCIES)
            ready.touch()
        for release in releases:
            self._unpack(release)
            self._transformers(self.transformers(release))

    def _unpack(self, release: str) -> None:
        tree = self.sources / release
        if (tree / "METADATA").is_file():
            return
        with tempfile.TemporaryDirectory() as folder:
            self._pip("download", "--no-deps", "-d", folder, f"sglang=={release}")
            with zipfile.ZipFile(next(Path(folder).glob("sglang-*.whl"))) as wheel:
                names = wheel.namelist()
                wheel.extractall(tree, [n for n in names if n.startswith("sglang/") and not n.endswith(COMPILED)])
                metadata = next(n for n in names if n.endswith(".dist-info/METADATA"))
                (tree / "METADATA").write_bytes(wheel.read(metadata))

    def _transformers(self, pinned: str) -> None:
        folder = self.root / "tf" / pinned
        if not pinned or f"transformers=={pinned}" in SHARED or folder.is_dir():
            return
        old = pinned.startswith("4.")
        hub, tokenizers = ("<1.0", "<0.23") if old else ("<2", "==0.22.2")
        self._pip(
            "install", "--no-deps", "--target", str(folder),
            f"transformers=={pinned}", f"huggingface_hub{hub}", f"tokenizers{tokenizers}",
        )  # fmt: skip

    def _pip(self, *words: str) -> None:
        subprocess.run([str(self.python), "-m", "pip", "-q", "--disable-pip-version-check", *words], check=True)
