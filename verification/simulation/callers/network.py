"""A simulated network between one caller and the service: an httpx2 transport that delays, loses and cuts."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec

from tests.support.service import Answer
from verification.simulation.callers.origin import Down, Origin

_HOPELESS_SECONDS = 120.0  # for what the caller does not limit


class Weather(msgspec.Struct, frozen=True):
    """Shares of requests that meet each fault, and times in seconds.

    A request (method, target and body) meets at most `faults_max` faults, so that it can succeed in the end.
    """

    round_trip: float = 0.03
    slow: float = 0.0  # answered late, but in time
    slow_seconds: float = 4.0
    refused: float = 0.0  # no connection
    lost: float = 0.0  # never arrives
    late: float = 0.0  # arrives when the caller has given up
    cut: float = 0.0  # the connection ends after the effect
    mute: float = 0.0  # no answer after the effect
    busy: float = 0.0  # 503 of a proxy, without Retry-After
    paused: float = 0.0  # 503 with Retry-After
    throttled: float = 0.0  # 429 of a proxy, with or without Retry-After
    faults_max: int = 3


FAULTS = ("refused", "lost", "late", "cut", "mute", "busy", "paused", "throttled")


class Sent(msgspec.Struct):
    """One try on the wire."""

    at: float
    method: str
    target: str
    key: str  # its Idempotency-Key
    task: str
    asked: float  # when its task asked for it
    fault: str = ""
    answered: float | None = None
    status: int = 0
    code: str = ""
    arrived: float | None = None


class Network(httpx2.AsyncBaseTransport):
    """Each request travels by itself: a caller that gives up does not stop it."""

    def __init__(self, origin: Origin, weather: Weather, rng: random.Random) -> None:
        self._origin = origin
        self.weather = weather
        self._rng = rng
        self._met: Counter[tuple[str, str, bytes]] = Counter()
        self._journeys: set[asyncio.Task[Any]] = set()
        self.sent: list[Sent] = []
        self.asked: dict[str, float] = {}  # by task: since when it waits for its current request
        self.on_answer: Callable[[Sent, Answer], None] = lambda sent, answer: None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        target = request.url.raw_path.decode("ascii")
        loop = asyncio.get_running_loop()
        task = getattr(asyncio.current_task(), "get_name", str)()
        now = loop.time()
        key = request.headers.get("idempotency-key", "")
        sent = Sent(now, request.method, target, key, task, self.asked.get(task, now))
        self.sent.append(sent)
        sent.fault = self._fault((request.method, target, body))
        headers = [(name, value) for name, value in request.headers.items() if name != "connection"]
        patience = request.extensions.get("timeout", {}).get("read") or _HOPELESS_SECONDS
        if sent.fault == "refused":
            await asyncio.sleep(self.weather.round_trip)
            raise httpx2.ConnectError("simulated: no connection", request=request)
        journey = loop.create_task(self._travel(sent, headers, body, patience))
        self._journeys.add(journey)
        journey.add_done_callback(self._journeys.discard)
        try:
            async with asyncio.timeout(patience):
                answer = await asyncio.shield(journey)
        except TimeoutError:
            raise httpx2.ReadTimeout("simulated: no answer in time", request=request) from None
        if answer is None:
            raise httpx2.ReadError("simulated: the connection ended", request=request)
        sent.answered = loop.time()
        if answer.status != 429:
            self.asked[task] = sent.answered
        return httpx2.Response(
            answer.status, headers=answer.raw_headers, content=answer.body, request=request
        )

    async def settle(self) -> None:
        """Wait until all that is on its way has arrived."""
        while self._journeys:
            await asyncio.gather(*self._journeys, return_exceptions=True)

    def _fault(self, request: tuple[str, str, bytes]) -> str:
        drawn = self._rng.random()
        if self._met[request] >= self.weather.faults_max:
            return ""
        for fault in FAULTS:
            drawn -= getattr(self.weather, fault)
            if drawn < 0:
                self._met[request] += 1
                return fault
        return ""

    async def _travel(
        self, sent: Sent, headers: list[tuple[str, str]], body: bytes, patience: float
    ) -> Answer | None:
        """The answer as it reaches the caller; None where the connection ends instead."""
        slow = self._rng.random() < self.weather.slow
        seconds = self._rng.random() * self.weather.slow_seconds if slow else 0.0
        on_the_way = seconds * self._rng.random()
        await asyncio.sleep(self._half() + on_the_way)
        if sent.fault == "lost":
            await asyncio.sleep(patience + 1)
            return None
        if sent.fault == "late":
            await asyncio.sleep(patience + 60 * self._rng.random())
        if sent.fault in ("busy", "paused", "throttled"):
            await asyncio.sleep(self._half())
            return self._of_proxy(sent)
        try:
            answer = await self._origin.ask(sent.method, sent.target, headers, body)
        except Down:
            return None
        sent.arrived, sent.status = asyncio.get_running_loop().time(), answer.status
        if answer.status >= 400:
            with contextlib.suppress(ValueError, KeyError):
                sent.code = answer.code
        self.on_answer(sent, answer)
        if sent.fault == "mute":
            await asyncio.sleep(patience + 1)
        await asyncio.sleep(self._half() + seconds - on_the_way)
        return None if sent.fault == "cut" else answer

    def _of_proxy(self, sent: Sent) -> Answer:
        """What something before the service answers, which knows nothing of its errors and limits."""
        sent.status = 429 if sent.fault == "throttled" else 503
        headers = [(b"content-type", b"text/html")]
        if sent.fault == "paused" or (sent.fault == "throttled" and self._rng.random() < 0.5):
            headers.append((b"retry-after", str(self._rng.randint(1, 5)).encode()))
        return Answer(sent.status, headers, b"<html><title>Try again later</title></html>")

    def _half(self) -> float:
        return self.weather.round_trip * self._rng.uniform(0.4, 0.7)
