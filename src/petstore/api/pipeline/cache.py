"""Caches whole responses until the catalogue (animals, names of categories) changes: never stale, bounded.

A page that is asked for again and again is kept in gzip too, for the clients that take it. It is used on the
event loop alone, without locks.
"""

from __future__ import annotations

from functools import lru_cache

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response, compress
from petstore.core.negotiation import takes_gzip
from petstore.core.versions import Version

_BYTES_MAX = 2 * 1024 * 1024
_OVERHEAD_BYTES = 700  # what an entry takes beside its body and Link: its objects and other headers
_PLAIN_UP_TO_BYTES = 1_024


class PageCache:
    """Responses by path and query, all of one version of the catalogue. `reads` counts those made."""

    def __init__(self) -> None:
        self._pages: dict[tuple[bytes, bytes], Response] = {}
        self._hit: set[tuple[bytes, bytes]] = set()  # by a client that takes gzip
        self._compressed: dict[tuple[bytes, bytes], Response] = {}
        self._version: Version | None = None
        self._bytes = 0
        self.reads = 0

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, request: Request, version: Version | None) -> Response | None:
        """The cached response if it was made under this version; None while the version is unknown.

        In gzip for a client that takes it, from the second hit on if it is larger than 1 KiB.
        """
        if version is None or version != self._version:
            return None
        page = self._pages.get((request.path, request.query))
        accepted = request.headers.get(b"accept-encoding")
        if page is None or accepted is None or not _takes_gzip(accepted):
            return page
        return self._in_gzip((request.path, request.query), page)

    def add(self, request: Request, version: Version | None, response: Response) -> None:
        """Cache a response that was made after `version` was read; drop other versions' responses."""
        self.reads += 1
        if version is None:
            return
        if version != self._version or self._bytes > _BYTES_MAX:
            self._pages.clear()
            self._hit.clear()
            self._compressed.clear()
            self._bytes = 0
            self._version = version
        self._pages[request.path, request.query] = response
        # Link has the query twice.
        self._bytes += 3 * len(request.query) + len(response.body or b"") + _OVERHEAD_BYTES

    def _in_gzip(self, key: tuple[bytes, bytes], page: Response) -> Response:
        """The page in gzip, or itself where that does not pay: most are not asked for three times."""
        found = self._compressed.get(key)
        if found is not None:
            return found
        if len(page.body or b"") <= _PLAIN_UP_TO_BYTES or self._bytes > _BYTES_MAX:
            return page
        if key not in self._hit:
            self._hit.add(key)
            return page
        found = self._compressed[key] = compress(page)
        self._bytes += len(found.body or b"") + _OVERHEAD_BYTES
        return found


@lru_cache(maxsize=64)
def _takes_gzip(accept_encoding: bytes) -> bool:
    """Cached, because clients repeat it."""
    return takes_gzip([accept_encoding.decode("latin-1")])
