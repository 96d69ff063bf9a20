"""Specification, "Authentication"."""

from __future__ import annotations

from tests.api import contract
from tests.api.checks import CheckedShop, check_error

ENDPOINTS = [("GET", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/pets/1")]


class TestBearer:
    """The API key as a bearer token."""

    async def test_every_endpoint_requires_it(self, shop: CheckedShop) -> None:
        """Without it, 401."""
        for method, path in ENDPOINTS:
            assert (await shop.call(method, path)).status == 401

    async def test_form(self, shop: CheckedShop) -> None:
        """`Authorization: Bearer <API_KEY>`, and no other place or scheme."""
        key = shop.key
        assert (await shop.call("GET", "/v1/pets", [("Authorization", f"Bearer {key}")])).status == 200
        for headers in ([("Authorization", f"Basic {key}")], [("Authorization", key)], [("X-API-Key", key)]):
            assert (await shop.call("GET", "/v1/pets", headers)).status == 401
        assert (await shop.call("GET", f"/v1/pets?api_key={key}")).status == 401

    async def test_applies_to_every_endpoint(self, shop: CheckedShop) -> None:
        """One scheme, in the document and in the service: with a valid key none is 401."""
        assert contract.document()["security"] == [{"bearerAuth": []}]
        scheme = contract.document()["components"]["securitySchemes"]["bearerAuth"]
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
        for method, path in ENDPOINTS:
            assert (await shop.ask(method, path)).status != 401

    async def test_missing_or_invalid_yields_401(self, shop: CheckedShop) -> None:
        """With an Error body and a challenge."""
        for headers in (
            [],
            [("Authorization", "Bearer nonsense")],
            [("Authorization", f"Bearer {shop.key}x")],
        ):
            answer = await shop.call("GET", "/v1/pets", headers)
            assert (answer.status, answer.code) == (401, "unauthorized")
            check_error(answer)
            assert answer.headers["www-authenticate"].startswith('Bearer realm="petstore"')
