"""What a new release of SGLang asks of spec-lsp: `python -m tests.upkeep RELEASE`."""
