"""`spec-lsp catalog compare PATH`: an SGLang beside the release that it is nearest to, with the rules that its changes concern."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from spec_lsp.catalog import store
from spec_lsp.catalog.build import flag_differences, variable_differences
from spec_lsp.catalog.builds import NoBuildError, OwnBuild, package_at, release_at
from spec_lsp.cli.errors import UsageError
from spec_lsp.cli.printed import harmless
from spec_lsp.files import Area
from spec_lsp.resolution.builds import Followed, differences
from spec_lsp.workspace import package_in

if TYPE_CHECKING:
    from spec_lsp.catalog.release import Release
    from spec_lsp.resolution.engine import Rule


def compare(named: str) -> str:
    """What is told of the SGLang at a path: a checkout, an unpacked wheel, an environment. Raises UsageError."""
    path = Path(os.path.abspath(os.path.expanduser(named)))
    area = Area((path,))
    root = package_at(path, area) or package_in(str(path), area)
    if root is None:
        raise UsageError(
            f"{named} holds no SGLang: there is no srt/server_args.py in it, in its sglang or in its python/sglang"
        )
    try:
        release = release_at(root)
    except NoBuildError as error:
        raise UsageError(f"{named} {error}") from error
    return "\n".join(map(harmless, _lines(release)))


def _lines(release: Release) -> Iterator[str]:
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
    changed = [d for d in found if not d[0].certain]
    yield from _part(
        "Functions of its own: what they refuse is a warning, what they adjust is unknown", _functions(changed)
    )
    yield from _part("Functions of another release, followed as there", _functions([d for d in found if d[0].certain]))


def _part(title: str, lines: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    told = list(lines)
    yield from ("", f"{title}: {len(told) if told else 'none'}")
    yield from (f"  {line}" for line in told)


def _functions(found: Sequence[tuple[Followed, tuple[str, ...], tuple[Rule, ...]]]) -> Iterator[str]:
    for followed, handlers, rules in found:
        names = ", ".join(r.name for r in rules)
        own = f" ({', '.join(followed.functions)})" if followed.functions else ""
        state = f"as in {followed.release}" if followed.state == "earlier" else followed.state
        yield f"{followed.place}: {state}{own}; followed by {', '.join(handlers)}" + (
            f"; rules: {names}" if names else ""
        )
