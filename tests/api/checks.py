"""A shop that checks every answer whole (I11), and what tells that a refusal changed nothing (I12)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import apsw

from petstore.core.errors import BY_CODE
from tests.api import contract
from tests.support.clock import ManualClock
from tests.support.service import Answer, Pairs, Shop, application_for, call, copy_opened

_WINDOW = re.compile(r'"(minute|day|address)";q=([0-9]+);w=([0-9]+)')
_STANDING = re.compile(r'"(minute|day|address)";r=([0-9]+);t=([0-9]+)')
_LONGEST_BAN_SECONDS = 3_601  # an hour, up to the whole second
# Written in batches by the flusher; what they count comes from quota.py and is tested by the headers.
COUNTERS = {"account_windows", "key_standings", "key_activity", "usage_days"}
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def is_interface(path: bytes) -> bool:
    """Whether a raw path is one of the interface and not of the site around it."""
    return path == b"/v1" or path.startswith(b"/v1/")


def check_limits(answer: Answer, now_ms: int) -> None:
    """Both dialects are there and say the same, by the time in Date: the X-RateLimit trio is the binding
    window."""
    assert answer.headers["date"] == formatdate(now_ms // 1_000, usegmt=True)
    limit, remaining, reset = (int(answer.headers[name]) for name in LIMIT_HEADERS)
    policies = _WINDOW.findall(answer.headers["ratelimit-policy"])
    standings = _STANDING.findall(answer.headers["ratelimit"])
    assert [row[0] for row in policies] == [row[0] for row in standings]
    assert [row[0] for row in policies] in (["minute", "day"], ["address"])
    windows = [
        (int(r), -(now_ms // 1_000 + int(t)), int(q), int(w), int(t))
        for (_, q, w), (_, r, t) in zip(policies, standings, strict=True)
    ]
    for r, _, q, w, t in windows:
        assert 0 <= r <= q
        assert 0 < t <= w or (answer.status == 429 and t <= _LONGEST_BAN_SECONDS)
    binding = min(windows)
    assert (limit, remaining) == (binding[2], binding[0])
    assert 0 <= reset * 1_000 - now_ms - (binding[4] - 1) * 1_000 <= 1_000


def check_error(answer: Answer) -> None:
    """Exactly the Error body, with a code of the catalogue that belongs to the status."""
    body = answer.json()
    assert set(body) == {"code", "message", "status"}
    assert body["status"] == answer.status == BY_CODE[body["code"]].status
    assert isinstance(body["message"], str)
    assert body["message"]


def check_answer(method: str, target: bytes, answer: Answer, now_ms: int | None) -> None:
    """What every response under /v1 owes its client, whatever was asked.

    None as time: the counters go by another clock.
    """
    names = [name for name, _ in answer.raw_headers]
    assert len(names) == len(set(names)), "a header stands twice"
    assert not {"server", "transfer-encoding", "set-cookie"} & set(names)
    headers = answer.headers
    is_kept = method in ("GET", "HEAD") and answer.status in (200, 304)
    assert headers["cache-control"] == ("private, no-cache" if is_kept else "no-store")
    assert headers["x-content-type-options"] == "nosniff"
    assert re.fullmatch(r"[A-Za-z0-9._:/+=@-]{1,128}", headers["x-request-id"])
    if now_ms is not None:
        check_limits(answer, now_ms)
    in_use = answer.status == 409 and answer.json()["code"] == "idempotency_key_in_use"
    assert ("retry-after" in headers) == (answer.status in (429, 503) or in_use)
    assert ("www-authenticate" in headers) == (answer.status == 401)
    assert ("allow" in headers) == (answer.status == 405 or (method, answer.status) == ("OPTIONS", 204))
    if answer.status == 429:
        assert headers["x-ratelimit-remaining"] == "0"
    _check_links(target.partition(b"?")[0], method, answer)
    _check_content(method, answer)
    response = contract.response_of(target.partition(b"?")[0], method, answer.status)
    if response is not None:
        contract.check_headers(response, headers)
        if answer.body:
            contract.check_body(response, answer.json(), f"{method} {answer.status}")


def _check_links(path: bytes, method: str, answer: Answer) -> None:
    """Every error leads to its explanation, every answer of a deprecated operation to its replacement."""
    links = re.findall(r'<([^<>]+)>; rel="([a-z-]+)"', answer.headers.get("link", ""))
    relations = {relation: target for target, relation in links}
    assert ("help" in relations) == (answer.status >= 400)
    if answer.status >= 400 and answer.body:
        assert relations["help"].endswith(f"/docs/errors#{answer.code}")
    if contract.operation_of(path, method).get("deprecated"):
        assert {"deprecation", "successor-version"} <= set(relations)
        assert {"deprecation", "sunset"} <= set(answer.headers)


def _check_content(method: str, answer: Answer) -> None:
    if answer.status in (204, 304):
        assert answer.body == b""
        assert not {"content-type", "content-length"} & set(answer.headers)
        return
    assert answer.headers["content-type"] == "application/json"
    if method == "HEAD":
        assert answer.body == b""
        assert int(answer.headers["content-length"]) > 0
        return
    if answer.status >= 400:
        check_error(answer)


class CheckedShop(Shop):
    """A shop whose every answer under /v1 is checked; a 500 fails the test unless it says to expect it."""

    expects_500 = False
    steers_counters = True  # those in Valkey go by its own clock

    def inspect(self, method: str, target: str | bytes, answer: Answer) -> None:
        raw = target.encode("utf-8") if isinstance(target, str) else target
        if is_interface(raw.partition(b"?")[0]):
            check_answer(method, raw, answer, self.clock.now_ms() if self.steers_counters else None)
            assert self.key not in answer.body.decode() + str(answer.raw_headers)  # I18
            assert answer.status != 500 or self.expects_500

    async def stall(
        self, method: str, target: str, headers: Pairs = (), pieces: Sequence[bytes] = ()
    ) -> Answer:
        """One request whose body stops after some pieces and never ends, on a connection that stays."""
        left = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]

        async def receive() -> dict[str, Any]:
            return left.pop(0) if left else await asyncio.get_running_loop().create_future()

        async def stalled(scope: Any, _receive: object, send: Any) -> None:
            await self.application(scope, receive, send)

        answer = await call(stalled, method, target, headers)
        self.inspect(method, target, answer)
        return answer

    def fingerprint(self) -> str:
        """A hash of all rows of all tables but the counters: equal after a request that changed nothing."""
        whole = hashlib.sha256()
        with outsider(self.path) as connection:
            names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1"
            for (table,) in connection.execute(names).fetchall():
                if table not in COUNTERS:
                    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
                    whole.update(repr((table, rows)).encode())
        return whole.hexdigest()

    def pets(self) -> list[tuple[Any, ...]]:
        """The rows of animals as they are in the file."""
        with outsider(self.path) as connection:
            return connection.execute("SELECT id, name, category_id, status FROM pets ORDER BY id").fetchall()


class Writing:
    """An operation with the body of an animal, to which the same rules of bodies apply."""

    def __init__(self, shop: CheckedShop, name: str) -> None:
        self.shop = shop
        self.name = name
        self.method, self.path, self.status = {
            "createPet": ("POST", "/v1/pets", 201),
            "updatePet": ("PATCH", "/v1/pets/1", 200),
        }[name]

    async def send(self, headers: Pairs, body: bytes | Sequence[dict[str, Any]]) -> Answer:
        """One request with the shop's key."""
        key = ("authorization", f"Bearer {self.shop.key}")
        return await self.shop.call(self.method, self.path, [key, *headers], body)

    async def send_json(self, body: bytes | Sequence[dict[str, Any]], *headers: tuple[str, str]) -> Answer:
        """One request with a body of the type `application/json`."""
        return await self.send([("content-type", "application/json"), *headers], body)


async def settle() -> None:
    """Let every task run until it waits for something outside the event loop."""
    for _ in range(10):
        await asyncio.sleep(0)


@contextmanager
def outsider(path: Path) -> Iterator[apsw.Connection]:
    """A connection of somebody else, such as another process or a SQL shell."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def open_checked(
    folder: Path, clock: ManualClock | None = None, **settings: str
) -> AsyncIterator[CheckedShop]:
    """Like `open_shop`, with every answer checked."""
    clock = clock or ManualClock()
    path = folder / "petstore.db"
    shop = CheckedShop(application_for(path, clock, settings), clock, path)
    shop.key, shop.key_id = await copy_opened(path)
    await shop.application.start()
    try:
        yield shop
    finally:
        await shop.application.stop()
