"""When connections are closed, and what of the environment they heed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from petstore_client import AsyncPetstore, ConfigurationError, Petstore, Runtime
from petstore_client.pool import AsyncPool, Pool

from tests.client.kit import ADDRESS, KEY


class _Slow(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers once it is let, and notes when it is closed."""

    def __init__(self) -> None:
        self.asked, self.let, self.closed = threading.Event(), threading.Event(), False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        assert self.let.wait(10)
        return httpx2.Response(200, content=b"[]")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        while not self.let.is_set():  # noqa: ASYNC110  (both kinds use one event)
            await asyncio.sleep(0)
        return httpx2.Response(200, content=b"[]")

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def test_what_a_thread_uses_is_closed_when_its_call_ends() -> None:
    """A thread that waits for an answer on a closed connection would wait until its timeout."""
    slow = _Slow()
    petstore = Petstore(ADDRESS, KEY, transport=slow, runtime=Runtime())
    call = threading.Thread(target=petstore.categories.list)
    call.start()
    assert slow.asked.wait(10)
    petstore.close()
    assert not slow.closed
    slow.let.set()
    call.join(10)
    assert slow.closed


def test_what_a_task_uses_is_closed_when_its_call_ends() -> None:
    """As of threads; the call has its answer."""
    slow = _Slow()

    async def calls() -> None:
        petstore = AsyncPetstore(ADDRESS, KEY, transport=slow, runtime=Runtime())
        call = asyncio.create_task(petstore.categories.list())
        while not slow.asked.is_set():  # noqa: ASYNC110  (both kinds use one event)
            await asyncio.sleep(0)
        await petstore.close()
        assert not slow.closed
        slow.let.set()
        assert await call == []
        assert slow.closed

    asyncio.run(calls())


@pytest.mark.parametrize("pool", [Pool, AsyncPool])
@pytest.mark.parametrize(
    ("address", "passes"),
    [
        ("http://localhost:8080/v1", False),
        ("http://127.0.0.1/v1", False),
        ("http://[::1]/v1", False),
        ("http://shop.example/v1", True),
        ("https://localhost/v1", True),
    ],
)
def test_no_proxy_sees_a_key_that_is_for_this_machine(
    pool: Any, address: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain http to this machine needs no `allow_http`, since nobody else can read it."""
    monkeypatch.setenv("no_proxy", "")
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://proxy.example:3128")
    assert bool(pool(address, None)._opened()._mounts) is passes


@pytest.mark.parametrize("client", [Petstore, AsyncPetstore])
def test_an_environment_that_cannot_be_used_is_told(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the names of its variables: the error of the file alone says nothing of them."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE"):
        client("https://localhost", KEY)._pool._opened()
