"""The cache of pages: when a page is found, and how much it holds. Over the interface: test_freshness.py."""

from __future__ import annotations

from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.request import Request, read_request
from petstore.api.pipeline.response import make_response
from petstore.http.exchange import Exchange
from tools.exchanges import Wire


def ask(query: bytes) -> Request:
    return read_request(Exchange(Wire(), "GET", b"/v1/pets?" + query, [], ("192.0.2.1", 1)))


def test_nothing_is_found_while_the_version_is_unknown() -> None:
    """A writer is at work: its animal may be committed already."""
    cache, page = PageCache(), make_response(200, b"[]")
    cache.add(ask(b""), 1, page)
    assert [cache.find(ask(b""), version) for version in (1, None, 2)] == [page, None, None]


def test_its_size_is_bounded() -> None:
    """To 2 MiB and one page, whatever clients ask for."""
    cache, page = PageCache(), make_response(200, b"x" * 65_536)
    for number in range(100):
        cache.add(ask(b"limit=%d" % number), 1, page)
        assert len(cache) * 65_536 <= (2 << 20) + 65_536
