"""What `GET /v1/pets` waits for while eight readers fetch a page of the console or the site without pause.

A client asks for the list at a fixed, modest rate, and does not wait for answers before it asks again. It and
the readers are one process on the load's core.
"""

from __future__ import annotations

import statistics

from petstore.core.limits.plans import QUOTA_MAX
from tests.support.server import issue_key
from verification.benchmarks.console.data import Size
from verification.benchmarks.console.served import served
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.closed import Load
from verification.benchmarks.load.open_loop import open_loop
from verification.benchmarks.report import Row

_READERS = 8
_PER_SECOND = 200
_WARM_UP_SECONDS = 0.3
_NOBODY = "nobody"
_MISSING = "/docs/nothing"
_PAGES = (
    "/console", "/console/pets", "/console/pets?q=bella", "/console/pets/500", "/console/orders",
    "/console/accounts", "/console/accounts/1", "/console/categories", "/console/stock", "/console/bans",
    "/console/billing?month=2026-10", "/console/journal", "/console/service", "/console/people",
    "/console/me", "/docs", _MISSING, "/openapi.json",
)  # fmt: skip


def measure(size: Size, stores: list[str], plan: Plan) -> list[Row]:
    """The 99th percentile of the list's time beside each page, in milliseconds; the pages by turns."""
    return [row for store in stores for row in _measure(size, store, plan)]


def _measure(size: Size, store: str, plan: Plan) -> list[Row]:
    with served(store, size) as server:
        key = issue_key(server.url, "bench", per_minute=QUOTA_MAX, per_day=QUOTA_MAX)
        lists = Load((f"/v1/pets {key}",), connections=16)
        headers = (
            f"Cookie: petstore-session={server.people.token}",
            "Accept: text/html",
            "Accept-Encoding: gzip",
        )

        def turn(page: str, seconds: float) -> dict[str, float]:
            expect = 404 if page == _MISSING else 200
            readers = Load((page,), connections=_READERS, expect=expect, headers=headers)
            beside = None if page == _NOBODY else readers
            return open_loop(server.port, seconds, _PER_SECOND, lists, beside).percentiles

        taken: dict[str, list[dict[str, float]]] = {page: [] for page in (_NOBODY, *_PAGES)}
        for page in taken:  # templates are compiled, and caches filled
            turn(page, _WARM_UP_SECONDS)
        for _ in range(plan.rounds):
            for page, turns in taken.items():
                turns.append(turn(page, plan.seconds))
    p99 = {page: statistics.median(each["p99"] for each in turns) for page, turns in taken.items()}
    return [
        Row(f"beside, {store}", page, value, "ms", value / p99[_NOBODY], _NOBODY)
        for page, value in p99.items()
    ]
