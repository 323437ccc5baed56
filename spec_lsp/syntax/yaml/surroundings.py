"""What the mappings around a command say about the process that runs it: variables, image, hardware, role, mounted files.

One rule for all schemas: a key with a meaning (`env`, `image`, `resources`, `nodeSelector`, `gpu_type`) applies to everything below its
mapping, and inner ones override outer ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.dockerfile import clues_of_image
from spec_lsp.syntax.launch import NOTHING, Clue, ClueKind
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.word import Fragment, Place, Word, unknown
from spec_lsp.syntax.yaml.nodes import Node, Part, is_list, is_mapping, is_null, is_scalar, items
from spec_lsp.syntax.yaml.pipelines import Combination, filled, github_matrix, gitlab_matrix, names_in, ways_of
from spec_lsp.syntax.yaml.words import Lookup, compose, with_variables

ENV_KEYS = (
    "variables", "envs", "environment_variables", "environmentVariables", "environment", "env_vars", "envVars", "env",
)  # fmt: skip
SETS_VARIABLES = frozenset((*ENV_KEYS, "envFrom", "runtime_env"))
IMAGE_KEYS = frozenset(
    ("image", "image_uri", "image_id", "container_image", "docker_image", "containerImage", "base_image", "container")
)
NAMED_IMAGE = expression(r"(?:_i|I)mage\Z")
"""Keys that name one image of several (`sglang_image`, `workerImage`): a clue to the release, but not to what runs below."""
GPU_KEYS = frozenset(
    (
        "gpu_type",
        "accelerators",
        "accelerator",
        "accelerator_type",
        "gpu",
        "gpu_name",
        "gpus",
        "instance_type",
        "instanceType",
        "machine_type",
        "gres",
    )
)
SELECTORS = expression(
    r"gpu[-._]?(?:product|type|model)|accelerator|gpu-name|/gpu\.class|gpu\.nvidia\.com/(?:class|model)\Z"
    r"|(?:^|[./])(?:instance-(?:type|family)|machine-(?:type|family))\Z",
    re.I,
)
"""Node labels that name the device: those of NVIDIA, AMD, Google, CoreWeave and Karpenter, and of machine types."""
RESOURCES = expression(r"(?:amd\.com|gpu\.intel\.com|huawei\.com|nvidia\.com)/", re.I)
ROLES = expression(r"prefill|decode|aggregated|leader|worker|encode|router|frontend|gateway|head", re.I)
NOT_THE_SERVER = expression(
    r"router|sidecar|gateway|proxy|sgl[-_]?kernel|jax|diffusion|bench|vllm|tensorrt|trtllm|text-generation-inference|busybox|curl"
)
SERVER_IMAGE = expression(r"(?:^|[/._+-])(?:sglang|sgl-dev)(?=$|[/:@._+-])|\bsglang", re.I)
ENGINE_KEYS = ("engine", "backend", "type", "runtime", "framework", "backendName", "llm_engine", "server_cls")
SAYS_SGLANG = expression(r"(?<![a-z])sglang", re.I)
SAID_ROLE = expression(r"prefill|decode|leader|worker", re.I)
ASSIGNMENT = expression(r"([A-Za-z_][\w.-]*)(=?)")
MAX_RUNNERS = 16
NOT_SET_HERE = "its value is not in the file"


@dataclass(frozen=True, slots=True)
class Frame:
    """What applies at a place of a document."""

    env: Mapping[str, Word] = field(default_factory=lambda: NOTHING)
    clues: tuple[Clue, ...] = ()
    image: str = ""
    role: str = ""
    owner: Place | None = None
    """The mapping that runs what is below, such as a service or a container; `name` is its name."""
    name: str = ""
    begun: tuple[Word, ...] = ()
    """The words of a command that is continued by arguments further inside."""
    says_sglang: bool = False
    """Whether something says that SGLang's server runs what is below: the image, `type: SGLang`, `server_cls: …SGLangServer`."""
    volumes: Node = None
    matrix: Sequence[Combination] = ()
    """The jobs of a pipeline's matrix."""
    runners: str = "runs-on"
    """The key with the labels of the machine that runs a pipeline's job."""
    inputs: Mapping[str, Word] = field(default_factory=lambda: NOTHING)
    """The defaults of a workflow's inputs."""
    compose: bool = False
    data: Mapping[str, Mapping[str, Word]] = field(default_factory=dict)
    """The contents of the file's ConfigMaps, by their names."""
    lookup: Lookup = lambda name: None
    """The variable with which Compose replaces a name."""

    def inside(self, part: Part, node: Node, key: str) -> Frame:
        """What applies inside a mapping that is the value of `key`."""
        env = {**self.env, **dict(own_env(part, node, self))}
        image = image_of(part, node, self, env)
        clues = tuple(clues_of(part, node, self, image))
        kinds = {c.kind for c in clues}
        kept = tuple(c for c in self.clues if c.kind not in kinds)
        name = part.text_at(node, "name") or ""
        said = part.text_at(node, "role") or part.text_at(node, "type") or ""
        named = (name, said if SAID_ROLE.match(said) else "", key)
        role = next((m.group().lower() for text in named if (m := ROLES.search(text))), self.role)
        volumes = part.get(node, "volumes")
        matrix = self.jobs(part, node)
        return replace(
            self,
            env=env or NOTHING,
            clues=(*clues, *kept),
            image=image.text if image else self.image,
            role=role,
            owner=part.place_of(node) if part.signs is None else None,
            name=name or key,
            says_sglang=says_sglang(part, node, image, self.says_sglang),
            matrix=matrix,
            volumes=volumes if is_list(volumes) and not self.compose else self.volumes,
        )

    def jobs(self, part: Part, node: Node) -> Sequence[Combination]:
        """The jobs of a mapping's own matrix, else of the one around it."""
        entries = part.entries(node)
        if "strategy" in entries:
            return github_matrix(part, part.get(node, "strategy", "matrix"))
        return gitlab_matrix(part, part.get(node, "parallel", "matrix")) if "parallel" in entries else self.matrix

    def value(self, part: Part, node: Node) -> Word:
        """The text of a scalar, with Compose's variables and a workflow's inputs replaced."""
        word = part.word(node)
        if self.compose:
            return compose(word, self.lookup)
        return filled(word, part.expressions, self.named) if part.expressions else word

    def named(self, name: str) -> Word | None:
        """What `env.X` and `inputs.x` mean in a workflow."""
        return self.env.get(name[4:]) if name.startswith("env.") else self.inputs.get(name)


# --- variables ---------------------------------------------------------------------------------------------------------


def own_env(part: Part, node: Node, frame: Frame) -> Iterator[tuple[str, Word]]:
    """The variables that a mapping sets for what is below it."""
    if not part.entries(node).keys() & SETS_VARIABLES:
        return
    for source in items(part.get(node, "envFrom")):
        prefix = part.text_at(source, "prefix") or ""
        for name, word in frame.data.get(part.text_at(source, "configMapRef", "name") or "", {}).items():
            yield prefix + name, word
    for key in ENV_KEYS:
        found = part.get(node, key)
        if found is not None:
            yield from variables(part, found, frame)
    nested = part.get(node, "runtime_env", "env_vars")
    if nested is not None:
        yield from variables(part, nested, frame)


def variables(part: Part, node: Node, frame: Frame) -> Iterator[tuple[str, Word]]:
    """Variables in any notation of YAML files: a mapping, `- name: … value: …`, `- NAME=value`."""
    if is_mapping(node):
        for name, (_, value) in part.entries(node).items():
            if is_mapping(value):
                value = part.get(value, "value") or part.get(value, "default") or value
            yield name, _value(part, value, frame)
    for item in items(node):
        if is_mapping(item):
            named = part.text_at(item, "name")
            if named:
                value = part.get(item, "value")
                yield named, _value(part, value, frame) if value is not None else _referred(part, item, frame)
        elif is_scalar(item):
            word = frame.value(part, item)
            m = ASSIGNMENT.match(word.known_start)
            if m:
                yield m[1], word.split(m.end())[1] if m[2] else unknown(word.place, FROM_ENVIRONMENT)


def _referred(part: Part, item: Node, frame: Frame) -> Word:
    """`valueFrom: {configMapKeyRef: {name: …, key: …}}`."""
    reference = part.get(item, "valueFrom", "configMapKeyRef")
    owner, key = part.text_at(reference, "name"), part.text_at(reference, "key")
    found = frame.data.get(owner or "", {}).get(key or "")
    return found if found is not None else unknown(part.place_of(item), NOT_SET_HERE)


def _value(part: Part, node: Node, frame: Frame) -> Word:
    if is_null(node) and not node.value:
        return unknown(part.place_of(node), FROM_ENVIRONMENT)
    return frame.value(part, node) if is_scalar(node) else unknown(part.place_of(node), NOT_SET_HERE)


# --- clues -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Image:
    text: str
    place: Place
    word: Word | None = None
    """The image, which may differ between the jobs of a matrix."""

    def texts(self, part: Part, matrix: Sequence[Combination]) -> list[str]:
        """The image in each of the jobs, if known for all of them."""
        names = list(names_in(self.word, part.expressions)) if self.word is not None else []
        if self.word is None or not names:
            return [self.text]
        found = [filled(self.word, part.expressions, job.get).text for job in ways_of(matrix, names, MAX_RUNNERS)]
        return [text for text in found if text is not None] if None not in found else [self.text]


def image_of(part: Part, node: Node, frame: Frame, env: Mapping[str, Word] = NOTHING) -> Image | None:
    """The image that a mapping names, with `{repository, tag}` joined; its text is empty if unknown.

    `env` are variables that may occur in it (GitLab's `image: lmsysorg/sglang:$TAG`).
    """
    for key, (_, value) in part.entries(node).items():
        if key not in IMAGE_KEYS:
            continue
        if is_scalar(value) and not is_null(value):
            word = with_variables(frame.value(part, value), {} if frame.compose else env)
            version = part.text_at(node, "version")
            if word.text and version and ":" not in word.text.rpartition("/")[2]:
                return Image(f"{word.text}:{version}", part.place_of(part.get(node, "version")))
            return Image((word.text if word.text is not None else word.known_start) or "", word.place, word)
        parts = (part.get(value, name) for name in ("repository", "name", "image"))
        words = [frame.value(part, one) for one in parts if is_scalar(one)]
        name = next((word.text for word in words if word.text), None)
        if name is None and words and is_server_image(words[0].known_start):
            return Image(words[0].known_start, words[0].place, words[0])
        if is_mapping(value) and name:
            registry, tag = part.text_at(value, "registry"), part.get(value, "tag")
            name = f"{registry}/{name}" if registry else name
            if tag is None or not is_scalar(tag):
                return Image(name, part.place_of(value))
            return Image(f"{name}:{part.word(tag).text or ''}", part.place_of(tag))
    return None


def says_sglang(part: Part, node: Node, image: Image | None, otherwise: bool) -> bool:
    """Whether a mapping says that SGLang's server runs what is below it."""
    if image is not None and image.text:
        return is_server_image(image.text)
    engines = [text for key in ENGINE_KEYS if (text := part.text_at(node, key))]
    return any(SAYS_SGLANG.search(e) and not NOT_THE_SERVER.search(e) for e in engines) if engines else otherwise


def is_server_image(image: str) -> bool:
    """Whether an image is one of SGLang's server, which needs only arguments."""
    return bool(SERVER_IMAGE.search(image)) and not NOT_THE_SERVER.search(image)


def clues_of(part: Part, node: Node, frame: Frame, image: Image | None) -> Iterator[Clue]:
    """The clues to release and hardware in a mapping itself, whose image is `image`."""
    if image is not None and image.text:
        matrix = frame.jobs(part, node) if image.word is not None and part.expressions else ()
        yield from (Clue("image", text, image.place) for text in image.texts(part, matrix))
    for key, (_, value) in part.entries(node).items():
        if key in GPU_KEYS:
            yield from _gpus(part, value)
        elif key == frame.runners:
            yield from _runner(part, value, frame, frame.jobs(part, node))
        elif key == "resources" and is_mapping(value):
            yield from _resources(part, value)
        elif key == "nodeSelector":
            yield from _selected(part, value)
        elif key == "affinity":
            yield from _affinity(part, value)
        elif key == "deploy":
            yield from _devices(part, part.get(value, "resources", "reservations", "devices"))
        elif key == "devices" and frame.compose:
            for item in items(value):
                if is_scalar(item) and item.value.startswith("/dev/"):
                    yield Clue("platform", item.value.partition(":")[0], part.place_of(item))
        elif key == "build" and frame.compose and is_scalar(inline := part.get(value, "dockerfile_inline")):
            yield from clues_of_image(frame.value(part, inline), part.text_at(value, "target") or "")
        elif key == "runtime" and is_scalar(value) and value.value == "nvidia":
            yield Clue("platform", "nvidia", part.place_of(value))
        elif NAMED_IMAGE.search(key) and key not in IMAGE_KEYS and is_scalar(value):
            word = frame.value(part, value)
            if word.text and is_server_image(word.text):
                yield Clue("image", word.text, word.place)


def _gpus(part: Part, node: Node) -> Iterator[Clue]:
    """`H100:8`, `{H100: 8}`, `{name: H100, count: 8}`, `[H100, A100]` (either, so no clue)."""
    if is_scalar(node):
        word = part.word(node)
        if word.text and node.tag != "tag:yaml.org,2002:bool":
            yield _gpu(word.text, word.place)
    elif is_mapping(node):
        named = part.get(node, "name")
        if named is not None and is_scalar(named):
            yield from _gpus(part, named)
        elif len(part.entries(node)) == 1:
            for name, (key, _) in part.entries(node).items():
                yield _gpu(name, part.place_of(key))


def _gpu(text: str, place: Place) -> Clue:
    kind: ClueKind = "gpu" if re.search(r"[A-Za-z]", text) else "gpu-count"
    return Clue(kind, text, place)


def _resources(part: Part, node: Node) -> Iterator[Clue]:
    """Kubernetes' `limits` and `requests`; SkyPilot's, dstack's and truss' accelerators."""
    for name in ("limits", "requests"):
        asked = part.get(node, name)
        if not is_mapping(asked) or (name == "requests" and is_mapping(part.get(node, "limits"))):
            continue
        for resource, (key, value) in part.entries(asked).items():
            if RESOURCES.match(resource):
                maker = "nvidia" if resource.lower().startswith("nvidia") else resource
                yield Clue("platform", maker, part.place_of(key))
                text = part.word(value).text if is_scalar(value) else None
                if text and text.isdigit() and resource.lower().endswith("/gpu"):
                    yield Clue("gpu-count", text, part.place_of(value))
        count = part.get(asked, "gpu")
        if is_scalar(count):
            yield from _gpus(part, count)
    for key, (_, value) in part.entries(node).items():
        if key in GPU_KEYS:
            yield from _gpus(part, value)


def _selected(part: Part, node: Node) -> Iterator[Clue]:
    for name, (_, value) in part.entries(node).items():
        if SELECTORS.search(name) and is_scalar(value) and part.word(value).text:
            yield Clue("gpu", _selected_by(name, part.word(value).text or ""), part.place_of(value))


def _selected_by(label: str, value: str) -> str:
    """What a label shows: `family=p5` of a family of machine types; the value alone may mean anything."""
    return f"family={value}" if label.endswith("family") else value


def _affinity(part: Part, node: Node) -> Iterator[Clue]:
    terms = part.get(node, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in items(terms):
        for wanted in items(part.get(term, "matchExpressions")):
            name, how = part.text_at(wanted, "key") or "", part.text_at(wanted, "operator")
            values = [v for v in items(part.get(wanted, "values")) if is_scalar(v)]
            if SELECTORS.search(name) and how == "In" and values:
                place = part.place_of(part.get(wanted, "values"))
                yield Clue("gpu", "|".join(_selected_by(name, part.word(v).text or "?") for v in values), place)


def _runner(part: Part, node: Node, frame: Frame, matrix: Sequence[Combination]) -> Iterator[Clue]:
    """The labels of `runs-on: [self-hosted, h200]`; those of different jobs of a matrix are separated by `|`."""
    labels = part.get(node, "labels") if is_mapping(node) else node
    words = [frame.value(part, label) for label in (items(labels) or [labels]) if is_scalar(label)]
    asked = list(dict.fromkeys(name for word in words for name in names_in(word, part.expressions)))
    jobs = ways_of(matrix, asked, MAX_RUNNERS)
    told = (",".join(filled(w, part.expressions, job.get).text or "?" for w in words) for job in jobs)
    text = "|".join(dict.fromkeys(told))
    if words and text:
        yield Clue("runner", text, part.place_of(labels))


def _devices(part: Part, node: Node) -> Iterator[Clue]:
    """Compose's `deploy.resources.reservations.devices`."""
    for item in items(node):
        driver = part.get(item, "driver")
        if driver is not None and is_scalar(driver) and driver.value == "nvidia":
            yield Clue("platform", "nvidia", part.place_of(driver))
        listed, count = part.get(item, "device_ids"), part.get(item, "count")
        if items(listed):
            ids = ",".join(part.word(i).text or "?" for i in items(listed))
            yield Clue("gpu-count", f"device={ids}", part.place_of(listed))
        elif count is not None and is_scalar(count) and (part.word(count).text or "").isdigit():
            yield Clue("gpu-count", part.word(count).text or "", part.place_of(count))


def fixed(text: str, place: Place) -> Word:
    """A word that is not in any file, because a tool adds it."""
    at = Place(place.document, place.start, place.start)
    return Word((Fragment(text, at, False, fixed=True),), at)
