"""Equal requests get equal answers, whatever the service stands on (I9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from petstore.core.errors import PetstoreError
from petstore.core.keys import Access
from petstore.core.orders import OrderStatus
from petstore.core.pets import PetStatus
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database
from tests.support.service import Answer, Shop, open_shop
from tests.support.valkey import emptied_url

# The name of a request, and what depends on the clock of the counters, which is Valkey's own: that limiters
# decide alike is shown in tests/core, with clocks that can be steered. Everything else is the same.
_OWN = {
    "date",
    "x-request-id",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "ratelimit",
}

names = st.sampled_from(
    ["Rex", " Ω\u2028", "'; DROP TABLE pets; --", "\\N", "🐈", "a" * 255, "", "\x00", "  "]
)
categories = st.sampled_from([0, 1, -(2**63), 2**63 - 1, 2**63, 1.0, "1", None])
statuses = st.sampled_from([*PetStatus, "AVAILABLE", None])
bodies = st.fixed_dictionaries({"name": names, "categoryId": categories}, optional={"status": statuses})
keys = st.sampled_from(["", "one", "two", '"one"', "\x7f"])
additions = st.tuples(st.just("add"), bodies, keys)
filters = st.lists(
    st.sampled_from(
        [
            "&status=available",
            "&status=sold",
            "&status=lost",
            "&id=1&id=2&id=999",
            "&categoryId=0",
            "&categoryId=1",
            "&order=-id",
            "&after=2",
            "&order=id",
            "&page=2",
        ]
    ),
    max_size=3,
).map("".join)
walks = st.tuples(st.just("walk"), st.sampled_from(["1", "2", "3", "100", "0", "x"]), filters)
# How far behind the newest animal; negative ones were never added.
readings = st.tuples(st.just("read"), st.integers(-2, 12))
changes = st.tuples(
    st.just("change"),
    st.integers(-1, 12),
    st.fixed_dictionaries({}, optional={"name": names, "categoryId": categories, "status": statuses}),
)
removals = st.tuples(st.just("remove"), st.integers(-1, 12))
# By the history's account or by that of the service; of an animal or an order so far behind the newest one.
references = st.sampled_from([{}, {"reference": "PO-7"}, {"reference": " \u2028x"}, {"reference": "\x00"}])
orders = st.tuples(st.just("order"), st.booleans(), st.integers(-1, 6), keys, references)
changes_of_orders = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from([*OrderStatus, "sold"]),
        "shipDate": st.sampled_from(["2026-11-21T08:30:00Z", "2026-11-21T08:30:00.5+14:00", "soon", None]),
    },
)
moves = st.tuples(st.just("move"), st.integers(-1, 4), changes_of_orders)
cancellations = st.tuples(st.just("cancel"), st.booleans(), st.integers(-1, 4))
order_filters = st.sampled_from(
    ["", "&status=placed", "&status=cancelled", "&status=sold", "&id=1&id=2", "&after=1"]
)
order_walks = st.tuples(st.just("orders"), st.booleans(), st.sampled_from(["1", "2", "100"]), order_filters)
namings = st.tuples(
    st.just("name"), st.integers(0, 2), st.sampled_from(["Dogs", " Ω\u2028", "", "x" * 101, None])
)
revocations = st.tuples(st.just("revoke"))
days = st.tuples(st.just("wait"), st.sampled_from([1, 3_600, 86_399, 86_401]))
histories = st.lists(
    st.one_of(
        *(
            additions,
            additions,
            walks,
            walks,
            readings,
            changes,
            changes,
            removals,
            namings,
            revocations,
            days,
        ),
        *(orders, orders, moves, moves, cancellations, order_walks),
    ),
    max_size=12,
)


class Backends:
    """One service on each of the backends, with the same history behind it."""

    def __init__(self, clock: ManualClock, shops: dict[str, Shop]) -> None:
        self.clock = clock
        self.shops = shops
        self.newest = self.newest_order = 0
        self.accounts = 0

    async def play(self, history: list[tuple[Any, ...]]) -> None:
        """Each step everywhere; every answer is compared."""
        self.accounts += 1
        key = {}
        for name, shop in self.shops.items():
            key[name] = await shop.open_account(
                f"account-{self.accounts}", "enterprise", 10**6, 10**6, Access.MANAGE
            )
        for step in history:
            answers = {name: await self._do(shop, key[name], step) for name, shop in self.shops.items()}
            first, *others = answers.values()
            assert all(other == first for other in others), (step, answers)
            if step[0] == "wait":
                self.clock.advance(step[1])

    async def _do(self, shop: Shop, key: tuple[str, int], step: tuple[Any, ...]) -> Any:
        secret, key_id = key
        match step:
            case ("add", body, idempotency):
                headers = [("idempotency-key", idempotency)] if idempotency else []
                answer = await shop.post(body, headers, key=secret)
                if answer.status == 201:
                    self.newest = max(self.newest, answer.json()["id"])
                return comparable(answer)
            case ("walk", limit, filters):
                return await self._walk(shop, secret, f"/v1/pets?limit={limit}{filters}")
            case ("read" | "remove" as what, behind):
                method = "GET" if what == "read" else "DELETE"
                return comparable(await shop.ask(method, f"/v1/pets/{self.newest - behind}", key=secret))
            case ("change", behind, change):
                return comparable(await shop.patch(self.newest - behind, change, key=secret))
            case ("order" | "move" | "cancel" | "orders", *_):
                return await self._do_with_orders(shop, secret, step)
            case ("name", category, text):
                return await self._name(shop, secret, category, text)
            case ("revoke",):
                return (await shop.store.keys.revoke(key_id, ACTOR)).state(self.clock.now_ms())
        return None

    async def _do_with_orders(self, shop: Shop, secret: str, step: tuple[Any, ...]) -> Any:
        target = "/v1/store/orders"
        match step:
            case ("order", own, behind, idempotency, reference):
                headers = [("idempotency-key", idempotency)] if idempotency else []
                document = {"petId": self.newest - behind, **reference}
                key = secret if own else shop.key
                answer = await shop.send("POST", target, document, headers, key=key)
                if answer.status == 201:
                    self.newest_order = max(self.newest_order, answer.json()["id"])
                return comparable(answer)
            case ("move", behind, document):
                answer = await shop.send("PATCH", f"{target}/{self.newest_order - behind}", document)
                return comparable(answer)
            case ("cancel", own, behind):
                target = f"{target}/{self.newest_order - behind}"
                return comparable(await shop.ask("DELETE", target, key=secret if own else shop.key))
            case ("orders", own, limit, filters):
                key = secret if own else shop.key
                return await self._walk(shop, key, f"{target}?limit={limit}{filters}")

    async def _name(self, shop: Shop, secret: str, category: int, text: str | None) -> Any:
        """A category's name, or None to take it away; then the list."""
        categories = shop.store.categories
        try:
            await (
                categories.unname(category, ACTOR) if text is None else categories.name(category, text, ACTOR)
            )
        except PetstoreError as error:
            return type(error), error.message
        return comparable(await shop.ask("GET", "/v1/categories", key=secret))

    async def _walk(self, shop: Shop, secret: str, target: str) -> list[Any]:
        """Some pages, by their links."""
        pages: list[object] = []
        while target and len(pages) < 4:
            answer = await shop.ask("GET", target, key=secret)
            pages.append(comparable(answer))
            target = answer.links.get("next", "") if answer.status == 200 else ""
        return pages


def comparable(answer: Answer) -> tuple[int, list[tuple[str, str]], Any]:
    """What has to be the same."""
    headers = sorted(pair for pair in answer.raw_headers if pair[0] not in _OWN)
    return answer.status, headers, json.loads(answer.body or b"null")


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[tuple[asyncio.Runner, Backends]]:
    """A file, a server, and a server with shared counters."""
    clock = ManualClock()
    with ExitStack() as made, asyncio.Runner() as runner:
        urls = [made.enter_context(fresh_database(migrated=True)) for _ in range(2)]
        stack = AsyncExitStack()

        async def opened() -> Backends:
            shared = {"database_url": urls[1], "valkey_url": emptied_url()}
            kinds: dict[str, dict[str, str]] = {
                "sqlite": {},
                "postgres": {"database_url": urls[0]},
                "shared": shared,
            }
            shops = {}
            for name, chosen in kinds.items():
                (tmp_path / name).mkdir()
                shops[name] = await stack.enter_async_context(open_shop(tmp_path / name, clock, **chosen))
            return Backends(clock, shops)

        try:
            yield runner, runner.run(opened())
        finally:
            runner.run(stack.aclose())


@pytest.mark.slow
def test_the_same_requests_get_the_same_answers(backends: tuple[asyncio.Runner, Backends]) -> None:
    """Status, body and headers of any history of additions, changes, removals, orders, walks, revocations and
    days: on a SQLite file, on PostgreSQL, and on PostgreSQL with counters in Valkey."""
    runner, services = backends

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(histories)
    def check(history: list[tuple[Any, ...]]) -> None:
        runner.run(services.play(history))

    check()
