"""`python -m spec_lsp.cli`."""

import sys

from spec_lsp.cli.main import main

sys.exit(main())
