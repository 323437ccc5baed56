"""spec-lsp tells whether SGLang will accept a launch, before anyone pays for a GPU."""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported just for one name: `spec-lsp --version` starts with this module
if TYPE_CHECKING:
    from spec_lsp.api import Finding, Fix, Remark, Resolved, check_text, resolve

__version__ = "0.1.0"
__all__ = ["Finding", "Fix", "Remark", "Resolved", "__version__", "check_text", "resolve"]


def __getattr__(name: str) -> object:
    """The names of `spec_lsp.api`, imported when they are first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spec_lsp import api

    return getattr(api, name)
