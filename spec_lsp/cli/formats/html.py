"""One page about a tree, for people: findings by rule, and every launch with what it resolves to. It loads nothing from elsewhere, and can
be searched, printed and sent."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import TextIO

from spec_lsp import __version__
from spec_lsp.cli.formats import Run
from spec_lsp.cli.formats.text import plural
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import SEVERITIES, FileReport, LaunchShown, ReportedFinding

OUTCOMES = {
    "accepted": "accepted",
    "refused": "refused",
    "bad-arguments": "refused by the command line",
    "depends": "depends on release or GPU",
    "unknown": "not all is known",
}


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """The whole page."""
    kept = [report for report in reports if report.found or report.overview or report.problem or report.failure]
    out.write(_head(run))
    out.writelines(f"{line}\n" for line in [*_summary(kept, run), *_rules(kept), *_files(kept)])
    out.write("</main>\n</body>\n</html>\n")


def _head(run: Run) -> str:
    style = (resources.files("spec_lsp.cli.formats") / "report.css").read_text("utf-8")
    script = (resources.files("spec_lsp.cli.formats") / "report.js").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="spec-lsp {__version__}">
<title>SGLang launches: what spec-lsp says</title>
<style>
{style}</style>
<script type="module">
{script}</script>
</head>
<body>
<main>
<h1>SGLang launches</h1>
"""


def _summary(reports: list[FileReport], run: Run) -> Iterator[str]:
    totals = run.totals
    yield f"<p>{plural(totals.launches, 'launch', 'launches')} in {plural(totals.files, 'file')} checked by spec-lsp {__version__}.</p>"
    counts = [(s, totals.severities[s]) for s in SEVERITIES if totals.severities[s]]
    named = {"information": "remark"}
    badges = [f'<li class="{s}">{plural(n, named.get(s, s))}</li>' for s, n in counts]
    outcomes: dict[str, int] = defaultdict(int)
    for report in reports:
        for launch in report.overview:
            outcomes[launch.outcome] += 1
    badges += [f'<li class="{o}">{n} {OUTCOMES[o]}</li>' for o in OUTCOMES if (n := outcomes[o])]
    yield f'<ul class="badges">{"".join(badges)}</ul>'
    yield (
        '<p class="tools"><label>Search <input type="search" id="search" placeholder="model, flag, file, rule, GPU …"></label> '
        '<label><input type="checkbox" id="flawed"> only launches with findings</label> '
        '<button type="button" id="open-all">Open all</button> <span id="shown" role="status"></span></p>'
    )


def _rules(reports: list[FileReport]) -> Iterator[str]:
    """The findings by rule: the most frequent first."""
    by_rule: dict[str, list[ReportedFinding]] = defaultdict(list)
    for report in reports:
        for found in report.found:
            by_rule[found.name].append(found)
    if not by_rule:
        return
    yield '<section id="rules"><h2>Findings by rule</h2>'
    yield _table_head("rule", "findings", "where")
    for name, all_found in sorted(by_rule.items(), key=lambda item: (-len(item[1]), item[0])):
        places = dict.fromkeys((f.file, f.location.start.line) for f in all_found)
        links = ", ".join(f'<a href="#{_anchor(file)}">{_text(file)}:{line + 1}</a>' for file, line in places)
        worst = min((SEVERITIES.index(f.severity) for f in all_found), default=0)
        yield f'<tr><td class="{SEVERITIES[worst]}">{_text(name)}</td><td>{len(all_found)}</td><td>{links}</td></tr>'
    yield "</tbody></table></section>"


def _files(reports: list[FileReport]) -> Iterator[str]:
    yield "<h2>Launches by file</h2>"
    for report in sorted(reports, key=lambda r: r.file):
        yield f'<section class="file" id="{_anchor(report.file)}"><h3>{_text(report.file)}</h3>'
        if report.problem or report.failure:
            yield f'<p class="error">Not checked: {_text(report.problem or "an internal error of spec-lsp")}</p>'
        for found in report.found:
            yield from _finding(found)
        for launch in report.overview:
            yield from _launch(launch)
        yield "</section>"


def _finding(found: ReportedFinding) -> Iterator[str]:
    place = f"{_text(found.file)}:{found.location.start.line + 1}"
    yield f'<article class="finding {found.severity}"><p><strong>{found.severity}</strong> {place} <code>{_text(found.name)}</code></p>'
    yield f"<p>{_prose(found.message)}</p>"
    fixes = [
        f"<li>{_prose(fix.title)}{'' if fix.applicability == 'safe' else ' (changes what runs)'}</li>"
        for fix in found.fixes
    ]
    if fixes:
        yield f'<ul class="fixes">{"".join(fixes)}</ul>'
    yield "</article>"


def _launch(launch: LaunchShown) -> Iterator[str]:
    line = launch.location.start.line + 1
    yield f'<details class="launch {launch.outcome}"><summary><span class="outcome">{OUTCOMES[launch.outcome]}</span> '
    yield f"<strong>{_text(launch.title)}</strong> line {line} · {_text(launch.program)} · {_text(launch.assumed)}</summary>"
    if launch.fields:
        yield _table_head("setting", "value", "why")
        for name, value, why in launch.fields:
            yield f'<tr><th scope="row">{_text(name)}</th><td>{_prose(value)}</td><td>{_prose(why)}</td></tr>'
        yield "</tbody></table>"
    else:
        yield "<p>SGLang does not accept these arguments.</p>"
    yield "</details>"


def _table_head(*titles: str) -> str:
    return "<table><thead><tr>" + "".join(f'<th scope="col">{title}</th>' for title in titles) + "</tr></thead><tbody>"


def _anchor(file: str) -> str:
    return html.escape("file-" + "".join(c if c.isalnum() or c in "-_." else f"-{ord(c):x}-" for c in file), quote=True)


def _text(text: str) -> str:
    """A text escaped for a page: without effect as markup or commands."""
    return html.escape(harmless(text).encode("utf-8", "replace").decode(), quote=True)


def _prose(text: str) -> str:
    """A sentence whose `code` is shown as code."""
    parts = text.split("`")
    return "".join(
        f"<code>{_text(part)}</code>" if i % 2 and i < len(parts) - 1 else _text(part) for i, part in enumerate(parts)
    )
