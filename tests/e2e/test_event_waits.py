"""Waits for events over real connections: stops, and clients that go."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from petstore.api.events import RETRY_SECONDS
from petstore.core.limits.plans import FREE
from tests.e2e.test_metrics import sample
from tests.support.raw import RawAnswer, RawConnection
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-event-waits")]

WAITERS = int(os.environ.get("TEST_WAITERS", "200"))
# Fewer than an Enterprise account has in one process, where all of them may be.
OF_ONE_ACCOUNT = 50
WAIT = "/v1/events?after=now&wait=120"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Server, list[str]]]:
    """A server, and keys for all waiters."""
    keys = keys_in(folder / "petstore.db")
    with running_server(folder) as server:
        server.key = keys[0]
        yield server, keys


def keys_in(database: Path) -> list[str]:
    """Keys of as many new accounts as all waiters need."""
    return [issue_key(database, f"account-{number}") for number in range(max(1, WAITERS // OF_ONE_ACCOUNT))]


def head(key: str, target: str = WAIT) -> bytes:
    """A request."""
    return f"GET {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


def begin(server: Server, keys: list[str]) -> list[RawConnection]:
    """Start WAITERS connections, each with a request that waits."""
    waiters = [RawConnection(server.port) for _ in range(WAITERS)]
    for number, waiter in enumerate(waiters):
        waiter.send(head(keys[number % len(keys)]))
    await_waiting(server, WAITERS)
    return waiters


def await_waiting(server: Server, number: int) -> None:
    wait_for(lambda: sample(server, "petstore_events_waiting") == number, f"{number} to wait")


def next_of(answer: RawAnswer) -> str:
    """The address of the next request, without its wait."""
    found = re.fullmatch(r'<([^<>]+)>; rel="next"', answer.headers["link"])
    assert found is not None
    return found[1].replace("&wait=120", "")


def complaints(server: Server) -> str:
    """The log from the first line that it should not have."""
    found = re.search("error|critical|Traceback|destroyed", server.log)
    return server.log[found.start() - 200 :] if found else ""


def types_of(answer: Any) -> list[str]:
    return [event["type"] for event in answer.json()]


@pytest.mark.slow
class TestStops:
    """Everybody is answered at once, with a bookmark."""

    def test_after_sighup_waits_go_on_and_sigterm_ends_them(self, tmp_path: Path) -> None:
        """The next worker goes on from the bookmarks; test_cluster.py has several. A stop does not wait for
        the waits: it ends in order long before them, by one signal or more."""
        with serving(tmp_path) as (server, keys):
            waiters = begin(server, keys)
            server.process.send_signal(signal.SIGHUP)
            (bookmark,) = assert_answered(waiters)
            assert server.post({"name": "Rex", "categoryId": 1}).status == 201
            with RawConnection(server.port) as again:
                again.send(head(server.key, f"{bookmark}&wait=120"))
                assert types_of(again.read()) == ["pet.created"]
            waiters = begin(server, keys)
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGTERM)
            assert_answered(waiters)
            assert server.process.wait(20) == 0
            assert complaints(server) == ""

    def test_a_killed_parent(self, tmp_path: Path) -> None:
        """The worker of a killed parent ends by itself, and answers before."""
        with serving(tmp_path) as (server, keys):
            waiters = begin(server, keys)
            (orphan,) = server.workers()
            server.process.kill()
            assert_answered(waiters)
            wait_for(lambda: not Path(f"/proc/{orphan}").exists(), "its end")
            assert complaints(server) == ""


def assert_answered(waiters: list[RawConnection]) -> set[str]:
    """All of them, empty, at once; the addresses to go on from."""
    answers = [waiter.read() for waiter in waiters]
    assert {(answer.status, answer.body) for answer in answers} == {(200, b"[]")}
    assert not [answer for answer in answers if "retry-after" in answer.headers]
    for waiter in waiters:
        waiter.close()
    return {next_of(answer) for answer in answers}


class TestClientsThatGo:
    """Their places are free at once."""

    @pytest.mark.slow
    def test_all_at_once(self, server: Server, folder: Path) -> None:
        """Nobody waits any more, and the log has no word of it. Who only ends its side is answered."""
        keys = keys_in(folder / "petstore.db")
        for how in ("close", "end", "reset"):
            waiters = begin(server, keys)
            for waiter in waiters:
                getattr(waiter, how)()
            await_waiting(server, 0)
            if how == "end":
                assert_answered(waiters)
            wait_for(lambda: sample(server, "petstore_connections") == 1, "the end of the connections")
        assert complaints(server) == ""

    def test_the_next_one_may_wait(self, server: Server, folder: Path) -> None:
        """The account has one slot."""
        key = issue_key(folder / "petstore.db", "free", plan=FREE)
        for how in ("close", "end", "reset"):
            with RawConnection(server.port) as first:
                first.send(head(key))
                await_waiting(server, 1)
                refused = server.request("GET", WAIT, key=key)
                assert (refused.body, refused.headers["retry-after"]) == (b"[]", str(RETRY_SECONDS))
                getattr(first, how)()
                await_waiting(server, 0)
        with RawConnection(server.port) as next_one:
            next_one.send(head(key))
            await_waiting(server, 1)
        await_waiting(server, 0)
