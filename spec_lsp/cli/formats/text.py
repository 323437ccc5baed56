"""Output for people: each finding as a compiler shows it, then a summary line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from spec_lsp.cli.excerpt import excerpt
from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import SEVERITIES, FileReport, OfferedFix, ReportedFinding, Totals, by_rule
from spec_lsp.cli.style import Style

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Fix


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """Write each finding as soon as it is known, and the summary at the end."""
    counted: list[ReportedFinding] = []
    for report in reports:
        lines = [*_repairs(report, run.style)]
        for found in report.found:
            if run.statistics:
                counted.append(found)
            elif run.fixing != "diff":
                lines += [*finding(found, run.style), ""]
        if report.diff:
            lines += [_painted_diff(report.diff, run.style)]
        if lines:
            run.before_text()
            out.write("\n".join(lines) + "\n")
            out.flush()
    run.before_text()
    out.writelines(f"{line}\n" for line in [*_statistics(counted, run.style), *summary(run)])


def finding(found: ReportedFinding, style: Style) -> Iterator[str]:
    """The lines that show one finding."""
    yield headline(found.severity, found.name, found.message, style)
    yield from excerpt(found.location, found.related, found.severity, style)
    for number, fix in enumerate(found.fixes):
        kind = {"safe": "", "unsafe": " (changes what runs)", "display": " (to be done by hand)"}[fix.applicability]
        label, title = offer(number, fix)
        yield _note(label, title + kind, style)


def offer(number: int, fix: OfferedFix | Fix) -> tuple[str, str]:
    """How this fix of a finding is offered to the reader: a guess is a question."""
    if number or not fix.guess:
        return ("or" if number else "fix"), fix.title
    meant = fix.title.removeprefix("Write ")
    return ("perhaps", fix.title) if meant == fix.title else ("did you mean", f"{meant}?")


def headline(severity: str, name: str, message: str, style: Style) -> str:
    """The first line of a finding: `error: name[CODE]: message`."""
    label = "info" if severity == "information" else severity
    text = "\n".join(map(harmless, message.split("\n")))
    return f"{style.paint(label, severity)}: {style.paint(name, 'bold')}: {style.prose(text)}"


def _note(label: str, text: str, style: Style) -> str:
    return f"  {style.paint('=', 'frame')} {style.paint(label, 'bold')}: {style.prose(harmless(text))}"


def _repairs(report: FileReport, style: Style) -> Iterator[str]:
    for line in report.fixed:
        yield f"{style.paint('fixed', 'good')}: {style.prose(harmless(line))}"


def _painted_diff(diff: str, style: Style) -> str:
    kinds = {"+": "good", "-": "error", "@": "frame"}
    lines = (_diff_line(line) for line in diff.rstrip("\n").split("\n"))
    return "\n".join(style.paint(line, kinds[line[0]]) if line[:1] in kinds else line for line in lines)


def _diff_line(line: str) -> str:
    """A line of a patch. Tabs and Windows line ends are kept, so that the patch can be applied unless a line contains hidden characters."""
    end = "\r" if line.endswith("\r") else ""
    return "\t".join(map(harmless, line.removesuffix(end).split("\t"))) + end


def _statistics(found: Iterable[ReportedFinding], style: Style) -> Iterator[str]:
    counts = by_rule(found)
    width = len(str(max((c.count for c in counts), default=0)))
    for each in counts:
        label = "info" if each.severity == "information" else each.severity
        yield f"{each.count:>{width}}  {style.paint(f'{label:<7}', each.severity)}  {each.name}"


# --- the sum ---------------------------------------------------------------------------------------------------------


def summary(run: Run) -> list[str]:
    """What was checked and found, and what to do about it."""
    totals, style = run.totals, run.style
    checked = f"{plural(totals.launches, 'launch', 'launches')} in {plural(totals.files, 'file')}"
    named = {"information": ("remark", "remarks"), "hint": ("hint", "hints")}
    parts = [
        style.paint(plural(n, *named.get(s, (s, ""))), s) for s in SEVERITIES if (n := totals.severities[s])
    ] or [style.paint("nothing to report", "good")]  # fmt: skip
    if totals.fixed:
        parts.append(style.paint(f"{totals.fixed} fixed", "good"))
    if totals.ignored:
        parts.append(f"{totals.ignored} ignored by comments")
    if totals.faults:
        parts.append(style.paint(f"{plural(totals.faults, 'internal error')}", "error"))
    if totals.known:
        parts.append(f"{totals.known} known from the baseline")
    if totals.failed:
        parts.append(style.paint(f"{plural(totals.failed, 'file')} not checked", "error"))
    lines = [f"Checked {checked}: {', '.join(parts)}."]
    if totals.gone:
        lines.append(style.prose(f"{totals.gone} of the baseline are gone: `--write-baseline` drops them."))
    hint = _fix_hint(totals, run)
    return [*lines, style.prose(hint)] if hint else lines


def _fix_hint(totals: Totals, run: Run) -> str:
    safe, unsafe = totals.fixable["safe"], totals.fixable["unsafe"]
    if run.fixing:
        if run.fixing == "diff" and totals.would_change:
            return f"{plural(totals.would_change, 'file')} would be changed."
        return (
            f"{unsafe} more can be fixed with `--unsafe-fixes`, which changes what runs."
            if unsafe and not run.unsafe
            else ""
        )
    if not safe and not unsafe:
        return ""
    if not unsafe:
        return f"{safe} can be fixed with `--fix`."
    if not safe:
        return f"{unsafe} can be fixed with `--fix --unsafe-fixes`, which changes what runs."
    return f"{safe} can be fixed with `--fix`, {unsafe} more with `--unsafe-fixes`, which changes what runs."


def plural(n: int, one: str, many: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{n} {one if n == 1 else many or one + 's'}"
