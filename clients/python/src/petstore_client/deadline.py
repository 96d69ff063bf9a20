"""The end of a whole request. httpx2 bounds the silence of each read, so an answer that drips could go on.

Its extension `trace` shows each connection when it is opened. From then on every read of it asks how much of
the call is left, also between the bytes of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx2


class Silence(float):
    """Seconds of silence that a step of a request takes: `timeout`, or what is left until `ends_at`."""

    now: Callable[[], Silence]

    def __new__(cls, timeout: float, ends_at: float, clock: Callable[[], float]) -> Silence:
        silence = super().__new__(cls, max(0.0, min(timeout, ends_at - clock())))
        silence.now = partial(cls, timeout, ends_at, clock)
        return silence


def watch(event: str, info: Mapping[str, Any]) -> None:
    """Let the reads of a new connection end with the call that reads."""
    if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        stream = info["return_value"]
        stream.read = partial(_read, stream.read)


async def watch_async(event: str, info: Mapping[str, Any]) -> None:
    """As `watch`; httpx2 awaits it."""
    watch(event, info)


def _read(read: Callable[[int, float], Any], max_bytes: int, timeout: Silence) -> Any:
    left = timeout.now()
    if not left:
        raise httpx2.ReadTimeout("The seconds of the call are over.")
    return read(max_bytes, left)
