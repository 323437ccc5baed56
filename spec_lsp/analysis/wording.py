"""How values and the reasons for them are worded: Markdown for hovers and views."""

from __future__ import annotations

import json
from typing import Any

from spec_lsp.analysis.inputs import World
from spec_lsp.catalog.binding import Setting
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.expressions import expression
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import Config


def value_shown(value: Any) -> str:
    """A value as a person writes it."""
    if value is True or value is False:
        return "on" if value else "off"
    if value is None:
        return "unset"
    if isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, (dict, list)) for v in value)
    ):
        written = json.dumps(value, ensure_ascii=False, default=str).replace("`", "'")
        return f"`{written}`"
    if isinstance(value, (list, tuple)):
        return f"`{short(' '.join(map(str, value)))}`" if value else "none"
    return f"`{short(str(value))}`" if value != "" else "empty"


def short(text: str) -> str:
    text = " ".join(text.split()).replace("`", "'")
    return text if len(text) <= 80 else text[:79] + "…"


def as_typed(setting: Setting) -> str:
    """A setting's value as it was typed."""
    return "unknown" if isinstance(setting.value, Unknown) else value_shown(setting.value)


def same_value(value: Any, typed: Any) -> bool:
    return type(value) is type(typed) and bool(value == typed)


def reasons_for(config: Config, field: str) -> list[str]:
    """The reasons for a field's value, as whole sentences, each once."""
    return list(dict.fromkeys(sentence(d.step.reason) for d in config.history.get(field, ())))


def sentence(reason: str) -> str:
    """A reason with its full stop."""
    return reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."


def because(lacking: NotKnown, setting: Setting | None = None) -> str:
    """Why a value is unknown, in a sentence: the last link of the chain of causes only."""
    if setting is not None and isinstance(setting.value, Unknown):
        return f"Unknown: {sentence(setting.value.reason)}"
    why = lacking.why or f"depends on {lacking.what}"
    subject = "What SGLang makes of it" if setting is not None else "It"
    what = ""
    while link := _LINK.match(why):
        what, why = link["what"], why[link.end() :]
    if not what:
        return f"{subject} {why}." if why.startswith("depends on ") else f"{subject} is unknown: {sentence(why)}"
    named = f"`{what.replace('_', '-')}`" if "_" in what else f"the {what.removeprefix('the ')}"
    return f"{subject} depends on {named}: {sentence(why)}"


_LINK = expression(r"depends on (?P<what>[^:]+): ")
"""A link of the chain of causes from a value to what is unknown."""


def world_text(world: World, any_gpu: str = "") -> str:
    """The release and hardware that this was computed for, and where they are named; `any_gpu`: the hardware if none is named."""
    own = f", a build that is nearest to {world.release.stock}" if world.release.local else ""
    release = f"SGLang {world.release}{own} ({_source(world.release_from, 'the newest: nothing names one')})"
    if world.hardware is None:
        return f"*{release}, no GPU*"
    if any_gpu:
        return f"*{release} on {any_gpu}: nothing names it. Values are those on {world.hardware.title}.*"
    return f"*{release} on {world.hardware.title} ({_source(world.hardware_from, 'the only one possible')})*"


def _source(where: str, otherwise: str) -> str:
    return otherwise if where == "not named" else f"from the {where}" if where != "settings" else "from the settings"
