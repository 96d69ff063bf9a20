"""The ASGI application: /v1 goes to the API's own pipeline, everything else to the site."""

from __future__ import annotations

import structlog

from petstore import bootstrap
from petstore.api.head import Receive, Scope, Send
from petstore.clock import Clock
from petstore.config import Settings
from petstore.errors import ConfigurationError, PetstoreError

_log = structlog.get_logger("petstore")


class Application:
    """Builds the service at startup, in the process that serves, and stops it at shutdown."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._service: bootstrap.Service | None = None

    @property
    def service(self) -> bootstrap.Service:
        """The running service; only between startup and shutdown."""
        assert self._service is not None, "the lifespan has not started"
        return self._service

    @property
    def is_running(self) -> bool:
        """Whether the service is built and not stopped yet."""
        return self._service is not None

    async def start(self) -> None:
        """Build the service. Raises ConfigurationError and StoreUnavailable."""
        self._service = await bootstrap.build(self._settings, self._clock)

    async def stop(self) -> None:
        """Stop the service."""
        service, self._service = self.service, None
        await service.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: bytes = scope["raw_path"]
            service = self.service
            if path.startswith(b"/v1/") or path == b"/v1":
                await service.api(scope, receive, send)
            else:
                await service.site(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    foreseen = isinstance(error, ConfigurationError | PetstoreError)
                    _log.error("start failed", reason=str(error), exc_info=None if foreseen else error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
