"""The /v1 application: gate, cache, handler, response. Errors become bodies here and nowhere else.

The order of the steps is the documented precedence, so that every request has one answer.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Iterable
from typing import Protocol

from msgspec.structs import replace

from petstore.api.pipeline.body import PATCH_TYPES
from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate, Refused
from petstore.api.pipeline.request import Receive, Request, Scope, Send, read_request
from petstore.api.pipeline.response import (
    Header,
    Response,
    error_response,
    help_links,
    join_headers,
    make_response,
    response_headers,
    unless_known,
)
from petstore.api.pipeline.routing import NO_ROUTE, Operation, Route, Router
from petstore.api.pipeline.unread import UnreadBodies
from petstore.core.clock import Clock
from petstore.core.errors import InternalError, PetstoreError, Unavailable
from petstore.core.keys import Caller
from petstore.core.limits.decision import AddressDecision, Decision

PREFIX = "/v1"


class Observer(Protocol):
    """Counts and logs; every request waits for it, so it must cost next to nothing."""

    def answered(
        self,
        request: Request,
        operation: Operation,
        response: Response,
        seconds: float,
        decision: Decision | AddressDecision,
        caller: Caller | None,
        cause: str | None,
    ) -> None:
        """A response was sent; `caller` and `cause` are those of gate.Refused where it was a refusal."""

    def failed(self, request: Request, operation: str, error: Exception, *, expected: bool) -> None:
        """An expected failure of the store became a 503, or an unexpected error a 500."""


class ApiApp:
    """A plain ASGI application for every path under /v1."""

    def __init__(
        self,
        *,
        operations: Iterable[Operation],
        gate: Gate,
        cors: Cors,
        clock: Clock,
        observer: Observer,
        page_of_errors: str,
    ) -> None:
        self._router = Router(map(_refusing_parameters, operations))
        self.cache = PageCache()
        self.unread = UnreadBodies()
        self._gate = gate
        self._cors = cors
        self._monotonic = clock.monotonic
        self._observer = observer
        self._help_links = help_links(page_of_errors)
        self._id_prefix = secrets.token_hex(6).encode("ascii")
        self._ids = itertools.count(1)
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self._monotonic()
        self.in_flight += 1
        try:
            request = read_request(scope, receive)
            request.request_id = request.request_id or b"%s-%x" % (self._id_prefix, next(self._ids))
            route = self._router.exact.get(request.path) or self._router.find(request.path)
            operation = route.operations.get(request.method) or route.otherwise
            decision: Decision | AddressDecision | None = None
            caller, cause = None, None
            try:  # in the order of the documented precedence
                request.check_head()
                if request.method == "OPTIONS" and route is not NO_ROUTE:
                    response = self._describe(request, route)
                else:
                    caller, decision = await self._gate.admit(request, operation.access, operation.deprecated)
                    found = operation.cacheable and self.cache.find(request, decision.versions.catalogue)
                    response = found or await operation.handler(request, caller)
                    if found is None:
                        self.cache.add(request, decision.versions.catalogue, response)
                    if operation.method == "GET" and b"if-none-match" in request.headers:
                        response = unless_known(response, request.headers[b"if-none-match"])
            except Refused as refused:
                caller, decision, cause = refused.caller, refused.decision, refused.cause
                response = self._failure(request, operation.name, refused.error)
            except Exception as error:
                response = self._failure(request, operation.name, error)
            decision = decision or self._gate.describe(request)
            headers = response_headers(response, decision, request.request_id)
            if operation.always_headers is not None or self._cors.is_configured or request.method == "HEAD":
                headers = self._add_headers(headers, operation, request, response.body)
            if not request.is_read:
                headers += await self.unread.settle(response.status, request.headers, receive)
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            body = response.body if response.body is not None and request.method != "HEAD" else b""
            await send({"type": "http.response.body", "body": body})
            seconds = self._monotonic() - began
            self._observer.answered(request, operation, response, seconds, decision, caller, cause)
        finally:
            self.in_flight -= 1

    def _add_headers(
        self, headers: list[Header], operation: Operation, request: Request, body: bytes | None
    ) -> list[Header]:
        """Those of HEAD, of an operation's every answer, and of CORS. A body of HEAD is never sent."""
        if body is not None and request.method == "HEAD":
            headers.append((b"content-length", b"%d" % len(body)))
        if operation.always_headers is not None:
            headers = join_headers(headers, operation.always_headers(request))
        return headers + self._cors.headers(request) if self._cors.is_configured else headers

    def _failure(self, request: Request, operation: str, error: Exception) -> Response:
        """An error as a response. The observer logs the service's own: 500 and 503."""
        if not isinstance(error, PetstoreError):
            self._observer.failed(request, operation, error, expected=False)
            error = InternalError(
                "Something went wrong on our side; tell us the X-Request-Id of this answer."
            )
        elif isinstance(error, Unavailable):
            self._observer.failed(request, operation, error, expected=True)
        credential_sent = request.headers.get(b"authorization") is not None
        return error_response(error, self._help_links[error.code], credential_sent=credential_sent)

    def _describe(self, request: Request, route: Route) -> Response:
        """OPTIONS: the methods of a path. Needs no key and takes nothing from the limits."""
        headers = [(b"allow", route.allow.encode("ascii"))]
        if "PATCH" in route.operations:
            headers.append((b"accept-patch", PATCH_TYPES.encode("ascii")))
        return make_response(204, None, *headers, *self._cors.preflight_headers(request, route.allow))


def _refusing_parameters(operation: Operation) -> Operation:
    """The operation, which refuses every query parameter if it takes none."""
    if operation.parameters is not None:
        return operation
    handler = operation.handler

    def handle(request: Request, caller: Caller) -> Awaitable[Response]:
        if request.query:
            request.refuse_parameters()
        return handler(request, caller)

    return replace(operation, handler=handle)
