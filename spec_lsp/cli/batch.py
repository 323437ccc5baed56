"""`spec-lsp batch`: launches as JSON lines on standard input, one answer a line on standard output, in order.

A case is `{"id", "argv", "env", "version", "gpu", "files"}`; all but `argv` may be missing. `{models}/NAME` in argv is
the model folder NAME below `--models`, `{files}/NAME` the file NAME of `files`. An answer is `{"id", "verdict",
"findings", "resolved"}`.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from spec_lsp.analysis.argv import Answer, Said, resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.hardware import Hardware, find
from spec_lsp.facts.model import ModelFacts
from spec_lsp.workspace import DiskWorkspace

MODELS = "{models}/"
FILES = "{files}/"
CHUNK = 64
"""How many lines a worker takes at once."""


def run(arguments: argparse.Namespace) -> int:
    """Answer every line. Exits with 0 whatever the verdicts are."""
    lines = iter(sys.stdin.buffer.readline, b"")
    if arguments.jobs == 1:
        judge = Judge(arguments.models)
        # Each answer is written as soon as it is known: the caller may wait for it before the next question.
        interactive = sys.stdin.isatty() or not _is_file(sys.stdin.buffer)
        for line in lines:
            if answer := judge.line(line):
                sys.stdout.write(answer + "\n")
                if interactive:
                    sys.stdout.flush()
    else:
        for chunk in _spread(lines, arguments.models, arguments.jobs):
            sys.stdout.write(chunk)
            sys.stdout.flush()
    return 0


def _is_file(stream: Any) -> bool:
    return bool(stream.seekable())


# --- one case --------------------------------------------------------------------------------------------------------


class Judge:
    """Answers cases. `models` is what `{models}` stands for."""

    def __init__(self, models: str | None) -> None:
        folder = Path(models).absolute() if models else None
        workspace = DiskWorkspace((), models=(folder,) if folder else ())
        nowhere = str((folder or Path.cwd()) / "argv")

        @cache
        def model(path: str) -> ModelFacts | None:
            if path.startswith(MODELS) and folder is not None:
                path = str(folder / path.removeprefix(MODELS))
            return workspace.model(nowhere, path)

        self._model: Callable[[str], ModelFacts | None] = model

    def line(self, line: bytes | str) -> str:
        """The answer to a line; empty for a blank one. If a line is not a case, the answer says why."""
        if not line.strip():
            return ""
        identity: Any = None
        try:
            case = json.loads(line)
            identity = case.get("id") if isinstance(case, dict) else None
            answer = self._answer(case)
        except MisfitError as error:
            answer = _unknown(str(error))
        except json.JSONDecodeError as error:
            answer = _unknown(f"not JSON: {error}")
        except UnicodeDecodeError as error:
            answer = _unknown(f"not UTF-8: {error}")
        except Exception as error:  # a bug of ours in one case must not lose the others
            traceback.print_exc()
            answer = _unknown(f"internal error: {error}")
        return json.dumps({"id": identity, **answer}, separators=(",", ":"))

    def _answer(self, case: Any) -> dict[str, Any]:
        argv, env, files = _words(case), _texts(case, "env"), _texts(case, "files")
        release, hardware = _release(case), _hardware(case)
        answer = resolve_argv(
            argv, env, release, hardware, models=self._model, files=lambda path: files.get(path.removeprefix(FILES))
        )
        return answer_as_json(answer, release)


class MisfitError(Exception):
    """The case cannot be judged; the message says why."""


def _unknown(why: str) -> dict[str, Any]:
    return {"verdict": "unknown", "findings": [], "resolved": {}, "error": why}


def _words(case: Any) -> list[str]:
    argv = case.get("argv") if isinstance(case, dict) else None
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise MisfitError("`argv` must be a list of strings")
    return argv


def _texts(case: Mapping[str, Any], key: str) -> dict[str, str]:
    texts = case.get(key) or {}
    if not isinstance(texts, dict) or not all(isinstance(v, str) for v in texts.values()):
        raise MisfitError(f"`{key}` must map names to strings")
    return texts


def _release(case: Mapping[str, Any]) -> Release | None:
    text = case.get("version")
    if text is None:
        return None
    release = Release.read(text) if isinstance(text, str) else None
    if release is None or release not in releases():
        raise MisfitError(f"no SGLang release {text!r} is known (`spec-lsp catalog list`)")
    return release


def _hardware(case: Mapping[str, Any]) -> Hardware | None:
    text = case.get("gpu")
    if text is None:
        return None
    hardware = find(text) if isinstance(text, str) else None
    if hardware is None:
        raise MisfitError(f"no GPU {text!r} is known")
    return hardware


# --- the answer ------------------------------------------------------------------------------------------------------


def answer_as_json(answer: Answer, release: Release | None) -> dict[str, Any]:
    """The verdict, what was found, and every field whose value is known."""
    refused = answer.outcome in ("refused", "bad-arguments")
    return {
        "verdict": answer.outcome,
        "findings": [finding_as_json(said, release, refused) for said in answer.findings],
        "resolved": {} if refused else {k: v for k, v in answer.resolved.items() if _claimable(v)},
    }


def finding_as_json(said: Said, release: Release | None, refused: bool) -> dict[str, Any]:
    """One finding, with where SGLang's source refuses in that release."""
    rule = said.merged.found.rule
    sglang, raises = rule.place(release or said.merged.run.world.release)
    severity = said.merged.severity
    if severity == "error" and not refused and not rule.late:
        severity = "warning"  # refused in some worlds only
    return {
        "rule": rule.name,
        "code": rule.code,
        "severity": severity,
        "late": rule.late,
        "sglang": sglang or None,
        "raises": raises or None,
        "message": said.message,
    }


def _claimable(value: Any) -> bool:
    """Whether a value can be reported: one that contains a folder of the caller is only known to the caller."""
    if isinstance(value, str):
        return MODELS not in value and FILES not in value
    return value is None or isinstance(value, (bool, int, float, list, tuple, dict))


# --- several processes -----------------------------------------------------------------------------------------------


def _spread(lines: Iterator[bytes], models: str | None, jobs: int) -> Iterator[str]:
    """The answers in order, computed by several processes; a chunk of lines each."""
    from spec_lsp.cli.workers import spread

    chunks = iter(lambda: list(islice(lines, CHUNK)), [])
    for chunk, answers in spread(chunks, jobs, partial(_start, models)):
        if answers is not None:
            yield answers
            continue
        for (line,), answer in spread([[line] for line in chunk], 1, partial(_start, models)):
            yield answer if answer is not None else _ended(line)


def _start(models: str | None) -> Callable[[list[bytes]], str]:
    judge = Judge(models)
    return lambda lines: "".join(answer + "\n" for line in lines if (answer := judge.line(line)))


def _ended(line: bytes) -> str:
    """The answer to a case that a process died of."""
    try:
        case = json.loads(line)
    except ValueError:
        case = None
    identity = case.get("id") if isinstance(case, dict) else None
    answer = _unknown("the process that judged it was killed, or ran out of memory")
    return json.dumps({"id": identity, **answer}, separators=(",", ":")) + "\n"
