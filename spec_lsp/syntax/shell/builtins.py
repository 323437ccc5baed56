"""Commands of the shell itself: what they do to variables, files and what is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from spec_lsp.syntax.shell import ast, commands, conditions
from spec_lsp.syntax.shell.expand import FROM_COMMAND_LINE, Expander
from spec_lsp.syntax.shell.interpreter import (
    ARGUMENTS,
    MAX_CALLS,
    STATUS,
    Frame,
    Interpreter,
    plain_path,
    without_last_newlines,
)
from spec_lsp.syntax.shell.questions import name_of
from spec_lsp.syntax.shell.values import NOWHERE, UNSET, Array, Scalar, Table, Value, transform
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, unknown


def run_declare(run: Interpreter, node: ast.Simple, source: Source) -> None:
    options = [w.literal or "" for w in node.words[1:] if (w.literal or "").startswith(("-", "+"))]
    letters = "".join(o[1:] for o in options if o.startswith("-"))
    command = name_of(node)
    local = command == "local" or (command in ("declare", "typeset") and "g" not in letters)
    if local and not any(f.kind == "function" for f in run.frames):
        local = False
    for assign in node.assigns:
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


def run_source(run: Interpreter, node: ast.Simple, source: Source) -> None:
    run.set_status(None)
    if len(node.words) < 2 or run.calls >= MAX_CALLS:
        return
    path = run.evaluate(lambda x: x.text(node.words[1], source), limit=1)
    if not isinstance(path, str) or not path:
        return
    path = plain_path(path)
    run.sourced.append(path)
    statements = run.load(path)
    run.calls += 1
    frame = Frame("function", len(run.state.constraints))
    run.frames.append(frame)
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
    for frame in reversed(run.frames):
        if frame.kind == frame_kind:
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
    """`read -r -d '' X <<EOF` gives the text; any other `read` a value nobody knows."""
    place = source.place(node.start, node.end)
    names = [w.literal for w in node.words[1:] if w.literal and re.fullmatch(r"[A-Za-z_]\w*", w.literal)]
    body = next((r.body for r in node.redirects if r.op in ("<<", "<<-") and r.body is not None), None)
    whole = any(a.literal == "-d" and b.literal == "" for a, b in zip(node.words, node.words[1:], strict=False)) or any(
        w.literal in ("-rd", "-d") and n.literal == "" for w, n in zip(node.words, node.words[1:], strict=False)
    )
    if body is not None and whole and len(names) == 1:
        value = run.value_of(lambda x: Scalar(without_last_newlines(x.scalar(body, source))))
        run.state.vars[names[0]] = value
    elif any(re.fullmatch(r"-[A-Za-z]*a", w.literal or "") for w in node.words[1:]):
        for name in names[-1:]:
            run.state.vars[name] = Array((unknown(place, "read while it runs", splat=True),))
    else:
        for name in names:
            run.assign_unknown(name, place, "read while it runs")
    run.set_status(None)


def run_mapfile(run: Interpreter, node: ast.Simple, source: Source) -> None:
    place = source.place(node.start, node.end)
    names = [w.literal for w in node.words[1:] if w.literal and re.fullmatch(r"[A-Za-z_]\w*", w.literal)]
    for name in names[-1:]:
        run.state.vars[name] = Array((unknown(place, "read while it runs", splat=True),))
    run.set_status(None)


def run_echo(run: Interpreter, node: ast.Simple, source: Source) -> None:
    def printed(x: Expander) -> tuple[Fragment, ...]:
        words = x.words(node.words[1:], source)
        newline = not (words and words[0].text == "-n")
        while words and words[0].text in ("-n", "-e", "-E", "-ne", "-en"):
            words = words[1:]
        fragments = list(commands.joined(words).fragments) if words else []
        end = source.place(node.end, node.end)
        return (*fragments, *((Fragment("\n", end, False, fixed=True),) if newline else ()))

    run.write(node, source, printed)
    run.set_status(True)


def run_printf(run: Interpreter, node: ast.Simple, source: Source) -> None:
    here = source.place(node.start, node.end)

    def printed(x: Expander) -> tuple[Fragment, ...]:
        words = x.words(node.words[1:], source)
        if words and words[0].text in ("%s", "%s\\n", "%s\n") and len(words) == 2:
            end = (Fragment("\n", here, False, fixed=True),) if words[0].text != "%s" else ()
            return (*words[1].fragments, *end)
        text = words[0].text if len(words) == 1 else None
        if text is not None and not re.search(r"[%\\]", text.removesuffix("\\n")):
            end = (Fragment("\n", here, False, fixed=True),) if text.endswith("\\n") else ()
            return (*words[0].slice(0, len(text.removesuffix("\\n"))), *end)
        return (Fragment(None, here, False, "what a command prints"),)

    if len(node.words) > 2 and node.words[1].literal == "-v" and node.words[2].literal:
        run.assign_unknown(node.words[2].literal, here, "what a command prints")
    else:
        run.write(node, source, printed)
    run.set_status(True)


def run_cat(run: Interpreter, node: ast.Simple, source: Source) -> None:
    """`cat <<EOF > file`, `tee file <<EOF`."""
    here = source.place(node.start, node.end)
    body = next((r.body for r in reversed(node.redirects) if r.body is not None), None)
    is_tee = name_of(node) == "tee"

    def content(x: Expander) -> tuple[Fragment, ...]:
        if body is None or (not is_tee and len(node.words) > 1 and node.words[1].literal != "-"):
            return (Fragment(None, here, False, "what a command prints"),)
        return x.scalar(body, source)

    if is_tee and body is not None:
        value = run.value_of(lambda x: Scalar(content(x)))
        for word in node.words[1:]:
            if word.literal and not word.literal.startswith("-") and value is not NOWHERE:
                run.write_file(word.literal, value, any(w.literal == "-a" for w in node.words))
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
}
