"""The command line of one SGLang release: its flags, and the environment variables that its source reads."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from spec_lsp.catalog.release import Release
from spec_lsp.records import dataclass

SUPPRESS = "==SUPPRESS=="
"""argparse's own marker: the flag adds nothing to the namespace when it is not given."""

Action = Literal[
    "store",
    "store-true",
    "boolean",
    "help",
    "lora-paths",
    "deprecated",
    "deprecated-true",
    "deprecated-const",
    "deprecated-alias",
]
"""How a flag's words become a value. `boolean` is argparse's BooleanOptionalAction (`--x` / `--no-x`). The `deprecated…` ones are SGLang's:
`deprecated` sets nothing, `deprecated-true` and `deprecated-alias` set the field of their replacement, `deprecated-const` sets `const`."""

ACTIONS: frozenset[str] = frozenset(get_args(Action))

Nargs = int | Literal["?", "*", "+"] | None
"""argparse's nargs. None is exactly one value, 0 none."""


FIELDS = {
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
    "attention_context_parallel_size": "attn_cp_size",
    "moe_data_parallel_size": "moe_dp_size",
}
"""Dests that `from_cli_args` copied to fields of another name, before 0.5.14."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One argument of `ServerArgs.add_cli_args`, as the release's argparse parser holds it.

    `choices` are in SGLang's order and of the type that `type` gives. `type` names the converter (`int`, `float`, `str`,
    `loads`, `human_readable_int`, …: see `converters.py`); None takes the text as it is.
    """

    spellings: tuple[str, ...]
    dest: str
    action: Action = "store"
    nargs: Nargs = None
    const: Any = None
    default: Any = None
    type: str | None = None
    choices: tuple[Any, ...] | None = None
    required: bool = False
    deprecated: bool = False
    replacement: str = ""
    """What SGLang says to use instead (`--cuda-graph-max-bs-decode`), empty if it says nothing."""
    fatal: bool = False
    """A removed flag that the parser keeps only to stop the launch."""

    @property
    def name(self) -> str:
        """The first long spelling: `--tensor-parallel-size`."""
        return next((s for s in self.spellings if s.startswith("--")), self.spellings[0])

    @property
    def field(self) -> str:
        """The field of `ServerArgs` it fills; before 0.5.14 `from_cli_args` renamed six of them."""
        return FIELDS.get(self.dest, self.dest)

    @property
    def takes_value(self) -> bool:
        return self.nargs != 0


VariableType = Literal["bool", "int", "float", "str", "json", "list", "unknown"]


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that a release's source reads. `default` is None if there is none or it is computed.

    A `deprecated` one is still looked at, if only to warn; `replacement` is the one that SGLang names instead.
    """

    name: str
    type: VariableType = "unknown"
    default: Any = None
    deprecated: bool = False
    replacement: str = ""


@dataclass(frozen=True)
class Catalog:
    """The command line of one release."""

    release: Release
    flags: tuple[Flag, ...]
    """In the order in which the parser got them."""

    @functools.cached_property
    def by_spelling(self) -> Mapping[str, Flag]:
        """Every spelling, also `-h` and the `--no-…` forms, in the parser's order."""
        return MappingProxyType({s: f for f in self.flags for s in f.spellings})

    @functools.cached_property
    def by_field(self) -> Mapping[str, Flag]:
        """The flag that fills a field; of several, the first that is not deprecated."""
        found: dict[str, Flag] = {}
        for flag in self.flags:
            known = found.get(flag.field)
            if known is None or (known.deprecated and not flag.deprecated):
                found[flag.field] = flag
        return MappingProxyType(found)

    @functools.cached_property
    def fields_by_name(self) -> Mapping[str, str]:
        """The field of each flag by its spellings, and by its own name with dashes: `--tp-size`."""
        named = {"--" + f.replace("_", "-"): f for f in self.by_field}
        return MappingProxyType({**named, **{s: f.field for s, f in self.by_spelling.items()}})

    @functools.cached_property
    def required(self) -> tuple[Flag, ...]:
        return tuple(f for f in self.flags if f.required)

    @functools.cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The value of each field if nothing is typed (of several flags of a field, the first decides)."""
        found: dict[str, Any] = {}
        for flag in self.flags:
            if flag.default != SUPPRESS:
                found.setdefault(flag.field, flag.default)
        return MappingProxyType(found)

    def flag(self, spelling: str) -> Flag | None:
        """The flag with exactly this spelling."""
        return self.by_spelling.get(spelling)
