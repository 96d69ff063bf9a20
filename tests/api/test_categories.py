"""GET /categories: the names that staff gave to categories."""

from __future__ import annotations

from tests.support.journal import ACTOR
from tests.support.service import Shop


class TestListCategories200:
    """What the list holds."""

    async def test_a_change_is_seen_at_once(self, shop: Shop) -> None:
        """Names of all int64 as they were given, in ascending order of id, and no animal's category without
        one. A kept answer ends with each change of a name."""
        await shop.post({"name": "Rex", "categoryId": 1})
        listed: dict[int, str] = {}
        for category_id, text in ((2, "Dogs"), (2**63 - 1, " Ω "), (-5, "Birds"), (2, "Cats"), (-5, None)):
            if text is None:
                await shop.store.categories.unname(category_id, ACTOR)
                del listed[category_id]
            else:
                await shop.store.categories.name(category_id, text, ACTOR)
                listed[category_id] = text
            for _ in range(2):
                answer = await shop.ask("GET", "/v1/categories")
                assert answer.json() == [{"id": each, "name": listed[each]} for each in sorted(listed)]
        assert answer.status == 200
