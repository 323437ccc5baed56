"""Which WebSocket clients are let in."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from spec_lsp.server.access import Access, all_loopback, new_token

TOKEN = "0123456789abcdef"


class Fields:
    def __init__(self, *fields: tuple[str, str]) -> None:
        self._fields = fields

    def get_all(self, key: str, /) -> Sequence[str]:
        return [value for name, value in self._fields if name.lower() == key.lower()]


def status(access: Access, *fields: tuple[str, str], path: str = "/", address: str = "127.0.0.1") -> int:
    refused = access.refusal(path, Fields(*fields), address)
    return refused[0] if refused else 101


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 101),
        ("LOCALHOST:2087", 101),
        ("localhost.:2087", 101),
        ("app.localhost", 101),
        ("127.0.0.1:2087", 101),
        ("127.9.9.9", 101),
        ("[::1]:2087", 101),
        ("10.0.0.7:2087", 101),
        (f"{socket.gethostname()}:2087", 101),
        ("box.example:2087", 101),
        ("BOX.example.", 101),
        ("10.0.0.8:2087", 403),
        ("evil.example", 403),
        ("evil.example:2087", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("user@localhost", 101),
        ("localhost@evil.example", 403),
        ("", 403),
        ("[::1", 403),
        ("0.0.0.0", 403),
    ],
)
def test_the_host_is_this_machine(host: str, expected: int) -> None:
    assert status(Access(hosts=("box.example",)), ("Host", host), address="10.0.0.7") == expected


def test_there_is_one_host() -> None:
    assert status(Access()) == 400
    assert status(Access(), ("Host", "localhost"), ("Host", "localhost")) == 400


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:2087", 101),
        ("https://LOCALHOST:2087", 101),
        ("https://editor.example", 101),
        ("HTTPS://editor.example/", 101),
        ("vscode-webview://abc", 101),
        ("http://localhost", 403),
        ("http://localhost:3000", 403),
        ("https://editor.example.evil.example", 403),
        ("http://editor.example", 403),
        ("https://evil.example", 403),
        ("file://localhost:2087", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
def test_an_origin_is_the_servers_own_or_named(origin: str, expected: int) -> None:
    access = Access(origins=("https://editor.example", "vscode-webview://abc"))
    assert status(access, ("Host", "localhost:2087"), ("Origin", origin)) == expected


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        ([], "/", 401),
        ([], "/?token=", 401),
        ([], "/?token=wrong", 401),
        ([], f"/?token={TOKEN}x", 401),
        ([], f"/?token={TOKEN}", 101),
        ([], f"/?a=b&token={TOKEN}", 101),
        ([("Authorization", f"Bearer {TOKEN}")], "/", 101),
        ([("authorization", f"bearer  {TOKEN} ")], "/", 101),
        ([("Authorization", TOKEN)], "/", 401),
        ([("Authorization", f"Basic {TOKEN}")], "/", 401),
        ([("Authorization", "Bearer \ud800")], "/", 401),
    ],
)
def test_the_token(fields: list[tuple[str, str]], path: str, expected: int) -> None:
    assert status(Access(token=TOKEN), ("Host", "localhost"), *fields, path=path) == expected


def test_a_token_opens_no_door_to_pages_of_others() -> None:
    fields = (("Host", "localhost"), ("Origin", "https://evil.example"))
    assert status(Access(token=TOKEN), *fields, path=f"/?token={TOKEN}") == 403


def test_which_addresses_others_reach() -> None:
    assert all_loopback(["127.0.0.1", "::1"])
    assert not all_loopback(["127.0.0.1", "0.0.0.0"])
    assert not all_loopback(["::"])
    assert not all_loopback(["fe80::1%eth0"])


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(50)}) == 50
    assert min(len(new_token()) for _ in range(50)) >= 32
