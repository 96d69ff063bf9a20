"""Every page of the console in a large store: milliseconds until it is there, and kilobytes over the wire.

The time is a client's on the same machine, over one connection that is kept: the server's own time and the
loopback's. A page comes compressed; what it loads besides is counted once, since browsers keep it.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from urllib.parse import urljoin

import msgspec

from tests.support.console_places import DEAR, PLACES, WITHOUT_SESSION, People, places
from verification.benchmarks.console.data import Size
from verification.benchmarks.console.served import Reader, served

MAX_MS, MAX_KB = 50.0, 100.0
_ROUNDS = 50
_LOADED = re.compile(rb'<(?:link rel="stylesheet" href|script src)="([^"]+)"')


class PageCost(msgspec.Struct):
    """Milliseconds of fifty views by turns; kilobytes (1,000 bytes) of the page, and of a first view."""

    store: str
    page: str
    median_ms: float
    p99_ms: float
    page_kb: float
    first_view_kb: float
    within: bool


def _besides(reader: Reader, target: str) -> float:
    """Kilobytes of the style sheets and scripts of a page."""
    _, _, body = reader.get(target, plain=True)
    loaded = {urljoin(target, address.decode()) for address in _LOADED.findall(body)}
    return sum(reader.get(address)[1] for address in loaded) / 1_000


def _measure(store: str, port: int, people: People, size: Size) -> Iterator[PageCost]:
    readers = {True: Reader(port, people), False: Reader(port)}
    known = {"pet": size.animals // 2, "order": 19, "open_order": 20}
    known |= {"account": 1, "banned_account": 2, "key": 1}
    views = {
        place: readers[path not in WITHOUT_SESSION]
        for path, patterns in {**PLACES, "": (*PLACES[""], *DEAR)}.items()
        for place in places(patterns, people, **known)
    }
    taken: dict[str, list[float]] = {place: [] for place in views}
    besides = {place: _besides(reader, place) for place, reader in views.items()}
    for _ in range(_ROUNDS):
        for place, reader in views.items():
            taken[place].append(reader.get(place)[0])
    for place, times in taken.items():
        median, p99 = statistics.median(times), statistics.quantiles(times, n=100, method="inclusive")[98]
        page = views[place].get(place)[1] / 1_000
        first = page + besides[place]
        within = p99 <= MAX_MS and first <= MAX_KB
        yield PageCost(store, place, median, p99, page, first, within)


def measure(size: Size, stores: list[str]) -> list[PageCost]:
    """Each store after the other."""
    pages: list[PageCost] = []
    for store in stores:
        with served(store, size) as server:
            pages += _measure(store, server.port, server.people, size)
    return pages
