"""Launches as documents of each kind carry them: what the tests of maps and of edits share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Words = Sequence[str]


@dataclass(frozen=True)
class Carrier:
    """`write` makes a document that starts SGLang with these words; `name` is what it is called."""

    name: str
    write: Callable[[Words], str]

    @property
    def id(self) -> str:
        return self.write.__name__


def shell_quoted(word: str) -> str:
    return word if word and all(c.isalnum() or c in "-_./=:" for c in word) else "'" + word.replace("'", "'\\''") + "'"


def command(words: Words) -> str:
    return " ".join(["python3 -m sglang.launch_server", *map(shell_quoted, words)])


def continued(words: Words) -> str:
    return " \\\n".join(["python3 -m sglang.launch_server", *("    " + shell_quoted(w) for w in words)])


def entry(words: Words) -> list[str]:
    return ["python3", "-m", "sglang.launch_server", *words]


def dockerfile_exec(words: Words) -> str:
    return f"FROM lmsysorg/sglang:v0.5.21\nCMD {json.dumps(entry(words), ensure_ascii=False)}\n"


def dockerfile_lines(words: Words) -> str:
    items = ", \\\n  # why\n     ".join(json.dumps(w) for w in entry(words))
    return f"FROM lmsysorg/sglang:v0.5.21\nENTRYPOINT [{items}]\nCMD []\n".replace("CMD []\n", "")


def dockerfile_shell(words: Words) -> str:
    return f"FROM lmsysorg/sglang:v0.5.21\nCMD {continued(words)}\n"


def dockerfile_script(words: Words) -> str:
    return f"FROM a\nCOPY <<'EOF' /entry.sh\n{continued(words)}\nEOF\nCMD [\"/entry.sh\"]\n"


def unit(words: Words) -> str:
    quoted = " \\\n  ".join(
        '"' + w.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%") + '"' for w in words
    )
    return f"[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server {quoted}\n"


def makefile(words: Words) -> str:
    return "serve:\n\t@" + continued(words).replace("$", "$$").replace("\n", "\n\t") + "\n"


def justfile(words: Words) -> str:
    return "serve:\n    " + continued(words).replace("{{", "{{{{").replace("\n", "\n    ") + "\n"


def fence(words: Words) -> str:
    return f"# A page\n\n```bash\n{continued(words)}\n```\n"


def fence_in_list(words: Words) -> str:
    return "1. First\n\n   ```sh\n   " + continued(words).replace("\n", "\n   ") + "\n   ```\n"


def fence_in_quote(words: Words) -> str:
    return "> ~~~console\n> $ " + continued(words).replace("\n", "\n> ") + "\n> Started.\n> ~~~\n"


def fenced_dockerfile(words: Words) -> str:
    return "- x\n\n  ```dockerfile\n  " + dockerfile_exec(words).rstrip().replace("\n", "\n  ") + "\n  ```\n"


def python_list(words: Words) -> str:
    items = "".join(f"    {w!r},\n" for w in entry(words))
    return f"import subprocess\nsubprocess.run([\n{items}])\n"


def python_line(words: Words) -> str:
    return f"import subprocess\nsubprocess.Popen({json.dumps(entry(words), ensure_ascii=False)}, env={{}})\n"


def python_text(words: Words) -> str:
    return f"import subprocess\nsubprocess.run({command(words)!r}, shell=True)\n"


def python_helper(words: Words) -> str:
    return f"from sglang.test.test_utils import popen_launch_server\nargs = {list(words)!r}\npopen_launch_server('m', URL, 600, other_args=args)\n"


def notebook(words: Words) -> str:
    lines = [line + "\n" for line in ("!" + continued(words)).split("\n")]
    return json.dumps({"cells": [{"cell_type": "code", "source": lines}]}, indent=1, ensure_ascii=False)


def notebook_command(words: Words) -> str:
    return f"import os\n\n!{continued(words)}\nprint(os.getpid())\n"


def notebook_script(words: Words) -> str:
    return f"%%bash\n{continued(words)}\n"


def package_scripts(words: Words) -> str:
    return json.dumps({"name": "x", "scripts": {"serve": command(words)}}, indent=2, ensure_ascii=False)


def code_launch(words: Words) -> str:
    items = "".join(f"        {json.dumps(w)},\n" for w in words)
    return (
        '{\n  // why\n  "configurations": [\n    {"type": "debugpy", "request": "launch", "module": "sglang.launch_server",'
        f' "args": [\n{items}      ]}},\n  ],\n}}\n'
    )


def code_task(words: Words) -> str:
    own = {"label": "serve", "type": "process", "command": "python3", "args": entry(words)[1:]}
    return json.dumps({"version": "2.0.0", "tasks": [own]}, ensure_ascii=False)


def development_container(words: Words) -> str:
    return f'{{\n  // why\n  "postStartCommand": {json.dumps(entry(words), ensure_ascii=False)},\n}}\n'


def manifest(words: Words) -> str:
    own = {"name": "c", "image": "lmsysorg/sglang:v0.5.21", "args": entry(words)}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [own]}}, indent=2, ensure_ascii=False)


def supervised(words: Words) -> str:
    lines = "\n    ".join(shell_quoted(w).replace("%", "%%") for w in words)
    return f"[program:sglang]\ncommand=python3 -m sglang.launch_server\n    {lines}\nautostart=true\n"


def procfile(words: Words) -> str:
    return f"web: nginx\nllm: {command(words)}\n"


def pipeline_lines(words: Words) -> str:
    script = continued(words).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\n    ")
    return f"node {{\n  sh '''\n    {script}\n  '''\n}}\n"


def pipeline_line(words: Words) -> str:
    script = re.sub(r'([\\"$])', r"\\\1", command(words))
    return f'node {{\n  sh "{script}"\n}}\n'


def terraform_script(words: Words) -> str:
    script = continued(words).replace("${", "$${").replace("%{", "%%{").replace("\n", "\n    ")
    return f'resource "a" "b" {{\n  user_data = <<-EOT\n    {script}\n  EOT\n}}\n'


def terraform_list(words: Words) -> str:
    items = ", ".join(json.dumps(w, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{") for w in entry(words))
    return f'resource "a" "b" {{\n  container {{\n    command = [{items}]\n  }}\n}}\n'


def fence_in_docstring(words: Words) -> str:
    page = fence(words).replace("\n", "\n    ").rstrip(" ")
    return f'def serve():\n    r"""How to.\n\n    {page}    """\n'


def fence_in_yaml(words: Words) -> str:
    return "title: x\nreadme: |\n  " + fence(words).replace("\n", "\n  ").rstrip(" ") + "kind: page\n"


CARRIERS = [
    Carrier("Dockerfile", dockerfile_exec),
    Carrier("Dockerfile", dockerfile_lines),
    Carrier("Dockerfile", dockerfile_shell),
    Carrier("Dockerfile", dockerfile_script),
    Carrier("a.service", unit),
    Carrier("Makefile", makefile),
    Carrier("justfile", justfile),
    Carrier("a.md", fence),
    Carrier("a.md", fence_in_list),
    Carrier("a.md", fence_in_quote),
    Carrier("a.md", fenced_dockerfile),
    Carrier("a.py", python_list),
    Carrier("a.py", python_line),
    Carrier("a.py", python_text),
    Carrier("a.py", python_helper),
    Carrier("a.ipynb", notebook),
    Carrier("vscode-notebook-cell:/w/a.ipynb#W0", notebook_command),
    Carrier("vscode-notebook-cell:/w/a.ipynb#W1", notebook_script),
    Carrier("package.json", package_scripts),
    Carrier("launch.json", code_launch),
    Carrier("tasks.json", code_task),
    Carrier("devcontainer.json", development_container),
    Carrier("pod.json", manifest),
    Carrier("supervisord.conf", supervised),
    Carrier("Procfile", procfile),
    Carrier("Jenkinsfile", pipeline_lines),
    Carrier("Jenkinsfile", pipeline_line),
    Carrier("main.tf", terraform_script),
    Carrier("main.tf", terraform_list),
    Carrier("a.py", fence_in_docstring),
    Carrier("page.yaml", fence_in_yaml),
]
