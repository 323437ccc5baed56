"""Message bodies come out whole, however the stream is cut; whatever a header holds, the next message is read."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec_lsp.server import framing
from spec_lsp.server.framing import MAX_BODY, Fault, Framer, frame

BODY = b'{"jsonrpc":"2.0","method":"x"}'
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
cuttings = st.lists(st.integers(1, 50), max_size=30)


def fed(stream: bytes, cuts: list[int]) -> list[bytes | Fault]:
    framer, found, at = Framer(), [], 0
    for cut in [*cuts, len(stream)]:
        found += framer.feed(stream[at : at + cut])
        at += cut
    return found


def bodies(found: list[bytes | Fault]) -> list[bytes]:
    return [one for one in found if isinstance(one, bytes)]


@patient
@given(sent=st.lists(st.binary(max_size=40), max_size=6), cuts=cuttings)
def test_any_cutting_gives_the_same_bodies(sent: list[bytes], cuts: list[int]) -> None:
    assert fed(b"".join(map(frame, sent)), cuts) == sent


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n",
        b"Content-Type: x\r\ncontent-length:2\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length : 0002 \r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"X-Other: 3\r\nContent-Length: 2\r\n\r\n",
        b"\r\n\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_headers(header: bytes) -> None:
    assert Framer().feed(header + b"{}") == [b"{}"]


ODD = [
    b"nonsense\r\n\r\n",
    b"nonsense",
    b"\r\r\r",
    b"\x00" * 3000,
    b"a" * 3000,
    b"a" * 3000 + b"\n",
    b"X: y\r\n" * 3000 + b"\r\n",
    b"X: y\r\n\r\n",
    b"Content-Length: -5\r\n\r\n",
    b"Content-Length: +5\r\n\r\nhello",
    b"Content-Length: 5.0\r\n\r\nhello",
    b"Content-Length: \xd9\xa5\r\n\r\nhello",
    b"Content-Length:\r\n\r\n{}",
    b"Content-Length: 99999999999999\r\n\r\n{}",
    b"Content-Length: %d\r\n\r\n{}" % (MAX_BODY + 1),
    b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    b"Content-Length: " + b"0" * 5000 + b"2\r\n\r\n{}",
    b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"Content-Length: 2\r\nContent-Type: x; charset=utf-16\r\n\r\n{}",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_after_any_header_the_next_message_is_read(odd: bytes, size: int) -> None:
    stream = odd + frame(BODY) + frame(b"{}")
    found = fed(stream, [size] * (len(stream) // size))
    assert bodies(found) == [BODY, b"{}"]
    assert len(found) > 2 or not odd.strip(), "what is wrong is told"


@patient
@given(
    odd=st.lists(
        st.sampled_from([*ODD, b"\r\n", b"\n", b":", b"content-length:", b"7"]) | st.binary(max_size=30), max_size=8
    ),
    cuts=cuttings,
)
def test_no_stream_deafens_it(odd: list[bytes], cuts: list[int]) -> None:
    """Whatever came, at most the bytes that some header promised are swallowed; then messages are read again."""
    stream = b"".join(odd)
    found = fed(stream + b"\n" * 1000 + frame(BODY) + frame(BODY), cuts)
    assert BODY in bodies(found)


@patient
@given(odd=st.lists(st.sampled_from(ODD) | st.binary(max_size=30), max_size=8), cuts=cuttings)
def test_any_cutting_of_anything_gives_the_same(odd: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(odd) + frame(BODY)
    assert bodies(fed(stream, cuts)) == bodies(fed(stream, []))


def test_each_byte_is_looked_at_once_and_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB of header lines, or of one line, are no more work than they are bytes."""
    looked = 0

    class Counting(bytearray):
        def find(self, *arguments: object) -> int:  # type: ignore[override]
            nonlocal looked
            found = super().find(*arguments)  # type: ignore[arg-type]
            looked += (found if found >= 0 else len(self)) - int(arguments[1])  # type: ignore[call-overload]
            return found

    class Pattern:
        def search(self, buffer: bytearray, start: int) -> object:
            nonlocal looked
            found = real.search(buffer, start)
            looked += (found.end() if found else len(buffer)) - start
            return found

    real = framing._NEXT
    monkeypatch.setattr(framing, "_NEXT", Pattern())
    for piece in (b"X: y\r\n" * 1000, b"a" * 6000, b"Content-Type: x\r\n" * 400, b"Content-Length: x\r\n" * 300):
        framer = Framer()
        framer._buffer = Counting()
        looked, fed_bytes = 0, 0
        for _ in range(50):
            framer.feed(piece)
            fed_bytes += len(piece)
            assert len(framer._buffer) < len(piece) + 4 * framing.MAX_LINE
        assert looked < 4 * fed_bytes
        assert BODY in framer.feed(b"\r\n\r\n" + frame(BODY))
