"""A small SGLang for tests, with a torch and a transformers to match: it takes and refuses as the real one does, and can be told to
misbehave in every way that matters to whoever asks it."""

from __future__ import annotations

from pathlib import Path

SERVER_ARGS = """
import argparse, dataclasses, os, subprocess, sys, time
import sgl_kernel, flashinfer
import torch

PLATFORM = "hip" if torch.version.hip else "cuda"


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    page_size: int = 1
    tp_size: int = 1
    attention_backend: str = None
    misbehave: str = None
    api_key: str = None
    device_name: str = None
    speculative_algorithm: str = None

    def __post_init__(self):
        self.device_name = torch.cuda.get_device_name()
        if self.attention_backend is None:
            self.attention_backend = "fa3" if torch.cuda.get_device_capability()[0] == 9 else "triton"
        if self.page_size == 32:
            raise ValueError(f"page_size 32 does not suit {self.model_path}")
        if os.environ.get("SGLANG_ANGRY"):
            raise RuntimeError("angry")
        getattr(self, "_" + (self.misbehave or "nothing"))()

    def _nothing(self):
        print("words that are no answer")

    def _crash(self):
        {}["missing"]

    def _hang(self):
        time.sleep(60)

    def _spin(self):
        while True:
            pass

    def _exit(self):
        os._exit(0)

    def _program(self):
        subprocess.run(["touch", "ran"])

    def _shell(self):
        os.system("touch ran")

    def _write(self):
        open("written", "w").write("x")

    def _remove(self):
        os.remove("own.py")

    def _network(self):
        import socket
        socket.create_connection(("127.0.0.1", 9))

    def _foreign(self):
        import importlib.util
        spec = importlib.util.spec_from_file_location("own", os.path.join(os.getcwd(), "own.py"))
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

    def _meddling(self):
        import meddling

    def _late(self):
        import sglang.late
        self.api_key = f"{sglang.late.VALUE} {sglang.late.PID}"

    def _devour(self):
        open("/dev/zero").read()

    def check_server_args(self):
        if self.tp_size > 8:
            raise ValueError("--tp-size is more than this machine has")


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="launch_server.py")
    for name in ("model-path", "attention-backend", "misbehave", "api-key", "speculative-algorithm", "config"):
        parser.add_argument("--" + name)
    for name in ("page-size", "tp-size", "dp-size"):
        parser.add_argument("--" + name, type=int)
    parser.add_argument("--enable-dp-attention", action="store_true")
    if "--config" in argv:
        at = argv.index("--config")
        lines = open(argv[at + 1]).read().splitlines()
        argv = [word for line in lines for word in ("--" + line.split(": ")[0], line.split(": ")[1])] + argv[:at] + argv[at + 2:]
    given = {k: v for k, v in vars(parser.parse_args(argv)).items() if v is not None}
    for name in ("config", "dp_size", "enable_dp_attention"):
        given.pop(name, None)
    return ServerArgs(**given)
"""

TORCH = """
class library:
    class Library:
        def __init__(self, *_): pass
        def impl(self, *_, **__): pass
    @staticmethod
    def register_fake(op, func=None, **_): return func
class cuda:
    @staticmethod
    def is_available(): return {real}
    @staticmethod
    def device_count(): return 2
    @staticmethod
    def get_device_properties(_):
        class found: name, major, minor, total_memory = "NVIDIA H200", 9, 0, 143771 << 20
        return found
class version:
    cuda = hip = None
"""

MEDDLING = """
import os, subprocess, tempfile
try:
    subprocess.run(["touch", os.path.join(tempfile.gettempdir(), "ran")])
except OSError:
    pass
"""

FILES = {
    "sglang/__init__.py": "",
    "sglang/version.py": "__version__ = '{release}'\n",
    "sglang/late.py": "import os\nVALUE, PID = os.environ.get('SGLANG_LATE', 'none'), os.getpid()\n",
    "sglang/srt/__init__.py": "",
    "sglang/srt/utils/__init__.py": "",
    "sglang/srt/utils/common.py": "",
    "sglang/srt/server_args.py": SERVER_ARGS,
    "meddling.py": MEDDLING,
    "flashinfer/__init__.py": "raise OSError('libcuda.so.1: cannot open shared object file')\n",
    "transformers/__init__.py": "",
    "transformers/models/__init__.py": "",
    "transformers/models/auto/__init__.py": "",
    "transformers/models/auto/processing_auto.py": "",
    "transformers/models/llama/__init__.py": "",
    "transformers/models/llama/modeling_llama.py": "",
    "torch/__init__.py": TORCH,
}


def write(folder: Path, *, release: str = "0.5.23", real: bool = False, without: str = "", **changed: str) -> Path:
    """Write the packages to a folder, to be put before an interpreter's own: of this release, on a machine with a GPU or without.

    `without` names a package to leave out; `changed` gives other texts (`server_args`).
    """
    for name, text in FILES.items():
        if without and name.startswith(without):
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = changed.get(path.stem, text)
        path.write_text(text.replace("{release}", release).replace("{real}", str(real)))
    return folder
