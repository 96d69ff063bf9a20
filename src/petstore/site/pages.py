"""The routes of the pages for people and of the OpenAPI document. A strict Content-Security-Policy applies.

Pages link to each other by relative references, since a proxy may put the service below a prefix.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from petstore.core import packaged
from petstore.core.client_address import Networks
from petstore.core.clock import Clock
from petstore.core.errors import InvalidParameter, PetstoreError
from petstore.core.negotiation import prefers_html
from petstore.core.service import ServiceStatus
from petstore.site.clients import FILES
from petstore.site.contents import FOR_PROGRAMS, PAGES, SEARCH, STATUS
from petstore.site.notifications import Contacts, Switches
from petstore.site.rendered import RenderedPages, Renderer
from petstore.site.status import StatusPage
from petstore.site.token_bucket import TokenBucket
from petstore.web.addresses import address_of
from petstore.web.delivery import REVALIDATED, Content, StaticFiles
from petstore.web.routes import Route

_Answer = Callable[[Request], Awaitable[Response]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
# The contract is public, and tools in browsers read it from other origins.
_SHARED = {"access-control-allow-origin": "*"}
_ICON = "icon.svg"
_QUERY_MAX_CHARACTERS = 100
_FOLDER = packaged.files("petstore.site")
_STATIC = StaticFiles(_FOLDER.joinpath("static"))
_CLIENTS = _FOLDER.joinpath("clients")


class Contract(Protocol):
    """The OpenAPI document."""

    def read(self) -> dict[str, Any]:
        """The page's data."""
        ...

    def as_json(self) -> bytes: ...

    def as_yaml(self) -> bytes: ...


class Pages:
    """`version` is the interface's.

    `base`: the configured base address, or nothing; then pages show the one that their reader uses, with the
    scheme that a proxy in `trusted` names. `values` are those of templates: `removal_date`, and
    whether the `console` is served and this `is_staging`.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        version: str,
        base: str,
        values: Mapping[str, object],
        trusted: Networks,
        clock: Clock,
    ) -> None:
        self._contract = contract
        self._version = version
        self._root = base.removesuffix("/v1")
        self._values = values
        self._trusted = trusted
        # Each page at eight addresses, then two pages a second: each takes milliseconds of a thread.
        budget = TokenBucket(clock, burst=8 * (len(PAGES) + 1), per_second=2)
        # About as many as ten people type; each takes two milliseconds of a thread.
        searches = TokenBucket(clock, burst=60, per_second=20)
        self._rendered = RenderedPages(self._renderer, _HEADERS, self._root, budget, searches)
        self._clock = clock

    def routes(self) -> list[Route]:
        return [
            Route("/", self.start),
            *(Route(f"/{page.path}", self._page(page.path)) for page in PAGES),
            *(Route(f"/{path}", self._page(path)) for path in FOR_PROGRAMS),
            *(Route(f"/{page.path}.md", self._page(f"{page.path}.md")) for page in PAGES),
            *(Route(f"/{page.path}/", _redirect(page.path)) for page in PAGES),
            Route(f"/{SEARCH}", self._search),
            Route("/favicon.ico", _STATIC.endpoint(_ICON, REVALIDATED)),
            Route("/openapi.json", _document(self._contract.as_json, "application/json")),
            Route("/openapi.yaml", _document(self._contract.as_yaml, "application/yaml")),
            *_STATIC.routes(),
            *_packages(),
        ]

    def switches(self, contacts: Contacts) -> Route:
        """The page where a contact's notifications are switched."""
        return Switches(contacts, self._rendered.renderer, _HEADERS, self._clock).route()

    def status(self, read: Callable[[], ServiceStatus]) -> Route:
        """The page of how well the service answers."""
        return StatusPage(read, self._rendered.renderer, _HEADERS, self._clock).route()

    async def start(self, request: Request) -> Response:
        """Links to the interface and its documentation: a page for browsers, JSON for other clients."""
        if prefers_html(request.headers.getlist("accept")):
            response = await self._page("")(request)
            response.headers["vary"] = "accept, accept-encoding"
            return response
        return JSONResponse(
            {
                "service": "Pet Store Service",
                "version": self._version,
                "interface": "/v1",
                "reference": "/docs/reference",
                "openapi": "/openapi.json",
                "documentation": "/llms.txt",
                "status": f"/{STATUS}",
            },
            headers={"x-content-type-options": "nosniff", "vary": "accept", "cache-control": REVALIDATED},
        )

    async def error(self, error: PetstoreError, request: Request) -> Response:
        """The page of an error, with the ways back."""
        text = await self._rendered.error(error.status, error.public_message, request.scope["path"])
        return HTMLResponse(text, error.status, _HEADERS)

    async def _search(self, request: Request) -> Response:
        asked = request.query_params.get("q", "")
        query = " ".join("".join(each if each.isprintable() else " " for each in asked).split())
        if len(query) > _QUERY_MAX_CHARACTERS:
            raise InvalidParameter(f"A search takes at most {_QUERY_MAX_CHARACTERS} characters.")
        return (await self._rendered.search(query, self._address(request))).answer(request)

    def _address(self, request: Request) -> str:
        return self._root or address_of(request, self._trusted)

    def _page(self, path: str) -> _Answer:
        async def answer(request: Request) -> Response:
            return (await self._rendered.page(path, self._address(request))).answer(request)

        return answer

    def _renderer(self) -> Renderer:
        from petstore.site.rendering import TemplateRenderer

        return TemplateRenderer(_FOLDER, self._contract.read(), _STATIC.address, **self._values)


def _packages() -> list[Route]:
    """The clients' files. Under one name a file may change until its version is released."""
    files = StaticFiles(_CLIENTS)
    names = [each.name for each in _CLIENTS.iterdir()]
    return [Route(f"/{FILES}/{name}", files.endpoint(name, REVALIDATED)) for name in names]


def _document(text: Callable[[], bytes], media_type: str) -> _Answer:
    """A document that is made in a thread when it is first asked for."""
    making = asyncio.Lock()
    made: list[Content] = []

    async def answer(request: Request) -> Response:
        async with making:
            if not made:
                made.append(
                    await asyncio.to_thread(lambda: Content(text(), media_type, REVALIDATED, _SHARED))
                )
        return made[0].answer(request)

    return answer


def _redirect(path: str) -> _Answer:
    """Redirect from the path with a slash at its end, also below a proxy's prefix."""
    target = f"../{path.rpartition('/')[2]}"

    async def answer(_request: Request) -> Response:
        return RedirectResponse(target, 308)

    return answer
