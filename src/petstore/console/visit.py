"""One request of the console that passed the guard, and the answers to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from petstore.console.cookies import Cookies, csrf_token
from petstore.console.rendering import Page
from petstore.core.errors import NotFound, PetstoreError
from petstore.core.people import Person, Role
from petstore.core.values import read_id

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    # Without a path: a one-time link, the address of its page, would go to a proxy's log with each file.
    "referrer-policy": "strict-origin",
    "x-content-type-options": "nosniff",
    # The back button shows no page after signing out.
    "cache-control": "no-store",
    "vary": "accept-encoding, hx-request",
}
# For a form that no page of the console sent, and for an address that none links to.
INCOMPLETE_FORM = "The form is incomplete; load its page again."
INCOMPLETE_ADDRESS = "The address of this page is incomplete; begin at the first page."


class Visit:
    """A request. `person` is None without a session; `form` has the fields of a POST.

    Forms are bound to `secret`: the session's token, or before a session the form cookie's.
    """

    def __init__(
        self,
        request: Request,
        cookies: Cookies,
        person: Person | None,
        secret: str,
        now_ms: int,
    ) -> None:
        self.request = request
        self.now_ms = now_ms
        self.secret = secret
        self.form: Mapping[str, str] = {}
        self._person = person
        self._cookies = cookies

    @property
    def person(self) -> Person:
        """The signed-in person. Only for pages that need a session."""
        assert self._person is not None, "this page needs no session"
        return self._person

    @property
    def actor(self) -> str:
        """`console:NAME`, for the journal."""
        return self.person.actor

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    def asked(self, *names: str) -> dict[str, str]:
        """Parameters of the query without white space around them; empty for those that are not there."""
        return {name: self.query.get(name, "").strip() for name in names}

    @property
    def path(self) -> Mapping[str, Any]:
        """The parameters in the path."""
        return self.request.path_params

    def id_of(self, what: str) -> int:
        """The one parameter in the path. Raises NotFound for text that no `what` can have."""
        (text,) = self.path.values()
        found = read_id(text)
        if found is None:
            raise NotFound(f"There is no such {what}.")
        return found

    @property
    def root(self) -> str:
        """The relative reference from this page to the service's root."""
        return "../" * (self.request.scope["path"].count("/") - 1) or "./"

    def href(self, path: str = "") -> str:
        """The relative reference of a page such as `pets/7`; empty for the overview."""
        return f"{self.root}console/{path}" if path else f"{self.root}console"

    @property
    def page_path(self) -> str:
        """This page's path below the console, without a slash at its ends."""
        return str(self.request.scope["path"]).removeprefix("/console").strip("/")

    @property
    def wants_fragment(self) -> bool:
        """Whether htmx asks for a part of a page. For the back button it asks for the whole page."""
        headers = self.request.headers
        return headers.get("hx-request") == "true" and "hx-history-restore-request" not in headers

    def may(self, role: Role | str) -> bool:
        """Whether the person's role includes this one."""
        return self._person is not None and self._person.role.includes(Role(role))

    def page(
        self, template: str, title: str, status: int = 200, *, fragment: str = "", **values: Any
    ) -> Response:
        """A page; for htmx only its block `fragment`."""
        block = fragment if self.wants_fragment else ""
        flash = "" if block else self._cookies.flash(self.request)
        given = {**self._values(title, values), "flash": flash}
        page = Page(template, block, given, status, HEADERS)
        if flash:
            self._cookies.set_flash(self.request, page, "")
        return page

    def redirect(self, path: str = "", *, flash: str = "") -> Response:
        """303 to another page of the console, which shows the flash message once."""
        response = Response(status_code=303, headers={**HEADERS, "location": self.href(path)})
        if flash:
            self._cookies.set_flash(self.request, response, flash)
        return response

    def _values(self, title: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "title": title,
            "person": self._person,
            "may": self.may,
            "href": self.href,
            "root": self.root,
            "page_path": self.page_path,
            "now_ms": self.now_ms,
            "csrf": csrf_token(self.secret),
            **values,
        }


def with_retry_after(response: Response, error: PetstoreError) -> Response:
    """The response with Retry-After, if the error has one."""
    if error.retry_after_seconds is not None:
        response.headers["retry-after"] = str(error.retry_after_seconds)
    return response


def address(page: str, asked: Mapping[str, object]) -> str:
    """Such as `orders?state=placed`, for Visit.href. Leaves out empty values and 0."""
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{page}?{query}" if query else page


Handler = Callable[[Visit], Awaitable[Response]]


class View(msgspec.Struct, frozen=True):
    """One method of one page. `path` is below /console, such as `/pets/{pet_id}`; `""` is the overview.

    `role` is the least role that may use it; None needs no session. Without `reads_form` the handler reads
    the body of a POST itself, and calls `check_csrf` before it changes anything.
    """

    method: str
    path: str
    handler: Handler
    role: Role | None = Role.VIEWER
    reads_form: bool = True
