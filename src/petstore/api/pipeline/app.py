"""The /v1 application: gate, cache, handler, response. What any of them raises becomes a body here.

The order of the steps is the documented precedence, so that every request has one answer.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from petstore.api.pipeline.body import PATCH_TYPES
from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.cors import Cors
from petstore.api.pipeline.gate import Gate, Refused
from petstore.api.pipeline.rehearsal import REHEARSE, Rehearse, Rehearsed, Unanswered
from petstore.api.pipeline.request import Exchange, Request, read_request
from petstore.api.pipeline.response import (
    Header,
    Response,
    error_response,
    help_links,
    limit_lines,
    lines_with,
    make_response,
    render,
    unless_known,
)
from petstore.api.pipeline.routing import NO_ROUTE, Operation, Route, Router
from petstore.core.clock import Clock
from petstore.core.errors import InternalError, PetstoreError, Unavailable
from petstore.core.keys import Caller
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.stages import REHEARSED
from petstore.core.versions import Version

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
    ) -> None:
        """A response was sent; `decision` is what it said about limits."""

    def failed(self, request: Request, operation: str, error: Exception, *, expected: bool) -> None:
        """An expected failure of the store became a 503, or an unexpected error a 500."""


class ConstantHeaders(NamedTuple):
    """Headers that are the same in all answers: the Links of errors lead to one page."""

    page_of_errors: str
    always: Iterable[Header] = ()


class ApiApp:
    """Answers exchanges whose path is under /v1."""

    def __init__(
        self,
        *,
        operations: Iterable[Operation],
        gate: Gate,
        cors: Cors,
        clock: Clock,
        observer: Observer,
        rehearse: Rehearse,
        constant: ConstantHeaders,
    ) -> None:
        self._router = Router(map(refusing_parameters, operations))
        self.cache = PageCache()
        self._gate = gate
        self._cors = cors
        self._monotonic = clock.monotonic
        self._observer = observer
        self._rehearse = rehearse
        self._help_links = help_links(constant.page_of_errors)
        self._always = render(constant.always)
        self._id_prefix = secrets.token_hex(6).encode("ascii")
        self._ids = itertools.count(1)
        self.in_flight = 0

    def __call__(self, exchange: Exchange) -> None:
        """Answer at once where nothing has to be waited for, else in a task."""
        self.in_flight += 1
        request = read_request(exchange)
        request.began = self._monotonic()
        request.request_id = request.request_id or b"%s-%x" % (self._id_prefix, next(self._ids))
        route = self._router.exact.get(request.path) or self._router.find(request.path)
        operation = route.operations.get(request.method) or route.otherwise
        answer: Response | Awaitable[Response] | None = None
        try:  # in the order of the documented precedence
            request.check_head()
            if request.method == "OPTIONS" and route is not NO_ROUTE:
                answer = self._describe(request, route)
            elif self._gate.try_admit(request, operation.access, operation.deprecated):
                answer = self._handle(request, operation)
            elif self._gate.take_later(request, partial(self._continue_after_take, request, operation)):
                return
        except Exception as error:
            answer = self._failure(request, operation.name, error)
        self._answer_or_wait(request, operation, answer)

    def _continue_after_take(
        self, request: Request, operation: Operation, caller: Caller, decision: Decision | None
    ) -> None:
        """Go on with a request once the gate's `take_later` has a Decision."""
        answer: Response | Awaitable[Response] | None = None
        try:
            if decision is not None:
                self._gate.apply_decision(request, caller, decision, operation.access, operation.deprecated)
                answer = self._handle(request, operation)
        except Exception as error:
            answer = self._failure(request, operation.name, error)
        self._answer_or_wait(request, operation, answer)

    def _answer_or_wait(
        self, request: Request, operation: Operation, answer: Response | Awaitable[Response] | None
    ) -> None:
        if isinstance(answer, Response):
            self._answer(request, operation, answer)
        else:
            task = asyncio.get_running_loop().create_task(self._wait(request, operation, answer))
            request.exchange.task = task

    async def _wait(
        self, request: Request, operation: Operation, answer: Response | Awaitable[Response] | None
    ) -> None:
        """Answer what is not ready: the rest of the gate, then the handler."""
        try:
            if answer is None:
                await self._gate.admit(request, operation.access, operation.deprecated)
                answer = self._handle(request, operation)
            if not isinstance(answer, Response):
                answer = self._cache_and_match(request, operation, await answer)
        except Unanswered:
            self.in_flight -= 1
            request.exchange.abort()
            return
        except Exception as error:
            answer = self._failure(request, operation.name, error)
        self._answer(request, operation, answer)

    def _handle(self, request: Request, operation: Operation) -> Response | Awaitable[Response]:
        """What a rehearsal asks for, else the cached page, else what the handler makes."""
        if REHEARSE in request.headers and operation.method:
            return self._rehearse(request, operation)
        if operation.cacheable:
            found = self.cache.find(request, _catalogue(request))
            if found is not None:
                return unless_known(found, request.headers.get(b"if-none-match"))
        assert request.caller is not None
        answer = operation.handler(request, request.caller)
        return self._cache_and_match(request, operation, answer) if isinstance(answer, Response) else answer

    def _cache_and_match(self, request: Request, operation: Operation, response: Response) -> Response:
        """Cache what the handler made; 304 instead of it for a client that has it."""
        if operation.cacheable:
            self.cache.add(request, _catalogue(request), response)
        if not response.tag:
            return response
        return unless_known(response, request.headers.get(b"if-none-match"))

    def _answer(self, request: Request, operation: Operation, response: Response) -> None:
        """Send and observe a response. Where that fails, the connection ends: its client must not wait."""
        self.in_flight -= 1
        try:
            self._send(request, operation, response)
        except Exception as error:
            if not request.exchange.is_answered:
                request.exchange.abort()
            self._observer.failed(request, operation.name, error, expected=False)

    def _send(self, request: Request, operation: Operation, response: Response) -> None:
        decision = request.decision or self._gate.describe(request)
        lines = response.lines
        if operation.always_headers is not None or self._cors.is_configured:
            further = operation.always_headers(request) if operation.always_headers else []
            lines = lines_with(response, [*further, *self._cors.headers(request)])
        lines = limit_lines(decision, request.request_id) + lines + self._always
        request.exchange.answer(response.status, lines, response.body)
        seconds = self._monotonic() - request.began
        self._observer.answered(request, operation, response, seconds, decision)

    def _failure(self, request: Request, operation: str, error: Exception) -> Response:
        """An error as a response. The observer logs the service's own: 500 and 503."""
        rehearsed: tuple[Header, ...] = ()
        if isinstance(error, Refused):
            request.caller, request.decision, request.cause = error.caller, error.decision, error.cause
            error = error.error
        if isinstance(error, Rehearsed):  # no trouble of the service
            request.decision, request.cause = error.decision, REHEARSED
            rehearsed, error = (error.header,), error.error
        elif not isinstance(error, PetstoreError):
            self._observer.failed(request, operation, error, expected=False)
            error = InternalError(
                "Something went wrong on our side; tell us the X-Request-Id of this answer."
            )
        elif isinstance(error, Unavailable):
            self._observer.failed(request, operation, error, expected=True)
        credential_sent = request.headers.get(b"authorization") is not None
        link = self._help_links[error.code]
        return error_response(error, link, *rehearsed, credential_sent=credential_sent)

    def _describe(self, request: Request, route: Route) -> Response:
        """OPTIONS: the methods of a path. Needs no key and takes nothing from the limits."""
        headers = [(b"allow", route.allow.encode("ascii"))]
        if "PATCH" in route.operations:
            headers.append((b"accept-patch", PATCH_TYPES.encode("ascii")))
        return make_response(204, None, *headers, *self._cors.preflight_headers(request, route.allow))


def refusing_parameters(operation: Operation) -> Operation:
    """The operation, which refuses every query parameter if it takes none."""
    if operation.parameters is not None:
        return operation
    handler = operation.handler

    def handle(request: Request, caller: Caller) -> Response | Awaitable[Response]:
        if request.query:
            request.refuse_parameters()
        return handler(request, caller)

    return replace(operation, handler=handle)


def _catalogue(request: Request) -> Version | None:
    """The version of the catalogue when the request was admitted."""
    assert isinstance(request.decision, Decision)
    return request.decision.versions.catalogue
