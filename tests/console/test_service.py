"""The service's page: its numbers with their units, its troubles, and no secret."""

from __future__ import annotations

import os
import re
from pathlib import Path

from petstore.console.formats import size
from petstore.console.service import path, short
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, UsageChanges
from tests.support.cases import every_case
from tests.support.console import Visitor
from tests.support.service import Shop

HTMX = [("hx-request", "true")]


async def test_a_viewer_sees_the_numbers_with_unit_and_period(shop: Shop, viewer: Visitor) -> None:
    """Requests of the interface a second over the last seconds, and their latency in milliseconds."""
    await viewer.get("service")  # from here on the numbers are known
    for _ in range(14):
        await shop.call("GET", "/v1/pets", [("authorization", f"Bearer {shop.key}")])
    await shop.call("GET", "/v1/nothing")
    shop.clock.advance(5)
    shown = await viewer.get("service")
    assert shown.status == 200
    assert "Requests 3.0 a second average of the last 5 seconds" in shown.text
    assert re.search(r"Latency [0-9.]+ ms 95 % of the answers; half in [0-9.]+ ms", shown.text)
    assert "Each chart shows the last ten minutes" in shown.text


def back_up(path: Path, at: float) -> None:
    """The mark of a backup that was made at a Unix time."""
    mark = Path(f"{path}.last-backup")
    mark.touch()
    os.utime(mark, (at, at))


async def test_the_age_of_the_last_backup(shop: Shop, viewer: Visitor) -> None:
    """The page has the last backup's moment and its age; after two days it is a trouble."""
    for hours, is_trouble in ((47, False), (49, True)):
        back_up(shop.path, shop.clock.now_ms() / 1_000 - hours * 3_600)
        shop.clock.advance(60)  # so that it is read again
        text = (await viewer.get("service")).text
        assert f"{hours // 24} day{'s' if hours > 47 else ''} ago" in text
        assert ("The last backup is older than two days." in text) == is_trouble


async def test_the_facts_of_the_program_and_its_database(viewer: Visitor) -> None:
    """Kind and name, schema, size and room, workers, how requests are counted, what is wrong."""
    text = (await viewer.get("service")).text
    assert "There is no backup yet. Run “petstore db backup FILE”" in text
    for said in ("Kind SQLite", "Schema version", "Free on its disk", "Last backup none", "Version 1."):
        assert said in text
    assert "in memory, by this service alone" in text
    assert "Workers 1" in text


async def test_the_page_asks_for_the_numbers_alone(viewer: Visitor) -> None:
    """Every few seconds, and the answer asks again."""
    shown = await viewer.get("service", headers=HTMX)
    assert shown.body.lstrip().startswith(b"<div hx-get")
    assert b"<h1>" not in shown.body
    assert "Requests 0" in shown.text


async def test_callers_of_the_deprecated_operation_and_the_days_left(shop: Shop, viewer: Visitor) -> None:
    """Each account with its calls and a link, the date, and the days until then."""
    assert "Nobody called it in the last 30 days." in (await viewer.get("service")).text
    today = shop.clock.now_ms() // DAY_MS
    usage = UsageChanges({(1, today): DailyUsage(today, 5, 0, 1_234)})
    await shop.store.counters.save(LimiterState(), usage)
    shown = await viewer.get("service")
    account = await shop.store.accounts.find("1")
    assert f"{account.name} 1,234 2027-01-15" in shown.text
    assert shown.links[account.name] == "../console/accounts/1"
    assert "ends on 2030-12-05 00:00:00 UTC, in 1,420 days" in shown.text


@every_case(
    ("values", "expected"),
    [
        ([], ""),
        ([None, None], ""),
        ([0.0, 0.0], "M0 31.0h0L1 31.0"),
        ([0.0, 5.0, 10.0], "M0 31.0h0L1 16.0L2 1.0"),
        ([None, 2.0, None, 2.0, 1.0], "M1 1.0h0M3 1.0h0L4 16.0"),
    ],
)
def test_a_line_from_nothing_to_the_highest_value(values: list[float | None], expected: str) -> None:
    """0 is at the bottom, also where all is 0; what is unknown is a gap and not a 0."""
    assert path(values) == expected


@every_case(
    ("value", "expected"),
    [(0, "0"), (0.04, "0.04"), (0.123, "0.1"), (3.21, "3.2"), (12.7, "13"), (1_204.4, "1,204")],
)
def test_numbers_have_only_digits_that_mean_something(value: float, expected: str) -> None:
    """A rate is an average, not an exact number."""
    assert short(value) == expected


@every_case(
    ("length", "expected"),
    [
        (0, "0 bytes"),
        (1_023, "1,023 bytes"),
        (1_536, "1.5 KiB"),
        (150 * 1_024**2, "150 MiB"),
        (1_024**5, "1,024 TiB"),
    ],
)
def test_sizes_are_in_their_greatest_unit_up_to_tebibytes(length: int, expected: str) -> None:
    """Staff read no long numbers of bytes."""
    assert size(length) == expected
