"""The search for animals: filters, one page of results, and the next page."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from petstore.console.formats import choose, sentence
from petstore.console.visit import INCOMPLETE_ADDRESS, Visit, address
from petstore.core.errors import Invalid, InvalidParameter
from petstore.core.pets import STATUSES, NamePlace, NameQuery, PageQuery, Pet, PetStatus
from petstore.core.values import name_fault, read_id, read_int64

_ROWS = 50


class Search(msgspec.Struct, frozen=True):
    """`text` is the beginning of a name; digits are also an identifier. A page starts after `after`, of which
    only the identifier counts without a text."""

    text: str = ""
    category_id: int | None = None
    status: PetStatus | None = None
    newest_first: bool = True
    after: NamePlace | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether the search leaves out animals."""
        return bool(self.text) or self.category_id is not None or self.status is not None

    @property
    def first(self) -> Search:
        """The first page of the same search."""
        return replace(self, after=None)

    def address(self) -> str:
        """The address of this page, below the console."""
        given = {
            "q": self.text,
            "category": "" if self.category_id is None else str(self.category_id),
            "status": self.status,
            "order": "" if self.newest_first else "oldest",
            "after": 0 if self.after is None else self.after.id,
            "after_name": self.after.name if self.after is not None and self.text else "",
        }
        return address("pets", given)


class Found(msgspec.Struct, frozen=True):
    """A page of animals. `further` is the next page. `stopped_at`: a bounded scan ended at this name."""

    pets: list[Pet]
    further: Search | None = None
    stopped_at: str | None = None


def read_search(visit: Visit) -> Search:
    """The search of a page's address. Raises Invalid, which names the field, and InvalidParameter."""
    query = visit.query
    text = query.get("q", "")
    text = "" if text.isspace() else text
    fault = name_fault(text) if text else None
    if fault is not None:
        raise Invalid("q", sentence(fault))
    category, status = query.get("category", ""), query.get("status", "")
    category_id = read_int64(category)
    if category and category_id is None:
        raise Invalid("category", "Choose a category.")
    if status and status not in STATUSES:
        raise Invalid("status", choose(STATUSES))
    after_id, name = visit.place("after"), query.get("after_name", "")
    if after_id and text and name_fault(name) is not None:
        raise InvalidParameter(INCOMPLETE_ADDRESS)
    after = NamePlace(name, after_id) if after_id else None
    return Search(text, category_id, STATUSES.get(status), query.get("order") != "oldest", after)


async def find(visit: Visit, search: Search) -> Found:
    """One page of a search: sorted by name if it has a text, else by identifier."""
    if search.text:
        return await _find_by_name(visit, search)
    after_id = search.after.id if search.after is not None else 0
    query = PageQuery(_ROWS, search.status, None, after_id, search.category_id, search.newest_first)
    page = await visit.store.pets.page(query)
    last = NamePlace("", page.pets[-1].id) if page.has_more else None
    return Found(page.pets, replace(search, after=last) if last is not None else None)


async def _find_by_name(visit: Visit, search: Search) -> Found:
    """An animal whose identifier is the text comes first."""
    pets, first, pet_id = visit.store.pets, list[Pet](), read_id(search.text)
    if pet_id is not None and search.after is None:
        first = (await pets.page(PageQuery(1, search.status, (pet_id,), 0, search.category_id))).pets
    named = await pets.find_by_name(
        NameQuery(search.text, _ROWS, search.status, search.category_id, search.after)
    )
    found = first + [pet for pet in named.pets if pet.id != pet_id]
    if named.further is None:
        return Found(found)
    stopped = named.further.name if len(named.pets) < _ROWS else None
    return Found(found, replace(search, after=named.further), stopped)
