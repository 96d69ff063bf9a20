"""Checks sessions, roles and CSRF tokens before any page's own code runs.

A view that reads its form by itself checks the token too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qsl, quote, unquote_plus

import structlog
from starlette.requests import Request
from starlette.responses import Response

from petstore.console.browser import HEADERS, FormExpired, check_csrf
from petstore.console.desk import Desk
from petstore.console.rendering import Renderer, answer_to_nobody, is_left
from petstore.console.visit import View, Visit
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
from petstore.core.people import Role
from petstore.web.delivery import Streamed

_FORM_MAX_BYTES = 64 * 1024
_FORM_MAX_FIELDS = 200
# The longest address that the sign-in page leads on to; others are left out. nginx refuses an answer with a
# larger head, and sends no more to the replica that has sent it.
_NEXT_MAX_CHARACTERS = 1_500
_CSRF_FIELD = "csrf"
# How often a download looks up whether its reader may still have it.
_RECHECK_SECONDS = 1.0
_UNATTENDED = "x-unattended"
# The header of forms that a script sends; see forms.js.
_BY_SCRIPT = "x-by-script"
_SIGNED_OUT = "You are signed out, so nothing was saved. Sign in, and fill in the form once more."

_log = structlog.get_logger("petstore.console")


class Guard:
    """Turns a request into a Visit, or refuses it. `pages` are the paths with a GET."""

    def __init__(self, desk: Desk, renderer: Renderer, pages: frozenset[str]) -> None:
        self._desk = desk
        self._renderer = renderer
        self._pages = pages

    def endpoint(self, views: Sequence[View]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of one path; the views are its methods."""
        by_method = {view.method: view for view in views}
        by_method |= {"HEAD": by_method["GET"]} if "GET" in by_method else {}

        async def answer(request: Request) -> Response:
            return await self._respond(request, by_method[request.method])

        return answer

    async def refuse(self, error: PetstoreError, request: Request) -> Response:
        """The error as a page of the console, at an address that has none."""

        async def show_error(_: Visit) -> Response:
            raise error

        return await self._respond(request, View(request.method, "", show_error, None, reads_form=False))

    async def _respond(self, request: Request, view: View) -> Response:
        await self._renderer.slots.wait()
        if is_left(request):
            return answer_to_nobody()
        try:
            visit = Visit(self._desk, request)
            response = await self._answer(visit, view)
            if _BY_SCRIPT in request.headers:
                _show_to_script(response)
            return await self._renderer.finish(request, response)
        except Exception as error:
            _log.error("unexpected error", exc_info=error)
            failed = InternalError("Something went wrong on our side.")
            return await self._renderer.finish(request, _refusal(Visit(self._desk, request), failed))

    async def _answer(self, visit: Visit, view: View) -> Response:
        request, token = visit.request, visit.browser.session()
        try:
            visit.browser.check_host()
            _check_no_key(request)
            # A page's own refresh does not keep a session alive; see console.js.
            unattended = _UNATTENDED in request.headers
            session = await self._desk.store.sign_ins.session(token, unattended=unattended) if token else None
        except PetstoreError as error:
            return _refusal(visit, error, self._page_of(visit, view))
        if session is not None:
            visit.recognize(session.person, token)
        elif view.role is not None:
            return _sign_in_first(visit, self._page_of(visit, view))
        else:
            visit.recognize(None, visit.browser.form_secret())
        try:
            response = await self._act(visit, view)
        except PetstoreError as error:
            response = _refusal(visit, error, self._page_of(visit, view))
        if session is None:
            visit.browser.keep_form_secret(response, visit.secret)
        return response

    async def _act(self, visit: Visit, view: View) -> Response:
        request = visit.request
        if view.role is not None and not visit.may(view.role):
            raise Forbidden(f"This takes the role {view.role}; yours is {visit.person.role}.")
        if request.method == "POST":
            visit.browser.check_origin()
            asks_first = _BY_SCRIPT in request.headers and (view.shows_once or not view.reads_form)
            if view.reads_form or asks_first:
                visit.form = await self._read_form(request)
                check_csrf(visit.secret, visit.form.get(_CSRF_FIELD, ""))
            if asks_first:
                return Response(status_code=204, headers=HEADERS)
        response = await view.handler(visit)
        if isinstance(response, Streamed) and view.role is not None:
            response.may_go_on = self._lasting(visit, view.role)
        return response

    def _lasting(self, visit: Visit, role: Role) -> Callable[[], Awaitable[bool]]:
        """Looks up, at most once a second, whether the reader of a download may have the rest of it."""
        store, now = self._desk.store, self._desk.clock.monotonic
        checked_at = now()

        async def may_go_on() -> bool:
            nonlocal checked_at
            if now() - checked_at < _RECHECK_SECONDS:
                return True
            checked_at = now()
            session = await store.sign_ins.session(visit.secret, unattended=True)
            return session is not None and session.person.role.includes(role)

        return may_go_on

    def _page_of(self, visit: Visit, view: View) -> str:
        """The page that has the form of this action, below the console; of a page, itself."""
        path = view.path
        while path not in self._pages:
            path = path.rpartition("/")[0]
        return "/".join(visit.page_path.split("/")[: path.count("/")])

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
    if holds_key(unquote_plus(request.scope["query_string"].decode("latin-1"))):
        raise InvalidParameter(
            "There is a key in the address of this page, and your browser remembers it: delete the page from"
            " its history. To find a key, write it into the search field at the top."
        )


def _show_to_script(response: Response) -> None:
    """Make a redirect 204 with its Location, since a script can't read a redirect."""
    if response.status_code == 303:
        response.status_code = 204
        del response.headers["content-length"]


def _sign_in_first(visit: Visit, page: str) -> Response:
    """Redirect to the sign-in page, which leads on to the wanted page, or to the page of the sent form."""
    request, is_form = visit.request, visit.request.method == "POST"
    wanted = page if is_form else visit.here
    has_next = page and len(wanted) <= _NEXT_MAX_CHARACTERS
    sign_in = f"sign-in?next={quote(wanted)}" if has_next else "sign-in"
    if visit.wants_fragment:
        leads_on = {"hx-redirect": visit.href(sign_in), "cache-control": "no-store"}
        return Response(status_code=401, headers=leads_on)
    if prefers_html(request.headers.getlist("accept")):
        return visit.redirect(sign_in, flash=_SIGNED_OUT if is_form else "")
    return _refusal(visit, Unauthorized("Sign in to the console first."), page)


def _refusal(visit: Visit, error: PetstoreError, page: str = "") -> Response:
    is_form = visit.request.method == "POST"
    visit.refuse(error)
    return visit.page(
        "refusal.html",
        _TITLES.get(error.status, "That did not work"),
        message=error.public_message,
        is_form=is_form,
        form_page=page,
        sends_again=is_form and error.status >= 500,
        begins_anew=isinstance(error, Unauthorized | FormExpired),
    )


_TITLES = {401: "Sign in", 403: "Not allowed", 404: "Not found", 409: "Something has changed"}
