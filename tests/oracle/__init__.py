"""The real SGLang's verdicts on random launches: what spec-lsp is measured by. See README.md."""
