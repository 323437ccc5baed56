"""Reports launches that need more GPUs on a node than they are given: their parallel sizes against what the document makes visible.

Follows engine.py:_launch_scheduler_processes: tensor × pipeline parallel ranks, divided among the nodes, times the data parallel replicas
unless DP attention shares the GPUs. Nothing is reported where anything is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from spec_lsp.analysis.diagnostics import setting_place
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.report import Diagnostic, Related
from spec_lsp.analysis.rules import MORE_GPUS_THAN_VISIBLE
from spec_lsp.analysis.run import is_open
from spec_lsp.catalog.binding import Binding
from spec_lsp.expressions import expression
from spec_lsp.facts.clues import LaunchClues
from spec_lsp.facts.known import NotKnown
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Clue, Document, Launch, Variant
from spec_lsp.syntax.word import Place

_SIZES = ("tp_size", "pp_size", "dp_size")
_PLACED_OTHERWISE = frozenset(("base_gpu_id", "gpu_id_step", "use_ray", "device", "attn_dp_size", "elastic_ep_backend"))
"""Fields that place ranks on GPUs differently, or on no GPU at all."""
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class Given:
    """The GPUs that a node, or a container on it, makes visible to the launch; `text` is how the document says so."""

    count: int
    text: str
    place: Place


Before = Callable[[Clue], str]
"""The characters before a clue; none if it is in another document than the launch."""


def gpu_count_of(
    launch: Launch, index: int, clues: LaunchClues, verdict: Verdict, bind: Callable[[int], Binding], before: Before
) -> list[Diagnostic]:
    """One warning if every variant of the launch needs more GPUs on a node than it is given. `bind` binds a variant's words."""
    if launch.program not in ("launch_server", "serve"):
        return []
    shown = [min(given_to(clues, v, before), key=lambda g: g.count, default=None) for v in launch.variants]
    if None in shown:
        return []
    judged = {j.variant: j.binding for j in verdict.runs if j.world.release == verdict.main.world.release}
    short: list[tuple[int, int, Given]] = []
    for number, given in enumerate(shown):
        # the verdict may be for another launch with the same words: words are bound again only for their places
        known = judged[number] if number in judged else bind(number)
        needed = needed_on_a_node(known, verdict) if not is_open(launch, known) else None
        if needed is None or given is None or needed <= given.count:
            return []
        short.append((number, needed, given))
    if not short:
        return []
    number, needed, given = short[0]
    binding = bind(number)
    settings = [binding.settings[f] for f in _SIZES if f in binding.settings]
    sizes = [s for s in settings if s.value != 1] or settings
    place = setting_place(sizes[0])
    if place.document != launch.place.document:
        place = launch.place
    flags = " ".join(s.spelled for s in sizes)
    message = f"`{flags}` needs {needed} GPUs on a node, but `{given.text}` gives {given.count}: SGLang fails while it starts."
    rule, related = MORE_GPUS_THAN_VISIBLE, (Related(given.place, "the GPUs it is given"),)
    return [Diagnostic(rule, rule.severity, message, place, f"{rule.name}:{index}", related=related, launch=index)]


# --- what is needed ----------------------------------------------------------------------------------------------------


def needed_on_a_node(binding: Binding, verdict: Verdict) -> int | None:
    """The GPUs that a node needs; None if unknown."""
    if _PLACED_OTHERWISE & binding.settings.keys() or binding.fatal:
        return None
    tp, pp, nodes = (_size(binding, name) for name in ("tp_size", "pp_size", "nnodes"))
    if tp is None or pp is None or nodes is None or tp * pp % nodes:
        return None
    return tp * pp // nodes * (_replicas(binding, verdict) if nodes == 1 else 1)


def _size(binding: Binding, field: str) -> int | None:
    setting = binding.settings.get(field)
    value = 1 if setting is None else setting.value
    return value if isinstance(value, int) and value > 0 else None


def _replicas(binding: Binding, verdict: Verdict) -> int:
    """The data parallel replicas that have GPUs of their own: 1 where DP attention shares them, or may share them."""
    resolution = verdict.main.resolution
    size = _size(binding, "dp_size")
    if size is None or resolution is None or resolution.refused or "enable_dp_attention" in binding.settings:
        return 1
    try:
        return 1 if resolution.config.enable_dp_attention else size
    except (NotKnown, AttributeError):
        return 1


# --- what is given -----------------------------------------------------------------------------------------------------


def text_before(document: Document) -> Before:
    """The text before clues whose places lie in the document's text."""

    def before(clue: Clue) -> str:
        at = clue.place.start
        return document.text[max(at - BEFORE, 0) : at] if clue.place.document == document.name else ""

    return before


BEFORE = 48
"""How many characters before a count are searched for the option that it belongs to."""


def given_to(clues: LaunchClues, variant: Variant, before: Before) -> Iterator[Given]:
    """What the document says about the GPUs that the launch can see."""
    for name in _VISIBLE:
        word = variant.env.get(name)
        if word is not None and word.text is not None and (count := visible(word.text)):
            yield Given(count, f"{name}={word.text}", word.place)
    for clue in clues.counts:
        written = _written(clue, before)
        option = written.rstrip("=: \t")
        if option in _ON_A_NODE or (option in _IN_ALL and clues.one_node):
            count = counted(clue.text)
            if count:
                shown = f": {clue.text.removeprefix('device=')}" if ":" in written else f" {clue.text}"
                yield Given(count, option + shown, clue.place)


_ON_A_NODE = frozenset(
    ("--gres", "--gpus-per-node", "nvidia.com/gpu", "amd.com/gpu", "device_ids", "count", "accelerators")
)
"""Options that give GPUs to each node or container. `count` and `device_ids` are from Compose, `accelerators` from SkyPilot."""
_IN_ALL = frozenset(("--gpus", "-G"))
"""Options that count the GPUs of all nodes together (Slurm); `docker run` has one node."""
_OPTION = expression(
    r"(?<![\w./-])(?:(?:--gres|--gpus-per-node|--gpus|-G)(?:=|\s+)"
    r"|(?:nvidia\.com/gpu|amd\.com/gpu|device_ids|count|accelerators)[\"']?\s*:\s*)[\"'\[{]*$"
)


def _written(clue: Clue, before: Before) -> str:
    """The option that a count belongs to, as written before it: Slurm's `--gpus-per-task` differs from `--gres`."""
    found = _OPTION.search(before(clue))
    return found[0].rstrip("\"'[{ \t\r\n").replace('"', "").replace("'", "") if found else ""


def visible(text: str) -> int | None:
    """How many devices `0,1,2,3` names; None where it hides all devices or is not a list."""
    parts = [p.strip() for p in text.split(",")]
    if not all(re.fullmatch(r"\d+|(?:GPU|MIG)-[\w/-]+", p) for p in parts):
        return None
    return len(set(parts))


def counted(text: str) -> int | None:
    """`8`, `gpu:8`, `gpu:h100:8`, `device=0,1`; None for `all` and what cannot be read."""
    text = text.strip("\"'")
    if text.startswith("device="):
        return visible(text.removeprefix("device=").strip("\"'"))
    found = re.fullmatch(r"(?:[A-Za-z][\w.-]*:){0,2}(\d+)(?:\([^)]*\))?", text)
    return int(found[1]) if found else None
