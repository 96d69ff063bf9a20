"""What answers outside /v1 have besides their content; those under /v1 get it in api/pipeline/app.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from petstore.api.pipeline.request import Receive, Scope, Send
from petstore.api.pipeline.response import date_header
from petstore.core.clock import Clock

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Finishing:
    """An application whose answers have Date."""

    def __init__(self, application: Application, clock: Clock) -> None:
        self._application = application
        self._now_ms = clock.now_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_finished(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                date = date_header(self._now_ms() // 1_000)
                message["headers"] = [*message["headers"], date]
            await send(message)

        await self._application(scope, receive, send_finished)
