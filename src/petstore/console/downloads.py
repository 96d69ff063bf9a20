"""Files to download, which are made while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import PurePath

from starlette.responses import Response

from petstore.console.visit import HEADERS
from petstore.web.delivery import Streamed

_MEDIA_TYPES = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonl"}


class Downloads:
    """Of all that run at once one piece is made at a time."""

    def __init__(self) -> None:
        self._making = asyncio.Lock()

    def file(self, name: str, pieces: AsyncIterator[bytes]) -> Response:
        """`name` ends with .csv, .json or .jsonl."""
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
        return Streamed(pieces, headers, _MEDIA_TYPES[PurePath(name).suffix], self._making)
