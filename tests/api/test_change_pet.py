"""PATCH and DELETE /pets/{petId}: the answers of a change and a removal, and what they leave.

What is refused: refusals.py. The rules: storage/contract/test_pet_changes.py.
"""

from __future__ import annotations

import pytest

from tests.api.test_get_pet import REMOVAL
from tests.support.service import Shop, outsider


def order(shop: Shop, status: str) -> None:
    """An order of animal 1, which is pending for it."""
    with outsider(shop.path) as connection:
        connection.execute(
            f"INSERT INTO orders (account_id, pet_id, status, created_at_ms) VALUES (1, 1, '{status}', 0)"
        )
        connection.execute("UPDATE pets SET status = 'pending' WHERE id = 1")


@pytest.mark.parametrize(
    "change",
    [
        {"name": " Réx "}, {"categoryId": -(2**63)}, {"status": "sold"},
        {"status": "pending", "name": "x", "categoryId": 0},
    ],
)  # fmt: skip
async def test_what_is_sent_changes(rex: Shop, change: dict[str, object]) -> None:
    """The rest stays; a list and getPet show it at once."""
    answer = await rex.patch(1, change)
    assert answer.status == 200
    assert answer.json() == {"id": 1, "name": "Rex", "categoryId": 1, "status": "available"} | change
    assert (await rex.ask("GET", "/v1/pets/1")).body == answer.body
    assert (await rex.ask("GET", "/v1/pets")).json() == [answer.json()]


class TestDeletePet204:
    """The animal is gone."""

    async def test_it_is_nowhere(self, rex: Shop) -> None:
        """No body; lists and getPet don't have it; its identifier is not used again; a second time is 404."""
        await rex.post({"name": "Mia", "categoryId": 1})
        answer = await rex.ask("DELETE", "/v1/pets/2")
        assert (answer.status, answer.body) == (204, b"")
        assert [pet["id"] for pet in (await rex.ask("GET", "/v1/pets")).json()] == [1]
        assert (await rex.ask("GET", "/v1/pets?id=2")).json() == []
        for method in ("GET", "DELETE"):
            assert (await rex.ask(method, "/v1/pets/2")).code == "not_found"
        assert (await rex.patch(2, {"name": "x"})).code == "not_found"
        assert (await rex.post({"name": "Tom", "categoryId": 1})).json()["id"] == 3


async def test_the_removal_of_get_pet_leaves_both_in_place(rex: Shop) -> None:
    """GET and HEAD are 410, PATCH and DELETE change; none of theirs speaks of deprecation."""
    rex.clock.set_seconds(REMOVAL)
    changed = await rex.patch(1, {"name": "x"})
    assert changed.status == 200
    assert [(await rex.ask(method, "/v1/pets/1")).status for method in ("GET", "HEAD")] == [410, 410]
    removed = await rex.ask("DELETE", "/v1/pets/1")
    missing = await rex.ask("DELETE", "/v1/pets/1")
    assert (removed.status, missing.status) == (204, 404)
    for answer in (changed, removed, missing):
        assert not {"deprecation", "sunset"} & set(answer.headers)
        assert 'rel="deprecation"' not in answer.headers.get("link", "")
