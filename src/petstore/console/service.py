"""The page of the service: numbers with small charts, database, workers, callers of the deprecated operation.

The charts are SVG, drawn on the server without axes: they need no script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from petstore.console.formats import size
from petstore.console.visit import View, Visit
from petstore.core.durations import days_left
from petstore.core.limits.usage import DEPRECATED_DAYS
from petstore.core.service import ServiceState

_HEIGHT = 32


async def show(visit: Visit) -> Response:
    """The page, or only its numbers, which it refreshes every few seconds."""
    state = await visit.desk.read_service()
    values: dict[str, Any] = {"state": state, "charts": charts(state)}
    if not visit.wants_fragment:
        values |= {
            "use": await visit.store.usage.deprecated_callers(visit.now_ms),
            "deprecated_days": DEPRECATED_DAYS,
            "days_left": days_left(state.known.removal_at_ms, visit.now_ms),
        }
    return visit.page("service.html", "Service", fragment="numbers", **values)


class Chart(msgspec.Struct, frozen=True):
    """A number and its history. `line` is the SVG path in a box of width and height; `label` describes it."""

    title: str
    value: str
    unit: str
    note: str
    line: str
    width: int
    height: int
    label: str


def charts(state: ServiceState) -> list[Chart]:
    """Requests, errors, refusals, latency, commits, waiting requests and memory."""
    recent, history, latency = state.recent, state.history, state.recent.latency
    memory = size(state.memory_bytes)
    p95, answers = "none", "no answers in the last minute"
    if latency is not None:
        p95 = f"{short(latency.p95)} ms"
        half, most = short(latency.p50), short(latency.p99)
        answers = f"95 % of the answers; half in {half} ms, 99 % in {most} ms"

    def rate(title: str, name: str, value: float) -> Chart:
        note = f"average of the last {recent.seconds} seconds"
        return _chart(title, history[name], short(value), "a second", note)

    waits = "writes or requests that wait for the database, now"
    return [
        rate("Requests", "requests", recent.requests),
        rate("Errors (5xx)", "errors", recent.errors),
        rate("Refused (429)", "refusals", recent.refusals),
        _chart("Latency", history["p95"], p95, "", answers, lambda each: f"{short(each)} ms"),
        rate("Commits", "commits", recent.commits),
        _chart("Waiting", history["waiting"], short(state.waiting), "", waits),
        _chart("Memory", history["memory_bytes"], memory, "", "of all workers, now", size),
    ]


def _chart(
    title: str,
    values: Sequence[float | None],
    value: str,
    unit: str,
    note: str,
    say: Callable[[float], str] | None = None,
) -> Chart:
    known = [each for each in values if each is not None]
    say = say or (lambda each: f"{short(each)} {unit}".strip())
    label = f"{title} in the last ten minutes: "
    label += f"from {say(min(known))} to {say(max(known))}" if known else "nothing known yet"
    return Chart(title, value, unit, note, path(values), len(values) - 1, _HEIGHT, label)


def path(values: Sequence[float | None]) -> str:
    """An SVG path from left to right, one unit for each value, from 0 at the bottom to the maximum near the
    top. An unknown value is a gap, a value between gaps is a dot."""
    top = max((value for value in values if value is not None), default=0) or 1
    steps, is_drawing = [], False
    for x, value in enumerate(values):
        if value is not None:
            y = _HEIGHT - 1 - value / top * (_HEIGHT - 2)
            steps.append(f"L{x} {y:.1f}" if is_drawing else f"M{x} {y:.1f}h0")
        is_drawing = value is not None
    return "".join(steps)


def short(value: float) -> str:
    """A number with one or two significant digits below 10, else whole: 0.04, 3.2, 1,204."""
    if value == 0 or value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"


VIEWS = [View("GET", "/service", show)]
