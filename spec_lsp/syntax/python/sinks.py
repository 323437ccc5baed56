"""Calls that start something: SGLang's own engine, SGLang's test helpers, or a command passed to the system."""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Program
from spec_lsp.syntax.shell.commands import typed_entry

ENGINES = expression(r"sglang\.(?!multimodal_gen\b|jax\b|test\b)(?:[\w.]+\.)?(?:Engine|ServerArgs|Runtime)\Z")
ENGINE_NAMES = frozenset(("Engine", "ServerArgs", "Runtime"))
NOT_OURS = frozenset(("launch_timeout", "server_args"))
"""Keywords of `Engine` and `Runtime` that are not fields."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of `sglang.test.test_utils` (the release with `def NAME` there) that starts `program` with `--model-path MODEL ARGS…`.

    `model` and `args` are the position and the names of these arguments; `tp` are those of one that becomes `--tp` unless `args` have it.
    """

    program: Program
    model: tuple[int, tuple[str, ...]]
    args: tuple[int, tuple[str, ...]]
    env: tuple[str, ...] = ("env",)
    tp: tuple[int, tuple[str, ...]] | None = None


_LAUNCH = Helper("launch_server", (0, ("model",)), (4, ("other_args",)))
HELPERS: dict[str, Helper] = {
    "popen_launch_server": _LAUNCH,
    "popen_launch_pd_server": _LAUNCH,
    "run_bench_serving": Helper("launch_server", (0, ("model",)), (3, ("other_server_args",))),
    "ModelLaunchSettings": Helper("launch_server", (0, ("model_path",)), (2, ("extra_args",)), tp=(1, ("tp_size",))),
    "run_bench_one_batch": Helper("one_batch", (0, ("model",)), (1, ("other_args",))),
    "run_bench_offline_throughput": Helper("offline_throughput", (0, ("model",)), (1, ("other_args",))),
}
PARSERS = frozenset(("prepare_server_args",))
"""Functions that take the words of a command line without its entry point."""

SHELL_FUNCTIONS = frozenset((
    "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell",
    "execute_shell_command", "launch_server_cmd",
))  # fmt: skip
"""Functions whose first argument is read by a shell or something similar."""

STARTS_TEXT = expression(
    r"\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:(?:nohup|exec|numactl\s\S+)\s+)*"
    r"(?:" + typed_entry(r"\s+") + r"|docker\s+run\b)"
)
RUNS = expression(r"run|exec|launch|popen|spawn|start|system|shell|cmd|command|submit|call", re.I)
"""Names of functions that clearly run their arguments."""

SPEAKS = expression(
    r"(?:print|pprint|len|repr|str|log|debug|info|warn|warning|error|exception|critical|write|writelines|echo|secho|format|"
    r"isinstance|type|append|extend|insert|index|count|join|add_argument|ArgumentParser|dumps|dump|assert\w*|raises|set|frozenset|enumerate|"
    r"zip|map|filter|any|all|min|max|sum|list|tuple|dict|sorted|reversed|iter|next|copy|deepcopy|Mock|MagicMock|parametrize|"
    r"parse_args|parse_known_args|update|setdefault|get|field|markdown|code|skip|fail)\Z"
)
"""Names of functions that only inspect or report their arguments."""

LOOKS = expression(
    r"_*(?:find|match|extract|parse|detect|is|has|get|replace|validate|check(?!_call\Z|_output\Z)|compare|normali[sz]e|render|format|sanitize|"
    r"redact|quote|classify|infer|guess|looks?|count|split|tokenize|filter|strip|rewrite|read|save|store|describe|explain|summari[sz]e|"
    r"estimate|expect|verify|show|test|mock|fake)(?:_|[A-Z]|\Z)|_*main\Z"
)
"""Beginnings of such names. (`main(["launch", "--", …])` is a program of its own under test.)"""

TELLS = expression(
    r"example|sample|hint|help|usage|message|instruction|docs?(?:_|\Z)|describe|explain|title|error", re.I
)
"""Functions with such names return a command for people to read."""

EXPECTS_FAILURE = expression(r"(?:\A|[._])(?:assertRaises\w*|raises)\Z")
PROCESSES = expression(
    r"(?:\A|\.)(?:run|Popen|popen|call|check_call|check_output|create_subprocess_exec|exec\w*|spawn\w*|system)\Z"
)
"""Functions that start a process with exactly these arguments."""
EXEC_FUNCTIONS = expression(r"os\.(?:exec|spawn|posix_spawn)\w*\Z")
