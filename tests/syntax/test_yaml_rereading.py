"""Reading a YAML file after edits gives what reading it first gives, and leaves the documents alone that were not edited."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.launch import Document, Launch
from spec_lsp.syntax.standing import Launches, stand_after_edit, stand_again
from spec_lsp.syntax.yaml import reader
from spec_lsp.syntax.yaml.nodes import documents
from tests.draws import draws
from tests.syntax.support import check_maps
from tests.syntax.test_shell_rereading import edited

TEXTS = [
    p.read_text(encoding="utf-8") for p in sorted((Path(__file__).parent.parent / "corpus" / "yaml").glob("*.y*ml"))
]
POD = """\
---
kind: Pod
metadata: {{name: server-{i}}}
spec:
  containers:
  - name: sglang
    command: [python3, -m, sglang.launch_server]
    args: [--model-path, m{i}, --tp-size=2]
"""
MAP = """\
---
kind: ConfigMap
metadata: {name: scripts}
data:
  run.sh: |
    #!/bin/bash
    python3 -m sglang.launch_server --model-path x --tp 4
"""
MOUNTS = """\
---
kind: Pod
spec:
  containers:
  - name: sglang
    command: [bash, /scripts/run.sh]
    volumeMounts: [{name: s, mountPath: /scripts}]
  volumes:
  - {name: s, configMap: {name: scripts}}
"""
PODS = "".join(POD.format(i=i) for i in range(4)) + MAP + "".join(POD.format(i=i) for i in range(4, 8)) + MOUNTS


def cold(text: str) -> Document:
    reader._readings.clear()
    return parse("x.yaml", text)


@given(st.sampled_from([PODS, *TEXTS]), st.integers(0, 1 << 30))
@draws(80)
def test_reading_after_edits_is_reading_afresh(text: str, seed: int) -> None:
    chance = random.Random(seed)
    text = f"{text}\n{POD.format(i=0)}" if chance.random() < 0.5 else text
    at = chance.randrange(len(text) + 1)
    texts = [text]
    for _ in range(8):
        text, at = edited(text, at, chance)
        if chance.random() < 0.2:
            at = text.find("\n", at) + 1
            text = f"{text[:at]}---\n{text[at:]}"
        texts.append(text)
    reader._readings.clear()
    for document in [parse("x.yaml", each) for each in texts]:
        assert document == cold(document.text)
        check_maps(document)


def anchored(document: Document) -> list[Launch]:
    assert isinstance(document.launches, Launches)
    return list(document.launches.anchored)


EDITS: dict[str, Callable[[str], str]] = {
    "a letter": lambda text: text.replace("m3", "m33", 1),
    "a line": lambda text: text.replace("metadata: {name: server-3}", "metadata:\n  name: server-3", 1),
    "a comment above all": lambda text: f"# more\n{text}",
    "a document": lambda text: text.replace("---\nkind: ConfigMap", f"{POD.format(i=9)}---\nkind: ConfigMap", 1),
    "a document less": lambda text: text.replace(POD.format(i=3), "", 1),
    "a broken one": lambda text: text.replace("name: server-3", "name: [server-3", 1),
    "the end": lambda text: f"{text}# the end\n",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_launches_of_documents_that_are_not_edited_are_the_very_same_objects(edit: Callable[[str], str]) -> None:
    before = anchored(cold(PODS))
    after = anchored(parse("x.yaml", edit(PODS)))
    assert len(before) == 9
    gone = [one for one in before if not any(one is other for other in after)]
    assert len(gone) <= 1
    assert [launch.place for launch in parse("x.yaml", PODS).launches] == [one.place for one in cold(PODS).launches]


def test_what_a_pod_mounts_is_read_again_where_that_changed() -> None:
    before = anchored(cold(PODS))
    document = parse("x.yaml", PODS.replace("--tp 4", "--tp 8", 1))
    words = [[w.text for w in one.variants[0].words] for one in document.launches]
    assert [argv for argv in words if argv[-1] == "8"] == [["--model-path", "x", "--tp", "8"]]
    assert document == cold(document.text)
    assert len(before) == len(document.launches)


@given(st.lists(st.text(alphabet="-.\n a", max_size=8), min_size=1), st.data())
def test_documents_after_edits_are_those_of_the_text(pieces: list[str], data: st.DataObject) -> None:
    text = "\n---\n".join(pieces)
    standing = stand_again("x.yaml", [text[a:b] for a, b in documents(text)], None)
    for _ in range(4):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 6, len(text))))
        old, text = (
            text,
            text[:start] + data.draw(st.sampled_from(["", "-", "\n", "---\n", "\n--- a\n..."])) + text[end:],
        )
        standing = stand_after_edit(standing, old, text, documents, len("--- "))
        assert [*zip(standing.starts, standing.texts, strict=True)] == [(a, text[a:b]) for a, b in documents(text)]
        assert [*standing.bases] == sorted(set(standing.bases))
        assert standing.size == len(text)
