"""What staff and operators do in a day: by the shortest way from the overview, and its result is checked."""

from __future__ import annotations

import csv
import json
import re
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, expect

from tools.demo.customers import SCRAPER, STORE
from verification.benchmarks.console.hand import Hand

PERSON = "vera"
_SHOP = ("paws-and-claws", "shop")
_CATS, _FISH = 2, 6
_FIVE = ("Ada", "Bo", "Cy", "Dot", "Eve")


class Day:
    """The console of a store that the demo made, with an operator before it. `keys` are the demo's."""

    def __init__(self, hand: Hand, base: str, keys: dict[tuple[str, str], str]) -> None:
        self.hand = hand
        self.page = hand.page
        self.keys = keys
        self._base = base

    def begin(self) -> None:
        """Begin at the overview, with nothing counted."""
        self.page.goto(f"{self._base}/console")
        self.page.locator(".tile").first.wait_for()
        self.hand.begin()

    def menu(self, name: str) -> None:
        self.hand.go(self.page.get_by_label("Pages", exact=True).get_by_role("link", name=name, exact=True))

    def control(self, name: str) -> Locator:
        """The link or button of this name."""
        link = self.page.get_by_role("link", name=name, exact=True)
        return link.or_(self.page.get_by_role("button", name=name, exact=True))

    def row(self, text: str) -> Locator:
        """The only row of a table with this text."""
        return self.page.get_by_role("row").filter(has_text=text)

    def seek(self, text: str) -> None:
        """Seek with the field at the top of each page."""
        self.hand.press("/")
        self.hand.type(text)
        self.hand.enter()

    def pick(self, field: str, part: str, whole: str) -> None:
        """Pick an animal by a part of its name."""
        self.hand.write(
            self.page.get_by_label(field, exact=True).and_(self.page.get_by_role("combobox")), part
        )
        expect(self.page.get_by_role("option", name=re.compile(re.escape(whole))).first).to_be_visible()
        self.hand.press("Enter")

    def saved(self, link: Locator) -> str:
        """The text of the file that a link sends."""
        with self.page.expect_download() as sent:
            self.hand.click(link)
        return Path(sent.value.path()).read_text(encoding="utf-8")

    def ask(self, target: str, key: str = "", method: str = "GET", document: object = None) -> Any:
        """What the interface answers, to see what is true. Raises HTTPError for a refusal."""
        headers = {"Authorization": f"Bearer {key or self.keys[STORE, 'counter']}"}
        body = None if document is None else json.dumps(document).encode()
        if body:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(f"{self._base}/v1{target}", body, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def add(self, name: str) -> int:
        """An available cat."""
        return int(self.ask("/pets", method="POST", document={"name": name, "categoryId": _CATS})["id"])

    def pets(self, **asked: object) -> list[Any]:
        """The first hundred."""
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        return list(self.ask(f"/pets?limit=100&{query}"))


def find(day: Day) -> None:
    number = day.add("Lady Captain")
    day.begin()
    day.seek("captain")
    expect(day.page.locator(f"a[href$='pets/{number}']")).to_have_text("Lady Captain")


def _mark_sold(day: Day, name: str) -> int:
    number = day.add(name)
    day.begin()
    day.menu("Animals")
    day.hand.write(day.page.get_by_label("Name or number"), name.lower())
    expect(day.page.locator("#rows tbody tr")).to_have_count(1)
    day.hand.go(day.row(name).get_by_role("button", name="Mark sold"))
    assert day.pets(id=number)[0]["status"] == "sold"
    return number


def mark_sold(day: Day) -> None:
    _mark_sold(day, "Sir Bonzo")


def undo(day: Day) -> None:
    number = _mark_sold(day, "Sir Dingo")
    day.hand.begin()
    day.hand.go(day.control("Undo"))
    assert day.pets(id=number)[0]["status"] == "available"


def add_five(day: Day) -> None:
    newest = day.add("Before")
    day.begin()
    day.menu("Animals")
    day.hand.go(day.control("Add an animal"))
    name = day.page.get_by_label("Name", exact=True)
    for each in _FIVE:
        day.hand.write(name, each)
        if each == _FIVE[0]:
            day.hand.press("Tab")
            day.pick("Category", "cat", "Cats")
        if each == _FIVE[-1]:
            day.hand.enter()
        else:
            day.hand.go(day.control("Add, then another one"))
    added = day.pets(after=newest, categoryId=_CATS)
    assert [pet["name"] for pet in added] == list(_FIVE)


def place_order(day: Day) -> None:
    pet = day.add("Miss Velvet")
    day.begin()
    day.menu("Orders")
    day.hand.go(day.control("Place an order"))
    day.pick("Account", "claws", "paws-and-claws")
    day.hand.press("Tab")
    day.pick("Animal", "velv", "Miss Velvet")
    day.hand.enter()
    assert day.ask("/store/orders?status=placed", day.keys[_SHOP])[-1]["petId"] == pet


def approve_four(day: Day) -> None:
    orders = [
        day.ask("/store/orders", day.keys[_SHOP], "POST", {"petId": day.add(f"Waits {number}")})["id"]
        for number in range(4)
    ]
    day.begin()
    day.hand.go(day.page.get_by_role("link", name=re.compile("to approve")))
    day.hand.click(day.page.get_by_label("Choose all rows of this page"))
    day.hand.go(day.control("Approve"))
    states = [day.ask(f"/store/orders?id={order}", day.keys[_SHOP])[0]["status"] for order in orders]
    assert states == ["approved"] * 4


def find_leaked_key(day: Day) -> None:
    day.begin()
    day.hand.press("/")
    day.hand.paste(day.keys["happy-tails", "web site"])
    day.hand.enter()
    expect(day.page.get_by_text("happy-tails").first).to_be_visible()
    expect(day.control("Revoke")).to_be_visible()


def why_refused(day: Day) -> None:
    day.begin()
    day.seek("scraper")
    day.hand.go(day.control(SCRAPER))
    expect(day.page.get_by_text(re.compile(r"is banned.* since .+ until"))).to_be_visible()


def export_category(day: Day) -> None:
    day.begin()
    day.menu("Categories")
    day.hand.go(day.control("Cats"))
    rows = list(csv.DictReader(day.saved(day.control("CSV")).splitlines()))
    assert {int(row["id"]) for row in rows} >= {pet["id"] for pet in day.pets(categoryId=_CATS)}
    assert len(rows) > 50  # more than a page
    assert all("Cats" in row.values() for row in rows)


def read_journal(day: Day) -> None:
    day.begin()
    day.menu("Journal")
    day.hand.write(day.page.get_by_label("Who"), PERSON)
    for tabs in (1, 2):  # each day has a button behind it
        for _ in range(tabs):
            day.hand.press("Tab")
        day.hand.type(f"{datetime.now(UTC):%m%d%Y}")
    day.hand.enter()
    asked = dict(parse_qsl(urlsplit(day.page.url).query))
    assert asked["since"] == asked["until"] == f"{datetime.now(UTC):%Y-%m-%d}"
    entries = day.page.locator("main tbody tr")
    expect(entries.filter(has_text=PERSON).first).to_be_visible()
    assert entries.filter(has_text=PERSON).count() == entries.count()


def lift_ban(day: Day) -> None:
    day.begin()
    day.menu("Bans")
    day.hand.go(day.row(SCRAPER).get_by_role("button", name="Unban"))
    expect(day.page.get_by_text("No key is banned")).to_be_visible()


def bill_of_the_month(day: Day) -> None:
    day.begin()
    day.menu("Billing")
    month = day.page.get_by_label("Month").input_value()
    day.hand.go(day.control("Show"))
    bill = list(csv.DictReader(day.saved(day.control("Download CSV")).splitlines()))
    assert bill
    assert all(row["date"].startswith(month) for row in bill)


def rename_category(day: Day) -> None:
    day.begin()
    day.menu("Categories")
    day.hand.go(day.row("Fish").get_by_role("link", name="Rename"))
    day.hand.write(day.page.get_by_label("Name", exact=True), "Fishes")
    day.hand.enter()
    assert {"id": _FISH, "name": "Fishes"} in day.ask("/categories")


def add_customer(day: Day) -> None:
    day.begin()
    day.menu("Accounts")
    day.hand.go(day.control("Add an account"))
    day.hand.write(day.page.get_by_label("Name", exact=True), "bunny-world")
    day.hand.enter()
    day.hand.go(day.control("Issue a key"))
    day.hand.write(day.page.get_by_label("Label"), "web site")
    day.hand.enter()
    key = day.page.locator("#key-text").inner_text()
    assert day.ask("/usage", key)["account"] == "bunny-world"


def change_plan(day: Day) -> None:
    day.begin()
    day.seek("zooland")
    day.hand.go(day.control("zooland"))
    day.hand.go(day.control("Change plan"))
    day.hand.choose(day.page.get_by_label("Plan", exact=True), "enterprise")
    day.hand.write(day.page.get_by_label("Requests a minute"), "1,000")
    day.hand.press("Tab")
    day.hand.write(day.page.get_by_label("Requests a day"), "50,000")
    day.hand.enter()
    usage = day.ask("/usage", day.keys["zooland", "branches"])
    assert (usage["perMinute"], usage["perDay"]) == (1_000, 50_000)


class Task(NamedTuple):
    """`before` is what it took before the console was made for it: clicks, keys, loads; None where it was not
    possible. `aim` is the most clicks that it may take."""

    name: str
    work: Callable[[Day], None]
    before: tuple[int, int, int] | None = None
    aim: int | None = None


TASKS = (
    Task("find an animal by the second word of its name", find, None, 1),
    Task("mark an animal sold", mark_sold, (6, 8, 3), 3),
    Task("undo that", undo, None, 1),
    Task("add five animals", add_five, (11, 34, 6), 6),
    Task("place an order by phone", place_order, (7, 20, 4), 4),
    Task("approve four orders that wait", approve_four, (17, 0, 17), 3),
    Task("find a leaked key, to revoke it", find_leaked_key, None, 2),
    Task("see why a customer's requests are refused", why_refused, (2, 0, 2), 2),
    Task("export a category", export_category, (3, 4, 1), 3),
    Task("read the journal of a person and a day", read_journal, (4, 28, 1), 4),
    Task("lift a ban", lift_ban, (2, 0, 1), 2),
    Task("download the bill of the last month", bill_of_the_month, (3, 0, 2), 3),
    Task("rename a category", rename_category, (3, 8, 2), 3),
    Task("add a customer with a key", add_customer, (9, 31, 5), 5),
    Task('change a plan to "1,000" a minute', change_plan, (5, 0, 2), 5),
)
