"""An SGLang that is kept running in a process of its own: started once, asked often, ended by its owner. worker.py is what runs there."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from spec_lsp.asking.devices import Device
from spec_lsp.records import dataclass

WORKER = Path(__file__).with_name("worker.py")

Json = dict[str, Any]


class CannotAskError(Exception):
    """SGLang cannot be asked; the message is a sentence that says why, and the way out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that importing SGLang and one launch may take, how many launches are asked at once, and the bytes that each may take."""

    starting: float = 180
    asking: float = 60
    jobs: int = 1
    memory: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Ready:
    """A description of what answers: the release by SGLang itself, the GPU's name and whether it is simulated, and the packages replaced by
    stand-ins."""

    version: str
    device: str
    simulated: bool
    stand_ins: tuple[str, ...]


class SGLang:
    """The SGLang of one interpreter on one device. Started by the first question; usable as a context. Not for two threads at once."""

    def __init__(
        self,
        python: str,
        device: Device,
        *,
        own: bool = False,
        packages: Sequence[str] = (),
        models: str | None = None,
        limits: Limits | None = None,
        learns: bool = True,
    ) -> None:
        """`own`: the machine's own GPU is taken where it has one. `packages` are folders put before the interpreter's own; `models` is what
        `{models}` stands for in a case. `learns`: modules of SGLang that one case imports are there for the next ones."""
        self.python = python
        self._limits = limits or Limits()
        self.device = device
        self._start: Json = {
            "packages": [os.path.abspath(p) for p in packages],
            "device": device.as_json(),
            "own": own,
            "models": os.path.abspath(models) if models else None,
            "jobs": self._limits.jobs,
            "seconds": self._limits.asking,
            "memory": self._limits.memory,
            "learns": learns,
        }
        self._unlearnt: SGLang | None = None
        """Where the few cases are asked that set a variable which was read while others' modules were imported."""
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._buffer = b""
        self._ready: Ready | None = None
        self._killed = False

    def __enter__(self) -> SGLang:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- asking

    def ready(self) -> Ready:
        """A description of what answers, which is started if necessary. Raises CannotAskError."""
        if self._ready is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._ready = self._begin()
        return self._ready

    def ask(self, cases: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
        """The answer to each case (`argv` or `fields`, `env`, `cwd`, `files`; see worker.py), in order. Raises CannotAskError.

        A case that takes too long, or that SGLang ends with, is answered "unanswered".
        """
        self.ready()
        done: dict[int, Json] = {}
        sent: dict[int, Mapping[str, Any]] = {}
        asked = given = 0
        for case in cases:
            sent[asked] = case
            self._send({"n": asked, **{k: case[k] for k in ("argv", "fields", "env", "cwd", "files") if case.get(k)}})
            asked += 1
            # As many as are asked at once, and one more that waits: so neither pipe fills up.
            while asked - given - len(done) > self._limits.jobs:
                self._receive(done, sent)
            while given in done:
                yield done.pop(given)
                given += 1
        while given < asked:
            if given not in done:
                self._receive(done, sent)
                continue
            yield done.pop(given)
            given += 1

    def _receive(self, done: dict[int, Json], sent: dict[int, Mapping[str, Any]]) -> None:
        answer = self._said(self._limits.asking * 2 + 10, "answer")
        number = answer.pop("n")
        case = sent.pop(number)
        done[number] = next(self._without_learning().ask([case])) if answer.get("unlearnt") else answer

    def _without_learning(self) -> SGLang:
        if self._unlearnt is None:
            own, packages, models = (self._start[name] for name in ("own", "packages", "models"))
            self._unlearnt = SGLang(
                self.python, self.device, own=own, packages=packages, models=models, limits=self._limits, learns=False
            )
            self._unlearnt._killed = self._killed
        return self._unlearnt

    # --- the process

    def _begin(self) -> Ready:
        # An empty folder: relative entries of a path lead nowhere.
        self._folder = tempfile.TemporaryDirectory(prefix="spec-lsp-")
        with open(os.path.join(self._folder.name, "log"), "wb") as log:
            try:
                self._process = subprocess.Popen(
                    [self.python, str(WORKER), json.dumps({**self._start, "folder": self._folder.name, "owner": os.getpid()})],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                    cwd=self._folder.name, env=_environment(self._folder.name), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                self.close()
                raise CannotAskError(
                    f"`{self.python}` cannot be started: {error.strerror}. Name the Python interpreter that has SGLang."
                ) from error
        if self._killed:
            self._end_process(self._process)
        first = self._said(self._limits.starting, "import")
        if "ready" not in first:
            self.close()
            raise CannotAskError(self._failure(first["failed"], first["why"]))
        said = first["ready"]
        return Ready(said["version"], said["device"]["name"], said["simulated"], tuple(said["stand_ins"]))

    def _failure(self, kind: str, why: str) -> str:
        if kind == "missing":
            return f"`{self.python}` has no SGLang. Name the Python interpreter that has it."
        return (
            f"SGLang cannot be imported by `{self.python}` as on {self.device.name}: {why}. "
            "It may be of a release that the simulated platform does not fit, or be installed in part."
        )

    def _send(self, line: Mapping[str, Any]) -> None:
        stdin = self._process.stdin if self._process is not None else None
        assert stdin is not None
        try:
            stdin.write(json.dumps(line).encode() + b"\n")
            stdin.flush()
        except OSError:  # it has ended: reading its answer gives the reason
            return

    def _said(self, seconds: float, doing: str) -> Json:
        """Its next answer. Raises CannotAskError if none comes in time, or it is not an answer."""
        line = self._line(seconds, doing)
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            self.close()
            raise CannotAskError(
                f"`{self.python}` says {line[:80].decode(errors='replace')!r}, and is no Python interpreter."
            )
        return said

    def _line(self, seconds: float, doing: str) -> bytes:
        """Its next line. Raises CannotAskError if none comes in time."""
        stdout = self._process.stdout if self._process is not None else None
        assert stdout is not None
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(until - time.monotonic(), 0)):
                    self.close()
                    raise CannotAskError(f"The SGLang of `{self.python}` did not {doing} within {seconds:g} seconds.")
                chunk = os.read(stdout.fileno(), 1 << 16)
                if not chunk:
                    said = self._last_words()
                    self.close()
                    raise CannotAskError(f"`{self.python}` ended before SGLang could {doing}{said}.")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _last_words(self) -> str:
        """The last line that it printed, as the end of a sentence."""
        if self._folder is None:
            return ""
        with suppress(OSError):
            lines = Path(self._folder.name, "log").read_bytes()[-2000:].decode(errors="replace").split("\n")
            words = [line.strip() for line in lines if line.strip()]
            return f": {words[-1][:300].rstrip('.')}" if words else ""
        return ""

    def kill(self) -> None:
        """End the process and everything that it started, permanently, while another thread may be asking it: that thread notices the end.

        The streams are left open for the other thread, which would not notice the end of a stream that was closed here.
        """
        self._killed = True
        if self._process is not None:
            self._end_process(self._process)
        if self._unlearnt is not None:
            self._unlearnt.kill()

    @staticmethod
    def _end_process(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:  # the id of a process that has ended may have been reused
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything that it started. The next question starts it again. Not while another thread is asking."""
        if self._unlearnt is not None:
            self._unlearnt.close()
            self._unlearnt = None
        process, self._process = self._process, None
        if process is not None:
            self._end_process(process)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()
        if self._folder is not None:
            self._folder.cleanup()
        self._folder, self._buffer, self._ready = None, b"", None


def _environment(folder: str) -> dict[str, str]:
    """The environment that SGLang is asked in: this one, less what would decide for it, kept from the network and to a folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SGLANG_", "SGL_"))}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return {**kept, **offline, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": folder}
