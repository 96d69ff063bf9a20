"""Files to download, which are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import PurePath

from starlette.responses import Response

from petstore.console.visit import HEADERS
from petstore.web.delivery import PieceMaker, Streamed
from petstore.web.turns import Turns

_MEDIA_TYPES = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonl"}


class Downloads:
    """Of all that run at once one piece is made at a time, in a turn."""

    def __init__(self, turns: Turns) -> None:
        self._maker = PieceMaker(turns)

    def file(self, name: str, pieces: AsyncIterator[bytes]) -> Response:
        """`name` ends with .csv, .json or .jsonl."""
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
        return Streamed(pieces, headers, _MEDIA_TYPES[PurePath(name).suffix], self._maker)
