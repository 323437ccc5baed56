"""`spec-lsp catalog compare PATH`: an SGLang compared with the release that it is nearest to, with the rules that its changes affect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from spec_lsp.catalog import store
from spec_lsp.catalog.build import flag_differences, variable_differences
from spec_lsp.catalog.builds import NoBuildError, OwnBuild, release_at
from spec_lsp.cli.errors import UsageError
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.worlds import sglang_at
from spec_lsp.resolution.differences import Difference, differences

if TYPE_CHECKING:
    from spec_lsp.catalog.release import Release


def compare(named: str) -> str:
    """The output for the SGLang at a path: a checkout, an unpacked wheel, an environment. Raises UsageError."""
    if not named:
        raise UsageError("no path is named: name a checkout, an unpacked wheel or an environment")
    try:
        release = release_at(sglang_at(os.path.abspath(os.path.expanduser(named)), f"`{named}`"))
    except NoBuildError as error:
        raise UsageError(f"`{named}` {error}") from error
    return "\n".join(map(harmless, shown(release)))


def shown(release: Release) -> Iterator[str]:
    """The lines about a release, or about a build that was read."""
    base = release.stock
    if release == base:
        yield f"This is SGLang {release}: what is said of that release holds for it."
        return
    build = cast(OwnBuild, store.builds[release])
    yield f"This is no release of SGLang. It is told as {release}: nearest is {base}."
    yield from _part("Flags", flag_differences(store.load(base).flags, build.flags))
    yield from _part("Flags of which the sources do not show everything", build.doubts)
    yield from _part("Environment variables", variable_differences(base, build.variables))
    found = list(differences(release))
    changed = [d for d in found if d.kind == "changed"]
    yield from _part(
        "Functions of its own: what they refuse is a warning, what they adjust is unknown",
        _functions(d for d in changed if not d.certain),
    )
    yield from _part("Functions of another release, followed as there", _functions(d for d in changed if d.certain))
    yield from _part("New functions, which nothing follows", _functions(d for d in found if d.kind == "new"))
    yield from _part(
        "Functions that are gone: what follows them is a warning or unknown",
        _functions(d for d in found if d.kind == "gone"),
    )


def _part(title: str, lines: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    told = list(lines)
    yield from ("", f"{title}: {len(told) if told else 'none'}")
    yield from (f"  {line}" for line in told)


def _functions(found: Iterable[Difference]) -> Iterator[str]:
    for difference in found:
        parts = [difference.place]
        if difference.releases:
            first, last = difference.releases[0], difference.releases[-1]
            parts.append(f"as in {first}" if first == last else f"as in {first} to {last}")
        if difference.kind == "new":
            parts.append(f"used by {', '.join(difference.users)}" if difference.users else "used by none of these")
        if difference.kind != "new" or difference.handlers:
            parts.append(f"followed by {', '.join(difference.handlers) or 'nothing'}")
        if difference.rules:
            parts.append(f"rules: {', '.join(r.name for r in difference.rules)}")
        yield "; ".join(parts)
