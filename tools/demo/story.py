"""What happens in the demo's ten weeks: the same for the same seed, but for keys and dates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable
from random import Random

from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from tools.demo.animals import SPECIES, new_pet
from tools.demo.customers import CUSTOMERS, SCRAPER, Customer
from tools.demo.shop import Shop
from tools.demo.trade import Trade

DAYS = 70
_HOUR_MS = 60 * MINUTE_MS
_OPENING_STOCK = 160
_OPEN_MS, _HOURS_OPEN = 8 * _HOUR_MS, 11
_BURST = 66  # requests within a minute of a plan with 60
# Before each round, the ban of the round before. After the fourth it is an hour's, and the demo ends in it.
_BANS_MS = (0, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS)
_GRACE_MS = 3 * SECOND_MS
_FINALE_MS = sum(_BANS_MS) + len(_BANS_MS) * (_GRACE_MS + SECOND_MS)

Step = Callable[[], Awaitable[object]]


class Story:
    """`keys` has the secrets by customer and label. `days` is how many of the ten weeks there are."""

    def __init__(self, shop: Shop, seed: int, days: int = DAYS) -> None:
        self._shop = shop
        self._random = Random(seed)
        self.seed, self.days = seed, days
        self._first_ms = (shop.clock.now_ms() // DAY_MS) * DAY_MS
        self._gone: set[str] = set()
        self._key_ids: dict[tuple[str, str], int] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.trade = Trade(shop, self.keys, self._random)

    async def tell(self, now_ms: int, day_done: Callable[[], None]) -> None:
        """All of it; the clock ends at `now_ms`, at least a day and a half after the beginning."""
        await self._open()
        for day in range(self.days):
            await self._live(day)
            day_done()
        self._shop.clock.move_to(now_ms - _FINALE_MS)
        await self._ban()
        self._shop.clock.move_to(now_ms)

    async def _open(self) -> None:
        """The first morning: customers, keys, categories and the opening stock from a file."""
        self._shop.clock.move_to(self._first_ms + 7 * _HOUR_MS)
        for customer in CUSTOMERS:
            await self._shop.run("accounts", "add", customer.name, "--plan", *customer.plan)
            for key in customer.keys:
                options = ("--access", key.access, "--label", key.label, *key.options)
                await self._get_key(customer.name, key.label, "issue", customer.name, *options)
        for species in SPECIES:
            await self._shop.run("categories", "name", str(species.category_id), species.category)
        stock = io.StringIO()
        table = csv.DictWriter(stock, ("name", "categoryId"))
        table.writeheader()
        table.writerows(new_pet(self._random) for _ in range(_OPENING_STOCK))
        await self._shop.run("pets", "import", "-", "--format", "csv", given=stock.getvalue())
        self.trade.began_with(_OPENING_STOCK)

    async def _get_key(self, customer: str, label: str, *words: str) -> None:
        """Issue a key, or rotate one."""
        issued = json.loads(await self._shop.run("keys", *words, "--json"))
        self.keys[customer, label] = issued["key"]
        self._key_ids[customer, label] = issued["id"]

    async def _live(self, day: int) -> None:
        """One day from morning to evening."""
        start_ms = self._first_ms + day * DAY_MS
        steps: list[tuple[int, int, Step]] = []

        def at(moment_ms: int, step: Step) -> None:
            steps.append((moment_ms, len(steps), step))

        for customer in CUSTOMERS:
            await self._turn(customer, day, start_ms)
            if customer.name not in self._gone:
                self._plan_requests(customer, day, start_ms, at)
        for step in self.trade.of_a_day(self._gone):
            at(start_ms + _OPEN_MS + self._random.randrange(_HOURS_OPEN * _HOUR_MS), step)
        for moment_ms, _, step in sorted(steps):
            self._shop.clock.move_to(moment_ms)
            await step()

    async def _turn(self, customer: Customer, day: int, start_ms: int) -> None:
        """What a customer's account goes through on its day."""
        name = customer.name
        self._shop.clock.move_to(start_ms)
        if plan := self._due(customer.becomes, day):
            await self._shop.run("accounts", "set-plan", name, "--plan", plan)
        if label := self._due(customer.rotates, day):
            await self._get_key(name, label, "rotate", str(self._key_ids[name, label]))
        if command := self._due(customer.ends, day):
            await self._shop.run("accounts", command, name, *(["--yes"] if command == "close" else []))
            self._gone.add(name)

    def _due(self, event: tuple[int, str] | None, day: int) -> str | None:
        """What comes on this day; a shorter demo has it as much earlier."""
        return event[1] if event and day == event[0] * self.days // DAYS else None

    def _plan_requests(
        self, customer: Customer, day: int, start_ms: int, at: Callable[[int, Step], None]
    ) -> None:
        """The customer's lists over the day: more with the weeks, fewer on two days of each."""
        growth = 0.5 + 0.5 * (day + 1) / self.days
        count = int(
            customer.daily * growth * (0.55 if day % 7 >= 5 else 1) * self._random.uniform(0.85, 1.15)
        )
        secret = self.keys[customer.name, customer.keys[0].label]
        for _ in range(count):
            moment_ms = start_ms + _OPEN_MS + self._random.randrange(_HOURS_OPEN * _HOUR_MS)
            at(moment_ms, self._request(secret, self._target(customer)))
        if customer.impatient and self._random.random() < 0.2:
            moment_ms = start_ms + 22 * _HOUR_MS
            for _ in range(_BURST):
                at(moment_ms, self._request(secret, "/v1/pets?limit=100"))

    def _target(self, customer: Customer) -> str:
        if customer.old_client and self._random.random() < 0.4:
            return f"/v1/pets/{self._random.randint(1, _OPENING_STOCK)}"
        chosen = self._random.choices(
            (
                "/v1/pets?status=available",
                f"/v1/pets?status=available&categoryId={self._random.choice(SPECIES).category_id}",
                "/v1/pets?order=-id&limit=10",
                "/v1/categories",
            ),
            (8, 5, 3, 1),
        )
        return chosen[0]

    def _request(self, secret: str, target: str) -> Step:
        return lambda: self._shop.ask(secret, "GET", target, expect=(200, 404, 429))

    async def _ban(self) -> None:
        """One program goes on asking after its 429s, again after each ban, until it is banned for an hour."""
        [scraper] = (customer for customer in CUSTOMERS if customer.name == SCRAPER)
        secret = self.keys[SCRAPER, scraper.keys[0].label]
        for length_ms in _BANS_MS:
            for pause_ms in (length_ms + SECOND_MS, _GRACE_MS):
                self._shop.clock.move_to(self._shop.clock.now_ms() + pause_ms)
                for _ in range(_BURST):
                    await self._shop.ask(secret, "GET", "/v1/pets?limit=100", expect=(200, 429))
