"""The start page, the API reference (Swagger UI, vendored), the deprecation notice and the OpenAPI document.

Everything is served from here under a strict Content-Security-Policy; no page asks another host for anything.
"""

from __future__ import annotations

from string import Template
from typing import Protocol

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from petstore.core import packaged
from petstore.site import static

# Swagger UI sets inline styles on the elements it makes and shows icons from data: URLs; it needs no more.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Document(Protocol):
    """The OpenAPI document in both notations."""

    def as_json(self) -> bytes: ...

    def as_yaml(self) -> bytes: ...


class Pages:
    """Routes below the root."""

    def __init__(self, document: Document, *, version: str, base: str, removal_date: str) -> None:
        self._document = document
        self._version = version
        self._folder = packaged.files("petstore.site")
        values = {"version": version, "base": base, "removal_date": removal_date}
        self._texts = {
            template.name: Template(template.read_text(encoding="utf-8")).substitute(values)
            for template in self._folder.joinpath("templates").iterdir()
        }

    def routes(self) -> list[Route]:
        return [
            Route("/", self.start),
            Route("/docs", self.reference),
            Route("/docs/deprecation", self.deprecation),
            Route("/openapi.json", self.openapi_json),
            Route("/openapi.yaml", self.openapi_yaml),
            *static.routes(self._folder.joinpath("static"), "/static"),
        ]

    async def start(self, request: Request) -> Response:
        """Where a newcomer goes from here: a page for browsers, JSON for everything else."""
        if "text/html" in request.headers.get("accept", ""):
            return self._page("start.html")
        return JSONResponse(
            {
                "service": "Pet Store Service",
                "version": self._version,
                "interface": "/v1",
                "reference": "/docs",
                "openapi": "/openapi.json",
            },
            headers={"x-content-type-options": "nosniff"},
        )

    async def reference(self, _request: Request) -> Response:
        """Swagger UI over /openapi.json."""
        return self._page("reference.html")

    async def deprecation(self, _request: Request) -> Response:
        """What the Link rel="deprecation" of getPet points to."""
        return self._page("deprecation.html")

    async def openapi_json(self, _request: Request) -> Response:
        return Response(self._document.as_json(), media_type="application/json", headers=_DOCUMENT_HEADERS)

    async def openapi_yaml(self, _request: Request) -> Response:
        return Response(self._document.as_yaml(), media_type="application/yaml", headers=_DOCUMENT_HEADERS)

    def _page(self, name: str) -> Response:
        return HTMLResponse(self._texts[name], headers=_HEADERS)


# The document holds nothing secret, and tools in browsers read it from other origins.
_DOCUMENT_HEADERS = {"x-content-type-options": "nosniff", "access-control-allow-origin": "*"}
