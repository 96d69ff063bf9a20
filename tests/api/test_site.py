"""Everything outside /v1: pages, documents, health and metrics, and who may see what."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
import yaml

from petstore.ops import build
from tests.support.answers import check_error
from tests.support.clock import ManualClock
from tests.support.service import Answer, Shop, open_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """Pages are the same for all tests: one service renders them."""
    return lasting_shop


PAGES = ["/", "/docs", "/docs/reference", "/docs/errors"]
DOCUMENTS = ["/openapi.json", "/openapi.yaml"]
OPS = ["/healthz", "/readyz", "/metrics"]
OUTSIDE = "203.0.113.9"
HTML = [("accept", "text/html,application/xhtml+xml")]


def is_html(answer: Answer) -> bool:
    return answer.headers["content-type"].startswith("text/html")


async def test_the_start_page_for_browsers(shop: Shop) -> None:
    """A page with the way to the reference, the documents, the console and a first request."""
    answer = await shop.call("GET", "/", HTML)
    assert answer.status == 200
    assert is_html(answer)
    text = answer.body.decode()
    targets = {urljoin("/", reference) for reference in re.findall('href="([^"#]+)"', text)}
    assert {"/docs/reference", "/openapi.json", "/openapi.yaml", "/docs/deprecation", "/console"} <= targets
    assert "/v1/pets" in text
    for target in targets - {"/console"}:
        assert (await shop.call("GET", target)).status == 200


async def test_a_console_that_is_not_served_is_not_named(tmp_path: Path, clock: ManualClock) -> None:
    """Nobody is led to what is not there."""
    async with open_shop(tmp_path, clock, console="off") as shop:
        answer = await shop.call("GET", "/", HTML)
    assert answer.status == 200
    assert b"console" not in answer.body


class TestStaticFiles:
    """Scripts, styles and pictures of the pages."""

    @pytest.mark.parametrize("path", PAGES)
    async def test_everything_is_served_from_here(self, shop: Shop, path: str) -> None:
        """Every script, style and picture of a page is a path of this service that answers."""
        text = (await shop.call("GET", path, HTML)).body.decode()
        wanted = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', text)
        assert wanted
        for reference in wanted:
            target = urljoin(path, reference)
            assert target.startswith("/static/")
            assert (await shop.call("GET", target)).status == 200
        assert not re.search(r"<script(?![^>]*src=)", text)

    async def test_static_files_stay_in_their_folder(self, shop: Shop) -> None:
        """No way up."""
        for path in (
            "/static/../pages.py",
            "/static/%2e%2e/pages.py",
            "/static//etc/passwd",
            "/static/nothing.css",
            "/static/",
            "/static/..",
        ):
            assert (await shop.call("GET", path)).status == 404

    async def test_the_deprecation_page_names_the_date(self, tmp_path: Path, clock: ManualClock) -> None:
        """The configured one."""
        async with open_shop(tmp_path, clock, removal_date="2031-06-01") as shop:
            assert b"1 June 2031" in (await shop.call("GET", "/docs/deprecation")).body


class TestDocuments:
    """The contract in both notations."""

    async def test_both_say_the_same(self, shop: Shop) -> None:
        """JSON and YAML are one document."""
        as_json = await shop.call("GET", "/openapi.json")
        as_yaml = await shop.call("GET", "/openapi.yaml")
        assert as_json.headers["content-type"].startswith("application/json")
        assert as_yaml.headers["content-type"].startswith("application/yaml")
        assert as_json.json() == yaml.safe_load(as_yaml.body)

    @pytest.mark.parametrize(
        ("settings", "url", "documentation"),
        [
            ({}, "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/docs"),
            ({"host": "::1", "port": "81"}, "http://[::1]:81/v1", "http://[::1]:81/docs"),
            ({"host": "0.0.0.0"}, "/v1", None),
            ({"base_url": "https://a.example/shop/v1"}, "https://a.example/shop/v1", "https://a.example/shop/docs"),
        ],
        ids=["default", "ipv6", "wildcard", "prefix"],
    )  # fmt: skip
    async def test_its_addresses(
        self,
        tmp_path: Path,
        clock: ManualClock,
        settings: dict[str, str],
        url: str,
        documentation: str | None,
    ) -> None:
        """Absolute where the service can know them, as generated clients and linters need; else a path."""
        async with open_shop(tmp_path, clock, **settings) as shop:
            document = (await shop.call("GET", "/openapi.json")).json()
        assert [server["url"] for server in document["servers"]] == [url]
        assert document.get("externalDocs", {}).get("url") == documentation
        assert document["info"]["contact"].get("url") == documentation

    async def test_the_configured_servers(self, tmp_path: Path, clock: ManualClock) -> None:
        """Production and staging, as the specification's table of environments has them."""
        urls = {
            "base_url": "https://api.example.com/v1",
            "staging_base_url": "https://staging.example.com/v1",
        }
        async with open_shop(tmp_path, clock, **urls) as shop:
            servers = (await shop.call("GET", "/openapi.json")).json()["servers"]
            assert servers == [
                {"url": urls["base_url"], "description": "Production"},
                {"url": urls["staging_base_url"], "description": "Staging"},
            ]
            start = await shop.call("GET", "/", HTML)
            assert b"https://api.example.com/v1/pets" in start.body

    async def test_tools_on_other_origins_may_read_them(self, shop: Shop) -> None:
        """The document holds nothing secret."""
        for path in DOCUMENTS:
            assert (await shop.call("GET", path)).headers["access-control-allow-origin"] == "*"


class TestHealth:
    """Whether the process lives, and whether it can serve."""

    async def test_alive(self, shop: Shop) -> None:
        """For everybody, without a word about the store."""
        answer = await shop.call("GET", "/healthz", client=OUTSIDE)
        assert (answer.status, answer.json()) == (200, {"status": "ok"})

    async def test_ready(self, shop: Shop) -> None:
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

    @pytest.mark.parametrize(
        ("client", "seen"),
        [
            ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
            (OUTSIDE, False), ("10.0.0.1", False), ("::2", False), ("", False), ("unix", False),
        ],
    )  # fmt: skip
    async def test_loopback_by_default(self, shop: Shop, client: str, seen: bool) -> None:
        """And nobody else."""
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

    @pytest.mark.parametrize(
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
        self, tmp_path: Path, clock: ManualClock, host: str, is_shown: bool
    ) -> None:
        """A browser on the operator's machine asks for it from there, with the page's own name as Host."""
        settings = {
            "base_url": "https://api.shop.example/v1",
            "ops_hosts": "petstore.petstore.svc.cluster.local",
        }
        async with open_shop(tmp_path, clock, **settings) as shop:
            metrics = await shop.call("GET", "/metrics", [("host", host)])
            ready = await shop.call("GET", "/readyz", [("host", host)])
            assert metrics.status == (200 if is_shown else 404)
            assert ready.status == 200
            assert ("checks" in ready.json()) is is_shown

    async def test_two_hosts_are_none(self, shop: Shop) -> None:
        """Nobody can say which of them a proxy has looked at."""
        answer = await shop.call("GET", "/metrics", [("host", "localhost"), ("host", "localhost")])
        assert answer.status == 404


_NOTHING = [
    "/nothing", "/doc", "/docs/x", "/openapi", "/openapi.yml", "/metrics/x", "/V1/pets", "/v2", "/.env", "//",
    "/.git/config", "/static", "/%2e%2e/etc/passwd", "/\xff", "/docs/x/", "/healthz/",
    "/openapi.json/",
]  # fmt: skip


class TestErrors:
    """The Error body outside /v1 too."""

    @pytest.mark.parametrize("path", _NOTHING)
    async def test_404(self, shop: Shop, path: str) -> None:
        """Unknown paths, with or without a slash at their end: never a redirect."""
        answer = await shop.call("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")
        check_error(answer)
        assert "location" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize("path", [*PAGES, *DOCUMENTS, *OPS])
    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO"])
    async def test_405(self, shop: Shop, path: str, method: str) -> None:
        """Pages and documents are read only."""
        answer = await shop.call(method, path)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        check_error(answer)
        assert answer.headers["allow"] == "GET, HEAD"

    @pytest.mark.parametrize("path", [*PAGES, *DOCUMENTS, *OPS])
    async def test_head(self, shop: Shop, path: str) -> None:
        """HEAD wherever GET is, with the same headers; the HTTP server leaves the body out."""
        head, whole = await shop.call("HEAD", path), await shop.call("GET", path)
        assert head.status == 200
        assert head.headers.keys() == whole.headers.keys()

    async def test_the_site_needs_no_key_and_costs_nothing(self, shop: Shop) -> None:
        """Limits are the interface's."""
        key, _ = await shop.open_account("a", "free")
        for path in (*PAGES, *DOCUMENTS, *OPS):
            answer = await shop.ask("GET", path, key=key)
            assert answer.status == 200
            assert "x-ratelimit-limit" not in answer.headers
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "59"

    async def test_no_server_version(self, shop: Shop) -> None:
        """Nothing says what runs here."""
        for path in (*PAGES, *DOCUMENTS, *OPS, "/nothing"):
            headers = (await shop.call("GET", path)).headers
            assert not {"server", "x-powered-by", "via"} & set(headers)
