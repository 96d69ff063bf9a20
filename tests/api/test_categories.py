"""GET /categories: the names that staff gave to categories."""

from __future__ import annotations

from tests.support.journal import ACTOR
from tests.support.service import Shop


async def name(shop: Shop, category_id: int, text: str) -> None:
    await shop.store.categories.name(category_id, text, ACTOR)


class TestListCategories200:
    """What the list holds."""

    async def test_without_names_it_is_empty(self, shop: Shop) -> None:
        """Also when animals are of categories."""
        await shop.post({"name": "Rex", "categoryId": 1})
        answer = await shop.ask("GET", "/v1/categories")
        assert (answer.status, answer.body) == (200, b"[]")

    async def test_names_in_ascending_order_of_id(self, shop: Shop) -> None:
        """Those of all int64, as they were given."""
        for category_id, text in ((2, "Cats"), (2**63 - 1, " Ω "), (-5, "Dogs")):
            await name(shop, category_id, text)
        answer = await shop.ask("GET", "/v1/categories")
        assert answer.json() == [
            {"id": -5, "name": "Dogs"},
            {"id": 2, "name": "Cats"},
            {"id": 2**63 - 1, "name": " Ω "},
        ]

    async def test_a_change_is_seen_at_once(self, shop: Shop) -> None:
        """A kept answer ends with each change of a name."""
        await name(shop, 1, "Dogs")
        assert (await shop.ask("GET", "/v1/categories")).json() == [{"id": 1, "name": "Dogs"}]
        assert (await shop.ask("GET", "/v1/categories")).json() == [{"id": 1, "name": "Dogs"}]
        await name(shop, 1, "Cats")
        assert (await shop.ask("GET", "/v1/categories")).json() == [{"id": 1, "name": "Cats"}]
        await shop.store.categories.unname(1, ACTOR)
        assert (await shop.ask("GET", "/v1/categories")).json() == []
