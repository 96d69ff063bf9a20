"""The filters of the list of orders, read from its address and written back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.console.addresses import place_in
from petstore.console.visit import address
from petstore.core.errors import Invalid
from petstore.core.orders import OPEN, ORDER_STATUSES, OrderStatus
from petstore.core.values import read_id

# The lists by state: parameter and title. The first one has the orders that wait for staff.
TABS = (
    ("", "Waiting"),
    *((status.value, status.value.capitalize()) for status in OrderStatus),
    ("all", "All"),
)
_FIRST = {"newest": True, "oldest": False}


class Search(msgspec.Struct, frozen=True):
    """`state` is one of TABS. `first` is `newest`, `oldest`, or empty for the order that fits the state."""

    state: str = ""
    account: str = ""
    first: str = ""
    after_id: int = 0
    order_id: int | None = None

    @property
    def tabs(self) -> tuple[tuple[str, str], ...]:
        """The lists by state: parameter and title."""
        return TABS

    @property
    def status(self) -> OrderStatus | None:
        return ORDER_STATUSES.get(self.state)

    @property
    def open_only(self) -> bool:
        return self.state == ""

    @property
    def newest_first(self) -> bool:
        """Open orders oldest first, others newest first."""
        return _FIRST.get(self.first, not self.open_only and self.status not in OPEN)

    def address(self) -> str:
        """The address of this list, below the console."""
        given = {"state": self.state, "account": self.account, "first": self.first, "after": self.after_id}
        return address("orders", given)

    def in_state(self, state: str) -> str:
        """The address of the same search in another state, in the order that fits that state."""
        return msgspec.structs.replace(self, state=state, first="", after_id=0).address()

    def behind(self, order_id: int) -> str:
        """The address of the page that starts after an order; 0 is the first page."""
        return msgspec.structs.replace(self, after_id=order_id).address()


def read_search(query: Mapping[str, str]) -> Search:
    """Raises Invalid, which names the field, and InvalidParameter for an address that no page links to."""
    state, first = query.get("state", ""), query.get("first", "")
    if state not in dict(TABS):
        raise Invalid("state", f"There is no list of {state!r} orders; choose one of the lists.")
    if first and first not in _FIRST:
        raise Invalid("first", "Choose which orders come first.")
    wanted = query.get("id", "").strip()
    order_id = read_id(wanted)
    if wanted and order_id is None:
        raise Invalid("id", "An order's number has digits alone, such as 7.")
    return Search(state, query.get("account", "").strip(), first, place_in(query, "after"), order_id)
