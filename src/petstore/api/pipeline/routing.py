"""The table of operations under /v1 and how a raw path finds its row: exact match, never a redirect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header, Response

# A Response, or an awaitable of one. A handler that need not wait answers at once: a coroutine costs as
# much as a look-up in the page cache.
Handler = Callable[[Request], Response | Awaitable[Response]]
HeaderMaker = Callable[[Request], list[Header]]


class Operation(msgspec.Struct, frozen=True):
    """One operation; `always_headers` are on every answer of it, whatever the status."""

    name: str
    handler: Handler
    deprecated: bool = False
    always_headers: HeaderMaker | None = None


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
