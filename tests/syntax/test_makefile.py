"""Makefiles and justfiles: variables, recipes, and which shell reads what."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import argv, check_maps, told


def words(text: str, name: str = "Makefile") -> list[list[str]]:
    document = parse(name, text)
    check_maps(document)
    return [argv(variant) for launch in document.launches for variant in launch.variants]


def test_an_argument_that_the_command_line_of_make_may_add() -> None:
    assert words("serve:\n\tsglang serve m $(if $(TP),--tp $(TP)) --port 1\n") == [
        ["m", "--port", "1"],
        ["m", "--tp", "?+", "--port", "1"],
    ]


VARIABLES: list[tuple[str, str, list[str]]] = [
    ("TP = 8", "--tp $(TP)", ["--tp", "8"]),
    ("TP := 8", "--tp ${TP}", ["--tp", "8"]),
    ("TP ?= 8", "--tp $(TP)", ["--tp", "8"]),
    ("TP = 4\nTP ?= 8", "--tp $(TP)", ["--tp", "4"]),
    ("TP = 8  # why", "--tp $(TP)", ["--tp", "8"]),
    ("F = --a 1\nF += --b 2", "$(F)", ["--a", "1", "--b", "2"]),
    ("F = --a \\\n  1", "$(F)", ["--a", "1"]),
    ("N = 8\nTP = $(N)\nN = 4", "--tp $(TP)", ["--tp", "4"]),
    ("N = 8\nTP := $(N)\nN = 4", "--tp $(TP)", ["--tp", "8"]),
    ("X = 8", "--tp $X", ["--tp", "8"]),
    ("", "--tp $(TP)", ["--tp", "?+"]),
    ("TP := $(shell nproc)", "--tp $(TP)", ["--tp", "?+"]),
    ("TP != nproc", "--tp $(TP)", ["--tp", "?+"]),
    ("TP = $(TP)", "--tp $(TP)", ["--tp", "?+"]),
    ("", "--tp $$TP", ["--tp", "?+"]),
    ("", "--json '{\"a\": 1}'", ["--json", '{"a": 1}']),
    ("", "$@ $< $(call f,a)", ["?+", "?+", "?+"]),
    ("", "--tp $(or $(TP),8)", ["--tp", "8"]),
    ("TP = 2", "--tp $(or $(TP),8)", ["--tp", "2"]),
    ("", "--tp $(or $(TP),$(N))", ["--tp", "?+"]),
    ("TP := $(shell nproc)", "--tp $(or $(TP),8)", ["--tp", "?+"]),
    ("", "--tp $(or $(or $(TP), ), 8)", ["--tp", "8"]),
    ("", "$(if $(X),--a,--b)", ["--b"]),
    ("X = 1", "$(if $(X),--a,--b)", ["--a"]),
    ("X =", "$(if $(X),--a,--b)", ["--b"]),
    ("X := $(shell nproc)", "$(if $(X),--a)", ["?+"]),
    ("define F\n--a 1 \\\n--b 2\nendef", "$(F)", ["--a", "1", "--b", "2"]),
    ("export TP = 8", "--tp $$TP", ["--tp", "8"]),
    ("TP = 8\nexport TP", "--tp $$TP", ["--tp", "8"]),
    ("serve: TP = 8", "--tp $(TP)", ["--tp", "8"]),
    ("other: TP = 8", "--tp $(TP)", ["--tp", "?+"]),
    ("ifeq ($(shell uname),Linux)\nTP = 8\nelse\nTP = 4\nendif", "--tp $(TP)", ["--tp", "?+"]),
    ("ifneq ($(filter $(X),a b),)\nF = --a\nendif", "m $(F)", ["m", "?+"]),
    ("ifeq (a,a)\nTP = 8\nelse\nTP = 4\nendif", "--tp $(TP)", ["--tp", "8"]),
    ("ifneq (a,a)\nTP = 8\nelse ifeq ('b','b')\nTP = 2\nelse\nTP = 4\nendif", "--tp $(TP)", ["--tp", "2"]),
]


@pytest.mark.parametrize(("head", "rest", "expected"), VARIABLES, ids=range(len(VARIABLES)))
def test_variables(head: str, rest: str, expected: list[str]) -> None:
    assert words(f"{head}\nserve: deps\n\tsglang serve {rest}\n") == [expected]


CHAIN = "ifeq ($(G),h)\nT = 8\nelse ifeq ($(G),b)\nT = 4\nelse\nT = 2\nendif\n"
CONDITIONALS: list[tuple[str, str, dict[str, list[str]]]] = [
    ("ifdef X\nF += --a\nendif\n", "$(F)", {"`X` is not set": [], "`X` is set": ["--a"]}),
    ("ifndef X\nF += --a\nendif\n", "$(F)", {"`X` is not set": ["--a"], "`X` is set": []}),
    ("F = --b\nifneq ($(X),)\nF += --a $(X)\nendif\n", "$(F)", {"`X` is not set": ["--b"], "`X` is set": ["--b", "--a", "?+"]}),
    ("ifeq ($(X),1)\nT = 8\nelse\nT = 4\nendif\n", "$(T)", {"`X` is `1`": ["8"], "`X` is none of these": ["4"]}),
    ("ifeq '$(X)' '1'\nT = 8\nelse\nT = 4\nendif\n", "$(T)", {"`X` is `1`": ["8"], "`X` is none of these": ["4"]}),
    (CHAIN, "$(T)", {"`G` is `h`": ["8"], "`G` is `b`": ["4"], "`G` is none of these": ["2"]}),
    ("G ?= b\n" + CHAIN, "$(T) $(G)", {"`G` is `b`": ["4", "b"], "`G` is `h`": ["8", "h"], "`G` is none of these": ["2", "?+"]}),
    ("ifdef D\nA = --a\nendif\nifndef D\nB = --b\nendif\n", "$(A) $(B)", {"`D` is not set": ["--b"], "`D` is set": ["--a"]}),
    # What no launch hangs on is not told apart.
    ("ifdef X\nF += --a\nendif\n", "m", {"": ["m"]}),
    ("ifdef X\nT = 1\nelse\nT = 1\nendif\n", "$(T)", {"": ["1"]}),
]  # fmt: skip


@pytest.mark.parametrize(("head", "rest", "expected"), CONDITIONALS, ids=range(len(CONDITIONALS)))
def test_conditionals(head: str, rest: str, expected: dict[str, list[str]]) -> None:
    document = parse("Makefile", f"{head}serve:\n\tsglang serve {rest}\n")
    check_maps(document)
    (launch,) = document.launches
    assert {" and ".join(c.taken for c in v.choices): argv(v) for v in launch.variants} == expected


def test_many_conditionals_are_capped() -> None:
    names = [f"X{i}" for i in range(12)]
    head = "".join(f"ifdef {x}\nF += --{x}\nendif\n" for x in names)
    (launch,) = parse("Makefile", f"{head}serve:\n\tsglang serve m $(F)\n").launches
    assert len(launch.variants) == 16
    assert all(argv(v)[0] == "m" for v in launch.variants)


RECIPES: list[tuple[str, list[list[str]]]] = [
    ("serve:\n\t@sglang serve m\n", [["m"]]),
    ("serve:\n\t-@ sglang serve m\n", [["m"]]),
    ("serve: ; sglang serve m\n", [["m"]]),
    ("serve:\n\tcd x && sglang serve m \\\n\t  --tp 8\n", [["m", "--tp", "8"]]),
    ("serve:\n\texport TP=8\n\tsglang serve --tp $$TP\n", [["--tp", "?+"]]),
    (".ONESHELL:\nserve:\n\texport TP=8\n\tsglang serve --tp $$TP\n", [["--tp", "8"]]),
    ("a b: c\n\tsglang serve m\n", [["m"]]),
    ("serve::\n\tsglang serve m\n", [["m"]]),
    ("serve:\n\t@echo sglang serve m\n\t# sglang serve n\n", []),
    ("#serve:\n#\tsglang serve m\n", []),
    ("X = sglang serve m\n", []),
    ("serve:\nifdef DEBUG\n\tsglang serve a\nelse\n\tsglang serve b\nendif\n", [["a"], ["b"]]),
    ("serve:\n\tsglang serve m\nX := 1\n\nother:\n\tsglang serve n\n", [["m"], ["n"]]),
]


@pytest.mark.parametrize(("text", "expected"), RECIPES, ids=range(len(RECIPES)))
def test_recipes(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_a_launch_is_seen_in_its_recipe_and_its_values_where_they_are_set() -> None:
    text = "PY = python3\nTP = 8\nserve:\n\t$(PY) -m sglang.launch_server --tp $(TP)\n"
    (launch,) = parse("Makefile", text).launches
    assert text[launch.place.start : launch.place.end] == "$(PY) -m sglang.launch_server"
    assert text[launch.extent.start : launch.extent.end] == "$(PY) -m sglang.launch_server --tp $(TP)"
    word = launch.variants[0].words[1]
    assert text[word.place.start : word.place.end] == "$(TP)"
    assert text[word.fragments[0].place.start : word.fragments[0].place.end] == "8"


JUST: list[tuple[str, list[list[str]]]] = [
    ("serve:\n    sglang serve m\n", [["m"]]),
    ("serve:\n    @sglang serve m \\\n      --tp 8\n", [["m", "--tp", "8"]]),
    ("m := 'x'\nserve:\n    sglang serve {{m}}\n", [["x"]]),
    ('m := "a" + "b" / "c"\nserve:\n    sglang serve {{ m }}\n', [["ab/c"]]),
    ("m := `ls`\nserve:\n    sglang serve {{m}}\n", [["?+"]]),
    ('m := env("M", "x")\nserve:\n    sglang serve {{m}}\n', [["x"]]),
    ('m := env_var("M")\nserve:\n    sglang serve {{m}}\n', [["?+"]]),
    ("m := if x == y { 'a' } else { 'b' }\nserve:\n    sglang serve {{m}}\n", [["?+"]]),
    ("serve m:\n    sglang serve {{m}}\n", [["?+"]]),
    ("serve m='x' tp=\"8\": dep (other 'a:b')\n    sglang serve {{m}} --tp {{tp}}\n", [["x", "--tp", "8"]]),
    ("serve *args:\n    sglang serve m {{args}}\n", [["m", "?+"]]),
    ("serve +args='x':\n    sglang serve m {{args}}\n", [["m", "?+"]]),
    ("export TP := '8'\nserve:\n    sglang serve m --tp $TP\n", [["m", "--tp", "8"]]),
    ("TP := '8'\nserve:\n    sglang serve m --tp $TP\n", [["m", "--tp", "?+"]]),
    ("set export\nTP := '8'\nserve:\n    sglang serve m --tp $TP\n", [["m", "--tp", "8"]]),
    ("serve:\n    #!/usr/bin/env bash\n    TP=8\n    sglang serve m --tp $TP\n", [["m", "--tp", "8"]]),
    ("serve:\n    TP=8\n    sglang serve m --tp $TP\n", [["m", "--tp", "?+"]]),
    ("serve:\n    #!/usr/bin/env python3\n    'sglang serve m'\n", []),
    ("serve:\n    echo {{{{x}} && sglang serve m\n", [["m"]]),
    ("alias s := serve\n[private]\nserve:\n\tsglang serve m\n", [["m"]]),
    ("serve $k='a':\n    #!/bin/bash\n    if [ $k = a ]; then X=1; else X=2; fi\n    sglang serve m --x $X\n", [["m", "--x", "1"], ["m", "--x", "2"]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), JUST, ids=range(len(JUST)))
def test_just(text: str, expected: list[list[str]]) -> None:
    assert words(text, "justfile") == expected


def test_just_environment() -> None:
    (launch,) = parse("x.just", "export SGLANG_A := 'x y'\nb := '1'\nserve:\n  sglang serve m\n").launches
    assert {n: told(w) for n, w in launch.variants[0].env.items()} == {"SGLANG_A": "x y"}
