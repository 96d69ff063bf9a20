"""Specification, "Endpoints": each operation's table of parameters and responses."""

from __future__ import annotations

from tests.api.checks import CheckedShop, check_error


async def stock(shop: CheckedShop, count: int) -> None:
    for number in range(count):
        await shop.post(
            {"name": "Rex", "categoryId": 1, "status": ("available", "pending", "sold")[number % 3]}
        )


class TestListPets:
    """GET /pets (operation listPets)."""

    async def test_returns_a_paginated_list(self, shop: CheckedShop) -> None:
        """More animals than a page holds come in several pages."""
        await stock(shop, 25)
        first = await shop.ask("GET", "/v1/pets")
        second = await shop.ask("GET", first.links["next"])
        assert [len(page.json()) for page in (first, second)] == [20, 5]
        assert "next" not in second.links

    async def test_limit(self, shop: CheckedShop) -> None:
        """1 to 100, 20 when it is not given."""
        await stock(shop, 101)
        for query, expected in (("", 20), ("?limit=1", 1), ("?limit=100", 100)):
            assert len((await shop.ask("GET", f"/v1/pets{query}")).json()) == expected
        for wrong in ("0", "101", "-1", "x"):
            assert (await shop.ask("GET", f"/v1/pets?limit={wrong}")).status == 400

    async def test_status(self, shop: CheckedShop) -> None:
        """Only animals with that status; without it, all."""
        await stock(shop, 9)
        assert [pet["id"] for pet in (await shop.ask("GET", "/v1/pets?status=pending")).json()] == [2, 5, 8]
        assert len((await shop.ask("GET", "/v1/pets")).json()) == 9

    async def test_200(self, shop: CheckedShop) -> None:
        """An array of Pet."""
        await stock(shop, 1)
        answer = await shop.ask("GET", "/v1/pets")
        assert (answer.status, answer.json()) == (
            200,
            [{"id": 1, "name": "Rex", "categoryId": 1, "status": "available"}],
        )

    async def test_401(self, shop: CheckedShop) -> None:
        """An Error."""
        answer = await shop.call("GET", "/v1/pets")
        assert answer.status == 401
        check_error(answer)


class TestCreatePet:
    """POST /pets (operation createPet)."""

    async def test_adds_an_animal(self, shop: CheckedShop) -> None:
        """One more in the list."""
        await shop.post({"name": "Rex", "categoryId": 1})
        assert len((await shop.ask("GET", "/v1/pets")).json()) == 1

    async def test_body_is_required(self, shop: CheckedShop) -> None:
        """None, an empty one, and one without either required member are refused."""
        assert (await shop.post(None, body=b"")).status == 400
        for body in ({}, {"name": "Rex"}, {"categoryId": 1}):
            answer = await shop.post(body)
            assert answer.status == 400
            assert "required" in answer.json()["message"]

    async def test_201(self, shop: CheckedShop) -> None:
        """The created animal, the assigned id included."""
        answer = await shop.post({"name": "Rex", "categoryId": 1, "status": "sold"})
        assert (answer.status, answer.json()) == (
            201,
            {"id": 1, "name": "Rex", "categoryId": 1, "status": "sold"},
        )

    async def test_400(self, shop: CheckedShop) -> None:
        """An Error, for a body that lacks required fields and for one with invalid values."""
        for body in ({"name": "Rex"}, {"name": "", "categoryId": 1}, {"name": "Rex", "categoryId": "x"}):
            answer = await shop.post(body)
            assert answer.status == 400
            check_error(answer)
        assert shop.pets() == []

    async def test_401(self, shop: CheckedShop) -> None:
        """An Error, and nothing is added."""
        answer = await shop.post({"name": "Rex", "categoryId": 1}, key="x")
        assert answer.status == 401
        check_error(answer)
        assert shop.pets() == []


class TestGetPet:
    """GET /pets/{petId} (operation getPet)."""

    async def test_returns_one_animal(self, shop: CheckedShop) -> None:
        """The one that was asked for."""
        await stock(shop, 3)
        assert (await shop.ask("GET", "/v1/pets/2")).json()["id"] == 2

    async def test_pet_id_is_an_int64(self, shop: CheckedShop) -> None:
        """The largest one is an identifier like any other; what is none names no animal."""
        for pet_id in (str(2**63 - 1), str(2**63), "abc", "1.0"):
            assert (await shop.ask("GET", f"/v1/pets/{pet_id}")).status == 404

    async def test_200(self, shop: CheckedShop) -> None:
        """A Pet."""
        created = await shop.post({"name": "Rex", "categoryId": 1})
        answer = await shop.ask("GET", "/v1/pets/1")
        assert (answer.status, answer.json()) == (200, created.json())

    async def test_401(self, shop: CheckedShop) -> None:
        """An Error, whether the animal exists or not."""
        await stock(shop, 1)
        for pet_id in (1, 2):
            answer = await shop.call("GET", f"/v1/pets/{pet_id}")
            assert answer.status == 401
            check_error(answer)

    async def test_404(self, shop: CheckedShop) -> None:
        """An Error when the animal does not exist."""
        answer = await shop.ask("GET", "/v1/pets/1")
        assert answer.status == 404
        check_error(answer)
