"""Other programs and other engines, and SGLang spoken of."""
import argparse
import logging
import subprocess

from sqlalchemy.engine import Engine, Runtime
from vllm import LLM

parser = argparse.ArgumentParser(description="wraps python -m sglang.launch_server")
parser.add_argument("--tp", help="as in sglang serve --tp 3")
logging.info("python -m sglang.launch_server --tp %d", 3)
engine = Engine(url="sqlite://", tp_size=3)
llm = LLM(model="acme/dense", tensor_parallel_size=3, attention_backend="nope")
subprocess.run(["python3", "-m", "sgl_jax.launch_server", "--tp-size", "3"])
subprocess.run(["python3", "-m", "sglang.bench_serving", "--backend", "sglang", "--model", "m"])
subprocess.run(["pkill", "-f", "sglang.launch_server"])
subprocess.run(["sglang", "serve", "black-forest-labs/FLUX.1-dev", "--num-gpus", "2", "--ulysses-degree", "2"])
subprocess.run(["sglang", "generate", "--prompt", "a cat"])


def popen_launch_server(model, url):
    return subprocess.Popen(["vllm", "serve", model])


popen_launch_server("acme/dense", "http://localhost")
