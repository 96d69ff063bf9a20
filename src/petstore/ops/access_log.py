"""The access log's entries, one for each answered request, and the lines that they become.

A request makes an entry, in about a microsecond; the log's thread makes the line. The request id,
whose form was checked, is the only text of a client's own: addresses were parsed, paths are templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network

import msgspec

from petstore.core.client_address import UNKNOWN, Networks, client_address, parse_address
from petstore.core.keys import Grant

# Of X-Forwarded-For an entry keeps the end, where the proxies write; a request's head may be a hundred times
# as long, and 100,000 entries may wait.
FORWARDED_MAX_BYTES = 512

_METHODS = {
    name: name
    for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
}
_ADDRESSES_KEPT = 4_096


def known_method(method: str) -> str:
    """The method, or `other`: a client may send any word."""
    return _METHODS.get(method, "other")


class AccessEntry(msgspec.Struct, gc=False):
    """One answered request, as it is at hand; never the key.

    `client` is the address and port of the peer, `grant` the key's also when it was refused, `cause` why.
    """

    at_ms: int
    seconds: float
    method: str
    path: str | None
    operation: str
    status: int
    sent_bytes: int
    client: tuple[str, int] | None
    forwarded_for: bytes
    grant: Grant | None
    cause: str | None
    request_id: bytes | None


class _Line(msgspec.Struct, gc=False, omit_defaults=True):
    """The fields of a JSON line in their order; `cause` is left out where there is none."""

    time: str
    level: str
    event: str
    request_id: str | None
    address: str | None
    account: int | None
    key: int | None
    operation: str
    method: str
    path: str | None
    status: int
    bytes: int
    ms: float
    worker: int
    cause: str | None = None


class AccessFormat:
    """Makes lines of entries. `addresses` is PETSTORE_LOG_ADDRESS: full, network (/24, /48) or off."""

    def __init__(self, *, trusted_proxies: Networks = (), addresses: str = "full", worker: int = 0) -> None:
        self._trusted = trusted_proxies
        self._is_network = addresses == "network"
        self._shows_addresses = addresses != "off"
        self._worker = worker
        self._address = lru_cache(_ADDRESSES_KEPT)(self._read_address)
        self._encoder = msgspec.json.Encoder()

    def json_lines(self, entries: Sequence[AccessEntry]) -> bytes:
        """One JSON object a line."""
        return self._encoder.encode_lines([self._line(entry) for entry in entries])

    def text_lines(self, entries: Sequence[AccessEntry]) -> bytes:
        """For people at a terminal."""
        return "".join(_as_text(self._line(entry)) for entry in entries).encode()

    def _line(self, entry: AccessEntry) -> _Line:
        grant = entry.grant
        seconds, milliseconds = divmod(entry.at_ms, 1_000)
        return _Line(
            f"{_second(seconds)}.{milliseconds:03d}000Z",
            "info",
            "request",
            None if entry.request_id is None else entry.request_id.decode("ascii"),
            self._address_of(entry) if self._shows_addresses else None,
            None if grant is None else grant.account_id,
            None if grant is None else grant.key_id,
            entry.operation,
            entry.method,
            entry.path,
            entry.status,
            entry.sent_bytes,
            round(entry.seconds * 1_000, 3),
            self._worker,
            entry.cause,
        )

    def _address_of(self, entry: AccessEntry) -> str:
        return self._address(entry.client[0] if entry.client else UNKNOWN, entry.forwarded_for)

    def _read_address(self, peer: str, forwarded_for: bytes) -> str:
        """The client behind trusted proxies, in one form for each address."""
        text = forwarded_for.decode("latin-1")
        if len(text) >= FORWARDED_MAX_BYTES:
            text = UNKNOWN + "," + text.partition(",")[2]  # the first hop may have lost its beginning
        address = parse_address(client_address(peer, text, self._trusted))
        if address is None:
            return UNKNOWN
        if self._is_network:
            return str(ip_network((address.packed, 24 if address.version == 4 else 48), strict=False))
        return str(ip_address(address.packed))  # without the name of a zone, which is anybody's text


@lru_cache(16)
def _second(seconds: int) -> str:
    """A second of the calendar: many requests share one."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _as_text(line: _Line) -> str:
    who = "-" if line.account is None else f"{line.account}/{line.key}"
    cause = "" if line.cause is None else f"  {line.cause} key"
    return (
        f"{line.time[11:23]} {line.status} {line.method} {line.path or '(no such path)'}"
        f"  {line.ms:.3f} ms  {line.bytes} bytes  address {line.address or '-'}  account/key {who}"
        f"  request {line.request_id or '-'}{cause}\n"
    )
