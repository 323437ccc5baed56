"""The rules that apply before resolution: those of the shell's reading, of argparse and of spec-lsp's own comments.

Codes 1–99. Findings of `catalog.binding` and `syntax` refer to these rules by their `kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module

from spec_lsp.catalog.binding import BindError
from spec_lsp.resolution.engine import RULES, Rule, Severity, as_examples, declare


def rule(
    code: str, name: str, *, topic: str, severity: Severity = "error", sglang: str = "", raises: str = "",
    bad: str | tuple[str, ...] = (), good: str | tuple[str, ...] = (),
) -> Callable[[str], Rule]:  # fmt: skip
    """Declare a rule as `Handler.refuses` does; the returned function is called with the rule's documentation."""

    def enter(text: str) -> Rule:
        examples = as_examples(bad), as_examples(good)
        return declare(Rule(code, name, text, topic, sglang, raises, False, severity, False, "", "", *examples))

    return enter


_of_argparse = partial(rule, topic="arguments", sglang="server_args.py:prepare_server_args", raises="SystemExit")
_of_config_file = partial(rule, topic="arguments", raises="ValueError")
_of_servers = partial(rule, severity="warning")

# fmt: off

# --- argparse ----------------------------------------------------------------------------------------------------------

UNKNOWN_FLAG = _of_argparse("SPC001", "unknown-flag", bad="--max-model-len 4096", good="--context-length 4096")(
    """The flag does not exist in this release of SGLang.

    argparse stops the launch with `unrecognized arguments`. Flags are added, renamed and removed every two weeks; the message names the
    releases that have the flag, or the flag that was probably meant."""
)
AMBIGUOUS_FLAG = _of_argparse("SPC002", "ambiguous-flag", bad="--disable-flashinfer", good="--disable-flashinfer-autotune")(
    """The abbreviated flag fits several flags.

    argparse accepts an abbreviation only while one flag starts with it. A release that adds a flag with the same beginning makes an
    abbreviation that worked before an error. Write the flag in full."""
)
INVALID_CHOICE = _of_argparse("SPC003", "invalid-choice", bad="--attention-backend flash", good="--attention-backend flashinfer")(
    """The flag does not accept this value.

    The flag accepts one of a fixed list of values in this release, and argparse stops the launch at any other."""
)
INVALID_VALUE = _of_argparse("SPC004", "invalid-value", bad="--tp-size two", good="--tp-size 2")(
    """The value cannot be read as the flag's type.

    argparse converts the text (to a whole number, a number, JSON, …) and stops the launch when that fails."""
)
MISSING_VALUE = _of_argparse("SPC005", "missing-value", bad="--tp-size", good="--tp-size 2")(
    """The flag needs a value, and none is given.

    The flag stands at the end of the command or before another flag. argparse stops the launch."""
)
UNEXPECTED_VALUE = _of_argparse("SPC006", "unexpected-value", bad="--trust-remote-code=true", good="--trust-remote-code")(
    """The flag is a switch and accepts no value.

    Switches are turned on by their presence alone: `--flag=true` stops the launch."""
)
STRAY_ARGUMENT = _of_argparse("SPC007", "stray-argument", bad="--tp-size 2 4", good="--tp-size 2")(
    """The word belongs to no flag.

    SGLang accepts no word without a flag but the model of `sglang serve`; argparse stops the launch with `unrecognized arguments`. Often
    it is a value too many, or a flag that lost its dashes."""
)
MISSING_FLAG = _of_argparse("SPC008", "missing-flag", bad="model=none -- --tp-size 2", good="--model-path {models}/llama-3.1-8b")(
    """A flag that SGLang requires is not given.

    SGLang cannot start without it."""
)
CONFIG_MISSING = _of_config_file("SPC009", "config-file-missing",
    sglang="server_args_config_parser.py:_validate_yaml_file", bad="--config missing.yaml", good="--tp-size 2")(
    """The --config file is not there, or is not named as SGLang expects.

    SGLang reads the file before anything else: it must exist and end in .yaml or .yml."""
)
CONFIG_TWICE = _of_config_file("SPC010", "config-given-twice",
    sglang="server_args_config_parser.py:_extract_config_file_path", bad="--config a.yaml --config b.yaml", good="--tp-size 2")(
    """`--config` is given twice.

    SGLang accepts one file and stops at a second one. Merge the files."""
)
CONFIG_NOT_A_MAPPING = _of_config_file("SPC011", "config-not-a-mapping", sglang="server_args_config_parser.py:_parse_yaml_config")(
    """The --config file does not hold one mapping of flags to values.

    SGLang accepts a YAML file whose top level is a mapping: `tp-size: 2`, one line a flag. It stops at a list, at an empty file, and at
    YAML that cannot be read."""
)
CONFIG_KEY = _of_config_file("SPC014", "config-key-not-taken", sglang="server_args_config_parser.py:_convert_config_to_args")(
    """The flag cannot be given in a --config file.

    SGLang turns keys into flags by what kind of flag they are, and stops at kinds that it cannot convert, such as deprecated flags. Give
    it on the command line."""
)
REMOVED_FLAG = rule("SPC012", "removed-flag", topic="arguments", sglang="server_args.py:__call__", raises="ValueError")(
    """The flag was removed, and SGLang refuses to start with it.

    SGLang still recognizes the flag, but refuses to start with it, so that no launch silently loses what the flag did."""
)
CONFIG_IGNORED = rule("SPC013", "config-ignored", topic="arguments", severity="warning")(
    """SGLang silently ignores this spelling of --config.

    SGLang looks for the exact word `--config`, followed by the file. `--config=x.yaml` and an abbreviation are taken by argparse and
    then forgotten: the launch starts without a single value of the file."""
)

# --- what works but is not what it seems -------------------------------------------------------------------------------

REPEATED_FLAG = rule("SPC020", "repeated-flag", topic="arguments", severity="warning")(
    """The flag is given again later with another value.

    argparse keeps the last one, so the earlier value has no effect. A flag on the command line also wins over the same key of a
    `--config` file, which is not reported."""
)
DEPRECATED_FLAG = rule("SPC021", "deprecated-flag", topic="arguments", severity="hint")(
    """The flag still works but has a successor.

    SGLang warns about it at start and will remove it in a later release."""
)
OVERRIDDEN_VALUE = rule("SPC022", "overridden-value", topic="arguments", severity="information")(
    """SGLang will run with another value than the one typed.

    SGLang changes some values without stopping, and says so, if at all, in one line of a long log. The message gives the value that will
    really be used and why."""
)
RELEASE_NOT_SHIPPED = rule("SPC023", "unknown-release", topic="spec-lsp", severity="information")(
    """spec-lsp does not know this release of SGLang.

    The launch is checked against a post-release of the same version where spec-lsp knows one (0.5.8.post1 for 0.5.8), else against the
    nearest older release. On a release newer than the newest known one, unknown flags and choices are warnings only. An SGLang at hand, or
    named by its path, that cannot be read is told, too: launches are then checked as if it were not there."""
)
UNREAD_VARIABLE = rule("SPC024", "unread-variable", topic="environment", severity="hint")(
    """SGLang does not read this environment variable.

    Variables come and go with releases as flags do, but nothing stops a launch that sets one nobody reads: it is silently ignored. The
    message says since when, and what took its place. Variables that the file uses itself are left alone."""
)
DEPRECATED_VARIABLE = rule("SPC025", "deprecated-variable", topic="environment", severity="hint", sglang="environ.py")(
    """The environment variable is deprecated.

    SGLang warns about it at start, or no longer does what it says, and will remove it in a later release."""
)
VARIABLE_VALUE = rule("SPC026", "variable-value", topic="environment", severity="hint", sglang="environ.py:parse")(
    """SGLang cannot read the value of this environment variable.

    A switch accepts 1, true, 0 or false; a number is written in digits. SGLang warns about anything else in its log and goes on as if
    the variable were not set, or were off."""
)
MORE_GPUS_THAN_VISIBLE = rule("SPC027", "more-gpus-than-visible", topic="parallel", severity="warning")(
    """The launch needs more GPUs on a node than it is given.

    SGLang starts one process for each of tensor × pipeline parallel ranks (and for each data parallel replica that has GPUs of its own),
    and each takes a GPU. A process whose GPU is not visible dies while it starts."""
)
CHANGED_VALUE = rule("SPC028", "changed-value", topic="spec-lsp", severity="information")(
    """Another release of SGLang resolves another value.

    Told by `spec-lsp check --upgrade` alone: the launch is resolved at its present release and at the one asked for, on the same
    hardware, and this field comes out differently. Give the flag to keep the old value."""
)
ABBREVIATED_FLAG = rule("SPC029", "abbreviated-flag", topic="arguments", severity="information")(
    """SGLang reads the flag as an abbreviation of a much longer one.

    argparse completes any beginning that fits one flag alone. So a flag that is gone, or that never was, may turn on something else that
    begins with the same letters, and a later release may end the launch when a second flag fits. Write the flag in full, or remove it."""
)

# --- the shell ---------------------------------------------------------------------------------------------------------

FLAGS_AFTER_COMMENT = rule("SPC030", "flags-after-comment", topic="shell")(
    """A comment line ends the command; the flags below it are lost.

    A backslash joins the next line to the command, and a `#` there starts a comment that runs to the end of that line, where the command
    ends. Bash then takes the flags below for a command of their own. Move the comment above the command."""
)
BLANK_AFTER_BACKSLASH = rule("SPC031", "blank-after-backslash", topic="shell")(
    """A blank after the backslash ends the command; the flags below it are lost.

    Only a backslash that is the last character of its line continues the command. With a space behind it, it is an escaped space: the
    command gets a stray word and ends there."""
)
EMPTY_LINE_IN_COMMAND = rule("SPC032", "empty-line-in-command", topic="shell")(
    """An empty line ends the command; the flags below it are lost.

    The backslash joins the empty line to the command, and the command ends at the end of that line."""
)
MISSING_BACKSLASH = rule("SPC033", "missing-backslash", topic="shell")(
    """A line without a backslash ends the command; the flags below it are lost.

    Each line of a continued command but the last must end in a backslash."""
)
LIST_FOR_A_SHELL = rule("SPC034", "list-for-a-shell", topic="shell")(
    """What looks like a list of arguments is not valid JSON, so Docker hands it to a shell.

    `CMD` and `ENTRYPOINT` are lists of arguments only where all of it is JSON: each argument in double quotes, commas between them.
    Anything else is a command line for `/bin/sh -c`, and a shell takes the bracket and the first argument for the name of a program."""
)

# --- launches that run together ----------------------------------------------------------------------------------------

PAGE_SIZES_DIFFER = _of_servers("SPC050", "page-sizes-differ", topic="disaggregation",
    sglang="disaggregation/common/conn.py:try_ensure_parallel_info")(
    """A decode server and its prefill server have different page sizes.

    The KV cache is sent page by page, so both servers need the same `--page-size`; attention backends may change it, and the resolved
    sizes count. Since SGLang 0.5.8 the decode server compares them at its first request and refuses."""
)
KV_CACHE_DTYPES_DIFFER = _of_servers("SPC051", "kv-cache-dtypes-differ", topic="disaggregation",
    sglang="disaggregation/common/conn.py:try_ensure_parallel_info")(
    """A decode server and its prefill server keep the KV cache in different types.

    The KV cache is sent as it lies in memory, so both servers need the same `--kv-cache-dtype`. Since SGLang 0.5.10 the decode server
    compares them at its first request and refuses."""
)
PIPELINE_SIZES_DIFFER = _of_servers("SPC052", "pipeline-sizes-differ", topic="disaggregation",
    sglang="disaggregation/common/conn.py:_resolve_rank_mapping")(
    """A decode server has several pipeline stages, but not as many as its prefill server.

    A decode server takes the layers of a prefill server stage by stage, or all of them with one stage of its own: its `--pp-size` is 1
    or the prefill server's."""
)
TRANSFER_BACKENDS_DIFFER = _of_servers("SPC053", "transfer-backends-differ", topic="disaggregation",
    sglang="disaggregation/utils.py:get_kv_class")(
    """A decode server and its prefill server send the KV cache by different means.

    Each `--disaggregation-transfer-backend` has a protocol of its own; a Mooncake server cannot send to a NIXL one, and requests wait
    until they time out."""
)
DRAFT_MODELS_DIFFER = _of_servers("SPC054", "draft-models-differ", topic="disaggregation",
    sglang="disaggregation/prefill.py:PrefillBootstrapQueue")(
    """A decode server and its prefill server draft with different models.

    The prefill server fills the draft's KV cache too and sends it along; the decode server's draft reads it as its own."""
)
TREE_WIDER_THAN_PREFILLS = _of_servers("SPC055", "tree-wider-than-prefills", topic="disaggregation",
    sglang="speculative/eagle_disaggregation.py")(
    """A decode server drafts wider trees than its prefill server.

    The prefill server sends the first candidates along with the prompt's KV cache, as many as its own `--speculative-eagle-topk`; a
    decode server that wants more finds zeros."""
)
RANKS_DIFFER = _of_servers("SPC056", "ranks-differ", topic="parallel")(
    """A rank of a launch on several nodes runs with another value than rank 0.

    All ranks compute in step: each waits for the others in the same collectives. SGLang does not compare what they were given; where
    layouts, sizes, backends or speculation differ it hangs, or fails far from the cause."""
)
RANKS_DO_NOT_MEET = _of_servers("SPC057", "ranks-do-not-meet", topic="parallel", sglang="server_args.py:PortArgs.init_new")(
    """A rank of a launch on several nodes waits at another address than rank 0.

    `--dist-init-addr` is one address for all ranks: that of the node with `--node-rank 0`. Ranks at different addresses wait until they
    time out."""
)
MORE_GPUS_TOGETHER = _of_servers("SPC058", "more-gpus-together", topic="parallel")(
    """The ranks of one launch need more GPUs together than they are given.

    Ranks of a launch run at the same time. Where several of them run on one node, they share the GPUs that it is given."""
)

# --- spec-lsp's own comments -------------------------------------------------------------------------------------------

UNUSED_IGNORE = rule("SPC040", "unused-ignore", topic="spec-lsp", severity="hint")(
    """The ignore comment has no effect.

    The finding it was written for is gone, or the rule's name is misspelt."""
)
UNKNOWN_DIRECTIVE = rule("SPC041", "unknown-directive", topic="spec-lsp", severity="warning")(
    """spec-lsp cannot read this comment.

    Valid comments are `# spec-lsp: ignore[rule-name] reason`, `# spec-lsp: ignore-file[rule-name] reason` and `# spec-lsp: sglang=0.5.19
    gpu=b200`."""
)

# --- what spec-lsp itself could not do ---------------------------------------------------------------------------------

NOT_JUDGED = rule("SPC042", "not-judged", topic="spec-lsp", severity="warning")(
    """spec-lsp could not judge the launch.

    This is a bug in spec-lsp, not a mistake in the launch. Nothing is reported for this launch; everything else is checked. `spec-lsp
    check` exits with 2. Please report what the message names."""
)
NOT_READ_WHOLE = rule("SPC043", "not-read-whole", topic="spec-lsp", severity="warning")(
    """The file was not read completely.

    spec-lsp bounds the work that any file can cost it, so that no file can keep it busy. What lies past a bound is taken as unknown, and
    launches that are started there are not checked. No file that people are known to write meets one."""
)
SETTING_NOT_USED = rule("SPC044", "setting-not-used", topic="spec-lsp", severity="warning")(
    """spec-lsp cannot use this setting.

    The file of settings cannot be read, has a key that spec-lsp does not know, or a value that it cannot use. The wrong part is ignored,
    and everything else applies. A settings file is part of the repository, so it may not name folders outside of it: model folders and
    interpreters elsewhere are named on the command line, or in the editor's settings."""
)
FILE_LEFT_OUT = rule("SPC045", "file-left-out", topic="spec-lsp", severity="hint")(
    """spec-lsp does not read a file that the launch depends on.

    spec-lsp reads the regular files of the workspace and nothing else: the folders that are open in the editor, or what is named on the
    command line with the checkout around it. A file that lies elsewhere, itself or behind a link, is not opened, so that checking a
    repository is as safe as looking at it; what the file sets is unknown."""
)

# fmt: on

_BY_KIND = {
    "unknown-flag": UNKNOWN_FLAG,
    "ambiguous-prefix": AMBIGUOUS_FLAG,
    "invalid-choice": INVALID_CHOICE,
    "invalid-value": INVALID_VALUE,
    "missing-value": MISSING_VALUE,
    "unexpected-value": UNEXPECTED_VALUE,
    "stray-argument": STRAY_ARGUMENT,
    "required": MISSING_FLAG,
    "config-missing": CONFIG_MISSING,
    "config-not-mapping": CONFIG_NOT_A_MAPPING,
    "config-twice": CONFIG_TWICE,
    "config-ignored": CONFIG_IGNORED,
    "removed-flag": REMOVED_FLAG,
}


def rule_of(error: BindError) -> Rule:
    """The rule that explains a binding error."""
    if error.kind == "config-not-mapping" and error.typed:
        return CONFIG_KEY
    return _BY_KIND[error.kind]


# --- all of them -------------------------------------------------------------------------------------------------------


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code. Rules are declared where they are checked, so the modules of all releases' handlers are imported."""
    from spec_lsp.resolution import pipeline

    for module in sorted(
        {name.partition(".")[0] for name in pipeline.all_names() if name not in pipeline.NOT_FOLLOWED}
    ):
        import_module(f"{pipeline.__package__}.{module}")
    return tuple(sorted(RULES.values(), key=lambda rule: (len(rule.code), rule.code)))


TOPICS = ("shell", "arguments", "spec-lsp")
"""The topics of what happens first to a launch; the other topics follow by name."""


def by_topic() -> dict[str, list[Rule]]:
    """The rules of each topic, in the order of their codes."""
    topics = {rule.topic for rule in all_rules()}
    ordered = [t for t in TOPICS if t in topics] + sorted(topics - set(TOPICS))
    return {topic: [rule for rule in all_rules() if rule.topic == topic] for topic in ordered}


def find_rule(name: str) -> Rule | None:
    """A rule by name or code, however the code is written (`SPC103`, `spc103`)."""
    return next((r for r in all_rules() if name in (r.name, r.code) or name.upper() == r.code), None)
