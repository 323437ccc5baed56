"""Environment variables of a launch that its release does not read, reads under another name, or whose value it cannot use.

Only variables that certainly reach SGLang are reported: the document gives them to the launch (a prefix, `export`, `docker -e`), does not
use them itself, and they are not named as scripts name their own (`SGLANG_ARGS`, `SGLANG_DIR`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from spec_lsp.analysis.builds import own_launcher
from spec_lsp.analysis.report import Diagnostic, Remedy
from spec_lsp.analysis.rules import DEPRECATED_VARIABLE, UNREAD_VARIABLE, VARIABLE_VALUE
from spec_lsp.analysis.worlds import Assumed, newest
from spec_lsp.catalog.history import Replacement, replacement, variable_span
from spec_lsp.catalog.model import Variable
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import catalog_of, environment, releases
from spec_lsp.expressions import expression
from spec_lsp.facts.environment import FALSE, TRUE
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Rule
from spec_lsp.syntax.launch import BENCHES, Document, Edit, Launch
from spec_lsp.syntax.word import Place, Word, hull

_OURS = expression(r"(?:SGLANG|SGL)_[A-Z0-9_]+")
_PRIVATE = expression(
    r"_(?:ARGS?|BIN|BRANCH|CLIENT|CMD|COMMAND|COMMIT|CONFIG|CONTAINER|DIR|FLAGS|GIT|HOME|HOST|ID|IMAGE|IP|KEY|LAUNCH\w*|LOGS?|MODEL\w*|"
    r"NAME|NODES?|OPTS?|OPTIONS|OVERRIDES?|PATH|PIDS?|PORTS?|PYTHON\w*|REF|REPO|ROOT|SCRIPT|SERVER|SHA|SRC|TAG|TOKEN|URI|URL|VENV|VER|"
    r"VERSION|WHEEL|WORKDIR)\d*$"
)
"""Names that scripts invent for themselves and for what they start besides SGLang."""
_OTHER_PROGRAMS = expression(
    r"(?:SGLANG|SGL)_(?:ROUTER|KERNEL|GATEWAY|JAX|OPERATOR|RUNTIME|CI|TEST|BENCH|BUILD|DOCKER|SIDECAR)_"
)
_MOST_SIMILAR = 0.9


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a variable is set: `name` its name, `whole` from the name to the end of its value."""

    name: Place
    whole: Place


def sets_variables(launch: Launch) -> bool:
    """Whether a launch is given any of SGLang's variables. Must be cheap: it is asked at each keystroke."""
    ours = (name for v in launch.variants if v.env for name in v.env if name.startswith(("SGLANG_", "SGL_")))
    return (launch.program in ("launch_server", "serve") or launch.program in BENCHES) and any(
        map(_OURS.fullmatch, ours)
    )


def variables_of(document: Document, launch: Launch, index: int, assumed: Assumed) -> list[Diagnostic]:
    """The diagnostics about the launch's `SGLANG_*` variables, one for each variable and place."""
    if not sets_variables(launch):
        return []
    found: dict[tuple[str, Place], Diagnostic] = {}
    ahead = _ahead(assumed)
    own = _own(document, launch, assumed)
    for variant in launch.variants:
        for name, word in variant.env.items():
            if _OURS.fullmatch(name) and (name, word.place) not in found:
                said = _judged(document, name, word, index, assumed, ahead, own)
                if said is not None:
                    found[name, word.place] = said
    return list(found.values())


def _judged(
    document: Document, name: str, word: Word, index: int, assumed: Assumed, ahead: bool, own: bool
) -> Diagnostic | None:
    found = _finding(document.text, name, word.text, assumed, ahead)
    if found is None:
        return None
    rule, said, instead = found
    said = _of_stock(said) if own else said
    spot = spot_of(document, name, word)
    place = spot.whole if spot is not None and rule is not VARIABLE_VALUE else word.place
    if place.document != document.name:
        return None
    remedies = tuple(_remedies(document.text, name, rule, instead, spot, assumed, own)) if spot is not None else ()
    return Diagnostic(
        rule, rule.severity, said, place, f"{rule.name}:{index}:{name}", unnecessary=rule is UNREAD_VARIABLE and not own,
        deprecated=rule is DEPRECATED_VARIABLE, launch=index, source=remedies,
    )  # fmt: skip


def _finding(
    text: str, name: str, value: str | None, assumed: Assumed, ahead: bool
) -> tuple[Rule, str, Replacement | None] | None:
    """The rule that a variable breaks in every release that the launch may run, the message, and what to write instead."""
    releases = _releases(assumed)
    known = [environment(r).get(name) for r in releases]
    if all(v is None for v in known):
        return _not_known(text, name, releases, ahead)
    if all(v is not None and _deprecated(v, r) for v, r in zip(known, releases, strict=True)):
        instead = _replaced(name, releases[-1])
        return DEPRECATED_VARIABLE, _with_advice(f"`{name}` is deprecated in SGLang {releases[-1]}.", instead), instead
    said = _misread(name, value, [v for v in known if v is not None])
    return (VARIABLE_VALUE, said, None) if said else None


def _not_known(
    text: str, name: str, releases: Sequence[Release], ahead: bool
) -> tuple[Rule, str, Replacement | None] | None:
    modern = _modern(name)
    if modern and releases[0] >= _REWRITTEN and all(modern in environment(r) for r in releases):
        said = f"SGLang reads `{name}` as `{modern}`, with a warning; write it so."
        return DEPRECATED_VARIABLE, said, Replacement(modern)
    if used_by(text, name):
        return None
    span = variable_span(name)
    near = _near(name) if span is None else ""
    said = _unread(name, near, releases[-1], ahead)
    return (UNREAD_VARIABLE, said, Replacement(near) if near else replacement(name)) if said else None


_REWRITTEN = Release(0, 5, 3)
"""Since then SGLang sets `SGLANG_X` to what `SGL_X` holds (environ.py:_handle_deprecated_envs)."""


def _modern(name: str) -> str:
    """`SGLANG_X` for `SGL_X`, empty for a name that is modern already."""
    return "SGLANG_" + name.removeprefix("SGL_") if name.startswith("SGL_") else ""


def _releases(assumed: Assumed) -> list[Release]:
    """The shipped releases that the launch is checked against, oldest first."""
    return sorted({catalog_of(w.release).release for w in assumed.worlds})


def _own(document: Document, launch: Launch, assumed: Assumed) -> bool:
    """Whether somebody's own build, image or launcher may read what no release does."""
    return bool(assumed.build) or assumed.clues.foreign_image or own_launcher(document, launch)


def _of_stock(message: str) -> str:
    """The message reworded for a launch that may run a build of somebody's own."""
    unread = re.match(r"No release of SGLang that spec-lsp knows reads (`\w+`): it has no effect\.", message)
    if unread:
        return f"Stock SGLang does not read {unread[1]}; a build of your own may.{message[unread.end() :]}"
    said = re.sub(r"\bSGLang(?= (?:no longer|reads|warns|accepts|cannot|\d))", "stock SGLang", message, count=1)
    return said[:1].upper() + said[1:]


def _ahead(assumed: Assumed) -> bool:
    """Whether the launch may run something newer than all known releases: a newer release, a nightly build, a build for one model. An image
    of somebody's own does not count: of it `_of_stock` tells."""
    newer = any(w.release.stock > newest() for w in assumed.worlds)
    nightly = assumed.clues.undated_image and not assumed.clues.foreign_image
    return newer or (nightly and not assumed.release_named)


# --- what is said ------------------------------------------------------------------------------------------------------


def _unread(name: str, near: str, release: Release, ahead: bool) -> str:
    """The message about an unread variable; empty where the name may belong to another program, or a release not yet known may read it."""
    span = variable_span(name)
    if span is None:
        if _PRIVATE.search(name) or _OTHER_PROGRAMS.match(name) or ahead:
            return ""
        hint = f" Did you mean `{near}`?" if near else ""
        return f"No release of SGLang that spec-lsp knows reads `{name}`: it has no effect.{hint}"
    if span.since > release:
        return f"SGLang reads `{name}` only since {span.since}; this launch runs {release}, where it has no effect."
    gone = f" since {span.until}" if span.until is not None else ""
    return _with_advice(f"SGLang no longer reads `{name}`{gone}: it has no effect.", replacement(name))


def _with_advice(message: str, instead: Replacement | None) -> str:
    if instead is None:
        return message
    use = f"Use `{instead.instead}` instead." if instead.instead else ""
    return " ".join(filter(None, (message, use, instead.note)))


def _replaced(name: str, release: Release) -> Replacement | None:
    return replacement(name, release) or replacement(name)


def _deprecated(variable: Variable, release: Release) -> bool:
    """Whether it is deprecated for good: no later release reads it as a regular variable again."""
    later = [environment(r).get(variable.name) for r in releases() if r > release]
    return variable.deprecated and not any(v is not None and not v.deprecated for v in later)


def _misread(name: str, text: str | None, known: Sequence[Variable]) -> str:
    """The message about a value that SGLang warns about and replaces by its default; empty where one of the releases may accept it."""
    if text is None or any(v.deprecated for v in known):
        return ""
    if all(v.type == "bool" for v in known):
        taken = text.lower() in TRUE | FALSE or not text.strip()
        return "" if taken else f"`{name}` is a switch: SGLang accepts 1, true, 0 or false, and ignores `{text}`."
    if all(v.type == "int" for v in known) and text.strip():
        return "" if _whole(text) else f"`{name}` is a whole number; SGLang cannot read `{text}` as one."
    return ""


def _whole(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


# --- what the document does with it ------------------------------------------------------------------------------------


def used_by(text: str, name: str) -> bool:
    """Whether the document itself uses the variable: expands it, prints it, passes its name to a program.

    Setting its default (`X=${X:-1}`) and passing it on (`-e X=$X`, `export X`) do not count.
    """
    own = re.compile(rf"\b{name}=[\"']?\$(?:\{{{name}\b[^}}]*\}}|{name}\b)")
    rest = own.sub("", text)
    return re.search(rf"(?:\$\{{?[#!]?|printenv\s+|-v\s+|environ\W+(?:get\W+)?|getenv\W+){name}\b", rest) is not None


def spot_of(document: Document, name: str, word: Word) -> Spot | None:
    """Where `NAME=value` (or `NAME: value`) is written; None when it is not in this document or written in another way."""
    outermost = [f.via[0] if f.via else f.place for f in word.fragments] or [word.place]
    if any(p.document != document.name for p in outermost):
        return None
    value, text = hull(outermost), document.text
    before = text[max(value.start - len(name) - 24, 0) : value.start]
    written = re.search(rf"(?<![A-Za-z0-9_]){name}[\"']?(?:=|\s*:\s+)[\"']?(?:\$\{{{name}:?-)?[\"']?$", before)
    if written is None:
        return _pair_of(document, name, value)
    start = value.start - len(before) + written.start()
    end = value.end
    closing = "\"'}" if "{" in written.group() else "\"'"
    while end < len(text) and text[end] in closing:
        end += 1
    return Spot(Place(document.name, start, start + len(name)), Place(document.name, start, end))


def _pair_of(document: Document, name: str, value: Place) -> Spot | None:
    """Where the two lines `- name: NAME` and `value: …` are written (Kubernetes)."""
    text = document.text
    low = max(value.start - len(name) - 160, 0)
    pair = rf"(?<=- )name:[ \t]*[\"']?({name})[\"']?[ \t]*(?:#[^\n]*)?\r?\n[ \t]+value:[ \t]*[\"']?$"
    written = re.search(pair, text[low : value.start])
    if written is None:
        return None
    end = value.end + (text[value.end : value.end + 1] in ("'", '"'))
    start, stop = low + written.start(1), low + written.end(1)
    return Spot(Place(document.name, start, stop), Place(document.name, low + written.start(), end))


# --- ways out ----------------------------------------------------------------------------------------------------------


def _remedies(
    text: str, name: str, rule: Rule, instead: Replacement | None, spot: Spot, assumed: Assumed, own: bool
) -> Iterator[Remedy]:
    """The fixes: another name where one is known that means the same; else removing the variable, if nothing that may run reads it.

    A fix is safe only where somebody named the release that it holds for.
    """
    if rule is VARIABLE_VALUE:
        return
    new = instead.instead if instead and not instead.note else ""
    if _OURS.fullmatch(new) and new in environment(_releases(assumed)[-1]):
        rewritten = rule is DEPRECATED_VARIABLE and new == _modern(name) and assumed.release_named
        yield Remedy(f"Write `{new}`", (Edit(spot.name, new),), "safe" if rewritten else "unsafe")
    read_elsewhere = not assumed.release_named and variable_span(name) is not None
    if not own and not read_elsewhere and (rule is UNREAD_VARIABLE or not (instead and instead.instead)):
        edit = _removed(text, spot.whole)
        if edit is not None:
            safe = rule is UNREAD_VARIABLE and _gone(name, assumed)
            yield Remedy(f"Remove `{name}`", (edit,), "safe" if safe else "unsafe")


def _gone(name: str, assumed: Assumed) -> bool:
    """Whether no release that the launch may run reads it any more. A name that no release ever read may belong to a fork."""
    span = variable_span(name)
    if span is None or span.until is None or span.until > _releases(assumed)[0]:
        return False
    return assumed.release_named


_OPENS = expression(r"(?:\bthen|\belse|\bdo|\{|\)|;)[ \t]*$")
_CLOSES = expression(r"[ \t]*(?:fi|done|else|elif|esac|;;|\})")


def _removed(text: str, whole: Place) -> Edit | None:
    """The edit that removes `NAME=value`: with its line if nothing else is on it, with its `-e`, with the blanks behind it.

    None where a block would be left empty, or the surroundings are not understood.
    """
    line = text.rfind("\n", 0, whole.start) + 1
    stop = text.find("\n", whole.end)
    stop = len(text) if stop < 0 else stop
    before, after = text[line : whole.start], text[whole.end : stop]
    option = re.search(r"(?:(?<!\S)(?:-e|--env)(?:[ \t]+|=)[\"']?)$", before)
    quoted = text[whole.start - 1 : whole.start] in ('"', "'") and text[whole.end - 1] == text[whole.start - 1]
    start = line + option.start() if option else whole.start - quoted
    lead = text[line:start]
    if re.fullmatch(r"[ \t]*(?:-[ \t]+)?(?:(?:export|declare -x)[ \t]+)?", lead) and re.fullmatch(
        r"[ \t]*\\?[ \t]*(?:#.*)?\r?", after
    ):
        return (
            None
            if _alone_in_block(text, line, stop) or _alone_behind_anchor(text, line, stop)
            else Edit(Place(whole.document, line, min(stop + 1, len(text))), "")
        )
    behind = re.match(r"[ \t]+(?=\S)", after)
    if behind and not after.lstrip().startswith(("#", ";", "&", "|", "\\")):
        return Edit(Place(whole.document, start, whole.end + behind.end()), "")
    blanks = len(lead) - len(lead.rstrip(" \t"))
    if option or re.search(r"=\S+[ \t]+$|export[ \t]+\S.*[ \t]+$", lead):
        return Edit(Place(whole.document, start - blanks, whole.end), "")
    return None


def _alone_in_block(text: str, line: int, stop: int) -> bool:
    above = text[:line].rstrip()
    return bool(_OPENS.search(above[-200:])) and bool(_CLOSES.match(text[stop:].lstrip("\n")))


def _alone_behind_anchor(text: str, line: int, stop: int) -> bool:
    """Whether these lines are the whole content of a YAML mapping that other places merge: without them there would be nothing to merge."""
    above, below = text[:line].rstrip().rpartition("\n")[2], text[stop:].lstrip("\r\n").partition("\n")[0]
    indent = len(text[line:]) - len(text[line:].lstrip(" "))
    return re.search(r":[ \t]*&\S+$", above) is not None and len(below) - len(below.lstrip(" ")) < indent


# --- names that are alike ----------------------------------------------------------------------------------------------


@cache
def _near(name: str) -> str:
    """The one variable of the newest release with nearly the same spelling; empty when there is none, or several."""
    import difflib

    known: Mapping[str, Variable] = environment(newest())
    near = difflib.get_close_matches(name, [n for n, v in known.items() if not v.deprecated], 2, _MOST_SIMILAR)
    return near[0] if len(near) == 1 else ""
