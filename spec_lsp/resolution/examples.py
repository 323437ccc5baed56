"""How the `bad` and `good` examples of rules are read.

An example is an argument list as a person would type it. Directives may stand before it, each `name=value`, ended by `--`:
`sglang=0.5.19 gpu=b200 model=llama-3.1-8b SGLANG_X=1 -- --attention-backend trtllm_mha …`. Without directives it is the newest
release the rule holds for, an H100 and Llama 3.1 8B. `model` names a folder of tests/models (or a model of tests/resolution/data, or
a well-known model id) and becomes `--model-path` (`model=none`: no model is given); `{models}/NAME` elsewhere in the example names one
too. `program=serve` makes it an argument list of `sglang serve`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field


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
