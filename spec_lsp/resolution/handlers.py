"""The handlers of a release, or of somebody's own build."""

from __future__ import annotations

from functools import lru_cache

from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import Handler
from spec_lsp.resolution.pipeline import handlers_by_name


@lru_cache(maxsize=64)
def handlers_of(release: Release) -> tuple[Handler, ...]:
    """The handlers of a release in SGLang's order, or those of a build. Empty for a release older than the oldest order."""
    if release.local:
        from spec_lsp.resolution.builds import handlers_of_build  # few launches run a build

        return handlers_of_build(release)
    return tuple(handler for _, handler in handlers_by_name(release))
