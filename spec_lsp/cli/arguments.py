"""Every command and option of `spec-lsp`, with its help. Imports next to nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from spec_lsp.cli.printed import harmless

FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "html")

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction["_Parser"]


class _Parser(argparse.ArgumentParser):
    """Its error messages escape what was typed, which may be the names of files that a shell expanded."""

    def error(self, message: str) -> NoReturn:
        super().error(harmless(message))


def parser(first: str = "") -> argparse.ArgumentParser:
    """The parser of a command line whose first word is `first`: of one command only where that names it, as making all takes a while. The
    chosen command's module name is left in `command`."""
    top = _Parser(
        prog="spec-lsp",
        description="Tells you whether SGLang will accept a launch, before a GPU is paid for.",
        epilog="`spec-lsp COMMAND --help` shows examples of each command.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in (COMMANDS[first],) if first in COMMANDS else COMMANDS.values():
        add(commands)
    return top


def _command(commands: _Commands, name: str, summary: str, examples: str, **more: str) -> argparse.ArgumentParser:
    lines = [f"  {line}" for line in examples.strip().splitlines()]
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="\n".join(["examples:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **more,  # type: ignore[arg-type]
    )


# --- commands --------------------------------------------------------------------------------------------------------


def _check(commands: _Commands) -> None:
    p = _command(
        commands,
        "check",
        "check the launches in files and folders",
        """
spec-lsp check launch.sh                          what SGLang would refuse, at the flag
spec-lsp check .                                  every file that git does not ignore
spec-lsp check . --sglang 0.5.19 --gpu h100 --gpu b200
                                                  every release and GPU must accept
spec-lsp check . --upgrade 0.5.23                 what another release would change
spec-lsp check launch.sh --fix --unsafe-fixes     repair what can be repaired
spec-lsp check . --format sarif --output spec-lsp.sarif
spec-lsp check . --format html --output report.html
spec-lsp check . --write-baseline known.json      a tree that has many findings: from now on,
spec-lsp check . --baseline known.json            only new ones count
cat launch.sh | spec-lsp check - --stdin-filename launch.sh
""",
    )
    p.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; `-` reads standard input (default: .)")
    p.add_argument("--stdin-filename", metavar="NAME", help="what the text on standard input is called")
    _worlds(p, "; repeat it to check several: every one must accept")
    p.add_argument(
        "--upgrade", metavar="V", help="show only what this release refuses or changes that the present one does not"
    )
    show = p.add_argument_group("what is shown")
    show.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    show.add_argument("--output", metavar="FILE", help="write there instead of to standard output")
    show.add_argument("--statistics", action="store_true", help="count findings by rule instead of listing them")
    show.add_argument(
        "--ignore-directives", action="store_true", help="show findings that ignore comments silence, too"
    )
    known = show.add_mutually_exclusive_group()
    known.add_argument("--baseline", metavar="FILE", help="tell only findings that are not in FILE")
    known.add_argument(
        "--write-baseline", metavar="FILE", help="write what is found to FILE, for --baseline, and tell nothing"
    )
    show.add_argument("--exit-zero", action="store_true", help="exit with 0 even when there are errors")
    _color(show)
    fix = p.add_argument_group("fixes")
    fix.add_argument("--fix", action="store_true", help="apply the fixes that keep what runs")
    fix.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also those that change what runs"
    )
    fix.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    files = _which_files(p)
    files.add_argument(
        "--jobs", type=_positive, metavar="N", help="processes at most (default: the CPUs, where it pays)"
    )
    files.add_argument("--no-cache", action="store_true", help="check every file anew, and keep nothing of it")


def _launches(commands: _Commands) -> None:
    p = _command(
        commands,
        "launches",
        "list the launches in files and folders, with the flags that are read for each",
        """
spec-lsp launches launch.sh           each launch, the ways it can be run, what is not known and why
spec-lsp launches . --json            one JSON object a line
""",
    )
    p.add_argument("paths", nargs="*", metavar="PATH", help="files or folders (default: .)")
    _worlds(p, "")
    p.add_argument("--json", action="store_true", help="one JSON object for each launch instead of text")
    _color(p)
    _which_files(p)


def _verify(commands: _Commands) -> None:
    p = _command(
        commands,
        "verify",
        "ask the SGLang that is installed about launches, without a GPU",
        """
spec-lsp verify launch.sh                          the SGLang of the active environment
spec-lsp verify . --python ./venv/bin/python       that of another one
spec-lsp verify launch.sh --gpu h200 --gpu b200    on each of these, simulated
spec-lsp verify . --report disagreements.md        what to report, where spec-lsp is wrong
""",
    )
    p.add_argument("paths", nargs="+", metavar="PATH", help="files or folders")
    p.add_argument(
        "--python",
        metavar="INTERPRETER",
        default="",
        help="the Python interpreter that has SGLang (default: that of the active environment); it is started, and SGLang imported there",
    )
    p.add_argument(
        "--gpu",
        metavar="NAME",
        action="append",
        default=[],
        help="the GPU to simulate (may be repeated; default: what the launch names, else the machine's own, else an H100)",
    )
    p.add_argument(
        "--models", metavar="DIR", action="append", default=[], help="folder of model folders (DIR/NAME/config.json)"
    )
    show = p.add_argument_group("what is shown")
    show.add_argument("--json", action="store_true", help="one JSON object for each way of each launch instead of text")
    show.add_argument("--report", metavar="FILE", help="write disagreements there, as Markdown ready for an issue")
    _color(show)
    _which_files(p)


def _resolve(commands: _Commands) -> None:
    p = _command(
        commands,
        "resolve",
        "show the configuration that SGLang will run with, and why",
        """
spec-lsp resolve --gpu h200 -- --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE3
spec-lsp resolve -- python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8
spec-lsp resolve --json --all -- --model-path ./my-model
""",
    )
    _worlds(p, "", once=True)
    p.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="an environment variable of the launch"
    )
    p.add_argument("--all", action="store_true", help="also the fields that stay at their default")
    p.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    _color(p)
    p.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="-- ARGV", help="the launch, with or without its entry point"
    )


def _explain(commands: _Commands) -> None:
    p = _command(
        commands,
        "explain",
        "explain a rule, a flag or environment variable of SGLang, or why a server died",
        """
spec-lsp explain SPC103
spec-lsp explain --speculative-eagle-topk
spec-lsp explain --tp --sglang 0.5.9
spec-lsp explain SGLANG_ENABLE_SPEC_V2
spec-lsp explain --log server.log --gpu h100        the refusal in a log, the rule, the way out
kubectl logs my-pod | spec-lsp explain --log -
""",
    )
    p.add_argument("--log", metavar="FILE", help="find the refusal in what a server printed; `-` reads standard input")
    p.add_argument("--gpu", metavar="NAME", help="with --log: the GPU it ran on, where the log does not say")
    p.add_argument(
        "--sglang",
        metavar="V",
        help="the release whose flag is explained (default: the newest known), or that wrote the log",
    )
    _color(p)
    # A flag to explain looks like an option of our own: `main` passes on what argparse does not know.
    p.add_argument(
        "topic",
        nargs="?",
        metavar="RULE|CODE|FLAG|VARIABLE",
        help="a rule by name or code, a flag, or an environment variable",
    )


def _rules(commands: _Commands) -> None:
    p = _command(commands, "rules", "list all rules by topic", "spec-lsp rules\nspec-lsp rules --json")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a list of objects with all that is known of each rule")
    form.add_argument("--markdown", action="store_true", help="the page docs/rules.md")
    _color(p)


def _settings(commands: _Commands) -> None:
    p = _command(
        commands,
        "settings",
        "show the settings that hold for a file, and where they come from",
        "spec-lsp settings launch.sh\nspec-lsp settings --schema",
    )
    form = p.add_mutually_exclusive_group()
    form.add_argument("--schema", action="store_true", help="the JSON schema of spec-lsp.toml")
    form.add_argument("--markdown", action="store_true", help="the page docs/settings.md")
    p.add_argument("path", nargs="?", default=".", metavar="PATH", help="the file (default: the current folder)")


def _schema(commands: _Commands) -> None:
    p = _command(
        commands,
        "schema",
        "write the JSON Schema of SGLang's --config file, for YAML editors",
        """
spec-lsp schema --output sglang-config.schema.json
spec-lsp schema --sglang 0.5.19
""",
    )
    p.add_argument("--sglang", metavar="V", help="the release that reads the file (default: the newest known)")
    p.add_argument("--output", metavar="FILE", help="write there instead of to standard output")


def _server(commands: _Commands) -> None:
    p = _command(
        commands,
        "server",
        "run the language server",
        """
spec-lsp server --stdio                            as editors start it
spec-lsp server --tcp --port 2087                  for any number of clients on this machine
spec-lsp server --ws --allow-origin https://editor.example
                                                   for an editor in a page of that site
""",
    )
    how = p.add_mutually_exclusive_group()
    for transport, summary in (
        ("stdio", "speak over standard input and output (the default)"),
        ("tcp", "listen on a TCP port"),
        ("ws", "listen for WebSockets"),
    ):
        how.add_argument(f"--{transport}", dest="transport", action="store_const", const=transport, help=summary)
    p.set_defaults(transport="stdio")
    listening = p.add_argument_group("with --tcp and --ws")
    listening.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1, for this machine only)"
    )
    listening.add_argument("--port", type=int, default=2087, help="default: 2087; 0 for any free one, which is printed")
    listening.add_argument("--once", action="store_true", help="end when the last client has left")
    ws = p.add_argument_group("with --ws")
    ws.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let pages of this origin connect, such as https://editor.example (may be repeated)",
    )
    ws.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="a name by which clients may call this machine (may be repeated)",
    )
    ws.add_argument(
        "--token",
        metavar="TOKEN",
        help="ask clients for it, as `Authorization: Bearer TOKEN` or `?token=TOKEN`; better set SPEC_LSP_TOKEN, which other users do "
        "not see. Where other machines reach the address and none is given, one is made up and printed",
    )
    p.add_argument("--log-file", metavar="FILE", help="write the log there instead of to standard error")
    p.add_argument("-v", "--verbose", action="count", default=0, help="log more; twice for every message")


def _playground(commands: _Commands) -> None:
    p = _command(
        commands,
        "playground",
        "serve a page to paste a launch into",
        "spec-lsp playground\nspec-lsp playground --host 0.0.0.0 --port 8080",
    )
    p.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, which only this machine reaches")
    p.add_argument("--port", type=int, default=2088, help="default: 2088; 0 takes any that is free")
    p.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="a name by which people call this machine, such as llm.example.com (may be repeated)",
    )
    p.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let pages of this origin connect, too, such as https://llm.example.com (may be repeated)",
    )


def _batch(commands: _Commands) -> None:
    p = _command(
        commands,
        "batch",
        "judge launches given as JSON lines, one answer a line",
        """
echo '{"id": 1, "argv": ["--model-path", "{models}/my-model"], "env": {}, "version": "0.5.19", "gpu": "h100"}' \\
  | spec-lsp batch --models DIR
""",
    )
    p.add_argument("--models", metavar="DIR", help="what {models} stands for: a folder of model folders")
    p.add_argument("--jobs", type=_positive, metavar="N", default=1, help="processes (default: 1)")


def _catalog(commands: _Commands) -> None:
    p = commands.add_parser(
        "catalog", help="list the known SGLang releases, compare with one, or add one", allow_abbrev=False
    )
    p.description = "List the SGLang releases that spec-lsp knows, compare your own SGLang with them, or add one."
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)
    _command(actions, "list", "list the releases that are known", "spec-lsp catalog list")
    b = _command(
        actions,
        "build",
        "read the flags of an SGLang and add them to the shipped catalogs",
        """
spec-lsp catalog build site-packages/sglang --python ./venv/bin/python     exact: imports it
spec-lsp catalog build ~/src/sglang                                        reads the sources only
spec-lsp catalog build ~/src/sglang --dry-run                              shows the differences
""",
    )
    b.add_argument("path", metavar="PATH-TO-SGLANG", help="the package, an unpacked wheel or a checkout")
    b.add_argument("--release", metavar="V", help="the release, where the package does not say")
    b.add_argument("--python", metavar="INTERPRETER", help="import SGLang there (exact) instead of reading the sources")
    b.add_argument("--prelude", metavar="SCRIPT", help="runs first in that interpreter")
    b.add_argument("--dry-run", action="store_true", help="write nothing")
    c = _command(
        actions,
        "compare",
        "show what an SGLang has otherwise than the release it is nearest to, and the rules concerned",
        """
spec-lsp catalog compare ./third_party/sglang
spec-lsp catalog compare .venv
""",
    )
    c.add_argument("path", metavar="PATH-TO-SGLANG", help="a checkout, an unpacked wheel or an environment")


# --- options that several commands have ------------------------------------------------------------------------------


def _worlds(p: argparse.ArgumentParser, more: str, *, once: bool = False) -> None:
    kind: dict[str, object] = {} if once else {"action": "append", "default": []}
    p.add_argument("--sglang", metavar="V", help=f"the SGLang that will run: 0.5.19, or a path{more}", **kind)  # type: ignore[arg-type]
    p.add_argument("--gpu", metavar="NAME", help=f"the GPU it will run on, such as h200{more}", **kind)  # type: ignore[arg-type]
    p.add_argument(
        "--models", metavar="DIR", action="append", default=[], help="folder of model folders (DIR/NAME/config.json)"
    )


def _which_files(p: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    files = p.add_argument_group("which files")
    files.add_argument("--exclude", metavar="PATTERN", action="append", default=[], help="leave out, as in .gitignore")
    files.add_argument("--force-exclude", action="store_true", help="apply `exclude` to files that are named, too")
    return files


def _color(p: argparse._ActionsContainer) -> None:
    p.add_argument(
        "--color",
        metavar="WHEN",
        default="auto",
        choices=("auto", "always", "never"),
        help="colours: auto (on a terminal, unless NO_COLOR is set), always, never",
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


COMMANDS = {
    "check": _check,
    "launches": _launches,
    "verify": _verify,
    "resolve": _resolve,
    "explain": _explain,
    "rules": _rules,
    "settings": _settings,
    "schema": _schema,
    "server": _server,
    "playground": _playground,
    "batch": _batch,
    "catalog": _catalog,
}
"""What adds each command, in the order of the help."""
