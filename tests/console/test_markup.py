"""Whatever comes from outside is text on every page of the console: no markup of it is carried out."""

from __future__ import annotations

import html
import re
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, quote, urljoin

import apsw
import pytest

from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import UsageChanges
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, PetChange
from tests.support.console import Form, Shown, Visitor
from tests.support.console_places import add_upload
from tests.support.failing_webhooks import add_webhook, let_fail
from tests.support.service import Shop


def evil(what: str) -> str:
    """Markup that is carried out wherever it is not made text, and says what it came from."""
    return f"'\"><img src={what}>"


# What the crawl has to meet on some page, as text.
OUTSIDE = (
    "pet", "category", "account", "label", "actor", "person",
    "file", "row", "fault", "message", "query", "typed",
    "url", "description", "reason", "answer", "contact", "refusal",
)  # fmt: skip
_PAGE = re.compile(r"/console/(?!static/|billing/bill|stock/export|stock/[0-9]+/rejects)")
_REFERENCE = re.compile(r'<a [^>]*href="([^"]*)"')
_KEPT = ("csrf", "once", "was", "seen")


@pytest.fixture
async def hostile(shop: Shop) -> Visitor:
    """An operator, and markup wherever the store has text; names that it refuses were written past it."""
    store, operator = shop.store, await Visitor(shop).sign_in_as("operator", "olga")
    actor = f"cli:{evil('actor')}"
    await store.pets.add(NewPet(evil("pet"), 1), actor)
    await store.pets.change(1, PetChange(evil("pet") + "2"), actor)
    await store.pets.add(NewPet("Mia", 1), actor)
    await store.categories.name(1, evil("category"), actor)
    await store.accounts.add("customer", FREE, actor)
    issued = await store.keys.issue("customer", "test", actor, label=evil("label"))
    await store.orders.place(2, NewOrder(1), actor)
    now_ms = shop.clock.now_ms()
    webhook = await add_webhook(store, issued.record.id, evil("url"), evil("description"))
    await let_fail(store, webhook.id, now_ms, evil("reason"), evil("answer"))
    await store.contacts.add("account", "customer", "anna@example.com", actor)
    bans = {issued.record.id: BanState(2, banned_from_ms=now_ms, banned_until_ms=now_ms + 60_000)}
    await store.counters.save(LimiterState({}, bans), UsageChanges())
    rejected = f'{{"name":"{evil("row")}","categoryId":1,"{evil("fault")}":2}}\n'.replace("'\"", "'\\\"")
    await add_upload(store, "console:olga", evil("file"), "jsonl", rejected.encode())
    await add_upload(store, "console:olga", content=f"name,{evil('message')[3:]}\r\n".encode())
    await Visitor(shop).sign_in_as("staff", "nils")
    with closing(apsw.Connection(str(shop.path))) as connection:
        connection.execute("UPDATE accounts SET name = ? WHERE name = 'customer'", [evil("account")])
        connection.execute("UPDATE people SET name = ? WHERE name = 'nils'", [evil("person")])
        connection.execute(
            "UPDATE contacts SET address = ?, fault = ?, fault_at_ms = 0", [evil("contact"), evil("refusal")]
        )
    return operator


def addresses_in(shown: Shown) -> list[str]:
    """The pages that it links to, below the console, with their queries."""
    found = [html.unescape(each).partition("#")[0] for each in _REFERENCE.findall(shown.body.decode())]
    pages = [urljoin(shown.address, quote(each, safe="/?&=%+.:")) for each in found if each]
    return [page.removeprefix("/console/") for page in pages if _PAGE.match(page)]


def kind(address: str) -> tuple[str, tuple[str, ...]]:
    """What a page is among those that differ in what is asked for alone."""
    path, _, query = address.partition("?")
    return path, tuple(sorted(name for name, _ in parse_qsl(query)))


def filled(form: Form) -> dict[str, Any]:
    """Markup in each field in which somebody writes."""
    what = "query" if form.method == "GET" else "typed"
    return {name: evil(what) for name in form.fields if name not in form.choices and name not in _KEPT}


async def crawl(visitor: Visitor) -> dict[str, str]:
    """The text of each page that leads to others, and of the answer to each form of it, by what was asked."""
    waiting, seen, bodies = ["", "journal?actor=cli", "me"], set[object](), dict[str, str]()
    while waiting:
        address = waiting.pop()
        if kind(address) in seen:
            continue
        seen.add(kind(address))
        shown = await visitor.get(address)
        if not shown.headers["content-type"].startswith("text/html"):
            continue
        bodies[address] = shown.body.decode()
        waiting += addresses_in(shown)
        for form in shown.forms:
            asked = form.method, form.action.partition("?")[0].lstrip("./")
            if asked not in seen and (typed := filled(form)) and "password" not in form.action:
                seen.add(asked)
                answer = await visitor.submit(shown, form.action.partition("?")[0], **typed)
                bodies[f"{form.method} {form.action}"] = answer.body.decode()
    return bodies


async def test_markup_from_outside_is_text_on_every_page(hostile: Visitor) -> None:
    """Names of animals, categories, accounts, people and files, labels of keys, actors, rows of lists and
    their faults, webhooks and what they answered, what was searched for and what was typed."""
    bodies = await crawl(hostile)
    assert [address for address, body in bodies.items() if "<img" in body] == []
    shown = "".join(bodies.values())
    assert [what for what in OUTSIDE if f"&lt;img src={what}&gt;" not in shown] == []
    assert len(bodies) > len(OUTSIDE)
    # Nor is it another name in a browser that translates the page.
    assert re.search(r'<(bdi|code)(?! translate="no"[ >])', shown) is None
