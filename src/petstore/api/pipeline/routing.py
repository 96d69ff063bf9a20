"""Operations, and the one that answers a raw path: exact match, never a redirect."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header, Response
from petstore.core.errors import MethodNotAllowed, NotFound
from petstore.core.keys import Access, Caller

# A handler that has nothing to wait for answers at once.
Handler = Callable[[Request, Caller], Response | Awaitable[Response]]
HeaderMaker = Callable[[Request], list[Header]]


_PARAMETER = re.compile(rb"\{[^}]*\}")


class Operation(msgspec.Struct, frozen=True):
    """One row of the table of operations. Each takes one request from the limits."""

    method: str
    path: str | None  # with `{parameters}`; None for every unknown path
    name: str
    handler: Handler
    access: Access
    # Query parameters. None: the pipeline refuses every one; else the handler refuses all but these.
    parameters: tuple[str, ...] | None = None
    deprecated: bool = False  # counted apart in the account's usage
    cacheable: bool = False  # the answer depends on path, query and catalogue only, not on the caller
    always_headers: HeaderMaker | None = None  # on answers of every status


class Route(msgspec.Struct, frozen=True):
    """The operations of one path by method; HEAD has GET's. `allow` is the value of the header Allow."""

    operations: dict[str, Operation]
    otherwise: Operation  # for every other method: its handler raises
    allow: str


class Router:
    """Finds the route of a raw path. `exact` has the routes without a parameter."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            assert operation.path is not None
            by_method = by_path.setdefault(operation.path, {})
            by_method[operation.method] = operation
            if operation.method == "GET":
                by_method["HEAD"] = operation
        self.exact: dict[bytes, Route] = {}
        self._parents: dict[bytes, Route] = {}  # whose path ends with its one parameter
        self._others: list[tuple[re.Pattern[bytes], Route]] = []
        for path, by_method in by_path.items():
            raw = path.encode("ascii")
            route, (parent, _, last) = _route(path, by_method), raw.rpartition(b"/")
            if b"{" not in raw:
                self.exact[raw] = route
            elif b"{" not in parent and last.startswith(b"{"):
                self._parents[parent] = route
            else:
                self._others.append((re.compile(_PARAMETER.sub(b"[^/]+", raw)), route))

    def find(self, path: bytes) -> Route:
        """The route of a path, or NO_ROUTE. A parameter is one segment that is not empty."""
        parent, _, last = path.rpartition(b"/")
        found = self.exact.get(path) or (self._parents.get(parent) if last else None)
        if found is None:
            found = next((route for pattern, route in self._others if pattern.fullmatch(path)), NO_ROUTE)
        return found


def _route(path: str, operations: dict[str, Operation]) -> Route:
    allow = ", ".join(sorted({*operations, "OPTIONS"}))

    def refuse(request: Request, caller: Caller) -> Response:
        raise MethodNotAllowed(f"This path takes {allow}.", allow)

    return Route(operations, Operation("", path, "none", refuse, Access.READ, ()), allow)


def _no_such_path(request: Request, caller: Caller) -> Response:
    raise NotFound("There is no such path under /v1; the interface is described at /docs.")


NO_ROUTE = Route({}, Operation("", None, "none", _no_such_path, Access.READ, ()), "")
