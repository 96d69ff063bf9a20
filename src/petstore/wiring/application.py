"""What answers each request: /v1 by the API's own pipeline, everything else by the site."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import OperatorError, PetstoreError
from petstore.http.exchange import Exchange
from petstore.wiring.service import Service, build

_log = structlog.get_logger("petstore")


class Application:
    """Builds the service at startup, in the worker, and stops it at shutdown."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        metrics_directory: Path | None = None,
        worker: int = 0,
        await_predecessor: Callable[[], None] = lambda: None,
    ) -> None:
        self._build = partial(build, settings, clock, metrics_directory, worker, await_predecessor)
        self._service: Service | None = None

    @property
    def service(self) -> Service:
        """The running service; only between `start` and `stop`."""
        assert self._service is not None, "the service has not started"
        return self._service

    async def start(self) -> None:
        """Build the service. Raises ConfigurationError and StoreUnavailable."""
        self._service = await self._build()

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
        """Answer 503 at /readyz. Requests are still served."""
        _log.info("drain", pid=os.getpid(), message="")
        self.service.begin_drain()

    async def stop(self) -> None:
        """Stop the service."""
        service, self._service = self.service, None
        await service.stop()

    def __call__(self, exchange: Exchange) -> None:
        """Answer at once, or in a task."""
        path, service = exchange.path, self._service
        assert service is not None, "the service has not started"
        if path[:4] == b"/v1/" or path == b"/v1":
            service.api(exchange)
        else:
            service.site(exchange)
