"""Templates and Compose files with more switches than their ways can be listed: any two come together, and the launch says so."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import START

HELM = (
    "containers:\n- name: server\n  command:\n  - python3\n  - -m\n  - sglang.launch_server\n"
    "{switches}"
    "  - --port\n  - '8000'\n"
)
COMPOSE = "services:\n  server:\n    command: >\n      {start} --model-path m\n{switches}"
KINDS = {
    "chart.yaml": (HELM, "{{{{- if .Values.s{i} }}}}\n  - --flag{i}\n{{{{- end }}}}\n"),
    "docker-compose.yaml": (COMPOSE, "      ${{S{i}:+--flag{i}}}\n"),
    "run.sh.j2": (
        "{start} --model-path m \\\n{switches}  --port 1\n",
        "{{% if s{i} %}}\n  --flag{i} \\\n{{% endif %}}\n",
    ),
}


@pytest.mark.parametrize("switches", [6, 20, 80])
@pytest.mark.parametrize("name", KINDS)
def test_any_two_switches_come_together(name: str, switches: int) -> None:
    frame, switch = KINDS[name]
    text = frame.format(start=START, switches="".join(switch.format(i=i) for i in range(switches)))
    (launch,) = parse(name, text).launches
    assert launch.ways == "pairs"
    found = [{w.text for w in v.words} for v in launch.variants]
    for a, b in combinations(range(switches), 2):
        together = {(f"--flag{a}" in way, f"--flag{b}" in way) for way in found}
        assert together == set(product((False, True), repeat=2)), (a, b)


def test_few_switches_are_all_looked_at() -> None:
    frame, switch = KINDS["chart.yaml"]
    (launch,) = parse("chart.yaml", frame.format(switches="".join(switch.format(i=i) for i in range(4)))).launches
    assert launch.ways == "all"
    assert len(launch.variants) == 16
