"""Finds commands in a YAML document by their structure, whatever its schema: argument lists, scripts, lists and maps of flags.

`command`, `args` and `entrypoint` of any mapping are one command (Kubernetes and what is built on it, Compose); texts under keys such as
`run`, `script`, `commands` and `start_command` are shell scripts (workflows, SkyPilot, dstack, truss, Ray). Keys that describe the process
(see `surroundings`) apply to everything below their mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.env_file import file_variables
from spec_lsp.syntax.launch import Choice, Clue, Document, EmbeddedFile, Launch, Problem, Program, Variant
from spec_lsp.syntax.shell.clues import script_clues
from spec_lsp.syntax.shell.commands import joined
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_arguments, read_script
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word, hull, unknown
from spec_lsp.syntax.yaml import words as text
from spec_lsp.syntax.yaml.entries import entry_words
from spec_lsp.syntax.yaml.nodes import Node, Part, is_list, is_mapping, is_null, is_scalar, items, root_of
from spec_lsp.syntax.yaml.pipelines import (
    SCRIPTS,
    Combination,
    filled,
    gitlab_script,
    inputs,
    is_gitlab,
    names_in,
    take_over,
    ways_of,
)
from spec_lsp.syntax.yaml.surroundings import NOT_THE_SERVER, Frame, fixed, is_server_image
from spec_lsp.syntax.yaml.templates import FROM_BLOCK
from spec_lsp.syntax.yaml.worlds import Way, together

PARTS_OF_A_COMMAND = ("entrypoint", "command", "args")
SCRIPT_KEY = expression(
    r"(?:^|[_.-])(?:run|scripts?|commands?|cmds?|exec|start|startup|launch|entrypoint|shell|bash|setup|args|serve)(?:$|[_.-])"
    r"|(?:Command|Commands|Script|Cmd|Args)$|\.(?:sh|bash|slurm|sbatch)$",
    re.I,
)
FLAGS_KEY = expression(r"args|arguments|flags|options|params|sglang|server|engine|extra", re.I)
CONFIG_KEYS = frozenset(("config", "configs", "configuration"))
KEYWORDS_KEYS = frozenset(("engine_kwargs", "engineKwargs", "engine_args"))
"""Maps whose entries become keyword arguments of an engine: their keys are names of fields."""
OURS = ("chunked-prefill-size", "mem-fraction-static")
"""Keys that no other server has."""
OTHER_SHELLS = expression(r"(?:python\d?|pwsh|powershell|cmd|perl|node)(?:\s+\{0\}.*)?\Z")
LETTER = r"[a-z\uf8f1]"
"""A letter of a flag's name, or the mark at the cursor (see `cursor`)."""
PIECE = r"[a-z0-9\uf8f1]"
KEBAB = expression(rf"{LETTER}{PIECE}*(?:-{PIECE}+)*\Z")
KEBAB_OR_SNAKE = expression(rf"{LETTER}{PIECE}*(?:[-_]{PIECE}+)*\Z")
DASHED = expression(rf"--{KEBAB_OR_SNAKE.pattern}")
SCRIPT_NAME = expression(r"\.(?:sh|bash|slurm|sbatch)\Z")
MANIFEST = expression(r"(?:[ \t]*(?:#[^\n]*|---)?\n)*(?:- )?[A-Za-z][\w.-]*:(?:[ \t]|\n)")
FENCED = expression(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*\n", re.M)
CONFIG_PATH = expression(r"--config[ \t]+[\"']?([^\s\"'\\]+)")
STARTS_TEXT = expression(r"\s*(?:exec\s+)?(?:\S*python[\d.]*\s+-m\s+(?:sglang|dynamo\.sglang)\b|sglang\s+serve\b)")
STARTS_ALONE = expression(r"\s*(?:\S*python[\d.]*\s+-m\s+sglang\.launch_server|sglang\s+serve)\s*\Z")
WHOLE_KEYS = frozenset(("run", "script", "command", "commands", "cmd", "exec", "entrypoint", "args"))
"""Keys of commands that are run as they stand."""
VERSION_KEY = expression(r"sglang[-_]version\Z", re.I)
MODEL_FLAG = expression(r"--(?:model(?:-p[ath]*)?|config)(?:=|\Z)")
MAX_DEPTH = 60
MAX_BETWEEN = 6
"""The most levels between a command and further arguments for it."""
MAX_VISITS = 12
"""How many aliases of one node are followed: aliases of aliases may be endless."""
MAX_WAYS = 16
MAX_EXTENDED = 4
"""How many levels of Compose files that extend each other are followed."""
LooksLike = Callable[[frozenset[str]], bool]


@dataclass(frozen=True, slots=True)
class ConfigMapEntry:
    """A file in a ConfigMap (or in Compose's `configs`) of the same YAML file, from the document [start, end)."""

    owner: str
    key: str
    content: Word
    start: int = 0
    end: int = 0

    @property
    def name(self) -> str:
        return f"{self.owner}/{self.key}"


@dataclass(slots=True, eq=False)
class Reader:
    """Reads one document. `config_maps` are those of all documents of its file."""

    part: Part
    read: Callable[[str], str | None]
    looks_like: LooksLike | None = None
    given: Mapping[str, bool] = field(default_factory=dict)
    """Names that Compose takes from its environment, and whether they are set in this reading."""
    config_maps: Sequence[ConfigMapEntry] = ()
    data: Mapping[str, Mapping[str, Word]] = field(default_factory=dict)
    """The contents of the file's ConfigMaps, by their names."""
    launches: list[Launch] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    depends_on: set[str] = field(default_factory=set)
    nested: Callable[[Word], Document] | None = None
    """Reads a YAML text inside a scalar."""
    page: Callable[[Word], Document] | None = None
    """Reads a text with code blocks inside a scalar."""
    used: set[str] = field(default_factory=set)
    """Files of ConfigMaps that a command names."""
    jobs: set[int] = field(default_factory=set)
    """The jobs of a GitLab pipeline."""
    pinned: list[Clue] = field(default_factory=list)
    """The releases installed by the scripts read so far."""
    _open: list[int] = field(default_factory=list)
    _visits: dict[int, int] = field(default_factory=dict)
    _goes_on: dict[tuple[int, int], bool] = field(default_factory=dict)

    # --- the document

    def document(self) -> None:
        part = self.part
        if part.root is None:
            return
        is_compose = part.is_compose
        lookup = self.settings() if is_compose else lambda name: None
        frame = Frame(
            compose=is_compose, lookup=lookup, data=self.data, inputs=inputs(part) if part.expressions else {}
        )
        if is_gitlab(part):
            take_over(part)
            frame = replace(frame, runners="tags")
            self.jobs = {id(value) for _, value in part.entries(part.root).values()}
        if is_compose:
            self.extend(part)
        for name, (_, value) in part.entries(part.root).items():
            if (is_compose and name.startswith("x-")) or (self.jobs and name.startswith(".")):
                self._open.append(id(value))  # read where it is used
        self.node("", part.root, frame)

    def settings(self) -> text.Lookup:
        """The variables of the `.env` file beside a Compose file, and those assumed set or not in this reading."""
        found: dict[str, Word] | None = None

        def lookup(name: str) -> text.Setting:
            nonlocal found
            if found is None:
                found = dict(self.env_file(".env"))
            return found.get(name, self.given.get(name))

        return lookup

    def env_file(self, path: str) -> Iterator[tuple[str, Word]]:
        """The variables of a file of `NAME=value` lines."""
        content = self.read(path)
        if content is None:
            return
        self.depends_on.add(path)
        yield from file_variables(path, content)

    def extend(self, part: Part, depth: int = 0) -> None:
        """Add what a Compose service takes over (`extends`), even from another file, to its own keys."""
        services = part.get(part.root, "services")
        for _, service in part.entries(services).values():
            extends = part.get(service, "extends")
            if extends is None:
                continue
            base = extends.value if is_scalar(extends) else part.text_at(extends, "service")
            file = part.text_at(extends, "file")
            of = self.services_of(file, part, extends, depth) if file else services
            taken = part.get(of, base) if base else None
            if taken is not None and taken is not service:
                part.signs = None
                part.put(service, {**part.entries(taken), **part.entries(service)})

    def services_of(self, path: str, part: Part, reference: Node, depth: int) -> Node:
        """The services of another Compose file of the workspace; their nodes become nodes of this part."""
        content = self.read(path) if depth < MAX_EXTENDED else None
        if content is None:
            return None
        if content == part.text:
            return part.get(part.root, "services")  # a file that names itself
        self.depends_on.add(path)
        other = Part(path, content, 0, root=root_of(content))
        self.extend(other, depth + 1)
        found = other.get(other.root, "services")
        for _, service in other.entries(found).values():
            for node in (service, *(n for entry in other.entries(service).values() for n in entry)):
                part.adopt(node, other, part.place_of(reference))
        return found

    # --- nodes

    def node(self, key: str, node: Node, frame: Frame, at: Node = None) -> None:
        """Read the value of `key`; the key's own node is `at`."""
        checkpoint()
        visits = self._visits[id(node)] = self._visits.get(id(node), 0) + 1
        if id(node) in self._open or len(self._open) > MAX_DEPTH or visits > MAX_VISITS:
            return
        flags_here = at is not None and self.may_be_flags(key, node, frame) and self.flags(key, at, node, frame)
        if flags_here or not (frame.begun or self.part.speaks(node)):
            return
        self._open.append(id(node))
        if is_mapping(node):
            self.mapping(key, node, frame)
        elif is_list(node):
            self.list_of(key, node, frame)
        elif SCRIPT_KEY.search(key) or node.value.startswith("#!"):
            told = len(self.launches)
            self.script(_with_what_is_added(key, text.formatted(self.part.word(node))), frame)
            if len(self.launches) == told:
                self.fences(node)
        elif FENCED.search(node.value):
            self.fences(node)
        elif MANIFEST.match(node.value) and self.nested is not None:
            self.inner(self.nested(self.part.word(node)))
        self._open.pop()

    def fences(self, node: Node) -> None:
        """Read the code blocks of a text for people."""
        if self.page is not None and FENCED.search(node.value):
            self.inner(self.page(self.part.word(node)))

    def inner(self, document: Document) -> None:
        """Add the launches of a text inside a scalar."""
        self.launches += document.launches
        self.problems += document.problems
        self.depends_on |= document.depends_on

    def mapping(self, key: str, node: Node, frame: Frame) -> None:
        inner = frame.inside(self.part, node, key)
        if inner.compose:
            inner = self.with_env_files(node, inner)
        inner = self.begun(node, inner)
        done = ("command",) if inner.begun and inner.begun is not frame.begun else self.command(node, inner)
        if id(node) in self.jobs and "script" in self.part.entries(node):
            lines = [self.part.word(n) for n in gitlab_script(self.part, node)]
            if lines:
                self.script(text.joined_lines(lines), inner)
            done = (*done, *SCRIPTS)
        if OTHER_SHELLS.match(self.part.text_at(node, "shell") or ""):
            done = (*done, "run")  # a workflow step in another language
        if len(self._open) == 1 and self.part.text_at(node, "kind") == "ConfigMap":
            done = (*done, "data")  # its files are read with what mounts them, or else on their own
        inner, done = self.set_up(node, inner, done)
        for name, (at, value) in self.part.entries(node).items():
            if name not in done:
                self.node(name, value, inner, at)

    def set_up(self, node: Node, frame: Frame, done: tuple[str, ...]) -> tuple[Frame, tuple[str, ...]]:
        """SkyPilot's `setup` runs before `run` on the same machine: what it installs is what `run` starts."""
        entries = self.part.entries(node)
        if not {"setup", "run"} <= entries.keys() or "setup" in done or not is_scalar(entries["setup"][1]):
            return frame, done
        at, value = entries["setup"]
        self.pinned, before = [], self.pinned
        self.node("setup", value, frame, at)
        pinned, self.pinned = self.pinned, before
        return replace(frame, clues=(*pinned, *frame.clues)), (*done, "setup")

    def with_env_files(self, node: Node, frame: Frame) -> Frame:
        listed = self.part.get(node, "env_file")
        nodes = items(listed) or ([listed] if is_scalar(listed) else [])
        paths = [self.part.text_at(n, "path") if is_mapping(n) else self.part.word(n).text for n in nodes]
        found = {name: word for path in paths if path for name, word in self.env_file(path)}
        return replace(frame, env={**found, **frame.env}) if found else frame

    def list_of(self, key: str, node: Node, frame: Frame) -> None:
        nodes = items(node)
        lines = [n for item in nodes for n in (items(item) if is_list(item) else [item])]
        if SCRIPT_KEY.search(key) and any(map(is_scalar, nodes)) and all(map(is_scalar, lines)):
            nodes = lines
            found = [self.part.word(n) for n in nodes]
            if any(w.text == "-m" for w in found) or not any(" " in n.value for n in nodes):
                self.argv(found, frame, node)
            else:
                self.script(text.joined_lines(found), frame)
            return
        self.pinned, before = [], self.pinned
        for item in nodes:
            if not is_scalar(item):
                later, self.pinned = self.pinned, []
                self.node(key, item, replace(frame, clues=(*later, *frame.clues)) if key == "steps" else frame)
                self.pinned += _asked_for(self.part, item) if key == "steps" else ()
                self.pinned = self.pinned or later
        self.pinned = before

    # --- commands

    def begun(self, node: Node, frame: Frame) -> Frame:
        """The frame of a node whose command gets its last arguments from nodes inside it, such as llmaz' `recommendedConfigs`: each ends
        the command in a way of its own."""
        entries = self.part.entries(node)
        if "image" in entries or "command" in entries:
            frame = replace(frame, begun=())
        command = entries["command"][1] if "command" in entries else None
        if (
            not is_list(command)
            or frame.compose
            or not self.part.speaks(command)
            or entries.keys() & {"args", "entrypoint"}
        ):
            return frame
        goes_on = any(self.goes_on(value) for name, (_, value) in entries.items() if name != "command")
        return replace(frame, begun=tuple(self.listed(command))) if goes_on else frame

    def goes_on(self, node: Node, depth: int = 0) -> bool:
        """Whether a node contains a mapping with arguments, but without a command and an image of its own."""
        if depth > MAX_BETWEEN:
            return False
        key = id(node), depth  # aliases may lead to the same node repeatedly
        if key not in self._goes_on:
            self._goes_on[key] = self._looks_on(node, depth)
        return self._goes_on[key]

    def _looks_on(self, node: Node, depth: int) -> bool:
        checkpoint()
        if is_list(node):
            return any(self.goes_on(item, depth + 1) for item in items(node) if not is_scalar(item))
        entries = self.part.entries(node)
        if entries.keys() & {"command", "image"}:
            return False
        own = entries.get("args")
        if own is not None and is_list(own[1]):
            return _starts_with_flags(self.listed(own[1]))
        return any(self.goes_on(value, depth + 1) for _, value in entries.values())

    def command(self, node: Node, frame: Frame) -> tuple[str, ...]:
        """Read the command of a mapping; returns the keys that it consists of."""
        entries = self.part.entries(node)
        given = tuple(k for k in PARTS_OF_A_COMMAND if k in entries and not is_mapping(entries[k][1]))
        listed = [k for k in given if is_list(entries[k][1])]
        if not given:
            return ()
        scalars = [k for k in given if not is_null(entries[k][1]) and k not in listed]
        if not listed and scalars and not frame.compose:
            found = [self.part.word(entries[k][1]) for k in scalars]
            self.script(text.formatted(joined(found)), frame)
            return given
        argv: list[Word] = []
        in_lists = False
        for k in given:
            found = self.part_of_command(entries[k], argv, frame)
            in_lists = in_lists or (k in listed and any(w.known_start.startswith("-") for w in found))
            argv += found
        if given == ("args",) and listed and frame.begun:
            place = self.part.place_of(entries["args"][0])
            begun = [word._replace(place=place) for word in frame.begun]
            argv = [*begun, *argv, *_model_of_operator(argv, place)]
        if argv:
            self.argv(
                argv,
                frame,
                entries[given[-1]][0],
                given == (("command",) if frame.compose else ("args",)) and not frame.begun,
                in_lists or not scalars,
            )
        return given

    def part_of_command(self, entry: tuple[Node, Node], before: Sequence[Word], frame: Frame) -> list[Word]:
        key, node = entry
        if is_list(node):
            return [text.compose(w, frame.lookup) if frame.compose else w for w in self.listed(node)]
        if is_null(node):
            start = key.end_mark.index + 1
            rest = self.part.text[start:]
            return self.part.printed_items(start, start + len(rest) - len(rest.lstrip()))
        word = self.part.word(node)
        if before and (before[-1].text or "").endswith("c") and (before[-1].text or "").startswith("-"):
            return [text.compose(word, frame.lookup) if frame.compose else word]
        return text.split(text.compose(word, frame.lookup) if frame.compose else word)

    def listed(self, node: Node) -> list[Word]:
        """The words of a list; template output between its items may be any number of words."""
        found: list[Word] = []
        position = node.start_mark.index
        for item, looped in self.part.in_loops(items(node)):
            start = node.end_mark.index if item is None else item.start_mark.index
            found += self.part.printed_items(position, start)
            if item is not None:
                repeated = self.part.repeated(looped) if looped else []
                found += repeated or [self.item(one) for one in looped or [item] if not self.part.is_nothing(one)]
                position = (looped or [item])[-1].end_mark.index
        return found

    def item(self, node: Node) -> Word:
        word = self.part.word(node)
        many = is_list(node) or (not word.known_start and self.part.repeats(node))
        return word._replace(splat=True) if many else word

    def argv(
        self, argv: Sequence[Word], frame: Frame, at: Node, only_args: bool = False, from_list: bool = True
    ) -> None:
        """Read a command that is given as words. SGLang's diffusion image runs the diffusion server."""
        if "diffusion" in frame.image:
            return
        if not frame.compose:
            argv = [text.kubernetes(w, frame.env, " " in w.known_start or "\n" in w.known_start) for w in argv]
        script = self.mounted_script(argv)
        if script is not None:
            self.used.add(script.name)
            self.script(script.content, frame)
            return
        around = self.around(frame, self.files(frame, argv))
        found = read_arguments(self.part.document, argv, around)
        if not found.launches and only_args and len(argv) == 1 and STARTS_TEXT.match(argv[0].known_start):
            self.script(argv[0], frame)  # an image whose entry point is a shell
            return
        if not found.launches and _starts_with_flags(argv):
            module = self.module(frame) if only_args else None
            if module is not None:
                place = self.part.place_of(at)
                entry = [fixed(word, place)._replace(place=place) for word in ("python3", "-m", module)]
                model = [] if frame.compose else _model_of_operator(argv, place)
                found = read_arguments(self.part.document, [*entry, *argv, *model], around)
            elif only_args or frame.image == "":
                self.flag_words(at, argv, frame)
                return
        self.keep(found, frame, "yaml-words" if from_list else "shell")

    def module(self, frame: Frame) -> str | None:
        """What an image starts if it is given only arguments."""
        if not is_server_image(frame.image):
            return None
        return "dynamo.sglang" if "dynamo" in frame.image else "sglang.launch_server"

    def script(self, word: Word, frame: Frame) -> None:
        """Read a shell script, once for each combination of a workflow's matrix."""
        if "diffusion" in frame.image or not any(f.text and "sglang" in f.text for f in word.fragments):
            return
        ways: list[Way] = []
        clues = _slurm_clues(self.part.document, word)
        for choices, one, env in self.in_workflow(word, frame):
            one = text.compose(one, frame.lookup) if frame.compose else text.kubernetes(one, frame.env, True)
            around = Around(env, (*clues, *frame.clues), tuple(self.files(frame, [one])), self.read)
            found = read_script(self.part.document, one, around)
            self.problems += found.problems if not ways else ()
            self.depends_on |= found.depends_on
            ways.append((choices, found.launches))
            self.pinned += [clue for clue in found.clues if clue.kind == "pin" and clue not in self.pinned]
        self.keep(CommandResult(tuple(together(ways))), frame, None)

    def in_workflow(self, word: Word, frame: Frame) -> list[tuple[tuple[Choice, ...], Word, Mapping[str, Word]]]:
        """The script and its variables, for each job of a matrix that makes a difference to it."""
        expressions = self.part.expressions
        if not expressions and not frame.matrix:
            return [((), word, frame.env)]
        script = embedded(word).whole
        read = [word, *(value for name, value in frame.env.items() if name in script)]
        asked = [name for one in read for name in names_in(one, expressions)]
        asked += [name for job in frame.matrix for name in job if not name.startswith("matrix.") and name in script]
        found: list[tuple[tuple[Choice, ...], Word, Mapping[str, Word]]] = []
        for job in ways_of(frame.matrix, list(dict.fromkeys(asked)), MAX_WAYS):
            variables = {name: value for name, value in job.items() if not name.startswith("matrix.")}
            env = {**frame.env, **variables}
            env = {name: filled(value, expressions, _named(job, frame)) for name, value in env.items()}
            choices = tuple(Choice(value.place, f"{name} is {value.text}") for name, value in job.items())
            found.append((choices, filled(word, expressions, _named(job, replace(frame, env=env))), env))
        return found

    # --- flags without a command

    def may_be_flags(self, key: str, node: Node, frame: Frame) -> bool:
        return FLAGS_KEY.search(key) is not None or (key in CONFIG_KEYS and is_mapping(node) and frame.says_sglang)

    def flags(self, key: str, at: Node, node: Node, frame: Frame) -> bool:
        """Read a list or map of flags that a template or an operator passes to SGLang; returns whether it is one."""
        if is_list(node) and items(node) and all(is_scalar(i) for i in items(node)):
            argv = [text.kubernetes(w, frame.env, False) for w in self.listed(node)]
            return _starts_with_flags(argv) and not SCRIPT_KEY.match(at.value) and self.flag_words(at, argv, frame)
        if not is_mapping(node):
            return False
        style = KEBAB_OR_SNAKE if key in KEYWORDS_KEYS and frame.says_sglang else KEBAB
        given = self.part.entries(node)
        if sum(name.startswith("--") for name in given) * 2 > len(given):
            entries = {name: entry for name, entry in given.items() if DASHED.match(name)}
        else:
            entries = {name.replace("_", "-"): entry for name, entry in given.items() if style.match(name)}
        if len(entries) * 4 < len(given) * 3:
            return False  # of another schema: keys in snake or camel case
        if not self.are_ours(frozenset(name.removeprefix("--") for name in entries), frame):
            return False
        flags: list[Word] = []
        for name, entry in entries.items():
            words = entry_words(self.part, name, entry)
            switch = key in CONFIG_KEYS and len(words) == 2 and words[1].text == ""  # as kthena writes it
            flags += words[:1] if switch else words
        self.flag_launch(at, flags, frame, "yaml-mapping", "config")
        return True

    def are_ours(self, names: frozenset[str], frame: Frame) -> bool:
        """Whether keys are SGLang's: it suffices that nearly all are known and one belongs to no other server, if something else says so
        too."""
        looks_like = self.looks_like
        if looks_like is None or looks_like(names):
            return looks_like is not None
        if not frame.says_sglang:
            return False
        own = any(name in OURS or looks_like(frozenset((name, OURS[0]))) for name in names)
        return own and sum(looks_like(frozenset((name, *OURS))) for name in names) >= 0.75 * len(names)

    def flag_words(self, at: Node, argv: Sequence[Word], frame: Frame) -> bool:
        """Arguments without any sign of their program: they are SGLang's if the flags are."""
        names = {w.known_start.partition("=")[0].lstrip("-") for w in argv if w.known_start.startswith("--")}
        if self.looks_like is None or not self.looks_like(frozenset(names)) or NOT_THE_SERVER.search(frame.image):
            return False
        self.flag_launch(at, argv, frame, "yaml-words", "config")
        return True

    def flag_launch(self, at: Node, argv: Sequence[Word], frame: Frame, syntax: str, program: Program) -> None:
        place = self.part.place_of(at)
        extent = hull([place, *(w.place for w in argv)])
        launch = Launch(program, place, extent, (Variant(tuple(argv), frame.env),), syntax, frame.clues)  # type: ignore[arg-type]
        self.keep(CommandResult((launch,)), frame, None)

    # --- what is around a command

    def around(self, frame: Frame, files: Sequence[EmbeddedFile]) -> Around:
        return Around(frame.env, frame.clues, tuple(files), self.read)

    def files(self, frame: Frame, argv: Sequence[Word]) -> list[EmbeddedFile]:
        """The files of ConfigMaps that the command names after `--config`: by where they are mounted, else by their name."""
        if not self.config_maps:
            return []
        named = [b.text for a, b in pairwise(argv) if a.text == "--config" and b.text]
        for word in argv:
            known = "".join(f.text or " " for f in word.fragments)
            if "--config" in known and len(known) > len("--config"):
                named += CONFIG_PATH.findall(known)
        found: list[EmbeddedFile] = []
        for path in dict.fromkeys(filter(None, named)):
            fits = [e for e in self.config_maps if e.key == path.rpartition("/")[2]]
            owners = self.mounted(frame)
            own = [e for e in fits if e.owner in owners] or (fits if len(fits) == 1 else [])
            if own:
                found.append(EmbeddedFile(path, own[0].content))
                self.used.add(own[0].name)
        return found

    def mounted_script(self, argv: Sequence[Word]) -> ConfigMapEntry | None:
        """The script of a ConfigMap that a command runs (`bash /scripts/start.sh`)."""
        for word in argv[:3] if self.config_maps else ():
            path = (word.text or "").strip()
            fits = [e for e in self.config_maps if SCRIPT_NAME.search(path) and e.key == path.rpartition("/")[2]]
            if len(fits) == 1:
                return fits[0]
        return None

    def mounted(self, frame: Frame) -> set[str]:
        """The ConfigMaps that the pod of a container has as volumes."""
        return {n for v in items(frame.volumes) if (n := self.part.text_at(v, "configMap", "name"))}

    # --- results

    def keep(self, found: CommandResult, frame: Frame, syntax: str | None) -> None:
        self.problems += found.problems
        self.depends_on |= found.depends_on
        for launch in found.launches:
            shared = self.shared(launch, frame)
            variants = tuple(
                replace(v, words=tuple(map(_as_printed, v.words)), choices=(*v.choices, *shared))
                for v in launch.variants
            )
            if syntax is not None and launch.syntax == "yaml-words":
                launch = replace(launch, syntax=syntax)  # type: ignore[arg-type]
            self.launches.append(
                replace(launch, variants=variants, role=frame.role, group=self.part.place(0, len(self.part.text)))
            )

    def shared(self, launch: Launch, frame: Frame) -> tuple[Choice, ...]:
        """The same command is written behind an anchor and used in several places: who runs it."""
        if self.part.signs is not None or frame.owner is None or frame.owner.contains(launch.place):
            return ()
        return (Choice(frame.owner, f"it is run as {frame.name}"),)


def _with_what_is_added(key: str, command: Word) -> Word:
    """A command that starts a server without any argument: whatever reads it adds the arguments, which other keys tell it
    (`server_command: python -m sglang.launch_server`)."""
    written = command.text or ""
    if key.lower() in WHOLE_KEYS or not STARTS_ALONE.match(written):
        return command
    command, _ = command.split(len(written.rstrip()))
    end = command.place._replace(start=command.place.end)
    added = Fragment(" ", end, False, fixed=True), Fragment(None, end, False, "what reads the command adds arguments")
    return command._replace(fragments=(*command.fragments, *added))


def _slurm_clues(document: str, word: Word) -> list[Clue]:
    """The clues in the header of a Slurm script."""
    script = embedded(word).whole
    if "#SBATCH" not in script:
        return []
    found = script_clues(document, script)
    return [replace(c, place=text.place_in(word, c.place.start, c.place.end)) for c in found]


def _named(job: Combination, frame: Frame) -> Callable[[str], Word | None]:
    return lambda name: job.get(name) or frame.named(name)


def _asked_for(part: Part, step: Node) -> Iterator[Clue]:
    """The release that a workflow step passes to an action: `with: {sglang-version: 0.5.9}`."""
    for name, (_, value) in part.entries(part.get(step, "with")).items():
        if is_scalar(value) and VERSION_KEY.match(name) and (written := part.word(value).text):
            yield Clue("pin", f"sglang=={written.removeprefix('v')}", part.place_of(value))


def _model_of_operator(argv: Sequence[Word], place: Place) -> list[Word]:
    """The model, if arguments alone do not name it: whatever gives the image its command may add it."""
    if any(MODEL_FLAG.match(word.known_start) for word in argv):
        return []
    return [fixed("--model-path", place), unknown(place._replace(end=place.start), text.FROM_OPERATOR)]


def _starts_with_flags(argv: Sequence[Word]) -> bool:
    """Whether the first word that is known is a flag."""
    known = next((w.known_start for w in argv if w.known_start), "")
    return known.startswith("-")


def _as_printed(word: Word) -> Word:
    """A word that consists of template output only may be any number of words."""
    alone = len(word.fragments) == 1 and word.reason == FROM_BLOCK
    return word._replace(splat=True) if alone and not word.splat else word
