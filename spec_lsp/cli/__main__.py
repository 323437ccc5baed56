"""`python -m spec_lsp.cli`."""

from spec_lsp.cli.main import process

process()
