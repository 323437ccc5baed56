"""Message bodies come out whole, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.server.framing import Framer, frame


@given(bodies=st.lists(st.binary(max_size=40), max_size=6), cuts=st.lists(st.integers(1, 50), max_size=30))
def test_any_cutting_gives_the_same_bodies(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, bodies))
    framer, found, at = Framer(), [], 0
    for cut in [*cuts, len(stream)]:
        found += framer.feed(stream[at : at + cut])
        at += cut
    assert found == bodies


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: x\r\ncontent-length:2\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"nonsense\r\n\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: -5\r\n\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 99999999999999\r\n\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_headers(header: bytes) -> None:
    assert Framer().feed(header + b"{}") == [b"{}"]
