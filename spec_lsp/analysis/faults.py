"""An internal fault while a launch is judged affects this launch only: the diagnostic that reports it, and what replaces the verdict."""

from __future__ import annotations

from pathlib import Path

import spec_lsp
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.report import Diagnostic, LaunchReport, Run
from spec_lsp.analysis.rules import NOT_JUDGED
from spec_lsp.analysis.worlds import newest
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.store import load
from spec_lsp.syntax.launch import Launch


def fault_of(error: Exception, launch: Launch, index: int) -> Diagnostic:
    """The diagnostic for the `index`th launch of a document, which could not be judged."""
    message = (
        f"spec-lsp could not judge this launch. The fault is spec-lsp's: please report this file and `{_where(error)}`."
    )
    return Diagnostic(
        NOT_JUDGED, NOT_JUDGED.severity, message, launch.place, f"{NOT_JUDGED.name}:{index}", launch=index
    )


def told(error: Exception) -> str:
    """The traceback, for a report."""
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _where(error: Exception) -> str:
    """The kind of the fault and the innermost line of our code that it passed through: `KeyError in analysis/judge.py:123`."""
    import traceback

    ours = Path(spec_lsp.__file__).parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if ours in Path(f.filename).parents]
    kind = type(error).__name__
    if not frames:
        return kind
    return f"{kind} in {Path(frames[-1].filename).relative_to(ours).as_posix()}:{frames[-1].lineno}"


def unjudged(launch: Launch) -> LaunchReport:
    """The report of a launch that could not be judged: it has no verdict, and its words count as unknown."""
    world = World(newest(), None)
    run = Run(launch.variants[0], world, Binding(load(world.release), {}), None)
    return LaunchReport(lambda: launch, (world,), lambda: run)
