"""The command line: `spec-lsp check`, `resolve`, `explain`, `rules`, `batch`, `catalog`, `settings`, `server`.

`arguments.py` declares every command, `main.py` runs one and turns what goes wrong into exit codes. Nothing else is
imported before its command runs, so that `spec-lsp --version` costs little more than Python itself.
"""
