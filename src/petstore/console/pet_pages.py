"""The list of animals: all in the order of their numbers, or those with words in their names."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace
from starlette.responses import Response

from petstore.console.categories import names_in, with_animals
from petstore.console.formats import choose, sentence
from petstore.console.lists import RowPage, find_matches, find_page, links
from petstore.console.pet_forms import status_choices, version_of_pet
from petstore.console.rows import PETS
from petstore.console.several import ROWS_MAX
from petstore.console.visit import View, Visit, address
from petstore.core.errors import Invalid
from petstore.core.pets import STATUSES, NameQuery, Pet, PetQuery
from petstore.core.search import SearchKind
from petstore.core.values import name_fault, read_int64
from petstore.transactions.search import SearchQuery


async def search(visit: Visit) -> Response:
    text, wanted, found, count = "", PetQuery(), RowPage[Pet](), ""
    try:
        text, wanted = read_search(visit)
        if text:
            found = await find_pets(visit, text, wanted)
        else:
            find = partial(find_pets, visit, "")
            found, count = await find_page(visit, wanted, find, visit.store.pets.count)
    except Invalid as error:
        visit.refuse(error)
    asked = {
        "q": text,
        "category": "" if wanted.category_id is None else str(wanted.category_id),
        "status": wanted.status or "",
        "order": "" if wanted.newest_first else "oldest",
    }
    other_way = address("pets", {**asked, "order": "oldest" if wanted.newest_first else ""})
    return visit.page(
        "pets.html",
        "Animals",
        fragment="rows",
        names=await names_in(visit),
        categories=await with_animals(visit),
        statuses=status_choices(None),
        typed=visit.query,
        wanted=wanted,
        text=text,
        found=found,
        rows=found.rows,
        count=count,
        version_of=version_of_pet,
        several=PETS,
        sorts={"~#Number": (other_way, "descending" if wanted.newest_first else "ascending")},
        clear="pets" if any(asked.values()) else "",
        **links("pets", asked, found),
    )


def read_search(visit: Visit) -> tuple[str, PetQuery]:
    """A text, and which animals of it. Raises Invalid and InvalidParameter."""
    text, category, status = visit.asked("q", "category", "status").values()
    fault = name_fault(text) if text else None
    if fault is not None:
        raise Invalid("q", sentence(fault))
    category_id = read_int64(category)
    if category and category_id is None:
        raise Invalid("category", "Choose a category.")
    if status and status not in STATUSES:
        raise Invalid("status", choose(STATUSES))
    newest_first = visit.query.get("order") != "oldest"
    return text, PetQuery(
        ROWS_MAX, STATUSES.get(status), None, visit.query_id("after"), category_id, newest_first
    )


async def find_pets(visit: Visit, text: str, wanted: PetQuery) -> RowPage[Pet]:
    """One page of those with the words in their names; without a text, of all."""
    pets, filters = visit.store.pets, {"status": wanted.status, "category_id": wanted.category_id}
    if not text:
        page = await pets.page(wanted)
        return RowPage(page.pets, not wanted.after_id, next_start=page.pets[-1].id if page.has_more else 0)

    async def read(ids: tuple[int, ...]) -> list[Pet]:
        return (await pets.page(replace(wanted, ids=ids, limit=len(ids), after_id=0))).pets

    conditions = {name: value for name, value in filters.items() if value is not None}
    query = SearchQuery(SearchKind.PETS, text, wanted.limit, wanted.after_id, wanted.newest_first, conditions)
    named = NameQuery(text, wanted.limit, wanted.status, wanted.category_id)
    return await find_matches(visit, query, read, lambda: pets.find_by_name(named))


VIEWS = [View("GET", "/pets", search)]
