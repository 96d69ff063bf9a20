"""What the console prints: a cage's label with a barcode, a delivery note, an account's bill of a month."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from petstore.console.barcodes import barcode
from petstore.core.customers import NOBODY, Customer
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.moments import iso_day
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet
from tests.console.conftest import assert_refused
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

_BAR = re.compile(r"M(\d+) 0h(\d+)v1h-\d+z")
_WEIGHTS = (1, 2, 4, 7, 0)
_DIGITS, _START_STOP = 1, 0  # which of a character's four spaces is wide


def scanned(svg: str) -> str:
    """Reads Code 39 by its weights, as the standard explains it: the wide ones of five bars add up to the
    digit, 11 is 0, and one of the four spaces between them is wide."""
    bars = [(int(start), int(width)) for start, width in _BAR.findall(svg)]
    spaces = [after[0] - sum(before) for before, after in pairwise(bars)]
    read = ""
    for first in range(0, len(bars), 5):
        value = sum(
            weight for weight, (_, width) in zip(_WEIGHTS, bars[first : first + 5], strict=True) if width == 3
        )
        (wide,) = [place for place, space in enumerate(spaces[first : first + 4]) if space == 3]
        read += {_DIGITS: str(value % 11), _START_STOP: "*"}[wide]
    assert {width for _, width in bars} | set(spaces) == {1, 3}
    return read


@pytest.mark.parametrize("number", [1, 340, 1_234_567_890, 2**63 - 1])
def test_a_barcode_reads_as_the_number(number: int) -> None:
    """Between its start and stop, with ten narrow widths of nothing at both ends."""
    svg = barcode(number)
    assert scanned(svg) == f"*{number}*"
    bars, (width,) = _BAR.findall(svg), re.findall(r'viewBox="0 0 (\d+) 1"', svg)
    assert int(bars[0][0]) == 10
    assert int(width) - int(bars[-1][0]) - int(bars[-1][1]) == 10


async def test_a_cages_label(shop: Shop, viewer: Visitor) -> None:
    """The name, the category and the number, also as bars; for an animal that is there."""
    await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)
    shown = await viewer.get((await viewer.get("pets/1")).links["Print label"].partition("console/")[2])
    assert "Rex Dogs 1" in shown.text
    assert scanned(shown.body.decode()) == "*1*"
    assert (await viewer.get("pets/2/label")).status == 404


async def test_a_delivery_note(shop: Shop, viewer: Visitor) -> None:
    """Who gets which animal, and room for two signatures; also when the animal is removed. Staff see the name
    and the address of the customer. A cancelled order has no link to one, and says so on it."""
    for name in ("Rex", "Mia"):
        await shop.store.pets.add(NewPet(name, 1), ACTOR)
    await shop.store.orders.place(1, NewOrder(1, reference="PO-7"), ACTOR)
    for status in (OrderStatus.APPROVED, OrderStatus.DELIVERED):
        await shop.store.orders.change(1, ACTOR, status=status)
    note = (await viewer.get("orders/1")).links["Print delivery note"].partition("console/")[2]
    shown = await viewer.get(note)
    for said in ("Customer tests", "Reference PO-7", "Number Animal Category 1 Rex", "Received by"):
        assert said in shown.text
    known = Customer(name="Ann Onym", address="1 Yard", remark="late")
    await shop.store.customers.set("tests", known, ACTOR, expected=NOBODY)
    assert "Ann" not in (await viewer.get(note)).text
    paper = (await (await Visitor(shop).sign_in_as("staff")).get(note)).text
    assert ("Customer tests Ann Onym 1 Yard Order 1," in paper, "late" in paper) == (True, False)
    await shop.store.pets.remove(1, ACTOR)
    assert "1 removed" in (await viewer.get(note)).text
    await shop.store.orders.place(1, NewOrder(2), ACTOR)
    await shop.store.orders.change(2, ACTOR, status=OrderStatus.CANCELLED)
    assert "Print delivery note" not in (await viewer.get("orders/2")).links
    assert "This order is cancelled." in (await viewer.get("orders/2/note")).text


async def test_an_accounts_bill_of_a_month(shop: Shop) -> None:
    """Each day with its plan, and the sums, of this account alone; without a month, of the last one."""
    await shop.store.accounts.add("zoo", FREE, ACTOR)
    first = shop.clock.now_ms() // DAY_MS
    shop.clock.advance(40 * 86_400)
    await shop.store.accounts.set_plan("zoo", PRO, ACTOR)
    used = {
        (account, day): DailyUsage(day, 1_000, account, 1)
        for account in (1, 2)
        for day in range(first, first + 3)
    }
    await shop.store.counters.save(LimiterState(), UsageChanges(used))
    operator = await Visitor(shop).sign_in_as("operator")
    link = (await operator.get("accounts/2")).links["Bill of the last month"].partition("console/")[2]
    shown = await operator.get(f"{link}?month={iso_day(first)[:7]}")
    assert f"{iso_day(first)} free 1,000 2 1" in shown.text
    assert "Total 3,000 6 3" in shown.text
    assert "Not final" not in shown.text
    assert f"Days (UTC) {iso_day(first)[:7]}-01" in (await operator.get(link)).text
    wrong = await operator.get(f"{link}?month=October")
    assert_refused(wrong, 400, "Write a month such as 2026-10.")
