"""What a person names on the command line: releases, GPUs, rules.

Names that mean nothing end the command with what is known.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.cli.errors import UsageError, did_you_mean
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware, find
from spec_lsp.resolution.engine import RULES, Rule


def read_release(text: str) -> Release:
    """The release a person names. Raises UsageError for what is none."""
    release = Release.read(text)
    if release is None:
        known = releases()
        span = f", known are {known[0]} to {known[-1]} (`spec-lsp catalog list`)" if known else ""
        raise UsageError(f"`{text}` is not a release of SGLang; write it as 0.5.19{span}")
    return release


def read_gpu(text: str) -> Hardware:
    """The GPU a person names. Raises UsageError for what is none."""
    hardware = find(text)
    if hardware is None:
        names = ", ".join(DEVICES)
        near = did_you_mean(text.lower(), [*DEVICES, *FAMILIES])
        raise UsageError(
            f"`{text}` is not a GPU that spec-lsp knows.{near} It knows {names}, and the families {', '.join(FAMILIES)}"
        )
    return hardware


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code. Rules are declared where they are checked, so every module of every release's order is imported."""
    import spec_lsp.analysis.rules  # noqa: F401
    from spec_lsp.resolution import pipeline

    orders = "\n".join([*(order for _, order in pipeline.ORDERS), pipeline.LATE])
    for module in sorted({line.partition(".")[0] for line in orders.splitlines() if line}):
        if find_spec(f"{pipeline.__package__}.{module}"):
            import_module(f"{pipeline.__package__}.{module}")
    return tuple(sorted(RULES.values(), key=lambda rule: rule.code))


def find_rule(name: str) -> Rule | None:
    """A rule by name or code, however the code is written (`SPC103`, `spc103`)."""
    return next((r for r in all_rules() if name in (r.name, r.code) or name.upper() == r.code), None)
