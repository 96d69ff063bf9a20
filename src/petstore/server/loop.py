"""The event loop of a process: uvloop's, but a look-up of a name that hangs holds up nothing else."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable
from concurrent.futures import Future
from threading import Thread
from typing import Any

import uvloop

_LOOK_UPS = 8  # at a time for one name; further connections share the newest
_NUMERIC = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class Loop(uvloop.Loop):
    """A look-up that nobody waits for any longer delays neither other names nor the process's end.

    uvloop's own run two at a time for all names, for as long as name servers are silent and in the order in
    which they were asked for, and its close waits for them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._under_way: dict[str, list[Future[list[str]]]] = {}

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        """Connect as asyncio does; the addresses of a name are tried in their order."""
        if host is None:
            return await super().create_connection(protocol_factory, **options)
        if options.get("ssl") and options.get("server_hostname") is None:
            options["server_hostname"] = host
        *others, last = await self._look_up(host)
        for address in others:
            try:
                return await super().create_connection(protocol_factory, address, port, **options)
            except OSError:
                continue
        return await super().create_connection(protocol_factory, last, port, **options)

    def _look_up(self, host: str) -> Awaitable[list[str]]:
        under_way = self._under_way.setdefault(host, [])
        running = list(under_way)  # their threads remove them
        found: Future[list[str]] = Future() if len(running) < _LOOK_UPS else running[-1]
        if found not in running:
            under_way.append(found)
            try:  # no pool: its threads are waited for at the end
                Thread(target=_resolve, args=(host, under_way, found), daemon=True).start()
            except RuntimeError as error:  # the machine has no thread left
                under_way.remove(found)
                raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        return asyncio.shield(asyncio.wrap_future(found, loop=self))


def _resolve(host: str, under_way: list[Future[list[str]]], found: Future[list[str]]) -> None:
    try:
        resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = [socket.getnameinfo(sockaddr, _NUMERIC)[0] for *_, sockaddr in resolved]
    except Exception as error:
        under_way.remove(found)
        found.set_exception(error)
    else:
        under_way.remove(found)
        found.set_result(addresses)
