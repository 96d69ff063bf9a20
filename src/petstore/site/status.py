"""The page of how well the service answers, for its callers: without counts, accounts or addresses.

A browser gets a page, others get JSON. Both are made every five seconds at most, however many ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from petstore.core.clock import Clock
from petstore.core.moments import iso_moment
from petstore.core.negotiation import prefers_html
from petstore.core.service import Period, ServiceStatus
from petstore.site.contents import STATUS
from petstore.site.rendered import Renderer
from petstore.web.delivery import REVALIDATED, Content
from petstore.web.routes import Route

_KEPT_SECONDS = 5
_VARY = {"vary": "accept, accept-encoding"}


class StatusPage:
    """`prepare` makes what renders, with the first page. `headers` are those of pages."""

    def __init__(
        self,
        read: Callable[[], ServiceStatus],
        prepare: Callable[[], Awaitable[Renderer]],
        headers: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._read = read
        self._prepare = prepare
        self._headers = {**headers, **_VARY}
        self._clock = clock
        self._made: tuple[Content, Content] | None = None
        self._made_at = 0.0

    def route(self) -> Route:
        return Route(f"/{STATUS}", self._answer)

    async def _answer(self, request: Request) -> Response:
        renderer = await self._prepare()
        now = self._clock.monotonic()
        if self._made is None or now - self._made_at >= _KEPT_SECONDS:
            self._made, self._made_at = self._make(renderer), now
        page, data = self._made
        return (page if prefers_html(request.headers.getlist("accept")) else data).answer(request)

    def _make(self, renderer: Renderer) -> tuple[Content, Content]:
        status = self._read()
        data = _data(status)
        page = renderer.status(status=data, state=status.state, replicas=status.replicas)
        return (
            Content(page.encode(), "text/html", REVALIDATED, self._headers),
            Content(msgspec.json.encode(data), "application/json", REVALIDATED, _VARY),
        )


def _data(status: ServiceStatus) -> dict[str, Any]:
    return {
        "status": status.state,
        "since": iso_moment(status.since_ms),
        "replicas": status.replicas,
        "last24Hours": _figures(status.whole),
        "hours": [{"from": iso_moment(hour.began_at_ms), **_figures(hour)} for hour in status.hours],
    }


def _figures(period: Period) -> dict[str, Any]:
    latency = period.latency
    return {
        "withoutFaultPercent": period.without_fault,
        "p50Milliseconds": None if latency is None else round(latency.p50, 1),
        "p95Milliseconds": None if latency is None else round(latency.p95, 1),
    }
