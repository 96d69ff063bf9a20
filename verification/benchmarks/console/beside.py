"""What `GET /v1/pets` waits for while eight readers fetch a page of the console or the site without pause.

A client asks for the list at a fixed, modest rate, and does not wait for answers before it asks again. It and
the readers are one process on the load's core: `python -m …console.beside PORT SECONDS ASKED`.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec
import uvloop

from petstore.core.limits.plans import QUOTA_MAX
from tests.support.server import issue_key
from verification.benchmarks.console.data import Size
from verification.benchmarks.console.served import served
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.client import Connection
from verification.benchmarks.load.closed import pin
from verification.benchmarks.machine import ROOT
from verification.benchmarks.report import Row

_READERS = 8
_PER_SECOND = 200
_CONNECTIONS = 16
_WARM_UP_SECONDS = 0.3
_NOBODY = "nobody"
_PAGES = (
    "/console", "/console/pets", "/console/pets?q=bella", "/console/pets/500", "/console/orders",
    "/console/accounts", "/console/accounts/1", "/console/categories", "/console/stock", "/console/bans",
    "/console/billing?month=2026-10", "/console/journal", "/console/service", "/console/people",
    "/console/me", "/docs", "/docs/nothing", "/openapi.json",
)  # fmt: skip


class Asked(msgspec.Struct, frozen=True):
    """What the client and the readers send. `page` is None where nobody reads."""

    key: str
    token: str
    page: str | None


class Heard(msgspec.Struct, frozen=True):
    """Seconds of each list, how many pages were read, and how many answers were not 200 (or 404)."""

    waits: list[float]
    pages: int
    unexpected: int


class _Beside:
    """One turn."""

    def __init__(self, asked: Asked) -> None:
        self._list = _request("/v1/pets", f"Authorization: Bearer {asked.key}")
        cookie = f"Cookie: petstore-session={asked.token}"
        self._page = _request(asked.page or "", cookie, "Accept: text/html", "Accept-Encoding: gzip")
        self._is_read = asked.page is not None
        self._waits: list[float] = []
        self._pages = self._unexpected = 0
        self._is_over = False

    async def run(self, port: int, seconds: float) -> Heard:
        lists = [await _connect(port, self._list_came) for _ in range(_CONNECTIONS)]
        readers = [await _connect(port, self._page_came) for _ in range(_READERS if self._is_read else 0)]
        self._readers = readers
        for number, reader in enumerate(readers):
            reader.send(self._page, number)
        began = time.perf_counter()
        for number in range(round(seconds * _PER_SECOND)):
            await asyncio.sleep(began + number / _PER_SECOND - time.perf_counter())
            lists[number % len(lists)].send(self._list, time.perf_counter())
        self._is_over = True
        while any(connection.waiting for connection in (*lists, *readers)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for connection in (*lists, *readers):
            connection.close()
        return Heard(self._waits, self._pages, self._unexpected)

    def _list_came(self, sent: float, status: int) -> None:
        self._waits.append(time.perf_counter() - sent)
        self._unexpected += status != 200

    def _page_came(self, number: float, status: int) -> None:
        self._pages += 1
        self._unexpected += status not in (200, 404)
        if not self._is_over:
            self._readers[int(number)].send(self._page, number)


def _request(target: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", "Host: 127.0.0.1", *headers, "", "")).encode("ascii")


async def _connect(port: int, came: Callable[[float, int], None]) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(came), "127.0.0.1", port)
    return connection


def _turn(port: int, seconds: float, asked: Asked) -> Heard:
    """In a process of its own. Raises RuntimeError when an answer is not what it should be."""
    command = [sys.executable, "-m", "verification.benchmarks.console.beside", str(port), str(seconds)]
    command.append(msgspec.json.encode(asked).decode())
    done = subprocess.run(command, capture_output=True, check=True, preexec_fn=pin, cwd=ROOT)
    heard = msgspec.json.decode(done.stdout, type=Heard)
    if heard.unexpected:
        raise RuntimeError(f"{heard.unexpected} answers beside {asked.page} were refusals")
    return heard


def measure(size: Size, stores: list[str], plan: Plan, say: Callable[[str], None]) -> list[Row]:
    """The 99th percentile of the list's time beside each page, in milliseconds; the pages by turns."""
    return [row for store in stores for row in _measure(size, store, plan, say)]


def _measure(size: Size, store: str, plan: Plan, say: Callable[[str], None]) -> list[Row]:
    heard: dict[str, list[Heard]] = {page: [] for page in (_NOBODY, *_PAGES)}
    with served(store, size, say) as server:
        key = issue_key(server.url, "bench", per_minute=QUOTA_MAX, per_day=QUOTA_MAX)

        def turn(page: str, seconds: float) -> Heard:
            return _turn(
                server.port, seconds, Asked(key, server.people.token, page if page != _NOBODY else None)
            )

        for page in heard:  # templates are compiled, and caches filled
            turn(page, _WARM_UP_SECONDS)
        for _ in range(plan.rounds):
            for page, taken in heard.items():
                taken.append(turn(page, plan.seconds))
    waits = {page: _milliseconds(taken) for page, taken in heard.items()}
    rows = []
    for page, taken in heard.items():
        median, p99 = waits[page][49], waits[page][98]
        pages = sum(each.pages for each in taken) / (plan.rounds * plan.seconds)
        say(f"{store} {page}: median {median:.2f} ms, p99 {p99:.2f} ms, {pages:.0f} pages/s")
        rows.append(Row(f"beside, {store}", page, p99, "ms", p99 / waits[_NOBODY][98], _NOBODY))
    return rows


def _milliseconds(taken: list[Heard]) -> list[float]:
    """The percentiles from 1 to 99."""
    waits = [wait * 1_000 for each in taken for wait in each.waits]
    return statistics.quantiles(waits, n=100, method="inclusive")


if __name__ == "__main__":
    port_text, seconds_text, asked_text = sys.argv[1:]
    asked = msgspec.json.decode(asked_text, type=Asked)
    print(msgspec.json.encode(uvloop.run(_Beside(asked).run(int(port_text), float(seconds_text)))).decode())
