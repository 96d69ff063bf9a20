"""The overview: what a shop owner wants to see all day."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.visit import View, Visit


class OverviewPage:
    def views(self) -> list[View]:
        return [View("GET", "", self.show)]

    async def show(self, visit: Visit) -> Response:
        return visit.page("overview.html", "Overview")
