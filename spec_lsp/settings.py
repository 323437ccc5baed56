"""The one declaration of every setting: `spec-lsp.toml`, `[tool.spec-lsp]`, editors, the JSON schema and the docs are derived from it."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spec_lsp import patterns
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.rules import all_rules
from spec_lsp.analysis.worlds import is_path
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts import hardware
from spec_lsp.records import Field, dataclass, field, fields

SEVERITIES: tuple[str, ...] = ("error", "warning", "information", "hint", "off")


def _setting(default: Any, description: str, schema: Mapping[str, Any], *, example: str) -> Any:
    """`example` is a line of spec-lsp.toml that sets it."""
    metadata = {"description": description, "schema": schema, "example": example}
    return field(default_factory=lambda: default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with their defaults. Field names are the keys in TOML, with hyphens for underscores; camelCase in editors."""

    sglang: str = _setting(
        "",
        "The SGLang your launches run on, where the file itself names none: a release such as `0.5.19`, or the path of a checkout, an "
        "unpacked wheel or an environment such as `./third_party/sglang`.",
        {"type": "string"},
        example='sglang = "0.5.19"',
    )
    gpu: str = _setting(
        "",
        "The GPU your launches run on, such as `h200` or `b200`, where the file itself names none.",
        {"type": "string"},
        example='gpu = "h200"',
    )
    targets: tuple[Mapping[str, str], ...] = _setting(
        (),
        "Every world your launches must pass, each with `sglang`, `gpu` or both; replaces `sglang` and `gpu`.",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sglang": {"type": "string"}, "gpu": {"type": "string"}},
                "additionalProperties": False,
            },
        },
        example='targets = [{ sglang = "0.5.19", gpu = "h200" }, { sglang = "0.5.23", gpu = "b200" }]',
    )
    rules: Mapping[str, str] = _setting(
        {},
        "A severity for each rule by name or code: `error`, `warning`, `information`, `hint` or `off`.",
        {"type": "object", "additionalProperties": {"enum": list(SEVERITIES)}},
        example='rules = { overridden-value = "off", SPC021 = "warning" }',
    )
    exclude: tuple[str, ...] = _setting(
        (),
        "Paths that are not checked, as git-ignore patterns relative to the settings file.",
        {"type": "array", "items": {"type": "string"}},
        example='exclude = ["third_party/", "*.generated.sh", "!keep.generated.sh"]',
    )
    unsafe_fixes: bool = _setting(
        False,
        "Let fix-all apply fixes that change what runs, not only those that keep it.",
        {"type": "boolean"},
        example="unsafe-fixes = true",
    )
    fix_all: tuple[str, ...] = _setting(
        ("all",),
        "The rules whose fixes fix-all applies, in editors on save too, by name or code; `all` stands for every rule that "
        "finds something wrong or out of date. Remarks (`overridden-value`), and fixes of hints that change what runs, are applied where "
        "their rule is named.",
        {"type": "array", "items": {"type": "string"}},
        example='fix-all = ["deprecated-flag", "missing-backslash"]',
    )
    workspace_diagnostics: bool = _setting(
        True,
        "Tell editors that ask for it what is found in all files of the workspace, not only in those that are open.",
        {"type": "boolean"},
        example="workspace-diagnostics = false",
    )
    python: str = _setting(
        "",
        "The Python interpreter whose SGLang your launches run on where nothing else names one, and whose own help is shown on hover; by "
        "default that of an environment in the workspace.",
        {"type": "string"},
        example='python = ".venv/bin/python"',
    )
    verify_on_save: bool = _setting(
        False,
        "Ask the SGLang of `python`, or of the active environment, about the launches of a file that is saved, without a GPU; what it "
        "refuses is told in its own words. It starts that interpreter, so only the editor's own settings can switch it on.",
        {"type": "boolean"},
        example="verify-on-save = true  # in the editor's own settings: `verifyOnSave`",
    )
    models: tuple[str, ...] = _setting(
        (),
        "Folders that hold model folders (each with a config.json), looked at before the Hugging Face cache.",
        {"type": "array", "items": {"type": "string"}},
        example='models = ["models", "/data/checkpoints"]',
    )
    inlay_hints: bool = _setting(
        True,
        "Show the values SGLang will really use beside the launch.",
        {"type": "boolean"},
        example="inlay-hints = false",
    )
    changed_value_hints: bool = _setting(
        True,
        "Show what a value becomes behind one that SGLang will change (`→ 64`).",
        {"type": "boolean"},
        example="changed-value-hints = false",
    )
    chosen_value_hints: bool = _setting(
        True,
        "Show at the end of a launch what SGLang chooses: attention backend, page size, draft steps, topk and tokens.",
        {"type": "boolean"},
        example="chosen-value-hints = false",
    )
    code_lens: str = _setting(
        "auto",
        "A lens on each launch that opens its resolved configuration: `auto` where the editor says that it can, `always` or `never`.",
        {"type": "string", "enum": ["auto", "always", "never"]},
        example='code-lens = "always"',
    )


@dataclass(frozen=True, slots=True)
class Misfit:
    """A setting that cannot be used: a sentence about it, and the keys that lead to it."""

    message: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return self.message


def read_settings(values: Mapping[str, Any]) -> tuple[Settings, list[Misfit]]:
    """Settings from a mapping of TOML or editor keys, and what is wrong with it; valid settings are kept."""
    known = {f.name: f for f in fields(Settings)}
    kept: dict[str, Any] = {}
    misfits: list[Misfit] = []
    for key, value in values.items():
        name = _snake(key)
        if name not in known:
            keys = [_kebab(key, n) for n in known]
            misfits.append(Misfit(f"unknown setting `{_short(key)}`{_meant(_kebab(key, name), keys)}", (key,)))
            continue
        misfit = _misfit(name, value, known[name].metadata["schema"])
        if misfit:
            misfits.append(Misfit(f"setting `{_short(key)}`: {misfit}", (key,)))
            continue
        bad = list(_bad_entries(name, value))
        misfits += (Misfit(f"setting `{_short(key)}`: {message}", (key, entry)) for entry, message in bad)
        kept[name] = _without(value, {entry for entry, _ in bad})
    return Settings(**kept), misfits


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Raw settings with later layers over earlier ones, key by key; `rules` are merged rule by rule."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            name = _snake(key)
            if name == "rules" and isinstance(value, Mapping) and isinstance(merged.get(name), Mapping):
                merged[name] = {**merged[name], **value}
            else:
                merged[name] = value
    return merged


def options(settings: Settings, *, honour_ignores: bool = True) -> Options:
    """The part of the settings that analysis needs."""
    by_code = {rule.code: rule.name for rule in all_rules()} if settings.rules or settings.fix_all != ("all",) else {}
    severities: dict[str, Any] = {by_code.get(name, name): severity for name, severity in settings.rules.items()}
    otherwise = Target() if settings.targets else read_target({"sglang": settings.sglang, "gpu": settings.gpu})
    every = "all" in settings.fix_all
    fix_all = None if every else frozenset(by_code.get(name, name) for name in settings.fix_all)
    worlds = tuple(read_target(t) for t in settings.targets)
    return Options(worlds, severities, honour_ignores, otherwise, fix_all=fix_all, python=settings.python)


def targets(releases: Iterable[str], gpus: Iterable[str]) -> tuple[dict[str, str], ...]:
    """Every pair of the given releases and GPUs as `targets` entries (the command line's repeated --sglang and --gpu)."""
    return tuple(
        {key: value for key, value in (("sglang", release), ("gpu", gpu)) if value}
        for release in (list(releases) or [""])
        for gpu in (list(gpus) or [""])
        if release or gpu
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema of `spec-lsp.toml`."""
    properties = {
        f.name.replace("_", "-"): {"description": f.metadata["description"], **schema_of(f)} for f in fields(Settings)
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "spec-lsp settings",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def schema_of(setting: Field[Any]) -> dict[str, Any]:
    """The JSON schema of one setting: its type, and the names that it may hold. GPUs and releases have too many spellings to list: those
    are examples, which editors offer."""
    schema = dict(setting.metadata["schema"])
    match setting.name:
        case "sglang":
            return {**schema, "examples": [str(release) for release in reversed(releases())]}
        case "gpu":
            return {**schema, "examples": [*hardware.DEVICES, *hardware.FAMILIES]}
        case "rules":
            return {**schema, "propertyNames": {"enum": _rule_names()}}
        case "fix_all":
            return {**schema, "items": {"type": "string", "enum": ["all", *_rule_names()]}}
    return schema


def _rule_names() -> list[str]:
    rules = all_rules()
    return [*(rule.name for rule in rules), *(rule.code for rule in rules)]


def read_target(named: Mapping[str, Any]) -> Target:
    """A target as `targets` writes it; an unknown release or GPU is left open."""
    release, gpu = named.get("sglang"), named.get("gpu")
    written = release if isinstance(release, str) else ""
    return Target(
        Release.read(written) if written else None,
        hardware.find(gpu) if isinstance(gpu, str) and gpu else None,
        sglang=written if is_path(written) else "",
    )


def _snake(key: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in key).replace("-", "_")


def _kebab(like: str, name: str) -> str:
    """The name of a setting, from any form of its key: `unsafe-fixes`, or `unsafeFixes` in editors."""
    if any(c.isupper() for c in like):
        first, *more = name.split("_")
        return first + "".join(word.capitalize() for word in more)
    return name.replace("_", "-")


def shown(value: Any) -> str:
    """A value for a message: its beginning."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = 80
    return brief.repr(value)


MAX_SHOWN = 80
"""The most characters of a key that a message shows."""


def _short(key: str) -> str:
    if not key.isprintable():
        return shown(key)
    return key if len(key) <= MAX_SHOWN else key[: MAX_SHOWN - 1] + "…"


def _meant(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that names what was probably meant; empty if nothing is similar."""
    import difflib  # takes a while to import

    near = difflib.get_close_matches(word, list(known), n=1) if len(word) <= MAX_SHOWN else []
    return f"; did you mean `{near[0]}`?" if near else ""


def _misfit(name: str, value: Any, schema: Mapping[str, Any]) -> str:
    """What is wrong with a value as a whole, as the end of a sentence; empty if it is valid."""
    expected = {"string": str, "boolean": bool, "array": (list, tuple), "object": Mapping}[schema["type"]]
    if not isinstance(value, expected):  # type: ignore[arg-type]
        return f"{shown(value)} is not {'an' if schema['type'][0] in 'ao' else 'a'} {schema['type']}"
    if value not in schema.get("enum", (value,)):
        return f"{shown(value)} is not one of {', '.join(schema['enum'])}{_meant(value, schema['enum'])}"
    match name:
        case "sglang" if value and Release.read(value) is None and not is_path(value):
            return f"{shown(value)} is not a release of SGLang (write 0.5.19, or a path such as ./sglang)"
        case "gpu" if value and hardware.find(value) is None:
            meant = _meant(value, hardware.DEVICES)
            return f"{shown(value)} is not a GPU that spec-lsp knows{meant} (it knows {', '.join(hardware.DEVICES)})"
        case "targets":
            return next(filter(None, (_target_misfit(t) for t in value)), "")
        case "exclude" | "models" | "fix_all" if not all(isinstance(v, str) for v in value):
            return "every entry must be a string"
    return ""


def _bad_entries(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The entries of a setting that cannot be used (the others are valid): a key or a text, and why."""
    if name == "rules":
        names = set(_rule_names())
        for rule, severity in value.items():
            if rule not in names:
                yield rule, f"there is no rule {shown(rule)} (see `spec-lsp rules`){_meant(rule, names)}"
            elif severity not in SEVERITIES:
                meant = _meant(severity, SEVERITIES) if isinstance(severity, str) else ""
                yield rule, f"{shown(severity)} is not one of {', '.join(SEVERITIES)}{meant}"
    if name == "fix_all" and tuple(value) != ("all",):
        names = {"all", *_rule_names()}
        for rule in value:
            if rule not in names:
                yield rule, f"there is no rule {shown(rule)} (see `spec-lsp rules`){_meant(rule, names)}"
    if name == "exclude":
        yield from ((pattern, why) for pattern in value if (why := patterns.misfit(pattern)))


def _without(value: Any, entries: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {k: v for k, v in value.items() if k not in entries} if entries else value
    return tuple(v for v in value if not entries or v not in entries) if isinstance(value, (list, tuple)) else value


def _target_misfit(target: Any) -> str:
    if not isinstance(target, Mapping) or not target or set(target) - {"sglang", "gpu"}:
        return "each target is a table with `sglang`, `gpu` or both"
    return _misfit("sglang", target.get("sglang", ""), {"type": "string"}) or _misfit(
        "gpu", target.get("gpu", ""), {"type": "string"}
    )
