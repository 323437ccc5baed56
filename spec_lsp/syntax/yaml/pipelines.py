"""Features of pipelines that affect their commands: GitHub's matrices and inputs, GitLab's jobs that extend others, Argo's parameters.

The default of an input or a parameter may be overridden, and is treated like the default in a shell's `${X:-4}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.nodes import Node, Part, brought_in, is_list, is_mapping, is_null, is_scalar, items

Combination = Mapping[str, Word]
"""One way to run a job: the value of a name such as `matrix.x`, or of a variable."""
Lookup = Callable[[str], "Word | None"]

CONTEXT = expression(r"(?:env|matrix|inputs|github\.event\.inputs)\.[\w.-]+\Z")
LITERAL = expression(r"'([^']*)'\Z|(-?\d+(?:\.\d+)?)\Z")
MAX_COMBINATIONS = 256


# --- what `${{ … }}` stands for ----------------------------------------------------------------------------------------


def names_in(word: Word, found: Mapping[int, str]) -> Iterator[str]:
    """The names (`matrix.tp`) that a word's value depends on."""
    for fragment in word.fragments:
        if fragment.text is None and fragment.place.start in found:
            yield from (one for one in _alternatives(found[fragment.place.start]) if CONTEXT.match(one))


def filled(word: Word, found: Mapping[int, str], lookup: Lookup) -> Word:
    """The word with its expressions replaced, as far as `lookup` knows their names."""
    fragments: list[Fragment] = []
    for fragment in word.fragments:
        text = found.get(fragment.place.start) if fragment.text is None else None
        value = _value(text, lookup, fragment.place) if text is not None else None
        fragments += brought_in(value, fragment.place).fragments if value is not None else (fragment,)
    return word._replace(fragments=tuple(fragments))


def _alternatives(text: str) -> list[str]:
    """`inputs.tp || '4'`; none for more complex expressions."""
    return [] if "&&" in text or "(" in text else [one.strip() for one in text.split("||")]


def _value(text: str, lookup: Lookup, place: Place) -> Word | None:
    """The first alternative with a value; None if unknown."""
    for one in _alternatives(text):
        literal = LITERAL.match(one)
        if literal is not None:
            return Word((Fragment(literal[1] or literal[2] or "", place, False, fixed=True),), place)
        value = lookup(one)
        if value is not None and value.text != "":
            return value
        if value is None and one.startswith(("matrix.", "env.")):
            return None
    return None


def inputs(part: Part) -> dict[str, Word]:
    """The defaults of the inputs of a GitHub workflow or action, by their names in expressions."""
    found: dict[str, Word] = {}
    for path in (("inputs",), ("on", "workflow_call", "inputs"), ("on", "workflow_dispatch", "inputs")):
        for name, (_, declared) in part.entries(part.get(part.root, *path)).items():
            default = part.get(declared, "default")
            if is_scalar(default):
                found[f"inputs.{name}"] = found[f"github.event.inputs.{name}"] = part.word(default)
    return found


# --- matrices ----------------------------------------------------------------------------------------------------------


def github_matrix(part: Part, node: Node) -> list[Combination]:
    """The jobs of `strategy.matrix`: all combinations except those excluded, with what `include` adds to them or as jobs of its own."""
    entries = part.entries(node)
    dimensions = {name: list(_values(part, name, value)) for name, (_, value) in entries.items() if name not in MORE}
    dimensions = {name: values for name, values in dimensions.items() if values}
    size = 1
    for values in dimensions.values():
        size *= len(values)
    if size > MAX_COMBINATIONS:
        return []
    chosen = product(*dimensions.values()) if dimensions else ()
    jobs = [{name: word for one in job for name, word in one.items()} for job in chosen]
    excluded = [_flat(part, one) for one in items(part.get(node, "exclude"))]
    jobs = [job for job in jobs if not any(out and _agrees(job, out) for out in excluded)]
    original = {name for job in jobs for name in job}
    added: list[dict[str, Word]] = []
    for one in items(part.get(node, "include")):
        more = _flat(part, one)
        fits = [job for job in jobs if _agrees(job, {n: w for n, w in more.items() if n in original})]
        for job in fits:
            job.update(more)
        if not fits:
            added.append(more)
    return [*jobs, *added]


MORE = frozenset(("include", "exclude"))


def gitlab_matrix(part: Part, node: Node) -> list[Combination]:
    """The jobs of `parallel: {matrix: [{TP: [1, 2]}, …]}`: variables and their values."""
    found: list[Combination] = []
    for one in items(node):
        names = part.entries(one)
        values = [
            [(n, part.word(v)) for v in (items(value) or [value]) if is_scalar(v)] for n, (_, value) in names.items()
        ]
        found += [dict(chosen) for chosen in product(*values)] if len(found) < MAX_COMBINATIONS else []
    return found


def _values(part: Part, name: str, node: Node) -> Iterator[dict[str, Word]]:
    """The names and values of a dimension: `matrix.tp`, or `matrix.config.tp` if its values are mappings."""
    for value in items(node):
        if is_scalar(value):
            yield {f"matrix.{name}": part.word(value)}
        else:
            yield _flat(part, value, f"matrix.{name}.")


def _flat(part: Part, node: Node, prefix: str = "matrix.") -> dict[str, Word]:
    found: dict[str, Word] = {}
    for name, (_, value) in part.entries(node).items():
        if is_scalar(value):
            found[prefix + name] = part.word(value)
        elif is_mapping(value) and prefix.count(".") < 4:
            found.update(_flat(part, value, f"{prefix}{name}."))
    return found


def _agrees(job: Combination, asked: Combination) -> bool:
    return all(name in job and job[name].text == word.text for name, word in asked.items())


def ways_of(combinations: Sequence[Combination], names: Sequence[str], most: int) -> list[Combination]:
    """The combinations restricted to some names, each once; a single one without values if there are too many."""
    kept: dict[object, Combination] = {}
    for one in combinations:
        told = {name: one[name] for name in names if name in one and one[name].text is not None}
        kept.setdefault(tuple((name, word.text) for name, word in told.items()), told)
    return list(kept.values()) if 0 < len(kept) <= most else [{}]


# --- GitLab ------------------------------------------------------------------------------------------------------------

NOT_JOBS = frozenset(("default", "variables", "include", "stages", "workflow", "image", "services", "cache"))
SCRIPTS = ("before_script", "script")
MAX_EXTENDED = 24
"""How deeply lists in lists, and references to them, are followed; GitLab itself follows ten."""


Entries = Mapping[str, tuple[Node, Node]]


def is_gitlab(part: Part) -> bool:
    jobs = [value for name, (_, value) in part.entries(part.root).items() if name not in NOT_JOBS]
    return any(is_list(part.get(job, "script")) for job in jobs) and part.get(part.root, "apiVersion") is None


def take_over(part: Part) -> None:
    """Add what a job takes over (`default`, `extends`) to its own keys, and replace `!reference`."""
    part.signs = None
    extended: dict[int, Entries] = {}
    for name, (_, job) in part.entries(part.root).items():
        if name not in NOT_JOBS and is_mapping(job):
            part.put(job, {**_default(part), **_job(part, job, extended)})


def _default(part: Part) -> Mapping[str, tuple[Node, Node]]:
    entries = part.entries(part.get(part.root, "default"))
    own = part.entries(part.root)
    return {**{name: own[name] for name in ("image", "before_script") if name in own}, **entries}


def _job(part: Part, job: Node, extended: dict[int, Entries]) -> Entries:
    """A job's entries with those of the jobs that it extends; mappings in both are merged, the job's own last. `extended` holds the jobs
    already visited, as one may lead back to itself."""
    known = extended.get(id(job))
    if known is not None:
        return known
    own = extended[id(job)] = part.entries(job)
    extends = part.get(job, "extends")
    found: Entries = {}
    for base in [extends] if is_scalar(extends) else items(extends):
        checkpoint()
        taken = part.get(part.root, base.value) if is_scalar(base) else None
        if is_mapping(taken) and taken is not job:
            found = _merged(part, found, _job(part, taken, extended))
    extended[id(job)] = _merged(part, found, own)
    return extended[id(job)]


def _merged(
    part: Part, base: Mapping[str, tuple[Node, Node]], own: Mapping[str, tuple[Node, Node]]
) -> dict[str, tuple[Node, Node]]:
    found = {**base, **own}
    for name in base.keys() & own.keys():
        below, above = base[name][1], own[name][1]
        if is_mapping(below) and is_mapping(above) and below is not above:
            part.put(above, {**part.entries(below), **part.entries(above)})
    return found


def gitlab_script(part: Part, job: Node) -> list[Node]:
    """The lines of a job's script, those of `before_script` first: one shell runs both."""
    known: dict[int, list[Node]] = {}
    return [line for key in SCRIPTS for line in _lines(part, part.get(job, key), 0, known)]


MAX_LINES = 2_000
"""The most lines of a script."""


def _lines(part: Part, node: Node, depth: int, known: dict[int, list[Node]]) -> list[Node]:
    """The lines of a list, with `!reference [.job, script]` replaced by the lines that it names. `known` holds those of each list, so that
    nested references are resolved once."""
    checkpoint()
    if node is None or depth > MAX_EXTENDED:
        return []
    if is_scalar(node):
        return [] if is_null(node) else [node]
    if id(node) in known:
        return known[id(node)]
    found = known[id(node)] = []
    if node.tag == "!reference":
        path = [n.value for n in items(node) if is_scalar(n)]
        found += _lines(part, part.get(part.root, *path), depth + 1, known)
    elif is_list(node):
        for item in items(node):
            found += _lines(part, item, depth + 1, known)
            if len(found) > MAX_LINES:
                break
    return found


# --- Argo --------------------------------------------------------------------------------------------------------------


def argo_parameters(part: Part) -> dict[str, Word]:
    """The values of an Argo workflow's parameters, by their names in templates; none for a name that has several."""
    found: dict[str, Word | None] = {}
    spec = part.get(part.root, "spec")
    for prefix, listed in _parameters(part, spec):
        for item in items(listed):
            name, value = part.text_at(item, "name"), part.get(item, "value") or part.get(item, "default")
            if name and is_scalar(value):
                key, word = f"{prefix}.parameters.{name}", part.word(value)
                known = found.get(key, word)
                found[key] = word if known is not None and known.text == word.text else None
    return {name: word for name, word in found.items() if word is not None}


def _parameters(part: Part, spec: Node) -> Iterator[tuple[str, Node]]:
    yield "workflow", part.get(spec, "arguments", "parameters")
    for template in items(part.get(spec, "templates")):
        yield "inputs", part.get(template, "inputs", "parameters")
