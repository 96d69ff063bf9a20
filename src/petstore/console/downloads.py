"""Files to download, produced while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import PurePath

from starlette.responses import Response

from petstore.console.visit import HEADERS
from petstore.web.delivery import ChunkMaker, Streamed

_MEDIA_TYPES = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonl"}


class Downloads:
    """Produces one chunk at a time over all concurrent downloads."""

    def __init__(self, maker: ChunkMaker) -> None:
        self._maker = maker

    def file(self, name: str, chunks: AsyncIterator[bytes]) -> Response:
        """`name` ends with .csv, .json or .jsonl."""
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
        return Streamed(chunks, headers, _MEDIA_TYPES[PurePath(name).suffix], self._maker)
