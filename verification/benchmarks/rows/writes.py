"""Durable additions with 1, 8 and 64 connections: every 201 comes after the fsync of its commit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, run
from verification.benchmarks.report import Row

BODY = '{"name":"Rex","categoryId":1}'
CONNECTIONS = (1, 8, 64)


def post(port: int, key: str, connections: int, seconds: float) -> Callable[[], float]:
    """A measurement of additions."""
    load = Load((f"/v1/pets {key}",), "POST", BODY, connections, 201)
    return lambda: run(load, port, seconds).per_second


def measure(plan: Plan) -> list[Row]:
    """The rows of additions, over the same growing file."""
    source, (key, *_) = database(1_000)
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary:
        folder = Path(temporary)
        with servers.petstore("writes", copy_of(source, folder)) as shop:
            taken = medians(
                {
                    f"POST, {count} connections": post(shop.port, key, count, plan.seconds)
                    for count in CONNECTIONS
                },
                plan,
            )
    base = taken["POST, 1 connections"]
    return [
        Row("write", name, value, "requests/s", value / base, "1 connection", ">= 4" if "64" in name else "")
        for name, value in taken.items()
    ]
