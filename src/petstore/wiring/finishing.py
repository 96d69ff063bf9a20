"""What answers outside /v1 have besides their content; those under /v1 get it in api/pipeline/app.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from petstore.api.pipeline.request import Receive, Scope, Send
from petstore.api.pipeline.response import date_header
from petstore.api.pipeline.unread import UnreadBodies
from petstore.core.clock import Clock

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Finishing:
    """An application whose answers have Date, and `Connection: close` where a body stays unread."""

    def __init__(self, application: Application, unread: UnreadBodies, clock: Clock) -> None:
        self._application = application
        self._unread = unread
        self._now_ms = clock.now_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        is_read = b"content-length" not in headers and b"transfer-encoding" not in headers

        async def receive_noting_the_end() -> MutableMapping[str, Any]:
            nonlocal is_read
            message = await receive()
            is_read = is_read or not message.get("more_body", False)
            return message

        async def send_finished(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                ending = () if is_read else await self._unread.settle(message["status"], headers, receive)
                date = date_header(self._now_ms() // 1_000)
                message["headers"] = [*message["headers"], date, *ending]
            await send(message)

        await self._application(scope, receive_noting_the_end, send_finished)
