"""Runs one command and turns errors into a sentence and an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence

from spec_lsp import __version__
from spec_lsp.cli.errors import BROKEN_PIPE, FAILED, INTERRUPTED, UsageError
from spec_lsp.cli.garbage import COLLECT_EVERY

VERSION = (["--version"], ["-V"])
"""Options that are answered with hardly anything imported."""


LASTING = ("server", "playground", "verify")
"""Commands that end as Python does, with what threads and temporary folders leave behind cleared away."""


def process() -> None:
    """The program: `main` on its own words.

    Python frees what a program holds object by object before it ends, which would take as long as checking a file; and it looks for garbage
    while modules are imported, which are there to stay.
    """
    gc.disable()
    code = main()
    if not set(sys.argv[1:2]) <= {*LASTING}:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):  # there is none, or nobody reads it
            code = code or BROKEN_PIPE
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `spec-lsp ARGV` (default: the process's own) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in VERSION:
        return _ended(words)
    from spec_lsp.cli.printed import guarded_streams

    with guarded_streams():
        return _ended(words)


def _ended(words: list[str]) -> int:
    """The exit code of a command, however it ends."""
    try:
        code = _version() if words in VERSION else _run(words)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"spec-lsp: error: {_harmless(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone. Buffered output is discarded, or Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"spec-lsp: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED
    except Exception as error:
        import traceback

        traceback.print_exc()
        print(
            f"spec-lsp: internal error: {_harmless(error)} (a bug of spec-lsp: please report it with the lines above)",
            file=sys.stderr,
        )
        return FAILED


def _harmless(error: Exception) -> str:
    from spec_lsp.cli.printed import harmless

    return harmless(str(error))


def _version() -> int:
    print(f"spec-lsp {__version__}")
    return 0


def _run(words: list[str]) -> int:
    from importlib import import_module
    from importlib.util import find_spec

    from spec_lsp.cli.arguments import parser

    top = parser(words[0] if words else "")
    try:
        arguments, rest = top.parse_known_args(words)
        if arguments.command == "explain" and arguments.topic is None and rest:
            arguments.topic = rest.pop(0)
        if rest and arguments.command == "resolve":
            top.error("put `--` before the launch: spec-lsp resolve [OPTIONS] -- " + " ".join(rest))
        if hasattr(arguments, "paths") and not any(word.startswith("-") for word in rest):
            arguments.paths += rest  # argparse would not accept those after an option
            rest = []
        if rest:
            top.error(f"unrecognized arguments: {' '.join(rest)}")
    except SystemExit as end:  # argparse has said why, or shown the help
        return int(end.code or 0)
    if arguments.version:
        return _version()
    if arguments.command is None:
        top.print_help()
        return FAILED
    lacking = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if lacking:
        raise UsageError(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed, and spec-lsp needs "
            f"{'it' if len(lacking) == 1 else 'them'}: run `{sys.executable} -m pip install {' '.join(lacking)}`"
        )
    command = import_module(f"spec_lsp.cli.{arguments.command}")
    if not gc.isenabled():  # the process is ours, and ends with the command
        gc.freeze()
        gc.set_threshold(COLLECT_EVERY)
        gc.enable()
    code: int = command.run(arguments)
    return code


NEEDED = {
    "pygls": "pygls",
    "lsprotocol": "lsprotocol",
    "yaml": "PyYAML",
    "tree_sitter": "tree-sitter",
    "tree_sitter_bash": "tree-sitter-bash",
}
"""The modules of the packages that spec-lsp depends on. Some are imported late: missing ones are reported before work begins."""
