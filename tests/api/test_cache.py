"""The cache of pages: when a page is found, and how much it holds. Over the interface: test_freshness.py."""

from __future__ import annotations

import gzip
import random

from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.request import Request, read_request
from petstore.api.pipeline.response import Response, make_page, make_response
from petstore.http.exchange import Exchange
from petstore.http.heads import Head
from tools.exchanges import Wire


def ask(query: bytes, **headers: bytes) -> Request:
    pairs = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return read_request(Exchange(Wire(), "GET", b"/v1/pets", query, Head(pairs), ("192.0.2.1", 1)))


def find(cache: PageCache, query: bytes, version: int) -> Response | None:
    """What a client that takes gzip is given."""
    return cache.find(ask(query, accept_encoding=b"gzip"), version)


def test_nothing_is_found_while_the_version_is_unknown() -> None:
    """A writer is at work: its animal may be committed already."""
    cache, page = PageCache(), make_response(200, b"[]")
    cache.add(ask(b""), 1, page)
    assert [cache.find(ask(b""), version) for version in (1, None, 2)] == [page, None, None]


def test_its_size_is_bounded() -> None:
    """The cache holds at most 2 MiB and one page, whatever clients ask for."""
    cache, page = PageCache(), make_response(200, b"x" * 65_536)
    for number in range(100):
        cache.add(ask(b"limit=%d" % number), 1, page)
        assert len(cache) * 65_536 <= (2 << 20) + 65_536


def test_gzip_comes_with_the_second_hit_and_goes_with_the_page() -> None:
    """What is asked for twice, or is up to 1 KiB long, is not worth it; each page is compressed once."""
    cache, page, small = (PageCache(), *(make_page(b"x" * size, b'"a"') for size in (1_025, 1_024)))
    for version in (1, 2):
        cache.add(ask(b""), version, page)
        cache.add(ask(b"limit=1"), version, small)
        assert [cache.find(ask(b""), version) for _ in range(3)] == [page] * 3
        assert find(cache, b"", version) is page
        compressed = find(cache, b"", version)
        assert compressed is not None
        assert gzip.decompress(compressed.body or b"") == page.body
        assert find(cache, b"", version) is compressed
        assert cache.find(ask(b"", accept_encoding=b"br"), version) is page
        assert [find(cache, b"limit=1", version) for _ in range(3)] == [small] * 3
        assert find(cache, b"", version + 1) is None


def test_what_is_in_gzip_counts() -> None:
    """2 MiB and one page bound plain and compressed ones together: the rest stay plain."""
    cache, size, plain = PageCache(), 65_536, 20
    for number in range(plain):  # of bytes that gzip can't shorten
        page = make_page(random.Random(number).randbytes(size), b'"a"')
        cache.add(ask(b"limit=%d" % number), 1, page)
    for _ in range(2):
        found = [find(cache, b"limit=%d" % number, 1) for number in range(plain)]
    compressed = sum((b"content-encoding", b"gzip") in page.headers for page in found if page is not None)
    assert compressed > 0
    assert (plain + compressed) * size <= (2 << 20) + size
