"""Scripts that a template prints."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import argv, check_maps


def ways(text: str, name: str = "serve.sh.j2") -> list[list[str]]:
    document = parse(name, text)
    check_maps(document)
    return [argv(variant) for launch in document.launches for variant in launch.variants]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sglang serve {{ model }} --tp {{ tp }} --port 1\n", [["?+", "--tp", "?+", "--port", "1"]]),
        ("sglang serve m --tp={{ tp }}\n", [["m", "--tp=?"]]),
        (
            "sglang serve m \\\n{% if eagle %}\n  --speculative-algorithm EAGLE \\\n{% endif %}\n  --port 1\n",
            [["m", "--speculative-algorithm", "EAGLE", "--port", "1"], ["m", "--port", "1"]],
        ),
        (
            "sglang serve m {{- if .Values.tp }} --tp 2{{ end }} --port 1\n",
            [["m", "--tp", "2", "--port", "1"], ["m", "--port", "1"]],
        ),
        (
            "sglang serve {{ default `a b` .m | quote }} --x={% if x %}1{% endif %}\n",
            [["a b", "--x=1"], ["a b", "--x="]],
        ),
        ('{{- define "serve" -}}\nsglang serve m \\\n  {{ include "flags" . }}\n{{- end -}}\n', [["m", "?+"]]),
        ("{# sglang serve a comment #}\nsglang serve m\n", [["m"]]),
        (
            '{{- define "a" }}\nsglang serve m --rank $R\n{{- end }}\n{{- define "b" }}\nR=1\nsglang serve n --rank $R\n{{- end }}\n',
            [["m", "--rank", "?+"], ["n", "--rank", "1"]],
        ),
        ("TP={{ tp }}\nsglang serve m --tp $TP\n", [["m", "--tp", "?+"]]),
        # a dash removes line ends, too
        (
            "sglang serve m\n  {%- if b %} --tp 2{% endif %}\n  {%- if not b %} --dp 2{% endif %} --port 1\n",
            [["m", "--tp", "2", "--port", "1"], ["m", "--dp", "2", "--port", "1"]],
        ),
        ("sglang serve m\n  {%- for k in flags %} --{{ k }}{% endfor %} --port 1\n", [["m?", "--port", "1"]]),
        (
            "sglang serve m {% if b -%}\n --tp 2\n {%- else -%}\n {# why -#}\n --dp 2{% endif %} --port 1\n",
            [["m", "--tp", "2", "--port", "1"], ["m", "--dp", "2", "--port", "1"]],
        ),
        ("sglang serve m --tp {{ tp -}}\n  {{- ' ' }}--port 1\n", [["m", "--tp", "?+", "--port", "1"]]),
        # parts that start and end in the middle of different lines
        (
            "sglang serve m \\\n{% if b %}  --tp 2 \\\n{% endif %}{% if not b %}  --dp 2 \\\n{% endif %}\n  {%- if b %} --x{% endif %} --port 1\n",
            [["m", "--tp", "2", "--x", "--port", "1"], ["m", "--dp", "2", "--port", "1"]],
        ),
        ("vllm serve {{ model }} # not sglang serve\n", []),
    ],
)
def test_templates(text: str, found: list[list[str]]) -> None:
    assert ways(text) == found


@pytest.mark.parametrize("name", ["cli_args.j2", "templates/_serve.tpl", "run.slurm.jinja2", "x.gotmpl"])
def test_names(name: str) -> None:
    assert ways("python3 -m sglang.launch_server --tp {{ tp }}\n", name) == [["--tp", "?+"]]


def test_a_template_of_something_else_is_left_alone() -> None:
    assert parse("page.html.j2", "<p>{{ x }}</p>\nsglang\n").launches == ()


def test_the_length_of_an_array_is_no_comment() -> None:
    text = "A=(1 2)\necho ${#A[@]} {{ x }}\nsglang serve m --tp ${#A[@]}\n"
    assert ways(text) == [["m", "--tp", "2"]]


UNIT = "[Service]\nEnvironment=PORT=1 TP={{ tp }}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "ExecStart=/usr/bin/python3 -m sglang.launch_server \\\n  --model {{ model }} \\\n  --tp=${TP} --port $PORT {{ extra }}\n",
            [["--model", "?+", "--tp=?", "--port", "1", "?+"]],
        ),
        (
            "ExecStart=sglang serve m \\\n{% if eagle %}\n  --speculative-algorithm EAGLE \\\n{% endif %}\n  --port 1\n",
            [["m", "--speculative-algorithm", "EAGLE", "--port", "1"], ["m", "--port", "1"]],
        ),
        ("ExecStart={{ venv }}/bin/sglang serve m\n", [["m"]]),
        ("{# ExecStart=sglang serve m #}\nExecStart=\nExecStart={{ command }}\n# sglang\n", []),
        ("[Install]\nExecStart=sglang serve {{ m }}\n", []),
    ],
)
def test_templates_of_units(text: str, found: list[list[str]]) -> None:
    assert ways(UNIT + text, "sglang@.service.j2") == found


@pytest.mark.parametrize("name", ["a.service", "a.service.in", "a.service.example", "a.service.tmpl", "a.service.j2"])
def test_names_of_units(name: str) -> None:
    assert ways("[Service]\nExecStart=sglang serve m --tp 2\n", name) == [["m", "--tp", "2"]]


@pytest.mark.parametrize(
    "loop",
    [
        "N={{ n | default(0) | int }}\nfor ((w=0; w<N; w++)); do\n  X\ndone\n",
        "N={{ n | default(0) }}\nfor i in $(seq 1 $N); do X; done\n",
        "for ((w=0; w<{{ n | default(0) }}; w++)); do X; done\n",
        'export N="{{ .Values.n | default 0 }}"\ni=0\nwhile [ $i -lt $N ]; do X; i=$((i+1)); done\n',
        "{% for i in range(n) %}\nX\n{% endfor %}\n",
    ],
)
def test_how_often_a_loop_runs_is_for_who_renders_it(loop: str) -> None:
    found = ways("#!/bin/bash\n" + loop.replace("X", "sglang serve m --tp 2"), "run.sh.j2")
    assert ["m", "--tp", "2"] in found


def test_a_default_is_what_a_flag_is_given() -> None:
    found = ways("#!/bin/bash\nT={{ t | default(8) }}\nsglang serve m --tp $T --dp {{ d | default(2) }}\n", "run.sh.j2")
    assert found == [["m", "--tp", "8", "--dp", "2"]]
