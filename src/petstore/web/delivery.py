"""Content from memory, such as static files: compressed once, with an ETag, in chunks.

A response to a slow client holds one chunk and no descriptor.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from petstore.core.negotiation import takes_gzip
from petstore.core.packaged import Resource
from petstore.web.routes import Route
from petstore.web.slots import Slots

_CHUNK_BYTES = 64 * 1024
_COMPRESSED_FROM_BYTES = 1_024
# Between two chunks of streamed bodies. A chunk that queries PostgreSQL gives up its slot at the query.
_PAUSE_SECONDS = 0.003

_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".whl": "application/zip",
    ".tgz": "application/gzip",
}
_COMPRESSED_BEFORE = {"application/zip", "application/gzip"}
# A browser revalidates each time, and gets 304 if its copy is current.
REVALIDATED = "no-cache"
# The address contains the content's digest, so its content never changes.
IMMUTABLE = "public, max-age=31536000, immutable"


class Content:
    """The bytes of a page, a document or a file. Safe to share between requests.

    The constructor compresses, which takes milliseconds: construct large ones in a thread.
    """

    def __init__(
        self, body: bytes, media_type: str, cache_control: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._body = body
        self._media_type = media_type
        self._headers = {
            "cache-control": cache_control,
            "vary": "accept-encoding",
            "x-content-type-options": "nosniff",
            **(headers or {}),
        }
        self._digest = _digest(body)
        self._compressed = None if media_type in _COMPRESSED_BEFORE else _compress(body)

    def answer(self, request: Request) -> Response:
        """The content, or 304 for a client that has it (RFC 9110, section 13.1.2)."""
        body, headers, tag = self._body, dict(self._headers), self._digest
        if takes_gzip(request.headers.getlist("accept-encoding")) and self._compressed is not None:
            body, tag = self._compressed, f"{tag}-gzip"
            headers["content-encoding"] = "gzip"
        headers["etag"] = f'"{tag}"'
        if _is_known(headers["etag"], request.headers.getlist("if-none-match")):
            headers.pop("content-encoding", None)
            return Response(status_code=304, headers=headers)
        return _InChunks(body, headers=headers, media_type=self._media_type)


def _digest(body: bytes) -> str:
    """Identifies the bytes: 32 hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()[:32]


def _compress(body: bytes) -> bytes | None:
    """The body in gzip; None if that is not smaller."""
    compressed = gzip.compress(body, mtime=0) if len(body) >= _COMPRESSED_FROM_BYTES else body
    return compressed if len(compressed) < len(body) else None


def _is_known(tag: str, conditions: list[str]) -> bool:
    listed = ",".join(conditions)
    return listed.strip() == "*" or tag in re.findall(r'"[^"]*"', listed)


class _InChunks(Response):
    """Sends chunks; the server accepts the next one when most of the last has been sent."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = bytes(self.body) if scope["method"] != "HEAD" else b""
        for start in range(0, len(body), _CHUNK_BYTES):
            chunk = body[start : start + _CHUNK_BYTES]
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class StaticFiles:
    """The files of one folder, without its subfolders, under /static.

    Their addresses contain a digest, so browsers cache them for ever.
    """

    def __init__(self, folder: Resource) -> None:
        self._folder = folder
        self._addresses: dict[str, str] = {}
        self._routes: list[Route] = []
        for entry in folder.iterdir():
            path = PurePosixPath(entry.name)
            address = f"static/{path.stem}.{_digest(entry.read_bytes())[:12]}{path.suffix}"
            self._addresses[entry.name] = address
            self._routes.append(Route(f"/{address}", self.endpoint(entry.name, IMMUTABLE)))

    def endpoint(self, name: str, cache_control: str) -> Callable[[Request], Response]:
        """Answers with a file, which the first call compresses; Starlette calls it in a thread."""
        media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix, "text/plain")
        content = cache(lambda: Content(self._folder.joinpath(name).read_bytes(), media_type, cache_control))
        return lambda request: content().answer(request)

    def address(self, name: str) -> str:
        """The address of a file, without a leading slash. Raises KeyError."""
        return self._addresses[name]

    def routes(self) -> list[Route]:
        return self._routes


class ChunkMaker:
    """Produces the chunks of all bodies, one at a time and each in a slot: many cost no more than one."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._making = asyncio.Lock()

    async def next(self, chunks: AsyncIterator[bytes], gone: asyncio.Future[None]) -> bytes | None:
        """The next chunk; None at the end, or when the client has gone."""
        async with self._making:
            await self._slots.wait()
            chunk = None if gone.done() else await anext(chunks, None)
            await asyncio.sleep(_PAUSE_SECONDS)
        return chunk


class Streamed(Response):
    """A body that is produced while it is sent; one chunk is in memory. It stops when the client goes.

    An error of `chunks` ends the connection, so that the client sees a file that is cut off; so does
    `may_go_on`, which is asked before each chunk.
    """

    may_go_on: Callable[[], Awaitable[bool]] | None = None

    def __init__(
        self, chunks: AsyncIterator[bytes], headers: Mapping[str, str], media_type: str, maker: ChunkMaker
    ) -> None:
        super().__init__(None, 200, headers, media_type)
        del self.headers["content-length"]
        self._chunks = chunks
        self._maker = maker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnect(receive))
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            while scope["method"] != "HEAD":
                if self.may_go_on is not None and not await self.may_go_on():
                    return
                chunk = await self._maker.next(self._chunks, gone)
                if chunk is None:
                    break
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            if isinstance(self._chunks, AsyncGenerator):
                await self._chunks.aclose()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
