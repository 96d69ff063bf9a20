"""The page of the service: numbers, database, workers, callers of the deprecated operation."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from petstore.console.sparklines import charts
from petstore.console.visit import View, Visit
from petstore.core.durations import days_left
from petstore.core.limits.usage import DEPRECATED_DAYS
from petstore.core.service import ServiceReport
from petstore.transactions.usage import Usage


class ServicePages:
    """`/service`."""

    def __init__(self, service: ServiceReport, usage: Usage) -> None:
        self._service = service
        self._usage = usage

    def views(self) -> list[View]:
        return [View("GET", "/service", self.show)]

    async def show(self, visit: Visit) -> Response:
        """The page, or only its numbers, which it refreshes every few seconds."""
        state = await self._service.state()
        values: dict[str, Any] = {"state": state, "charts": charts(state)}
        if visit.wants_fragment:
            return visit.page("service.html", "Service", fragment="numbers", **values)
        return visit.page(
            "service.html",
            "Service",
            **values,
            use=await self._usage.deprecated_callers(visit.now_ms),
            deprecated_days=DEPRECATED_DAYS,
            days_left=days_left(state.removal_at_ms, visit.now_ms),
        )
