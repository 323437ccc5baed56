"""Names of documents, whatever way a client writes its URIs."""

from __future__ import annotations

import pytest

from spec_lsp.server.uris import is_file, name_of, uri_of


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///a/b.sh", "/a/b.sh"),
        ("file:///a%20b/c%23.sh", "/a b/c#.sh"),
        ("file://localhost/a/b.sh", "/a/b.sh"),
        ("FILE:///a/b.sh", "/a/b.sh"),
        ("file:/a/b.sh", "/a/b.sh"),
        ("file:///a/../b.sh", "/b.sh"),
        ("file:///%E2%82%AC/%F0%9F%98%80.sh", "/€/😀.sh"),
        ("file:///a/b.sh?x=1#y", "/a/b.sh"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("vscode-notebook-cell:/a/b.ipynb#x", "vscode-notebook-cell:/a/b.ipynb#x"),
        ("", ""),
    ],
)
def test_name_of(uri: str, name: str) -> None:
    assert name_of(uri) == name


def test_drive_letters_are_one() -> None:
    assert (
        name_of("file:///c%3A/x/y.sh").replace("\\", "/")
        == name_of("file:///C:/x/y.sh").replace("\\", "/")
        == "C:/x/y.sh"
    )


@pytest.mark.parametrize("name", ["/a b/c#d?.sh", "/€/😀.sh", "/a%20b", "untitled:Untitled-1"])
def test_there_and_back(name: str) -> None:
    assert name_of(uri_of(name)) == name


def test_is_file() -> None:
    assert is_file("/a/b.sh")
    assert not is_file("untitled:Untitled-1")
