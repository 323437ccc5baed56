"""JSON, with the comments and trailing commas that VS Code allows: manifests, `package.json`, `launch.json`, `tasks.json`,
`devcontainer.json`.

JSON without comments is YAML, so nodes, words and places are the YAML reader's. A file that runs something is recognized by its keys; a
record of past runs (the results of a benchmark) starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import begins_line
from spec_lsp.syntax.env_file import file_variables
from spec_lsp.syntax.launch import Clue, Directive, Document, Launch
from spec_lsp.syntax.shell.commands import container_options
from spec_lsp.syntax.shell.embedding import Around, Collected, CommandResult, read_arguments, read_script
from spec_lsp.syntax.source import FileSource
from spec_lsp.syntax.strings import JSON_STRING, json_string
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.commands import Reader
from spec_lsp.syntax.yaml.nodes import Node, Part, is_list, is_mapping, is_scalar, items, root_of
from spec_lsp.syntax.yaml.words import place_in, split, substituted

TOKEN = expression(
    rf"{JSON_STRING.pattern}|(?P<blank>//[^\n]*|/\*.*?(?:\*/|\Z)|\t|\ufeff)"
    r"|(?P<comma>,)(?=(?:\s|//[^\n]*|/\*.*?\*/)*[\]}])",
    re.S,
)
MANIFESTS = ("apiVersion", "services", "containerDefinitions", "containerProperties")
"""Top-level keys of Kubernetes resources, of Compose files, and of the jobs of Amazon's ECS and Batch."""
GLANCE = expression(rf'"(?:{"|".join(MANIFESTS)}|scripts|configurations|tasks|\w+Command)"\s*:')
"""A file that runs something contains one of these."""
SURROGATE = expression(r"\\u[dD][89abcdefABCDEF][0-9a-fA-F]{2}")
LIFECYCLE = (
    "initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand", "postAttachCommand",
)  # fmt: skip
"""What a development container runs, in order (containers.dev/implementors/json_reference)."""
OWN_VARIABLE = expression(r"\$\{[^{}]*\}")
ANY_VARIABLE = expression(r"\$\{[^{}]*\}|\$[A-Za-z_]\w*")
FROM_CODE = "VS Code fills it in"
DIRECTIVE = expression(r"//[ \t]*spec-lsp:[ \t]*([^\r\n]*)")


def read_json(name: str, text: str, read: Read) -> Document:
    """All launches of a JSON file that runs something; none in any other."""
    if not GLANCE.search(text):
        return Document(name, text)
    masked = as_yaml(text)
    part = _Part(name, masked, 0, root=root_of(masked), written=text)
    reader = _JsonReader(part, read)
    if any(key in part.entries(part.root) for key in MANIFESTS):
        manifest = Reader(part, read)
        manifest.document()
        reader.found.add(
            CommandResult(
                tuple(map(_of_list, manifest.launches)), tuple(manifest.problems), frozenset(manifest.depends_on)
            )
        )
    else:
        reader.root(part.root)
    reader.found.launches.sort(key=lambda launch: launch.extent.start)
    return reader.found.document(name, text, _directives(name, text))


def as_yaml(text: str) -> str:
    """The text with comments, tabs and trailing commas blanked, and unpaired surrogates, which YAML refuses, replaced; each other character
    keeps its place."""
    return TOKEN.sub(_accepted, text)


def _accepted(m: re.Match[str]) -> str:
    if m.lastgroup is not None:
        return re.sub(r"[^\n]", " ", m.group())
    return SURROGATE.sub(r"\\ufffd", m.group()) if "\\u" in m.group() else m.group()


@dataclass(slots=True, eq=False)
class _Part(Part):
    """A JSON file's nodes, and its text as written, in which strings follow JSON's rules."""

    written: str = ""

    def word(self, node: Node) -> Word:
        if is_scalar(node) and node.style == '"' and id(node) not in self._words:
            word = json_string(FileSource(self.document, self.base, self.written), *self.span(node))
            if word is not None:
                self._words[id(node)] = word
        return Part.word(self, node)  # no super(): a class with slots is made anew


def _of_list(launch: Launch) -> Launch:
    """A launch whose words are the items of a JSON list."""
    return replace(launch, syntax="list-words") if launch.syntax == "yaml-words" else launch


def _directives(name: str, text: str) -> tuple[Directive, ...]:
    """Comments to spec-lsp: `// spec-lsp: …`."""
    found = []
    for m in TOKEN.finditer(text) if "spec-lsp" in text else ():
        comment = DIRECTIVE.match(m.group()) if m.lastgroup == "blank" else None
        if comment is not None:
            own_line = begins_line(text, m.start())
            found.append(Directive(comment.group(1).strip(), Place(name, *m.span()), own_line))
    return tuple(found)


class _JsonReader:
    """Reads the commands that editors and package managers run."""

    def __init__(self, part: Part, read: Read) -> None:
        self.part = part
        self.read = read
        self.found = Collected()

    def root(self, node: Node) -> None:
        self.configurations(node)
        self.configurations(self.part.get(node, "launch"))  # of a workspace
        for tasks in (node, self.part.get(node, "tasks")):
            for task in items(self.part.get(tasks, "tasks")):
                self.task(task, self.part.get(tasks, "options", "env"))
        for key in ("scripts", "tasks"):  # npm and Composer; Deno
            for _, value in self.part.entries(self.part.get(node, key)).values():
                if is_scalar(value):
                    self.script(self.part.word(value))
        self.container(node)

    # --- development containers

    def container(self, node: Node) -> None:
        listed = [self.part.word(item) for item in items(self.part.get(node, "runArgs"))]
        _, given, _ = container_options(listed, 0)
        image = self.part.get(node, "image")
        clues = (*given.clues, *((Clue("image", image.value, self.part.place_of(image)),) if is_scalar(image) else ()))
        options = {name: word for name, word in given.env if word is not None}
        env = {**options, **self.variables(self.part.get(node, "containerEnv"))}
        inside = Around({**env, **self.variables(self.part.get(node, "remoteEnv"))}, clues, read=self.read)
        for key in LIFECYCLE:
            value = self.part.get(node, key)
            around = Around(read=self.read) if key == "initializeCommand" else inside  # that one runs on the host
            for command in [v for _, v in self.part.entries(value).values()] if is_mapping(value) else [value]:
                if is_list(command):
                    self.arguments([self.word(item, OWN_VARIABLE) for item in items(command)], around)
                elif is_scalar(command):
                    self.script(self.word(command, OWN_VARIABLE), around)

    # --- VS Code

    def configurations(self, node: Node) -> None:
        """`launch.json`: Python programs and modules."""
        for one in items(self.part.get(node, "configurations")):
            settings = self.on_linux(one)
            if (
                self.part.text_at(one, "type") not in ("python", "debugpy")
                or self.part.text_at(one, "request") == "attach"
            ):
                continue
            python = settings.get("python") or settings.get("pythonPath")
            module, script = settings.get("module"), settings.get("program")
            program = module if is_scalar(module) else script
            if not is_scalar(program):
                continue
            first = self.word(python, OWN_VARIABLE) if is_scalar(python) else self.added("python", program)
            argv = [
                first,
                *([self.added("-m", program)] if program is module else ()),
                self.word(program, OWN_VARIABLE),
            ]
            argv += self.listed(settings.get("args"), OWN_VARIABLE)
            env = {**self.env_file(settings.get("envFile")), **self.variables(settings.get("env"))}
            self.arguments(argv, Around(env, read=self.read))

    def task(self, node: Node, shared: Node) -> None:
        """`tasks.json`: a command line, or a command and its arguments."""
        settings = self.on_linux(node)
        command, args = settings.get("command"), items(settings.get("args"))
        in_shell = (self.part.text_at(node, "type") or "shell") == "shell"
        variable = ANY_VARIABLE if in_shell and args else OWN_VARIABLE
        env = {**self.variables(shared), **self.variables(self.part.get(settings.get("options"), "env"))}
        around = Around(env, read=self.read)
        word = self.quoted(command, variable) if command is not None else None
        if word is None:
            return
        if in_shell and not args:
            self.script(word, around)
        else:
            given = [one for item in args if (one := self.quoted(item, variable)) is not None]
            self.arguments([*(split(word) if in_shell else [word]), *given], around)

    def quoted(self, node: Node, variable: re.Pattern[str]) -> Word | None:
        """An argument of a task, which may say how it is quoted: `{"value": …, "quoting": "strong"}`."""
        node = self.part.get(node, "value") if is_mapping(node) else node
        return self.word(node, variable) if is_scalar(node) else None

    def on_linux(self, node: Node) -> Mapping[str, Node]:
        """The settings of a launch or task for Linux, where SGLang runs."""
        own = {key: value for key, (_, value) in self.part.entries(node).items()}
        return {**own, **{key: value for key, (_, value) in self.part.entries(own.get("linux")).items()}}

    def listed(self, node: Node, variable: re.Pattern[str]) -> list[Word]:
        """The arguments of a program: a list, or a text that a shell splits."""
        if is_scalar(node):
            return split(self.word(node, variable))
        return [self.word(item, variable) for item in items(node) if is_scalar(item)]

    def word(self, node: Node, variable: re.Pattern[str]) -> Word:
        """A text in which the variables of VS Code or a shell are unknown."""
        word = self.part.word(node)
        return substituted(
            word, variable, lambda m: (Fragment(None, place_in(word, m.start(), m.end()), False, FROM_CODE),)
        )

    def added(self, text: str, node: Node) -> Word:
        """A word that VS Code itself adds."""
        at = self.part.place_of(node).start
        place = Place(self.part.document, at, at)
        return Word((Fragment(text, place, False, fixed=True),), place)

    # --- all

    def variables(self, node: Node) -> dict[str, Word]:
        entries = self.part.entries(node).items()
        return {key: self.word(value, OWN_VARIABLE) for key, (_, value) in entries if is_scalar(value)}

    def env_file(self, node: Node) -> dict[str, Word]:
        """The variables of a file of `NAME=value` lines."""
        path = self.part.word(node).text if is_scalar(node) else None
        path = (path or "").removeprefix("${workspaceFolder}/")
        if not path or "$" in path:
            return {}
        self.found.depends_on.add(path)
        return dict(file_variables(path, self.read(path) or ""))

    def script(self, word: Word, around: Around | None = None) -> None:
        self.found.add(read_script(self.part.document, word, around or Around(read=self.read)))

    def arguments(self, words: list[Word], around: Around) -> None:
        self.found.add(read_arguments(self.part.document, words, around, "list-words"))
