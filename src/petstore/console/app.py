"""The routes of the console, joined from the modules of the nouns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from petstore.console import (
    accounts,
    bans,
    billing,
    categories,
    journal,
    keys,
    orders,
    overview,
    people,
    pets,
    service,
    sign_ins,
    stock,
)
from petstore.console.guard import Guard
from petstore.console.passwords import Passwords
from petstore.console.reception import Reception
from petstore.console.rendering import Renderer
from petstore.console.statistics import Statistics
from petstore.console.visit import ConsoleOptions, Desk, View
from petstore.core import packaged
from petstore.core.clock import Clock
from petstore.core.service import ServiceReport
from petstore.transactions.store import Parts
from petstore.web.delivery import ChunkMaker
from petstore.web.slots import Slots
from petstore.web.static import StaticFiles

PREFIX = "/console"


class Pages(Protocol):
    """The pages of one noun."""

    def views(self) -> list[View]: ...


class Console:
    """The pages below /console."""

    def __init__(self, stores: Parts, clock: Clock, report: ServiceReport, options: ConsoleOptions) -> None:
        folder = packaged.files("petstore.console")
        slots = Slots(clock)
        chunks = ChunkMaker(slots)
        self._static = StaticFiles(folder.joinpath("static"))
        self._statistics = Statistics(stores.totals, clock)
        reception = Reception(stores.uploads, options.body_timeout_seconds)
        desk = Desk(stores, clock, report, options, Passwords(), self._statistics, reception, chunks)
        renderer = Renderer(folder.joinpath("templates"), self._static.address, slots)
        self._guard = Guard(desk, renderer)
        self._pages: tuple[Pages, ...] = ()

    async def close(self) -> None:
        """End background work."""
        await self._statistics.close()

    def views(self) -> list[View]:
        """Every page and action, in the order in which paths are compared."""
        return [
            *(view for pages in self._pages for view in pages.views()),
            *accounts.VIEWS,
            *bans.VIEWS,
            *billing.VIEWS,
            *categories.VIEWS,
            *journal.VIEWS,
            *keys.VIEWS,
            *orders.VIEWS,
            *overview.VIEWS,
            *people.VIEWS,
            *pets.VIEWS,
            *service.VIEWS,
            *sign_ins.VIEWS,
            *stock.VIEWS,
        ]

    def routes(self) -> list[Route]:
        return [
            Route(f"{PREFIX}/", _without_slash),
            *routes_of(self.views(), self._guard),
            *self._static.routes(),
        ]


def routes_of(views: Sequence[View], guard: Guard) -> list[Route]:
    """One route for each path, which takes the methods of its views."""
    by_path: dict[str, list[View]] = defaultdict(list)
    for view in views:
        by_path[view.path].append(view)
    return [
        Route(f"{PREFIX}{path}", guard.endpoint(found), methods=[view.method for view in found])
        for path, found in by_path.items()
    ]


async def _without_slash(_request: Request) -> Response:
    return RedirectResponse("../console", 308)
