"""The values a flag may be given, and which of them the release and the hardware can run: decided by resolving the launch with each."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any

from spec_lsp.analysis.hints import written
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.run import ModelSource, RunResult, Values, device_of, is_open, model_path, run
from spec_lsp.analysis.worlds import NOT_NAMED
from spec_lsp.catalog.binding import Binding, Setting
from spec_lsp.catalog.model import SUPPRESS, Catalog, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.quantization import checkpoint_config, refused_by_device
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import Finding
from spec_lsp.resolution.handlers import handlers_of
from spec_lsp.resolution.late.experts import BALANCERS
from spec_lsp.resolution.late.groups import DEVICES
from spec_lsp.resolution.late.web import COMPLETION_TEMPLATES, LOG_LEVELS
from spec_lsp.resolution.model.config import CONFIG_PARSERS
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place, literal

MAX_RESOLUTIONS = 40
"""How many resolutions one list of values may cost: somebody is typing."""

OTHERS = ("sm100", "mi355")
"""Hardware families that are tried where no hardware is named and the likeliest cannot run a value."""

_POWERS = (1, 2, 4, 8, 16)
SIZES: Mapping[str, Sequence[Any]] = MappingProxyType(
    {
        "page_size": (1, 16, 32, 64, 128),
        "tp_size": _POWERS,
        "dp_size": _POWERS,
        "ep_size": _POWERS,
        "pp_size": (1, 2, 4),
        "attn_cp_size": (1, 2, 4, 8),
        "nnodes": (1, 2, 4),
        "node_rank": (0, 1, 2, 3),
        "mem_fraction_static": (0.7, 0.75, 0.8, 0.85, 0.9),
        "context_length": (8192, 16384, 32768, 65536, 131072),
        "chunked_prefill_size": (-1, 2048, 4096, 8192, 16384),
        "max_prefill_tokens": (8192, 16384, 32768),
        "max_running_requests": (16, 32, 48, 64, 128, 256),
        "cuda_graph_max_bs": (16, 32, 64, 128, 256, 512),
        "cuda_graph_max_bs_decode": (16, 32, 64, 128, 256, 512),
        "speculative_num_steps": (1, 2, 3, 4, 5),
        "speculative_eagle_topk": (1, 2, 4, 8),
        "speculative_num_draft_tokens": (2, 3, 4, 8, 16, 32),
        "schedule_conservativeness": (0.3, 0.5, 1.0, 1.3),
        "max_loras_per_batch": (1, 2, 4, 8),
        "max_lora_rank": (8, 16, 32, 64, 128),
        "watchdog_timeout": (300, 600, 1800),
        "port": (30000, 8000),
        "host": ("0.0.0.0", "127.0.0.1"),
        "log_level": ("debug", "info", "warning", "error", "critical"),
    }
)
"""Common values of fields that have no choices."""

NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "eplb_algorithm": BALANCERS,
        "model_config_parser": CONFIG_PARSERS,
        "model_impl": ("auto", "sglang", "transformers"),
        "device": DEVICES,
        "log_level_http": LOG_LEVELS,
        "completion_template": COMPLETION_TEMPLATES,
    }
)
"""Names that SGLang looks up itself although argparse accepts any text."""

SAME_CHOICES: Mapping[str, str] = MappingProxyType({"speculative_draft_attention_backend": "attention_backend"})
"""Fields that accept any text but take their values from the choices of another field."""

METHOD_FIELDS = frozenset({"quantization", "speculative_draft_model_quantization"})
"""Fields whose values are quantization methods."""

NO_NAME = "?"
"""A value that no registry of SGLang contains: a rule that knows the valid names lists them when it is given this."""


def values_of(flag: Flag, catalog: Catalog | None = None) -> tuple[Any, ...]:
    """The choices of a flag (of another field in `catalog` where they are taken from that), else common values and its default."""
    if flag.choices:
        return flag.choices
    same = catalog.by_field.get(SAME_CHOICES.get(flag.field, "")) if catalog is not None else None
    if same is not None and same.choices:
        return same.choices
    default = (
        ()
        if flag.default in (None, SUPPRESS, "") or not isinstance(flag.default, (int, float, str))
        else (flag.default,)
    )
    sizes = SIZES.get(flag.field) or NAMES.get(flag.field, ())
    return tuple(dict.fromkeys((*sizes, *(d for d in default if d not in sizes)))) if flag.takes_value else ()


@dataclass(frozen=True, slots=True)
class Fit:
    """What happens with a value: `refused` says why it cannot run (empty if it can), `becomes` what SGLang uses instead (empty if it
    stays).

    `elsewhere` names hardware that accepts it, where the launch names none.
    """

    refused: str = ""
    becomes: str = ""
    elsewhere: str = ""


@dataclass(slots=True)
class Trial:
    """A launch without the value in question, to be resolved with one value after another."""

    launch: Launch
    variant: int
    world: World
    worlds: tuple[World, ...]
    binding: Binding
    models: ModelSource
    left: int = MAX_RESOLUTIONS
    _without: frozenset[str] | None = None

    def fits(self, flag: Flag, values: Sequence[Any]) -> Mapping[Any, Fit]:
        """What happens with each value. Nothing is said of values of a field that no rule reads, or when there are too many.

        Rules judge a quantization method by the model's checkpoint; where they cannot, only the device can rule it out.
        """
        read = flag.field in read_by_rules(self._release)
        judged = read and flag.nargs is None and len(values) + 1 <= self.left
        fits = {value: self._fit(flag, value) for value in values} if judged else {}
        if flag.field in METHOD_FIELDS and not (judged and self._checkpoint_known):
            fits = {value: self._by_device(flag, value, fits.get(value, Fit())) for value in values}
        return fits

    @property
    def _checkpoint_known(self) -> bool:
        """Whether the quantization of the model's checkpoint is known; if not, rules cannot judge the method."""
        path = model_path(self.binding)
        model = self.models(path) if path is not None else None
        if model is None:
            return False
        try:
            checkpoint_config(model, self._release)
        except NotKnown:
            return False
        return True

    def _by_device(self, flag: Flag, value: Any, fit: Fit) -> Fit:
        """What happens with a quantization method: refused if no GPU that the launch may run on supports it."""
        gpus = [w.hardware for w in self.worlds if w.hardware is not None]
        if self.world.hardware_from != NOT_NAMED:
            gpus = [self.world.hardware] if self.world.hardware is not None else []
        reasons = [refused_by_device(str(value), gpu, self._release) for gpu in gpus]
        if fit.refused or not reasons or not all(reasons):
            return fit
        return Fit(f"`{flag.name} {value}` {reasons[0]}.")

    def named_by_rules(self, flag: Flag) -> tuple[str, ...]:
        """The values that a rule lists for a flag that accepts any text, when the launch is given none of them."""
        if flag.type not in (None, "str") or flag.nargs is not None or flag.field not in read_by_rules(self._release):
            return ()
        judged = self._run({**self.binding.settings, flag.field: trial_setting(flag, NO_NAME)}, self.world)
        said = (f.said for f in _refusals(judged))
        return next((s.choices for s in said if s.at == flag.field and s.choices), ())

    @property
    def _release(self) -> Release:
        return self.binding.catalog.release

    def _fit(self, flag: Flag, value: Any) -> Fit:
        judged, refusal = self._tried(flag, value, self.world)
        if refusal is None:
            return Fit(becomes=_replaced(judged, flag.field, value))
        if self.world.hardware_from != NOT_NAMED:
            return Fit(refusal.said.message)
        return Fit(refusal.said.message, elsewhere=", ".join(self._elsewhere(flag, value)))

    def _elsewhere(self, flag: Flag, value: Any) -> Iterator[str]:
        """The first other hardware that accepts it."""
        for world in self.worlds:
            if world.hardware is None or world.hardware.family not in OTHERS or world == self.world or self.left <= 0:
                continue
            if self._tried(flag, value, world)[1] is None:
                yield world.hardware.title
                return

    def _tried(self, flag: Flag, value: Any, world: World) -> tuple[RunResult, Finding | None]:
        """The launch with the value, and the first refusal that the value causes."""
        known = self._refused_without()
        judged = self._run({**self.binding.settings, flag.field: trial_setting(flag, value)}, world)
        return judged, next((f for f in _refusals(judged) if f.rule.name not in known), None)

    def _refused_without(self) -> frozenset[str]:
        """The rules that refuse the launch in the likeliest world even without a value."""
        if self._without is None:
            judged = self._run(self.binding.settings, self.world)
            self._without = frozenset(f.rule.name for f in _refusals(judged))
        return self._without

    def _run(self, settings: Mapping[str, Setting], world: World) -> RunResult:
        self.left -= 1
        binding = replace(self.binding, settings=settings)
        # The value being tried must not itself decide the hardware.
        settled = replace(world, hardware=device_of(Values.of(self.binding).given.typed, world), hardware_from="tried")
        return run(self.launch, self.variant, settled, self.models, binding, bare=is_open(self.launch, binding))


def trial_setting(flag: Flag, value: Any) -> Setting:
    """A flag as if it had this value."""
    nowhere = Place("", 0, 0)
    return Setting(flag.field, value, flag.name, literal(flag.name, nowhere), (literal(str(value), nowhere),), flag)


def _refusals(judged: RunResult) -> list[Finding]:
    return [f for f in judged.resolution.findings if f.rule.severity == "error"] if judged.resolution else []


def _replaced(judged: RunResult, name: str, value: Any) -> str:
    """What SGLang will use instead of a typed value; empty where the value stays or this is unknown."""
    if judged.resolution is None or not judged.resolution.config.known(name):
        return ""
    history = judged.resolution.config.history.get(name, ())
    used = getattr(judged.resolution.config, name)
    return written(used) if used != value and any(not d.step.spelling for d in history) else ""


# --- which fields rules read --------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def read_by_rules(release: Release) -> frozenset[str]:
    """The fields of a shipped release that some rule reads, found in the names that its functions and their helpers use."""
    fields = load(release).by_field.keys()
    steps = (step for handler in handlers_of(release) for step in handler.steps if step.rule is not None)
    return frozenset(name for step in steps for name in _names_used(step.run, HELPERS) & fields)


HELPERS = 3
"""How many levels of helpers below a rule are looked into."""


def _names_used(function: Any, depth: int) -> set[str]:
    """Attribute names in a function's code, and in the functions of this project that it calls."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return set()
    names: set[str] = set()
    for part in (code, *(c for c in code.co_consts if isinstance(c, CodeType))):
        names.update(part.co_names)
        names.update(c for c in part.co_consts if isinstance(c, str))  # c.given("page_size")
    if depth:
        module = getattr(function, "__globals__", {})
        for name in list(names):
            called = module.get(name)
            if str(getattr(called, "__module__", "")).startswith("spec_lsp.resolution"):
                names |= _names_used(called, depth - 1)
    return names
