"""Specification, "What the service does" and its environments."""

from __future__ import annotations

from pathlib import Path

import pytest

from petstore import config
from petstore.core.errors import ConfigurationError
from tests.api.checks import CheckedShop, open_checked
from tests.support.clock import ManualClock


class TestService:
    """What clients do with it."""

    async def test_http_with_json_bodies(self, shop: CheckedShop) -> None:
        """A JSON body goes in by HTTP, a JSON body comes out."""
        created = await shop.post({"name": "Rex", "categoryId": 1})
        assert created.status == 201
        assert isinstance(created.json(), dict)

    async def test_manages_animals(self, shop: CheckedShop) -> None:
        """What was added is kept, also over a restart."""
        created = await shop.post({"name": "Rex", "categoryId": 1})
        await shop.restart()
        assert (await shop.ask("GET", "/v1/pets")).json() == [created.json()]

    async def test_clients_list_animals(self, shop: CheckedShop) -> None:
        """All of them, or those of one status."""
        for status in ("available", "pending", "sold"):
            await shop.post({"name": status, "categoryId": 1, "status": status})
        assert len((await shop.ask("GET", "/v1/pets")).json()) == 3
        assert [pet["name"] for pet in (await shop.ask("GET", "/v1/pets?status=sold")).json()] == ["sold"]

    async def test_clients_add_an_animal(self, shop: CheckedShop) -> None:
        """By POST /pets."""
        assert (await shop.post({"name": "Rex", "categoryId": 1})).status == 201

    async def test_clients_read_one_animal(self, shop: CheckedShop) -> None:
        """By its identifier, and are told that the operation is deprecated."""
        await shop.post({"name": "Rex", "categoryId": 1})
        answer = await shop.ask("GET", "/v1/pets/1")
        assert answer.json()["name"] == "Rex"
        assert "deprecation" in answer.headers

    async def test_bodies_are_application_json(self, shop: CheckedShop) -> None:
        """Any other request body is refused; every response body is JSON, errors included."""
        headers = [("authorization", f"Bearer {shop.key}"), ("content-type", "text/plain")]
        refused = await shop.call("POST", "/v1/pets", headers, b'{"name":"Rex","categoryId":1}')
        assert refused.status == 415
        answers = [refused, await shop.ask("GET", "/v1/pets"), await shop.ask("GET", "/v1/none")]
        assert {answer.headers["content-type"] for answer in answers} == {"application/json"}


class TestEnvironments:
    """The two base addresses, which the operator fills in."""

    async def _servers(self, folder: Path, clock: ManualClock) -> list[dict[str, str]]:
        urls = {
            "base_url": "https://api.example.com/v1",
            "staging_base_url": "https://staging.example.com/v1",
        }
        async with open_checked(folder, clock, **urls) as shop:
            servers: list[dict[str, str]] = (await shop.call("GET", "/openapi.json")).json()["servers"]
            return servers

    async def test_production(self, tmp_path: Path, clock: ManualClock) -> None:
        """{base_url} is the document's first server."""
        servers = await self._servers(tmp_path, clock)
        assert servers[0] == {"url": "https://api.example.com/v1", "description": "Production"}

    async def test_staging(self, tmp_path: Path, clock: ManualClock) -> None:
        """{staging_base_url} is the second one."""
        servers = await self._servers(tmp_path, clock)
        assert servers[1] == {"url": "https://staging.example.com/v1", "description": "Staging"}

    def test_base_address_ends_with_v1(self) -> None:
        """Any other base address is refused at the start."""
        assert config.load({"PETSTORE_BASE_URL": "https://a.example/x/v1"}).base_url.endswith("/v1")
        for wrong in ("https://a.example", "https://a.example/v2", "https://a.example/v1/"):
            for name in ("PETSTORE_BASE_URL", "PETSTORE_STAGING_BASE_URL"):
                with pytest.raises(ConfigurationError):
                    config.load({name: wrong})

    async def test_paths_are_relative(self, shop: CheckedShop) -> None:
        """The operations are below /v1 and nowhere else."""
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        assert (await shop.ask("GET", "/pets")).status == 404
