"""The access log: entries, one for each response, and their formatting.

A request makes an entry, in about a microsecond; the log's thread formats it. The only text of a client is
the request id, whose form was checked: addresses are parsed, paths are templates.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

import msgspec

from petstore.core.client_address import UNKNOWN_CLIENT, Networks, client_address, parse_address
from petstore.core.keys import Caller

# An entry keeps the end of X-Forwarded-For, where proxies append. The whole may be a hundred times as long,
# and 100,000 entries may wait.
FORWARDED_MAX_BYTES = 512

# The log shows these and `other`: the method is text of the client.
METHODS = {
    name: name
    for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY")
}
OTHER_METHOD = "other"
_RECURRING_KEPT = 4_096


class AccessEntry(msgspec.Struct, gc=False):
    """One response; never holds the key.

    `client` is the peer's address and port. `caller` is also that of a refused key. `cause` is why a 401 was
    answered, or `suspended`.
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
    caller: Caller | None = None
    cause: str | None = None
    request_id: bytes | None = None


class _Fields(msgspec.Struct, gc=False):
    """The fields that many lines share, in their order."""

    address: str | None
    account: int | None
    key: int | None
    operation: str
    method: str
    path: str | None
    status: int


class Addresses:
    """Clients' addresses as the log shows them: `shown` is PETSTORE_LOG_ADDRESS: full, network (/24, /48) or
    off."""

    def __init__(self, trusted_proxies: Networks = (), shown: str = "full") -> None:
        self._trusted = trusted_proxies
        self._is_network = shown == "network"
        self.are_shown = shown != "off"

    def read(self, peer: str, forwarded_for: bytes) -> str | None:
        """The client behind trusted proxies, normalized; None where none is shown. `forwarded_for` is the end
        of the header, of FORWARDED_MAX_BYTES."""
        if not self.are_shown:
            return None
        text = forwarded_for.decode("latin-1")
        if len(text) >= FORWARDED_MAX_BYTES:
            text = UNKNOWN_CLIENT + "," + text.partition(",")[2]  # the first hop may be cut
        address = parse_address(client_address(peer, text, self._trusted))
        if address is None:
            return UNKNOWN_CLIENT
        if self._is_network:
            return str(ip_network((address.packed, 24 if address.version == 4 else 48), strict=False))
        return str(ip_address(address.packed))  # without the zone, which is text of the client


class AccessFormat:
    """Formats entries. `addresses` is as Addresses takes it; `mark` begins each line of text."""

    def __init__(
        self, *, trusted_proxies: Networks = (), addresses: str = "full", worker: int = 0, mark: str = ""
    ) -> None:
        self._mark = mark
        self._addresses = Addresses(trusted_proxies, addresses)
        self._worker = worker
        self._fields = lru_cache(_RECURRING_KEPT)(self._read)
        self._as_json = lru_cache(_RECURRING_KEPT)(self._encode)

    def json_line(self, entry: AccessEntry) -> bytes:
        """A JSON object and the end of the line."""
        # No encoder makes it, for speed. The checked form of a request id needs no escapes.
        begin, end = self._as_json(_recurring(entry), entry.cause)
        request_id = b"null" if entry.request_id is None else b'"%b"' % entry.request_id
        took_ms = entry.seconds * 1_000
        return b'%b"request_id":%b%b%d,"ms":%.3f%b' % (
            _opening(entry.at_ms),
            request_id,
            begin,
            entry.sent_bytes,
            took_ms,
            end,
        )

    def _encode(self, recurring: tuple[Any, ...], cause: str | None) -> tuple[bytes, bytes]:
        """The JSON before the number of bytes and after the milliseconds."""
        begin = msgspec.json.encode(self._fields(recurring)).strip(b"{}")
        end = "" if cause is None else f',"cause":"{cause}"'
        return b',%b,"bytes":' % begin, f',"worker":{self._worker}{end}}}\n'.encode()

    def text_line(self, entry: AccessEntry) -> bytes:
        """The line for people at a terminal."""
        line = self._fields(_recurring(entry))
        seconds, milliseconds = divmod(entry.at_ms, 1_000)
        who = "-" if line.account is None else f"{line.account}/{line.key}"
        request_id = "-" if entry.request_id is None else entry.request_id.decode("ascii")
        cause = "" if entry.cause is None else f"  {entry.cause} key"
        text = (
            f"{self._mark}{_second(seconds)[11:].decode()}.{milliseconds:03d} {line.status} {line.method}"
            f" {line.path or '(no such path)'}  {entry.seconds * 1_000:.3f} ms  {entry.sent_bytes} bytes"
            f"  address {line.address or '-'}  account/key {who}  request {request_id}{cause}\n"
        )
        return text.encode()

    def _read(self, recurring: tuple[Any, ...]) -> _Fields:
        peer, forwarded_for, *others = recurring
        return _Fields(self._addresses.read(peer, forwarded_for), *others)


def _recurring(entry: AccessEntry) -> tuple[Any, ...]:
    """The key of the cached parts of a line."""
    caller = entry.caller
    return (
        entry.client[0] if entry.client else UNKNOWN_CLIENT,
        entry.forwarded_for,
        None if caller is None else caller.account_id,
        None if caller is None else caller.key_id,
        entry.operation,
        entry.method,
        entry.path,
        entry.status,
    )


@lru_cache(16)
def _opening(at_ms: int) -> bytes:
    """The beginning of a line, the same for all requests of a millisecond."""
    seconds, milliseconds = divmod(at_ms, 1_000)
    return b'{"time":"%b.%03d000Z","level":"info","event":"request",' % (_second(seconds), milliseconds)


@lru_cache(16)
def _second(seconds: int) -> bytes:
    """A Unix second as ISO 8601 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
