"""Flags and variables that came, went or changed, and what is still to be described."""

from __future__ import annotations

from pathlib import Path

from spec_lsp.catalog import store
from spec_lsp.catalog.build import BuildError, build
from spec_lsp.catalog.descriptions import describe
from spec_lsp.catalog.history import replacement
from spec_lsp.catalog.release import Release
from tests.upkeep.report import Part, some


def part(root: Path, release: Release, before: Release, gone_through: bool = False) -> Part:
    """Read the catalog of the release below `root` and add it to the shipped ones. Topics are left to whoever has gone through it."""
    try:
        built = build(root, str(release))
    except BuildError as error:
        return Part(
            "Flags and variables",
            [f"The catalog could not be made: {error}"],
            ["Teach spec_lsp/catalog/source.py to read this release"],
        )
    differences = built.report().splitlines()[2:]
    undescribed = [f.name for f in store.load(release).flags if not describe(f)]
    gone = sorted(set(store.load(before).by_spelling) - set(store.load(release).by_spelling))
    unreplaced = [name for name in gone if replacement(name, release) is None]
    known = set(store.load(before).by_field)
    fields = sorted(set(store.load(release).by_field) - known)
    todo = []
    if undescribed:
        todo.append(f"Describe {len(undescribed)} flags in spec_lsp/catalog/descriptions: {some(undescribed)}")
    if unreplaced:
        todo.append(
            f"Tell in spec_lsp/catalog/replacements.toml what stands in for {some(unreplaced)}, and move descriptions to removed.toml"
        )
    if fields and not gone_through:
        todo.append(f"Give the topic they belong to (tests/oracle/families.toml) the fields {some(fields)}")
    lines = [
        f"{len(built.flags)} flags and {len(built.variables)} variables, compared with {before}:",
        "",
        *(f"- `{d.strip()}`" for d in differences),
    ]
    return Part("Flags and variables", lines if differences else lines[:0], todo)
