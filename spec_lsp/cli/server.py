"""`spec-lsp server`: the language server, and where its log goes."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from spec_lsp.cli.errors import UsageError

TOKEN_VARIABLE = "SPEC_LSP_TOKEN"


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves. Standard output is reserved for the protocol, so the log never goes there."""
    token = arguments.token if arguments.token is not None else os.environ.get(TOKEN_VARIABLE)
    if token is not None and (token != token.strip() or len(token) < MIN_TOKEN or not token.isascii()):
        raise UsageError(f"a token is of {MIN_TOKEN} ASCII characters or more: leave it out to have one made up")
    try:
        handler = (
            logging.FileHandler(arguments.log_file, encoding="utf-8")
            if arguments.log_file
            else logging.StreamHandler(sys.stderr)
        )
    except OSError as error:
        raise UsageError(f"cannot write the log to `{arguments.log_file}`: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = {0: logging.WARNING, 1: logging.INFO}.get(arguments.verbose, logging.DEBUG)
    logging.basicConfig(level=level, handlers=[handler])
    from spec_lsp import server

    try:
        return server.run(
            arguments.transport,
            arguments.host,
            arguments.port,
            once=arguments.once,
            hosts=arguments.allow_host,
            origins=arguments.allow_origin,
            token=token or "",
            find_files=files_that_may_launch,
        )
    except OSError as error:
        raise UsageError(f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror}") from error
    except OverflowError as error:
        raise UsageError(f"{arguments.port} is no port: it is a number from 0 to 65535") from error
    except ImportError as error:
        raise UsageError(f"`--{arguments.transport}` needs a package that is not installed: {error}") from error


def files_that_may_launch(folders: Sequence[str]) -> Iterator[str]:
    """The files of folders that `check` would look at: those that git does not ignore and that may launch SGLang. The setting `exclude` is
    not applied."""
    from spec_lsp.cli.check import may_be_launched_from
    from spec_lsp.cli.walk import candidates
    from spec_lsp.files import Area, OutsideError

    area = Area(folders)
    for candidate in candidates([folder for folder in folders if os.access(folder, os.R_OK | os.X_OK)], area):
        with suppress(OutsideError):
            if may_be_launched_from(candidate, area):
                yield candidate.path


MIN_TOKEN = 16
"""The shortest token, in characters: shorter ones can be guessed."""
