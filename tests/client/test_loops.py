"""One asynchronous client in several event loops, over real connections."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from petstore_client import AsyncPetstore, Category, Runtime
from petstore_client.runtime import PROCESS

from tests.client.kit import KEY

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
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield AsyncPetstore(f"http://127.0.0.1:{server.server_port}", KEY, runtime=Runtime())
        server.shutdown()


async def test_a_cancelled_wait_ends() -> None:
    """Also when its turn comes at the same moment: a program that ends would hang else."""
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
