"""The questions for SGLang about a launch: its words on each of its ways, as far as the document determines them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from spec_lsp.analysis.run import ConfigSource, bind_variant
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment as variables
from spec_lsp.catalog.store import nearest
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Launch, Variant
from spec_lsp.syntax.word import Word
from spec_lsp.workspace import DiskWorkspace

MODELS = ("model_path", "speculative_draft_model_path")
"""Fields that name a model whose config.json SGLang reads."""
WHOLE = ("launch_server", "serve", "engine", "config")
"""Programs whose launches are completely known; a trainer or another server sets further flags itself."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a launch. `case` is the question for SGLang; `why` says why it cannot be asked, as the end of a sentence.

    `typed` maps each stand-in in `case` (a model's folder) to what was typed, so that SGLang's messages can be shown in the reader's terms.
    `from_facts` are the models whose config.json is made from what spec-lsp knows about them.
    """

    launch: Launch
    variant: int
    binding: Binding
    case: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    from_facts: tuple[str, ...] = ()


class NotToldError(Exception):
    """The document does not determine what SGLang would be asked."""


def ways(
    launch: Launch, release: Release, document: str, workspace: DiskWorkspace, configs: ConfigSource
) -> Iterator[Way]:
    """Each way of a launch as a question to a release. What `"$@"` may add is left out."""
    for index, variant in enumerate(launch.variants):
        binding = bind_variant(launch, index, release, configs)
        try:
            yield _way(launch, index, variant, binding, release, _Around(document, workspace, configs))
        except NotToldError as error:
            yield Way(launch, index, binding, why=str(error))


@dataclass(frozen=True, slots=True)
class _Around:
    document: str
    workspace: DiskWorkspace
    configs: ConfigSource


def _way(launch: Launch, index: int, variant: Variant, binding: Binding, release: Release, around: _Around) -> Way:
    if launch.program not in WHOLE:
        raise NotToldError(f"`{launch.program}` starts SGLang with flags of its own")
    for setting in binding.settings.values():
        if isinstance(setting.value, Unknown):
            raise NotToldError(f"`{setting.spelling}` is not known: {setting.value.reason}")
    models = dict(_models(binding, around))
    case: dict[str, Any] = {"env": _environment(variant, release), "cwd": os.path.dirname(around.document)}
    files = {m.file: m.text for m in models.values() if m.text}
    if launch.program == "engine":
        case["fields"] = _fields(binding, models)
    elif launch.program == "config":
        case["argv"], files["config.yaml"] = ["--config", "{files}/config.yaml"], _own_text(launch, around)
    else:
        case["argv"], written = _words(launch, variant, binding, models, around)
        files |= written
    case["files"] = files
    typed = {m.path: typed for typed, m in models.items()}
    made = tuple(typed for typed, m in models.items() if m.text)
    return Way(launch, index, binding, case, typed=typed, from_facts=made)


# --- models ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Model:
    """Where SGLang finds a model's config.json: in the folder `path`, or in a file that is created with `text`."""

    path: str
    file: str = ""
    text: str = ""


def _models(binding: Binding, around: _Around) -> Iterator[tuple[str, _Model]]:
    """The models that a way names, by name. Raises NotToldError if no config.json can be provided for one."""
    for name in MODELS:
        setting = binding.settings.get(name)
        if setting is None:
            continue
        typed = setting.value
        if not isinstance(typed, str):  # a keyword argument of another type, which SGLang will refuse
            continue
        folder = around.workspace.model_folder(around.document, typed)
        if folder is not None:
            yield typed, _Model(folder)
            continue
        facts = around.workspace.model(around.document, typed)
        if facts is None:
            raise NotToldError(f"the config.json of `{typed}` is not on this machine")
        file = f"models/{typed.strip('/')}/config.json"
        yield typed, _Model("{files}/" + os.path.dirname(file), file, json.dumps(dict(facts.config)))


# --- words -------------------------------------------------------------------------------------------------------------


def _words(
    launch: Launch, variant: Variant, binding: Binding, models: Mapping[str, _Model], around: _Around
) -> tuple[list[str], dict[str, str]]:
    """The words that follow the entry point, and the `--config` files that they name."""
    words = [_text(word) for word in variant.words if not word.splat]
    if launch.program == "serve" and words and not words[0].startswith("-"):
        words = ["--model-path", *words]
    files: dict[str, str] = {}
    for at, word in enumerate(words[:-1]):
        if word == "--config":
            name = f"{at}/{os.path.basename(words[at + 1])}"
            text = _config(words[at + 1], variant, around)
            files |= {name: text} if text is not None else {}
            words[at + 1] = "{files}/" + name
    # In the words, or in a `--config` file, which what follows it on the command line overrides.
    words = [_replaced(word, models) for word in words]
    for name in MODELS:
        setting = binding.settings.get(name)
        if setting is not None and setting.from_config:
            words += [setting.definition.name, models[setting.value].path]
    return words, files


def _text(word: Word) -> str:
    text = word.text
    if text is None:
        raise NotToldError(
            f"`{word.known_start}…` is not known: {word.reason}"
            if word.known_start
            else f"a word is not known: {word.reason}"
        )
    return text


def _replaced(word: str, models: Mapping[str, _Model]) -> str:
    """A model's folder in place of its name."""
    if word in models:
        return models[word].path
    flag, equals, value = word.partition("=")
    return f"{flag}={models[value].path}" if equals and value in models else word


def _config(path: str, variant: Variant, around: _Around) -> str | None:
    """The text of a `--config` file; None where it is not there, which SGLang will say. Raises NotToldError."""
    for file in variant.files:
        if file.name == path:
            return _text(file.content)
    found = around.configs(path)
    return found[1] if found else None


def _own_text(launch: Launch, around: _Around) -> str:
    found = around.configs(launch.place.document)
    if found is None:
        raise NotToldError("the file cannot be read again")
    return found[1]


def _fields(binding: Binding, models: Mapping[str, _Model]) -> dict[str, Any]:
    """The keyword arguments of an engine."""
    for setting in binding.settings.values():
        if isinstance(setting.value, Unknown):
            raise NotToldError(f"`{setting.spelling}` is not known: {setting.value.reason}")
    unknown = {
        e.typed: None for e in binding.errors if e.typed
    }  # keywords that are not fields: Python refuses their names
    known = {name: _placed(name, s.value, models) for name, s in binding.settings.items()}
    return {**unknown, **known}


def _placed(name: str, value: Any, models: Mapping[str, _Model]) -> Any:
    return models[value].path if name in MODELS and isinstance(value, str) else value


# --- variables ---------------------------------------------------------------------------------------------------------


def _environment(variant: Variant, release: Release) -> dict[str, str]:
    """The variables of a launch that SGLang itself reads: no others, which might decide what is run or which programs are found."""
    read = variables(nearest(release))
    found = {}
    for name, word in variant.env.items():
        if name.startswith(OWN):
            text = word.text
            if text is not None:
                found[name] = text
            elif name in read:
                raise NotToldError(f"`${name}` is not known: {word.reason}")
    return found


OWN = ("SGLANG_", "SGL_")
"""The prefixes of SGLang's own variables."""
