"""A launcher with options: what is built under conditions, by functions and from dictionaries."""
import argparse
import os
import subprocess
import sys
from dataclasses import dataclass

IMAGE_FLAGS = {"trust_remote_code": True, "page_size": 64, "disable_radix_cache": False}


@dataclass
class Deployment:
    model: str
    tp: int = 8
    backend: str = "triton"

    def command(self) -> list[str]:
        cmd = [sys.executable, "-m", "sglang.launch_server", "--model-path", self.model]
        if self.tp > 1:
            cmd += ["--tp-size", str(self.tp)]
        return cmd + ["--attention-backend", self.backend]


def add_flags(cmd, flags):
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            if value:
                cmd.append(flag)
        else:
            cmd.extend([flag, str(value)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--context-length", type=int, default=8192)
    parser.add_argument("--dp", type=int, default=1)
    parser.add_argument("--fp8", action="store_true")
    args = parser.parse_args()

    cmd = Deployment("acme/dense", tp=4).command()
    add_flags(cmd, IMAGE_FLAGS)
    cmd += ["--context-length", str(args.context_length)]
    if args.dp > 1:
        cmd += ["--dp-size", str(args.dp)]
    if args.fp8:
        cmd += ["--quantization", "fp8", "--kv-cache-dtype", "fp8_e6m1"]
    cmd += ["--mem-fraction-static", os.environ.get("MEM_FRACTION", "0.85")]
    subprocess.run(cmd, check=True)


if __name__ == "__main__":
    main()
