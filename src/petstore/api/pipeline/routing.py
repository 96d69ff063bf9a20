"""The table of operations under /v1 and how a raw path finds its row: exact match, never a redirect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header, Reply

# A Reply, or something to await for one; api/app.py tells them apart. What can be answered at once should be:
# a coroutine would cost as much as the look for a kept page.
Handler = Callable[[Request], Reply | Awaitable[Reply]]
HeaderMaker = Callable[[Request], list[Header]]


class Operation(msgspec.Struct, frozen=True):
    """One operation; `standing_headers` are on every answer of it, whatever the status."""

    name: str
    handler: Handler
    deprecated: bool = False
    standing_headers: HeaderMaker | None = None


class Route(msgspec.Struct, frozen=True):
    """The template of a whole path and its operations by method; HEAD is answered by every GET."""

    template: str
    operations: dict[str, Operation]

    @property
    def allow(self) -> str:
        """The value of Allow."""
        methods = set(self.operations) | {"OPTIONS"} | ({"HEAD"} if "GET" in self.operations else set())
        return ", ".join(sorted(methods))

    def operation(self, method: str) -> Operation | None:
        """The operation that answers a method."""
        return self.operations.get("GET" if method == "HEAD" else method)


class Router:
    """Finds the route of a raw path. A template ends with at most one `{parameter}`."""

    def __init__(self, routes: list[Route]) -> None:
        self.routes = routes
        self._exact: dict[bytes, Route] = {}
        self._parents: dict[bytes, Route] = {}
        for route in routes:
            path = route.template.encode("ascii")
            parent, _, last = path.rpartition(b"/")
            if last.startswith(b"{"):
                self._parents[parent] = route
            else:
                self._exact[path] = route

    def find(self, path: bytes) -> Route | None:
        """The route, or None. A parameter is one segment that is not empty."""
        route = self._exact.get(path)
        if route is not None:
            return route
        parent, _, last = path.rpartition(b"/")
        return self._parents.get(parent) if last else None
