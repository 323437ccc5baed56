"""The playground without a browser: what it serves, to whom, and that it looks at no disk."""

from __future__ import annotations

import filecmp
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

import spec_lsp
from spec_lsp.server.access import Access
from spec_lsp.server.client import Client
from spec_lsp.server.engine import RealEngine
from spec_lsp.server.playground import FILES, answer, page_at
from spec_lsp.server.session import Session

SOURCES = Path(__file__).parents[2] / "editors" / "playground"
PAGE = Path(spec_lsp.__file__).parent / "server" / "page"
EXAMPLES: list[dict[str, Any]] = json.loads((PAGE / "examples.json").read_text("utf-8"))
NAMES = {"shell": "launch.sh", "compose": "compose.yaml", "kubernetes": "deployment.yaml", "python": "serve.py"}


HERE = Access()


def asked(path: str, access: Access = HERE, **headers: str) -> Response | None:
    """The answer to a request that came in at this machine's own address."""
    given = {"Host": "127.0.0.1:2088", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return answer(Request(path, Headers(given)), access, "127.0.0.1")


@pytest.mark.parametrize("path", FILES)
def test_each_file_of_the_page_is_served(path: str) -> None:
    page, response = page_at(path), asked(path)
    assert page
    assert response
    assert (response.status_code, response.body) == (200, page.plain)
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    packed = asked(path, Accept_Encoding="gzip, br")
    assert packed
    assert gzip.decompress(packed.body or b"") == page.plain
    again = asked(path, If_None_Match=page.tag)
    assert again
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/..", "/../__init__.py", "/page", "/%2e%2e/etc/passwd", "//etc/passwd", "/index.html/", "*"]
)
def test_nothing_else_is_served(path: str) -> None:
    response = asked(path)
    assert response
    assert response.status_code == 404


NAMED = Access(("page.example",), ("https://page.example",))


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:2088"}, True),
        ({"Host": "Page.Example", "Origin": "https://page.example"}, True),
        ({"Host": "10.0.0.1:80"}, False),
        ({"Origin": "https://page.example"}, True),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "null"}, False),
    ],
)
def test_only_pages_of_this_address_or_a_named_one_connect(headers: dict[str, str], allowed: bool) -> None:
    assert (asked("/lsp", NAMED, **headers) is None) is allowed


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name in ("index.html", "page.css"):
        text = (PAGE / name).read_text("utf-8")
        assert "http:" not in text
        assert "https:" not in text
        assert "//" not in text.replace("<!doctype", "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["title"])
def test_an_example_shows_its_rule_with_a_fix(example: dict[str, Any]) -> None:
    found = spec_lsp.check_text(example["text"], NAMES[example["kind"]], sglang=example["sglang"], gpu=example["gpu"])
    shown = next(f for f in found if f.rule == example["rule"])
    assert shown.fixes


def test_no_file_is_read(tmp_path: Path) -> None:
    """Not one that the text names, nor settings or models beside it, though the client calls the text a file of that folder."""
    (tmp_path / "v.sh").write_text("BACKEND=canary\n")
    (tmp_path / "c.yaml").write_text("attention-backend: canary\n")
    (tmp_path / "spec-lsp.toml").write_text('gpu = "b200"\n')
    (tmp_path / "requirements.txt").write_text("sglang==0.5.9\n")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text('{"architectures": ["Canary"]}')
    launch = "python3 -m sglang.launch_server --model-path ./m --config c.yaml --attention-backend $BACKEND\n"
    given = {"sglang": "0.5.23", "models": [str(tmp_path)], "python": str(tmp_path / "python"), "exclude": ["*"]}
    session = Session(
        Client(folders=(tmp_path.as_uri(),), initialization_options=given),
        RealEngine(),
        lambda _: None,
        lambda _: None,
        reads_disk=False,
    )
    opened = session.open((tmp_path / "launch.sh").as_uri(), "shellscript", 1, f"source ./v.sh\n{launch}")
    analysis = session.analysis(opened.name)
    assert analysis
    said = repr(analysis.diagnostics) + session.engine.resolved(analysis.launches[0], links=False)[0]
    assert "canary" not in said.lower()
    assert {str(w.release) for w in analysis.launches[0].worlds} == {"0.5.23"}
    assert len(analysis.launches[0].worlds) > 1
    assert session.roots == ()
    assert session.surroundings() == set()


def test_the_page_is_bundled_from_its_sources(tmp_path: Path) -> None:
    if not (SOURCES / "node_modules").exists() or shutil.which("node") is None:
        pytest.skip("the page's packages are not installed: npm ci --prefix editors/playground")
    made = tmp_path / "page.js"
    subprocess.run(["node", "build.mjs", str(made)], cwd=SOURCES, check=True, timeout=60)
    assert filecmp.cmp(made, PAGE / "page.js", shallow=False), "run `npm run build` in editors/playground"
