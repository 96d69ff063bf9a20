"""The /v1 application: gate -> handler -> reply, one place where an error becomes a body, one for headers.

The order of the steps is the documented precedence, so that every request has one answer.
"""

from __future__ import annotations

import itertools
import secrets
from typing import Protocol

from petstore.api.pets import PetOperations
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.request import Receive, Request, Scope, Send, read_request
from petstore.api.pipeline.response import Response, complete, error_response, make_response
from petstore.api.pipeline.routing import Operation, Route, Router
from petstore.core.clock import Clock
from petstore.core.errors import InternalError, MethodNotAllowed, NotFound, PetstoreError, Unavailable
from petstore.core.limits.decision import AnyDecision

PREFIX = "/v1"


class Observer(Protocol):
    """Told of every answer, after it was sent; must cost next to nothing."""

    def answered(
        self,
        request: Request,
        route: Route | None,
        operation: str,
        status: int,
        body: bytes,
        seconds: float,
        decision: AnyDecision,
    ) -> None: ...

    def failed(self, request: Request, operation: str, error: Exception, *, expected: bool) -> None:
        """A foreseen failure of the store became a 503, or something unexpected a 500."""
        ...


def build_router(pets: PetOperations) -> Router:
    """The table of operations."""
    return Router(
        [
            Route(
                f"{PREFIX}/pets",
                {
                    "GET": Operation("listPets", pets.list_pets),
                    "POST": Operation("createPet", pets.create_pet),
                },
            ),
            Route(
                f"{PREFIX}/pets/{{petId}}",
                {"GET": Operation("getPet", pets.get_pet, True, pets.get_pet_headers)},
            ),
        ]
    )


class ApiApp:
    """A plain ASGI application for every path under /v1."""

    def __init__(self, *, router: Router, gate: Gate, cors: Cors, clock: Clock, observer: Observer) -> None:
        self.router = router
        self._gate = gate
        self._cors = cors
        self._monotonic = clock.monotonic
        self._observer = observer
        self._id_prefix = secrets.token_hex(6).encode("ascii")
        self._ids = itertools.count(1)
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self._monotonic()
        self.in_flight += 1
        try:
            request = read_request(scope, receive)
            if not request.request_id:
                request.request_id = b"%s-%x" % (self._id_prefix, next(self._ids))
            route = self.router.find(request.path)
            operation = route.operation(request.method) if route is not None else None
            name = operation.name if operation is not None else "none"
            # In the order of the documented precedence.
            try:
                request.check_head()
                if request.method == "OPTIONS" and route is not None:
                    reply = self._describe(request, route)
                else:
                    await self._gate.admit(request, deprecated=operation is not None and operation.deprecated)
                    if operation is None:
                        raise _no_operation(route)
                    answer = operation.handler(request)
                    reply = answer if isinstance(answer, Response) else await answer
            except Exception as error:
                reply = self._failure(request, name, error)
            decision = request.decision or self._gate.describe(request)
            headers = complete(reply, decision, request.request_id)
            if operation is not None and operation.always_headers is not None:
                headers += operation.always_headers(request)
            if self._cors.is_configured:
                headers += self._cors.headers(request)
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            body = reply.body if reply.body is not None and request.method != "HEAD" else b""
            await send({"type": "http.response.body", "body": body})
            seconds = self._monotonic() - began
            self._observer.answered(request, route, name, reply.status, body, seconds, decision)
        finally:
            self.in_flight -= 1

    def _failure(self, request: Request, operation: str, error: Exception) -> Response:
        if isinstance(error, PetstoreError):
            if isinstance(error, Unavailable):
                self._observer.failed(request, operation, error, expected=True)
            return error_response(error, credential_sent=request.header(b"authorization") is not None)
        self._observer.failed(request, operation, error, expected=False)
        return error_response(
            InternalError("Something went wrong on our side; tell us the X-Request-Id of this answer.")
        )

    def _describe(self, request: Request, route: Route) -> Response:
        """OPTIONS: what the path takes. Needs no key and costs nothing."""
        allow = route.allow
        headers = [(b"allow", allow.encode("ascii")), *self._cors.preflight_headers(request, allow)]
        return make_response(204, None, *headers)


def _no_operation(route: Route | None) -> PetstoreError:
    """No such path, or not with this method."""
    if route is None:
        return NotFound("There is no such path under /v1; the interface is described at /docs.")
    return MethodNotAllowed(f"This path takes {route.allow}.", route.allow)
