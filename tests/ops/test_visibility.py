"""Health and metrics over the interface, and who may see what of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from petstore.ops import build
from tests.support.answers import check_error
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.service import Shop, open_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

OUTSIDE = "203.0.113.9"


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """No request of these tests changes anything."""
    return lasting_shop


class TestHealth:
    """Whether the process lives, and whether it can serve."""

    async def test_healthz_is_for_everybody_and_says_nothing_of_the_store(self, shop: Shop) -> None:
        """A load balancer needs no more, and strangers learn nothing."""
        answer = await shop.call("GET", "/healthz", client=OUTSIDE)
        assert (answer.status, answer.json()) == (200, {"status": "ok"})

    async def test_readyz_shows_its_checks_to_operators_networks_only(self, shop: Shop) -> None:
        """The status for everybody, the checks for the operator's networks only."""
        near, far = [await shop.call("GET", "/readyz", client=client) for client in ("127.0.0.1", OUTSIDE)]
        assert (near.status, far.status) == (200, 200)
        assert near.json() == {
            "status": "ready",
            "checks": {"store": "ok", "saving": "ok", "accepting": "ok"},
        }
        assert far.json() == {"status": "ready"}

    async def test_not_ready_while_draining(self, tmp_path: Path, clock: ManualClock) -> None:
        """Readiness fails first, so that no more traffic is sent here."""
        async with open_shop(tmp_path, clock) as shop:
            shop.application.service.begin_drain()
            answer = await shop.call("GET", "/readyz")
            assert (answer.status, answer.json()["status"]) == (503, "not ready")
            assert (await shop.call("GET", "/healthz")).status == 200


async def test_metrics_of_what_is_counted(tmp_path: Path, clock: ManualClock) -> None:
    """Requests by operation and status, refusals by window, latency, store timings, build."""
    async with open_shop(tmp_path, clock) as shop:
        key, _ = await shop.open_account("a", "enterprise", 1, 99)
        await shop.post({"name": "n", "categoryId": 1})
        for _ in range(2):
            await shop.ask("GET", "/v1/pets", key=key)
        await shop.ask("GET", "/v1/none")
        text = (await shop.call("GET", "/metrics")).body.decode()
    for line in (
        'petstore_requests_total{operation="createPet",status="201"} 1.0',
        'petstore_requests_total{operation="listPets",status="429"} 1.0',
        'petstore_requests_total{operation="none",status="404"} 1.0',
        'petstore_refusals_total{window="minute"} 1.0',
        'petstore_request_seconds_count{class="2xx",operation="listPets"} 1.0',
        'petstore_request_seconds_count{class="4xx",operation="listPets"} 1.0',
        "petstore_store_writes_total",
        f'petstore_build_info{{commit="{build.commit()}",python="',
    ):
        assert line in text


class TestOperatorsOnly:
    """Who may see /metrics and the details of /readyz."""

    @staticmethod
    async def sees(shop: Shop, client: str, forwarded: str | None = None) -> bool:
        headers = [] if forwarded is None else [("x-forwarded-for", forwarded)]
        metrics = await shop.call("GET", "/metrics", headers, client=client)
        ready = await shop.call("GET", "/readyz", headers, client=client)
        assert ("checks" in ready.json()) == (metrics.status == 200)
        if metrics.status != 200:
            assert (metrics.status, metrics.code) == (404, "not_found")
            check_error(metrics)
        return metrics.status == 200

    @every_case(
        ("client", "seen"),
        [
            ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
            (OUTSIDE, False), ("10.0.0.1", False), ("::2", False), ("", False), ("unix", False),
        ],
    )  # fmt: skip
    async def test_by_default_the_loopback_is_the_only_operators_network(
        self, shop: Shop, client: str, seen: bool
    ) -> None:
        """Nobody else reads metrics until an operator names a network."""
        assert await self.sees(shop, client) is seen

    async def test_behind_a_proxy_that_nobody_vouches_for(self, shop: Shop) -> None:
        """A forwarded request from this machine may be anybody's."""
        for forwarded in ("127.0.0.1", OUTSIDE, "", "::1, 127.0.0.1"):
            assert await self.sees(shop, "127.0.0.1", forwarded) is (forwarded == "")

    async def test_behind_a_trusted_proxy(self, tmp_path: Path, clock: ManualClock) -> None:
        """The right-most untrusted hop decides; what the client wrote itself does not."""
        settings = {"trusted_proxies": "127.0.0.1/32", "ops_networks": "10.1.0.0/16"}
        async with open_shop(tmp_path, clock, **settings) as shop:
            assert await self.sees(shop, "127.0.0.1", "10.1.2.3")
            assert not await self.sees(shop, "127.0.0.1", "10.1.2.3, 203.0.113.9")
            assert not await self.sees(shop, "127.0.0.1", OUTSIDE)
            assert not await self.sees(shop, "127.0.0.1")
            assert not await self.sees(shop, OUTSIDE, "10.1.2.3")
            assert not await self.sees(shop, "127.0.0.1", "unknown")
            assert await self.sees(shop, "10.1.9.9")

    @pytest.fixture
    async def named(self, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
        """A shop with names of its own."""
        hosts = "petstore.petstore.svc.cluster.local"
        base_url = "https://api.shop.example/v1"
        async with open_shop(tmp_path, clock, base_url=base_url, ops_hosts=hosts) as shop:
            yield shop

    @every_case(
        ("host", "is_shown"),
        [
            ("127.0.0.1:8080", True), ("10.1.2.3:8080", True), ("[::1]:8080", True), ("localhost:8080", True),
            ("petstore", True), ("", True), ("api.shop.example", True), ("API.shop.example:443", True),
            ("petstore.petstore.svc.cluster.local:8080", True),
            ("evil.example", False), ("evil.example:8080", False), ("127.0.0.1.evil.example", False),
            ("localhost.evil.example", False), ("localhost.", False), ("xapi.shop.example", False),
        ],
    )  # fmt: skip
    async def test_a_page_that_rebinds_its_name_is_a_stranger(
        self, named: Shop, host: str, is_shown: bool
    ) -> None:
        """A browser on the operator's machine asks for it from there, with the page's own name as Host."""
        metrics = await named.call("GET", "/metrics", [("host", host)])
        ready = await named.call("GET", "/readyz", [("host", host)])
        assert metrics.status == (200 if is_shown else 404)
        assert ready.status == 200
        assert ("checks" in ready.json()) is is_shown

    async def test_two_hosts_are_none(self, shop: Shop) -> None:
        """Nobody can say which of them a proxy has looked at."""
        answer = await shop.call("GET", "/metrics", [("host", "localhost"), ("host", "localhost")])
        assert answer.status == 404
