"""The routes of the console, joined from the modules of the nouns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from petstore.console import (
    account_pages,
    accounts,
    bans,
    billing,
    categories,
    choices,
    customers,
    events,
    exports,
    journal_pages,
    keys,
    list_reverts,
    order_pages,
    orders,
    overview,
    people,
    pet_pages,
    pets,
    rows,
    search,
    service,
    sign_ins,
    stock,
    stock_columns,
    undo,
    webhooks,
)
from petstore.console.desk import ConsoleOptions, Desk
from petstore.console.guard import Guard
from petstore.console.passwords import Passwords
from petstore.console.rendering import Renderer
from petstore.console.statistics import Statistics
from petstore.console.visit import View
from petstore.core import packaged
from petstore.core.clock import Clock
from petstore.core.errors import NotFound, PetstoreError
from petstore.core.service import ReadState
from petstore.transactions.store import Repositories
from petstore.web.delivery import ChunkMaker, StaticFiles
from petstore.web.routes import Route
from petstore.web.slots import Slots

PREFIX = "/console"
# Every page and action, in the order in which paths are compared.
VIEWS: list[View] = [
    view
    for module in (
        overview, search, choices, rows, undo, exports, pet_pages, pets, categories, journal_pages,
        list_reverts, events, service, sign_ins, people, order_pages, orders, account_pages, accounts,
        customers, keys, webhooks, bans, billing, stock, stock_columns,
    )
    for view in module.VIEWS
]  # fmt: skip

_STATIC = StaticFiles(packaged.files("petstore.console").joinpath("static"))

ErrorPage = Callable[[PetstoreError, Request], Awaitable[Response]]


class Console:
    """The pages below /console."""

    def __init__(
        self, stores: Repositories, clock: Clock, read_service: ReadState, options: ConsoleOptions
    ) -> None:
        folder = packaged.files("petstore.console")
        slots = Slots(clock)
        self._statistics = Statistics(stores.totals, clock, options.zone)
        chunks = ChunkMaker(slots)
        desk = Desk(stores, clock, read_service, options, Passwords(), self._statistics, Counter(), chunks)
        renderer = Renderer(folder.joinpath("templates"), _STATIC.address, slots, options.is_staging)
        self._guard = Guard(desk, renderer, frozenset(view.path for view in VIEWS if view.method == "GET"))

    async def close(self) -> None:
        """End background work."""
        await self._statistics.close()

    def error_page(self, elsewhere: ErrorPage) -> ErrorPage:
        """Answers errors below /console, such as at an unknown address, with a page of the console."""

        async def show(error: PetstoreError, request: Request) -> Response:
            if not request.url.path.startswith(f"{PREFIX}/"):
                return await elsewhere(error, request)
            if isinstance(error, NotFound):
                error = NotFound("The console has no page at this address.")
            return await self._guard.refuse(error, request)

        return show

    def routes(self) -> list[Route]:
        """One route for each path, which takes the methods of its views."""
        by_path: dict[str, list[View]] = defaultdict(list)
        for view in VIEWS:
            by_path[view.path].append(view)
        return [
            Route(f"{PREFIX}/", _without_slash),
            *(
                Route(PREFIX + path, self._guard.endpoint(views), methods=[view.method for view in views])
                for path, views in by_path.items()
            ),
            *_STATIC.routes(),
        ]


async def _without_slash(_request: Request) -> Response:
    return RedirectResponse("../console", 308)
