"""The page of the newest events: what it says, and its filters. Which events: tests/storage/contract."""

from __future__ import annotations

from petstore.core.events import EventQuery
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, PetChange
from tests.console.conftest import assert_refused, follow
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

REX = NewPet("Rex <b>", 1)


async def test_an_event_says_what_clients_see_and_leads_on(shop: Shop, viewer: Visitor) -> None:
    """The newest first, with links to its object and to its entry in the journal, which says who it was."""
    await shop.store.pets.add(REX, "console:anna")
    await shop.store.pets.change(1, PetChange(name="Max"), "cli:bob")
    await shop.store.events.note_restore("cli:carol")
    added, changed, restored = (await shop.store.events.page(EventQuery(9, 2))).events
    shown = await viewer.get("events")
    assert (
        f"store.restored {restored.id} store"
        f" 2027-01-15 08:00:30 pet.updated {changed.id} animal 1 name: Rex <b> → Max"
        f" 2027-01-15 08:00:30 pet.created {added.id} animal 1"
        " name: Rex <b> category: 1 status: available" in shown.text
    )
    assert "bob" not in shown.text
    assert shown.links["animal 1"] == "../console/pets/1"
    entry = await follow(viewer, shown, changed.id)
    (first, *_) = entry.text.partition("Change ")[2].split(" command line")
    assert first.endswith("bob")


async def test_filters_show_what_an_account_sees(shop: Shop, viewer: Visitor) -> None:
    """A filter is a type or a group of them; the block that refreshes itself keeps it."""
    owner = await shop.store.accounts.add("farm", FREE, ACTOR)
    await shop.store.accounts.add("other", FREE, ACTOR)
    await shop.store.pets.add(REX, ACTOR)
    await shop.store.orders.place(owner.id, NewOrder(1), ACTOR)
    htmx = [("hx-request", "true")]
    for account, seen in (("", True), ("farm", True), (str(owner.id), True), ("other", False)):
        shown = await viewer.fill("events", "events", type="order.*", account=account)
        assert "pet.created evt_" not in shown.text
        assert ("order.created evt_" in shown.text, "No events match." in shown.text) == (seen, not seen)
        again = await viewer.get(f"events?type=order.*&account={account}", headers=htmx)
        assert ("order.created" in again.text, "Type" in again.text) == (seen, False)
        assert f"type=order.%2A{'&amp;account=' if account else ''}{account}".encode() in again.body


async def test_a_faulty_filter_is_named_beside_it(viewer: Visitor) -> None:
    """A page with a faulty filter does not refresh itself."""
    unknown = await viewer.get("events?account=nobody")
    assert_refused(unknown, 404, "There is no account 'nobody'.")
    wrong = await viewer.get("events?type=pets")
    assert_refused(wrong, 400, "There is no such type.")
    for shown in (unknown, wrong):
        assert b"every 5s" not in shown.body
