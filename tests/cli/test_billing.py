"""`petstore usage` with the days of a bill."""

from __future__ import annotations

import csv
import io

import pytest

from petstore.cli import billing
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, UsageChanges
from tests.cli.conftest import Cli
from tests.support.cases import every_case

DECEMBER = ("--month", "2026-12")


@pytest.fixture
def year(empty: Cli) -> Cli:
    """It is 15 January 2027: two accounts since 30 November have requests; one has changed its plan."""
    empty.clock.advance(-46 * 86_400)
    empty.ok("accounts", "add", "shop", "--plan", "free")
    empty.ok("accounts", "add", "--plan", "pro", "--", "-1.5")
    empty.clock.advance(11 * 86_400)
    empty.ok("accounts", "set-plan", "shop", "--plan", "business")
    empty.clock.advance(35 * 86_400)
    today = empty.clock.now_ms() // DAY_MS
    days = {(1, day): DailyUsage(day, day - today + 100, 2, 1) for day in range(today - 50, today + 1)}
    empty.with_store(lambda store: store.counters.save(LimiterState(), UsageChanges(days)))
    return empty


class TestForms:
    """CSV, JSON and a table have the same rows."""

    def test_csv_and_json_are_the_same(self, year: Cli) -> None:
        """A row for each account and day, with the plan that applied; a name like a formula is made safe."""
        rows = year.json("usage", "--all", *DECEMBER)
        assert len(rows) == 62
        assert rows[10] == {
            "accountId": 1,
            "account": "shop",
            "date": "2026-12-11",
            "plan": "business",
            "perMinute": 1_000,
            "perDay": 100_000,
            "requests": 65,
            "refused": 2,
            "deprecated": 1,
        }
        assert [row["plan"] for row in rows] == ["free"] * 10 + ["business"] * 21 + ["pro"] * 31
        text = year.ok("usage", "--all", *DECEMBER, "--csv")
        read = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        assert {row["account"] for row in read} == {"shop", "'-1.5"}
        for row in read:
            row["account"] = row["account"].removeprefix("'")
        assert read == [{name: str(value) for name, value in row.items()} for row in rows]

    def test_each_plan_of_an_account_has_a_row_of_sums(self, year: Cli) -> None:
        """Each plan that an account had has one row with its sums, as an invoice needs it."""
        rows = year.json("usage", "shop", *DECEMBER, "--sum")
        days = year.json("usage", "shop", *DECEMBER)
        assert [(row["from"], row["to"], row["days"], row["plan"]) for row in rows] == [
            ("2026-12-01", "2026-12-10", 10, "free"),
            ("2026-12-11", "2026-12-31", 21, "business"),
        ]
        for member in ("requests", "refused", "deprecated"):
            assert sum(row[member] for row in rows) == sum(row[member] for row in days)

    def test_the_table_ends_with_the_sum_of_all(self, year: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """The table for people ends with the sum of all; standard error counts the rows it leaves out."""
        result = year.run("usage", "--all", *DECEMBER, "--sum")
        head, first, *_, end = result.stdout.splitlines()
        assert head.split()[:6] == ["ID", "ACCOUNT", "FROM", "TO", "DAYS", "PLAN"]
        assert " ".join(first.split()) == "1 shop 2026-12-01 2026-12-10 10 free 60 1000 595 20 10"
        assert end == "Together: 2,170 requests, 62 refused, 31 deprecated."
        assert result.stderr == ""
        monkeypatch.setattr(billing, "_TABLE_MAX", 2)
        result = year.run("usage", "--all", *DECEMBER, "--sum")
        assert result.stdout.splitlines()[-1] == end
        assert result.stderr == "Rows not shown: 1. --csv or --json prints all.\n"

    def test_before_the_first_account_there_is_an_empty_list(self, year: Cli) -> None:
        """An empty array, a heading, a sentence."""
        october = ("usage", "--all", "--month", "2026-10")
        assert year.json(*october) == []
        assert year.ok(*october, "--csv").count("\n") == 1
        assert year.run(*october).stderr == "No account was open on these days.\n"


@every_case(
    ("days", "warning"),
    [
        (("--month", "2026-12"), ""),
        (("--from", "2027-01-01", "--to", "2027-01-14"), ""),
        (
            ("--from", "2027-01-01", "--to", "2027-01-15"),
            "Not final: 2027-01-15 is not over (UTC), so its counts may grow.\n",
        ),
        (
            ("--month", "2027-01"),
            "Not final: 2027-01-15 is not over (UTC), so its counts may grow."
            " The days until 2027-01-31 are missing.\n",
        ),
    ],
)
def test_a_bill_of_days_that_are_not_over(year: Cli, days: tuple[str, ...], warning: str) -> None:
    """It says so on standard error, so that the rows stay rows, and goes until today."""
    result = year.run("usage", "shop", *days, "--csv")
    assert (result.exit_code, result.stderr) == (0, warning)
    assert max(line.split(",")[2] for line in result.stdout.splitlines()[1:]) <= "2027-01-15"


class TestRefusals:
    """One line that says what to give instead."""

    @every_case(
        ("arguments", "told"),
        [
            ("--all", "--all needs the days of a bill"),
            ("", "Give an ACCOUNT for its report, or the days of a bill"),
            ("shop --csv", "--csv needs the days of a bill: --month, or --from and --to."),
            ("shop --sum", "--sum needs the days of a bill: --month, or --from and --to."),
            ("--month 2026-12", "Give an ACCOUNT for its bill, or --all."),
            ("shop --all --month 2026-12", "Give an ACCOUNT for its bill, or --all."),
            ("--all --month 2026-12 --from 2026-12-01", "Give either --month, or --from and --to."),
            ("--all --from 2026-12-01", "--from and --to go together"),
            ("--all --to 2026-12-01", "--from and --to go together"),
            ("--all --from 2026-12-02 --to 2026-12-01", "--from is after --to."),
            ("--all --month 2026-12 --days 3", "A bill takes no --days"),
            ("--all --month 2026-12 --csv --json", "either --csv or --json"),
            ("--all --month 2027-02", "2027-02-01 is in the future: today is 2027-01-15 (UTC)."),
            ("--all --month 2026-13", "'2026-13' is not a month; write it as 2026-10."),
            ("--all --month 2026-12-01", "is not a month"),
            ("--all --month 1926-12", "is not a month"),
            ("--all --from 2026-02-29 --to 2026-03-01", "'2026-02-29' is not a day; write it as 2026-10-01."),
            ("--all --from 20261201 --to 2026-12-02", "is not a day"),
            ("shop --days 0", "is not a whole number from 1 to 3660"),
            *(
                (f"--deprecated {more}", "goes with --json alone")
                for more in ("shop", "--days=3", "--all", "--csv")
            ),
        ],
    )
    def test_wrong_days_and_conflicting_options_are_refused(
        self, shop: Cli, arguments: str, told: str
    ) -> None:
        """The line says what to give instead."""
        assert told in shop.refused(2, "usage", *arguments.split())
