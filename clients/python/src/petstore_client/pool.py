"""Connections: one set for a process or an event loop.

A forked process opens its own, since two processes must not share a socket. The last user of a set closes
it: closing a connection does not wake a caller that waits on it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

import httpx2

from petstore_client.connection import is_loopback
from petstore_client.errors import ConfigurationError
from petstore_client.runtime import reset_in_child

# What httpx2's clients raise for an environment that they can't use.
_UNUSABLE = (httpx2.InvalidURL, ValueError, ImportError, OSError)


class _Follower(Protocol):
    """A call that goes on for ever."""

    def close(self) -> None:
        """End it."""


class Pool:
    """The connections of a process, for threads."""

    def __init__(self, address: str, transport: httpx2.BaseTransport | None) -> None:
        self._options = _options(address, transport)
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop all connections. Called after a fork too: the inherited ones belong to the parent."""
        self._lock = threading.Lock()
        self._http: httpx2.Client | None = None
        self._users: Counter[httpx2.Client] = Counter()
        self._followers: WeakSet[_Follower] = WeakSet()

    @contextmanager
    def lease(self) -> Iterator[httpx2.Client]:
        """The connections, for one try. Raises ConfigurationError for unusable proxies or certificates."""
        with self._lock:
            if self._http is None:
                self._http = self._opened()
            http = self._http
            self._users[http] += 1
        try:
            yield http
        finally:
            with self._lock:
                self._users[http] -= 1
                idle = not self._users[http]
                if idle:
                    del self._users[http]
            if idle and http is not self._http:
                http.close()

    def _opened(self) -> httpx2.Client:
        try:
            return httpx2.Client(**self._options)
        except _UNUSABLE as error:
            raise _unusable(error) from error

    def add_follower(self, follower: _Follower) -> None:
        """One that ends when the pool is closed."""
        with self._lock:
            self._followers.add(follower)

    def close(self) -> None:
        with self._lock:
            followers, self._followers = list(self._followers), WeakSet()
            http, self._http = self._http, None
            idle = http not in self._users
        for follower in followers:
            follower.close()
        if http is not None and idle:
            http.close()


class AsyncPool:
    """The connections of each event loop."""

    def __init__(self, address: str, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._options = _options(address, transport)
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop all connections. Called after a fork too: the inherited ones belong to the parent."""
        self._of_loops: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._users: Counter[httpx2.AsyncClient] = Counter()
        self._followers: WeakKeyDictionary[_Follower, asyncio.AbstractEventLoop] = WeakKeyDictionary()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[httpx2.AsyncClient]:
        """The running loop's connections, for one try. Raises as Pool.lease."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            for closed in [other for other in list(self._of_loops) if other.is_closed()]:
                self._of_loops.pop(closed, None)
            self._of_loops[loop] = self._opened()
        http = self._of_loops[loop]
        self._users[http] += 1
        try:
            yield http
        finally:
            self._users[http] -= 1
            if not self._users[http]:
                del self._users[http]
                if http is not self._of_loops.get(loop):
                    await http.aclose()

    def _opened(self) -> httpx2.AsyncClient:
        try:
            return httpx2.AsyncClient(**self._options)
        except _UNUSABLE as error:
            raise _unusable(error) from error

    def add_follower(self, follower: _Follower) -> None:
        """One of the running loop that ends when its connections are closed."""
        self._followers[follower] = asyncio.get_running_loop()

    async def close(self) -> None:
        ending = asyncio.get_running_loop()
        for follower in [each for each, loop in list(self._followers.items()) if loop is ending]:
            follower.close()
        http = self._of_loops.pop(ending, None)
        if http is not None and not self._users[http]:
            await http.aclose()


def _options(address: str, transport: object) -> dict[str, Any]:
    """The arguments of httpx2's clients for a checked address.

    Proxies and certificates come from the environment. Plain http to this machine uses no proxy.
    """
    parts = urlsplit(address)
    stays_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    return {"transport": transport, "follow_redirects": False, "trust_env": not stays_here}


def _unusable(error: Exception) -> ConfigurationError:
    """The error when httpx2 refuses the environment."""
    return ConfigurationError(
        "The proxy or the certificates that the environment names (such as HTTPS_PROXY, SSL_CERT_FILE) can't"
        f" be used. {error}"
    )
