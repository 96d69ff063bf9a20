"""Browsers on other origins: nothing by default, the configured origins only, exactly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.service import Shop, open_shop

ORIGIN = "https://shop.example"
PREFLIGHT = [("origin", ORIGIN), ("access-control-request-method", "POST")]
EXPOSED = {
    "Accept-Patch", "Allow", "Date", "Deprecation", "ETag", "Events-Behind", "Idempotency-Replayed", "Link",
    "Location", "Petstore-Rehearsed", "RateLimit", "RateLimit-Policy", "Retry-After", "Sunset",
    "WWW-Authenticate", "X-Environment", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
    "X-Request-Id",
}  # fmt: skip


@pytest.fixture
async def open_to(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """A shop that two origins may call."""
    async with open_shop(tmp_path, clock, cors_origins=f"{ORIGIN}, http://localhost:3000") as shop:
        yield shop


def allowed(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control-")}


async def test_no_header_by_default(shop: Shop) -> None:
    """Answers and preflights have no CORS header by default, and Vary does not name Origin."""
    for method, vary in (("GET", "Accept-Encoding"), ("OPTIONS", None)):
        answer = await shop.ask(method, "/v1/pets", PREFLIGHT)
        assert allowed(answer.headers) == {}
        assert answer.headers.get("vary") == vary


class TestConfigured:
    """Origins in PETSTORE_CORS_ORIGINS."""

    @pytest.mark.parametrize("path", ["/v1/pets", "/v1/pets/1"])
    async def test_a_preflight_is_answered_without_a_key(self, open_to: Shop, path: str) -> None:
        """204 without a key, with methods, headers and an age."""
        answer = await open_to.call("OPTIONS", path, PREFLIGHT)
        assert answer.status == 204
        given = allowed(answer.headers)
        assert given["access-control-allow-origin"] == ORIGIN
        assert given["access-control-allow-methods"] == answer.headers["allow"]
        assert set(given["access-control-allow-headers"].split(", ")) == {
            "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match",
            "Petstore-Rehearse", "X-Request-Id",
        }  # fmt: skip
        assert int(given["access-control-max-age"]) > 0
        assert "access-control-allow-credentials" not in given
        assert answer.headers["vary"] == "Origin"

    @pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:3000"])
    async def test_an_answer_names_the_origin_and_every_header_of_ours(
        self, open_to: Shop, origin: str
    ) -> None:
        """The origin, and every header of ours that a page may read."""
        answer = await open_to.ask("GET", "/v1/pets", [("origin", origin)])
        known = await open_to.ask("GET", "/v1/pets", [("origin", origin), ("if-none-match", "*")])
        assert (answer.status, known.status) == (200, 304)
        for each in (answer, known):
            assert each.headers["access-control-allow-origin"] == origin
            assert set(each.headers["access-control-expose-headers"].split(", ")) == EXPOSED

    async def test_a_page_may_read_every_status(self, open_to: Shop) -> None:
        """A page must be able to read why it was refused."""
        for method, target, headers in (
            ("GET", "/v1/pets", []),
            ("GET", "/v1/pets?" + "x" * 9_000, []),
            ("PUT", "/v1/pets", [("authorization", f"Bearer {open_to.key}")]),
            ("GET", "/v1/none", [("authorization", f"Bearer {open_to.key}")]),
        ):
            answer = await open_to.call(method, target, [("origin", ORIGIN), *headers])
            assert answer.status >= 400
            assert answer.headers["access-control-allow-origin"] == ORIGIN

    @every_case(
        "origin",
        [
            "https://evil.example", "http://shop.example", "https://shop.example:8443",
            "https://shop.example.evil.example", "https://xshop.example", "HTTPS://SHOP.EXAMPLE",
            "https://shop.example/", "null", "*", "", "https://shop.example, https://evil.example", "é",
        ],
    )  # fmt: skip
    async def test_another_origin_may_not_read_the_answer(self, open_to: Shop, origin: str) -> None:
        """It is answered all the same; Vary keeps caches apart."""
        headers = [("origin", origin), ("access-control-request-method", "POST")]
        for method, vary in (("OPTIONS", "Origin"), ("GET", "Origin, Accept-Encoding")):
            answer = await open_to.ask(method, "/v1/pets", headers)
            assert answer.status in (200, 204)
            assert allowed(answer.headers) == {}
            assert answer.headers["vary"] == vary

    async def test_options_without_a_preflight(self, open_to: Shop) -> None:
        """A plain OPTIONS of the page is not a preflight."""
        answer = await open_to.call("OPTIONS", "/v1/pets", [("origin", ORIGIN)])
        assert set(allowed(answer.headers)) == {
            "access-control-allow-origin",
            "access-control-expose-headers",
        }

    async def test_without_an_origin(self, open_to: Shop) -> None:
        """A request that no page makes gets Vary alone."""
        for target, vary in (("/v1/pets", "Origin, Accept-Encoding"), ("/v1/usage", "Origin")):
            answer = await open_to.ask("GET", target)
            assert allowed(answer.headers) == {}
            assert answer.headers["vary"] == vary
