"""The application of all paths outside /v1, with its 404, 405 and 500 responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from petstore.core.errors import InternalError, MethodNotAllowed, NotFound, PetstoreError, UriTooLong
from petstore.core.negotiation import prefers_html

_log = structlog.get_logger("petstore")
_HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store", "vary": "accept"}

_NOTHING_HERE = NotFound("There is nothing here; / says where to go, the interface is under /v1.")

ErrorPage = Callable[[PetstoreError, Request], Awaitable[Response]]


def build_site(routes: Sequence[BaseRoute], error_page: ErrorPage) -> Starlette:
    """Serves the routes. An error is a page for a browser, and for others JSON as under /v1."""
    errors = _Errors(error_page)
    site = Starlette(
        routes=routes,
        middleware=[Middleware(_Bounded)],
        exception_handlers={
            HTTPException: errors.answer_http_exception,
            PetstoreError: errors.answer,
            Exception: errors.answer_unexpected,
        },
    )
    site.router.redirect_slashes = False
    return site


class _Bounded:
    """Refuses long targets, which no page repeats: the references of one may have it hundreds of times."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(scope["raw_path"]) + len(scope["query_string"]) <= UriTooLong.MAX_BYTES:
            await self._app(scope, receive, send)
        else:
            await _as_json(UriTooLong())(scope, receive, send)


class _Errors:
    """The handlers of exceptions."""

    def __init__(self, page: ErrorPage) -> None:
        self._page = page

    async def answer_http_exception(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code != MethodNotAllowed.status:
            return await self.answer(request, _NOTHING_HERE)
        allow = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        response = await self.answer(request, MethodNotAllowed(f"This path takes {allow}.", allow))
        response.headers["allow"] = allow
        return response

    async def answer(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, PetstoreError)
        if prefers_html(request.headers.getlist("accept")):
            response = await self._page(error, request)
        else:
            response = _as_json(error)
        response.headers.update(_HEADERS)
        if error.retry_after_seconds is not None:
            response.headers["retry-after"] = str(error.retry_after_seconds)
        return response

    async def answer_unexpected(self, request: Request, error: Exception) -> Response:
        _log.error("unexpected error", exc_info=error)
        failed = InternalError("Something went wrong on our side.")
        try:
            return await self.answer(request, failed)
        except Exception:  # the page of errors is at fault itself
            return _as_json(failed)


def _as_json(error: PetstoreError) -> Response:
    return Response(error.body, error.status, _HEADERS, media_type="application/json")
