"""A GET with the header lines of the one before: most clients send the same ones with each request."""

from __future__ import annotations

from petstore.http.exchange import Exchange
from petstore.http.heads import Head

_GET, _START, _END = b"GET ", b"GET /", b" HTTP/1.1\r\n"
# Most characters of RFC 3986; llhttp reads targets that have others.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@%/?"
# Larger ones are not kept, so that 16,384 connections can't fill the memory with theirs.
_BYTES_MAX, _LINES_MAX = 1_024, 24


class Repeats:
    """Of one connection, between whose requests `find` is asked."""

    __slots__ = ("_head", "_rest")

    def __init__(self) -> None:
        self._rest = b""  # of the last such request: all but its method and target
        self._head = Head([])

    def find(self, data: bytes) -> tuple[bytes, bytes, Head] | None:
        """Path, query and head of a whole request that differs from the last one in its target alone."""
        rest = self._rest
        if not rest or not data.endswith(rest) or not data.startswith(_START):
            return None
        target = data[len(_GET) : -len(rest)]
        if target.translate(None, _PLAIN):
            return None
        path, _, query = target.partition(b"?")
        return path, query, self._head

    def note(self, data: bytes, exchange: Exchange) -> None:
        """The bytes from which this request was read, whole and alone, and after which others may come."""
        if not data.startswith(_START) or exchange.waiting_bytes:
            return
        end = data.find(b"\r\n") + len(b"\r\n") - len(_END)
        is_small = len(data) - end <= _BYTES_MAX and len(exchange.head.headers) <= _LINES_MAX
        if is_small and end > 0 and data.startswith(_END, end):  # llhttp reads `GET / RTSP/1.1` too
            self._rest, self._head = data[end:], exchange.head
