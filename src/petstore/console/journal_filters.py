"""What the journal's filters take: `animal 340` and the API's `pet:340`, a number alone, or a name."""

from __future__ import annotations

from petstore.console.visit import Visit
from petstore.core.accounts import AccountQuery
from petstore.core.errors import Invalid
from petstore.core.journal import About, read_about
from petstore.core.orders import OrderQuery
from petstore.core.pets import PetQuery
from petstore.core.search import SearchKind, fold, id_in
from petstore.transactions.search import SearchQuery

_NAMED_MAX = 5


async def read_filter(visit: Visit, text: str) -> About:
    """The one object that somebody means. Raises Invalid, which names them if there are several."""
    try:
        return read_about(text)
    except Invalid:
        objects = await _objects(visit, text)
    if not objects:
        raise Invalid(
            "about",
            f"Nothing is called {text!r}. Write a name, or what it is and its number: animal 7, order 5,"
            " account 2, category 1, key 3, webhook 4, person anna; store is the store as a whole.",
        )
    if len(objects) > 1:
        several = " or ".join(
            f"{about.subject} {about.reference} ({said})" for about, said in objects[:_NAMED_MAX]
        )
        raise Invalid("about", f"Which one? Write {several.replace('pet ', 'animal ')}.")
    return objects[0][0]


async def _objects(visit: Visit, text: str) -> list[tuple[About, str]]:
    """The objects with this name or number, and what each of them is."""
    store, number = visit.store, id_in(text)
    if number is None:
        sought = await store.search.find(SearchQuery(SearchKind.PETS, text, _NAMED_MAX))
        ids = sought.ids if sought else ()
    else:
        ids = (number,)
    pets = (await store.pets.page(PetQuery(len(ids), ids=ids))).pets if ids else []
    objects = [(About("pet", str(pet.id)), pet.name) for pet in pets]
    if number is not None:
        orders = (await store.orders.page(OrderQuery(ids=ids))).orders
        return objects + [(About("order", str(order.id)), order.status) for order in orders]
    accounts = await store.accounts.page(visit.now_ms, AccountQuery(_NAMED_MAX, text))
    names = {
        "account": [use.account.name for use in accounts.accounts],
        "person": [person.name for person in await store.people.all()],
    }
    folded = fold(text)
    objects += [(About(kind, name), kind) for kind in names for name in names[kind] if fold(name) == folded]
    categories = [each for each in await store.categories.all() if fold(each.name) == folded]
    return objects + [(About("category", str(each.id)), each.name) for each in categories]
