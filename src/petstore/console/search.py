"""Finds anything by what people write: a name, a number, a reference, a key or its last four characters."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.responses import Response

from petstore.console.account_pages import find_accounts
from petstore.console.categories import names_in
from petstore.console.order_pages import find_orders
from petstore.console.pet_pages import find_pets
from petstore.console.visit import View, Visit, address
from petstore.core.accounts import AccountQuery
from petstore.core.digests import digest
from petstore.core.errors import Conflict
from petstore.core.keys import KEY_PATTERN, holds_key, is_wellformed
from petstore.core.orders import OrderQuery
from petstore.core.people import Role
from petstore.core.pets import PetQuery
from petstore.core.search import Words, id_in

# How many hits of each kind are shown; there is a list of all.
_SHOWN = 5
_TEXT_MAX = 255
_END = re.compile(r"(?:pets_(?:live|test)_)?(?:…|\.\.\.)?([0-9A-Za-z]{4})", re.ASCII)


class Hit(msgspec.Struct, frozen=True):
    """A page that was found. `about` says which of several it is; `state` is a badge."""

    page: str
    name: str
    about: str = ""
    state: str = ""


class Hits(msgspec.Struct, frozen=True):
    """The first of one kind, and the list of all, if there is one."""

    title: str
    hits: list[Hit]
    all: str = ""
    is_built: bool = True


async def show(visit: Visit) -> Response:
    text = visit.asked("q")["q"][:_TEXT_MAX]
    return await _page(visit, text)


async def ask(visit: Visit) -> Response:
    """POST keeps keys out of URLs; a text without a key is redirected to GET."""
    text = visit.typed("q")[:_TEXT_MAX]
    if not holds_key(text):
        return visit.redirect(address("search", {"q": text}))
    found = KEY_PATTERN.search(text)
    key = await visit.store.keys.by_digest(digest(found[0].encode())) if found else None
    if key is not None:
        return visit.redirect(f"keys/{key.id}", flash="This key has the text that you looked for.")
    if found and is_wellformed(found[0]):
        return await _page(
            visit, "", "No key here has this text: it belongs to another store, or was never issued."
        )
    return await _page(visit, "", "This is not a whole key: a character is wrong, or some are missing.")


async def _page(visit: Visit, text: str, fault: str = "") -> Response:
    found = [await find(visit, text) for find in _FINDERS] if text else []
    if fault:
        visit.refuse(Conflict(fault))
    return visit.page(
        "search.html",
        "Search",
        fragment="rows",
        sought=text,
        found=[hits for hits in found if hits.hits],
        is_built=all(hits.is_built for hits in found),
    )


async def _pets(visit: Visit, text: str) -> Hits:
    found = await find_pets(visit, text, PetQuery(_SHOWN, newest_first=True))
    names = await names_in(visit)
    hits = [
        Hit(f"pets/{pet.id}", pet.name, f"{pet.id} · {names.label(pet.category_id)}", pet.status)
        for pet in found.rows[:_SHOWN]
    ]
    more = address("pets", {"q": text}) if found.next_start or len(found.rows) > _SHOWN else ""
    return Hits("Animals", hits, more, found.is_built)


async def _orders(visit: Visit, text: str) -> Hits:
    found = await find_orders(visit, text, OrderQuery(limit=_SHOWN, newest_first=True))
    names = await visit.store.accounts.names({order.account_id for order in found.rows})
    hits = [
        Hit(
            f"orders/{order.id}",
            f"Order {order.id}",
            " · ".join(filter(None, (names.get(order.account_id), order.reference))),
            order.status,
        )
        for order in found.rows[:_SHOWN]
    ]
    # The list of a number that is an order's is that order.
    has_list = all(order.id != id_in(text) for order in found.rows)
    more = address("orders", {"state": "all", "q": text}) if has_list and found.next_start else ""
    return Hits("Orders", hits, more, found.is_built)


async def _accounts(visit: Visit, text: str) -> Hits:
    found = await find_accounts(visit, AccountQuery(_SHOWN, text))
    hits = [
        Hit(f"accounts/{use.account.id}", use.account.name, use.account.plan.name, use.account.state)
        for use in found.rows[:_SHOWN]
    ]
    more = address("accounts", {"q": text}) if found.next_start or len(found.rows) > _SHOWN else ""
    return Hits("Accounts", hits, more, found.is_built)


async def _keys(visit: Visit, text: str) -> Hits:
    end = _END.fullmatch(text)
    if end is None:
        return Hits("Keys", [])
    keys = await visit.store.keys.ending(end[1])
    names = await visit.store.accounts.names({key.account_id for key in keys})
    hits = [
        Hit(
            f"keys/{key.id}",
            key.display,
            " · ".join(filter(None, (names.get(key.account_id), key.label))),
            key.state(visit.now_ms),
        )
        for key in keys
    ]
    return Hits("Keys", hits)


async def _categories(visit: Visit, text: str) -> Hits:
    words, categories = Words(text), await visit.store.categories.all()
    hits = [
        Hit(f"pets?category={each.id}", each.name, str(each.id))
        for each in categories
        if words and words.match(each.name)
    ]
    return Hits("Categories", hits, "categories" if len(hits) > _SHOWN else "")


async def _people(visit: Visit, text: str) -> Hits:
    words = Words(text)
    people = await visit.store.people.all() if visit.may(Role.OPERATOR) else []
    hits = [
        Hit(f"people/of/{each.name}", each.name, each.role)
        for each in people
        if words and words.match(each.name)
    ]
    return Hits("People", hits)


_FINDERS: tuple[Callable[[Visit, str], Awaitable[Hits]], ...] = (
    _pets,
    _orders,
    _accounts,
    _keys,
    _categories,
    _people,
)

VIEWS = [View("GET", "/search", show), View("POST", "/search", ask)]
