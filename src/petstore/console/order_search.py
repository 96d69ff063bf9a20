"""Which orders somebody wants to see, from the address of the list and back to one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.console.addresses import address, place_in
from petstore.core.errors import Invalid
from petstore.core.integers import read_id
from petstore.core.orders import OPEN, ORDER_STATUSES, OrderStatus

# The lists by state: the parameter and its name. The first one is what waits for staff.
TABS = (
    ("", "Waiting"),
    *((status.value, status.value.capitalize()) for status in OrderStatus),
    ("all", "All"),
)
_FIRST = {"newest": True, "oldest": False}


class Search(msgspec.Struct, frozen=True):
    """`state` is one of TABS; `first` is `newest` or `oldest`, or empty for what fits the state."""

    state: str = ""
    account: str = ""
    first: str = ""
    after_id: int = 0
    order_id: int | None = None

    @property
    def tabs(self) -> tuple[tuple[str, str], ...]:
        """The lists by state: their parameter and their name."""
        return TABS

    @property
    def status(self) -> OrderStatus | None:
        return ORDER_STATUSES.get(self.state)

    @property
    def open_only(self) -> bool:
        return self.state == ""

    @property
    def newest_first(self) -> bool:
        """Who waits longest comes first; of what is done, the last."""
        return _FIRST.get(self.first, not self.open_only and self.status not in OPEN)

    def address(self) -> str:
        """The list below the console."""
        given = {"state": self.state, "account": self.account, "first": self.first, "after": self.after_id}
        return address("orders", given)

    def in_state(self, state: str) -> str:
        """The address of the same search in another state, in the order that fits it."""
        return msgspec.structs.replace(self, state=state, first="", after_id=0).address()

    def behind(self, order_id: int) -> str:
        """The address of the page behind an order; behind 0, of the first one."""
        return msgspec.structs.replace(self, after_id=order_id).address()


def read_search(query: Mapping[str, str]) -> Search:
    """Raises Invalid, which names the field, and InvalidParameter for an address that no page has."""
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
