"""spec_lsp/catalog/data/fingerprints.json.gz: the fingerprints of SGLang's functions in every release (see catalog/fingerprints.py).

`python -m tests.sources.fingerprints FOLDER` makes it from the sources of all releases in FOLDER (FOLDER/0.5.23/sglang/…, as
`pip download --no-deps` and `unzip` leave them), with data/wheels.json, the content of each wheel, and tells which places that handlers and rules name a release does not have. What it
holds of other releases stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spec_lsp.catalog import fingerprints
from spec_lsp.catalog.builds import add_wheel
from spec_lsp.catalog.fingerprints import shipped
from spec_lsp.catalog.store import FINGERPRINTS, releases, write_table
from spec_lsp.resolution.following import places, unplaced


def main(arguments: list[str]) -> int:
    """Renew the table from the releases in a folder."""
    (folder,) = arguments
    found = {
        release: sorted(fingerprints.fingerprints(root, places()).items())
        if (root := Path(folder, str(release), "sglang")).is_dir()
        else sorted(shipped(release).items())
        for release in releases()
    }
    write_table(FINGERPRINTS, found)
    for release in releases():
        if (root := Path(folder, str(release), "sglang")).is_dir():
            add_wheel(release, root)
    fingerprints.forget()
    for release in releases():
        print(
            f"{release}: {len(shipped(release))} functions; without one: {', '.join(sorted(unplaced(release))) or 'none'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
