"""Runs launches through binding and resolution, over the possible worlds; merges what they say; makes and verifies fixes.

analysis = analyse(read_document(name, text, workspace), options, workspace)  # diagnostics and resolved configurations of one document

The fixes of one diagnostic, and of all, are in `spec_lsp.analysis.fixes`, which is imported where some are wanted.
"""

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.reading import read_document

__all__ = ["Cache", "analyse", "read_document"]
