"""A body that an answer leaves unread: it is read away, or the answer ends the connection (RFC 9112, 9.3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import pytest_asyncio

from petstore.api.pipeline.unread import CLOSE, READ_AWAY_AT_ONCE, UnreadBodies
from tests.support.service import Answer, Pairs, Shop, call
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = ("content-type", "application/json")
DECLARED = {b"content-length": b"4"}


class Sender:
    """A client that sends pieces of a body, and then holds the rest back if there is one."""

    def __init__(self, *pieces: bytes, ends: bool = True) -> None:
        self.pieces = list(pieces)
        self._ends = ends

    async def receive(self) -> dict[str, Any]:
        if not self.pieces:
            await asyncio.Event().wait()
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or not self._ends}


async def ask(shop: Shop, method: str, target: str, headers: Pairs, sender: Sender) -> Answer:
    """One request whose body comes from the sender."""

    async def application(scope: Any, _receive: object, send: Any) -> None:
        await shop.application.answer(scope, sender.receive, send)

    answer = await call(application, method, target, headers)
    shop.inspect(method, target, answer)
    return answer


@pytest.mark.parametrize(
    ("method", "target", "more", "status"),
    [
        ("POST", "/v1/pets", [("authorization", "Bearer wrong"), JSON], 401),
        ("PATCH", "/v1/pets/1", [("authorization", None), JSON], 401),
        ("POST", "/v1/nothing", [JSON], 404),
        ("PUT", "/v1/pets", [JSON], 405),
        ("POST", "/v1/pets", [("content-type", "text/plain")], 415),
        ("POST", "/v1/pets", [("host", "a b"), JSON], 400),
        ("POST", "/v1/pets?x=1", [JSON], 400),
        ("DELETE", "/v1/pets/999", [], 404),
        ("GET", "/v1/pets", [], 200),
        ("HEAD", "/v1/pets", [], 200),
        ("OPTIONS", "/v1/pets", [], 204),
        ("POST", "/healthz", [JSON], 405),
        ("POST", "/nothing", [JSON], 404),
        ("GET", "/docs", [], 200),
    ],
)
async def test_the_body_of_any_answer_is_read_away(
    shared_shop: Shop, method: str, target: str, more: Pairs, status: int
) -> None:
    """Under /v1 and outside; also where the answer is no refusal."""
    sender = Sender(b"{", b" ", b'"a"')
    headers = dict([("authorization", f"Bearer {shared_shop.key}"), ("content-length", "5"), *more])
    answer = await ask(shared_shop, method, target, list(headers.items()), sender)
    assert (answer.status, sender.pieces) == (status, [])
    assert "connection" not in answer.headers


@pytest.mark.parametrize("target", ["/v1/nothing", "/nothing"])
@pytest.mark.parametrize(
    "framing",
    [
        [("content-length", "65537")],
        [("transfer-encoding", "chunked")],
        [("content-length", "5"), ("transfer-encoding", "chunked")],
        [("content-length", "5"), ("expect", "100-continue")],
    ],
    ids=["too-large", "chunked", "both", "expect"],
)
async def test_a_body_that_is_not_read_ends_the_connection(
    shared_shop: Shop, target: str, framing: Pairs
) -> None:
    """And nobody asks the client for it."""
    sender = Sender(b"{", b" ", b'"a"')
    headers = [("authorization", f"Bearer {shared_shop.key}"), JSON, *framing]
    answer = await ask(shared_shop, "POST", target, headers, sender)
    assert (answer.status, len(sender.pieces)) == (404, 3)
    assert answer.headers["connection"] == "close"


async def test_a_form_that_was_read_in_part_ends_the_connection(shared_shop: Shop) -> None:
    """The console refuses it in the middle; the rest is too large to be read away."""
    kind = ("content-type", "application/x-www-form-urlencoded")
    sender = Sender(b"a" * 70_000, b"b")
    answer = await ask(shared_shop, "POST", "/console/sign-in", [kind, ("content-length", "70001")], sender)
    assert (answer.status, sender.pieces) == (413, [b"b"])
    assert answer.headers["connection"] == "close"


async def test_a_body_that_was_read_is_not_waited_for(shared_shop: Shop) -> None:
    """An animal is added, or its body refused: the connection goes on."""
    headers = [("authorization", f"Bearer {shared_shop.key}"), JSON, ("content-length", "29")]
    for body, status in ((b'{"name":"Rex","categoryId":1}', 201), (b'{"name":"Rex","categoryId":"1"}', 400)):
        answer = await ask(shared_shop, "POST", "/v1/pets", headers, Sender(body))
        assert answer.status == status, answer.headers
        assert "connection" not in answer.headers


class TestBound:
    """Reading away holds at most 256 requests for 200 ms, by the event loop's clock."""

    @pytest_asyncio.fixture(loop_scope="module")
    async def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The loop's time, which stands until the test sets it."""
        now = [asyncio.get_running_loop().time()]
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        return now

    async def test_nobody_waits_longer_or_beside_256_others(self, clock: list[float]) -> None:
        """Who sends nothing is told at the end of its time, the 257th at once; then there is room again."""
        unread = UnreadBodies()
        silent = Sender(b"a", ends=False)
        silent.pieces.clear()
        waiting = [
            asyncio.create_task(unread.settle(401, DECLARED, silent.receive))
            for _ in range(READ_AWAY_AT_ONCE)
        ]
        await asyncio.sleep(0)
        assert await unread.settle(401, DECLARED, silent.receive) == (CLOSE,)
        clock[0] += 0.199
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        clock[0] += 0.002
        await until(lambda: all(task.done() for task in waiting))
        assert {task.result() for task in waiting} == {(CLOSE,)}
        assert await unread.settle(401, DECLARED, Sender(b"abcd").receive) == ()

    async def test_who_is_cancelled_makes_room(self) -> None:
        """Else every answer would end its connection after 256 of them, until the next start."""
        unread = UnreadBodies()
        for _ in range(READ_AWAY_AT_ONCE):
            waiting = asyncio.create_task(unread.settle(401, DECLARED, Sender(ends=False).receive))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert await unread.settle(401, DECLARED, Sender(b"abcd").receive) == ()

    async def test_pieces_do_not_buy_time(self, clock: list[float]) -> None:
        """It is one deadline for the whole body."""

        async def drip() -> dict[str, Any]:
            clock[0] += 0.15
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"a", "more_body": True}

        assert await UnreadBodies().settle(401, {b"content-length": b"99"}, drip) == (CLOSE,)

    async def test_a_late_body_has_had_its_time(self, clock: list[float]) -> None:
        """After a 408 nothing more is waited for."""
        assert await UnreadBodies().settle(408, DECLARED, Sender(b"abcd").receive) == (CLOSE,)

    async def test_a_client_that_closes_is_not_waited_for(self, clock: list[float]) -> None:
        """Before its body is complete."""

        async def closed() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        assert await UnreadBodies().settle(401, DECLARED, closed) == (CLOSE,)
