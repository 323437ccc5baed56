"""What each flag does, in plain sentences: the files of `descriptions/`, for a person to edit."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from spec_lsp.catalog.model import FIELDS, Flag

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

FOLDER = Path(__file__).with_name("descriptions")


def describe(flag: Flag | str) -> str:
    """One or two sentences about a flag, or about a field or dest by its name; empty if nobody wrote any.

    An old spelling (`--cuda-graph-max-bs`) has its own; else they are those of the field it fills.
    """
    texts = descriptions()
    if isinstance(flag, str):
        return texts.get(FIELDS.get(flag, flag), "")
    own = flag.name[2:].replace("-", "_")
    return texts.get(own) or texts.get(flag.field, "")


@functools.cache
def descriptions() -> Mapping[str, str]:
    """All descriptions, by field or old spelling."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        found.update(tomllib.loads(path.read_text(encoding="utf-8")))
    return MappingProxyType(found)
