"""The page where a contact's notifications are switched; the token in its address is all that it takes.

A GET changes nothing, since programs follow the links in mail. A POST comes from the page's buttons or, in
one click, from a program of mail (RFC 8058, section 3.1): the query says what to do; the body is not read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from petstore.core.clock import Clock
from petstore.core.contacts import Contact
from petstore.core.errors import ContactNotFound, InvalidParameter, NotFound, Unavailable
from petstore.core.mails import SWITCHES
from petstore.core.notifications import kinds_for
from petstore.site.rendered import Renderer
from petstore.site.token_bucket import TokenBucket
from petstore.web.routes import Route
from petstore.web.slots import Slots

# Error pages are kept by their text, so none repeats what a client has sent.
_UNKNOWN = "This link no longer works: its address was removed. Use the link in a newer mail."
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "x-robots-tag": "noindex"}


class Contacts(Protocol):
    """The contacts of a store. The methods raise StoreUnavailable, and with a token ContactNotFound."""

    async def of_token(self, token: str) -> Contact: ...

    async def owner(self, contact: Contact) -> str: ...

    async def switch_by_token(self, token: str, kind: str, *, is_on: bool) -> Contact: ...


class Switch(msgspec.Struct, frozen=True):
    """A kind of notification, and whether the contact takes it. `what` is a sentence."""

    name: str
    what: str
    is_on: bool


class Switches:
    """`prepare` makes what renders, with the first page. `headers` are those of pages with forms."""

    def __init__(
        self,
        contacts: Contacts,
        prepare: Callable[[], Awaitable[Renderer]],
        headers: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._contacts = contacts
        self._prepare = prepare
        self._headers = {**headers, **_HEADERS}
        self._slots = Slots(clock)
        # Each change is an entry of the journal, so one who has a link can't fill it.
        self._budget = TokenBucket(clock, burst=60, per_second=1)
        self._renderer: Renderer | None = None

    def route(self) -> Route:
        return Route(f"{SWITCHES}/{{token}}", self._answer, ("GET", "POST"))

    async def _answer(self, request: Request) -> Response:
        token, asked = request.path_params["token"], ""
        try:
            contact = await self._contacts.of_token(token)
            if request.method == "POST":
                asked, is_on = _read_change(request, contact)
                if is_on == (asked in contact.off):
                    contact = await self._change(token, asked, is_on)
        except ContactNotFound:
            raise NotFound(_UNKNOWN) from None
        return HTMLResponse(await self._render(contact, asked, request), headers=self._headers)

    async def _change(self, token: str, kind: str, is_on: bool) -> Contact:
        if not self._budget.take():
            raise Unavailable("Too much is being switched at the moment. Try again shortly.")
        return await self._contacts.switch_by_token(token, kind, is_on=is_on)

    async def _render(self, contact: Contact, done: str, request: Request) -> str:
        """`done` is the kind that was switched, if one was."""
        owner = await self._contacts.owner(contact)
        switches = [
            Switch(kind.name, kind.what, kind.name not in contact.off) for kind in kinds_for(contact.subject)
        ]
        by_name = {switch.name: switch for switch in switches}
        if self._renderer is None:
            self._renderer = await self._prepare()
        await self._slots.wait()
        return self._renderer.switches(
            address=contact.address,
            of_account=contact.subject == "account",
            owner=owner,
            switches=switches,
            done=by_name.get(done),
            first=None if done else by_name.get(request.query_params.get("off", "")),
        )


def _read_change(request: Request, contact: Contact) -> tuple[str, bool]:
    """The kind, and whether to switch it on. Raises InvalidParameter unless there is one that it can take."""
    asked = [
        (kind, name == "on") for name, kind in request.query_params.multi_items() if name in ("off", "on")
    ]
    kinds = [kind.name for kind in kinds_for(contact.subject)]
    if len(asked) != 1 or asked[0][0] not in kinds:
        raise InvalidParameter(
            f"Nothing was switched. Say ?off=KIND or ?on=KIND once, with one of: {', '.join(kinds)}."
        )
    return asked[0]
