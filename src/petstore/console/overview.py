"""The overview: what a shop owner wants to see all day. It refreshes itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from starlette.responses import Response

from petstore.console.history import lines
from petstore.console.orders import Store, rows_of
from petstore.console.stocktaking import Counted, Stocktaking
from petstore.console.visit import View, Visit
from petstore.core.clock import Clock
from petstore.core.durations import days_left
from petstore.core.journal import JournalQuery
from petstore.core.limits.usage import DEPRECATED_DAYS, DeprecatedCalls
from petstore.core.orders import OrderQuery
from petstore.core.service import ServiceReport, Trouble
from petstore.core.totals import NAMED_MAX, NearLimit, Totals

_ORDERS = 8
_ENTRIES = 10
_SLOW_SECONDS = 0.5
# How often the page asks for its numbers; sooner until there is a first count.
_REFRESH_SECONDS = 10
_FIRST_REFRESH_SECONDS = 2


class Notice(msgspec.Struct, frozen=True):
    """Something to look after, in whole sentences, and the page for it below the console, with its name."""

    what: str
    to_do: str
    page: str
    page_name: str


class OverviewPage:
    """`clock` measures how long the page waits for the database."""

    def __init__(self, store: Store, stocktaking: Stocktaking, service: ServiceReport, clock: Clock) -> None:
        self._store = store
        self._stocktaking = stocktaking
        self._service = service
        self._clock = clock

    def views(self) -> list[View]:
        return [View("GET", "", self.show)]

    async def show(self, visit: Visit) -> Response:
        """The page, or for htmx what is new on it."""
        began = self._clock.monotonic()
        waiting = await self._store.orders.page(OrderQuery(limit=_ORDERS, open_only=True))
        rows = await rows_of(self._store, waiting.orders)
        entries = (await self._store.journal.page(JournalQuery(_ENTRIES))).entries
        slow_seconds = self._clock.monotonic() - began
        counted = await self._stocktaking.look()
        return visit.page(
            "overview.html",
            "Overview",
            fragment="now",
            troubles=[*await self._service.troubles(), *_of_database(slow_seconds, self._stocktaking.failed)],
            notices=await self._notices(counted, visit.now_ms),
            counted=counted,
            rows=rows,
            has_more=waiting.has_more,
            lines=lines(entries),
            refresh_seconds=_REFRESH_SECONDS if counted else _FIRST_REFRESH_SECONDS,
        )

    async def _notices(self, counted: Counted | None, now_ms: int) -> list[Notice]:
        if counted is None:
            return []
        days = 0
        if counted.totals.deprecated_callers:
            days = days_left((await self._service.state()).removal_at_ms, now_ms)
        return list(notices_of(counted.totals, days))


def _of_database(slow_seconds: float, failed: bool) -> Iterator[Trouble]:
    if slow_seconds > _SLOW_SECONDS:
        yield Trouble(
            f"The database is slow: this page waited {slow_seconds:.1f} seconds for it.",
            "See on the page of the service what it is busy with, and whether its disk is.",
        )
    if failed:
        yield Trouble(
            "The store could not be counted, so the numbers are old or missing.",
            "The log says why: “store not counted”. The next look counts it again.",
        )


def notices_of(totals: Totals, days: int) -> Iterator[Notice]:
    """What the last count found that somebody should know; `days` are left of the deprecated operation."""
    if banned := totals.banned_keys:
        many = banned > 1
        yield Notice(
            f"{banned:,} {'keys are' if many else 'key is'} banned:"
            f" {'their programs went' if many else 'its program went'} on after refusals.",
            "Tell the customer to wait as Retry-After says, then lift the ban.",
            "bans",
            "All bans",
        )
    if totals.near_limit:
        yield Notice(
            "Some accounts are near today's limit, or at it.",
            f"These are {_listed([_use_of(use) for use in totals.near_limit])}."
            " Offer them a larger plan; the day ends at midnight UTC.",
            f"accounts/{totals.near_limit[0].id}",
            f"Account {totals.near_limit[0].name}",
        )
    if totals.deprecated_callers:
        ends = f"ends in {days:,} {'day' if days == 1 else 'days'}" if days else "has ended"
        yield Notice(
            f"GET /v1/pets/{{petId}} {ends}, and is still called.",
            f"In the last {DEPRECATED_DAYS} days"
            f" {_listed([_calls_of(caller) for caller in totals.deprecated_callers])} called it."
            " Tell them to read GET /v1/pets?id=… instead.",
            "service",
            "All callers",
        )


def _use_of(use: NearLimit) -> str:
    return f"{use.name} ({use.used:,} of {use.per_day:,})"


def _calls_of(caller: DeprecatedCalls) -> str:
    return f"{caller.account} ({caller.calls:,} {'call' if caller.calls == 1 else 'calls'})"


def _listed(names: Sequence[str]) -> str:
    """The first NAMED_MAX of them, and whether there are more."""
    return ", ".join(names[:NAMED_MAX]) + (" and others" if len(names) > NAMED_MAX else "")
