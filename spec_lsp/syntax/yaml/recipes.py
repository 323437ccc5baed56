"""srt-slurm recipes: `backend.sglang_config.{prefill,decode,aggregated}` mappings that the tool turns into flags.

What the tool does (srtctl/backends/sglang.py, core/config.py): `_` in keys becomes `-`; `true` is the flag alone, `false` and null nothing,
a list its items; it adds the model's path, host, port, the role, what several nodes need and where events are published by itself. A
recipe with `base:` is submitted once for each `override_*`, and once for each element of the lists in `zip_override_*`. Newer recipes
write `roles.{…}.args`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Choice, Clue, Launch, Program, Variant
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.word import Place, Word, hull, unknown
from spec_lsp.syntax.yaml.entries import entry_words
from spec_lsp.syntax.yaml.nodes import Node, Part, is_list, is_mapping, is_null, is_scalar, items
from spec_lsp.syntax.yaml.surroundings import Frame, clues_of, fixed, image_of, is_server_image, variables
from spec_lsp.syntax.yaml.words import parameters
from spec_lsp.syntax.yaml.worlds import Way, together

ROLES = {"prefill": "prefill", "decode": "decode", "aggregated": "aggregated", "agg": "aggregated"}
ADDED = "srt-slurm adds it"
TRUE = ("true", "True", "TRUE")
PLAIN_SERVER = ("sglang", "sglang-router", "sglang_router", "sgl-router", "sidecar")
RELEASE = expression(r"v?\d+(?:\.\w+)+\Z")
Entry = tuple[Node, Node]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A mapping of a recipe that overrides those before it. `element` chooses from its lists; `label` names the variant."""

    node: Node
    element: int | None = None
    label: str = ""


def is_recipe(part: Part) -> bool:
    """Whether a document is an srt-slurm recipe for SGLang."""
    root = part.root
    if not is_mapping(root):
        return False
    tops = [root, *(value for name, (_, value) in part.entries(root).items() if name == "base" or "override_" in name)]
    return any(
        is_mapping(part.get(top, "backend", "sglang_config"))
        or (is_mapping(part.get(top, "roles")) and (part.text_at(top, "engine") or "").startswith("sglang"))
        for top in tops
    )


def read_recipe(part: Part) -> list[Launch]:
    """The servers of a recipe: one launch for each role, with a variant for each job that would be submitted."""
    ways: list[Way] = []
    for layers in list(_jobs(part))[:MAX_VARIANTS]:
        recipe = _Recipe(part, layers)
        taken = tuple(Choice(part.place_of(layer.node), layer.label) for layer in layers if layer.label)
        ways.append((taken, list(recipe.launches())))
    return together(ways)


def _jobs(part: Part) -> Iterator[list[Layer]]:
    """The layers of each job."""
    top = part.entries(part.root)
    base = part.get(part.root, "base")
    if not is_mapping(base):
        yield [Layer(part.root)]
        return
    overrides = [(name, key, node) for name, (key, node) in top.items() if is_mapping(node) and "override_" in name]
    if not overrides:
        yield [Layer(base)]
    for name, _, node in overrides:
        if name.startswith("zip_"):
            for element in range(_zip_length(part, node)):
                yield [Layer(base), Layer(node, element, f"the job is {name}[{element}]")]
        else:
            yield [Layer(base), Layer(node, None, f"the job is {name}")]


def _zip_length(part: Part, node: Node) -> int:
    """How many jobs the lists in a mapping make: as many as the longest has elements."""
    if is_list(node):
        return len(items(node))
    return max((_zip_length(part, value) for _, value in part.entries(node).values()), default=1)


class _Recipe:
    """One job of a recipe."""

    def __init__(self, part: Part, layers: Sequence[Layer]) -> None:
        self.part = part
        self.layers = layers

    def mapping(self, *path: str) -> dict[str, Entry]:
        """The entries at a path, with later layers overriding earlier ones; null removes an entry."""
        found: dict[str, Entry] = {}
        for layer in self.layers:
            node = self.part.get(layer.node, *path)
            for name, (key, value) in self.part.entries(node).items() if is_mapping(node) else ():
                if layer.element is not None:
                    value = _picked(value, layer.element)
                if is_null(value) and layer is not self.layers[0]:
                    found.pop(name, None)
                else:
                    found[name] = (key, value)
        return found

    def value(self, *path: str) -> Word | None:
        entry = self.mapping(*path[:-1]).get(path[-1])
        return self.part.word(entry[1]) if entry is not None and is_scalar(entry[1]) else None

    def key(self, *path: str) -> Node:
        """The key at a path where it is first written."""
        for layer in self.layers:
            parent = self.part.get(layer.node, *path[:-1])
            entry = self.part.entries(parent).get(path[-1]) if parent is not None else None
            if entry is not None:
                return entry[0]
        return None

    # --- launches

    def launches(self) -> Iterator[Launch]:
        for role, path, environment in self.roles():
            entries = self.mapping(*path)
            key = self.key(*path)
            if key is not None and entries:
                yield self.launch(role, key, entries, environment)

    def roles(self) -> Iterator[tuple[str, Path, Sequence[Path]]]:
        """The roles, with the places of their flags and of their variables."""
        for name, role in ROLES.items():
            yield role, ("backend", "sglang_config", name), [("backend", f"{name}_environment"), ("environment",)]
            yield (
                role,
                ("roles", name, "args"),
                [("roles", name, "environment"), ("roles", name, "env"), ("environment",)],
            )

    def launch(self, role: str, key: Node, entries: Mapping[str, Entry], environment: Sequence[Path]) -> Launch:
        part = self.part
        place = part.place_of(key)
        given = {name.replace("_", "-") for name in entries}
        words = [w for w in self.added(role, place) if w[0].known_start.removeprefix("--") not in given]
        argv = [one for pair in words for one in pair]
        for name, entry in entries.items():
            argv += map(parameters, entry_words(part, name.replace("_", "-"), entry))
        ends = [part.place_of(v) for _, v in entries.values()] + [part.place_of(k) for k, _ in entries.values()]
        env = {name: word for path in reversed(environment) for name, word in self.environment(path).items()}
        extent = hull([place, *(e for e in ends if e.start >= place.start)])
        program: Program = "launch_server" if self.plain_server() else "dynamo"
        return Launch(
            program, place, extent, (Variant(tuple(argv), env),), "yaml-mapping", tuple(self.clues()),
            role, part.place(0, len(part.text)),
        )  # fmt: skip

    def plain_server(self) -> bool:
        """Whether the tool starts SGLang's own server rather than Dynamo's worker."""
        frontend = self.value("frontend", "type")
        router = self.value("frontend", "use_sglang_router") or self.value("backend", "use_sglang_router")
        return bool(frontend and frontend.text in PLAIN_SERVER) or bool(router and router.text == "true")

    def added(self, role: str, place: Place) -> list[list[Word]]:
        """The flags that the tool adds."""
        at = place._replace(end=place.start)

        def unseen(flag: str) -> list[Word]:
            return [fixed(flag, place), unknown(at, ADDED)]

        model = self.value("model", "path")
        path = [fixed("--model-path", place), _model(model) if model is not None else unknown(at, ADDED)]
        found = [path, unseen("--host"), unseen("--port")]
        if role in ("prefill", "decode"):
            found.append([fixed("--disaggregation-mode", place), fixed(role, place)])
        if self.publishes(role):
            found.append(unseen("--kv-events-config"))
        nodes = self.nodes_of_a_worker(role)
        if nodes != 1:
            found += [unseen("--dist-init-addr"), unseen("--node-rank")]
            found.append(unseen("--nnodes") if nodes is None else [fixed("--nnodes", place), fixed(str(nodes), place)])
        return found

    def publishes(self, role: str) -> bool:
        """Whether the tool makes a role publish its KV events: `kv_events_config` of all roles (true means prefill and decode) or of each,
        `kv_events` of a role."""
        every = self.value("backend", "kv_events_config")
        own = [self.mapping("backend", "kv_events_config").get(role)]
        own += [self.mapping("roles", name).get("kv_events") for name, same in ROLES.items() if same == role]
        if every is not None and every.text in TRUE and role != "aggregated":
            return True
        return any(e is not None and not (is_scalar(e[1]) and self.part.word(e[1]).text not in TRUE) for e in own)

    def nodes_of_a_worker(self, role: str) -> int | None:
        short = "agg" if role == "aggregated" else role
        nodes, workers = self.number("resources", f"{short}_nodes"), self.number("resources", f"{short}_workers")
        if nodes is None:
            nodes, workers = self.number("roles", short, "nodes"), self.number("roles", short, "workers")
        if not nodes or not workers:
            return None
        return max(nodes // workers, 1) if nodes % workers == 0 or nodes < workers else None

    def number(self, *path: str) -> int | None:
        word = self.value(*path)
        return int(word.text) if word is not None and word.text is not None and word.text.isdigit() else None

    def environment(self, path: Path) -> dict[str, Word]:
        found: dict[str, Word] = {}
        for layer in self.layers:
            node = self.part.get(layer.node, *path)
            if is_mapping(node) and layer.element is None:
                found.update(variables(self.part, node, Frame()))
            elif is_mapping(node):
                for name, (_, value) in self.part.entries(node).items():
                    found[name] = self.part.word(_picked(value, layer.element or 0))
        return {name: parameters(word) for name, word in found.items()}

    def clues(self) -> list[Clue]:
        found: list[Clue] = []
        for layer in reversed(self.layers):
            identity = self.part.get(layer.node, "identity", "frameworks", "sglang")
            if is_scalar(identity) and RELEASE.match(identity.value):
                pin = f"sglang=={identity.value.removeprefix('v')}"
                found.append(Clue("pin", pin, self.part.place_of(identity)))
            for path in (("model",), ("runtime",), ("resources",), ()):
                node = self.part.get(layer.node, *path)
                if is_mapping(node):
                    told = clues_of(self.part, node, Frame(), image_of(self.part, node, Frame()))
                    said = {f.kind for f in found if f.kind != "image" or is_server_image(f.text)}
                    found += (c for c in told if c.kind not in said)
        return found


def _picked(node: Node, element: int) -> Node:
    """What a job takes of a list: its own element, or the only one for every job."""
    listed = items(node)
    return listed[0 if len(listed) == 1 else min(element, len(listed) - 1)] if listed else node


def _model(word: Word) -> Word:
    """The model's path; the prefix `hf:` marks an id on the Hub."""
    if word.known_start.startswith("hf:"):
        word = word.split(3)[1]
    return parameters(word)
