"""Streams of messages, changed at random: what comes out does not depend on how the bytes are cut, and the reader goes on."""

from __future__ import annotations

import random
import traceback
from typing import Any

from spec_lsp.server.framing import Framer, frame
from tests.fuzz.laws import Failure

HEADERS = (
    b"Content-Length: 5\r\n", b"content-length:5\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Content-Length: 1e3\r\n\r\n", b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n", b"\r\n", b"\n\n", b":", b"X: y\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0\xff\xfe", b"Content-Length", b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
)  # fmt: skip


def stream(chance: random.Random) -> bytes:
    """A few messages, and something wrong with them."""
    data = bytearray()
    for number in range(chance.randrange(1, 6)):
        body = b'{"jsonrpc": "2.0", "id": %d, "method": "shutdown"}' % number
        data += frame(body * chance.choice((0, 1, 1, 1, 3)))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(3):
            case 0:
                data[at:at] = chance.choice(HEADERS)
            case 1:
                del data[at : at + chance.randrange(1, 30)]
            case _:
                data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 5)))
    return bytes(data)


def read(pieces: list[bytes]) -> list[Any]:
    framer = Framer()
    return [repr(found) for piece in pieces for found in framer.feed(piece)]


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    at = sorted(chance.choices(range(len(data) + 1), k=chance.randrange(1, 12)))
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


def changed_stream(seed: str, number: int) -> Failure | None:
    """What is wrong with how a stream is read, if anything is."""
    case = f"frames:{seed}:{number}"
    chance = random.Random(case)
    data = stream(chance)
    try:
        whole = read([data])
        for pieces in (cut(data, chance), [bytes([b]) for b in data]):
            if read(pieces) != whole:
                return Failure(case, "difference", f"{data!r} cut as {pieces!r}", "stream", ())
    except Exception as error:
        told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return Failure(case, "crash", told, "stream", ())
    return None
