"""spec-lsp tells whether SGLang will accept a launch, before anyone pays for a GPU."""

__version__ = "0.1.0"
