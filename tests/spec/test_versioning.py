"""Specification, "Versioning", and the deprecation of getPet."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.api import contract
from tests.api.checks import CheckedShop

REMOVAL = int(datetime(2030, 12, 5, tzinfo=UTC).timestamp())


class TestVersion:
    """1.0.0 under /v1."""

    async def test_interface_version(self, shop: CheckedShop) -> None:
        """In the document, on the start page, and in every path."""
        assert contract.document()["info"]["version"] == "1.0.0"
        assert (await shop.call("GET", "/")).json()["version"] == "1.0.0"
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        assert (await shop.ask("GET", "/v2/pets")).status == 404


class TestDeprecation:
    """GET /pets/{petId}."""

    async def test_deprecated_and_to_be_removed(self, shop: CheckedShop) -> None:
        """Said by the document and by every response."""
        assert contract.document()["paths"]["/pets/{petId}"]["get"]["deprecated"] is True
        for key in (shop.key, "x"):
            answer = await shop.ask("GET", "/v1/pets/1", key=key)
            assert answer.headers["deprecation"] == "@1795219200"
            assert answer.headers["sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"

    async def test_the_replacement(self, shop: CheckedShop) -> None:
        """GET /pets, with the status filter and, as an addition, by identifier; `Link` leads to it."""
        created = await shop.post({"name": "Rex", "categoryId": 1, "status": "sold"})
        answer = await shop.ask("GET", "/v1/pets/1")
        successor = await shop.ask("GET", answer.links["successor-version"])
        assert successor.json() == [created.json()]
        assert (await shop.ask("GET", "/v1/pets?status=sold")).json() == [created.json()]
        assert (await shop.call("GET", answer.links["deprecation"])).status == 200

    async def test_removal_on_5_december_2030(self, shop: CheckedShop) -> None:
        """It answers until then, and from then on is gone."""
        await shop.post({"name": "Rex", "categoryId": 1})
        shop.clock.set_seconds(REMOVAL - 1)
        assert (await shop.ask("GET", "/v1/pets/1")).status == 200
        shop.clock.set_seconds(REMOVAL)
        assert (await shop.ask("GET", "/v1/pets/1")).status == 410
