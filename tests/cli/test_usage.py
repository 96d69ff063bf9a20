"""`petstore usage`."""

from __future__ import annotations

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, UsageChanges
from tests.cli.conftest import Cli
from tests.cli.test_keys import ban
from tests.support.windows import used_of


def serve(cli: Cli, *, minute: int, day: int, days: dict[int, DailyUsage] | None = None) -> None:
    """What a server writes after it has answered so many requests of account 1."""
    now_ms = cli.clock.now_ms()
    windows = used_of((now_ms, minute), (now_ms // DAY_MS, day))
    usage = UsageChanges({(1, number): counts for number, counts in (days or {}).items()})
    cli.with_store(lambda store: store.counters.save(LimiterState({1: windows}), usage))


def left(cli: Cli) -> list[int]:
    """What account 1 may still ask for, in each window."""
    return [window["remaining"] for window in cli.json("usage", "1")["windows"]]


class TestReport:
    def test_windows_as_of_now(self, shop: Cli) -> None:
        """What stands in the database is rolled on to this moment: a minute that is over is not shown."""
        serve(shop, minute=100, day=4_000)
        assert left(shop) == [200, 6_000]
        shop.clock.advance(60)
        assert left(shop) == [300, 6_000]
        shop.clock.advance(86_400)
        assert left(shop) == [300, 10_000]

    def test_lowered_plan_leaves_nothing_never_less(self, shop: Cli) -> None:
        """What is used stays used after a change of plan."""
        serve(shop, minute=100, day=4_000)
        shop.ok("accounts", "set-plan", "shop", "--plan", "free")
        assert left(shop) == [0, 0]

    def test_bans_of_its_keys(self, shop: Cli) -> None:
        """The output says which key is banned and until when; others are as they are."""
        shop.issue("shop")
        shop.issue("shop")
        ban(shop, 2)
        report = shop.json("usage", "shop")
        first, second = report["keys"]
        assert (first["state"], first["bannedUntil"]) == ("active", None)
        assert (second["id"], second["bannedUntil"]) == (2, "2027-01-15T08:01:30.000Z")
        assert second["display"] == shop.json("keys", "list", "shop")[1]["display"]
        (cause,) = report["refusedNow"]
        assert (cause["then"], cause["until"]) == (
            "each of its requests is answered 429",
            second["bannedUntil"],
        )
        said = f"{cause['what']} since 2027-01-15 08:00:30Z: {cause['then']} until 2027-01-15 08:01:30Z."
        assert said in shop.ok("usage", "shop")
        shop.clock.advance(60)
        report = shop.json("usage", "shop")
        assert (report["keys"][1]["bannedUntil"], report["refusedNow"]) == (None, [])

    def test_last_thirty_days(self, shop: Cli) -> None:
        """Newest first, with the calls of the deprecated operation; older days are left out."""
        today = shop.clock.now_ms() // DAY_MS
        days = {today - age: DailyUsage(today - age, 10 + age, age, 1) for age in (0, 1, 29, 30)}
        serve(shop, minute=0, day=0, days=days)
        assert shop.json("usage", "shop")["days"] == [
            {"day": "2027-01-15", "requests": 10, "refused": 0, "deprecated": 1},
            {"day": "2027-01-14", "requests": 11, "refused": 1, "deprecated": 1},
            {"day": "2026-12-17", "requests": 39, "refused": 29, "deprecated": 1},
        ]


class TestDeprecated:
    """Who has to move before the removal."""

    def test_callers_with_their_calls_and_last_day(self, shop: Cli) -> None:
        """A table, and the same as JSON; nobody on standard error."""
        assert shop.run("usage", "--deprecated").stderr == "Nobody called it.\n"
        today = shop.clock.now_ms() // DAY_MS
        serve(shop, minute=0, day=0, days={today - 1: DailyUsage(today - 1, 9, 0, 7)})
        assert shop.json("usage", "--deprecated") == [
            {"accountId": 1, "account": "shop", "calls": 7, "lastDay": "2027-01-14"}
        ]
        assert shop.ok("usage", "--deprecated").splitlines()[1].split() == ["1", "shop", "7", "2027-01-14"]

    def test_it_says_when_there_are_more(self, shop: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """`usage --deprecated` says on standard error when there are more, as for other lists."""
        monkeypatch.setattr("petstore.transactions.usage._DEPRECATED_READ", 1)
        today = shop.clock.now_ms() // DAY_MS
        serve(shop, minute=0, day=0, days={today: DailyUsage(today, 9, 0, 7)})
        assert "There are more" in shop.run("usage", "--deprecated").stderr
