"""The search over all pages: what is found first, what odd queries do."""

from __future__ import annotations

import html
import re
from urllib.parse import quote, urljoin

import pytest

from petstore.core.errors import BY_CODE
from petstore.core.events import TYPES
from petstore.site.contents import PAGES
from tests.support import contract
from tests.support.answers import check_error
from tests.support.cases import every_case
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

HTML = [("accept", "text/html")]
_RESULT = re.compile(r'<li><span>.*?</span> <a href="(.*?)">(.*?)</a><p>(.*?)</p></li>')
# Asked for one after the other: more than the budget of searches has at once.
_PAUSE_SECONDS = 0.05


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """One service, whose index is made once."""
    return lasting_shop


async def _page(shop: Shop, query: str) -> str:
    shop.clock.advance(_PAUSE_SECONDS)
    answer = await shop.call("GET", f"/docs/search?q={quote(query)}", HTML)
    assert answer.status == 200, query
    return answer.body.decode()


async def _found(shop: Shop, query: str) -> list[tuple[str, str, str]]:
    """Address, title and text of each result."""
    return [
        (urljoin("/docs/search", address), title, text)
        for address, title, text in _RESULT.findall(await _page(shop, query))
    ]


class TestFirst:
    """What stands at the top."""

    async def test_what_has_a_name_is_found_by_it(self, shop: Shop) -> None:
        """Every code of an error, type of event, operation and schema, at its own entry."""
        document = contract.document()
        operations = [
            each["operationId"]
            for path in document["paths"].values()
            for each in path.values()
            if "operationId" in each
        ]
        wanted = {
            **{code: f"/docs/errors#{code}" for code in BY_CODE},
            **{kind.name: f"/docs/events#{kind.name}" for kind in TYPES},
            **{name: f"/docs/reference#{name}" for name in operations},
            **{str(error.status): f"/docs/errors#{error.status}" for error in BY_CODE.values()},
            "WebhookWithSecret": "/docs/reference#schema-WebhookWithSecret",
        }
        assert {name: (await _found(shop, name))[0][0] for name in wanted} == wanted

    async def test_a_title_counts_more_than_a_text(self, shop: Shop) -> None:
        """A match in a title comes first: in capitals, in the plural, by the beginning of the last word."""
        for query in ("bans", "BAN", "receive webho", "webhooks receive"):
            (address, title, _), *_ = await _found(shop, query)
            assert address == (
                "/docs/guide#bans" if "b" in query[:1].lower() else "/docs/guide#receive-webhooks"
            )
            assert "<mark>" in title

    @pytest.mark.parametrize(
        "name", ["X-RateLimit-Remaining", "Idempotency-Key", "Retry-After", "429", "ETag"]
    )
    async def test_what_stands_in_texts_is_marked(self, shop: Shop, name: str) -> None:
        """Headers and statuses, as they are written; each result has the word, or a name with it."""
        found = await _found(shop, name)
        assert found
        for _, title, text in found:
            assert re.search(f"<mark>[^<]*{name}[^<]*</mark>", f"{title} {text}", re.I)

    async def test_all_words_are_wanted(self, shop: Shop) -> None:
        """They are where some section has them all; else those come that have most."""
        for _, title, text in await _found(shop, "signature verify"):
            marked = {word.lower() for word in re.findall("<mark>(.*?)</mark>", f"{title} {text}")}
            assert marked
        assert (await _found(shop, "nonsenseword paging"))[0][0] == "/docs/guide#paging"

    async def test_each_result_leads_to_its_section(self, shop: Shop) -> None:
        """It does on every page: the anchor exists, and the page has the title."""
        seen = set()
        for query in ("animal", "webhook", "key", "list", "error", "deprecated", "limit"):
            for address, title, _ in await _found(shop, query):
                path, _, anchor = address.partition("#")
                page = (await shop.call("GET", path, HTML)).body.decode()
                assert not anchor or f' id="{html.unescape(anchor)}"' in page, address
                seen.add(path)
                assert re.sub("</?mark>", "", title)
        assert len(seen) >= 6


class TestOddQueries:
    """Characters mean themselves."""

    @every_case(
        "query",
        ['"', "'", '"a', "a OR", "NEAR(", "*", "a*", "-a", "a AND NOT b", "(", "%", "\\", ";--", "\x00",
         "\x1b[2J", "\u202e", "\U0001f43e", "ß", "%ff", "..", "/", "a" * 100, "a " * 50, "{root}",
         "{{ 7 * 7 }}", '"><script>alert(1)</script>'],
    )  # fmt: skip
    async def test_none_is_a_fault(self, shop: Shop, query: str) -> None:
        """There is a page, and what was asked is text in it."""
        page = await _page(shop, query)
        assert page.count('<p role="status">') == 1
        assert "49" not in page or "7" not in query
        assert "<script>alert" not in page
        assert ("&lt;script&gt;alert(1)" in page) == ("script" in query)

    @pytest.mark.parametrize(
        "target", ["?", "", "?q", "?q=", "?q=%20", "?q=a&q=b", "?q=%ff%fe", "?x=1", "?q=a;b&&=&"]
    )
    async def test_nor_is_a_query_that_is_broken(self, shop: Shop, target: str) -> None:
        """Nothing asked for is not an error."""
        assert (await shop.call("GET", f"/docs/search{target}", HTML)).status == 200

    @pytest.mark.parametrize("characters", [101, 7_000])
    async def test_a_long_one_is_refused_with_the_bound(self, shop: Shop, characters: int) -> None:
        """A query over the bound is refused with the bound: as a page for browsers, else as JSON."""
        target = f"/docs/search?q={'a' * characters}"
        answer = await shop.call("GET", target)
        check_error(answer)
        assert (answer.status, answer.code) == (400, "invalid_parameter")
        page = await shop.call("GET", target, HTML)
        assert page.status == 400
        assert b"at most 100 characters" in page.body

    async def test_results_have_the_readers_address(self, shop: Shop) -> None:
        """Results show the API's address as the reader's Host says it, as the pages do."""
        shop.clock.advance(_PAUSE_SECONDS)
        for host in ("one.example", "other.example"):
            page = await shop.call("GET", "/docs/search?q=every+operation+below", [*HTML, ("host", host)])
            assert f"http://{host}/v1" in re.sub("</?mark>", "", page.body.decode())

    async def test_where_nothing_is_found_is_the_way_on(self, shop: Shop) -> None:
        """It says so, and has all pages."""
        page = await _page(shop, "nonsenseword")
        assert "Nothing is found for <q>nonsenseword</q>" in page
        main = page.partition("<main")[2]
        for each in PAGES:
            assert f'<a href="../{each.path}">{each.label}</a>' in main
