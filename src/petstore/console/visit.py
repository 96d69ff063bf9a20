"""One request of the console by a person whom the guard has let in, and the answers to it."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from petstore.console.cookies import Cookies
from petstore.console.tokens import csrf_token
from petstore.core.errors import NotFound, PetstoreError
from petstore.core.integers import read_id
from petstore.core.people import Person, Role
from petstore.web.negotiation import takes_gzip

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    # Without a path: a one-time link, the address of its page, would go to a proxy's log with each file.
    "referrer-policy": "strict-origin",
    "x-content-type-options": "nosniff",
    # What a person saw is not shown again after they have signed out.
    "cache-control": "no-store",
    "vary": "accept-encoding, hx-request",
}
# Of a form that no page has made.
CUT_FORM = "The form is incomplete; load its page again."
_COMPRESSED_FROM_BYTES = 1_024
_GZIP_LEVEL = 5


class Renderer(Protocol):
    """Makes the text of a page, or of one block of it."""

    def prepare(self, template: str) -> None:
        """Compile it, which takes milliseconds."""
        ...

    def page(self, template: str, values: Mapping[str, Any]) -> str: ...

    def block(self, template: str, name: str, values: Mapping[str, Any]) -> str: ...


class Page(Response):
    """A page, or a block of one, whose text is made by `fill`. See page_maker.py."""

    def __init__(
        self, template: str, block: str, values: Mapping[str, Any], status: int, *, takes_gzip: bool
    ) -> None:
        super().__init__(None, status, HEADERS, "text/html")
        self.template = template
        self._block = block
        self._values = values
        self._takes_gzip = takes_gzip

    def fill(self, renderer: Renderer) -> None:
        """Render and compress, which takes milliseconds of the event loop."""
        if self._block:
            text = renderer.block(self.template, self._block, self._values)
        else:
            text = renderer.page(self.template, self._values)
        body = text.encode()
        if self._takes_gzip and len(body) >= _COMPRESSED_FROM_BYTES:
            body = gzip.compress(body, _GZIP_LEVEL, mtime=0)
            self.headers["content-encoding"] = "gzip"
        self.body = body
        self.headers["content-length"] = str(len(body))


class Visit:
    """A request. `person` is None on the pages that need no session; `form` is what a POST has sent.

    `secret` is the session's token, or what stands for it before there is a session: forms are bound to it.
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
        """Who it is; only on pages that need a session."""
        assert self._person is not None, "this page needs no session"
        return self._person

    @property
    def actor(self) -> str:
        """`console:NAME`, for the journal."""
        return self.person.actor

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, Any]:
        """The parameters in the path."""
        return self.request.path_params

    def id_in_path(self, name: str, what: str) -> int:
        """A parameter in the path. Raises NotFound for one that no identifier of a `what` can be."""
        found = read_id(self.path[name])
        if found is None:
            raise NotFound(f"There is no such {what}.")
        return found

    @property
    def root(self) -> str:
        """The way from this page to the service's root, for relative references."""
        return "../" * (self.request.scope["path"].count("/") - 1) or "./"

    def href(self, path: str = "") -> str:
        """The relative reference of a page of the console, such as `pets/7`; nothing for the overview."""
        return f"{self.root}console/{path}" if path else f"{self.root}console"

    @property
    def page_path(self) -> str:
        """This page's path below the console, without a slash at its ends."""
        return str(self.request.scope["path"]).removeprefix("/console").strip("/")

    @property
    def wants_fragment(self) -> bool:
        """Whether htmx asks for a part of a page; on the way back it takes the whole one."""
        headers = self.request.headers
        return headers.get("hx-request") == "true" and "hx-history-restore-request" not in headers

    def may(self, role: Role | str) -> bool:
        """Whether the person's role includes this one."""
        return self._person is not None and self._person.role.includes(Role(role))

    def page(
        self, template: str, title: str, status: int = 200, *, fragment: str = "", **values: Any
    ) -> Response:
        """A page; where htmx asks, only the block `fragment` of it."""
        block = fragment if self.wants_fragment else ""
        flash = "" if block else self._cookies.flash(self.request)
        accepted = self.request.headers.getlist("accept-encoding")
        given = {**self._values(title, values), "flash": flash}
        page = Page(template, block, given, status, takes_gzip=takes_gzip(accepted))
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


Handler = Callable[[Visit], Awaitable[Response]]


class View(msgspec.Struct, frozen=True):
    """One method of one page. `path` is below /console, such as `/pets/{pet_id}`; `""` is the overview.

    `role` is the least one that may use it; None: no session is needed. Where not `reads_form`, the handler
    reads the body of a POST itself, and calls `check_csrf` before it changes anything.
    """

    method: str
    path: str
    handler: Handler
    role: Role | None = Role.VIEWER
    reads_form: bool = True
