"""The event loop's connections by names, with a name service that hangs, fails or has several answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from petstore.server.loop import Loop


class Names:
    """Stands in for the name service: `hanging` until `answer` is set, `several` with two addresses."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = Event()
        self.failed = Event()
        self._look_up = socket.getaddrinfo

    def __call__(self, host: str, port: object, **options: Any) -> list[Any]:
        self.asked.append(host)
        if host == "hanging.example":
            self.answer.wait()
            self.failed.set()
            raise socket.gaierror(-3, "Temporary failure in name resolution")
        addresses = ["127.0.0.2", "127.0.0.1"] if host == "several.example" else ["127.0.0.1"]
        return [place for address in addresses for place in self._look_up(address, None, **options)]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names)
    yield names
    names.answer.set()


@pytest.fixture
def port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


async def _give_up(loop: asyncio.AbstractEventLoop, times: int) -> None:
    for _ in range(times):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await loop.create_connection(asyncio.Protocol, "hanging.example", 1)


async def _address(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Any:
    transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
    transport.abort()
    return transport.get_extra_info("peername")[0]


class TestNames:
    def test_one_that_hangs_holds_up_neither_another_nor_the_end(self, names: Names, port: int) -> None:
        """One is the name of Valkey; the others are PostgreSQL's, and a stop."""

        async def connect() -> None:
            loop = asyncio.get_running_loop()
            await _give_up(loop, 20)
            assert await _address(loop, "good.example", port) == "127.0.0.1"

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(connect())
        assert not names.answer.is_set()

    def test_look_ups_of_one_that_hangs_are_bounded(self, names: Names) -> None:
        """Attempts to connect that follow each other for hours leave no more and more threads."""

        async def connect() -> None:
            await _give_up(asyncio.get_running_loop(), 20)

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(connect())
        assert names.asked.count("hanging.example") == 8

    def test_a_failure_after_its_caller_has_left_is_no_fault_of_the_loop(self, names: Names) -> None:
        """The log would have a traceback for each attempt to connect."""
        faults: list[dict[str, Any]] = []

        async def connect() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: faults.append(context))
            await _give_up(loop, 1)
            names.answer.set()
            with pytest.raises(socket.gaierror, match="Temporary failure"):
                await loop.create_connection(asyncio.Protocol, "hanging.example", 1)

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(connect())
        assert names.failed.is_set()
        assert faults == []

    def test_its_addresses_are_tried_in_order(self, names: Names, port: int) -> None:
        """Nobody listens at the first."""

        async def connect() -> Any:
            return await _address(asyncio.get_running_loop(), "several.example", port)

        with asyncio.Runner(loop_factory=Loop) as runner:
            assert runner.run(connect()) == "127.0.0.1"
