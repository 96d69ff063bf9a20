"""Reads of unchanged and of changing data, and refusals, each against the plaintext ceiling."""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from petstore.api.pets import bind_cursor
from petstore.api.pipeline.paging import write_cursor
from petstore.core.pets import PetQuery, PetStatus
from tests.support.cluster import Client
from tests.support.loops import working
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians, medians_over_starts
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.report import Row, over_one

ANIMALS = 300_000
LIST = "/v1/pets?limit=20&status=available"
POSTS_PER_SECOND = 50
_WARM_UP_SECONDS = 1.0


def page_bytes(port: int, key: str, accept_encoding: str = "identity") -> int:
    """Length of the listed page's body, which the ceiling answers with too."""
    with closing(Client(port, key)) as client:
        return len(client("GET", LIST, headers={"Accept-Encoding": accept_encoding}).body)


def random_pages(key: str) -> tuple[str, ...]:
    """Pages that no measurement asks for twice: every position once, in random order."""
    bound = bind_cursor(PetQuery(status=PetStatus.AVAILABLE))
    ids = list(range(1, ANIMALS - 30))
    random.Random(1).shuffle(ids)
    return tuple(f"{LIST}&cursor={write_cursor(after, bound)} {key}" for after in ids)


def _post_steadily(port: int, key: str, over: threading.Event) -> None:
    with closing(Client(port, key)) as client:
        while not over.wait(1 / POSTS_PER_SECOND):
            client.add("Rex")


def measure(plan: Plan) -> list[Row]:
    """The read rows."""
    taken = medians_over_starts(_measure_once, plan)
    targets = {"list, unchanged data": ">= 0.45", "list, random cursors": ">= 0.14"}
    return [
        Row("read", row.name, row.value, "bytes") if row.name.startswith("body") else row
        for row in over_one("read", taken, "ceiling: plaintext", "ceiling", targets)
    ]


def _measure_once(plan: Plan) -> dict[str, float]:
    """Every row, with servers of its own that have answered for a while before."""
    source, (key, *_) = database(ANIMALS)
    exhausted_source, (spent_key, *_) = database(0, per_minute=1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (
            servers.petstore("petstore", copy_of(source, folder)) as shop,
            servers.petstore("exhausted", copy_of(exhausted_source, folder)) as exhausted,
            servers.ceiling(folder, page_bytes(shop.port, key)) as top,
            servers.ceiling(folder, page_bytes(shop.port, key), "headers") as dressed,
        ):

            def load(server: servers.Server, *lines: str, expect: int = 200) -> Callable[[], float]:
                return rate(Load(lines, expect=expect), server.port, plan.seconds)

            def with_posts() -> float:
                with working(partial(_post_steadily, shop.port, key)):
                    return load(shop, f"{LIST} {key}")()

            in_gzip = Load((f"{LIST} {key}",), headers=("Accept-Encoding: gzip",))
            # Of these, one uses up the only request of its minute.
            for server, line, expect in (
                (top, "/", 200),
                (dressed, "/", 200),
                (shop, f"{LIST} {key}", 200),
                (exhausted, f"{LIST} {spent_key}", 429),
            ):
                run(Load((line,), expect=expect), server.port, _WARM_UP_SECONDS)
            return medians(
                {
                    "ceiling: plaintext": load(top, "/"),
                    "plaintext with the headers of a list": load(dressed, "/"),
                    "list, unchanged data": load(shop, f"{LIST} {key}"),
                    "list, unchanged data, in gzip": rate(in_gzip, shop.port, plan.seconds),
                    "body of the list": lambda: page_bytes(shop.port, key),
                    "body of the list, in gzip": lambda: page_bytes(shop.port, key, "gzip"),
                    f"list, {POSTS_PER_SECOND} POSTs a second": with_posts,
                    "list, random cursors": load(shop, *random_pages(key)),
                    "one animal": load(shop, f"/v1/pets/4711 {key}"),
                    "401": load(shop, LIST, expect=401),
                    "404": load(shop, f"/v1/pets/999999999 {key}", expect=404),
                    "429": load(exhausted, f"{LIST} {spent_key}", expect=429),
                },
                plan,
            )
