"""Mail: the contacts of an account or a person, as a block of its page.

templates/contact_parts.html shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from petstore.console.visit import INCOMPLETE_FORM, Handler, View, Visit, asks_again
from petstore.core.contacts import Subject
from petstore.core.errors import Conflict, ContactNotFound, Invalid, InvalidBody
from petstore.core.notifications import kinds_for
from petstore.core.people import Role


class ContactBlock(msgspec.Struct, frozen=True):
    """The contacts on a page. `refer` names its account or person; `least` is the role that may change it."""

    subject: Subject
    path: str
    least: Role
    refer: Callable[[Visit], str]
    show: Handler

    async def block(self, visit: Visit, subject_id: int) -> dict[str, Any]:
        """The value `mail` of contact_parts.html."""
        return {
            "contacts": await visit.store.contacts.of(self.subject, subject_id),
            "kinds": kinds_for(self.subject),
            "home": self._home(visit),
            "may_change": visit.may(self.least),
            "is_sent": visit.desk.options.sends_mail,  # there is a mail server
            "typed": visit.typed("address"),
        }

    async def add(self, visit: Visit) -> Response:
        address = visit.typed("address")
        await visit.store.contacts.add(self.subject, self.refer(visit), address, visit.actor)
        return self._shown_again(visit, f"{address} is a contact.")

    async def remove(self, visit: Visit) -> Response:
        reference, address = self.refer(visit), _given(visit, "contact")
        await visit.store.contacts.remove(self.subject, reference, address, visit.actor)
        return self._shown_again(visit, f"{address} is no longer a contact.")

    async def switch(self, visit: Visit) -> Response:
        """The kinds that were ticked or cleared; a colleague's changes of others stay."""
        reference, address = self.refer(visit), _given(visit, "contact")
        shown = _given(visit, "was").split(",")
        ticked = [kind.name for kind in kinds_for(self.subject) if kind.name in visit.form]
        cleared = [kind.name for kind in kinds_for(self.subject) if kind.name not in visit.form]
        await visit.store.contacts.switch(
            self.subject,
            reference,
            address,
            visit.actor,
            off=[name for name in cleared if name in shown],
            on=[name for name in ticked if name not in shown],
        )
        return self._shown_again(visit, f"The choice for {address} is saved.")

    def views(self) -> list[View]:
        add = asks_again(self.show, Invalid, Conflict, beside="address")(self.add)
        known = asks_again(self.show, ContactNotFound)
        return [
            View("POST", f"{self.path}/contacts", add, self.least),
            View("POST", f"{self.path}/contacts/remove", known(self.remove), self.least),
            View("POST", f"{self.path}/contacts/kinds", known(self.switch), self.least),
        ]

    def _home(self, visit: Visit) -> str:
        return self.path.format_map(visit.path).removeprefix("/")

    def _shown_again(self, visit: Visit, flash: str) -> Response:
        return visit.redirect(self._home(visit), flash=flash)


def _given(visit: Visit, name: str) -> str:
    """A hidden field of a form. Raises InvalidBody."""
    if name not in visit.form:
        raise InvalidBody(INCOMPLETE_FORM)
    return visit.form[name]
