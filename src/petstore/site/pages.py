"""The start page, the API reference (vendored Swagger UI), the deprecation notice and the OpenAPI document.

A strict Content-Security-Policy applies, and no page loads anything from another host.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from petstore.core import packaged
from petstore.site import static

# Swagger UI needs inline styles, and data: URLs for its icons.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Pages:
    """`as_json` and `as_yaml` return the OpenAPI document."""

    def __init__(
        self,
        as_json: Callable[[], bytes],
        as_yaml: Callable[[], bytes],
        *,
        version: str,
        base: str,
        removal_date: str,
    ) -> None:
        self._as_json, self._as_yaml = as_json, as_yaml
        self._version = version
        self._folder = packaged.files("petstore.site")
        values = {"version": version, "base": base, "removal_date": removal_date}
        self._texts = {
            template.name: Template(template.read_text()).substitute(values)
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
        """Links to the interface and its reference: a page for browsers, JSON for other clients."""
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
        """The target of getPet's Link rel="deprecation"."""
        return self._page("deprecation.html")

    async def openapi_json(self, _request: Request) -> Response:
        return Response(self._as_json(), media_type="application/json", headers=_DOCUMENT_HEADERS)

    async def openapi_yaml(self, _request: Request) -> Response:
        return Response(self._as_yaml(), media_type="application/yaml", headers=_DOCUMENT_HEADERS)

    def _page(self, name: str) -> Response:
        return HTMLResponse(self._texts[name], headers=_HEADERS)


# The document is public, and tools in browsers read it from other origins.
_DOCUMENT_HEADERS = {"x-content-type-options": "nosniff", "access-control-allow-origin": "*"}
