"""What staff know of an account's customer: whom to ask, and how to reach them.

It is personal: the journal says what was changed and not to what, and the end of the account deletes it.
Mail of the service goes to contacts (contacts.py), not to this address.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from petstore.core.contacts import address_fault
from petstore.core.errors import Conflict
from petstore.core.fields import Text, fields_of
from petstore.core.values import Name, Remark

Email = Annotated[str, Text(address_fault)]


class Customer(msgspec.Struct, frozen=True):
    """The person of an account, how to reach them, and a remark; None is unknown."""

    name: Name | None = None
    email: Email | None = None
    phone: Name | None = None
    address: Remark | None = None
    remark: Remark | None = None


FIELDS = fields_of(Customer)
NOBODY = Customer()


class CustomerChangedMeanwhile(Conflict):
    """Somebody has changed the customer since it was read. `current` is what it is now."""

    def __init__(self, current: Customer) -> None:
        super().__init__("A colleague has changed the customer meanwhile. Your changes were not saved.")
        self.current = current


def changed_members(before: Customer, after: Customer) -> list[str]:
    """The names of the members that differ."""
    return [each.member for each in FIELDS if getattr(before, each.name) != getattr(after, each.name)]
