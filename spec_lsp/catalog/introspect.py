"""Run by `build.py` in the interpreter that has SGLang: prints its version and the contents of its argparse parser as JSON.

It is self-contained (that interpreter has no spec-lsp) and is called with the folder to put first in `sys.path` and, optionally, a script
to run before.
"""

# mypy: ignore-errors
import argparse
import ast
import inspect
import json
import runpy
import sys
import textwrap

PLAIN = (bool, int, float, str, type(None))


def plain(value):
    if hasattr(value, "value") and not isinstance(value, PLAIN):
        value = value.value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value if isinstance(value, PLAIN) else repr(value)


def choices(action):
    if action.choices is None:
        return None
    values = [plain(c) for c in action.choices]
    return sorted(values, key=str) if isinstance(action.choices, (set, frozenset)) else values


def always_raises(action):
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(type(action).__call__)))
    except (OSError, TypeError):
        return False
    return any(isinstance(statement, ast.Raise) for statement in tree.body[0].body)


def row(action):
    return {
        "flags": list(action.option_strings),
        "dest": action.dest,
        "action": type(action).__name__,
        "nargs": action.nargs,
        "const": plain(getattr(action, "const_value", action.const)),
        "default": plain(action.default),
        "type": getattr(action.type, "__name__", None) if action.type else None,
        "choices": choices(action),
        "required": action.required,
        "help": action.help or "",
        "new_flag": getattr(action, "new_flag", None),
        "error_message": getattr(action, "error_message", None) or "",
        "fatal": getattr(action, "error_message", None) is not None or always_raises(action),
    }


def main():
    sys.path[:0] = sys.argv[1:2]
    if len(sys.argv) > 2:
        runpy.run_path(sys.argv[2])
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    try:
        from sglang.version import __version__ as version
    except ImportError:
        version = ""
    print("\n" + json.dumps({"version": version, "flags": [row(a) for a in parser._actions]}))


if __name__ == "__main__":
    main()
