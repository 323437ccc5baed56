"""`spec-lsp check`, end to end: exit codes, inputs, formats, fixes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from spec_lsp.cli import check
from spec_lsp.cli.checker import Task
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport
from spec_lsp.facts.hardware import DEVICES
from tests.cli.conftest import CLEAN, REFUSED, UNKNOWN_FLAG, Ran

Run = Callable[..., Ran]

# --- exit codes --------------------------------------------------------------------------------------------------------

EXITS = [
    (["clean.sh"], 0),
    (["unknown.sh"], 1),
    (["refused.sh"], 1),
    (["."], 1),
    ([], 1),
    (["unknown.sh", "--exit-zero"], 0),
    (["gone.sh"], 2),
    (["clean.sh", "--format", "xml"], 2),
    (["clean.sh", "--sglang", "newest"], 2),
    (["clean.sh", "--gpu", "h9000"], 2),
    (["clean.sh", "--jobs", "0"], 2),
    (["clean.sh", "--fix", "--diff"], 2),
    (["-", "clean.sh"], 2),
    (["clean.sh", "--sglang", "0.5.19", "--sglang", "0.5.23", "--gpu", "h100", "--gpu", "B200"], 0),
]


@pytest.mark.parametrize(("words", "code"), EXITS, ids=[" ".join(w) for w, _ in EXITS])
def test_exit_code(words: list[str], code: int, run: Run) -> None:
    assert run("check", *words).code == code


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gone.sh"], "`gone.sh` does not exist"),
        (["x.sh", "--gpu", "h10"], "`h10` is not a GPU that spec-lsp knows. Did you mean `h100`? It knows"),
        (["x.sh", "--sglang", "newest"], "`newest` is not a release of SGLang; write it as 0.5.19, known are 0."),
        (["x.sh", "--fix", "--diff"], "give one of them"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words: list[str], says: str, run: Run) -> None:
    ran = run("check", *words)
    assert ran.out == ""
    assert ran.err.startswith("spec-lsp: error: ")
    assert says in ran.err
    assert ran.err.count("\n") == 1


# --- inputs ------------------------------------------------------------------------------------------------------------


def found(ran: Ran) -> list[tuple[str, str, int]]:
    """File, rule and line (from 1) of each finding of a JSON report."""
    return [(f["file"], f["rule"], f["range"]["start"]["line"] + 1) for f in json.loads(ran.out)]


def test_a_folder_is_walked_and_files_without_the_word_are_not_parsed(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other.sh").write_text("echo hello\n")
    (folder / "image.png").write_text(UNKNOWN_FLAG)
    parsed: list[str] = []
    real = check.check_all

    def noted(task: Task, paths: Iterable[str], jobs: int | None, progress: Progress) -> Iterator[FileReport]:
        parsed.extend(paths)
        return real(task, parsed, jobs, progress)

    monkeypatch.setattr(check, "check_all", noted)
    run("check", ".")
    assert {os.path.basename(p) for p in parsed} == {"clean.sh", "refused.sh", "unknown.sh"}


def test_files_are_named_relative_to_the_current_folder(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    shutil.move("unknown.sh", "sub/unknown.sh")
    assert [f[0] for f in found(run("check", "sub", "--format", "json"))] == ["sub/unknown.sh"]
    monkeypatch.chdir(folder / "llama")
    assert [f[0] for f in found(run("check", "../sub", "--format", "json"))] == [str(folder / "sub/unknown.sh")]


def test_standard_input_has_the_name_that_is_given(spawn: Run) -> None:
    ran = spawn("check", "-", "--stdin-filename", "deploy/run.sh", "--format", "json", input=UNKNOWN_FLAG.encode())
    assert ran.code == 1
    assert found(ran) == [("deploy/run.sh", "unknown-flag", 2)]


def test_standard_input_without_a_name(spawn: Run) -> None:
    ran = spawn("check", "-", "--format", "json", input=UNKNOWN_FLAG.encode())
    assert found(ran) == [("<stdin>", "unknown-flag", 2)]


ENCODINGS = {
    "byte order mark": b"\xef\xbb\xbf" + UNKNOWN_FLAG.encode(),
    "crlf": UNKNOWN_FLAG.replace("\n", "\r\n").encode(),
    "utf-16": b"\xff\xfe" + UNKNOWN_FLAG.encode("utf-16-le"),
    "latin-1": UNKNOWN_FLAG.replace("#!/bin/bash", "#!/bin/bash -e # caf\xe9").encode("latin-1"),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_encodings(name: str, run: Run, folder: Path) -> None:
    (folder / "unknown.sh").write_bytes(ENCODINGS[name])
    report = json.loads(run("check", ".", "--format", "json", "--exclude", "refused.sh").out)
    column = UNKNOWN_FLAG.split("\n")[1].index("--no-such")
    assert [(f["rule"], f["range"]["start"]) for f in report] == [("unknown-flag", {"line": 1, "character": column})]


BROKEN = {
    "empty": b"",
    "binary": bytes(range(256)) * 40 + b"sglang",
    "nul": b"python -m sglang.launch_server --tp \0 2\n",
    "unclosed quote": b"python -m sglang.launch_server --model-path 'x\n",
    "a long line": b"python -m sglang.launch_server --model-path x " + b"--tp 2 " * 20000 + b"\n",
    "lone continuation": b"python -m sglang.launch_server \\",
    "surrogates": "sglang.launch_server \ud800".encode("utf-8", "surrogatepass"),
}


@pytest.mark.parametrize("suffix", ["sh", "yaml", ""])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_answered(name: str, suffix: str, run: Run, folder: Path) -> None:
    path = folder / f"broken.{suffix}"
    path.write_bytes(BROKEN[name])
    ran = run("check", path)
    assert ran.code in (0, 1)
    assert ran.err == ""
    assert ran.out.splitlines()[-1].startswith(("Checked ", "1 can be", "2 can be"))
    assert max(map(len, ran.out.splitlines())) < 1000, "long lines are shown in part"


def test_a_file_that_cannot_be_read_does_not_hide_the_others(run: Run, folder: Path) -> None:
    (folder / "loop.sh").symlink_to("loop.sh")
    ran = run("check", "loop.sh", "unknown.sh")
    assert ran.code == 2
    assert "spec-lsp: error: loop.sh is a link that leads nowhere" in ran.err
    assert "unknown-flag" in ran.out
    assert "1 file not checked" in ran.out


def test_an_error_of_ours_in_one_file_does_not_hide_the_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from spec_lsp.cli import checker

    real = checker.analyse

    def analyse(document, *rest):  # type: ignore[no-untyped-def]
        if document.name.endswith("clean.sh"):
            raise ZeroDivisionError("planted")
        return real(document, *rest)

    monkeypatch.setattr(checker, "analyse", analyse)
    ran = run("check", "clean.sh", "unknown.sh")
    assert ran.code == 2
    assert "ZeroDivisionError: planted" in ran.err
    assert "internal error in clean.sh" in ran.err
    assert "unknown-flag" in ran.out


@pytest.mark.parametrize("broken", ["judge", "fixes_for"])
def test_a_fault_costs_its_launch(broken: str, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are judged, the run ends with 2, and what is to be reported is told."""
    from spec_lsp.analysis import check as checking
    from spec_lsp.analysis import fixes

    module = checking if broken == "judge" else fixes
    real = getattr(module, broken)
    calls = []

    def second_fails(*given, **named):  # type: ignore[no-untyped-def]
        calls.append(given)
        if len(calls) == 2:
            raise ZeroDivisionError("planted")
        return real(*given, **named)

    monkeypatch.setattr(module, broken, second_fails)
    line = "python3 -m sglang.launch_server --model-path ./llama"
    (folder / "three.sh").write_text("".join(f"{line} {flag}\n" for flag in ("--no-a-flag", "--pagesize 1", "--no-c")))
    ran = run("check", "three.sh", "unknown.sh", "--jobs", "1")
    assert ran.code == 2
    assert ran.out.count("unknown-flag") == (3 if broken == "judge" else 4)
    assert ran.out.count("not-judged") == (1 if broken == "judge" else 0)
    assert "1 internal error" in ran.out
    assert "ZeroDivisionError: planted" in ran.err
    assert "internal error in three.sh" in ran.err


# --- settings, directives ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["pipe.sh", "pipe.yaml", "Makefile", "pipe"])
def test_a_pipe_in_a_folder_is_not_waited_for(name: str, run: Run, folder: Path) -> None:
    os.mkfifo(folder / name)
    assert run("check", ".").code == 1


def test_a_file_with_a_line_too_long_to_read_is_told(run: Run, folder: Path) -> None:
    (folder / "data.sh").write_text(f"python -m sglang.launch_server --model-path {'x' * 2_000_000}\n")
    ran = run("check", "data.sh", "clean.sh")
    assert ran.code == 0
    assert "not-read-whole" in ran.out
    assert "This file has a line of more than 500,000 characters" in ran.out
    assert "1 launch in 2 files" in ran.out


def test_excluded_files_are_left_out_of_folders_but_not_when_named(run: Run, folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text('exclude = ["refused.sh", "un*"]\n')
    assert found(run("check", ".", "--format", "json")) == []
    assert len(found(run("check", "unknown.sh", "--format", "json"))) == 1
    assert found(run("check", "unknown.sh", "--force-exclude", "--format", "json")) == []


def test_severities_of_the_settings_decide(run: Run, folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text('rules = { unknown-flag = "warning" }\n')
    ran = run("check", "unknown.sh")
    assert ran.code == 0
    assert ran.out.startswith("warning: unknown-flag[")
    (folder / "spec-lsp.toml").write_text('rules = { SPC001 = "off" }\n')
    assert run("check", "unknown.sh").out == "Checked 1 launch in 1 file: nothing to report.\n"


def test_what_is_wrong_with_the_settings_is_told_once(run: Run, folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text('colour = "red"\ngpu = "h9000"\n')
    ran = run("check", ".")
    assert [line for line in ran.out.splitlines() if "[SPC044]" in line or "spec-lsp.toml:" in line] == [
        "warning: setting-not-used[SPC044]: Unknown setting `colour`.",
        " --> spec-lsp.toml:1:1",
        "warning: setting-not-used[SPC044]: Setting `gpu`: 'h9000' is not a GPU that spec-lsp knows; did you mean `h800`? "
        f"(it knows {', '.join(DEVICES)}).",
        " --> spec-lsp.toml:2:1",
    ]
    assert ran.err == ""


def test_settings_that_do_not_parse_are_told(run: Run, folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text("gpu = \n")
    ran = run("check", "clean.sh")
    assert ran.out.startswith("error: setting-not-used[SPC044]: spec-lsp.toml cannot be read: invalid value.")
    assert "Checked 1 launch in 2 files" in ran.out
    assert ran.code == 1


def test_ignored_findings_are_counted_and_can_be_shown(run: Run, folder: Path) -> None:
    (folder / "unknown.sh").write_text(UNKNOWN_FLAG.replace("at-all", "at-all  # spec-lsp: ignore[unknown-flag] soon"))
    assert run("check", "unknown.sh").out == "Checked 1 launch in 1 file: nothing to report, 1 ignored by comments.\n"
    assert run("check", "unknown.sh", "--ignore-directives").code == 1


# --- what is shown -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "gitlab", "junit"])
def test_formats_write_to_a_file_too(form: str, run: Run, folder: Path) -> None:
    shown = run("check", "unknown.sh", "--format", form)
    written = run("check", "unknown.sh", "--format", form, "--output", "report")
    assert written.out == ""
    assert (folder / "report").read_text("utf-8") == shown.out


def test_output_that_cannot_be_written_is_told(run: Run) -> None:
    ran = run("check", "clean.sh", "--output", "no/such/folder")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be written" in ran.err


def test_colours_only_where_they_are_wanted(spawn: Run) -> None:
    assert "\x1b" not in spawn("check", "unknown.sh").out
    assert "\x1b" in spawn("check", "unknown.sh", "--color", "always").out
    assert "\x1b" in spawn("check", "unknown.sh", FORCE_COLOR="1").out
    assert "\x1b" not in spawn("check", "unknown.sh", FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b" not in spawn("check", "unknown.sh", "--color", "never", FORCE_COLOR="1").out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--diff", "--format", "json"], "--diff shows a patch, which --format json has no place for"),
        (["--statistics", "--format", "sarif"], "--statistics is for --format text and json, not sarif"),
    ],
)
def test_options_that_exclude_each_other(options: list[str], says: str, run: Run) -> None:
    ran = run("check", "unknown.sh", *options)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_paths_may_stand_behind_options(run: Run) -> None:
    ran = run("check", "unknown.sh", "--format", "json", "no-such-file.sh")
    assert ran.code == 2
    assert "no-such-file.sh" in ran.err


def test_statistics(run: Run) -> None:
    assert run("check", "unknown.sh", "--statistics").out.startswith("1  error    unknown-flag[SPC001]\n")


def test_several_processes_say_the_same(run: Run, folder: Path) -> None:
    for n in range(24):
        (folder / f"more{n:02}.sh").write_text((CLEAN, UNKNOWN_FLAG, REFUSED)[n % 3])
    one = run("check", ".", "--format", "json", "--jobs", "1")
    assert run("check", ".", "--format", "json", "--jobs", "2").out == one.out
    assert len(json.loads(one.out)) >= 16


# --- fixes -------------------------------------------------------------------------------------------------------------


def test_a_repair_is_offered(run: Run) -> None:
    ran = run("check", "refused.sh")
    assert "= fix: " in ran.out
    assert "`--fix --unsafe-fixes`" in ran.out


def test_fix_alone_changes_nothing_that_runs(run: Run, folder: Path) -> None:
    ran = run("check", "refused.sh", "--fix")
    assert ran.code == 1
    assert (folder / "refused.sh").read_text("utf-8") == REFUSED


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_unsafe_fixes_repair_the_launch_and_keep_the_file_s_form(
    line_end: str, mark: bytes, run: Run, folder: Path
) -> None:
    path = folder / "refused.sh"
    path.write_bytes(mark + REFUSED.replace("\n", line_end).encode())
    path.chmod(0o755)
    ran = run("check", "refused.sh", "--fix", "--unsafe-fixes")
    assert ran.code == 0, ran.out
    assert ran.out.startswith("fixed: refused.sh:")
    assert path.stat().st_mode & 0o777 == 0o755
    data = path.read_bytes()
    assert data.startswith(mark + b"#!/bin/bash")
    assert data.decode("utf-8-sig").replace(line_end, "\n") != REFUSED
    assert ("\r\n" in data.decode()) == (line_end == "\r\n")
    assert data.decode().count("\n") == REFUSED.count("\n")
    assert "# Zoë" in data.decode()
    assert run("check", "refused.sh").code == 0


def test_diff_shows_what_fix_would_do_and_changes_nothing(run: Run, folder: Path) -> None:
    ran = run("check", "refused.sh", "--diff", "--unsafe-fixes")
    assert ran.code == 1
    assert (folder / "refused.sh").read_text("utf-8") == REFUSED
    assert ran.out.startswith("--- refused.sh\n+++ refused.sh\n@@ ")
    assert ran.out.endswith("1 file would be changed.\n")
    patch = ran.out[: ran.out.index("Checked ")]
    if shutil.which("patch"):
        subprocess.run(["patch", "-p0", "-s"], input=patch, text=True, check=True, cwd=folder)
        assert run("check", "refused.sh").code == 0


def test_the_repaired_text_of_standard_input_goes_to_standard_output(spawn: Run, folder: Path) -> None:
    ran = spawn("check", "-", "--stdin-filename", "refused.sh", "--fix", "--unsafe-fixes", input=REFUSED.encode())
    assert ran.code == 0
    assert ran.out.startswith("#!/bin/bash\n# spec-lsp: sglang=0.5.23")
    assert ran.out != REFUSED
    assert "1 fixed" in ran.err
    assert (folder / "refused.sh").read_text("utf-8") == REFUSED


def test_a_file_that_cannot_be_written_is_told(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    ran = run("check", "refused.sh", "--fix", "--unsafe-fixes")
    assert ran.code == 2
    assert "refused.sh cannot be written: Permission denied" in ran.err
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == []


# --- ends --------------------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_ends_it_quietly(folder: Path) -> None:
    for n in range(100):
        (folder / f"many{n}.sh").write_text(UNKNOWN_FLAG)
    command = [sys.executable, "-m", "spec_lsp.cli", "check", ".", "--jobs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_it_quietly(jobs: str, folder: Path) -> None:
    for n in range(500):
        (folder / f"many{n}.sh").write_text(REFUSED)
    command = [sys.executable, "-m", "spec_lsp.cli", "check", ".", "--jobs", jobs]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == b""


def test_fix_changes_what_is_named_or_was_found_and_nothing_else(run: Run, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "common").mkdir()
    (folder / "jobs").mkdir()
    shared = "TOPK=4\n"
    (folder / "common" / "env.sh").write_text(shared)
    (folder / "jobs" / "a.sh").write_text(REFUSED.replace("./", "../").replace("TOPK=4", "source ../common/env.sh"))
    ran = run("check", "jobs", "--fix", "--unsafe-fixes")
    assert (folder / "common" / "env.sh").read_text() == shared
    assert "common/env.sh is not among the files to check: it is not changed" in ran.err
    run("check", "jobs", "common", "--fix", "--unsafe-fixes")
    assert (folder / "common" / "env.sh").read_text() == "TOPK=1\n"


def test_model_folders_outside_are_read_when_the_command_line_names_them(
    run: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shelf = tmp_path_factory.mktemp("models")
    (shelf / "mine").mkdir()
    (shelf / "mine" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "num_attention_heads": 30}')
    (folder / "a.sh").write_text("python3 -m sglang.launch_server --model-path mine --tp-size 7\n")
    (folder / "spec-lsp.toml").write_text(f'models = ["{shelf}"]\n')
    assert "lies outside the workspace" in run("check", "a.sh").out
    assert "30" not in run("check", "a.sh").out
    assert run("check", "a.sh", "--models", shelf).code == 1


def test_a_config_file_is_found_by_what_its_comment_says_and_named_without_its_folder(run: Run, folder: Path) -> None:
    (folder / "list.yaml").write_text("# spec-lsp: config\n- page\n")
    (folder / "open.yaml").write_text("# spec-lsp: config\nmodel-path: [\n")
    told = [line for line in run("check", ".").out.splitlines() if "config-not-a-mapping" in line]
    assert len(told) == 2
    assert all(": This file " in line and str(folder) not in line for line in told)


@pytest.mark.parametrize(
    "names", [["run.sh", "again.sh", "own.yaml"], ["own.yaml", "run.sh"], ["run.sh", "again.sh"], ["."]]
)
def test_what_a_config_file_says_wrong_is_told_once(names: list[str], run: Run, folder: Path) -> None:
    """For itself, and for each launch that uses it."""
    keys = {
        "quantisation": "unknown-flag",
        "page-size": "invalid-value",
        "load-balance-method": "invalid-choice",
        "disable-cuda-graph": "config-key-not-taken",
    }
    values = ("fp8", "x", "nobody", "true")
    (folder / "used").mkdir()
    written = "".join(f"{key}: {value}\n" for key, value in zip(keys, values, strict=True))
    (folder / "used" / "own.yaml").write_text(f"model-path: m\n{written}")
    for name in ("run.sh", "again.sh"):
        (folder / "used" / name).write_text("python -m sglang.launch_server --config own.yaml\n")
    out = run("check", *(f"used/{name}" for name in names), "--format", "json").out
    found = [(f["rule"], f["file"]) for f in json.loads(out)]
    assert sorted(found) == sorted((rule, "used/own.yaml") for rule in keys.values())
