"""Builtin commands: their effect on variables, files and output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell import ast, commands, conditions
from spec_lsp.syntax.shell.expand import FROM_COMMAND_LINE, Expander, bounded
from spec_lsp.syntax.shell.input import BLANKS, as_word, cut_line, fields_of, lines_of
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.machine import MAX_CALLS, without_last_newlines
from spec_lsp.syntax.shell.printing import PRINTED, formatted, unescaped
from spec_lsp.syntax.shell.questions import name_of
from spec_lsp.syntax.shell.state import ALIAS, ARGUMENTS, FILE, STATUS, UNREAD, Frame
from spec_lsp.syntax.shell.streams import plain_path
from spec_lsp.syntax.shell.values import NOWHERE, TREES, UNSET, Array, Reference, Scalar, Table, Value, transform
from spec_lsp.syntax.source import Source, embedded
from spec_lsp.syntax.word import Fragment, Place, unknown

MAX_COUNT = 256


def run_declare(run: Interpreter, node: ast.Simple, source: Source) -> None:
    options = [w.literal or "" for w in node.words[1:] if (w.literal or "").startswith(("-", "+"))]
    letters = "".join(o[1:] for o in options if o.startswith("-"))
    command = name_of(node)
    local = command == "local" or (command in ("declare", "typeset") and "g" not in letters)
    if local and not any(f.kind == "function" for f in run.frames):
        local = False
    for assign in node.assigns:
        if "n" in letters and command != "export":
            refer(run, assign, source, local)
            continue
        if "A" in letters and assign.elements is not None:
            run.state.vars[assign.name] = Table({})
            assign = ast.Assign(assign.start, assign.end, assign.name, True, None, assign.elements)
        run.assign(assign, source, local)
    names = [w.literal for w in node.words[1:] if w.literal and re.fullmatch(r"[A-Za-z_]\w*", w.literal)]
    for name in names:
        if local:
            run.make_local(name)
            run.state.vars[name] = UNSET
        if "A" in letters:
            run.state.vars[name] = Table({})
        elif "a" in letters and name not in run.state.vars:
            run.state.vars[name] = Array(())
    if (command == "export" and "n" not in letters) or "x" in letters:
        run.state.exported |= {a.name for a in node.assigns} | set(names)
    run.set_status(True)


def refer(run: Interpreter, assign: ast.Assign, source: Source, local: bool) -> None:
    """`local -n A=$1`: A is another name of the variable that `$1` names."""
    written = assign.value
    target = run.in_common(lambda x: x.text(written, source)) if written is not None else None
    if local:
        run.make_local(assign.name)
    if isinstance(target, str) and re.fullmatch(r"[A-Za-z_]\w*", target) and target != assign.name:
        run.state.vars[assign.name] = Reference(target)
    else:
        run.assign_unknown(assign.name, source.place(assign.start, assign.end), "another name of a variable")


def run_set(run: Interpreter, node: ast.Simple, source: Source) -> None:
    dashes = next((i for i, word in enumerate(node.words) if word.literal == "--"), None)
    if dashes is not None:
        rest = node.words[dashes + 1 :]
        value = run.value_of(lambda x: Array(tuple(x.words(rest, source))))
        if value is not NOWHERE:
            set_arguments(run, value)
    run.set_status(True)


def set_arguments(run: Interpreter, value: Any) -> None:
    for digit in "123456789":
        run.state.vars.pop(digit, None)
    run.state.vars[ARGUMENTS] = value


def run_shift(run: Interpreter, node: ast.Simple, source: Source) -> None:
    literal = node.words[1].literal if len(node.words) > 1 else "1"
    count = int(literal) if literal and literal.isdigit() and len(literal) < 4 else None
    place = source.place(node.start, node.end)

    def rest(leaf: Value) -> Value:
        words = leaf.words if isinstance(leaf, Array) else ()
        if count is None or any(w.splat for w in words[:count]):
            return Array((unknown(place, FROM_COMMAND_LINE, splat=True),))
        return Array(words[count:])

    set_arguments(run, transform(run.state.vars.get(ARGUMENTS, run.outside(ARGUMENTS)), rest))
    run.set_status(True)


def run_unset(run: Interpreter, node: ast.Simple, source: Source) -> None:
    for word in node.words[1:]:
        if word.literal and re.fullmatch(r"[A-Za-z_]\w*", word.literal):
            run.state.vars[word.literal] = UNSET
    run.set_status(True)


def run_trap(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`trap 'command' EXIT`: the command runs later, in about this state. Here it changes nothing."""
    words = node.words[2:] if len(node.words) > 1 and node.words[1].literal == "--" else node.words[1:]
    if len(words) > 1:
        run_later(run, node, source, run.in_common(lambda x: x.words(words[:1], source)))
    run.set_status(True)


def run_later(run: Interpreter, node: ast.Simple, source: Source, texts: Any) -> None:
    """A text that the shell runs at another time."""
    text = texts[0] if isinstance(texts, list) and len(texts) == 1 else None
    if text is None:
        return
    starts = "".join(f.text or "" for f in text.fragments)
    if "sglang" in starts or starts.partition(" ")[0] in run.state.functions:
        with run.subshell():
            run.run_embedded(node, source, text, (), True, commands.Surroundings())


def run_alias(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`alias serve='python3 -m sglang.launch_server'`."""
    for word in node.words[1:]:
        (known,) = run.in_common(lambda x, w=word: x.words((w,), source)) or (None,)  # type: ignore[misc]
        name = expression(r"[\w.-]+=").match(known.known_start) if known is not None else None
        if known is not None and name is not None:
            run.state.vars[ALIAS + name[0][:-1]] = Scalar(known.split(name.end())[1].fragments)
    run.set_status(True)


def run_unalias(run: Interpreter, node: ast.Simple, source: Source) -> None:
    every = any(w.literal == "-a" for w in node.words)
    gone = {ALIAS + (w.literal or "") for w in node.words[1:]}
    for name in [n for n in run.state.vars if n.startswith(ALIAS) and n != ALIAS and (every or n in gone)]:
        run.state.vars[name] = UNSET
    run.set_status(True)


def run_shopt(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """Whether a script of bash expands its aliases."""
    words = [w.literal for w in node.words[1:]]
    if "expand_aliases" in words and {"-s", "-u"} & {*words}:
        run.state.vars[ALIAS] = "-s" in words
    run.set_status(True)


SETS_UP = expression(
    r"(?:^|[/.])(?:activate|bashrc|profile|bash_profile|[\w-]*env|(?:[\w-]*env|conda|setvars|modules?)\.sh)\Z"
)
"""Files that set variables and paths."""


def run_source(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(None)
    if len(node.words) < 2 or run.calls >= MAX_CALLS:
        return
    path = run.in_common(lambda x: x.text(node.words[1], source))
    if not isinstance(path, str) or not path:
        run.state.vars[UNREAD] = UNSET
        return
    path = plain_path(path)
    written = run.written_text(path, source.place(node.start, node.end))
    if written is None:
        run.sourced.append(path)
    statements = run.load(path) if written is None else None
    if written is None and statements is None and not SETS_UP.search(path):
        run.state.vars[UNREAD] = UNSET
    run.calls += 1
    frame = Frame("function", len(run.state.constraints))
    run.frames.append(frame)
    if written is not None:
        run.run_text(embedded(written))
    for script, inner in statements or ():
        if run.state.alive:
            run.run(script, inner)
    run.frames.pop()
    run.settle(frame, ("return",))
    run.calls -= 1


def run_exit(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.state.alive = False


def run_return(run: Interpreter, node: ast.Simple, source: Source) -> None:
    literal = node.words[1].literal if len(node.words) > 1 else None
    run.set_status(
        literal == "0"
        if literal and literal.isdigit()
        else (None if len(node.words) > 1 else run.state.vars.get(STATUS))
    )
    escape(run, "function", "return")


def run_break(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(True)
    escape(run, "loop", "break")


def run_continue(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(True)
    escape(run, "loop", "continue")


def escape(run: Interpreter, frame_kind: str, how: str) -> None:
    """Leave a loop or function here. A loop that waits for something may be left in each of its rounds; beyond a limit this is ignored."""
    for frame in reversed(run.frames):
        if frame.kind == frame_kind:
            surely = len(run.state.constraints) <= frame.depth
            if surely or not frame.full:
                frame.escapes.append((how, run.state.fork()))
            break
    run.state.alive = False


def run_true(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(True)


def run_false(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(False)


def run_test(run: Interpreter, node: ast.Simple, source: Source) -> None:
    nodes = list(node.words[1:])
    if node.words[0].literal == "[" and nodes and nodes[-1].literal == "]":
        nodes.pop()
    emptiness = len(nodes) == 1 or any(w.literal in ("-z", "-n", "") for w in nodes)
    run.set_status(run.tested(lambda x: conditions.bracket(x.words(nodes, source)), emptiness))


def run_read(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`read` from a text that the script holds (`<<EOF`, `<<< "$X"`, a loop over lines); any other `read` gives unknown values."""
    place = source.place(node.start, node.end)
    options, names = read_options(node)
    text = run.standard_input(node.redirects, source)
    piped = not any(r.body is not None or r.op == "<" for r in node.redirects)
    run.set_status(None)
    if "-d" in options or text is None or isinstance(text, TREES) or not names:
        if options.get("-d") == "" and text is not None and len(names) == 1 and "-a" not in options:
            run.state.vars[names[0]] = transform(text, without_ends)
        else:
            forget_read(run, names, "-a" in options, place)
        if piped and text is not None:
            run.set_input(None)
        return
    line, rest = cut_line(as_word(text.fragments, place))
    if piped:
        run.set_input(Scalar(rest.fragments))
        run.set_status(bool(text.fragments))
        if not text.fragments:
            return
    fields = fields_of(line, separators(run, node), None if "-a" in options else len(names))
    if fields is None:
        forget_read(run, names, "-a" in options, place)
    elif "-a" in options:
        run.state.vars[names[0]] = Array(tuple(fields))
    else:
        for i, name in enumerate(names):
            run.state.vars[name] = Scalar(fields[i].fragments if i < len(fields) else ())


def without_ends(leaf: Any) -> Any:
    return Scalar(without_last_newlines(leaf.fragments)) if isinstance(leaf, Scalar) else leaf


def forget_read(run: Interpreter, names: Sequence[str], array: bool, place: Place) -> None:
    for name in names or ("REPLY",):
        if array:
            run.state.vars[name] = Array((unknown(place, "read while it runs", splat=True),))
        else:
            run.assign_unknown(name, place, "read while it runs")


def read_options(node: ast.Simple) -> tuple[dict[str, str | None], list[str]]:
    """The options of `read` with their values, and the names it sets."""
    options: dict[str, str | None] = {}
    names: list[str] = []
    words = list(node.words[1:])
    while words:
        text = words.pop(0).literal or ""
        if not text.startswith("-") or len(text) < 2:
            if re.fullmatch(r"[A-Za-z_]\w*", text):
                names.append(text)
            continue
        for i, letter in enumerate(text[1:], 1):
            options["-" + letter] = None
            if letter in "adnNptui":
                value = text[i + 1 :] or (words.pop(0).literal if words else None)
                options["-" + letter] = value
                break
    if options.get("-a"):
        names = [options["-a"] or "", *names][:1]
    return options, names


def separators(run: Interpreter, node: ast.Simple) -> str:
    """The separators at which `read` splits."""
    given = next((a.value for a in node.assigns if a.name == "IFS" and a.value is not None), None)
    if given is not None:
        return given.literal if given.literal is not None else BLANKS
    held = run.lookup("IFS")
    return (held.text or "") if isinstance(held, Scalar) else BLANKS


def run_mapfile(run: Interpreter, node: ast.Simple, source: Source) -> None:
    place = source.place(node.start, node.end)
    names = [w.literal for w in node.words[1:] if w.literal and re.fullmatch(r"[A-Za-z_]\w*", w.literal)]
    options = [w.literal for w in node.words[1:] if w.literal and w.literal.startswith("-")]
    text = run.standard_input(node.redirects, source) if options == ["-t"] else None
    lines = lines_of(as_word(text.fragments, place)) if isinstance(text, Scalar) else None
    for name in names[-1:] or ("MAPFILE",):
        known = lines is not None and all(line.text is not None for line in lines)
        unknown_lines = (unknown(place, "read while it runs", splat=True),)
        run.state.vars[name] = Array(tuple(lines) if known and lines is not None else unknown_lines)
    run.set_status(None)


def run_seq(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`$(seq 0 3)`."""
    here = source.place(node.start, node.end)

    def printed(x: Expander) -> tuple[Fragment, ...]:
        texts = [w.text or "" for w in x.words(node.words[1:], source)]
        if not 1 <= len(texts) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", t) for t in texts):
            return (Fragment(None, here, False, PRINTED),)
        numbers = list(map(int, texts))
        first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, numbers[-1]), 3: (*numbers,)}[len(numbers)]
        counted = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
        if len(counted) > MAX_COUNT:
            return (Fragment(None, here, False, PRINTED),)
        return tuple(Fragment(f"{n}\n", here, False, fixed=True) for n in counted)

    run.write(node, source, printed)
    run.set_status(True)


def run_let(run: Interpreter, node: ast.Simple, source: Source) -> None:
    for word in node.words[1:]:
        run.calculate(word, source)


def run_echo(run: Interpreter, node: ast.Simple, source: Source) -> None:
    def printed(x: Expander) -> tuple[Fragment, ...]:
        words = x.words(node.words[1:], source)
        newline = not (words and words[0].text == "-n")
        escapes = run.zsh or run.dash
        while words and (option := words[0].text) in ("-n", "-e", "-E", "-ne", "-en"):
            escapes = escapes or "e" in (option or "")
            words = words[1:]
        fragments = list(commands.joined(words).fragments) if words else []
        if escapes:
            fragments = list(unescaped(fragments))
        end = source.place(node.end, node.end)
        return (*fragments, *((Fragment("\n", end, False, fixed=True),) if newline else ()))

    run.write(node, source, printed)
    run.set_status(True)


def run_printf(run: Interpreter, node: ast.Simple, source: Source) -> None:
    here = source.place(node.start, node.end)
    to_variable = len(node.words) > 2 and node.words[1].literal == "-v"
    words = node.words[3:] if to_variable else node.words[1:]
    if words and words[0].literal == "--":
        words = words[1:]

    def printed(x: Expander) -> tuple[Fragment, ...]:
        return bounded(formatted(x.words(words, source), here), here)

    name = node.words[2].literal if to_variable else None
    if name:
        value = run.value_of(lambda x: Scalar(printed(x)))
        if value is not NOWHERE:
            run.state.vars[name] = value
    elif not to_variable:
        run.write(node, source, printed)
    run.set_status(True)


def run_cat(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`cat <<EOF > file`, `tee file <<EOF`, `cat file` of a file that the script wrote."""
    place = source.place(node.start, node.end)
    is_tee = name_of(node) == "tee"
    named = [w for w in node.words[1:] if w.literal is None or not w.literal.startswith("-")]
    if is_tee or not named:
        text = run.standard_input(node.redirects, source)
    else:
        path = run.path_of(named[0], source) if len(named) == 1 else None
        text = run.variable(FILE + path) if path else None
    if is_tee and text is not None:
        for word in named:
            run.write_file(run.path_of(word, source) or "", text, any(w.literal == "-a" for w in node.words))
    unknown_text = (Fragment(None, place, False, PRINTED),)

    def content(x: Expander) -> tuple[Fragment, ...]:
        leaf = x.world.follow(text) if text is not None else None
        return leaf.fragments if isinstance(leaf, Scalar) else unknown_text

    run.write(node, source, content)
    run.set_status(None)


def run_getopts(run: Interpreter, node: ast.Simple, source: Source) -> None:
    place = source.place(node.start, node.end)
    for name in (*(w.literal for w in node.words[2:3]), "OPTARG"):
        if name:
            run.assign_unknown(name, place, FROM_COMMAND_LINE)
    run.set_status(None)


BUILTINS: Mapping[str, Callable[[Interpreter, ast.Simple, Source], None]] = {
    **dict.fromkeys(("export", "local", "declare", "typeset", "readonly"), run_declare),
    **dict.fromkeys(("source", "."), run_source),
    **dict.fromkeys(("[", "test"), run_test),
    **dict.fromkeys(("true", ":"), run_true),
    **dict.fromkeys(("mapfile", "readarray"), run_mapfile),
    **dict.fromkeys(("cat", "tee"), run_cat),
    "set": run_set,
    "shift": run_shift,
    "unset": run_unset,
    "exit": run_exit,
    "return": run_return,
    "break": run_break,
    "continue": run_continue,
    "false": run_false,
    "read": run_read,
    "echo": run_echo,
    "printf": run_printf,
    "getopts": run_getopts,
    "seq": run_seq,
    "let": run_let,
    "trap": run_trap,
    "alias": run_alias,
    "unalias": run_unalias,
    "shopt": run_shopt,
}
