"""The pages for people and the OpenAPI document. A strict Content-Security-Policy applies.

A page is rendered when it is first asked for, in a thread, and then answered from memory. Pages link to each
other by relative references, since a proxy may put the service below a prefix.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from petstore.core import packaged
from petstore.site.delivery import REVALIDATED, Content
from petstore.site.static import StaticFiles

if TYPE_CHECKING:
    from petstore.site.rendering import Renderer

_Answer = Callable[[Request], Awaitable[Response]]

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
# The contract is public, and tools in browsers read it from other origins.
_SHARED = {"access-control-allow-origin": "*"}
_PATHS = (
    "docs", "docs/quickstart", "docs/guide", "docs/reference", "docs/errors", "docs/changelog",
    "docs/deprecation",
)  # fmt: skip
# What stands in the documents and samples; the reader's own base address replaces it.
_EXAMPLE_ROOT = "http://127.0.0.1:8080"
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
# Without a configured base address a page is kept for as many addresses of readers.
_KEPT = 16


class Pages:
    """`read` returns the OpenAPI document as data, `as_json` and `as_yaml` as text.

    `base`: the configured base address, or nothing; then pages show the one that their reader uses.
    """

    def __init__(
        self,
        read: Callable[[], dict[str, Any]],
        as_json: Callable[[], bytes],
        as_yaml: Callable[[], bytes],
        *,
        version: str,
        base: str,
        removal_date: str,
    ) -> None:
        self._read = read
        self._as_json, self._as_yaml = as_json, as_yaml
        self._version = version
        self._root = base.removesuffix("/v1")
        self._removal_date = removal_date
        self._folder = packaged.files("petstore.site")
        self._static = StaticFiles(self._folder.joinpath("static"))
        self._renderer: Renderer | None = None
        self._rendered: dict[str, str] = {}
        self._rendering = asyncio.Lock()
        self._filled = lru_cache(maxsize=_KEPT)(self._fill)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.start),
            *(Route(f"/{path}", self._page(path)) for path in _PATHS),
            Route("/docs/", _redirect("../docs")),
            Route("/favicon.ico", _redirect(self._static.address("icon.svg"))),
            Route("/openapi.json", _document(self._as_json, "application/json")),
            Route("/openapi.yaml", _document(self._as_yaml, "application/yaml")),
            *self._static.routes(),
        ]

    async def start(self, request: Request) -> Response:
        """Links to the interface and its documentation: a page for browsers, JSON for other clients."""
        if "text/html" in request.headers.get("accept", ""):
            return await self._page("")(request)
        return JSONResponse(
            {
                "service": "Pet Store Service",
                "version": self._version,
                "interface": "/v1",
                "reference": "/docs/reference",
                "openapi": "/openapi.json",
            },
            headers={"x-content-type-options": "nosniff", "vary": "accept"},
        )

    def _page(self, path: str) -> _Answer:
        async def answer(request: Request) -> Response:
            if path not in self._rendered:
                async with self._rendering:
                    if path not in self._rendered:
                        self._rendered[path] = await asyncio.to_thread(self._render, path)
            return self._filled(path, self._root or _root_of(request)).answer(request)

        return answer

    def _render(self, path: str) -> str:
        if self._renderer is None:
            from petstore.site.rendering import Renderer

            self._renderer = Renderer(self._folder, self._read(), self._static.address, self._removal_date)
        return self._renderer.page(path)

    def _fill(self, path: str, root: str) -> Content:
        text = self._rendered[path].replace(_EXAMPLE_ROOT, root)
        return Content(text.encode(), "text/html", REVALIDATED, _HEADERS)


def _root_of(request: Request) -> str:
    """The address of the service as this reader reached it."""
    host = request.headers.get("host", "")
    return f"http://{host}" if _HOST.fullmatch(host) else _EXAMPLE_ROOT


def _document(text: Callable[[], bytes], media_type: str) -> _Answer:
    """A document that is made when it is first asked for."""
    made: list[Content] = []

    async def answer(request: Request) -> Response:
        if not made:
            made.append(Content(text(), media_type, REVALIDATED, _SHARED))
        return made[0].answer(request)

    return answer


def _redirect(target: str) -> _Answer:
    async def answer(_request: Request) -> Response:
        return RedirectResponse(target, 308)

    return answer
