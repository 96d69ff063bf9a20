"""A GET with header lines that came before: most clients send the same ones with each request, directly or
through a proxy whose connections they share."""

from __future__ import annotations

from petstore.http.exchange import Exchange
from petstore.http.heads import Head

_GET, _START, _END = b"GET ", b"GET /", b" HTTP/1.1\r\n"
# Most characters of RFC 3986; llhttp reads targets that have others.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@%/?"
# Larger heads, and more of them, are not cached. The cache takes about 9 MiB, 25 at most.
_BYTES_MAX, _LINES_MAX = 1_024, 24
_KEPT_MAX = 4_096


class HeadCache:
    """Heads from all connections of a server, which ask between requests."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}  # by all of a request but its method and target
        self._seen: set[int] = set()  # hashes: what comes once is not worth its memory

    def find(self, data: bytes) -> tuple[bytes, bytes, Head] | None:
        """Path, query and head of a whole request that differs from a kept one in its target alone."""
        end = data.find(_END)
        if end < 0 or not data.startswith(_START):
            return None
        head = self._heads.get(data[end:])
        target = data[len(_GET) : end]
        if head is None or target.translate(None, _PLAIN):
            return None
        path, _, query = target.partition(b"?")
        return path, query, head

    def note(self, data: bytes, exchange: Exchange) -> None:
        """The bytes from which this request was read, whole and alone, and after which others may come. When
        such lines come for the second time, their head is kept."""
        if not data.startswith(_START) or exchange.waiting_bytes:
            return
        end = data.find(b"\r\n") + len(b"\r\n") - len(_END)
        is_small = len(data) - end <= _BYTES_MAX and len(exchange.head.headers) <= _LINES_MAX
        if not is_small or end <= 0 or not data.startswith(_END, end):  # llhttp reads `GET / RTSP/1.1` too
            return
        rest = data[end:]
        if hash(rest) in self._seen:
            if len(self._heads) >= _KEPT_MAX:
                del self._heads[next(iter(self._heads))]
            self._heads[rest] = exchange.head
            return
        if len(self._seen) >= _KEPT_MAX:
            self._seen.clear()
        self._seen.add(hash(rest))
