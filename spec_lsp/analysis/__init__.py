"""Runs launches through binding and resolution, over the possible worlds; merges what they say; makes and verifies fixes.

analysis = analyse(read_document(name, text, workspace), options, workspace)  # diagnostics and resolved configurations of one document
fixes = fixes_for(analysis, diagnostic)                        # verified fixes of one diagnostic, best first
edits = fix_all(name, text, options, workspace, unsafe=False)  # one minimal list of edits, run to a fixpoint
"""

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.fixes import fix_all, fixes_for
from spec_lsp.analysis.reading import read_document

__all__ = ["Cache", "analyse", "fix_all", "fixes_for", "read_document"]
