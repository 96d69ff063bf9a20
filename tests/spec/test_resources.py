"""Specification, "Resources and their fields" and the states."""

from __future__ import annotations

from petstore.core.errors import CATALOGUE
from petstore.core.pets import PetStatus
from tests.api.checks import CheckedShop

STATES = ["available", "pending", "sold"]


class TestPetStatus:
    """A string enumeration."""

    async def test_allowed_values(self, shop: CheckedShop) -> None:
        """The three words and no other, in bodies and in the filter."""
        for status in STATES:
            created = await shop.post({"name": "Rex", "categoryId": 1, "status": status})
            assert created.json()["status"] == status
            assert (await shop.ask("GET", f"/v1/pets?status={status}")).status == 200
        for wrong in ("Available", "lost", "", None, 1, ["sold"]):
            assert (await shop.post({"name": "Rex", "categoryId": 1, "status": wrong})).status == 400
        assert (await shop.ask("GET", "/v1/pets?status=lost")).status == 400


class TestNewPet:
    """The body of POST /pets."""

    async def test_name_is_required(self, shop: CheckedShop) -> None:
        """A string, always."""
        assert (await shop.post({"name": "Rex", "categoryId": 1})).json()["name"] == "Rex"
        for body in ({"categoryId": 1}, {"name": None, "categoryId": 1}, {"name": 5, "categoryId": 1}):
            answer = await shop.post(body)
            assert answer.status == 400
            assert "name: " in answer.json()["message"]

    async def test_category_is_a_required_int64(self, shop: CheckedShop) -> None:
        """An integer from -2^63 to 2^63 - 1, always."""
        for number in (-(2**63), 0, 2**63 - 1):
            assert (await shop.post({"name": "Rex", "categoryId": number})).json()["categoryId"] == number
        for body in (
            {"name": "Rex"},
            {"name": "Rex", "categoryId": 2**63},
            {"name": "Rex", "categoryId": -(2**63) - 1},
            {"name": "Rex", "categoryId": 1.5},
            {"name": "Rex", "categoryId": "1"},
            {"name": "Rex", "categoryId": None},
        ):
            answer = await shop.post(body)
            assert answer.status == 400
            assert "categoryId: " in answer.json()["message"]

    async def test_status_is_optional(self, shop: CheckedShop) -> None:
        """With and without it."""
        assert (await shop.post({"name": "Rex", "categoryId": 1})).status == 201
        assert (await shop.post({"name": "Rex", "categoryId": 1, "status": "sold"})).status == 201


class TestPet:
    """An animal in a response."""

    async def test_all_fields_of_new_pet(self, shop: CheckedShop) -> None:
        """And the identifier, in every response that holds an animal."""
        created = (await shop.post({"name": "Rex", "categoryId": 7, "status": "pending"})).json()
        assert created == {"id": 1, "name": "Rex", "categoryId": 7, "status": "pending"}
        assert (await shop.ask("GET", "/v1/pets/1")).json() == created
        assert (await shop.ask("GET", "/v1/pets")).json() == [created]

    async def test_id_is_unique_and_assigned(self, shop: CheckedShop) -> None:
        """An int64 that no other animal has."""
        found = [(await shop.post({"name": "Rex", "categoryId": 1})).json()["id"] for _ in range(20)]
        assert len(set(found)) == 20
        assert all(isinstance(pet_id, int) and 0 < pet_id < 2**63 for pet_id in found)

    async def test_the_client_never_supplies_id(self, shop: CheckedShop) -> None:
        """A body with an id is refused, not silently changed."""
        for pet_id in (1, 99, None, "1"):
            answer = await shop.post({"id": pet_id, "name": "Rex", "categoryId": 1})
            assert answer.status == 400
            assert "id: " in answer.json()["message"]
        assert shop.pets() == []


class TestPets:
    """A list in a response."""

    async def test_array_of_pets(self, shop: CheckedShop) -> None:
        """A bare JSON array, of Pet objects only, empty when there are none."""
        assert (await shop.ask("GET", "/v1/pets")).json() == []
        await shop.post({"name": "Rex", "categoryId": 1})
        document = (await shop.ask("GET", "/v1/pets")).json()
        assert isinstance(document, list)
        assert [set(pet) for pet in document] == [{"id", "name", "categoryId", "status"}]


class TestError:
    """The body of every error."""

    async def test_code_is_machine_readable(self, shop: CheckedShop) -> None:
        """A word of the catalogue."""
        answer = await shop.ask("GET", "/v1/pets/1")
        assert answer.json()["code"] == "not_found"
        assert answer.json()["code"] in CATALOGUE

    async def test_message_is_human_readable(self, shop: CheckedShop) -> None:
        """A sentence that says what is wrong."""
        message = (await shop.ask("GET", "/v1/pets?limit=0")).json()["message"]
        assert message == "limit: expected an integer from 1 to 100."

    async def test_status_is_the_http_status(self, shop: CheckedShop) -> None:
        """As a number, on each error."""
        for answer in (
            await shop.ask("GET", "/v1/pets/1"),
            await shop.call("GET", "/v1/pets"),
            await shop.post({}),
            await shop.ask("PUT", "/v1/pets"),
        ):
            assert answer.json()["status"] == answer.status


class TestStates:
    """Of an animal."""

    async def test_three_states(self, shop: CheckedShop) -> None:
        """No more and no fewer, in the core and on the wire."""
        assert list(PetStatus) == STATES
        for status in STATES:
            await shop.post({"name": "Rex", "categoryId": 1, "status": status})
        assert [pet["status"] for pet in (await shop.ask("GET", "/v1/pets")).json()] == STATES
