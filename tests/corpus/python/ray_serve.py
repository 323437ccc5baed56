"""A launch whose command is put together by functions of the file."""
import os
import subprocess
from typing import Optional


def build_command(model: str, tp: int = 2, extra: Optional[list[str]] = None) -> list[str]:
    command = ["python3", "-m", "sglang.launch_server", "--model-path", model, "--tp", str(tp)]
    command += ["--host", "0.0.0.0", "--trust-remote-code"]
    if extra:
        command += extra
    return command


class Runner:
    backend = "triton"
    flags = {"page-size": 64}

    def __init__(self, port: int) -> None:
        self.port = port
        self.command = ["sglang", "serve", "acme/dense", "--attention-backend", self.backend]

    def start(self) -> None:
        for key, value in self.flags.items():
            self.command += [f"--{key}", str(value)]
        self.process = subprocess.Popen(self.command + ["--port", str(self.port)], env={**os.environ, "HF_HUB_OFFLINE": "1"})

    def start_on(self, node_rank: int) -> None:
        if node_rank == 0:
            tp = "4"
        else:
            tp = "8"
        subprocess.check_call(["sglang", "serve", "acme/moe", "--nnodes", "2", "--node-rank", str(node_rank), "--tp", tp])
        subprocess.check_call(
            (
                "python",
                "-m",
                "sglang.launch_server",  # the whole command is a tuple
                "--model-path",
                "acme/moe",
                "--dp",
                "3",
                "--tp",
                "4",
                "--enable-dp-attention",
            )
        )
