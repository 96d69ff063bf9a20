"""Operations with the body of an animal."""

from __future__ import annotations

from tests.support.service import Answer, Shop
from tools.exchanges import Feed


class Writing:
    """An operation with the body of an animal, to which the same rules of bodies apply."""

    def __init__(self, shop: Shop, name: str) -> None:
        self.shop = shop
        self.method, self.path, self.status = {
            "createPet": ("POST", "/v1/pets", 201),
            "updatePet": ("PATCH", "/v1/pets/1", 200),
        }[name]

    async def send_json(self, body: bytes | Feed, *headers: tuple[str, str]) -> Answer:
        """One request with the shop's key and a body of the type `application/json`."""
        sent = [("authorization", f"Bearer {self.shop.key}"), ("content-type", "application/json"), *headers]
        return await self.shop.call(self.method, self.path, sent, body)
