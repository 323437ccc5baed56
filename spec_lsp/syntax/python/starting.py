"""What calls and returned commands start, for each way of the program that reaches them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import replace
from spec_lsp.syntax.covering import fewest
from spec_lsp.syntax.launch import Clue, Launch
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.control import Statements
from spec_lsp.syntax.python.expressions import ENVIRON
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.sinks import (
    ENGINES,
    EXEC_FUNCTIONS,
    HELPERS,
    LOOKS,
    NOT_OURS,
    PARSERS,
    PROCESSES,
    RUNS,
    SHELL_FUNCTIONS,
    SPEAKS,
    STARTS_TEXT,
    TELLS,
    Helper,
)
from spec_lsp.syntax.python.values import (
    COMPUTED,
    PARAMETER,
    Items,
    More,
    Plain,
    Table,
    Text,
    Value,
    as_source,
    as_text,
    depends,
    mentions,
    place_of,
    plain,
)
from spec_lsp.syntax.python.ways import ExecutionPath, Impossible, explore
from spec_lsp.syntax.shell.commands import PIN, SGLANG_IMAGE
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_arguments, read_script
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

FLAG = expression(r"--[A-Za-z]")


class Starting(Statements):
    """Records what is started: by SGLang's own functions and classes, or by a command that is passed on. `read` returns the text of another
    file."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        super().__init__(document, text, positions)
        self.read = read
        self.defined: set[str] = set()
        """The functions and classes that the file defines."""

    def may_start(self, name: str, last: str, given: Arguments) -> bool:
        if ENGINES.match(name) or last in HELPERS or last in PARSERS:
            return True
        values = (*given.positional, *given.keywords.values())
        return not (SPEAKS.match(last) or LOOKS.match(last)) and any(map(mentions, values))

    def each_way_given(self, given: Arguments) -> Iterator[Arguments]:
        """The arguments, for each way of the program that they depend on."""
        values = (*given.positional, *given.keywords.values(), *given.rest)
        first, second = len(given.positional), len(given.positional) + len(given.keywords)
        for found in self.each_way(*(Items((v,), place_of(v)) for v in values)):
            lists = [v.items if isinstance(v, Items) else () for v in found]
            positional = [v for one in lists[:first] for v in one]
            keywords = {name: one[0] for name, one in zip(given.keywords, lists[first:second], strict=True)}
            yield Arguments(positional, keywords, [one[0] for one in lists[second:]])

    def each_way(self, *values: Value) -> Iterator[tuple[Value, ...]]:
        """The values, and the environment, for each way of the program that they depend on."""
        environ = self.state[ENVIRON]
        path = tuple(self.path)
        if not any(map(depends, (*values, environ))):
            yield values
            return

        def reach(world: ExecutionPath) -> None:
            for turn, taken in path:
                if world.way(turn) not in taken:
                    raise Impossible

        context, looked_at = self.context, self.looked_at
        every, ways = explore(reach, lambda world: tuple(plain(v, world) for v in (*values, environ)))
        self.looked_at = fewest((looked_at, ways))
        for world, found in every:
            self.context, self.state[ENVIRON] = [*context, *world.choices()], found[-1]
            yield found[:-1]
        self.context, self.state[ENVIRON] = context, environ
        self.looked_at = looked_at

    def start(self, node: ast.Call, name: str, last: str, given: Arguments, place: Place) -> None:
        """What a call starts, on one way of the program."""
        helper = HELPERS.get(last)
        if ENGINES.match(name):
            self.start_engine(node, last, given, place)
        elif helper is not None and self.is_helper(name, last):
            self.start_helper(helper, given, place)
        elif (
            last in PARSERS and last not in self.defined and given.positional and isinstance(given.positional[0], Items)
        ):
            self.start_words(given.positional[0], place)
        else:
            self.start_command(name, last, given, place)

    def start_returned(self, node: ast.expr, value: Value) -> None:
        """A list of words that a function returns is a command (a text only if the function's name says so); callers in the file may first
        add to it."""
        called = self.frames[-1].called if self.frames else False
        self.waiting = called
        for (one,) in self.each_way(value) if mentions(value) else ():
            if isinstance(one, Items):
                place = one.place if isinstance(node, ast.Name) else self.positions.place(node)
                self.start_arguments(place, one, self.environment(None))
            elif isinstance(one, Text) and self.frames and returns_command(self.frames[-1].routine.node.name, one):
                self.start_script(self.positions.place(node), one, self.environment(None))
        self.waiting = False

    def start_engine(self, node: ast.Call, last: str, given: Arguments, place: Place) -> None:
        """`sgl.Engine(…)`, `ServerArgs(…)`: words are the keywords, each with the source of its value."""
        if "server_args" in given.keywords or self.evaluator.within is not None:
            return
        words: list[Word] = []
        rest = iter(given.rest)
        if last == "ServerArgs" and given.positional:
            first = given.positional[0]
            words += [fixed_word("model_path", place_of(first)), as_source(first)]
        for keyword in node.keywords:
            if keyword.arg is None:
                words += self.unpacked_keywords(next(rest))
            elif keyword.arg not in NOT_OURS:
                start = self.positions.place(keyword).start
                key = Place(self.document, start, start + len(keyword.arg))
                words += [Word((Fragment(keyword.arg, key),), key), as_source(given.keywords[keyword.arg])]
        if any(not w.splat for w in words):
            self.add("engine", place, tuple(words), self.environment(None), "keywords", self.positions.place(node.func))

    def unpacked_keywords(self, value: Value) -> list[Word]:
        if not isinstance(value, Table):
            return [unknown(place_of(value), getattr(value, "reason", COMPUTED), splat=True)]
        words = [w for e in value.entries if e.name not in NOT_OURS for w in (e.key, as_source(e.value))]
        return [*words, unknown(value.place, COMPUTED, splat=True)] if value.open else words

    def is_helper(self, name: str, last: str) -> bool:
        """Whether this is SGLang's own function, and not one of the same name in the file or another package."""
        module = name.rpartition(".")[0]
        return last not in self.defined and (not module or "sglang" in module or "test_utils" in module)

    def start_helper(self, helper: Helper, given: Arguments, place: Place) -> None:
        model = given.get(helper.model[0], *helper.model[1])
        args = given.get(helper.args[0], *helper.args[1])
        separated = given.keywords.get("pd_separated")
        if "num_replicas" in given.keywords or (
            separated is not None and not (isinstance(separated, Plain) and not separated.value)
        ):
            return
        given_items: tuple[Value, ...] = ()
        if isinstance(args, Items):
            given_items = args.items
        elif args is not None and not isinstance(args, Plain):
            given_items = (More(place_of(args), getattr(args, "reason", COMPUTED)),)
        start = Place(self.document, place.start, place.start)
        env = next((given.keywords[n] for n in helper.env if n in given.keywords), None)
        first = as_text(model) if model is not None else unknown(start, PARAMETER)
        words = (
            fixed_word("--model-path", start),
            first,
            *map(as_text, given_items),
            *self.helpers_tp(helper, given, start),
        )
        self.add(
            helper.program,
            place,
            words,
            self.environment(env) if env is not None else self.environment(None),
            "list-words",
        )

    @staticmethod
    def helpers_tp(helper: Helper, given: Arguments, start: Place) -> tuple[Word, ...]:
        """`--tp` as a helper adds it."""
        size = given.get(helper.tp[0], *helper.tp[1]) if helper.tp is not None else None
        args = given.get(helper.args[0], *helper.args[1])
        there = isinstance(args, Items) and any(as_text(v).known_start.startswith("--tp") for v in args.items)
        alone = isinstance(size, Plain) and size.value == 1
        return () if size is None or there or alone else (fixed_word("--tp", start), as_text(size))

    def start_words(self, value: Items, place: Place) -> None:
        words = tuple(map(as_text, value.items))
        if any(w.text not in (None, "-h", "--help") for w in words):
            self.add("launch_server", place, words, self.environment(None), "list-words")

    def start_command(self, name: str, last: str, given: Arguments, place: Place) -> None:
        """A command passed to the system, or to a function that clearly runs it."""
        env = self.environment(given.keywords.get("env"))
        shell = given.keywords.get("shell")
        with_shell = isinstance(shell, Plain) and bool(shell.value)
        values = [*given.positional, *given.keywords.values()]
        runs = name in SHELL_FUNCTIONS or last in SHELL_FUNCTIONS or with_shell
        for i, value in enumerate(values):
            if isinstance(value, Items):
                self.start_arguments(place, value, env, bool(PROCESSES.search(name)) and "args" not in given.keywords)
            elif isinstance(value, Text) and "sglang" in "".join(f.text or "" for f in value.word.fragments):
                plainly = STARTS_TEXT.match(value.word.known_start) is not None
                if (runs and i == 0) or (plainly and RUNS.search(last)):
                    self.start_script(place, value, env)
        if last == "create_subprocess_exec" and len(given.positional) > 1:
            self.start_arguments(place, Items(tuple(given.positional), place), env)
        if EXEC_FUNCTIONS.match(name) and len(given.positional) > 2 and isinstance(given.positional[1], Text):
            self.start_arguments(place, Items(tuple(given.positional[1:]), place), env)

    def start_arguments(self, call: Place, value: Items, env: Mapping[str, Word], whole: bool = False) -> None:
        """What a list of arguments starts. If it is not known to be the `whole` command, it may be continued where it is passed to."""
        found = self.commands_of(value, env)
        if found is not None:
            own = (one for one in found.launches if whole or one.syntax == "shell" or names_model(one))
            self.note(call, replace(found, launches=tuple(own)), "list-words")

    def commands_of(self, value: Items, env: Mapping[str, Word]) -> CommandResult | None:
        """What a list of arguments starts."""
        words = [as_text(v) for v in value.items]
        if self.quiet or not any("sglang" in (f.text or "") for w in words for f in w.fragments):
            return None
        return read_arguments(self.document, words, self.surroundings(env))

    def start_script(self, call: Place, value: Text, env: Mapping[str, Word]) -> None:
        self.note(call, read_script(self.document, apart(value.word), self.surroundings(env)), "shell")

    def environment(self, given: Value | None) -> dict[str, Word]:
        table = given if given is not None and not isinstance(given, Plain) else self.state.get(ENVIRON)
        if not isinstance(table, Table):
            return {}
        return {e.name: as_text(e.value) for e in table.entries if e.name}

    def surroundings(self, env: Mapping[str, Word]) -> Around:
        return Around(env, self.around, (), self.read)

    def note_clues(self, last: str, given: Arguments) -> None:
        """Images and pins that a program names: `Image.from_registry("lmsysorg/sglang:v0.5.9")`, `.pip_install("sglang==0.5.9")`."""
        for value in given.positional:
            text = value.word.known_start if isinstance(value, Text) else ""
            if last in ("from_registry", "from_dockerhub") and SGLANG_IMAGE.search(text) and isinstance(value, Text):
                self.clues[Clue("image", text, value.word.place)] = None
            elif last.endswith("pip_install") and PIN.match(text) and isinstance(value, Text):
                self.clues[Clue("pin", text, value.word.place)] = None


def returns_command(name: str, value: Text) -> bool:
    """Whether a function returns a text for a shell to run, rather than for people to read."""
    return STARTS_TEXT.match(value.word.known_start) is not None and bool(RUNS.search(name)) and not TELLS.search(name)


def names_model(launch: Launch) -> bool:
    """Whether the words of a launch name its model, or may do so."""
    words = launch.variants[0].words
    first = words[0].known_start if words else "-"
    may = any(w.splat or w.known_start.startswith(("--model", "--config")) for w in words)
    return may or (launch.program == "serve" and not first.startswith("-"))


def apart(command: Word) -> Word:
    """The command with a blank between an unknown end and the flag after it: what a loop or a call adds ends with one."""
    fragments: list[Fragment] = []
    for fragment in command.fragments:
        if fragments and fragments[-1].text is None and FLAG.match(fragment.text or ""):
            at = Place(fragment.place.document, fragment.place.start, fragment.place.start)
            fragments.append(Fragment(" ", at, False, fixed=True))
        fragments.append(fragment)
    return command._replace(fragments=tuple(fragments))


def fixed_word(text: str, place: Place) -> Word:
    at = Place(place.document, place.start, place.start)
    return Word((Fragment(text, at, False, fixed=True),), at)
