"""Orders at the console: the lists, one order, its moves, and new ones."""

from __future__ import annotations

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.events import EventQuery
from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet
from tests.console.conftest import assert_refused, follow
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

PLACED, APPROVED, DELIVERED, CANCELLED = OrderStatus


@pytest.fixture
async def stocked(shop: Shop) -> Shop:
    """Accounts `farm` and `zoo`; four animals, of which the first two are ordered."""
    for name in ("farm", "zoo"):
        await shop.store.accounts.add(name, FREE, ACTOR)
    for name in ("Rex <b>", "Tom", "Kim", "Sam"):
        await shop.store.pets.add(NewPet(name, 1), ACTOR)
    for pet_id, account in ((1, "farm"), (2, "zoo")):
        owner = await shop.store.accounts.find(account)
        await shop.store.orders.place(owner.id, NewOrder(pet_id), ACTOR)
    return shop


async def move(shop: Shop, order_id: int, *statuses: OrderStatus) -> None:
    for status in statuses:
        await shop.store.orders.change(order_id, ACTOR, status=status)


async def pet_status(shop: Shop, pet_id: int) -> str:
    return str((await shop.store.pets.get_or_none(pet_id)).status)


def listed(shown: Shown) -> list[str]:
    """The orders of a list, from the first row to the last."""
    return [text for text, address in shown.links.items() if address.endswith(f"orders/{text}")]


class TestList:
    """Orders are found by state, account and number, in pages."""

    async def test_what_waits_comes_first(self, stocked: Shop, viewer: Visitor) -> None:
        """Placed and approved ones, the oldest first, with the names of their accounts and animals."""
        await move(stocked, 2, APPROVED)
        shown = await viewer.get("orders")
        assert listed(shown) == ["1", "2"]
        assert "1 farm Rex <b> 1 placed" in shown.text
        assert "2 zoo Tom 2 approved" in shown.text
        assert shown.links["Rex <b>"].endswith("pets/1")
        assert "Place an order" not in shown.links

    async def test_each_state_has_its_list(self, stocked: Shop, viewer: Visitor) -> None:
        """What is done is shown with the newest first. An empty one says so; nothing waits is good news."""
        await stocked.store.orders.place(1, NewOrder(3), ACTOR)
        await move(stocked, 1, CANCELLED)
        await move(stocked, 3, CANCELLED)
        for state, first, found in (
            ("", "", ["2"]),
            ("placed", "", ["2"]),
            ("approved", "", []),
            ("cancelled", "", ["3", "1"]),
            ("cancelled", "oldest", ["1", "3"]),
            ("all", "", ["3", "2", "1"]),
        ):
            shown = await viewer.get(f"orders?state={state}&first={first}")
            assert (listed(shown), "No orders match." in shown.text) == (found, not found)
        await move(stocked, 2, CANCELLED)
        assert "No order waits." in (await viewer.get("orders")).text

    async def test_by_account_and_by_number(self, stocked: Shop, viewer: Visitor) -> None:
        """A number leads to the order itself; an account's name keeps the state."""
        assert listed(await viewer.get("orders?account=zoo")) == ["2"]
        assert listed(await viewer.get("orders?account=2")) == listed(await viewer.get("orders?account=farm"))
        shown = await viewer.get("orders?q=%232")
        assert shown.address == "/console/orders/2", shown.text
        assert "Order 2" in shown.text

    async def test_by_a_part_of_the_reference(self, stocked: Shop, viewer: Visitor) -> None:
        """A search by reference stays within the list of a state and an account, in its order; in pages, as a
        file, and not by a guess before the index is made."""
        for number in range(60):
            pet = (await stocked.store.pets.add(NewPet("Pet", 1), ACTOR)).pet
            await stocked.store.orders.place(1, NewOrder(pet.id, reference=f"Fair 2026/{number}"), ACTOR)
        assert "The index of names is being made." in (await viewer.get("orders?q=fair")).text
        await stocked.index()
        ids = [str(number) for number in range(3, 63)]
        first = await viewer.get("orders?q=2026%20FAIR&state=placed&account=1")
        second = await follow(viewer, first, "Next page")
        assert [*listed(first), *listed(second)] == ids
        for text in ("2026/59", "2026"):  # 2026 is not a number of an order
            shown = await viewer.get(f"orders?q={text}&state=all&first=newest")
            assert listed(shown)[:1] == ids[-1:], shown.text
        for elsewhere in ("state=approved", "account=2", "state=cancelled&account=1"):
            assert listed(await viewer.get(f"orders?q=fair&{elsewhere}")) == []
        file = await follow(viewer, first, "CSV")
        assert file.body.decode().count("Fair 2026/") == 60


class TestOne:
    """An order, with its history."""

    async def test_all_about_it(self, stocked: Shop, viewer: Visitor) -> None:
        """Account, animal, state and who did what; a viewer has no buttons."""
        await stocked.store.orders.change(1, "console:anna", status=APPROVED)
        shown = await viewer.get("orders/1")
        assert "Status approved Account farm Animal Rex <b> 1 pending" in shown.text
        assert "anna console Order approved status: placed → approved" in shown.text
        assert shown.links["farm"].endswith("accounts/2")
        assert "What to do next" not in shown.text

    async def test_a_removed_animal_is_no_dead_link(self, stocked: Shop, viewer: Visitor) -> None:
        """An order outlives its animal."""
        await move(stocked, 1, CANCELLED)
        await stocked.store.pets.remove(1, ACTOR)
        assert "Animal 1, removed" in (await viewer.get("orders/1")).text
        assert "1, removed" in (await viewer.get("orders?state=all")).text


class TestMoves:
    """The allowed ones, by the same transactions as everywhere."""

    async def test_an_order_on_its_way(self, stocked: Shop, staff: Visitor) -> None:
        """Approved, then delivered at a time; the animal is sold, and the journal names the person."""
        shown = await staff.fill("orders/1", "orders/1/approve")
        assert "Order 1 is approved." in shown.text
        shown = await staff.submit(shown, "orders/1/deliver", ship_date="2027-01-15T07:15")
        assert "Order 1 is delivered." in shown.text
        assert "Ship date 2027-01-15 07:15:00 UTC" in shown.text
        assert not [
            form for form in shown.forms if "orders/1" in form.action and "comment" not in form.fields
        ]
        assert await pet_status(stocked, 1) == "sold"
        assert "a-staff console Order delivered" in shown.text

    async def test_an_odd_ship_date_is_asked_about(self, stocked: Shop, staff: Visitor) -> None:
        """A ship date in the future, or over a day before the order, needs a yes, for that date alone."""
        await move(stocked, 1, APPROVED)
        future, early = "2030-01-01T12:00", "2026-11-22T07:15"
        shown = await staff.fill("orders/1", "deliver", ship_date=future)
        assert_refused(shown, 409, "2030-01-01 12:00:00 UTC is in the future. Is that the ship date?")
        assert shown.form("deliver").fields["ship_date"] == future
        shown = await staff.say_yes(shown, "deliver", ship_date=early)
        assert_refused(
            shown, 409, "2026-11-22 07:15:00 UTC is before the order was placed, 2027-01-15 08:00:30"
        )
        assert (await stocked.store.orders.get(1)).status is APPROVED
        shown = await staff.say_yes(shown, "deliver")
        assert "Order 1 is delivered." in shown.text
        assert "Ship date 2026-11-22 07:15:00 UTC" in shown.text

    async def test_a_ship_date_of_the_order_is_asked_about_too(self, stocked: Shop, staff: Visitor) -> None:
        """A customer's program planned it; an empty field would keep it."""
        await move(stocked, 1, APPROVED)
        await stocked.store.orders.change(1, ACTOR, ship_date_ms=stocked.clock.now_ms() + 10 * DAY_MS)
        shown = await staff.fill("orders/1", "orders/1/deliver")
        assert "is in the future" in shown.text

    async def test_a_delivery_without_a_date_is_now(self, stocked: Shop, staff: Visitor) -> None:
        """A delivery without a date is dated now, as by the command and the interface."""
        await move(stocked, 1, APPROVED)
        await staff.fill("orders/1", "orders/1/deliver")
        assert (await stocked.store.orders.get(1)).ship_date_ms == stocked.clock.now_ms()

    async def test_a_cancellation_asks_first(self, stocked: Shop, staff: Visitor) -> None:
        """A page asks first, and says what a cancellation touches; then the animal is available again."""
        asked = await staff.get("orders/1/cancel")
        assert "farm ordered Rex <b>" in asked.text
        assert (await stocked.store.orders.get(1)).status is PLACED
        shown = await staff.submit(asked, "orders/1/cancel")
        assert "Order 1 is cancelled." in shown.text
        assert await pet_status(stocked, 1) == "available"

    async def test_the_second_of_two_people_is_told(self, stocked: Shop, staff: Visitor) -> None:
        """Both have the page open, one cancels, the other approves: 409, what it is now, and who did it."""
        before = await staff.get("orders/1")
        asked = await staff.get("orders/1/cancel")
        await stocked.store.orders.change(1, "console:bert", status=CANCELLED)
        for shown in (await staff.submit(before, "approve"), await staff.submit(asked, "cancel")):
            assert_refused(shown, 409, "Order 1 is cancelled by now")
            assert "bert console Order cancelled" in shown.text
        assert_refused(await staff.get("orders/1/cancel"), 409, "can't be cancelled any more")

    async def test_a_stale_delivery_keeps_the_ship_date(self, stocked: Shop, staff: Visitor) -> None:
        """The first one's date stays."""
        await move(stocked, 1, APPROVED)
        before = await staff.get("orders/1")
        await staff.submit(before, "deliver", ship_date="2027-01-15T07:15")
        shown = await staff.submit(before, "deliver", ship_date="2027-01-15T07:45")
        assert_refused(shown, 409, "Ship date 2027-01-15 07:15")


class TestComment:
    """What staff write about an order."""

    async def test_it_is_written_and_taken_away(self, stocked: Shop, staff: Visitor) -> None:
        """It comes with the order, which shows it, or later; the journal has both. Customers get no event."""
        asked = stocked.store.events.newest
        shown = await staff.fill("orders/new?account=zoo", "orders/new", pet=3, comment="By\r\nphone")
        assert "Comment By phone Placed" in shown.text
        bookmark = await asked()
        shown = await staff.submit(shown, "orders/3/comment", comment="Friday")
        assert "Order changed comment: By phone → Friday" in shown.text
        await staff.submit(shown, "orders/3/comment", comment="")
        assert (await stocked.store.orders.get(3)).comment is None
        assert (await stocked.store.events.page(EventQuery(10, None, after=bookmark))).events == []

    async def test_a_colleagues_is_not_overwritten(self, stocked: Shop, staff: Visitor) -> None:
        """It stands beside what was typed, which a second try saves. Too long a text is refused."""
        form = await staff.get("orders/1")
        await stocked.store.orders.comment(1, "Friday", ACTOR)
        shown = await staff.submit(form, "orders/1/comment", comment="Monday")
        assert_refused(shown, 409, "Somebody has changed the comment of order 1 meanwhile.")
        assert "Comment Friday Placed" in shown.text
        saved = await staff.submit(shown, "orders/1/comment")
        assert "Comment Monday Placed" in saved.text
        refused = await staff.submit(saved, "orders/1/comment", comment="x" * 2_001)
        assert "Expected 1 to 2000 characters, got 2001." in refused.text


class TestPlace:
    """A new order for an account."""

    async def test_it_reserves_the_animal(self, stocked: Shop, staff: Visitor) -> None:
        """The form is on the animal's page; it takes the account's name."""
        found = (await staff.get("pets/3")).links["Order"]
        form = await staff.get(found.rpartition("console/")[2])
        assert "Kim available" in form.text
        shown = await staff.submit(form, "orders/new", account="zoo")
        assert shown.address == "/console/orders/3", shown.text
        assert "Order 3 is placed." in shown.text
        assert await pet_status(stocked, 3) == "pending"
        assert "a-staff console Order placed" in shown.text

    async def test_a_form_places_one_order(self, stocked: Shop, staff: Visitor) -> None:
        """Sent again it leads there; for another animal it asks, and then places that order too."""
        form = await staff.get("orders/new?account=zoo")
        for told in ("Order 3 is placed.", "Order 3 was placed already."):
            shown = await staff.submit(form, "orders/new", pet=3)
            assert shown.address == "/console/orders/3", shown.text
            assert told in shown.text
        shown = await staff.submit(form, "orders/new", pet=4)
        assert_refused(shown, 409, "send it once more")
        assert (await staff.submit(shown, "orders/new")).address == "/console/orders/4"

    async def test_with_the_customers_reference(self, stocked: Shop, staff: Visitor) -> None:
        """The order has the whole, its history too, lists the beginning; a fault stands beside the field."""
        reference = "PO-7 <b> " + "x" * 246
        shown = await staff.fill("orders/new?account=zoo", "orders/new", pet=3, reference=reference + "y")
        assert_refused(shown, 400, "Expected 1 to 255 characters, got 256.")
        assert shown.forms[-1].fields["reference"] == reference + "y"
        shown = await staff.submit(shown, "orders/new", reference=f" {reference} ")
        assert f"Reference {reference} Placed" in shown.text
        assert f"reference: {reference}" in shown.text
        shown = await staff.get("orders")
        assert f"zoo {reference[:39]}… Kim" in shown.text
        assert "Reference" not in (await staff.get("orders/1")).text

    async def test_a_suspended_account_may_order_if_staff_are_sure(
        self, stocked: Shop, staff: Visitor
    ) -> None:
        """The form comes back with a question and what was typed; ticked, it places the order."""
        await stocked.store.accounts.suspend("zoo", ACTOR)
        asked = await staff.fill("orders/new?account=zoo", "orders/new", pet=3)
        assert_refused(asked, 409, "Account zoo is suspended: its keys are refused. Place an order for it?")
        assert await pet_status(stocked, 3) == "available"
        shown = await staff.say_yes(asked, "orders/new")
        assert "Account zoo suspended" in shown.text
