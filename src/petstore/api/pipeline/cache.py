"""Replies with a page, kept for as long as no animal has changed: never stale, no timer, bounded."""

from __future__ import annotations

from itertools import chain

from petstore.api.pipeline.response import Response
from petstore.core.versions import Version

_BYTES_MAX = 2 * 1024 * 1024
_OVERHEAD_BYTES = 300


class PageCache:
    """Replies by query string, all of one version of the catalogue. `reads` counts those not found here."""

    def __init__(self) -> None:
        self._pages: dict[bytes, Response] = {}
        self._version: Version | None = None
        self._bytes = 0
        self.reads = 0

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, query: bytes, version: Version | None) -> Response | None:
        """The page of this query, if it was kept while the catalogue had this version."""
        return self._pages.get(query) if version is not None and version == self._version else None

    def keep(self, query: bytes, version: Version | None, reply: Response) -> None:
        """Keep a reply whose page was read after the version was; forget those of other versions."""
        self.reads += 1
        if version is None:
            return
        if version != self._version or self._bytes > _BYTES_MAX:
            self._pages.clear()
            self._bytes = 0
            self._version = version
        self._pages[query] = reply
        headers = sum(map(len, chain.from_iterable(reply.headers)))
        self._bytes += len(query) + len(reply.body or b"") + headers + _OVERHEAD_BYTES
