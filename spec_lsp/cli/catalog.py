"""`spec-lsp catalog list`, `spec-lsp catalog compare` and `spec-lsp catalog build`."""

from __future__ import annotations

import argparse
from pathlib import Path

from spec_lsp.catalog.store import load, releases
from spec_lsp.cli.errors import UsageError


def run(arguments: argparse.Namespace) -> int:
    """List the releases, or read one and print what a maintainer reviews."""
    if arguments.action == "list":
        for release in releases():
            print(f"{release!s:<14} {len(load(release).flags):>4} flags")
        return 0
    if arguments.action == "compare":
        from spec_lsp.cli.catalog_compare import compare

        print(compare(arguments.path))
        return 0
    from spec_lsp.catalog.build import BuildError, build

    try:
        built = build(
            Path(arguments.path),
            arguments.release,
            arguments.python,
            Path(arguments.prelude) if arguments.prelude else None,
            write=False,
        )
        report = built.report()
        if not arguments.dry_run:
            build(Path(arguments.path), arguments.release, arguments.python, _prelude(arguments))
    except BuildError as error:
        raise UsageError(str(error)) from error
    print(report)
    return 0


def _prelude(arguments: argparse.Namespace) -> Path | None:
    return Path(arguments.prelude) if arguments.prelude else None
