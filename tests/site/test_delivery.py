"""How pages reach a reader: compressed, kept, with the reader's own address, and at what cost."""

from __future__ import annotations

import asyncio
import gzip
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from starlette.requests import Request

from petstore.core.errors import Unavailable
from petstore.core.negotiation import prefers_html, takes_gzip
from petstore.site import reference
from petstore.site.rendered import RenderedPages
from petstore.site.token_bucket import TokenBucket
from petstore.web.addresses import EXAMPLE
from petstore.web.delivery import ChunkMaker, Streamed
from petstore.web.slots import Slots
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.console import BROWSER
from tests.support.server import Server
from tests.support.service import Shop, open_shop, settle
from tests.support.waiting import PATIENCE_SECONDS

CHANGING = ("/", "/docs", "/docs/guide", "/docs/reference", "/openapi.json", "/openapi.yaml")


class TestNegotiation:
    """What the headers of a client mean."""

    @every_case(
        ("accept", "html"),
        [
            (BROWSER[1], True), ("text/html", True), ("Text/HTML; q=0.3", True), ("", False), ("*/*", False),
            ("text/*", False), ("application/json", False), ("text/html;q=0", False),
            ("application/json, text/html", False), ("text/html, application/json", True),
            ("application/json;q=0.9, text/html", True), ("text/html;q=0.5, application/json;q=0.8", False),
            ("text/html;level=1;q=0", False), ("text/html;q=nonsense", True), (",;,q=1;;", False),
        ],
    )  # fmt: skip
    def test_who_reads_html(self, accept: str, html: bool) -> None:
        """Who names text/html, unless application/json weighs more or, with the same weight, comes first."""
        assert prefers_html([accept]) is html

    @every_case(
        ("accept_encoding", "taken"),
        [
            ("gzip", True), ("gzip, deflate, br, zstd", True), ("GZIP;Q=1.0", True), ("*", True), ("", False),
            ("identity", False), ("br", False), ("gzip;q=0", False), ("gzip;q=0.000, *", False),
            ("*;q=0", False), ("identity;q=0.5, gzip", True), ("identity, gzip;q=0.5", False),
        ],
    )  # fmt: skip
    def test_who_takes_gzip(self, accept_encoding: str, taken: bool) -> None:
        """Who does not refuse it (RFC 9110, section 12.5.3) or prefer the plain bytes."""
        assert takes_gzip([accept_encoding]) is taken


GET = {"type": "http", "method": "GET"}


async def three() -> AsyncGenerator[bytes, None]:
    for _ in range(3):
        yield b"chunk"


def streamed(chunks: AsyncGenerator[bytes, None], maker: ChunkMaker | None = None) -> Streamed:
    return Streamed(chunks, {}, "text/csv", maker or ChunkMaker(Slots(ManualClock())))


async def stays() -> Any:
    """A client."""
    await asyncio.Event().wait()


async def takes(_: object) -> None:
    """All that is sent."""


async def _made_when_sent(method: str, receive: Callable[[], Awaitable[Any]]) -> list[int]:
    """How many of the three chunks were made when each message was sent."""
    made, sent = 0, list[int]()

    async def chunks() -> AsyncGenerator[bytes, None]:
        nonlocal made
        async for chunk in three():
            made += 1
            yield chunk

    async def send(_message: object) -> None:
        sent.append(made)

    response = streamed(chunks())
    assert "content-length" not in response.headers
    await response(GET | {"method": method}, receive, send)
    return sent


class TestStreaming:
    """A body that is made while it is sent."""

    @pytest.mark.parametrize(("method", "sent"), [("GET", [0, 1, 2, 3, 3]), ("HEAD", [0, 0])])
    async def test_a_chunk_is_made_when_the_last_was_taken_and_none_for_head(
        self, method: str, sent: list[int]
    ) -> None:
        """A slow reader of a long file costs no memory."""
        assert await _made_when_sent(method, stays) == sent

    async def test_it_stops_when_the_client_goes(self) -> None:
        """What nobody reads is not made."""
        messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

        async def goes() -> Any:
            return messages.pop(0)

        assert await _made_when_sent("GET", goes) == [0, 1]

    async def test_a_page_that_may_not_go_on_is_not_ended_as_a_whole_one(self) -> None:
        """The server ends the connection instead."""
        sent, response = list[Any](), streamed(three())
        response.may_go_on = AsyncMock(side_effect=[True, False])

        async def send(message: Any) -> None:
            sent.append(message)

        await response(GET, stays, send)
        assert [message.get("more_body") for message in sent] == [None, True]

    async def test_what_makes_it_ends_with_it(self) -> None:
        """A streamed answer's generator ends at once when the client goes: its question to the store does not
        stay open until memory is collected."""

        async def goes() -> Any:
            return {"type": "http.disconnect"}

        making = three()
        await anext(making)
        await streamed(making)(GET, goes, takes)
        with pytest.raises(StopAsyncIteration):
            await anext(making)

    async def test_of_many_bodies_one_chunk_is_made_at_a_time(self) -> None:
        """Forty files at once leave the others their time, and one who does not read holds nobody up."""
        at_once, most, maker, stuck = 0, 0, ChunkMaker(Slots(ManualClock())), asyncio.Event()

        async def chunks() -> AsyncGenerator[bytes, None]:
            nonlocal at_once, most
            for _ in range(3):
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(0)
                at_once -= 1
                yield b"chunk"

        async def does_not_read(message: Any) -> None:
            if message["type"] == "http.response.body":
                await stuck.wait()

        responses = [streamed(chunks(), maker) for _ in range(5)]
        slow = asyncio.create_task(responses[0](GET, stays, does_not_read))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(response(GET, stays, takes) for response in responses[1:]))
        assert (most, slow.done()) == (1, False)
        stuck.set()
        await slow


class TestCaching:
    """A page is sent once, and then only when it has changed."""

    @every_case("path", CHANGING)
    async def test_it_is_compressed_and_known_by_its_tag(self, shop: Shop, path: str) -> None:
        """The file has less than half its size for clients that accept gzip. A reader who has it gets 304,
        with the same headers and no body; the compressed and the plain bytes have tags of their own."""
        whole = {}
        for coding in ("gzip", "identity"):
            headers = [BROWSER, ("accept-encoding", coding)]
            answer = whole[coding] = await shop.call("GET", path, headers)
            assert answer.headers["cache-control"] == "no-cache"
            assert "accept-encoding" in answer.headers["vary"]
            tag = answer.headers["etag"]
            for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                again = await shop.call("GET", path, [*headers, ("if-none-match", known)])
                assert (again.status, again.body) == (304, b"")
                for name in ("etag", "vary", "cache-control"):
                    assert again.headers[name] == answer.headers[name]
            assert (await shop.call("GET", path, [*headers, ("if-none-match", '"old"')])).status == 200
        small, plain = whole.values()
        assert small.headers["etag"] != plain.headers["etag"]
        assert "content-encoding" not in plain.headers
        assert small.headers["content-encoding"] == "gzip"
        assert gzip.decompress(small.body) == plain.body
        assert len(small.body) < len(plain.body) / 2

    async def test_static_files_are_kept_for_ever(self, shop: Shop) -> None:
        """Their addresses change with their content, the favicon's does not."""
        page = (await shop.call("GET", "/docs", [BROWSER])).body.decode()
        style = page.partition('<link rel="stylesheet" href="./')[2].partition('"')[0]
        kept = await shop.call("GET", f"/{style}")
        assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
        icon = await shop.call("GET", "/favicon.ico")
        assert icon.headers["content-type"] == "image/svg+xml"
        assert icon.headers["cache-control"] == "no-cache"


class TestRedirects:
    """A slash too many."""

    @every_case(
        ("path", "target"),
        [("/docs/", "../docs"), ("/docs/guide/", "../guide"), ("/docs/errors/", "../errors")],
    )
    async def test_leads_to_the_page(self, shop: Shop, path: str, target: str) -> None:
        """It is a relative reference, which holds behind a proxy's prefix too."""
        answer = await shop.call("GET", path)
        assert (answer.status, answer.headers["location"]) == (308, target)


class TestAddress:
    """The base address in the samples, where none is configured."""

    @staticmethod
    async def shown(shop: Shop, headers: list[tuple[str, str]], client: str = "10.0.0.9") -> str:
        page = await shop.call("GET", "/", [BROWSER, *headers], client=client)
        found: str
        (found,) = set(re.findall("[a-z]+://[^/ ]+(?=/v1/pets)", page.body.decode()))
        return found

    async def test_is_the_readers(self, shop: Shop) -> None:
        """The page shows the address that Host says, or the example's where Host is not a host's name."""
        for host, shown in (
            ("api.shop.example", "http://api.shop.example"), ("[::1]:9000", "http://[::1]:9000"),
            ("API.shop.example:80", "http://api.shop.example:80"), ('"><script>', EXAMPLE), ("a b", EXAMPLE),
        ):  # fmt: skip
            assert await self.shown(shop, [("host", host)]) == shown
        assert await self.shown(shop, [("host", "one"), ("host", "two")]) == EXAMPLE

    async def test_has_the_scheme_that_a_trusted_proxy_names(
        self, tmp_path: Path, clock: ManualClock
    ) -> None:
        """Nobody else's word counts, and no other scheme."""
        secure = [("host", "shop.example"), ("x-forwarded-proto", "https")]
        async with open_shop(tmp_path, clock, trusted_proxies="10.0.0.9/32") as shop:
            assert await self.shown(shop, secure) == "https://shop.example"
            assert await self.shown(shop, secure, client="10.0.0.8") == "http://shop.example"
            other = [("host", "shop.example"), ("x-forwarded-proto", "gopher")]
            assert await self.shown(shop, other) == "http://shop.example"


@pytest.fixture
def source() -> Mock:
    """It stands for the templates."""
    templates = Mock()
    templates.page.side_effect = lambda path: f"{path} at {EXAMPLE}"
    templates.search.side_effect = str
    return templates


def _pages(source: Mock, clock: ManualClock, burst: float, per_second: float = 0) -> RenderedPages:
    budgets = [TokenBucket(clock, burst=burst, per_second=per_second) for _ in range(2)]
    return RenderedPages(lambda: source, {}, "", *budgets)


async def _text(pages: RenderedPages, address: str) -> str:
    answer = (await pages.page("docs", address)).answer(Request({"type": "http", "headers": []}))
    return bytes(answer.body).decode()


class TestCost:
    """What pages cost the process."""

    async def test_rendering_leaves_the_event_loop_free(self, source: Mock, clock: ManualClock) -> None:
        """It takes place in a thread, once for all who wait; the loop runs meanwhile."""
        may_go_on = threading.Event()
        source.page.side_effect = lambda _: str(may_go_on.wait(PATIENCE_SECONDS))
        pages = _pages(source, clock, burst=1)
        asked = [asyncio.create_task(pages.page("docs", "http://a")) for _ in range(5)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(task.done() for task in asked)
        may_go_on.set()
        assert len({id(await task) for task in asked}) == 1
        source.page.assert_called_once()

    async def test_other_pages_do_not_wait_for_the_index(self, source: Mock, clock: ManualClock) -> None:
        """The first search of a process makes it."""
        may_go_on = threading.Event()
        source.search.side_effect = lambda _: str(may_go_on.wait(PATIENCE_SECONDS))
        source.error.return_value = "Nothing"
        pages = _pages(source, clock, burst=1)
        searching = asyncio.create_task(pages.search("limits", ""))
        await settle()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                await pages.page("docs", "")
                assert await pages.error(404, "Nothing", "/nothing") == "Nothing"
            assert not searching.done()
        finally:
            may_go_on.set()
            await searching

    async def test_endless_queries_cost_no_more_than_the_budget(
        self, source: Mock, clock: ManualClock
    ) -> None:
        """Beyond it they are refused, those that are kept are not, which are 32; the budget fills."""
        pages = _pages(source, clock, burst=40, per_second=2)
        for number in range(40):
            await pages.search(f"{number}", "")
        with pytest.raises(Unavailable) as refused:
            await pages.search("0", "")
        assert refused.value.retry_after_seconds == 1
        for number in range(39, 7, -1):
            await pages.search(f"{number}", "")
        assert source.search.call_count == 40
        clock.advance(0.5)
        await pages.search("one more", "")
        assert source.search.call_count == 41

    async def test_invented_hosts_cost_no_more_than_the_budget(
        self, source: Mock, clock: ManualClock
    ) -> None:
        """Beyond it readers see the example's address, and later their own again."""
        pages = _pages(source, clock, burst=3, per_second=2)
        hosts = [f"http://host-{number}" for number in range(1_000)]
        shown = [await _text(pages, host) for host in hosts]
        assert shown[:3] == [f"docs at {host}" for host in hosts[:3]]
        assert set(shown[3:]) == {f"docs at {EXAMPLE}"}
        clock.advance(0.5)
        assert await _text(pages, "http://late") == "docs at http://late"
        assert source.page.call_count == 5

    async def test_the_reference_is_made_once(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reference is made once for all addresses, Markdown and searches: it takes 0.3 s of a thread."""
        read = Mock(wraps=reference.read)
        monkeypatch.setattr(reference, "read", read)
        for path in ("/docs/reference", "/docs/reference.md", "/docs/search?q=retry"):
            for host in ("a", "b"):
                assert (await shop.call("GET", path, [("host", host)])).status == 200
        read.assert_called_once()

    async def test_few_pages_are_kept(self, source: Mock, clock: ManualClock) -> None:
        """The 32 that were asked for last, however many addresses there are."""
        pages = _pages(source, clock, burst=100)
        hosts = [f"http://host-{number}" for number in range(100)]
        for host in hosts:
            await _text(pages, host)
        kept = [host for host in reversed(hosts) if await _text(pages, host) == f"docs at {host}"]
        assert len(kept) in (31, 32)
        assert kept == hosts[: -len(kept) - 1 : -1]


class TestErrors:
    """The pages of errors: for browsers; other clients get JSON (tests/api/test_site.py)."""

    @every_case(
        ("method", "path", "status", "root"),
        [
            ("GET", "/nothing", 404, "./"), ("GET", "/docs/x/y", 404, "../../"), ("GET", "//", 404, "../"),
            ("GET", "/" + 40 * "a/", 404, "/"), ("POST", "/docs", 405, "./"),
            ("PUT", "/docs/guide", 405, "../"),
        ],
    )  # fmt: skip
    async def test_have_the_way_back(
        self, shop: Shop, method: str, path: str, status: int, root: str
    ) -> None:
        """The right status, the strict policy, and relative links to the site's pages."""
        answer = await shop.call(method, path, [BROWSER])
        assert answer.status == status
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["vary"] == "accept"
        assert answer.headers.get("allow") == ("GET, HEAD" if status == 405 else None)
        for target in ("", "docs", "docs/reference"):
            assert f'href="{root}{target}"' in answer.body.decode()

    async def test_what_is_hidden_is_told_there_too(self, shop: Shop) -> None:
        """The metrics, to a stranger's browser."""
        answer = await shop.call("GET", "/metrics", [BROWSER], client="203.0.113.9")
        assert answer.status == 404
        assert b"PETSTORE_OPS_NETWORKS" in answer.body

    async def test_under_the_interface_there_are_none(self, shop: Shop) -> None:
        """Errors of /v1 are JSON whatever a client accepts."""
        answer = await shop.call("GET", "/v1/nothing", [BROWSER])
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.e2e
@pytest.mark.xdist_group("browser")
class TestOverTheWire:
    """The HTTP server is in between."""

    def test_head_has_the_length_of_get_compressed_or_not(self, server: Server) -> None:
        """A program that asks for the size gets the true one."""
        for path in ("/", "/docs/guide", "/docs/reference", "/openapi.json", "/favicon.ico", "/nothing"):
            for coding in ("gzip", "identity"):
                headers = {"Accept": "text/html", "Accept-Encoding": coding}
                head, whole = (server.request(method, path, headers=headers) for method in ("HEAD", "GET"))
                assert (head.status, head.body) == (whole.status, b"")
                assert int(head.headers["content-length"]) == len(whole.body)
