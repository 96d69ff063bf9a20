"""Followers of a real server: over a kill, in a new process, when they are closed or cancelled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from petstore_client import AsyncPetstore, Event, Petstore, Runtime

from tests.support.server import Server, issue_key, running_server, start_server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.e2e

# Follows from a stored bookmark, writes down each event, then stores the bookmark.
PROGRAM = """
import sys
from pathlib import Path
from petstore_client import Petstore

address, key, place, seen = sys.argv[1:]
with Petstore(address, key) as petstore, open(seen, "a") as lines:
    follow = petstore.events.follow(after=Path(place).read_text(), types=["pet.created"])
    for event in follow:
        print(event.data["name"], file=lines, flush=True)
        Path(place).write_text(follow.after)
"""


def waiting(server: Server) -> int:
    """Requests of a server that wait for an event."""
    shown = server.request("GET", "/metrics", key="").body.decode()
    return round(float(shown.partition("\npetstore_events_waiting ")[2].partition("\n")[0]))


@pytest.mark.slow
def test_a_follower_misses_nothing_over_a_kill_of_the_server_and_of_itself(tmp_path: Path) -> None:
    """It goes on by itself when the server is back; a new process goes on from the stored bookmark, and sees
    at most the events of the last page again. All are in their order."""
    key = issue_key(tmp_path / "petstore.db")
    place, lines = tmp_path / "bookmark", tmp_path / "seen"
    server = start_server(tmp_path)
    writer = server.client(key)
    place.write_text(writer.events.list(after="now").after)

    def create(first: int) -> list[str]:
        names = [f"n{number}" for number in range(first, first + 5)]
        for name in names:
            writer.pets.create(name=name, category_id=1)
        return names

    def seen() -> list[str]:
        return lines.read_text().split() if lines.exists() else []

    def started() -> subprocess.Popen[bytes]:
        arguments = [server.base_url, key, str(place), str(lines)]
        return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])

    program = started()
    try:
        names = create(0)
        wait_for(lambda: seen() == names, "the first events")
        server.kill()
        server = start_server(tmp_path, port=server.port)
        names += create(5)
        wait_for(lambda: seen() == names, "the events after the server was killed")
        program.kill()
        program.wait()
        names += create(10)
        program = started()
        wait_for(lambda: seen()[-1] == names[-1], "the events of the new process")
        again = len(seen()) - len(names)
        assert seen() == names[:10] + names[10 - again :]
        assert again <= 5
    finally:
        program.kill()
        program.wait()
        server.kill()


class Consumer:
    """A thread, or an event loop in a thread, that takes events until its client is closed."""

    def __init__(self, kind: str, server: Server, key: str) -> None:
        self.kind = kind
        self.events: list[Event] = []
        self.error: BaseException | None = None
        if kind == "sync":
            self.client: Any = Petstore(server.base_url, key, runtime=Runtime(), seconds=5)
        else:
            self.client = AsyncPetstore(server.base_url, key, runtime=Runtime(), seconds=5)
        self.follow = self.client.events.follow()
        self._loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        wait_for(lambda: waiting(server) == 1, "the follower to wait")

    def _run(self) -> None:
        try:
            if self.kind == "sync":
                self.events.extend(self.follow)
            else:
                self._task = self._loop.create_task(self._take())
                self._loop.run_until_complete(self._task)
        except BaseException as error:
            self.error = error
        finally:
            if self.kind == "async":
                self._loop.run_until_complete(self.client.close())
            self._loop.close()

    async def _take(self) -> None:
        async for event in self.follow:
            self.events.append(event)

    def call(self, make: Callable[[], Any]) -> Any:
        """A call of the client in this thread, or in its event loop."""
        if self.kind == "sync":
            return make()

        async def made() -> Any:
            return await make()

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result(20)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self.thread.join(20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose account is on the Free plan: one request of it may wait."""
    with running_server(tmp_path_factory.mktemp("followers")) as server:
        yield server


def test_a_follower_ends_with_its_client(server: Server, kind: str) -> None:
    """A closed client ends a follower that waits for an answer; other calls go on, nothing is raised."""
    consumer = Consumer(kind, server, server.key)
    pet = consumer.call(lambda: consumer.client.pets.create(name="Rex", category_id=1))
    wait_for(lambda: [event.data["id"] for event in consumer.events] == [pet.id], "the event")
    wait_for(lambda: waiting(server) == 1, "the follower to wait again")
    consumer.call(consumer.client.close)
    consumer.thread.join(20)
    assert (consumer.thread.is_alive(), consumer.error) == (False, None)
    wait_for(lambda: waiting(server) == 0, "the waiting request to end")


def test_a_cancelled_follower_closes_its_connection(server: Server) -> None:
    """The slot of its wait is free at once."""
    consumer = Consumer("async", server, server.key)
    consumer.cancel()
    assert isinstance(consumer.error, asyncio.CancelledError)
    wait_for(lambda: waiting(server) == 0, "the waiting request to end")


def test_a_second_follower_of_a_free_account_asks_again(server: Server) -> None:
    """It is answered at once, pauses as it was told, and sees every event all the same."""
    first = Consumer("sync", server, server.key)
    pauses: list[float] = []
    client = server.client()

    def wait(_: threading.Event, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            client.pets.create(name="Rex", category_id=1)

    runtime = Runtime(lambda: sum(pauses), wait=wait)
    page = client.events.list(after="now", wait=60)
    assert (list(page), page.retry_after_seconds) == ([], 5)
    with Petstore(server.base_url, server.key, runtime=runtime) as petstore:
        event = next(petstore.events.follow(after=page.after))
    assert (event.data["name"], pauses) == ("Rex", [5])
    wait_for(lambda: [each.id for each in first.events] == [event.id], "the event of the first")
    first.client.close()
    first.thread.join(20)
