"""What a command line starts: SGLang, a wrapper that starts SGLang, or a text that a shell will read.

`recognise` takes the words of one command as the shell made them and looks through wrappers. It knows entry points and wrappers, but none
of SGLang's flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.launch import FLAG_PREFIXES, Clue, Program
from spec_lsp.syntax.shell.expand import FROM_COMMAND_LINE
from spec_lsp.syntax.word import Fragment, Place, Word, hull, possible

# Every SGLang module that parses SGLang's flags itself, in any release since 0.2.
MODULES: dict[str, Program] = {
    "sglang.launch_server": "launch_server",
    "sglang.launch_server_llavavid": "launch_server",  # until 0.3.6
    "sglang.bench_latency": "one_batch",  # until 0.3.5, then bench_one_batch
    "sglang.bench_server_latency": "one_batch_server",  # until 0.3.5, then bench_one_batch_server
    "sglang.bench_one_batch": "one_batch",
    "sglang.bench_one_batch_server": "one_batch_server",
    "sglang.bench_offline_throughput": "offline_throughput",
    "sglang.benchmark.one_batch": "one_batch",  # since 0.5.15, as the next two
    "sglang.benchmark.one_batch_server": "one_batch_server",
    "sglang.benchmark.offline_throughput": "offline_throughput",
    "sglang.compile_deep_gemm": "deep_gemm",
    "sglang.srt.weight_cache.daemon": "weight_cache",  # since 0.5.18
    "sglang_router.launch_server": "router",
    "dynamo.sglang": "dynamo",
    "dynamo.sglang.worker": "dynamo",
    "dynamo.sglang.decode_worker": "dynamo",
}
SCRIPTS: dict[str, Program] = {
    f"{module.replace('.', '/')}.py": program for module, program in MODULES.items() if module.startswith("sglang.")
}


def typed_entry(blank: str) -> str:
    """An expression for an entry point as people type it; `blank` is an expression for what separates its words."""
    module = r"(?:sglang\.(?:launch_server|bench_\w+|benchmark\.\w+)|dynamo\.sglang)\b"
    return rf"(?:\S*python[\d.]*{blank}-m{blank}{module}|sglang{blank}serve\b)"


PYTHON = expression(r"(?:python|pypy)(?:\d(?:\.\d+)?)?t?\Z")
ASSIGNMENT = expression(r"[A-Za-z_]\w*=")
PIN = expression(r"sglang(?:\[[^\]]*\])?\s*[=~<>!]=?=?\s*[\w.*+!]+")
_SOURCES = expression(
    r"(?:sglang\s*(?:\[[^\]]*\])?\s*@\s*)?git\+\S*/sglang(?![\w-])|(?:\S*/sglang(?:/python)?|sglang/python)/?(?:\[[^\]]*\])?\Z",
    re.I,
)
_AT_RELEASE = expression(r"@v?\d+\.\d+\.\d+")
SGLANG_IMAGE = expression(r"sglang|lmsys", re.I)


def is_build(text: str) -> bool:
    """Whether `pip install` is given SGLang sources that are not a release: a repository's branch, a folder."""
    return _SOURCES.match(text) is not None and _AT_RELEASE.search(text) is None


TEXT_COMMANDS = frozenset({
    "echo", "printf", "pgrep", "pkill", "grep", "egrep", "fgrep", "rg", "kill", "killall", "cat", "sed", "awk",
    "head", "tail", "less", "ps", "log", "info", "warn", "error", "die", "usage", "logger", "trap", "alias", "test",
    "[", "true", "false", ":", "read", "which", "type", "hash", "man", "help", "wait", "sleep", "mkdir", "rm", "cp",
    "mv", "ln", "ls", "cd", "pushd", "popd", "curl", "wget", "jq", "git", "date", "tr", "cut", "sort", "uniq", "wc",
    "chmod", "chown", "touch", "basename", "dirname", "realpath", "readlink",
})  # fmt: skip
"""Commands whose words are only text: a launch in them is not started."""

SPEAKS = frozenset((
    "write", "print", "echo", "log", "show", "dump", "save", "record", "add", "append", "note", "describe", "say", "check", "get", "set",
))  # fmt: skip
RUNS = frozenset(
    ("run", "exec", "execute", "start", "launch", "spawn", "retry", "serve", "with", "bg", "background", "nohup")
)
"""Parts of function names: of functions that only inspect their arguments, and of functions that run them."""

PREFIXES = frozenset({
    "nohup", "exec", "setsid", "command", "builtin", "time", "nice", "ionice", "taskset", "numactl", "chrt",
    "timeout", "stdbuf", "unbuffer", "catchsegv", "strace", "ltrace", "perf", "nsys", "ncu", "rocprof", "rocprofv3",
    "rocprofv2", "valgrind", "gdb", "sudo", "doas", "env", "srun", "mpirun", "mpiexec", "torchrun", "accelerate",
    "uv", "uvx", "pipx", "poetry", "pixi", "conda", "mamba", "micromamba", "hatch", "rye", "pdm", "singularity",
    "apptainer", "enroot", "screen", "xargs", "flock", "proxychains", "proxychains4", "tini", "dumb-init",
    "catatonit", "s6-setuidgid", "gosu", "su-exec", "kubectl", "oc", "ray", "podman", "docker", "nerdctl",
    "docker-compose", "bash", "sh", "zsh", "dash", "ksh", "ssh", "tmux", "sbatch", "salloc", "su", "runuser",
    "script", "tsp", "pm2", "parallel", "watch", "caffeinate", "sg",
})  # fmt: skip
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash"})
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
DOCKER_SWITCHES = frozenset({
    "--rm", "--detach", "--interactive", "--tty", "--privileged", "--init", "--read-only", "--no-healthcheck",
    "--oom-kill-disable", "--publish-all", "--quiet", "--sig-proxy", "--disable-content-trust", "--replace",
    "--rmi", "--tls-verify", "--no-hosts", "--no-hostname", "--service-ports", "--no-deps", "--build", "--no-TTY",
    "--use-aliases", "--remove-orphans",
})  # fmt: skip
SSH_VALUES = frozenset({
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q", "-R", "-S",
    "-W", "-w",
})  # fmt: skip
SLURM_CLUES = {
    "gres": "gpu", "constraint": "gpu", "C": "gpu", "gpus": "gpu", "G": "gpu", "gpus-per-node": "gpu", "gpus-per-task": "gpu",
    "nodes": "nodes", "N": "nodes", "container-image": "image",
}  # fmt: skip
SBATCH_SWITCHES = frozenset({
    "--contiguous", "--exclusive", "--get-user-env", "--hold", "--ignore-pbs", "--no-kill", "--no-requeue", "--overcommit",
    "--oversubscribe", "--parsable", "--quiet", "--reboot", "--requeue", "--spread-job", "--test-only", "--use-min-nodes",
    "--verbose", "--wait",
})  # fmt: skip
ENTER_KEYS = frozenset({"enter", "c-m", "kpenter", "c-j"})
PARALLEL_MARK = r"\{(?:\d*[/.]{0,2}|#|%)\}"
NOT_PASSED_ON = expression(r"(?:router|server|config|gateway|mode)(?![A-Za-z0-9])")
"""Flags of trainers that begin with `--sglang-` but are the trainer's own."""
OF_CLIENTS = expression(
    r"(?:url|base-url|host|port|ip|addr|address|endpoint|model|api-key|timeout|path|dir|image|version|log)(?:[=_-]|\Z)"
)
"""What a client of a server has under such names: with these alone it is not a launch."""
FROM_INPUT = "from what the command reads"
PRINTS = ("--help", "-h", "--version")
"""Flags with which SGLang prints something and exits."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What wrappers say about the process that they start."""

    env: tuple[tuple[str, Word | None], ...] = ()
    """Variables given, in order; None passes on the caller's own."""
    fresh: bool = False
    """The process does not inherit the caller's environment (a container, another host)."""
    clues: tuple[Clue, ...] = ()
    guessed: bool = False
    """Whether an unknown command is assumed to start its arguments."""

    def add_env(self, word: Word) -> Surroundings:
        name, separator, _ = word.known_start.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return self
        value = word.split(len(name) + 1)[1] if separator else None
        return replace(self, env=(*self.env, (name, value)))

    def add_clue(self, clue: Clue) -> Surroundings:
        return replace(self, clues=(*self.clues, clue))


@dataclass(frozen=True, slots=True)
class Started:
    """SGLang is started with `args`; `entry` are the words of its entry point."""

    program: Program
    entry: tuple[Word, ...]
    args: tuple[Word, ...]
    around: Surroundings


@dataclass(frozen=True, slots=True)
class Embedded:
    """A shell reads `script`, the `same` one (eval) or a new one whose positional parameters are `args`."""

    script: Word
    args: tuple[Word, ...]
    same: bool
    around: Surroundings


@dataclass(frozen=True, slots=True)
class StandardInput:
    """A shell reads a script from its standard input; `args` are `$0` and the positional parameters."""

    around: Surroundings
    args: tuple[Word, ...] = ()
    text: Word | None = None
    """The script, if it is known."""


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A shell reads a script that this one has written to a file."""

    path: Word
    args: tuple[Word, ...]
    around: Surroundings
    text: Word | None = None
    """The script, if it is known."""


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the script is called."""

    name: str
    args: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class CalledByPart:
    """One of these functions of the script is called, or none: only a part of the name is known (`preset_$1`, `"$1"`)."""

    names: tuple[str, ...]
    args: tuple[Word, ...]


Action = Started | Embedded | StandardInput | ScriptFile | Called | CalledByPart


@dataclass(slots=True)
class _CommandReader:
    functions: Collection[str]
    written: Callable[[Word], bool]
    """Whether a word is the path of a file that the script has written."""
    foreign: bool = False
    """Whether there may be functions that cannot be read."""
    steps: int = field(default=0)

    def read(self, words: Sequence[Word], around: Surroundings, certain: bool = True) -> Action | None:
        """What the command starts. Not `certain`: the first word may be an option's value."""
        self.steps += 1
        if not words or self.steps > 400:
            return None
        first = words[0]
        name = command_name(first)
        if _is_path(first) and self.written(first):
            return ScriptFile(first, tuple(words[1:]), around)
        if name is None:
            return self.unknown_command(words, around) or (self.called_by_part(words) if certain else None)
        if certain and first.text is not None and first.text in self.functions:
            return Called(first.text, tuple(words[1:]))
        if PYTHON.match(name):
            return self.python(words, around)
        if name == "sglang":
            return self.sglang(words, around)
        if name in TEXT_COMMANDS:
            return None
        handler = HANDLERS.get(name)
        if handler is not None:
            return handler(self, words, around)
        if name in PREFIXES or not certain:
            return self.scan(words, 1, around, name in PREFIXES)
        if first.text == name and self.only_looks(name):
            return None
        return self.scan(words, 1, replace(around, guessed=True), False)

    def only_looks(self, name: str) -> bool:
        """Whether an unknown name is that of a function in another file that does not indicate that it starts its arguments."""
        parts = set(re.findall(r"[a-z]+", name.lower()))
        is_function = re.fullmatch(r"[A-Za-z_]\w*", name) is not None and (self.foreign or "_" in name)
        return is_function and (not parts & RUNS or bool(parts & SPEAKS))

    def unknown_command(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`$PY -u -m sglang.launch_server`, `$PREFIX python -m …`."""
        module = module_of(words)
        if module is not None:
            return started(MODULES[words[module].text or ""], words, module + 1, around)
        if len(words) >= 2 and words[1].text == "serve" and (words[0].fragments[-1].text or "").endswith("sglang"):
            return started("serve", words, 2, around)
        return self.scan(words, 1, around, True) if len(words) > 1 else None

    def called_by_part(self, words: Sequence[Word]) -> Action | None:
        """`preset_$1` calls one of the functions whose names fit; `"$1"` any function that the command line names."""
        first = words[0]
        may_be = possible(first.fragments)
        if not any(f.text for f in first.fragments) and first.reason != FROM_COMMAND_LINE and not may_be:
            return None
        pattern = (
            ".*" if first.splat else "".join(".*" if f.text is None else re.escape(f.text) for f in first.fragments)
        )
        names = tuple(n for n in self.functions if (n in may_be if may_be else re.fullmatch(pattern, n)))
        args = words if first.splat and not first.scalar else words[1:]
        return CalledByPart(names, tuple(args)) if names else None

    def python(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        i = 1
        while i < len(words):
            text = words[i].text
            if text == "-m" and i + 1 < len(words):
                module = words[i + 1].text or ""
                if module in MODULES:
                    return started(MODULES[module], words, i + 2, around)
                if module == "sglang" and i + 2 < len(words) and words[i + 2].text == "serve":
                    return started("serve", words, i + 3, around)
                return self.later_module(words, i + 2, around) or trainer(words, i + 2, around)
            if text == "-c":
                return None
            if text is None or not text.startswith("-"):
                last = words[i].fragments[-1].text if words[i].fragments and not words[i].splat else None
                script = next((p for s, p in SCRIPTS.items() if (last or "").endswith(s)), None)
                return started(script, words, i + 1, around) if script else trainer(words, i + 1, around)
            i += 2 if text in ("-X", "-W") else 1
        return None

    def later_module(self, words: Sequence[Word], start: int, around: Surroundings) -> Action | None:
        """`python -m debugpy … -m sglang.launch_server`, `torchrun … -m sglang.launch_server`."""
        for i in range(start, len(words) - 1):
            module = words[i + 1].text or ""
            if words[i].text in ("-m", "--module") and module in MODULES:
                return started(MODULES[module], words, i + 2, around, first=i)
        return None

    def sglang(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        if len(words) > 1 and words[1].text == "serve":
            return started("serve", words, 2, around)
        return None

    def scan(self, words: Sequence[Word], start: int, around: Surroundings, wrapper: bool) -> Action | None:
        """The command that an unknown command starts, recognized by its form; after a known wrapper more forms are accepted."""
        for i in range(start, len(words)):
            name = command_name(words[i])
            if wrapper and _is_path(words[i]) and self.written(words[i]):
                return ScriptFile(words[i], tuple(words[i + 1 :]), around)
            if name is None:
                if module_of(words[i:]) is not None:
                    return self.unknown_command(words[i:], _pins(words[:i], around))
                continue
            if (
                PYTHON.match(name)
                or name == "sglang"
                or (wrapper and name in PREFIXES and words[i].text == name)
                or name in SHELLS
            ):
                found = self.read(words[i:], _pins(words[:i], around), False)
                if found is not None:
                    return found
            elif wrapper and i == start and words[i].text is not None and words[i].text in self.functions:
                return Called(words[i].text or "", tuple(words[i + 1 :]))
        return None

    def env(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        i = 1
        while i < len(words):
            start = words[i].known_start
            if ASSIGNMENT.match(start):
                around = around.add_env(words[i])
            elif start in ("-u", "--unset", "-C", "--chdir", "-g", "--group", "--user"):
                i += 1
            elif start == "-i" or start == "--ignore-environment":
                around = replace(around, fresh=True)
            elif start in ("-S", "--split-string"):
                return Embedded(words[i + 1], (), True, around) if i + 1 < len(words) else None
            elif not start.startswith("-"):
                return self.read(words[i:], around)
            i += 1
        return None

    def uv(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`uv run python -m …`, `uv run -m sglang.launch_server`."""
        return self.scan(words, 1, around, True) or self.later_module(words, 1, _pins(words, around))

    def torchrun(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        return self.later_module(words, 1, around) or self.scan(words, 1, around, True) or trainer(words, 1, around)

    def shell(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`bash -lc TEXT arg …`, `bash -s`, `bash prepare.sh COMMAND …`."""
        i = 1
        while i < len(words):
            text = words[i].text
            if text is None:
                return ScriptFile(words[i], tuple(words[i + 1 :]), around) if self.written(words[i]) else None
            if re.fullmatch(r"-[A-Za-z]*c", text):
                i += 1
                if i < len(words) and words[i].text == "--":
                    i += 1
                return Embedded(words[i], tuple(words[i + 1 :]), False, around) if i < len(words) else None
            if text in ("-o", "+o", "-O", "--rcfile", "--init-file"):
                i += 1
            elif text in ("-", "-s", "/dev/stdin") or re.fullmatch(r"-[A-Za-z]*s", text):
                rest = words[i + 2 :] if words[i + 1 : i + 2] and words[i + 1].text == "--" else words[i + 1 :]
                return StandardInput(around, (words[0], *rest))
            elif not text.startswith(("-", "+")):
                if self.written(words[i]):
                    return ScriptFile(words[i], tuple(words[i + 1 :]), around)
                return self.scan(words, i + 1, around, True)
            i += 1
        return StandardInput(around)

    def evaluation(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        return Embedded(joined(words[1:]), (), True, around) if len(words) > 1 else None

    def dash_c(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`su user -c TEXT`, `script -q -c TEXT log`, `sbatch --wrap=TEXT`."""
        for i, word in enumerate(words[1:], 1):
            if word.text in ("-c", "--command", "--wrap") and i + 1 < len(words):
                return Embedded(words[i + 1], (), False, around)
            for option in ("--command=", "--wrap="):
                if word.known_start.startswith(option):
                    return Embedded(word.split(len(option))[1], (), False, around)
        return self.scan(words, 1, around, True)

    def ssh(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        i = 1
        away = replace(around, fresh=True)
        while i < len(words) and (words[i].known_start.startswith("-") or words[i].known_start == "ssh"):
            i += 2 if words[i].text in SSH_VALUES else 1
        rest = words[i + 1 :]
        if rest and rest[0].text == "--":
            rest = rest[1:]
        if not rest:
            return StandardInput(away) if i < len(words) else None
        return Embedded(joined(rest), (), False, away)

    def behind_dashes(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`kubectl exec pod -- command`, `ray job submit … -- command`."""
        for i, word in enumerate(words):
            if word.text == "--":
                return self.read(words[i + 1 :], replace(around, fresh=True))
        return self.scan(words, 1, around, True)

    def tmux(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`tmux send-keys -t x 'command' Enter`, `tmux new-session -d 'command'`."""
        keys = next((i for i, w in enumerate(words) if w.text in ("send-keys", "send")), None)
        if keys is None:
            return self.last_text(words, around)
        i = keys + 1
        while i < len(words) and words[i].known_start.startswith("-"):
            i += 2 if words[i].text in ("-t", "-N") else 1
        typed = [_enter(w) if (w.text or "").lower() in ENTER_KEYS else w for w in words[i:]]
        typed = [w for w in typed if not re.fullmatch(r"[CM]-.", w.text or "")]
        return Embedded(joined(typed, ""), (), False, around) if typed else None

    def screen(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`screen -S x -X stuff 'command\\n'`; else as any wrapper."""
        for i, word in enumerate(words[:-1]):
            if word.text == "stuff":
                return Embedded(_typed(words[i + 1]), (), False, around)
        return self.last_text(words, around)

    def pm2(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`pm2 start 'command' --name x`, `pm2 start python3 --name x -- -m module`."""
        start = next((i for i, w in enumerate(words) if w.text == "start"), None)
        if start is None or start + 1 >= len(words):
            return None
        program = words[start + 1]
        if " " in program.known_start.strip():
            return Embedded(program, (), False, around)
        dashes = next((i for i, w in enumerate(words) if w.text == "--"), len(words))
        return self.read([program, *words[dashes + 1 :]], around) or self.scan(words, start + 1, around, True)

    def last_text(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """A wrapper that takes a command, or a command's text as its last word."""
        found = self.scan(words, 1, around, True)
        if found is not None or len(words) < 2 or not any("sglang" in (f.text or "") for f in words[-1].fragments):
            return found
        return Embedded(words[-1], (), False, around)

    def remote(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`pdsh -w hosts 'command'`."""
        return self.last_text(words, replace(around, fresh=True))

    def xargs(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`xargs -I{} command {}`: the replacement comes from its input."""
        i = 1
        mark: str | None = None
        while i < len(words) and words[i].known_start.startswith("-"):
            text = words[i].known_start
            if text[:2] in ("-I", "-i"):
                given = text[2:] or ((words[i + 1].text if text == "-I" and i + 1 < len(words) else None) or "{}")
                mark, i = given, i + (text == "-I")
            elif re.fullmatch(r"-[aEdLnPs]", text):
                i += 1
            i += 1
        command = list(words[i:])
        if not command:
            return None
        if mark is not None:
            return self.read([_with_holes(w, re.escape(mark)) for w in command], around)
        place = words[0].place
        return self.read([*command, Word((Fragment(None, place, False, FROM_INPUT),), place, True)], around)

    def parallel(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """GNU `parallel 'command {}' ::: a b`."""
        end = next((i for i, w in enumerate(words) if (w.text or "").startswith(":::")), len(words))
        start = 1
        while start < end and words[start].known_start.startswith("-"):
            start += (
                2
                if re.fullmatch(
                    r"-[jNnLaCIEsS]|--(?:jobs|arg-file|colsep|delay|sshlogin|joblog)", words[start].known_start
                )
                else 1
            )
        command = [_with_holes(w, PARALLEL_MARK) for w in words[start:end]]
        return Embedded(joined(command), (), False, around) if command else None

    def mpi(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`mpirun -np 2 -x NAME=value command`."""
        for option, value in pairwise(words[1:]):
            if option.text in ("-x", "--x"):
                around = around.add_env(value)
        for i, option in enumerate(words[:-2]):
            if option.text in ("-env", "-genv") and words[i + 1].text:
                around = replace(around, env=(*around.env, (words[i + 1].text or "", words[i + 2])))
        return self.scan(words, 1, around, True)

    def enroot(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        for option, value in pairwise(words[1:]):
            if option.text in ("-e", "--env"):
                around = around.add_env(value)
        return self.scan(words, 1, around, True)

    def container(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        verb = next((i for i, w in enumerate(words) if w.text in ("run", "exec", "create")), None)
        if verb is None:
            return self.scan(words, 1, replace(around, fresh=True), True)
        compose = words[0].known_start.endswith("compose") or any(w.text == "compose" for w in words[:verb])
        i, inside, entrypoint = container_options(words, verb + 1, replace(around, fresh=True))
        if i >= len(words):
            return self.scan(words, verb + 1, inside, True)
        if i and words[i - 1].splat and is_program(command_name(words[i])):
            return self.read(words[i:], inside)
        if words[verb].text != "exec" and not compose and words[i].known_start:
            inside = inside.add_clue(_clue("image", words[i]))
        command = words[i + 1 :]
        if entrypoint is not None and entrypoint.text:
            command = [entrypoint, *command]
        found = self.read(command, inside) if command else None
        return found or self.scan(words, i + 1, inside, True)

    def apptainer(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        for i, word in enumerate(words[1:], 1):
            text = word.known_start
            if text == "--env" and i + 1 < len(words):
                around = _env_list(around, words[i + 1])
            elif text.startswith("--env="):
                around = _env_list(around, word.split(len("--env="))[1])
            elif text.endswith((".sif", ".sqsh")) or text.startswith(("docker://", "oras://", "library://")):
                around = around.add_clue(_clue("image", word))
                found = self.read(words[i + 1 :], around)
                if found is not None:
                    return found
        return self.scan(words, 1, around, True)

    def slurm(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        return self.dash_c(words, _slurm_around(words, around))

    def make(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`make run ARGS='command'`: the recipe runs the command that it is given."""
        for word in words[1:]:
            if ASSIGNMENT.match(word.known_start) and "sglang" in "".join(f.text or "" for f in word.fragments):
                return Embedded(word.split(word.known_start.index("=") + 1)[1], (), False, around)
        return None

    def sbatch(self, words: Sequence[Word], around: Surroundings) -> Action | None:
        """`sbatch --wrap='command'`, `sbatch job.sh`, `sbatch <<EOF`."""
        around = _slurm_around(words, around)
        i = 1
        while i < len(words) and (words[i].known_start.startswith("-") or words[i].splat) and words[i].text != "-":
            text = words[i].known_start
            if text.startswith("--wrap"):
                return self.dash_c(words, around)
            takes = re.fullmatch(r"-[^hHkOQsvVW]", text) or (text.startswith("--") and text not in SBATCH_SWITCHES)
            i += 2 if takes and "=" not in text else 1
        if i >= len(words) or words[i].text == "-":
            return StandardInput(around)
        if self.written(words[i]):
            return ScriptFile(words[i], tuple(words[i + 1 :]), around)
        return self.scan(words, i + 1, around, True)


Handler = Callable[[_CommandReader, Sequence[Word], Surroundings], Action | None]
HANDLERS: dict[str, Handler] = {
    "env": _CommandReader.env,
    "sudo": _CommandReader.env,
    "doas": _CommandReader.env,
    "eval": _CommandReader.evaluation,
    "uv": _CommandReader.uv,
    "torchrun": _CommandReader.torchrun,
    "accelerate": _CommandReader.torchrun,
    "ssh": _CommandReader.ssh,
    "tmux": _CommandReader.tmux,
    "screen": _CommandReader.screen,
    "pm2": _CommandReader.pm2,
    "xargs": _CommandReader.xargs,
    "parallel": _CommandReader.parallel,
    "enroot": _CommandReader.enroot,
    "gcloud": _CommandReader.dash_c,
    "vagrant": _CommandReader.dash_c,
    "srun": _CommandReader.slurm,
    "sbatch": _CommandReader.sbatch,
    **dict.fromkeys(("make", "gmake"), _CommandReader.make),
    "salloc": _CommandReader.slurm,
    "su": _CommandReader.dash_c,
    "sg": _CommandReader.dash_c,
    "runuser": _CommandReader.dash_c,
    "script": _CommandReader.dash_c,
    "flock": _CommandReader.dash_c,
    "kubectl": _CommandReader.behind_dashes,
    "oc": _CommandReader.behind_dashes,
    "ray": _CommandReader.behind_dashes,
    "singularity": _CommandReader.apptainer,
    "apptainer": _CommandReader.apptainer,
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra"), _CommandReader.mpi),
    **dict.fromkeys(("pdsh", "clush", "pssh", "parallel-ssh", "sky", "bsub", "wsl"), _CommandReader.remote),
    **dict.fromkeys(("xterm", "gnome-terminal", "konsole", "byobu"), _CommandReader.last_text),
    **dict.fromkeys(("coverage", "scalene", "viztracer", "memray", "kernprof"), _CommandReader.torchrun),
    **dict.fromkeys(SHELLS, _CommandReader.shell),
    **dict.fromkeys((*CONTAINERS, "docker-compose"), _CommandReader.container),
}


def recognise(
    words: Sequence[Word],
    functions: Collection[str],
    written: Callable[[Word], bool] = lambda path: False,
    foreign: bool = False,
) -> Action | None:
    """What a command starts, None if nothing relevant.

    `written`: whether the script has written a file of that path; `foreign`: whether it sources files that cannot be read.
    """
    return _CommandReader(functions, written, foreign).read(words, Surroundings())


def started(
    program: Program, words: Sequence[Word], count: int, around: Surroundings, first: int = 0
) -> Started | None:
    """The launch after an entry point of `count` words; None if SGLang only prints its help or its version."""
    if any(word.text in PRINTS for word in words[count:]):
        return None
    return Started(program, tuple(words[first:count]), tuple(words[count:]), around)


def trainer(words: Sequence[Word], count: int, around: Surroundings) -> Started | None:
    """A program that passes its own flags that begin with `--sglang-` on to SGLang: the launch has these, without the prefix.

    Of the other words, only those of unknown number are kept: they may contain more flags.
    """
    prefix = FLAG_PREFIXES["trainer"]
    args: list[Word] = []
    own = False
    certain = False
    for word in words[count:]:
        start = word.known_start
        if start.startswith("--") or (word.splat and not (own and word.scalar)):
            own = start.startswith(prefix) and not NOT_PASSED_ON.match(start, len(prefix))
            if own:
                certain |= not OF_CLIENTS.match(start, len(prefix))
                dashes, flag = word.split(2)[0], word.split(len(prefix))[1]
                args.append(Word((*dashes.fragments, *flag.fragments), word.place))
            elif word.splat:
                args.append(word)
        elif own:
            args.append(word)
    return Started("trainer", tuple(words[:count]), tuple(args), around) if certain else None


def module_of(words: Sequence[Word]) -> int | None:
    """The index of SGLang's module, if an unknown program is given it as Python is: `$PY -u -m sglang.launch_server`."""
    i = 1
    while i < len(words) and re.fullmatch(r"-[bBdEhiIOPqsSuvVxXW]+", words[i].text or ""):
        i += 2 if words[i].text in ("-X", "-W") else 1
    found = i + 1 < len(words) and words[i].text == "-m" and words[i + 1].text in MODULES
    return i + 1 if found else None


def is_program(name: str | None) -> bool:
    """Whether a name is that of a program that starts SGLang, directly or through a shell."""
    return name is not None and (PYTHON.match(name) is not None or name == "sglang" or name in SHELLS)


def command_name(word: Word) -> str | None:
    """The last part of the path that a word names, None if unknown: `python` of `"$VENV"/bin/python`."""
    text = word.text
    if text is None:
        last = word.fragments[-1].text if word.fragments and not word.splat else None
        if last is None or "/" not in last:
            return None
        text = last
    return text.rpartition("/")[2]


def joined(words: Sequence[Word], between: str = " ") -> Word:
    """The words separated by blanks, as `eval` and `ssh` read them."""
    fragments: list[Fragment] = []
    for i, word in enumerate(words):
        if i and between:
            fragments.append(Fragment(between, word.place, False, fixed=True))
        fragments.extend(word.fragments)
    place = hull(_passed_at(w) for w in words)
    return Word(tuple(fragments), place, len(words) == 1 and words[0].splat)


def _passed_at(word: Word) -> Place:
    """The place at which a word is given to a command: the name of the variable that it comes from."""
    via = word.fragments[0].via if word.fragments else ()
    return via[0] if via and not word.place.contains(via[0]) else word.place


def _is_path(word: Word) -> bool:
    """Whether a shell takes a command for a path; an unknown value may contain one."""
    return any(f.text is None or "/" in f.text for f in word.fragments)


def _enter(word: Word) -> Word:
    """A key that ends a line, as the text that it types."""
    return Word((Fragment("\n", word.place, False, fixed=True),), word.place)


def _typed(word: Word) -> Word:
    r"""A text that `screen` types: `\n` and `^M` in it end a line."""
    text = word.text or word.known_start
    end = re.search(r"(?:\\[nr]|\^M|[\r\n])+\Z", text)
    return word if end is None else Word(word.slice(0, end.start()), word.place)


def _with_holes(word: Word, mark: str) -> Word:
    """The word with every mark (`{}`), which is replaced when it runs, unknown."""
    if word.splat or not re.search(mark, word.known_start):
        return word
    found: list[Fragment] = []
    for fragment in word.fragments:
        position = 0
        piece = Word((fragment,), word.place)
        for m in re.finditer(mark, fragment.text or ""):
            found += piece.slice(position, m.start()) if position < m.start() else ()
            found.append(Fragment(None, piece.slice(*m.span())[0].place, False, FROM_INPUT))
            position = m.end()
        if fragment.text is None:
            found.append(fragment)
        elif position < len(fragment.text):
            found += piece.slice(position, len(fragment.text))
    return Word(tuple(found), word.place)


def _env_list(around: Surroundings, value: Word) -> Surroundings:
    """`A=1,B=2`."""
    text = value.text
    if text is None or "," not in text:
        return around.add_env(value)
    start = 0
    for piece in re.split(r",(?=[A-Za-z_]\w*(?:=|,|\Z))", text):
        fragments = value.slice(start, start + len(piece)) if piece else ()
        around = around.add_env(Word(fragments, value.place_of(start, start + len(piece)) or value.place))
        start += len(piece) + 1
    return around


def _slurm_around(words: Sequence[Word], around: Surroundings) -> Surroundings:
    """The hardware, image and variables that the options of `srun` and `sbatch` name."""
    for i, word in enumerate(words[1:], 1):
        start = word.known_start
        name, equals, _ = start.lstrip("-").partition("=")
        if not start.startswith("-") or (name not in SLURM_CLUES and name != "export"):
            continue
        value = (
            word.split(len(start.partition("=")[0]) + 1)[1] if equals else words[i + 1] if i + 1 < len(words) else None
        )
        if value is None or not value.known_start:
            continue
        if name == "export":
            around = _env_list(around, value)
        else:
            around = around.add_clue(slurm_clue(SLURM_CLUES[name], value.known_start, value.place))
    return around


def slurm_clue(kind: str, text: str, place: Place) -> Clue:
    """`gpu:h100:8` names a GPU, `8` only a number."""
    if kind == "gpu" and not re.search(r"[A-Za-z]", text.replace("gpu", "")):
        return Clue("gpu-count", text, place)
    return Clue(kind, text, place)  # type: ignore[arg-type]


def _clue(kind: str, word: Word) -> Clue:
    return Clue(kind, word.text or word.known_start, word.place)  # type: ignore[arg-type]


def _pins(words: Sequence[Word], around: Surroundings) -> Surroundings:
    """Pins among a wrapper's own words: `uvx --from sglang==0.5.9 sglang serve`."""
    for word in words:
        m = PIN.match(word.known_start)
        if m:
            around = around.add_clue(_clue("pin", word))
    return around


NO_WRAPPER = Surroundings()


def container_options(
    words: Sequence[Word], start: int, around: Surroundings = NO_WRAPPER
) -> tuple[int, Surroundings, Word | None]:
    """The options of `docker run` from `start` on: where they end, what they say, and the entry point that they set."""
    i = start
    entrypoint: Word | None = None
    while i < len(words):
        word = words[i]
        known = word.known_start
        if word.splat:
            i += 1
            continue
        if not known.startswith("-"):
            break
        option, equals, _ = known.partition("=")
        switch = known in DOCKER_SWITCHES or re.fullmatch(r"-[ditTqP]+", known) is not None
        value = (
            word.split(len(option) + 1)[1] if equals else (words[i + 1] if i + 1 < len(words) and not switch else None)
        )
        if value is not None:
            around = _docker_option(around, option, value)
            entrypoint = value if option == "--entrypoint" else entrypoint
        i += 1 if equals or switch else 2
    return i, around, entrypoint


def _docker_option(around: Surroundings, option: str, value: Word) -> Surroundings:
    if option in ("-e", "--env"):
        return around.add_env(value)
    if option == "--gpus" and value.known_start:  # images of NVIDIA
        return around.add_clue(_clue("gpu-count", value)).add_clue(Clue("platform", "nvidia", value.place))
    if option in ("--device", "--platform", "--runtime") and value.known_start:
        return around.add_clue(_clue("platform", value))
    return around
