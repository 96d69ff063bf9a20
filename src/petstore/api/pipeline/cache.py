"""Caches whole responses until the catalogue (animals, names of categories) changes: never stale, bounded."""

from __future__ import annotations

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response
from petstore.core.versions import Version

_BYTES_MAX = 2 * 1024 * 1024
_OVERHEAD_BYTES = 700  # of an entry, beside its body and Link: its objects and its other headers


class PageCache:
    """Responses by path and query, all of one version of the catalogue. `reads` counts those added."""

    def __init__(self) -> None:
        self._pages: dict[tuple[bytes, bytes], Response] = {}
        self._version: Version | None = None
        self._bytes = 0
        self.reads = 0

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, request: Request, version: Version | None) -> Response | None:
        """The cached response if it was made under this version; None while the version is unknown."""
        if version is None or version != self._version:
            return None
        return self._pages.get((request.path, request.query))

    def add(self, request: Request, version: Version | None, response: Response) -> None:
        """Cache a response that was made after `version` was read; drop those of other versions."""
        self.reads += 1
        if version is None:
            return
        if version != self._version or self._bytes > _BYTES_MAX:
            self._pages.clear()
            self._bytes = 0
            self._version = version
        self._pages[request.path, request.query] = response
        # Link has the query twice.
        self._bytes += 3 * len(request.query) + len(response.body or b"") + _OVERHEAD_BYTES
