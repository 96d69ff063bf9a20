"""Times at the console: shown and typed in the reader's zone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from petstore.console.formats import ago
from petstore.console.times import read_time
from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS
from petstore.core.errors import Invalid
from petstore.core.limits.plans import FREE
from petstore.core.moments import iso_moment
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet
from tests.support.cases import every_case
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop in Berlin with an approved order; it is 08:00 UTC, on 2027-01-15."""
    async with open_shop(tmp_path, console="on", time_zone="Europe/Berlin") as opened:
        await opened.store.accounts.add("zoo", FREE, ACTOR)
        await opened.store.pets.add(NewPet("Rex", 1), ACTOR)
        await opened.store.orders.place(2, NewOrder(1), ACTOR)
        await opened.store.orders.change(1, ACTOR, status=OrderStatus.APPROVED)
        yield opened


async def test_times_are_the_shops_until_a_person_chooses(shop: Shop, staff: Visitor) -> None:
    """Shown with UTC in the title; typed, filtered and named in the same zone. The choice is the person's,
    and can be taken back."""
    shown = await staff.get("orders/1")
    assert "Placed 2027-01-15 09:00:30 CET" in shown.text
    assert b'datetime="2027-01-15T08:00:30.000Z" title="2027-01-15 08:00:30 UTC"' in shown.body
    assert "Ship date (Berlin)" in shown.text
    refused = await staff.fill("me", "me/time-zone", time_zone="Tokyo")
    assert (refused.status, refused.form("time-zone").fields["time_zone"]) == (400, "Tokyo")
    assert "There is no time zone 'Tokyo'" in refused.text
    assert "Saved." in (await staff.submit(refused, "me/time-zone", time_zone="Asia/Tokyo")).text
    shown = await staff.submit(await staff.get("orders/1"), "deliver", ship_date="2027-01-15T16:30")
    assert "Ship date 2027-01-15 16:30:00 JST" in shown.text
    assert iso_moment((await shop.store.orders.get(1)).ship_date_ms or 0) == "2027-01-15T07:30:00.000Z"
    assert "When (Tokyo)" in shown.text
    await staff.fill("me", "me/time-zone", time_zone="")
    assert "Ship date 2027-01-15 08:30:00 CET" in (await staff.get("orders/1")).text


async def test_days_of_the_journal_are_the_readers(shop: Shop, staff: Visitor) -> None:
    """What happened at 08:00 UTC happened the evening before in Honolulu."""
    for zone, day in (("", "2027-01-15"), ("Pacific/Honolulu", "2027-01-14")):
        await staff.fill("me", "me/time-zone", time_zone=zone)
        for asked in (f"since={day}", f"until={day}"):
            assert "Order placed" in (await staff.get(f"journal?{asked}")).text
        following, before = f"{day[:-1]}{int(day[-1]) + 1}", f"{day[:-1]}{int(day[-1]) - 1}"
        for asked in (f"about=order:1&since={following}", f"about=order:1&until={before}"):
            assert "No entries match." in (await staff.get(f"journal?{asked}")).text


async def test_a_key_ends_with_a_day_of_the_reader(shop: Shop, operator: Visitor) -> None:
    """The day ends at midnight in Berlin."""
    shown = await operator.fill("accounts/2/keys/new", "keys/new", until="2027-01-15")
    assert "Expires2027-01-16 00:00:00 CET" in shown.text


async def test_the_days_of_limits_stay_utc(shop: Shop, operator: Visitor) -> None:
    """Use, bills and limits count UTC days, whatever the zone, and say so."""
    for page, said in (
        ("accounts/2", "90 days (UTC)"), ("accounts", "Used today (UTC)"), ("billing", "UTC day"),
        ("", "Requests today (UTC)"),
    ):  # fmt: skip
        text = (await operator.get(page)).text
        assert said in text or "being counted" in text


@every_case(
    ("typed", "zone", "expected"),
    [
        ("2001-09-09T01:46", UTC, 999_999_960_000),
        ("2001-09-09T01:46:40", UTC, 1_000_000_000_000),
        ("2001-09-09T01:46:40.5", UTC, 1_000_000_000_500),
        ("2001-09-09T03:46:40", BERLIN, 1_000_000_000_000),
        ("2001-09-09", UTC, None),
        ("2001-09-09T25:00", UTC, None),
        ("2001-09-09T01:46Z", UTC, None),
        ("0026-11-22T07:15", UTC, None),  # somebody typed 26 for the year
        ("9999-12-31T23:59", ZoneInfo("America/New_York"), None),
        ("2026-03-29T02:30", BERLIN, None),
    ],
)
def test_times_as_browsers_send_them(typed: str, zone: ZoneInfo, expected: int | None) -> None:
    """A local time without an offset."""
    if expected is None:
        with pytest.raises(Invalid):
            read_time("at", typed, zone)
    else:
        assert read_time("at", typed, zone)[0] == expected


async def test_clocks_that_are_put_forward_and_back(shop: Shop, staff: Visitor) -> None:
    """A time that does not exist is refused with the reason; of one that comes twice the first is taken, and
    the page says so."""
    shop.clock.advance(300 * 86_400)
    shown = await staff.sign_in_as("staff", "ben")
    page = await shown.get("orders/1")
    refused = await shown.submit(page, "deliver", ship_date="2027-03-28T02:30")
    assert "There is no 02:30 on 2027-03-28 in Berlin: clocks are put forward over it." in refused.text
    told = await shown.submit(refused, "deliver", ship_date="2027-10-31T02:30")
    assert "02:30 comes twice that day; this is the first: 2027-10-31 02:30:00 CEST." in told.text


@pytest.mark.parametrize(
    ("away_ms", "expected"),
    [
        (0, "now"),
        (-30_000, "30 seconds ago"),
        (-MINUTE_MS, "1 minute ago"),
        (2 * HOUR_MS + 1, "in 2 hours"),
        (-3 * DAY_MS, "3 days ago"),
        (-31 * DAY_MS, "2026-12-15"),
    ],
)
def test_moments_of_lists_are_relative(away_ms: int, expected: str) -> None:
    """A moment is rounded down, and shown as its day beyond 30 days; its title has it in both zones."""
    now_ms = 1_799_967_600_000 + 2 * HOUR_MS
    shown = str(ago({"zone": BERLIN, "now_ms": now_ms}, now_ms + away_ms))
    assert f" data-ago>{expected}</time>" in shown
    assert " CET, 202" in shown
    assert ' UTC"' in shown
