"""Operations with the body of an animal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.answers import LIMIT_HEADERS, check_error
from tests.support.service import COUNTERS, Answer, Pairs, Shop, open_shop, outsider, settle

__all__ = [
    "COUNTERS",
    "LIMIT_HEADERS",
    "CheckedShop",
    "Writing",
    "check_error",
    "open_checked",
    "outsider",
    "settle",
]
CheckedShop = Shop
open_checked = open_shop


class Writing:
    """An operation with the body of an animal, to which the same rules of bodies apply."""

    def __init__(self, shop: CheckedShop, name: str) -> None:
        self.shop = shop
        self.name = name
        self.method, self.path, self.status = {
            "createPet": ("POST", "/v1/pets", 201),
            "updatePet": ("PATCH", "/v1/pets/1", 200),
        }[name]

    async def send(self, headers: Pairs, body: bytes | Sequence[dict[str, Any]]) -> Answer:
        """One request with the shop's key."""
        key = ("authorization", f"Bearer {self.shop.key}")
        return await self.shop.call(self.method, self.path, [key, *headers], body)

    async def send_json(self, body: bytes | Sequence[dict[str, Any]], *headers: tuple[str, str]) -> Answer:
        """One request with a body of the type `application/json`."""
        return await self.send([("content-type", "application/json"), *headers], body)
