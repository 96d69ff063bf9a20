"""The application of all paths outside /v1, with its 404, 405 and 500 responses."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from petstore.core.errors import InternalError, MethodNotAllowed, NotFound, PetstoreError, error_body

_log = structlog.get_logger("petstore")


def build_site(routes: Sequence[BaseRoute]) -> Starlette:
    """Serves the routes; errors are JSON with the catalogue's codes, as under /v1."""
    site = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _answer_http_exception,
            PetstoreError: _answer_error,
            Exception: _answer_unexpected,
        },
    )
    site.router.redirect_slashes = False
    return site


def _error_response(error: PetstoreError, headers: dict[str, str] | None = None) -> Response:
    headers = {"x-content-type-options": "nosniff", "cache-control": "no-store", **(headers or {})}
    return Response(error_body(error), error.status, headers, media_type="application/json")


async def _answer_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == MethodNotAllowed.status:
        allow = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        return _error_response(MethodNotAllowed(f"This path takes {allow}.", allow), {"allow": allow})
    return _error_response(NotFound("There is nothing here; / says where to go, the interface is under /v1."))


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, PetstoreError)
    return _error_response(error)


async def _answer_unexpected(_request: Request, error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    return _error_response(InternalError("Something went wrong on our side."))
