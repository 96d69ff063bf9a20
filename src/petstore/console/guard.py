"""Checks sessions, roles and CSRF tokens before any page's own code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qsl, quote

import structlog
from starlette.requests import Request
from starlette.responses import Response

from petstore.console.browser import check_csrf
from petstore.console.rendering import Renderer
from petstore.console.visit import Desk, View, Visit
from petstore.core.errors import (
    Forbidden,
    InternalError,
    InvalidBody,
    InvalidParameter,
    PayloadTooLarge,
    PetstoreError,
    RequestTimeout,
    Unauthorized,
)
from petstore.core.keys import holds_key
from petstore.core.negotiation import prefers_html

_FORM_MAX_BYTES = 64 * 1024
_FORM_MAX_FIELDS = 200
_CSRF_FIELD = "csrf"
_UNATTENDED = "x-unattended"

_log = structlog.get_logger("petstore.console")


class Guard:
    """Turns a request into a Visit, or refuses it."""

    def __init__(self, desk: Desk, renderer: Renderer) -> None:
        self._desk = desk
        self._renderer = renderer

    def endpoint(self, views: Sequence[View]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of one path; the views are its methods."""
        by_method = {view.method: view for view in views}
        by_method |= {"HEAD": by_method["GET"]} if "GET" in by_method else {}

        async def answer(request: Request) -> Response:
            await self._renderer.slots.wait()
            try:
                visit = Visit(self._desk, request)
                response = await self._answer(visit, by_method[request.method])
                return await self._renderer.finish(request, response)
            except Exception as error:
                _log.error("unexpected error", exc_info=error)
                failed = InternalError("Something went wrong on our side.")
                return await self._renderer.finish(request, _refusal(Visit(self._desk, request), failed))

        return answer

    async def _answer(self, visit: Visit, view: View) -> Response:
        request, token = visit.request, visit.browser.session()
        try:
            visit.browser.check_host()
            _check_no_key(request)
            # A page's own refresh does not keep a session alive; see console.js.
            unattended = _UNATTENDED in request.headers
            session = await self._desk.store.sign_ins.session(token, unattended=unattended) if token else None
        except PetstoreError as error:
            return _refusal(visit, error)
        if session is not None:
            visit.recognize(session.person, token)
        elif view.role is not None:
            return _sign_in_first(visit)
        else:
            visit.recognize(None, visit.browser.form_secret())
        try:
            if view.role is not None and not visit.may(view.role):
                raise Forbidden(f"This takes the role {view.role}; yours is {visit.person.role}.")
            if request.method == "POST":
                visit.browser.check_origin()
            if request.method == "POST" and view.reads_form:
                visit.form = await self._read_form(request)
                check_csrf(visit.secret, visit.form.get(_CSRF_FIELD, ""))
            response = await view.handler(visit)
        except PetstoreError as error:
            response = _refusal(visit, error)
        if session is None:
            visit.browser.keep_form_secret(response, visit.secret)
        return response

    async def _read_form(self, request: Request) -> Mapping[str, str]:
        """Raises RequestTimeout, PayloadTooLarge and InvalidBody."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._desk.options.body_timeout_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > _FORM_MAX_BYTES:
                        raise PayloadTooLarge(f"A form is at most {_FORM_MAX_BYTES // 1024} KiB.")
        except TimeoutError:
            raise RequestTimeout("The form did not arrive in time; send it once more.") from None
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
                max_num_fields=_FORM_MAX_FIELDS,
            )
        except ValueError:
            raise InvalidBody("The form can't be read; load its page again.") from None
        return dict(pairs)


def _check_no_key(request: Request) -> None:
    """Raise InvalidParameter for an address with a key in it: logs and a browser's history keep addresses."""
    if holds_key(request.scope["query_string"].decode("latin-1")):
        raise InvalidParameter(
            "There is a key in the address of this page, and your browser remembers it: delete the page from"
            " its history. To find a key, write it into the search field at the top."
        )


def _sign_in_first(visit: Visit) -> Response:
    """Redirect to the sign-in page, which leads on to the wanted page."""
    request = visit.request
    if visit.wants_fragment:
        return Response(status_code=401, headers={"hx-refresh": "true", "cache-control": "no-store"})
    if request.method in ("GET", "HEAD") and prefers_html(request.headers.getlist("accept")):
        query = request.scope["query_string"].decode("latin-1")
        wanted = f"{visit.page_path}?{query}" if query else visit.page_path
        return visit.redirect(f"sign-in?next={quote(wanted)}" if visit.page_path else "sign-in")
    return _refusal(visit, Unauthorized("Sign in to the console first."))


def _refusal(visit: Visit, error: PetstoreError) -> Response:
    title = _TITLES.get(error.status, "That did not work")
    return visit.page("refusal.html", title, error=error, message=error.public_message)


_TITLES = {401: "Sign in", 403: "Not allowed", 404: "Not found", 409: "Something has changed"}
