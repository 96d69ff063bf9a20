"""Durable changes: every answer comes after the fsync of its commit."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw

from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.report import Row, over_one
from verification.benchmarks.rows.reads import ANIMALS

BODY = '{"name":"Rex","categoryId":1}'
CONNECTIONS = (1, 8, 64)
_BUSY_MS = 10_000
_TARGETS = {"POST, 64 connections": ">= 4"}
_turns = itertools.count()


def post(port: int, key: str, connections: int, seconds: float) -> Callable[[], float]:
    """A measurement of additions."""
    return rate(Load((f"/v1/pets {key}",), "POST", BODY, connections, 201), port, seconds)


def patch(port: int, key: str, file: Path, seconds: float) -> Callable[[], float]:
    """A measurement of changes of name and status, by 64 connections: in each turn others."""
    lines = tuple(f"/v1/pets/{pet_id} {key}" for pet_id in range(1, ANIMALS))

    def measure_once() -> float:
        _release(file)
        turn = next(_turns)
        body = f'{{"name":"Rex {turn}","status":"sold"}}'
        return run(Load(lines, "PATCH", body), port, seconds).per_second

    return measure_once


def order(port: int, key: str, file: Path, seconds: float) -> Callable[[], float]:
    """A measurement of orders by 64 connections, each of an animal that nobody has ordered."""
    lines = tuple(f'/v1/store/orders {key} {{"petId":{pet_id}}}' for pet_id in range(1, ANIMALS))

    def measure_once() -> float:
        _release(file)
        return run(Load(lines, "POST", expect=201), port, seconds).per_second

    return measure_once


def _release(file: Path) -> None:
    """Make every animal available again, and forget the orders, beside the server."""
    connection = apsw.Connection(str(file))
    connection.set_busy_timeout(_BUSY_MS)
    with connection:
        connection.execute("DELETE FROM orders")
        connection.execute("UPDATE pets SET status = 'available' WHERE status <> 'available'")
    connection.close()


def measure(plan: Plan) -> list[Row]:
    """The rows of changes, over the same growing file."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary:
        file = copy_of(source, Path(temporary))
        with servers.petstore("writes", file) as shop:
            measurements = {
                f"POST, {count} connections": post(shop.port, key, count, plan.seconds)
                for count in CONNECTIONS
            }
            measurements["PATCH, 64 connections"] = patch(shop.port, key, file, plan.seconds)
            measurements["order, 64 connections"] = order(shop.port, key, file, plan.seconds)
            taken = medians(measurements, plan)
    return over_one("write", taken, "POST, 1 connections", "1 connection", _TARGETS)
