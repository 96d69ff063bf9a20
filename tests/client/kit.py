"""Both clients under one test body, on the real service or on a script of answers, at a steered time."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from petstore_client import AsyncFollow, AsyncPetstore, Event, Petstore, Runtime

from tests.support.clock import ManualClock
from tests.support.service import Shop, open_shop
from tools.exchanges import send

_T = TypeVar("_T")

KEY = "pets_test_" + "k" * 38
KINDS = ["sync", "async"]
ADDRESS = "http://localhost"
Scripted = Callable[..., tuple[Any, "Script"]]
PET = {"id": 7, "name": "Rex", "categoryId": 1, "status": "available"}
DROPPED = httpx2.ReadError("the connection ended")


class Pace:
    """Moves the clock to the next moment that somebody waits for, once all callers wait."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waits: dict[threading.Event | asyncio.Event, float] = {}
        self.callers = 1

    def runtime(self) -> Runtime:
        """A process at this pace, whose random numbers are all 0.5."""
        return Runtime(
            self._clock.monotonic, lambda: self._clock.ms / 1_000, lambda: 0.5, self.wait, self.wait_async
        )

    def left(self) -> None:
        """One caller is done."""
        with self._lock:
            self.callers -= 1

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait until the event is set or the time has come."""
        until = self._begin(event, seconds)
        while not event.is_set() and not self._come(until):
            event.wait(0.001)
        self._end(event)

    async def wait_async(self, event: asyncio.Event, seconds: float) -> None:
        """Wait as `wait` does, for a task."""
        until = self._begin(event, seconds)
        await asyncio.sleep(0)
        while not event.is_set() and not self._come(until):  # noqa: ASYNC110  (its clock is steered)
            await asyncio.sleep(0)
        self._end(event)

    def _begin(self, event: threading.Event | asyncio.Event, seconds: float) -> float:
        with self._lock:
            self._waits[event] = self._clock.monotonic() + seconds
            return self._waits[event]

    def _end(self, event: threading.Event | asyncio.Event) -> None:
        with self._lock:
            del self._waits[event]

    def _come(self, until: float) -> bool:
        with self._lock:
            all_wait = len(self._waits) == self.callers and not any(event.is_set() for event in self._waits)
            if all_wait and min(self._waits.values()) == until:
                self._clock.advance(max(until - self._clock.monotonic(), 0.001))
            return self._clock.monotonic() >= until


class Driven:
    """Calls an AsyncPetstore as if it were a Petstore, so that one body tests both."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if type(value).__name__.startswith("Async"):
            return Driven(value, self._loop)
        return self._driven(value) if callable(value) else value

    def _driven(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            made = method(*arguments, **keywords)
            if isinstance(made, AsyncFollow):
                return DrivenFollow(made, self._loop)
            if isinstance(made, AsyncIterator):
                made = _all(made)
            elif isinstance(made, AsyncPetstore):
                return Driven(made, self._loop)
            return self._loop.run_until_complete(made) if inspect.isawaitable(made) else made

        return call


class DrivenFollow(Iterator[Event]):
    """An AsyncFollow as if it were a Follow."""

    def __init__(self, inner: AsyncFollow, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    @property
    def after(self) -> str | None:
        return self._inner.after

    def close(self) -> None:
        self._inner.close()

    def __next__(self) -> Event:
        try:
            return self._loop.run_until_complete(anext(self._inner))
        except StopAsyncIteration:
            raise StopIteration from None


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


@contextmanager
def client_of(kind: str, address: str, key: str, **options: Any) -> Iterator[Any]:
    """A client of this kind, to be called as a Petstore."""
    if kind == "sync":
        with Petstore(address, key, **options) as petstore:
            yield petstore
        return
    with asyncio.Runner() as runner:
        client = Driven(AsyncPetstore(address, key, **options), runner.get_loop())
        yield client
        client.close()


class Served(httpx2.BaseTransport):
    """The real service, for both clients. It answers one request at a time."""

    def __init__(self, shop: Shop, loop: asyncio.AbstractEventLoop) -> None:
        self.shop = shop
        self.clock = shop.clock
        self.pace = Pace(shop.clock)
        self.runtime = self.pace.runtime()
        self.seen: list[httpx2.Response] = []
        self._loop = loop
        self._lock = threading.Lock()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        with self._lock:
            return self._loop.run_until_complete(self.answer(request))

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The service's answer, noted."""
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        target, body = request.url.raw_path, await request.aread()
        status, lines, content = await send(self.shop.application, request.method, target, headers, body)
        response = httpx2.Response(status, headers=lines, content=content)
        self.seen.append(response)
        return response

    def open_account(
        self, name: str, plan: str = "free", per_minute: int | None = None, per_day: int | None = None
    ) -> str:
        """A new account's key."""
        opening = self.shop.open_account(name, plan, per_minute, per_day)
        key, _ = self._loop.run_until_complete(opening)
        return key

    def client(self, kind: str, key: str | None = None, **options: Any) -> Any:
        """A client of this kind, of the store's own key unless one is given."""
        options = {"runtime": self.runtime, **options}
        if kind == "sync":
            return Petstore(ADDRESS, key or self.shop.key, transport=self, **options)
        transport = httpx2.MockTransport(self.answer)
        return Driven(
            AsyncPetstore(ADDRESS, key or self.shop.key, transport=transport, **options), self._loop
        )

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Carry out a coroutine where the service runs."""
        return self._loop.run_until_complete(work)

    def statuses(self) -> list[int]:
        return [response.status_code for response in self.seen]


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """A service with an empty store."""
    loop = asyncio.new_event_loop()
    opened = open_shop(folder)
    try:
        yield Served(loop.run_until_complete(opened.__aenter__()), loop)
    finally:
        loop.run_until_complete(opened.__aexit__(None, None, None))
        loop.close()


class Script:
    """Answers, or faults, in their order; the last one stays."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.clock = ManualClock()
        self.runtime = Pace(self.clock).runtime()
        self.requests: list[httpx2.Request] = []
        self.times: list[float] = []

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Give the next answer."""
        self.requests.append(request)
        self.times.append(self.clock.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def waits(self) -> list[float]:
        """Seconds between one request and the next."""
        return [round(after - before, 3) for before, after in zip(self.times, self.times[1:], strict=False)]


@contextmanager
def scripted(
    kind: str, *answers: httpx2.Response | Exception, **options: Any
) -> Iterator[tuple[Any, Script]]:
    """A client of this kind that gets these answers."""
    script = Script(*answers)
    transport = httpx2.MockTransport(script.handle)
    options = {"runtime": script.runtime, "transport": transport, **options}
    with client_of(kind, ADDRESS, KEY, **options) as petstore:
        yield petstore, script


def answer(
    status: int = 200,
    document: object = (),
    headers: Mapping[str, str] | None = None,
    *,
    left: int = 50,
    reset: int = 60,
    content: bytes | None = None,
) -> httpx2.Response:
    """An answer of the service: `left` of 60 calls remain for `reset` seconds."""
    told = {"RateLimit-Policy": '"minute";q=60;w=60', "RateLimit": f'"minute";r={left};t={reset}'}
    body = json.dumps(document).encode() if content is None else content
    return httpx2.Response(status, headers={**told, "X-Request-Id": "r-1", **(headers or {})}, content=body)


def failure(status: int, code: str, message: str = "So it is.", **headers: str) -> httpx2.Response:
    """An error of the service; `retry_after="1"` is a header."""
    document = {"code": code, "message": message, "status": status}
    return answer(
        status, document, {name.replace("_", "-"): value for name, value in headers.items()}, left=50
    )
