"""What goes on beside a test, in threads of its own: servers, and any other work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import Any, TypeVar

_S = TypeVar("_S", bound=BaseServer)
_Begun = Coroutine[Any, Any, asyncio.Server]


@contextmanager
def working(*works: Callable[[threading.Event], object]) -> Iterator[None]:
    """Each of them at work until its event is set, at the end of a block."""
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@contextmanager
def answering(server: _S) -> Iterator[_S]:
    """A server of the standard library, for the length of a block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_beside(begin: Callable[[asyncio.AbstractEventLoop], _Begun]) -> Iterator[int]:
    """The port of the asyncio server that `begin` makes, for the length of a block; its tasks and connections
    end with it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(begin(loop), loop).result()
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            loop.call_soon_threadsafe(server.close)
    finally:
        asyncio.run_coroutine_threadsafe(_end_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_others() -> None:
    """Tasks, then connections without one: such as those whose encryption has just failed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    # The loop's own list: a server of Python 3.11 does not know its connections.
    for transport in list(vars(asyncio.get_running_loop())["_transports"].values()):
        transport.abort()
    await asyncio.sleep(0)
