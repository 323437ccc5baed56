"""`spec-lsp playground`: a page to paste a launch into."""

from __future__ import annotations

import argparse
import logging
import sys

from spec_lsp.cli.errors import CLEAN, INTERRUPTED, UsageError


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    from spec_lsp import server

    try:
        code = server.run_playground(
            arguments.host, arguments.port, hosts=arguments.allow_host, origins=arguments.allow_origin
        )
    except OSError as error:
        raise UsageError(f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}") from error
    print(file=sys.stderr)
    return CLEAN if code == INTERRUPTED else code
