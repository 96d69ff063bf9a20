"""What the specification calls "not shown": the answers of docs/specification-gaps.md, each shown once."""

from __future__ import annotations

from pathlib import Path

import pytest

from petstore.core.errors import CATALOGUE, Conflict
from petstore.core.pets import PetStatus
from tests.api import contract
from tests.api.checks import CheckedShop

ROOT = Path(__file__).parents[2]


class TestGaps:
    """In the order of the specification."""

    async def test_category_record(self, shop: CheckedShop) -> None:
        """There is none: any identifier is taken and comes back, and there is nothing to read it by."""
        assert (await shop.post({"name": "Rex", "categoryId": 987_654_321})).json()[
            "categoryId"
        ] == 987_654_321
        assert (await shop.ask("GET", "/v1/categories")).status == 404

    async def test_default_of_status(self, shop: CheckedShop) -> None:
        """`available`, and always there in responses; null is not the same as none."""
        assert (await shop.post({"name": "Rex", "categoryId": 1})).json()["status"] == "available"
        assert (await shop.post({"name": "Rex", "categoryId": 1, "status": None})).status == 400

    async def test_transitions(self, shop: CheckedShop) -> None:
        """Every one but sold to pending; same to same changes nothing."""
        pets = shop.store.pets
        for before in PetStatus:
            for after in PetStatus:
                created = (await shop.post({"name": "Rex", "categoryId": 1, "status": before})).json()
                if (before, after) == (PetStatus.SOLD, PetStatus.PENDING):
                    with pytest.raises(Conflict):
                        await pets.set_status(created["id"], after, "staff")
                    continue
                assert (await pets.set_status(created["id"], after, "staff")).status is after
                assert len(await pets.history(created["id"])) == (before is not after)

    async def test_page_navigation(self, shop: CheckedShop) -> None:
        """`Link` with next and first, an opaque cursor, and nothing but animals in the body."""
        for _ in range(5):
            await shop.post({"name": "Rex", "categoryId": 1, "status": "sold"})
        found = []
        target: str | None = "/v1/pets?status=sold&limit=2"
        while target:
            answer = await shop.ask("GET", target)
            assert answer.links["first"] == "/v1/pets?limit=2&status=sold"
            found += [pet["id"] for pet in answer.json()]
            target = answer.links.get("next")
        assert found == [1, 2, 3, 4, 5]
        assert (await shop.ask("GET", "/v1/pets?cursor=mine")).status == 400

    async def test_ordering(self, shop: CheckedShop) -> None:
        """Ascending id, also under a filter."""
        for number in range(12):
            await shop.post({"name": "Rex", "categoryId": -number, "status": ("sold", "pending")[number % 2]})
        for query in ("", "?status=sold", "?id=9&id=3&id=5"):
            found = [pet["id"] for pet in (await shop.ask("GET", f"/v1/pets{query}")).json()]
            assert found == sorted(found)

    async def test_other_operations(self, shop: CheckedShop) -> None:
        """/store/orders is an unknown path in this release, and the document has three operations."""
        for method in ("GET", "POST"):
            assert (await shop.ask(method, "/v1/store/orders")).code == "not_found"
        assert set(contract.document()["paths"]) == {"/pets", "/pets/{petId}"}

    async def test_keys_are_issued_and_revoked_by_the_operator(self, shop: CheckedShop) -> None:
        """Not by the interface; both act on the next request."""
        issued = await shop.store.keys.issue("tests", "live")
        assert (await shop.ask("GET", "/v1/pets", key=issued.secret)).status == 200
        await shop.store.keys.revoke(issued.record.id)
        assert (await shop.ask("GET", "/v1/pets", key=issued.secret)).status == 401
        assert (await shop.ask("POST", "/v1/keys")).status == 404

    async def test_there_are_no_events(self, shop: CheckedShop) -> None:
        """No webhooks and no callbacks in the document, no such paths."""
        assert "webhooks" not in contract.document()
        assert all(
            "callbacks" not in op for path in contract.document()["paths"].values() for op in path.values()
        )
        assert (await shop.ask("GET", "/v1/events")).status == 404

    def test_values_of_code(self) -> None:
        """Twenty, the same in the catalogue, in the document and in docs/errors.md."""
        assert len(CATALOGUE) == 20
        assert set(contract.document()["components"]["schemas"]["ErrorCode"]["examples"]) == set(CATALOGUE)
        text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
        assert all(f"### `{code}`" in text for code in CATALOGUE)

    async def test_body_of_a_429(self, shop: CheckedShop) -> None:
        """An Error, `rate_limited`, that says which limit and when to try again."""
        key, _ = await shop.open_account("a", "enterprise", 1, 9)
        await shop.ask("GET", "/v1/pets", key=key)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert answer.json() == {
            "code": "rate_limited",
            "message": "The limit of 1 requests per minute is used up; try again in 60 s.",
            "status": 429,
        }

    def test_policy_of_compatibility(self) -> None:
        """Stated where clients read: only additive changes, and twelve months from deprecation to removal."""
        for text in (
            contract.document()["info"]["description"],
            (ROOT / "docs" / "api.md").read_text(encoding="utf-8"),
        ):
            assert "only additive" in " ".join(text.split())
            assert "welve months" in text or "12 months" in " ".join(text.split())
        assert 1_922_659_200 - 1_795_219_200 > 365 * 86_400
