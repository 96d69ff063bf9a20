"""The pages of the console: for each path of its routes, addresses that show something there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from petstore.core.people import Role
from petstore.core.uploads import UploadState
from petstore.storage.store import Store
from tests.support.jobs import carry_out, keep_list, work
from tests.support.journal import ACTOR

# By the path of a route below /console: its addresses, of lists also what a search or a filter shows. There
# is none for a file, which a browser does not show, and for what leads on to another page.
PLACES: dict[str, tuple[str, ...]] = {
    "": ("",),
    "/sign-in": ("sign-in",),
    "/link/{token}": ("link/{link}",),
    "/me": ("me",),
    "/accounts": ("accounts", "accounts?q=pet&state=active"),
    "/accounts/new": ("accounts/new",),
    "/accounts/{account_id}": ("accounts/{account}", "accounts/{banned_account}"),
    "/accounts/{account_id}/customer": ("accounts/{account}/customer",),
    "/accounts/{account_id}/plan": ("accounts/{account}/plan",),
    "/accounts/{account_id}/rename": ("accounts/{account}/rename",),
    "/accounts/{account_id}/suspend": ("accounts/{account}/suspend",),
    "/accounts/{account_id}/close": ("accounts/{account}/close",),
    "/accounts/{account_id}/keys": ("accounts/{account}/keys",),
    "/accounts/{account_id}/keys/new": ("accounts/{account}/keys/new",),
    "/keys/{key_id}/rotate": ("keys/{key}/rotate",),
    "/keys/{key_id}/revoke": ("keys/{key}/revoke",),
    "/keys/{key_id}": ("keys/{key}",),
    "/webhooks/{webhook_id}": ("webhooks/{webhook}",),
    "/bans": ("bans",),
    "/billing": ("billing",),
    "/accounts/{account_id}/bill": ("accounts/{account}/bill",),
    "/billing/bill": (),
    "/service": ("service",),
    "/pick/{kind}": (),  # a list within a page
    "/search": ("search", "search?q=be", "search?q=nobody"),
    "/pets": ("pets", "pets?q=be&status=available", "pets?q=nobody"),
    **{
        f"/{page}.csv": ()
        for page in ("pets", "orders", "accounts", "accounts/{account_id}/keys", "journal", "bans")
    },
    "/pets/new": ("pets/new",),
    "/pets/{pet_id}": ("pets/{pet}",),
    "/pets/{pet_id}/label": ("pets/{pet}/label",),
    "/pets/{pet_id}/remove": ("pets/{pet}/remove",),
    "/categories": ("categories",),
    "/categories/{category_id}": ("categories/1",),
    "/categories/{category_id}/remove": ("categories/1/remove",),
    "/orders": ("orders", "orders?state=delivered"),
    "/orders/new": ("orders/new",),
    "/orders/{order_id}": ("orders/{order}", "orders/{open_order}"),
    "/orders/{order_id}/note": ("orders/{order}/note",),
    "/orders/{order_id}/cancel": ("orders/{open_order}/cancel",),
    "/people": ("people",),
    "/people/add": ("people/add",),
    "/people/of/{name}": ("people/of/{person}", "people/of/{new_person}"),
    "/people/of/{name}/disable": ("people/of/{new_person}/disable",),
    "/people/of/{name}/reset": ("people/of/{new_person}/reset",),
    "/stock": ("stock",),
    "/stock/export": (),
    "/stock/{upload_id}": ("stock/1",),
    "/stock/{upload_id}/rejects": (),
    "/stock/{upload_id}/columns": ("stock/1/columns",),
    "/journal": ("journal", "journal?actor=console:nobody"),
    "/journal/{list_id}/taking-back": ("journal/{list}/taking-back",),
    "/events": ("events", "events?type=order.*&account={account}"),
}
# Addresses that look like one of those and may cost more.
DEAR = (
    "journal?about=pet:{pet}", "journal?about=account:{account}", "journal?actor=api",
    "events?type=store.restored",
    "journal?since=2020-01-01&until=2020-02-01", "pets?q=B", "pets?q=bella&status=pending", "pets?q=zz",
    "pets?status=sold&category=3", "pets?category=3&order=oldest", "pets?q=pet&category=3&status=pending",
    "orders?account=customer-1", "orders?state=delivered&account=customer-1&first=newest",
    "orders?state=cancelled&first=newest", "accounts?q=customer-9", "accounts?q=zz",
    "accounts?state=closed", "accounts?plan=pro", "accounts?state=suspended&q=customer-5",
    "accounts/{account}7", "billing?month=2026-10", "billing?first=2026-01-01&last=2026-12-31&sum=on",
    "orders?state=placed&account=customer-77",
)  # fmt: skip
# Where a session would lead on to another page.
WITHOUT_SESSION = ("/sign-in", "/link/{token}")
_LIST = b"name,categoryId,status\r\nRex,1,\r\nMia,dogs,\r\n"
# What the store of `make demo` has; benchmarks name other things.
_DEMO = {"pet": 7, "order": 1, "open_order": 6, "account": 5, "banned_account": 10, "key": 1, "webhook": 1}


class People(NamedTuple):
    """An operator's session, a link that nobody has used, and the journal's entry of a list's end."""

    token: str
    link: str
    list_id: str


async def add_people(store: Store) -> People:
    """An operator who is signed in and has sent a list, and somebody who has not been there yet."""
    link = await store.people.add("olga", Role.OPERATOR, ACTOR)
    token = await store.sign_ins.redeem(link.token, "no hash", "127.0.0.1")
    unused = await store.people.add("nils", Role.STAFF, ACTOR)
    await store.contacts.add("person", "olga", "olga@example.com", ACTOR)
    await store.contacts.switch("person", "olga", "olga@example.com", ACTOR, off=["order.created"])
    await add_upload(store, "console:olga")
    return People(token, unused.token, await import_one(store, "console:olga"))


async def import_one(store: Store, actor: str) -> str:
    """Import a list of one animal; the entry of its end."""
    upload_id = await keep_list(store, b"name,category\r\nFritz,1\r\n", actor, file="autumn.csv")
    await carry_out(store)
    found = await store.list_reverts.of_upload(await work(store, upload_id, UploadState.STORING, actor))
    assert found is not None
    return str(found.finished.id)


async def add_upload(
    store: Store, actor: str, file: str = "spring.csv", form: str = "csv", content: bytes = _LIST
) -> None:
    """A list of stock that was checked; unless given, one with a bad row."""
    await keep_list(store, content, actor, file=file, form=form)
    await carry_out(store)


def places(patterns: Iterable[str], people: People, **known: object) -> list[str]:
    """Addresses with what is `known` of the store in them."""
    names = {"person": "olga", "new_person": "nils", "link": people.link, "list": people.list_id}
    return [f"/console/{pattern}".rstrip("/").format_map(_DEMO | names | known) for pattern in patterns]
