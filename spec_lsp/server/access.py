"""Who may talk to a listening server: what a WebSocket's opening request must contain, and which addresses other machines can reach.

Any web page may open a WebSocket to this machine under any host name; the browser sends the page's Origin and the Host that it connected
to. So the Host must be this machine's, and the Origin of a page must be the server's own or one that was explicitly allowed.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from spec_lsp.records import dataclass

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN = 400, 401, 403


class Headers(Protocol):
    """The header fields of a request."""

    def get_all(self, key: str, /) -> Sequence[str]:
        """All values of a field, in order."""


@dataclass(frozen=True, slots=True)
class Access:
    """What is required of a WebSocket client. `hosts` and `origins` are allowed in addition to this machine's own; an empty token requires
    none."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    token: str = ""

    def refusal(self, path: str, headers: Headers, address: str) -> tuple[int, str] | None:
        """Why a request for `path` that arrived at our `address` is rejected: an HTTP status and a sentence. None if it is accepted."""
        hosts = headers.get_all("Host")
        if len(hosts) != 1:
            return BAD_REQUEST, "A request names one Host."
        if not self._is_ours(_name(hosts[0]), address):
            return FORBIDDEN, "The Host is not this machine's. Name it with --allow-host if it is meant."
        for origin in headers.get_all("Origin"):
            if not self._is_let_in(origin, hosts[0]):
                return FORBIDDEN, "The Origin is not this server's. Name it with --allow-origin if it is meant."
        if self.token and not _given(path, headers, self.token):
            return (
                UNAUTHORIZED,
                "The token is missing or wrong: send it as `Authorization: Bearer TOKEN` or `?token=TOKEN`.",
            )
        return None

    def _is_ours(self, host: str, address: str) -> bool:
        if not host:
            return False
        named = {"localhost", address.lower(), socket.gethostname().lower(), *map(_name, self.hosts)}
        return host in named or host.endswith(".localhost") or is_loopback(host)

    def _is_let_in(self, origin: str, host: str) -> bool:
        if origin.lower().rstrip("/") in {one.lower().rstrip("/") for one in self.origins}:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _name(host: str) -> str:
    """The host of a Host field, without the port; empty if it has none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _given(path: str, headers: Headers, token: str) -> bool:
    import hmac  # few connections need it

    given = [value[7:].strip() for value in headers.get_all("Authorization") if value[:7].lower() == "bearer "]
    given += parse_qs(urlsplit(path).query).get("token", [])
    return any(hmac.compare_digest(one.encode("utf-8", "replace"), token.encode()) for one in given)


def is_loopback(address: str) -> bool:
    """Whether an IP address is reachable from this machine only; False for anything that is not an IP address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def all_loopback(addresses: Iterable[str]) -> bool:
    """Whether none of these addresses is reachable from other machines."""
    return all(map(is_loopback, addresses))


def new_token() -> str:
    """A token nobody can guess."""
    import secrets

    return secrets.token_urlsafe(24)
