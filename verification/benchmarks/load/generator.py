"""The bundled closed-loop generator: `python -m …load.generator PORT SECONDS LINES LOAD`."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import msgspec
import uvloop

from verification.benchmarks.load.client import Connection, request_bytes
from verification.benchmarks.load.closed import Load, Outcome


async def _main(port: int, seconds: float, lines: list[str], load: Load) -> Outcome:
    loop = asyncio.get_running_loop()
    requests = [request_bytes(line, load.method, load.body, load.accept_encoding) for line in lines]
    connections: list[Connection] = []
    sent = answered = unexpected = 0
    ends = time.perf_counter() + seconds
    finished = loop.create_future()

    def next_request(connection: Connection, slot: float) -> None:
        nonlocal sent
        connection.send(requests[sent % len(requests)], slot)
        sent += 1

    def on_answer(slot: float, status: int) -> None:
        nonlocal answered, unexpected
        answered += 1
        unexpected += (status < 300) != (load.expect < 300)
        if time.perf_counter() < ends:
            next_request(connections[int(slot)], slot)
        elif answered == sent and not finished.done():
            finished.set_result(None)

    for _ in range(load.connections):
        _, connection = await loop.create_connection(lambda: Connection(on_answer), "127.0.0.1", port)
        connections.append(connection)
    began = time.perf_counter()
    for slot, connection in enumerate(connections):
        next_request(connection, float(slot))
    await finished
    spent = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return Outcome(answered / spent, unexpected, spent)


if __name__ == "__main__":
    port_text, seconds_text, lines_path, options = sys.argv[1:]
    outcome = uvloop.run(
        _main(
            int(port_text),
            float(seconds_text),
            Path(lines_path).read_text(encoding="ascii").splitlines(),
            msgspec.json.decode(options, type=Load),
        )
    )
    print(msgspec.json.encode(outcome).decode())
