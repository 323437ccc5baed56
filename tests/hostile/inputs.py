"""Repositories that somebody wrote to harm whoever looks at them. Each is made in a folder of its own, beside files that do not belong
to it and hold a canary."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

CANARY = "canary-8d1f"
FLAWED = (
    "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --attention-backend trtllm_mha"
    " --page-size 7\n"
)
"""A launch with something to tell and to repair."""
Make = Callable[[Path], None]
HOSTILE: dict[str, Make] = {}


def hostile(make: Make) -> Make:
    HOSTILE[make.__name__] = make
    return make


def made(name: str, outside: Path) -> Path:
    """The repository of a name, inside of a folder that holds what it must not touch."""
    folder = outside / name
    folder.mkdir()
    for at in (outside / "canary.sh", outside / "canary.yaml"):
        at.write_text(f"CANARY={CANARY}\npage-size: {CANARY}\n")
    (outside / "outside.sh").write_text(f"PAGE=7 # {CANARY}\n")
    model = outside / "model"
    model.mkdir()
    (model / "config.json").write_text(f'{{"architectures": ["{CANARY}"]}}')
    (folder / "a.sh").write_text(FLAWED)
    HOSTILE[name](folder)
    return folder


def snapshot(outside: Path, inside: Path) -> dict[str, bytes]:
    """What lies beside a repository."""
    files = (p for p in outside.rglob("*") if p.is_file() and inside not in p.parents)
    return {str(p): p.read_bytes() for p in files}


def repository(folder: Path, configuration: str = "") -> Path:
    """The folder as git has it after `git init`, made without git."""
    git = folder / ".git"
    for below in ("objects", "refs", "info", "hooks"):
        (git / below).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n{configuration}")
    return git


def running(folder: Path) -> str:
    """Git configuration that runs programs, in every way that a look at the files may come across."""
    run = f'"echo RAN >> {folder}/ran; false"'
    return (
        f"\tfsmonitor = {run}\n\tpager = {run}\n\tsshCommand = {run}\n\thooksPath = {folder}/hooks\n\texcludesFile = /dev/zero\n"
        f'[include]\n\tpath = ../more\n[diff]\n\texternal = {run}\n[filter "x"]\n\tclean = {run}\n\tsmudge = {run}\n'
    )


@hostile
def git_runs_a_monitor(folder: Path) -> None:
    repository(folder, running(folder))
    (folder / ".gitattributes").write_text("* filter=x\n")


@hostile
def git_of_git_itself(folder: Path) -> None:
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run(
            ["git", "-C", str(folder), "config", "core.fsmonitor", f"echo RAN >> {folder}/ran; false"], check=True
        )


@hostile
def folder_that_looks_bare(folder: Path) -> None:
    git = repository(folder / "deploy", f"\tworktree = .\n{running(folder)}")
    for part in git.iterdir():
        shutil.move(str(part), folder / "deploy")
    git.rmdir()
    (folder / "deploy" / "a.sh").write_text(FLAWED)


@hostile
def git_file_to_a_repository_elsewhere(folder: Path) -> None:
    other = folder / "sub" / "hidden"
    repository(other, running(folder))
    (folder / "sub" / ".git").write_text("gitdir: hidden/.git\n")
    (folder / ".git").write_text(f"gitdir: {folder.parent}\n")
    (folder.parent / "info").mkdir()
    (folder.parent / "info" / "exclude").write_text(f"*.sh\n{CANARY}\n")
    (folder / "sub" / "a.sh").write_text(FLAWED)


@hostile
def links_to_what_is_read(folder: Path) -> None:
    (folder / "v.sh").symlink_to("../canary.sh")
    (folder / "c.yaml").symlink_to(folder.parent / "canary.yaml")
    (folder / "up").symlink_to("..")
    (folder / ".env").symlink_to("../canary.sh")
    launch = "python3 -m sglang.launch_server --model-path x --page-size"
    (folder / "a.sh").write_text(f'source ./v.sh\n{launch} "$CANARY"\n')
    (folder / "b.sh").write_text(f'source up/canary.sh\n{launch} "$CANARY"\n')
    (folder / "c.sh").write_text(f'source ../canary.sh\n{launch} "$CANARY"\n. {folder.parent}/canary.sh\n')
    (folder / "d.sh").write_text(f"{launch} 8 --config c.yaml\n{launch} 8 --config up/canary.yaml\n")
    (folder / "compose.yaml").write_text(
        "services:\n  s:\n    image: lmsysorg/sglang:v0.5.19\n    env_file: [up/canary.sh]\n"
        "    extends: {file: c.yaml, service: CANARY}\n"
        "    command: python3 -m sglang.launch_server --model-path x --page-size ${CANARY}\n"
    )


@hostile
def links_to_what_is_changed(folder: Path) -> None:
    (folder / "v.sh").symlink_to("../outside.sh")
    (folder / "w").symlink_to("..")
    (folder / "a.sh").write_text(f"source ./v.sh\n{FLAWED.replace('7', chr(34) + '$PAGE' + chr(34))}")
    (folder / "b.sh").write_text(f"source w/outside.sh\n{FLAWED.replace('7', chr(34) + '$PAGE' + chr(34))}")


@hostile
def links_to_settings_and_pins(folder: Path) -> None:
    outside = folder.parent
    (outside / "settings.toml").write_text(f'gpu = "{CANARY}"\n')
    (outside / "pins.txt").write_text("sglang==0.4.0\n")
    (folder / "spec-lsp.toml").symlink_to("../settings.toml")
    (folder / "requirements.txt").symlink_to("../pins.txt")
    (folder / "pyproject.toml").symlink_to("../pyproject.toml")
    (folder / ".gitignore").symlink_to("../canary.sh")
    repository(folder)


@hostile
def settings_that_name_folders(folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text(
        f'models = ["/etc", "..", "{folder.parent}"]\npython = "{folder.parent}/venv/bin/python"\n'
    )
    (folder / "a.sh").write_text("python3 -m sglang.launch_server --model-path model --tp 3\n")


@hostile
def settings_that_start_programs(folder: Path) -> None:
    (folder / "spec-lsp.toml").write_text('verify-on-save = true\npython = ".venv/bin/python"\n')
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho RAN >> {folder}/ran\n")
    program.chmod(0o755)


@hostile
def models_elsewhere(folder: Path) -> None:
    (folder / "m").symlink_to("../model")
    (folder / "n").mkdir()
    (folder / "n" / "config.json").symlink_to("../../model/config.json")
    named = ("./m", "./n", "../model", f"{folder.parent}/model", "~/../model", "m/../../model")
    (folder / "a.sh").write_text(
        "".join(f"python3 -m sglang.launch_server --model-path {name} --tp 3\n" for name in named)
    )


@hostile
def models_that_are_no_files(folder: Path) -> None:
    for name in ("zero", "pipe", "folder", "deep", "huge", "loop"):
        (folder / name).mkdir()
    (folder / "zero" / "config.json").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe" / "config.json")
    (folder / "folder" / "config.json").mkdir()
    (folder / "deep" / "config.json").write_text("[" * 100_000)
    with (folder / "huge" / "config.json").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "loop" / "config.json").symlink_to("config.json")
    names = ("./zero", "./pipe", "./folder", "./deep", "./huge", "./loop", "a\0b", "\udc80")
    text = "".join(f"python3 -m sglang.launch_server --model-path {name}\n" for name in names) + FLAWED
    (folder / "a.sh").write_bytes(text.encode(errors="surrogateescape"))


@hostile
def files_that_are_no_files(folder: Path) -> None:
    launch = "python3 -m sglang.launch_server --model-path x"
    os.mkfifo(folder / "pipe.sh")
    os.mkfifo(folder / "pipe.yaml")
    os.mkfifo(folder / ".env")
    (folder / "zero.sh").symlink_to("/dev/zero")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    (folder / "b.sh").write_text(f"source ./pipe.sh\nsource ./zero.sh\n{launch} --config pipe.yaml\n{FLAWED}")
    (folder / "c.sh").write_text(f"{launch} --config zero.yaml\n")
    os.mkfifo(folder / "requirements.txt")
    os.mkfifo(folder / ".gitignore")
    os.mkfifo(folder / "spec-lsp.toml")
    repository(folder)
    (folder / ".git" / "info" / "exclude").symlink_to("/dev/zero")


@hostile
def settings_of_every_kind(folder: Path) -> None:
    texts = {
        "tool": "tool = 5\n", "ours": "[tool]\nspec-lsp = [1]\n", "deep": "a = " + "[" * 5_000, "dots": "a." * 5_000 + "b = 1\n",
        "bad": "gpu = \n", "types": "[tool.spec-lsp]\nexclude = 5\nrules = 'x'\ntargets = [1, {gpu = 2}]\nsglang = {}\n",
        "nul": "gpu = '\0'\n", "key": '[tool.spec-lsp]\n"\\u001b[31mk\\n::error::" = 2\n',
        "exclude": '[tool.spec-lsp]\nexclude = ["' + "*a" * 30 + '*b", "x[", "' + "**/a/" * 60 + 'b", "' + "[a-" * 50 + '"]\n',
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).mkdir()
        (folder / name / "pyproject.toml").write_text(text)
        (folder / name / f"{'a' * 200}.sh").write_text(FLAWED)
    repository(folder)
    (folder / ".gitignore").write_text("*a" * 40 + "*b\n" + "**/a/" * 90 + "b\n[z-a]\n" + "?" * 900 + "*\n")


@hostile
def virtual_environment_elsewhere(folder: Path) -> None:
    package = folder.parent / "venv" / "lib" / "python3.11" / "site-packages" / "sglang" / "srt"
    package.mkdir(parents=True)
    (package / "server_args.py").write_text(
        f"class ServerArgs:\n    @staticmethod\n    def add_cli_args(p):\n        p.add_argument('--page-size', help='{CANARY}')\n"
    )
    (folder / ".venv").symlink_to("../venv")
    own = folder / "venv" / "lib" / "python3.11" / "site-packages" / "sglang" / "srt"
    own.mkdir(parents=True)
    (own / "server_args.py").symlink_to(package / "server_args.py")


@hostile
def names_that_command(folder: Path) -> None:
    for name in (
        "b\n::error file=x::INJECTED\n\x1b[31mRED.sh",
        "##[error]x.sh",
        "\u202egnp.sh",
        "\x9b31m.sh",
        "\u2028::debug::.sh",
    ):
        (folder / name).write_text(FLAWED.replace("--page-size 7", "--bogus 1 --page-size $'\\n::error::value\\e[31m'"))
    (folder / os.fsdecode(b"\xff\xfe.sh")).write_text(FLAWED)
    (folder / "spec-lsp.toml").write_text('"\\u001b[31mkey\\n::error::KEY" = 2\n')
