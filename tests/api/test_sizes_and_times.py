"""The application's own limits: target, head, body, the body's deadline; and connections that end early."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from petstore.api.pipeline.request import read_request
from petstore.core.errors import HeadersTooLarge
from petstore.http.exchange import Exchange
from petstore.http.heads import Head
from tests.api.writing import Writing
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.service import Shop, open_shop
from tests.support.waiting import until
from tools.exchanges import Feed, Wire, arriving

KIB = 1_024
GOOD = b'{"name":"Rex","categoryId":1}'
CHUNKED = ("transfer-encoding", "chunked")


def padded(size: int) -> bytes:
    """A good animal with white space up to a size."""
    return GOOD + b" " * (size - len(GOOD))


def pieces(body: bytes, size: int) -> Feed:
    """A body as it arrives: pieces, an empty one after each, then its end."""
    return arriving([piece for at in range(0, len(body), size) for piece in (body[at : at + size], b"")])


def headers(shop: Shop, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {shop.key}"), ("content-type", "application/json"), *more]


def test_nothing_is_kept_of_a_head_that_is_too_large() -> None:
    """It is refused before any limit: a host in a cache would stay there for nothing."""
    host = b"a" * (16 * KIB)
    references = sys.getrefcount(host)
    request = read_request(
        Exchange(Wire(), "GET", b"/v1/pets", b"", Head([(b"host", host)]), ("192.0.2.1", 1))
    )
    with pytest.raises(HeadersTooLarge):
        request.check_head()
    del request
    assert sys.getrefcount(host) == references


class TestBodySize:
    """64 KiB, declared or not, in one piece or many."""

    @every_case(
        ("length", "piece"),
        [
            *((("content-length", "65536"), piece) for piece in (97, 1_000, 100 * KIB)),
            *((("content-length", "10"), piece) for piece in (97, 1_000, 64 * KIB, 100 * KIB)),
            *((CHUNKED, piece) for piece in (97, 1_000, 64 * KIB, 100 * KIB)),
        ],
    )
    async def test_one_byte_over(self, writing: Writing, length: tuple[str, str], piece: int) -> None:
        """65,537 bytes are refused, whatever was declared, although they would be a good animal; 65,536 are
        read."""
        await writing.shop.patch(1, {"name": "Mia"})  # the last case has made it what they say
        before = writing.shop.fingerprint()
        answer = await writing.send_json(pieces(padded(64 * KIB + 1), piece), length)
        assert (answer.status, answer.code) == (413, "payload_too_large")
        assert writing.shop.fingerprint() == before
        assert (await writing.send_json(pieces(padded(64 * KIB), piece), length)).status == writing.status

    async def test_declared_too_large_is_refused_unread(self, writing: Writing) -> None:
        """A body that is declared too large is refused before the service asks for a byte."""
        answer = await writing.send_json(arriving([], ends=False), ("content-length", "65537"))
        assert (answer.status, answer.code) == (413, "payload_too_large")

    async def test_an_endless_body_is_cut(self, writing: Writing) -> None:
        """Reading ends with the byte that is too many, not with the body."""
        shop = writing.shop
        answer = await shop.stall(writing.method, writing.path, headers(shop), [b" " * KIB] * 65)
        assert answer.status == 413


class TestTarget:
    """8 KiB of path and query."""

    async def test_one_byte_over(self, shop: Shop) -> None:
        """8,193 bytes are 414, in the query and in the path; 8,192 are looked at."""
        query, path = "/v1/pets?" + "x" * (8 * KIB - 8), "/v1/pets/" + "1" * (8 * KIB - 9)
        for target, status in ((query, 400), (path, 404)):
            assert (await shop.ask("GET", target)).status == status
            answer = await shop.ask("GET", f"{target}1")
            assert (answer.status, answer.code) == (414, "uri_too_long")

    async def test_a_batch_of_100_identifiers_fits(self, shop: Shop) -> None:
        """The longest identifiers, with cursor and filter."""
        query = "&".join(f"id={2**63 - 1 - n}" for n in range(100))
        assert (await shop.ask("GET", f"/v1/pets?limit=100&status=available&{query}")).status == 200


class TestHead:
    """16 KiB of request line and headers."""

    @staticmethod
    def filler(shop: Shop, size: int) -> list[tuple[str, str]]:
        """A header that brings the head to a size, counted as it stands on the wire."""
        sent = [("host", "testserver"), ("authorization", f"Bearer {shop.key}"), ("x-filler", "")]
        head = len("/v1/pets") + sum(len(name) + len(value) + 4 for name, value in sent)
        return [("x-filler", "x" * (size - head))]

    async def test_one_byte_over(self, shop: Shop) -> None:
        """16,385 bytes are 431; 16,384 are read."""
        assert (await shop.ask("GET", "/v1/pets", self.filler(shop, 16 * KIB))).status == 200
        answer = await shop.ask("GET", "/v1/pets", self.filler(shop, 16 * KIB + 1))
        assert (answer.status, answer.code) == (431, "headers_too_large")

    async def test_many_small_headers(self, shop: Shop) -> None:
        """Lines count with their separators."""
        assert (await shop.ask("GET", "/v1/pets", [("a", "")] * 4_000)).status == 431


@every_case("host", ["testserver", "shop.example:8080", "127.0.0.1:80", "[::1]", "[::1]:8080", "a:"])
async def test_a_host_is_accepted(shop: Shop, host: str) -> None:
    """Names, IPv4 addresses and IPv6 literals, with or without a port."""
    assert (await shop.ask("GET", "/v1/pets", [("host", host)])).status == 200


class TestDeadline408:
    """The whole body within the deadline."""

    @pytest.fixture
    async def hasty(self, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
        """A shop that waits 20 milliseconds."""
        async with open_shop(tmp_path, clock, body_timeout="20ms") as shop:
            yield shop

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/v1/pets"),
            ("PATCH", "/v1/pets/1"),
            ("POST", "/v1/store/orders"),
            ("POST", "/v1/webhooks"),
        ],
    )
    @every_case("sent", [[], [b""], [b"{"], [GOOD], [GOOD[:5], GOOD[5:]]])
    async def test_a_body_that_stops(self, hasty: Shop, sent: list[bytes], method: str, path: str) -> None:
        """Nothing is stored, also when everything but the end has come."""
        await hasty.post({"name": "Mia", "categoryId": 2})
        before = hasty.fingerprint()
        answer = await hasty.stall(method, path, headers(hasty), sent)
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert "0.02 seconds" in answer.json()["message"]
        assert hasty.fingerprint() == before

    async def test_it_is_one_deadline_for_all_pieces(self, hasty: Shop) -> None:
        """A byte now and then does not buy time."""

        async def drip(exchange: Exchange) -> None:
            for _ in range(100):
                exchange.feed(b" ")
                await later(0.002)
            exchange.complete()

        async def later(seconds: float) -> None:
            time = asyncio.get_running_loop().time
            end = time() + seconds
            await until(lambda: time() > end)

        answer = await hasty.call("POST", "/v1/pets", headers(hasty), drip)
        assert (answer.status, answer.code) == (408, "request_timeout")

    async def test_others_are_carried_out_without_their_bodies(self, hasty: Shop) -> None:
        """Whatever those are, and however large: they are discarded (tests/http/test_unread.py)."""
        await hasty.post({"name": "Mia", "categoryId": 2})
        sent = [
            ("authorization", f"Bearer {hasty.key}"),
            ("content-length", "99999999"),
            ("content-type", "x/y"),
        ]
        for method, status in (("GET", 200), ("HEAD", 200), ("OPTIONS", 204), ("DELETE", 204)):
            assert (await hasty.stall(method, "/v1/pets/1", sent, [b"{"])).status == status


@every_case("cut", range(0, len(GOOD) + 1, 4))
async def test_a_client_that_leaves_stores_nothing(writing: Writing, cut: int) -> None:
    """Wherever it stops, also when all bytes have come and only the end has not."""
    before = writing.shop.fingerprint()
    answer = await writing.send_json(arriving([GOOD[:cut]], leaves=True))
    assert (answer.status, answer.code) == (400, "invalid_body")
    assert writing.shop.fingerprint() == before
