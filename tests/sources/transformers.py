"""spec_lsp/facts/data/transformers.json: since which release of SGLang its Transformers names an architecture that SGLang may not serve yet.

`python -m tests.sources.transformers FOLDER` makes it from the versions of Transformers in FOLDER (FOLDER/5.6.0/transformers/…). Only
architectures are looked at that some release of SGLang serves by a class of its own (classes.json).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.sources.classes import DATA as CLASSES

DATA = CLASSES.with_name("transformers.json")

PINS = {"0.5.6": "4.57.1", "0.5.10": "5.6.0", "0.5.14": "5.12.1", "0.5.22": "5.19.0"}
"""Releases of SGLang, and the newest Transformers that they, and those up to the next one here, ask for."""


def named(auto: Path) -> set[str]:
    """The class names that Transformers' tables of models hold."""
    text = "".join(
        path.read_text("utf-8") for path in (auto / "modeling_auto.py", auto / "auto_mappings.py") if path.is_file()
    )
    return set(re.findall(r"\"(\w+)\"", text)) | set(re.findall(r"'(\w+)'", text))


def table(root: Path) -> dict[str, str]:
    """architecture → the first release whose Transformers names it."""
    wanted = set(json.loads(CLASSES.read_text("utf-8")))
    found: dict[str, str] = {}
    for release, version in PINS.items():
        for name in sorted(wanted & named(root / version / "transformers" / "models" / "auto")):
            found.setdefault(name, release)
    return dict(sorted(found.items()))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.sources.transformers FOLDER", file=sys.stderr)
        return 2
    DATA.write_text(json.dumps(table(Path(arguments[0])), indent=0) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
