"""Connections of processes, threads and event loops: when they open and close, what environment they heed."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from petstore_client import AsyncPetstore, Category, ConfigurationError, Petstore, Runtime
from petstore_client.pool import AsyncPool, Pool
from petstore_client.runtime import PROCESS

from tests.client.kit import ADDRESS, KEY
from tests.support.loops import answering


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
    """A closed client leaves a task what it uses until its call ends, so that the call has its answer."""
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
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSL_CERT_FILE", "/nowhere.pem"),
        ("HTTPS_PROXY", "http://user:pass/word@proxy.example:3128"),  # its slash has to be %2F
        ("HTTPS_PROXY", "ftp://proxy.example"),
    ],
)
def test_an_environment_that_cannot_be_used_is_told(
    client: Any, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names its variables: the error of the file or the address alone says nothing of them."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name):
        client("https://localhost", KEY)._runner.pool._opened()


_DOCUMENT = json.dumps([{"id": 1, "name": "Dogs"}]).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps the connection open
    wbufsize = -1  # one packet for each answer

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(_DOCUMENT)))
        self.end_headers()
        self.wfile.write(_DOCUMENT)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # of five, connections at once wait a second for the next try


@pytest.fixture
def petstore() -> Iterator[AsyncPetstore]:
    with answering(_Server(("127.0.0.1", 0), _Handler)) as server:
        yield AsyncPetstore(f"http://127.0.0.1:{server.server_port}", KEY, runtime=Runtime())


async def test_a_cancelled_wait_ends() -> None:
    """It ends even when its turn comes at the same moment: a program that ends would hang else."""
    for turns in range(6):
        event = asyncio.Event()
        waiting = asyncio.ensure_future(PROCESS.wait_async(event, 60))
        for _ in range(3):
            await asyncio.sleep(0)
        event.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        was_too_late = not waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled() or was_too_late


def test_each_run_opens_its_own_connections(petstore: AsyncPetstore) -> None:
    """A program may call asyncio.run several times: a connection ends with the loop that opened it."""

    async def last_call() -> list[Category]:
        async with petstore:
            return await petstore.categories.list()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the connection that the first run leaves open
        assert asyncio.run(petstore.categories.list()) == [Category(1, "Dogs")]
        assert asyncio.run(last_call()) == [Category(1, "Dogs")]
        gc.collect()


def test_loops_of_several_threads_share_a_client(petstore: AsyncPetstore) -> None:
    """Each has connections of its own, and closing them closes no other's."""
    done: list[int] = []

    async def calls() -> None:
        for _ in range(5):
            await asyncio.gather(*(petstore.categories.list() for _ in range(10)))
            await petstore.close()
        done.append(1)

    threads = [threading.Thread(target=asyncio.run, args=(calls(),), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert done == [1, 1]


# The parent holds the locks, and the only probe waits for its answer, when it forks.
_PROGRAM = """
import os, threading
import httpx2
from petstore_client import Petstore, PetstoreError

parent, asked, answers = os.getpid(), threading.Event(), threading.Event()

def handle(request):
    if os.getpid() == parent:
        asked.set()
        answers.wait()
    return httpx2.Response(200, content=b"[]")

petstore = Petstore("http://localhost", "pets_test_" + "k" * 38, transport=httpx2.MockTransport(handle))
call = threading.Thread(target=petstore.categories.list)
call.start()
asked.wait()
pool = petstore._runner.pool
http = pool._http
with petstore._runner.connection.limiter.lock, pool._lock:
    child = os.fork()
    if child == 0:
        petstore.close()
        done = petstore.categories.list() == [] and pool._http is not http
        os._exit(0 if done else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
answers.set()
call.join()
assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_waits_for_nobody() -> None:
    """No lock, no call under way and no connection of the parent is left in it."""
    command = [sys.executable, "-c", _PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ran.returncode == 0, ran.stderr
