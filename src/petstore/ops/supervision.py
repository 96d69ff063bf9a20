"""What the parent of the workers has done: left in the directory of the counts, shown by the worker asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

CAUSES = ("exit", "signal", "hung")
RESULTS = ("done", "refused", "failed")
_NAME = "parent"


class Supervision(msgspec.Struct, frozen=True):
    """`restarts` are by cause, `reloads` by result."""

    workers: int | None = None
    restarts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    reloads: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    is_replaced: bool = False


def leave(directory: Path, facts: Supervision) -> None:
    """For the workers, whole or not at all. Raises OSError."""
    partial = directory / f"{_NAME}.partial"
    partial.write_bytes(msgspec.msgpack.encode(facts))
    partial.replace(directory / _NAME)


def _read(directory: Path | None) -> Supervision:
    if directory is None:
        return Supervision()
    try:
        return msgspec.msgpack.decode((directory / _NAME).read_bytes(), type=Supervision)
    except (OSError, msgspec.MsgspecError):
        return Supervision()


def supervision_metrics(directory: Path | None) -> Callable[[], Iterable[Metric]]:
    """What was left last, to be asked at each scrape. Where nothing was, only the workers are not known."""

    def metrics() -> Iterable[Metric]:
        facts = _read(directory)
        if facts.workers is not None:
            yield GaugeMetricFamily("petstore_workers", "Workers that serve.", value=facts.workers)
        restarts = CounterMetricFamily(
            "petstore_worker_restarts", "Workers that ended without being told to.", labels=["cause"]
        )
        for cause, count in facts.restarts.items():
            restarts.add_metric([cause], count)
        yield restarts
        reloads = CounterMetricFamily("petstore_reloads", "SIGHUPs, by what came of them.", labels=["result"])
        for result, count in facts.reloads.items():
            reloads.add_metric([result], count)
        yield reloads
        replaced = "Whether the program on the disk is another one than this."
        yield GaugeMetricFamily("petstore_package_replaced", replaced, value=int(facts.is_replaced))

    return metrics
