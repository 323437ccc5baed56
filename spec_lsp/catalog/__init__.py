"""Which flags and environment variables each SGLang release has, and what the words of a launch mean to it.

catalog = load(nearest(Release.parse("0.5.20")))
catalog.flag("--tp").dest        # tp_size
bind(catalog, words)             # fields with typed values, and argparse's errors
"""

from spec_lsp.catalog.model import SUPPRESS, Catalog, Flag, Variable
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, nearest, releases

__all__ = ["SUPPRESS", "Catalog", "Flag", "Release", "Variable", "environment", "load", "nearest", "releases"]
