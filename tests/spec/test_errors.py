"""Specification, "Errors"."""

from __future__ import annotations

from tests.api.checks import CheckedShop, check_error


class TestErrors:
    """The table of statuses."""

    async def test_errors_use_the_error_shape(self, shop: CheckedShop) -> None:
        """Exactly code, message and status, on every kind of error."""
        answers = [
            await shop.call("GET", "/v1/pets"),
            await shop.ask("GET", "/v1/pets/1"),
            await shop.ask("GET", "/v1/none"),
            await shop.ask("PUT", "/v1/pets"),
            await shop.post({}),
            await shop.post(None, body=b"{"),
            await shop.ask("GET", "/v1/pets?limit=0"),
            await shop.ask("GET", "/v1/pets?" + "x" * 9_000),
        ]
        assert [answer.status for answer in answers] == [401, 404, 404, 405, 400, 400, 400, 414]
        for answer in answers:
            check_error(answer)

    async def test_400(self, shop: CheckedShop) -> None:
        """Body of POST /pets lacks required fields, or has invalid values."""
        assert (await shop.post({"name": "Rex"})).code == "invalid_body"
        assert (await shop.post({"name": "Rex", "categoryId": 1, "status": "lost"})).code == "invalid_body"

    async def test_401(self, shop: CheckedShop) -> None:
        """API key missing, or invalid."""
        assert (await shop.call("GET", "/v1/pets")).code == "unauthorized"
        assert (await shop.ask("GET", "/v1/pets", key="x")).code == "unauthorized"

    async def test_404(self, shop: CheckedShop) -> None:
        """Animal not found."""
        answer = await shop.ask("GET", "/v1/pets/1")
        assert (answer.status, answer.code) == (404, "not_found")

    async def test_429(self, shop: CheckedShop) -> None:
        """Rate limit exceeded."""
        key, _ = await shop.open_account("a", "enterprise", 1, 1)
        await shop.ask("GET", "/v1/pets", key=key)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429
