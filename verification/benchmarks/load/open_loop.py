"""Open-loop load: requests leave on schedule whether or not earlier ones were answered.

Latency counts from the moment that a request was due, so that a stall is not hidden by waiting clients.
`python -m verification.benchmarks.load.open_loop PORT SECONDS RATE LINE`
"""

from __future__ import annotations

import asyncio
import sys
import time

import msgspec
import uvloop

from verification.benchmarks.load.client import Connection, request_bytes

_CONNECTIONS = 64


class Latency(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds of `answers` requests at the rate that was reached."""

    per_second: float
    answers: int
    unexpected: int
    p50: float
    p99: float
    p999: float


async def _main(port: int, seconds: float, rate: float, line: str) -> Latency:
    loop = asyncio.get_running_loop()
    request = request_bytes(line, "GET", "")
    latencies: list[float] = []
    unexpected, total = 0, int(rate * seconds)
    finished = asyncio.Event()

    def on_answer(due: float, status: int) -> None:
        nonlocal unexpected
        latencies.append(time.perf_counter() - due)
        unexpected += status != 200
        if len(latencies) == total:
            finished.set()

    connections = []
    for _ in range(_CONNECTIONS):
        _, connection = await loop.create_connection(lambda: Connection(on_answer), "127.0.0.1", port)
        connections.append(connection)
    began = time.perf_counter()
    sent = 0
    while sent < total:
        due_by_now = min(total, int((time.perf_counter() - began) * rate) + 1)
        while sent < due_by_now:
            connections[sent % _CONNECTIONS].send(request, began + sent / rate)
            sent += 1
        await asyncio.sleep(0)  # a core of its own: it never sleeps past a due time
    await finished.wait()
    spent = time.perf_counter() - began
    latencies.sort()
    places = (latencies[int(total * share)] * 1_000 for share in (0.5, 0.99, 0.999))
    return Latency(total / spent, total, unexpected, *places)


if __name__ == "__main__":
    port_text, seconds_text, rate_text, line_text = sys.argv[1:]
    outcome = uvloop.run(_main(int(port_text), float(seconds_text), float(rate_text), line_text))
    print(msgspec.json.encode(outcome).decode())
