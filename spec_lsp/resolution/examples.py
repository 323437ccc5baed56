"""How the `bad` and `good` examples of rules are read.

An example is an argument list as a person would type it. Directives may stand before it, each `name=value`, ended by `--`:
`sglang=0.5.19 gpu=b200 model=llama-3.1-8b SGLANG_X=1 -- --attention-backend trtllm_mha …`. Without directives it is the newest
release the rule holds for, an H100 and Llama 3.1 8B. `model` names a folder of tests/models (or a model of tests/resolution/data, or
a well-known model id) and becomes `--model-path` (`model=none`: no model is given); `{models}/NAME` elsewhere in the example names one
too. `program=serve` makes it an argument list of `sglang serve`.
"""

from __future__ import annotations

import shlex

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field

IDS = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.3-70b": "meta-llama/Llama-3.3-70B-Instruct",
    "llama-2-7b": "meta-llama/Llama-2-7b-chat-hf",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-fp8": "Qwen/Qwen3-235B-A22B-FP8",
    "qwen3-next-80b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2-Exp",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "kimi-linear-48b": "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "ring-2.5-1t": "inclusionAI/Ring-2.5-1T",
    "minimax-m2": "MiniMaxAI/MiniMax-M2",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "gemma-2-9b": "google/gemma-2-9b-it",
    "eagle3-draft": "jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B",
    "eagle-draft": "lmsys/sglang-EAGLE-LLaMA3-Instruct-8B",
}
"""The public names of the models in examples. Models without one are shown as a folder in `FOLDER`."""

FOLDER = "/models"


@dataclass(frozen=True, slots=True)
class Example:
    """One example: the argv after the entry point, the world, the environment."""

    argv: tuple[str, ...]
    release: str = ""
    gpu: str = "h100"
    model: str = "llama-3.1-8b"
    program: str = "launch_server"
    env: dict[str, str] = field(default_factory=dict)


def read_example(text: str) -> Example:
    """Read an example's text."""
    head, separator, tail = text.partition(" -- ")
    if not separator or head.startswith("-"):
        head, tail = "", text
    release, gpu, model, program, env = "", "h100", "llama-3.1-8b", "launch_server", {}
    for directive in head.split():
        name, _, value = directive.partition("=")
        match name:
            case "sglang":
                release = value
            case "gpu":
                gpu = value
            case "model":
                model = value
            case "program":
                program = value
            case _:
                env[name] = value
    argv = tuple(shlex.split(tail))
    if model != "none" and not any(word in ("--model-path", "--model") for word in argv):
        argv = ("--model-path", "{models}/" + model, *argv)
    return Example(argv, release, gpu, model, program, env)


def command_of(example: Example) -> str:
    """An example as a command that names its release and that anybody can paste."""
    entry = ("sglang", "serve") if example.program == "serve" else ("python3", "-m", "sglang.launch_server")
    argv = (_MODEL.sub(lambda m: IDS.get(m[1], f"{FOLDER}/{m[1]}"), word) for word in example.argv)
    variables = (f"{name}={value}" for name, value in example.env.items())
    return shlex.join(
        ["spec-lsp", "resolve", "--sglang", example.release, "--gpu", example.gpu, "--", *variables, *entry, *argv]
    )


def in_lines(command: str, width: int) -> list[str]:
    """A command in lines of at most so many characters, each but the last continued; values stay on the line of their flag."""
    groups: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if groups and not word.startswith("--"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    lines = groups[:1]
    for group in groups[1:]:
        if len(lines[-1]) + len(group) + len(CONTINUED) < width:
            lines[-1] += f" {group}"
        else:
            lines[-1] += CONTINUED
            lines.append(f"  {group}")
    return lines


CONTINUED = " \\"

_MODEL = expression(r"\{models\}/([\w.-]+)")
