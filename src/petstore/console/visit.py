"""One request to the console, and the answers to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from petstore.console.browser import HEADERS, Browser, csrf_token
from petstore.console.desk import Desk
from petstore.console.rendering import Page
from petstore.core.errors import Conflict, Invalid, InvalidBody, InvalidParameter, NotFound, PetstoreError
from petstore.core.people import Person, Role
from petstore.core.values import read_id
from petstore.core.zones import read_zone, zone_name
from petstore.web.delivery import Streamed

# For a form that no page of the console sent, and for an address that none links to.
INCOMPLETE_FORM = "The form is incomplete; load its page again."
INCOMPLETE_ADDRESS = "The address of this page is incomplete; begin at the first page."
NOTHING_CHANGED = "Nothing was changed."  # a flash message of a failure
_MEDIA_TYPES = {".csv": "text/csv", ".json": "application/json", ".jsonl": "application/jsonl"}


class Faults(InvalidBody):
    """Several fields of a form are wrong: a message for each."""

    def __init__(self, by_field: Mapping[str, str]) -> None:
        super().__init__(" ".join(by_field.values()))
        self.by_field = by_field


class Question(Conflict):
    """What a form wants is allowed and unusual: the form comes back with this, and a box to tick."""


class Visit:
    """A request to the console. `form` has the fields of a POST.

    Forms are bound to `secret`: the session's token, or before a session the form cookie's.
    """

    def __init__(self, desk: Desk, request: Request) -> None:
        self.desk = desk
        self.store = desk.store
        self.request = request
        self.query: Mapping[str, str] = request.query_params
        self.path: Mapping[str, Any] = request.path_params
        self.now_ms = desk.clock.now_ms()
        self.browser = Browser(
            request, desk.options.trusted, desk.options.hosts, "-staging" if desk.options.is_staging else ""
        )
        self.secret = ""
        self.form: Mapping[str, str] = {}
        self.error: PetstoreError | None = None
        self._beside = ""
        self._person: Person | None = None

    def recognize(self, person: Person | None, secret: str) -> None:
        """`person` is None without a session."""
        self._person = person
        self.secret = secret

    @property
    def person(self) -> Person:
        """The signed-in person. Only for pages that need a session."""
        assert self._person is not None, "the page's View has no role, so it has no person"
        return self._person

    @property
    def actor(self) -> str:
        """`console:NAME`, for the journal."""
        return self.person.actor

    @property
    def zone(self) -> ZoneInfo:
        """The zone in which times are shown and typed: the person's own choice, else the shop's."""
        own = self._person.time_zone if self._person else None
        return (read_zone(own) if own else None) or self.desk.options.zone

    def asked(self, *names: str) -> dict[str, str]:
        """Parameters of the query without white space around them; empty for those that are not there."""
        return {name: self.query.get(name, "").strip() for name in names}

    def query_id(self, name: str, first: int = 0) -> int:
        """The identifier that a parameter of the query has; without it `first`. Raises InvalidParameter."""
        return read_query_id(self.query.get(name, ""), first)

    def typed(self, name: str) -> str:
        """A field of the form without white space around it; empty if it is not there."""
        return self.form.get(name, "").strip()

    def check_sure(self, *doubts: str) -> None:
        """Raise Question for doubts (not those that are empty), unless the form says yes to exactly these."""
        question = " ".join(filter(None, doubts))
        if question and self.form.get("sure") != question:
            raise Question(question)

    def refuse(self, error: PetstoreError, beside: str = "") -> None:
        """The page says so: beside the error's own field, else `beside`; "" is the form as a whole."""
        self.error, self._beside = error, beside

    def sent(self, **shown: str) -> dict[str, str]:
        """These fields as typed; before the form is sent, as `shown`."""
        return {name: self.typed(name) for name in shown} if self.form else shown

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
    def here(self) -> str:
        """This page's address below the console, with its query."""
        query = self.request.scope["query_string"].decode("latin-1")
        return f"{self.page_path}?{query}" if query else self.page_path

    @property
    def wants_fragment(self) -> bool:
        """Whether htmx asks for a part of a page. For the back button it asks for the whole page."""
        headers = self.request.headers
        return headers.get("hx-request") == "true" and "hx-history-restore-request" not in headers

    def may(self, role: Role | str) -> bool:
        """Whether the person's role includes this one."""
        return self._person is not None and self._person.role.includes(Role(role))

    def page(
        self,
        template: str,
        title: str,
        status: int = 0,
        *,
        fragment: str = "",
        named: str = "",
        **values: Any,
    ) -> Response:
        """A page; for htmx only its block `fragment`. `named`: what the thing that it shows is called.

        Without a `status` it has what was refused: its status, and its `faults` by field or its `question`.
        """
        error = None if status else self.error
        block = fragment if self.wants_fragment else ""
        flash, *undo = ("" if block else self.browser.flash()).split("\n")
        given = {
            **self._given(),
            "title": title,
            "named": named,
            "flash": flash,
            "is_change": flash != NOTHING_CHANGED,
            "undo": undo,
            "faults": _faults_of(error, self._beside),
            "question": error.message if isinstance(error, Question) else "",
            **values,
        }
        page = Page(template, block, given, error.status if error else status or 200, HEADERS)
        if flash:
            self.browser.set_flash(page, "")
        if error and error.retry_after_seconds is not None:
            page.headers["retry-after"] = str(error.retry_after_seconds)
        return page

    def _given(self) -> dict[str, Any]:
        """What every page may use."""
        return {
            "person": self._person,
            "may": self.may,
            "href": self.href,
            "root": self.root,
            "page_path": self.page_path,
            "here": self.here,
            "now_ms": self.now_ms,
            "zone": self.zone,
            "zone_name": zone_name(self.zone),
            "csrf": csrf_token(self.secret),
        }

    def redirect(self, path: str = "", *, flash: str = "", undo: Iterable[str] = ()) -> Response:
        """303 to another page of the console, which shows the flash message once, with Undo for `undo`."""
        response = Response(status_code=303, headers={**HEADERS, "location": self.href(path)})
        if flash:
            self.browser.set_flash(response, "\n".join((flash, *undo)))
        return response

    def download(self, name: str, chunks: AsyncIterator[bytes]) -> Response:
        """A file, produced while it is sent. `name` ends with .csv, .json or .jsonl."""
        headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
        return Streamed(chunks, headers, _MEDIA_TYPES[PurePath(name).suffix], self.desk.chunks)


def read_query_id(text: str, first: int = 0) -> int:
    """See Visit.query_id."""
    number = read_id(text) if text else first
    if number is None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    return number


def _faults_of(error: PetstoreError | None, beside: str) -> Mapping[str, str]:
    if error is None or isinstance(error, Question):
        return {}
    if isinstance(error, Faults):
        return error.by_field
    return {error.field if isinstance(error, Invalid) else beside: error.message}


def address(page: str, asked: Mapping[str, object]) -> str:
    """A page's address for Visit.href, such as `orders?state=placed`. Leaves out empty values and 0."""
    query = urlencode({name: value for name, value in asked.items() if value})
    return f"{page}?{query}" if query else page


Handler = Callable[[Visit], Awaitable[Response]]


def asks_again(show: Handler, *errors: type[PetstoreError], beside: str = "") -> Callable[[Handler], Handler]:
    """A decorator of handlers: after one of these errors `show` answers, and says what was refused."""

    def wrap(handler: Handler) -> Handler:
        async def answer(visit: Visit) -> Response:
            try:
                return await handler(visit)
            except errors as error:
                visit.refuse(error, beside)
                return await show(visit)

        return answer

    return wrap


class View(msgspec.Struct, frozen=True):
    """One method of one page. `path` is below /console, such as `/pets/{pet_id}`; `""` is the overview.

    `role` is the least role that may use it; None needs no session. Without `reads_form` the handler reads
    the body of a POST itself, and calls `check_csrf` before it changes anything. `shows_once`: the answer to
    the POST has a secret that no other page shows.
    """

    method: str
    path: str
    handler: Handler
    role: Role | None = Role.VIEWER
    reads_form: bool = True
    shows_once: bool = False
