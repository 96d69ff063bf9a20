"""Connections to receivers of webhooks: which addresses are called, and how much may come back."""

from __future__ import annotations

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from petstore.core.targets import UrlGuard

_ADDRESSES_MAX = 8  # that one attempt calls: a name may have thousands
# asyncio's own threads are few and for all of the process, and slow name servers hold each for 30 s.
_THREADS = 64
# Receivers close connections that were idle for 5 s and more; an attempt on one of them gets no answer.
_IDLE_SECONDS = 4.0
RECEIVED_MAX = 524_288  # bytes for one request, of which asyncio may read half at once


class AddressRefused(Exception):
    """The guard refuses an address of a name; a sentence."""


class CheckedResolver(AbstractResolver):
    """Looks a name up once for each new connection; without a guard nothing is refused."""

    def __init__(self, guard: UrlGuard | None) -> None:
        self._guard = guard
        self._threads = ThreadPoolExecutor(_THREADS, "resolving")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises OSError for an unknown name, and AddressRefused when one of its addresses is refused."""
        ask = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        addresses = [(family, str(sockaddr[0])) for family, _, _, _, sockaddr in found]
        for _, address in addresses:
            if self._guard is not None and (fault := self._guard.fault_of_address(address)) is not None:
                raise AddressRefused(f"{host} is {fault}.")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for family, address in addresses[:_ADDRESSES_MAX]
        ]

    async def close(self) -> None:
        """Look-ups that are under way end by themselves: nothing waits for them."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class BoundedHandler(ResponseHandler):
    """Breaks off an answer that goes on beyond RECEIVED_MAX.

    aiohttp bounds neither interim answers (1xx) nor extensions of chunks, and each costs time of the process.
    """

    _received = 0

    def set_response_params(self, **params: Any) -> None:
        self._received = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        if self._received > RECEIVED_MAX and self.transport is not None:
            self.set_exception(HttpProcessingError(message=f"More than {RECEIVED_MAX // 1_024} KiB received"))
            self.transport.abort()


class Connector(aiohttp.TCPConnector):
    """Gives callers as many connections as they ask for."""

    def __init__(self, resolver: CheckedResolver, context: ssl.SSLContext) -> None:
        super().__init__(
            resolver=resolver, use_dns_cache=False, ssl=context, limit=0, keepalive_timeout=_IDLE_SECONDS
        )
        handler: type[ResponseHandler] = BoundedHandler
        self._factory = partial(handler, loop=self._loop)
