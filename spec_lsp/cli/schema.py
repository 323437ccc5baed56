"""`spec-lsp schema`: the JSON Schema of SGLang's configuration file, for YAML editors."""

from __future__ import annotations

import argparse
import sys

from spec_lsp.catalog.config_schema import config_schema
from spec_lsp.catalog.store import load, nearest, releases
from spec_lsp.cli.errors import CLEAN, UsageError
from spec_lsp.cli.files import write_text
from spec_lsp.cli.printed import json_text
from spec_lsp.cli.worlds import read_release
from spec_lsp.files import UnreadableError


def run(arguments: argparse.Namespace) -> int:
    """Print the schema of the named release, or of the newest, or write it to a file."""
    wanted = read_release(arguments.sglang) if arguments.sglang else releases()[-1]
    shipped = nearest(wanted)
    if shipped != wanted:
        print(f"spec-lsp: warning: SGLang {wanted} is not known; this is the schema of {shipped}", file=sys.stderr)
    try:
        schema = config_schema(load(shipped))
    except ValueError as error:
        raise UsageError(str(error)) from error
    text = json_text(schema, indent=2) + "\n"
    if arguments.output:
        try:
            write_text(arguments.output, text)
        except UnreadableError as error:
            raise UsageError(f"`{arguments.output}` {error}") from error
    else:
        print(text, end="")
    return CLEAN
