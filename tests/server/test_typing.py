"""What an editor is told after edits is what it would be told of the text: nothing of what is kept from key to key shows."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.server.engine import RealEngine
from tests.draws import draws
from tests.server.fakes import LocalClient
from tests.syntax.support import START, forget

PUSHED = {"textDocument": {"publishDiagnostics": {"relatedInformation": True, "dataSupport": True}}}
GIVEN = "# spec-lsp: sglang=0.5.23 gpu=h100\n"
FLAWED = "--model-path x --bogus 7 --page-size $P --tp 2 --port 30000"
SHELL = (
    f'#!/bin/bash\n{GIVEN}P=16\necho "é𝄞" > log; Q=3\n'
    f"SGLANG_NO_SUCH=1 {START} \\\n  --model-path x \\\n  --bogu $Q \\\n  --page-size 64 \\\n  --tp=2 &\n\n"
    f"# two\nCUDA_VISIBLE_DEVICES=0 {START} --model-path x --tp 2\n{START} {FLAWED}\nif $1; then\n  {START} --schedul-policy lpm --tp $P\nfi\n"
)
POD = "---\nkind: Pod\nspec:\n  containers:\n  - name: a\n    args: [python, -m, sglang.launch_server, --bogus=7]\n"
TEXTS = {
    "run.sh": SHELL,
    "pods.yaml": f"{GIVEN}{POD}{POD.replace('bogus', 'bogu')}{POD.replace('7', '8')}",
    "Dockerfile": f'{GIVEN}FROM x\nENV P=16\nRUN {START} {FLAWED}\nCMD ["{START.replace(" ", chr(34) + ", " + chr(34))}", "--bogus"]\n',
    "page.md": f"```bash\n{GIVEN}{START} {FLAWED}\n```\ntext\n```bash\n{START} {FLAWED}\n```\n",
    "run.py": f'{GIVEN}import os\nP = 16\nos.system(f"{START} --bogus {{P}}")\nos.system("{START} --bogus 7")\n',
}
TYPED = [
    "1",
    "a",
    " ",
    "\n",
    "-",
    '"',
    "$P",
    "#",
    "\\\n",
    "é",
    "𝄞",
    "\r\n",
    "P=1\n",
    "---\n",
    "# spec-lsp: ignore[unknown-flag]\n",
]


FOLDERS = itertools.count()


def edit(text: str, chance: random.Random) -> tuple[int, int, str]:
    """One edit of somebody: characters [start, end) become others; now and then as many as they were, across lines."""
    at = chance.randrange(len(text) + 1)
    kind = chance.random()
    if kind < 0.5:
        return at, at, chance.choice(TYPED)
    if kind < 0.7:
        return at, min(at + chance.choice((1, 1, 2, 12)), len(text)), ""
    breaks = [i for i, c in enumerate(text) if c == "\n"] or [0]
    line = chance.choice(breaks)
    if kind < 0.9 and text[line - 1 : line] == "\\":
        return line - 1, line + 1, "  "
    return line, min(line + 1, len(text)), chance.choice((" ", "\n\n", ""))


def place(text: str, offset: int) -> tuple[int, int]:
    """The protocol position of an offset (UTF-16)."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    line = before.rpartition("\n")[2]
    return before.count("\n"), len(line.encode("utf-16-le")) // 2


async def told(client: LocalClient, uri: str) -> list[Any]:
    """What was published last, once nothing that is half typed is withheld."""
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    said: list[Any] = client.published(uri)[-1]["diagnostics"]
    return sorted(json.dumps(one, sort_keys=True) for one in said)


async def opened(uri: str, text: str) -> LocalClient:
    client = LocalClient(PUSHED, RealEngine())  # type: ignore[arg-type]
    await client.start()
    client.open(uri, text, language="")
    await client.quiet()
    return client


@pytest.mark.parametrize("name", TEXTS)
@given(seed=st.integers(0, 1 << 30))
@draws(25)
def test_what_is_told_after_edits_is_what_is_told_of_the_text(name: str, seed: int) -> None:
    asyncio.run(typing(name, seed))


async def typing(name: str, seed: int) -> None:
    chance, uri, text = random.Random(seed), f"file:///nowhere/{name}", TEXTS[name]
    forget()
    client = await opened(uri, text)
    for version in range(2, 8):
        start, end, new = edit(text, chance)
        if "\r" in text[start - 1 : start] + text[end - 1 : end]:
            continue  # no position stands between CR and LF
        client.change(uri, version, (*place(text, start), *place(text, end), new))
        text = text[:start] + new + text[end:]
        await client.quiet()
        said = await told(client, uri)
        if chance.random() < 0.5:
            assert said == await afresh(name, text)
    assert await told(client, uri) == await afresh(name, text)


async def afresh(name: str, text: str) -> list[Any]:
    """What is told of a text that nobody has seen before: elsewhere, so that what is kept of the other stays."""
    folder = f"elsewhere{next(FOLDERS)}"
    uri = f"file:///{folder}/{name}"
    return [one.replace(f"/{folder}/", "/nowhere/") for one in await told(await opened(uri, text), uri)]


REPEATED = {
    "run.sh": f'LOG_@=log@\necho "@" > "$LOG_@"\n{START} --model-path x --bogus 7 --page-size $P --port @ > "$LOG_@" &\n\n',
    "pods.yaml": POD.replace("bogus=7", "bogus=@"),
    "page.md": f"# @\n\n```bash\n{START} --model-path x \\\n  --bogus @\n```\n\n",
}


@pytest.mark.parametrize(("name", "each"), [("run.sh", 1), ("pods.yaml", 1), ("page.md", 50)])
async def test_a_key_takes_no_more_steps_in_a_long_file(name: str, each: int) -> None:
    """Counted are calls of functions for each further launch, in all that happens from the edit to what is told of it: none, but to find
    the blocks of a page. To read and judge one takes a thousand."""
    few, many = [await steps_of_a_key(name, launches) for launches in (100, 400)]
    assert many - few < 300 * each


async def steps_of_a_key(name: str, launches: int) -> int:
    uri, text = f"file:///nowhere/{launches}/{name}", f"{GIVEN}P=16\n" if name == "run.sh" else GIVEN
    text += "".join(REPEATED[name].replace("@", str(number)) for number in range(1000, 1000 + launches))
    client = await opened(uri, text)
    at = text.index(str(1000 + launches // 2), text.index("bogus", len(text) // 2))
    steps = []
    for version in range(2, 6):
        client.messages.clear()
        client.change(uri, version, (*place(text, at), *place(text, at), "1"))
        counted = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count)
        while not any(message.get("method") == "textDocument/publishDiagnostics" for message in client.messages):
            await asyncio.sleep(0)
        sys.setprofile(None)
        steps.append(counted)
    return min(steps)
