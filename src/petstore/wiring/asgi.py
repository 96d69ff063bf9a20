"""The ASGI application: /v1 goes to the API's own pipeline, everything else to the site."""

from __future__ import annotations

import os
from collections.abc import Awaitable, MutableMapping
from pathlib import Path
from typing import Any

import structlog

from petstore.api.pipeline.request import Receive, Scope, Send
from petstore.api.pipeline.unread import CLOSE
from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import OperatorError, PetstoreError
from petstore.wiring.service import Service, build

_log = structlog.get_logger("petstore")


class Application:
    """Builds the service at startup, in the worker, and stops it at shutdown."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        counts_directory: Path | None = None,
        worker: int = 0,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._counts_directory = counts_directory
        self._worker = worker
        self._service: Service | None = None
        self._draining = False

    @property
    def service(self) -> Service:
        """The running service; only between startup and shutdown."""
        assert self._service is not None, "the lifespan has not started"
        return self._service

    async def start(self) -> None:
        """Build the service. Raises ConfigurationError and StoreUnavailable."""
        self._service = await build(self._settings, self._clock, self._counts_directory, self._worker)

    async def try_to_start(self) -> bool:
        """Build the service; False when that failed, which is logged."""
        try:
            await self.start()
        except Exception as error:
            foreseen = isinstance(error, OperatorError | PetstoreError)
            _log.error("start failed", reason=str(error), exc_info=None if foreseen else error)
            return False
        return True

    def begin_drain(self) -> None:
        """Answer 503 at /readyz and close each connection after its answer. Requests are still served."""
        _log.info("drain", pid=os.getpid(), message="")
        self.service.begin_drain()
        self._draining = True

    async def stop(self) -> None:
        """Stop the service."""
        service, self._service = self.service, None
        await service.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    def answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """The application for HTTP alone: without __call__ there is one coroutine less."""
        if self._draining:
            send = _closing(send)
        path: bytes = scope["raw_path"]
        service = self._service
        assert service is not None, "the service has not started"
        if path[:4] == b"/v1/" or path == b"/v1":
            return service.api(scope, receive, send)
        scope["path"] = path.decode("latin-1")  # not decoded, like the paths under /v1
        return service.site(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if not await self.try_to_start():
                    await send({"type": "lifespan.startup.failed", "message": "The log says why."})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _closing(send: Send) -> Send:
    """Ask the client, or the proxy, to send its next request elsewhere (RFC 9112, section 9.6)."""

    async def send_and_close(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*(one for one in message["headers"] if one != CLOSE), CLOSE]
        await send(message)

    return send_and_close
