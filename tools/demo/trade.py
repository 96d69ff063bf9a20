"""The trade of the demo: animals come in, are ordered, corrected, delivered and taken back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from random import Random

from tools.demo.animals import new_pet
from tools.demo.customers import CUSTOMERS, STORE
from tools.demo.shop import Shop

Step = Callable[[], Awaitable[object]]
# Days from an order to its approval, and from there to its delivery.
_UNTIL_APPROVED, _UNTIL_DELIVERED = (1, 2), (1, 4)
_CANCELLED_SHARE = 0.15


class Trade:
    """Knows which animals and orders there are from the answers that it was given."""

    def __init__(self, shop: Shop, keys: dict[tuple[str, str], str], random: Random) -> None:
        self._shop = shop
        self._keys = keys
        self._random = random
        self._available: list[int] = []
        self._due: dict[int, list[Step]] = {}
        self._day = -1

    def began_with(self, count: int) -> None:
        """The store opened with `count` animals, 1 to `count`."""
        self._available = list(range(1, count + 1))

    def of_a_day(self, gone: set[str]) -> Iterator[Step]:
        """What happens on the next day, at any times: what is due, then new animals and orders."""
        self._day += 1
        yield from self._due.pop(self._day, [])
        for _ in range(self._random.randint(1, 4)):
            yield self._add
        buyers = [each for each in CUSTOMERS if each.orders and each.name not in gone]
        for buyer in self._random.choices(
            buyers, [each.orders for each in buyers], k=self._random.randint(1, 3)
        ):
            yield self._order(buyer.name, buyer.keys[0].label)
        if self._random.random() < 0.15:
            yield self._correct
        if self._random.random() < 0.08:
            yield self._remove

    def _later(self, days: tuple[int, int], step: Step) -> None:
        self._due.setdefault(self._day + self._random.randint(*days), []).append(step)

    async def _add(self) -> None:
        key = self._keys[STORE, "stock room"]
        pet = await self._shop.ask(key, "POST", "/v1/pets", new_pet(self._random), expect=(201,))
        self._available.append(pet["id"])

    def _order(self, customer: str, label: str) -> Step:
        async def order() -> None:
            pet_id = self._available.pop(self._random.randrange(len(self._available)))
            key = self._keys[customer, label]
            placed = await self._shop.ask(key, "POST", "/v1/store/orders", {"petId": pet_id}, expect=(201,))
            order_id = placed["id"]
            if self._random.random() < _CANCELLED_SHARE:
                self._later(_UNTIL_APPROVED, self._cancel(key, order_id, pet_id))
            else:
                self._later(_UNTIL_APPROVED, self._approve(order_id))

        return order

    def _cancel(self, key: str, order_id: int, pet_id: int) -> Step:
        async def cancel() -> None:
            # The account may be suspended or closed by now: then the order stays open.
            target = f"/v1/store/orders/{order_id}"
            if await self._shop.ask(key, "DELETE", target, expect=(204, 401, 403)) is None:
                self._available.append(pet_id)

        return cancel

    def _approve(self, order_id: int) -> Step:
        async def approve() -> None:
            await self._manage("PATCH", f"/v1/store/orders/{order_id}", {"status": "approved"})
            self._later(_UNTIL_DELIVERED, self._deliver(order_id))

        return approve

    def _deliver(self, order_id: int) -> Step:
        async def deliver() -> None:
            await self._manage("PATCH", f"/v1/store/orders/{order_id}", {"status": "delivered"})

        return deliver

    async def _correct(self) -> None:
        """An animal was entered as another one."""
        pet_id = self._random.choice(self._available)
        await self._manage("PATCH", f"/v1/pets/{pet_id}", new_pet(self._random))

    async def _remove(self) -> None:
        """An animal moved to another branch."""
        pet_id = self._available.pop(self._random.randrange(len(self._available)))
        await self._manage("DELETE", f"/v1/pets/{pet_id}", expect=204)

    async def _manage(self, method: str, target: str, document: object = None, expect: int = 200) -> None:
        await self._shop.ask(self._keys[STORE, "counter"], method, target, document, expect=(expect,))
