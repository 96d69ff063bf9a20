"""The files under /static, from memory: a response to a slow client holds one piece and no descriptor."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from petstore.core.packaged import Resource

_PIECE_BYTES = 64 * 1024
_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def routes(folder: Resource, path: str) -> Iterator[Route]:
    """A route for each file in the folder and below; loads them all."""
    for entry in folder.iterdir():
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from routes(entry, below)
        else:
            media_type = _MEDIA_TYPES.get(PurePosixPath(entry.name).suffix, "text/plain")
            yield Route(below, _File(entry.read_bytes(), media_type).answer)


class _File:
    def __init__(self, content: bytes, media_type: str) -> None:
        self._content = content
        self._media_type = media_type

    @cached_property
    def _tag(self) -> str:
        """Not made at the start, which would hash two megabytes."""
        return f'"{hashlib.sha256(self._content).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        """The file, or 304 for a client that has it (RFC 9110, section 13.1.2)."""
        headers = {"etag": self._tag, "x-content-type-options": "nosniff"}
        if self._is_known(request.headers.getlist("if-none-match")):
            return Response(status_code=304, headers=headers)
        return _InPieces(self._content, headers=headers, media_type=self._media_type)

    def _is_known(self, conditions: list[str]) -> bool:
        listed = ",".join(conditions)
        return listed.strip() == "*" or self._tag in re.findall(r'"[^"]*"', listed)


class _InPieces(Response):
    """Sends pieces; the server accepts the next one when most of the last has been sent."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = bytes(self.body) if scope["method"] != "HEAD" else b""
        for start in range(0, len(body), _PIECE_BYTES):
            piece = body[start : start + _PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
