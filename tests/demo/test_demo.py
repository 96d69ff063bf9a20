"""`make demo`, made small: everything that it promises is there, seen through requests and commands."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from petstore.core.clock import SystemClock
from petstore.core.durations import DAY_MS
from petstore.core.keys import Access
from petstore.core.limits.plans import PLAN_NAMES
from petstore.core.orders import OrderStatus
from petstore.core.people import Role
from petstore.core.pets import PetStatus
from tests.support.postgres import fresh_database
from tools.demo.__main__ import main
from tools.demo.animals import SPECIES
from tools.demo.customers import CUSTOMERS, SCRAPER, STORE
from tools.demo.making import make
from tools.demo.shop import Shop, SteeredClock, open_shop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

_DAYS, _SEED = 7, 7
_PORT = "9123"


class Made:
    """A demo, and the store of it at the moment of its end."""

    def __init__(self, url: str, days: int = _DAYS) -> None:
        self._environment = {"PETSTORE_DATABASE_URL": url, "PETSTORE_PORT": _PORT}
        self.now_ms = SystemClock().now_ms()
        self.story, self.text = asyncio.run(make(self._environment, _SEED, days, self.now_ms, lambda: None))

    def command(self, *arguments: str) -> Any:
        """The JSON that a command shows."""

        async def run(shop: Shop) -> str:
            return await shop.run(*arguments, "--json")

        return json.loads(self._opened(run))

    def ask(self, key: tuple[str, str], target: str, expect: int = 200) -> Any:
        """The body of an answer."""
        return self._opened(lambda shop: shop.ask(self.story.keys[key], "GET", target, expect=(expect,)))

    def _opened(self, work: Any) -> Any:
        async def run() -> Any:
            async with open_shop(self._environment, SteeredClock(self.now_ms)) as shop:
                return await work(shop)

        return asyncio.run(run())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(f"sqlite:///{tmp_path_factory.mktemp('demo')}/petstore.db")


def test_animals_of_every_state_and_category(made: Made) -> None:
    """Some hundred, with names of their species, and every category has its name."""
    pets = made.command("pets", "list", "--limit", "10000")
    assert len(pets) > 150
    assert {pet["status"] for pet in pets} == set(PetStatus)
    names = {species.category_id: species.names for species in SPECIES}
    categories = made.ask((STORE, "counter"), "/v1/categories")
    assert categories == [{"id": each.category_id, "name": each.category} for each in SPECIES]
    assert all(pet["name"].endswith(names[pet["categoryId"]]) for pet in pets)


def test_accounts_on_every_plan_and_in_every_state(made: Made) -> None:
    """One of them is suspended, one closed, and one has changed its plan."""
    accounts = {account["name"]: account for account in made.command("accounts", "list")}
    assert {account["plan"] for account in accounts.values()} == set(PLAN_NAMES)
    assert {account["state"] for account in accounts.values()} == {"active", "suspended", "closed"}
    made.ask(("bargain-pets", "shop"), "/v1/pets", 403)
    made.ask(("fin-and-feather", "tills"), "/v1/pets", 401)
    entries = made.command("journal", "--about", "account:happy-tails", "--limit", "1000")
    [changed] = [entry for entry in entries if entry["type"] == "account.plan_changed"]
    assert (changed["before"]["plan"], changed["after"]["plan"]) == ("free", "pro")


def test_keys_of_every_level_work_and_are_printed(made: Made) -> None:
    """The demo's output ends with its keys of every access level, and with curl lines that use them."""
    for customer in CUSTOMERS:
        for key in customer.keys:
            assert made.story.keys[customer.name, key.label] in made.text
    levels = {made.ask((STORE, key.label), "/v1/usage")["key"]["access"] for key in CUSTOMERS[0].keys}
    assert levels == set(Access)
    assert "curl -i -H 'Authorization: Bearer pets_live_" in made.text


def test_every_address_is_that_of_the_server(made: Made) -> None:
    """Links to the console, one for each role, and the lines to paste."""
    assert set(re.findall(r"http://[^/]*/", made.text)) == {f"http://127.0.0.1:{_PORT}/"}
    assert re.findall(r"^  (\w+) +http\S+/console/link/", made.text, re.M) == [role.value for role in Role]


def test_several_accounts_have_orders_of_every_state(made: Made) -> None:
    """Each page of the demonstration has something to show."""
    orders = made.command("orders", "list", "--limit", "1000")
    assert {order["status"] for order in orders} == set(OrderStatus)
    assert len({order["account"] for order in orders}) > 2


def test_a_key_is_banned(made: Made) -> None:
    """The demo has the scraper's key banned by that key's own 429s; `petstore bans` lists this one ban."""
    assert made.ask((SCRAPER, "crawler"), "/v1/pets", 429)["code"] == "key_banned"
    [ban] = made.command("bans")
    assert ban["account"] == SCRAPER


def test_usage_of_every_day(made: Made) -> None:
    """Each day until yesterday has some, with refusals and calls of the deprecated operation."""
    days = made.ask(("kitty-blog", "blog"), "/v1/usage")["days"]
    assert all(day["requests"] > 0 for day in days[1 : _DAYS + 1])
    assert all(day["requests"] == 0 for day in days[_DAYS + 1 :])
    assert sum(day["refused"] for day in days) > 0
    days = made.ask(("riverside-rescue", "adoptions"), "/v1/usage")["days"]
    assert sum(day["deprecated"] for day in days) > 0


def test_the_same_seed_makes_the_same_store(tmp_path: Path) -> None:
    """Animals, orders and usage with the same ids, on PostgreSQL too."""
    with fresh_database() as url:
        both = [Made(each, days=2) for each in (f"sqlite:///{tmp_path}/petstore.db", url)]
        for words in (("pets", "list", "--limit", "10000"), ("orders", "list", "--limit", "1000")):
            shown = [[_undated(each) for each in one.command(*words)] for one in both]
            assert shown[0] == shown[1] != []
        usage = [one.ask(("zooland", "branches"), "/v1/usage")["days"] for one in both]
        assert usage[0] == usage[1]


def _undated(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.endswith(("At", "Date"))}


class TestPlace:
    """The directory of its own."""

    def run(self, folder: Path) -> Any:
        return CliRunner(env={"PETSTORE_PORT": _PORT}).invoke(
            main, ["--folder", str(folder), "--days", "2", "--no-serve"]
        )

    def test_it_makes_its_own_anew(self, tmp_path: Path) -> None:
        """What it made replaces what it had made, with its mark, so that it may do so again."""
        folder = tmp_path / "demo"
        folder.mkdir()
        mark = folder / "made-by-make-demo"
        for former in (mark, folder / "petstore.db", folder / "petstore-staging.db"):
            former.write_text("of the former demo")
        made = self.run(folder)
        assert made.exit_code == 0
        assert f"http://127.0.0.1:{_PORT}/v1/pets" in made.output
        assert "PETSTORE_STAGE=production .venv/bin/petstore bans" in made.output
        assert [path.name for path in folder.glob("*.db")] == ["petstore.db"]
        assert "made anew" in mark.read_text()

    def test_it_leaves_every_other_database(self, tmp_path: Path) -> None:
        """A directory with files that it did not make is refused, and stays as it is."""
        (tmp_path / "petstore.db").write_bytes(b"mine")
        result = self.run(tmp_path)
        assert result.exit_code == 1
        assert "has files that `make demo` did not make" in result.output
        assert (tmp_path / "petstore.db").read_bytes() == b"mine"

    def test_a_place_that_can_not_be_used(self, tmp_path: Path) -> None:
        """A file in the directory's place, or below it: one line says which, and the file stays."""
        (tmp_path / "file").write_bytes(b"mine")
        for folder in (tmp_path / "file", tmp_path / "file" / "demo"):
            result = self.run(folder)
            assert result.exit_code == 1
            assert f"Error: {folder}: Not a directory. Name another directory" in result.output
        assert (tmp_path / "file").read_bytes() == b"mine"

    def test_a_url_that_is_not_understood(self) -> None:
        """The setting's own message, not a traceback."""
        result = CliRunner().invoke(main, ["--database-url", "nonsense", "--no-serve"])
        assert result.exit_code == 1
        assert "Error: PETSTORE_DATABASE_URL is not understood" in result.output


def test_it_ends_in_the_present(made: Made) -> None:
    """No entry of the journal is later than the beginning of the making, none before the first day."""
    entries = made.command("journal", "--limit", "10000")
    moments = sorted(datetime.fromisoformat(entry["at"]).timestamp() * 1_000 for entry in entries)
    assert made.now_ms - _DAYS * DAY_MS - DAY_MS < moments[0] < moments[-1] <= made.now_ms
