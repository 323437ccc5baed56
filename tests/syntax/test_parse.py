"""Which reader a text goes to, and comments to spec-lsp."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import may_launch, parse
from spec_lsp.syntax.kinds import kind_of, may_hold_launches
from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place
from tests.syntax.support import START, argv, check_maps

KINDS = [
    ("run.sh", "", None, "shell"),
    ("job.slurm", "", None, "shell"),
    ("job.sbatch", "", None, "shell"),
    ("c.yaml", "", None, "yaml"),
    ("c.yml", "", None, "yaml"),
    ("serve", "#!/usr/bin/env bash\n", None, "shell"),
    ("serve", "#!/bin/sh -e\n", None, "shell"),
    ("serve", "#!/usr/bin/env python3\n", None, "python"),
    ("serve", START, None, "shell"),
    ("serve", "hello", None, ""),
    ("a.py", START, None, "python"),
    ("README.md", START, None, "markdown"),
    ("docs/page.mdx", START, None, "markdown"),
    ("docs/page.rst", START, None, "markdown"),
    ("Dockerfile", START, None, "dockerfile"),
    ("docker/Dockerfile.gb200", START, None, "dockerfile"),
    ("serve.Dockerfile", START, None, "dockerfile"),
    ("Containerfile", START, None, "dockerfile"),
    ("sglang.service", START, None, "systemd"),
    ("sglang.service.d/override.conf", START, None, "systemd"),
    ("sglang.service", START, "dosini", "systemd"),
    ("a.ini", START, "ini", ""),
    ("nginx.conf.txt", "", None, ""),
    ("Makefile", START, None, "makefile"),
    ("rules/serve.mk", START, None, "makefile"),
    ("GNUmakefile", START, None, "makefile"),
    ("justfile", START, None, "justfile"),
    (".justfile", START, None, "justfile"),
    ("serve.just", START, None, "justfile"),
    ("demo.ipynb", START, None, "notebook"),
    ("a.json", START, None, "json"),
    (".vscode/launch.json", START, "jsonc", "json"),
    ("x.code-workspace", START, None, "json"),
    ("a.jsonl", START, None, ""),
    ("Procfile", START, None, "procfile"),
    ("Procfile.dev", START, None, "procfile"),
    ("supervisord.conf", "", None, "supervisor"),
    ("/etc/supervisor/conf.d/llm.conf", "[program:llm]\n", None, "supervisor"),
    ("llm.conf", "[program:llm]\n", None, "supervisor"),
    ("llm.ini", "[program:llm]\n", "ini", "supervisor"),
    ("llm.conf", "[upstream:llm]\n", None, ""),
    ("Jenkinsfile", START, None, "jenkinsfile"),
    ("ci/Jenkinsfile.gpu", START, "groovy", "jenkinsfile"),
    ("serve.groovy", START, None, "jenkinsfile"),
    ("main.tf", START, None, "terraform"),
    ("x", START, "terraform", "terraform"),
    # A language that nobody here knows tells nothing: the name does.
    ("run.sh", "", "bats-extended", "shell"),
    ("c.yaml", "", "my-dialect", "yaml"),
    ("serve", START, "my-dialect", "shell"),
    ("serve", "hello", "my-dialect", ""),
    ("untitled:Untitled-1", "", "dockerfile", "dockerfile"),
    ("untitled:Untitled-1", "", "mdx", "markdown"),
    ("untitled:Untitled-1", "", "makefile", "makefile"),
    ("untitled:Untitled-1", "", "shellscript", "shell"),
    ("untitled:Untitled-1", "", "yaml", "yaml"),
    ("x.sh", START, "python", "python"),
    ("values.yaml", "", "helm", "yaml"),
    ("x", "", "yaml.docker-compose", "yaml"),
    ("x", "", "yaml-ts", "yaml"),
    ("x", "", "bash-ts", "shell"),
    ("x", "", "makefile-gmake", "makefile"),
    ("x", "", "gfm", "markdown"),
    ("x.sh", START, "rust", ""),
    ("x.sh", "#!/usr/bin/fish\n", None, ""),
    ("file:///a/b%20c/run.sh", "", None, "shell"),
]


@pytest.mark.parametrize(("name", "text", "language", "kind"), KINDS, ids=range(len(KINDS)))
def test_kind(name: str, text: str, language: str | None, kind: str) -> None:
    assert kind_of(name, text, language) == kind


def test_names_that_may_hold_launches() -> None:
    assert all(map(may_hold_launches, ["run.sh", "serve", "a.yaml", "Dockerfile", "x.md", "x.py", "x.service", "x.mk"]))
    assert all(map(may_hold_launches, ["a.json", "Procfile", "a.conf", "a.ini", "Jenkinsfile", "a.tf"]))
    assert not any(map(may_hold_launches, ["a.ts", "a.css", "uv.lock", "a.log", "a.jsonl"]))


MANIFEST = """kubectl apply -f - <<EOF
kind: Pod
apiVersion: v1
spec:
  containers:
    - {image: sglang, command: [sglang, serve], args: [m, --tp, "$TP", --x, a]}
EOF
sglang serve n
"""


@pytest.mark.parametrize(
    ("name", "text", "tp"),
    [
        ("run.sh", MANIFEST, "?"),
        ("run.sh", MANIFEST.replace("<<EOF", "<<'EOF'"), "$TP"),
        ("run.sh", "cat > pod.yaml " + MANIFEST.partition("- ")[2], "?"),
        ("a.md", f"```bash\n{MANIFEST}```\n", "?"),
        ("a.md", "1. x\n\n" + "".join(f"   {line}\n" for line in f"```bash\n{MANIFEST}```".splitlines()), "?"),
    ],
)
def test_manifests_in_scripts(name: str, text: str, tp: str) -> None:
    document = parse(name, text)
    check_maps(document)
    assert [argv(launch.variants[0]) for launch in document.launches] == [["m", "--tp", tp, "--x", "a"], ["n"]]


WRITTEN: list[tuple[str, list[list[str]]]] = [
    # Files that are for others to run.
    ("cat > run.sh <<'EOF'\nT=2\nsglang serve m --tp $T\nEOF\nscp run.sh h:\n", [["m", "--tp", "2"]]),
    ('cat <<"EOF" > "$D/run.sh"\nsglang serve m \\\n  --tp 2\nEOF\n', [["m", "--tp", "2"]]),
    (
        "sudo tee /opt/run.sh >/dev/null <<EOF\nA=1\nsglang serve $M --tp 2 --x \\$A\nEOF\n",
        [["?+", "--tp", "2", "--x", "1"]],
    ),
    ("cat > serve <<-EOF\n\t#!/bin/bash\n\tsglang serve m\n\tEOF\n", [["m"]]),
    ('cat > Dockerfile <<EOF\nFROM x\nCMD ["sglang", "serve", "m", "--tp", "2"]\nEOF\n', [["m", "--tp", "2"]]),
    ("tee a.service <<EOF\n[Service]\nExecStart=/bin/sglang serve m --tp $TP\nEOF\n", [["m", "--tp", "?"]]),
    ("cat << 'EOF' > Makefile\nT = 2\nrun:\n\tsglang serve m --tp $(T)\nEOF\n", [["m", "--tp", "2"]]),
    ("cat > a.sh <<'A'\nsglang serve m\nA\ncat > b.sh <<'B'\nsglang serve n\nB\n", [["m"], ["n"]]),
    # What the script knows is filled in, also where it depends on the way; what stands in quotes is the other script's.
    (
        "C='--tp 2 --x'\ncat > run.sh <<EOF\nsglang serve m $C --y '$C' \\$C\nEOF\n",
        [["m", "--tp", "2", "--x", "--y", "--tp 2 --x", "?+"]],
    ),
    ("C='--tp 2'\ncat > run.sh <<'EOF'\nsglang serve m $C\nEOF\n", [["m", "?+"]]),
    ('D=/x\nT=2\ncat > "$D/$(date).sh" <<EOF\nsglang serve m --tp ${T}\nEOF\n', [["m", "--tp", "2"]]),
    ("T=2\ncat > a.service <<EOF\n[Service]\nExecStart=sglang serve m --tp ${T}\nEOF\n", [["m", "--tp", "2"]]),
    ("f() {\n  cat > r.sh <<EOF\nsglang serve m --tp $1 $C\nEOF\n}\nC=--x\nf 8\n", [["m", "--tp", "8", "--x"]]),
    ("C=--x\ncat <<EOF >> r.sh\nsglang serve m $C\nEOF\nscp r.sh h:\n", [["m", "--x"]]),
    (
        "cat > c.yaml <<EOF\nservices:\n  s: {image: sglang, command: sglang serve m --port ${P:-3}}\nEOF\n",
        [["m", "--port", "3"]],
    ),
    (
        "T=2\nkubectl apply -f - <<EOF\napiVersion: v1\nspec:\n  containers:\n"
        "    - {image: sglang, command: [sglang, serve], args: [m, --tp, '$T']}\nEOF\n",
        [["m", "--tp", "2"]],
    ),
    # What the script itself runs is told once, with what it knows.
    ("TP=2\ncat > run.sh <<EOF\nsglang serve m --tp $TP\nEOF\nbash run.sh\n", [["m", "--tp", "2"]]),
    ("ssh h bash <<EOF\nsglang serve m\nEOF\n", [["m"]]),
    # What is only printed, written to a page or a log, or commented out.
    ("cat <<EOF\nsglang serve m\nEOF\n", []),
    ("cat > notes.txt <<EOF\nsglang serve m\nEOF\n", []),
    ("cat <<EOF | tee run.log\nsglang serve m\nEOF\n", []),
    ("cat >&2 <<EOF\nsglang serve m\nEOF\n", []),
    ("# cat > run.sh <<EOF\n# sglang serve m\n# EOF\n", []),
    ("read x <<< word\ncat > run.txt\nsglang serve m\nword\n", [["m"]]),
]


@pytest.mark.parametrize(("text", "expected"), WRITTEN, ids=range(len(WRITTEN)))
@pytest.mark.parametrize("page", [False, True])
def test_files_that_a_script_writes(text: str, expected: list[list[str]], page: bool) -> None:
    document = parse("a.md", f"```bash\n{text}```\n") if page else parse("run.sh", text)
    check_maps(document)
    assert [argv(launch.variants[0]) for launch in document.launches] == expected


def test_ways_to_a_file_that_a_script_writes() -> None:
    text = 'if [ "$1" = big ]; then T=8; else T=2; fi\ncat > run.sh <<EOF\nsglang serve m --tp $T\nEOF\n'
    (launch,) = parse("run.sh", text).launches
    assert sorted(map(argv, launch.variants)) == [["m", "--tp", "2"], ["m", "--tp", "8"]]


@pytest.mark.parametrize("runs", ["bash run.sh", "./run.sh", "ssh h bash -s < run.sh", "bash < run.sh"])
def test_all_ways_to_a_file_that_is_run(runs: str) -> None:
    text = f'E=""\n[ "$D" = 1 ] && E="--x"\ncat > run.sh <<EOF\nsglang serve m $E\nEOF\n{runs}\n'
    (launch,) = parse("run.sh", text).launches
    assert sorted(map(argv, launch.variants)) == [["m"], ["m", "--x"]]


def test_directives() -> None:
    text = f"# spec-lsp: sglang=0.5.19\n{START} \\\n  --a  # spec-lsp: ignore[x] why\nif x; then\n  #spec-lsp: y\n  z\nfi\necho '# spec-lsp: no'\ncat <<EOF\n# spec-lsp: no\nEOF\n# spec-lsp: end"
    found = parse("run.sh", text).directives
    assert [(d.text, d.own_line) for d in found] == [
        ("sglang=0.5.19", True),
        ("ignore[x] why", False),
        ("y", True),
        ("end", True),
    ]
    assert found[0] == Directive("sglang=0.5.19", Place("run.sh", 0, 25), True)


def test_directives_in_yaml() -> None:
    found = parse("c.yaml", "# spec-lsp: config\na: 1  # spec-lsp: ignore[x]\nb: x#spec-lsp: no\n").directives
    assert [(d.text, d.own_line) for d in found] == [("config", True), ("ignore[x]", False)]


def test_a_text_without_sglang_is_not_read() -> None:
    assert parse("run.sh", "echo " * 10).launches == ()


@pytest.mark.parametrize(
    ("name", "data", "may"),
    [
        ("run.sh", b"python -m sglang.launch_server", True),
        ("Dockerfile", b"FROM lmsysorg/SGLang", True),
        ("sgl.yaml", b"model-path: m\npage-size: 16\n", True),
        ("sgl.yaml", b"tp: 8\n", True),
        ("values.yaml", b"image: nginx\nport: 1\n", False),
        ("run.sh", b"page-size: 16", False),
        ("a.json", b"sglang", True),
        ("a.jsonl", b"sglang", False),
        ("serve", b"sglang serve m", True),
    ],
)
def test_a_glance_tells_what_may_launch(name: str, data: bytes, may: bool) -> None:
    assert may_launch(name, data) is may
