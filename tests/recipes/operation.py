"""An operation that counts animals, added by the recipe: it answers, is limited, measured and documented."""

from __future__ import annotations

from tests.client.kit import Served
from tests.support.service import Shop

pytest_plugins = ["tests.client.conftest"]


async def test_it_counts_the_animals(shop: Shop) -> None:
    """Every status has its count, also where there is none; an unchanged answer is not sent again."""
    for status in ("available", "sold", "available"):
        assert (await shop.post({"name": "Rex", "categoryId": 1, "status": status})).status == 201
    answer = await shop.ask("GET", "/v1/counts")
    assert answer.status == 200
    assert answer.json() == {"available": 2, "pending": 0, "sold": 1}
    same = await shop.ask("GET", "/v1/counts", headers=[("if-none-match", answer.headers["etag"])])
    assert same.status == 304


async def test_it_needs_a_key_and_costs_one(shop: Shop) -> None:
    key, _ = await shop.open_account("a", "free")
    assert '"minute";r=59;' in (await shop.ask("GET", "/v1/counts", key=key)).headers["ratelimit"]
    assert (await shop.call("GET", "/v1/counts")).status == 401


async def test_it_is_measured(shop: Shop) -> None:
    """Under its name, from 0 on."""
    assert 'operation="countPets",status="200"' in (await shop.call("GET", "/metrics")).body.decode()


async def test_it_is_documented(shop: Shop) -> None:
    """The new operation is in the published contract and on the page of the reference."""
    contract = (await shop.call("GET", "/openapi.json")).json()
    assert contract["paths"]["/counts"]["get"]["operationId"] == "countPets"
    assert '<section id="countPets"' in (await shop.call("GET", "/docs/reference")).body.decode()


def test_the_client_calls_it(service: Served) -> None:
    """The noun has a method for it."""
    client = service.client("sync")
    client.pets.create(name="Rex", category_id=1)
    assert client.pets.count() == {"available": 1, "pending": 0, "sold": 0}
