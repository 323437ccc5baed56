import os
import shlex
import subprocess
import sys

MODEL = "acme/dense"
TP = 4
COMMON = ["--trust-remote-code", "--page-size", str(64)]
os.environ["SGLANG_LOG_REQUESTS"] = "1"


def plain() -> None:
    subprocess.run(["python3", "-m", "sglang.launch_server", "--model-path", MODEL, "--tp", str(TP), *COMMON], check=True)


def built_up(args, quantize: bool) -> None:
    cmd = [sys.executable, "-m", "sglang.launch_server", "--model-path", args.model]
    cmd += ["--tp-size", f"{TP}", f"--port={args.port}"]
    cmd.extend(COMMON)
    if quantize:
        cmd.append("--quantization")
        cmd.append("fp8")
    cmd += ["--attention-backend", "fa3"] if args.hopper else []
    env = os.environ.copy()
    env["CUDA_VISIBLE_DEVICES"] = "0,1"
    process = subprocess.Popen(cmd, env=env, stdout=subprocess.DEVNULL)
    print("started", " ".join(cmd), process.pid)


def as_text() -> None:
    subprocess.Popen(
        f"python3 -m sglang.launch_server --model-path {MODEL} "
        f"--tp {TP} "
        '--json-model-override-args \'{"a": 1}\'',
        shell=True,
    )
    os.system("SGLANG_USE_AITER=0 sglang serve acme/dense --tp 2 &")
    subprocess.run(shlex.split("sglang serve 'acme/other model' --tp 2 # no comment"))
    subprocess.run("sglang serve acme/third --tp 2".split())


def sweep() -> None:
    for backend in ("fa3", "triton"):
        subprocess.run(["sglang", "serve", MODEL, "--attention-backend", backend])


if __name__ == "__main__":
    os.execvp("sglang", ["sglang", "serve", MODEL, "--tp", "2"])
