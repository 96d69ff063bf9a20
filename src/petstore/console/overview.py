"""The overview: troubles, notices, totals, waiting orders, newest entries. It refreshes itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response

from petstore.console import order_pages
from petstore.console.categories import names_in
from petstore.console.charts import charts
from petstore.console.formats import duration
from petstore.console.journal import lines_with_names
from petstore.console.journal_pages import page_of_lines
from petstore.console.statistics import Counted
from petstore.console.visit import View, Visit
from petstore.core.durations import HOUR_MS, SECOND_MS, days_left
from petstore.core.journal import JournalQuery
from petstore.core.limits.usage import DEPRECATED_DAYS
from petstore.core.mails import LATE_MS
from petstore.core.orders import OrderQuery
from petstore.core.people import Role
from petstore.core.service import Trouble
from petstore.core.sign_ins import PersonSession
from petstore.core.totals import NAMED_MAX, Totals
from petstore.core.webhooks import Webhook
from petstore.core.zones import zone_name

_ORDERS = 8
_ENTRIES = 10
_PEOPLE = 10
_SESSIONS = 100  # that are read for them
_SLOW_SECONDS = 0.5
# The overview lists callers of the deprecated operation in the last year before its removal.
_ENDS_SOON_DAYS = 365
# How often the page refreshes; sooner until there is a first count.
_REFRESH_SECONDS = 10
_FIRST_REFRESH_SECONDS = 2


class Notice(msgspec.Struct, frozen=True):
    """Something for people to do: what happened, to whom, what to do.

    `about` has pages below the console with the texts of their links. `has_more`: it is cut.
    """

    what: str
    about: list[tuple[str, str]]
    to_do: str
    has_more: bool = False


async def show(visit: Visit) -> Response:
    """The page, or for htmx its refreshed block."""
    desk, store = visit.desk, visit.store
    began = desk.clock.monotonic()
    waiting = await store.orders.page(OrderQuery(limit=_ORDERS, open_only=True))
    rows = await order_pages.rows_of(visit, waiting.orders)
    entries = (await page_of_lines(visit, JournalQuery(_ENTRIES))).entries
    failing = await store.webhooks.failing(NAMED_MAX + 1)
    mails, oldest_seconds = await store.notifications.waiting()
    slow_seconds = desk.clock.monotonic() - began
    service, counted = await desk.read_service(), await desk.statistics.latest()
    return visit.page(
        "overview.html",
        "Overview",
        fragment="now",
        troubles=[*service.troubles, *_of_database(slow_seconds, desk.statistics.failed)],
        notices=[
            *(
                notices_of(counted.totals, days_left(service.known.removal_at_ms, visit.now_ms))
                if counted
                else ()
            ),
            *of_webhooks(failing, visit.now_ms),
            *_of_mail(mails, oldest_seconds),
        ],
        counted=counted,
        **(await _charts(visit, counted) if counted else {}),
        rows=rows,
        has_more=waiting.has_more,
        lines=await lines_with_names(visit, entries),
        **await _signed_in(visit),
        refresh_seconds=_REFRESH_SECONDS if counted else _FIRST_REFRESH_SECONDS,
    )


async def _charts(visit: Visit, counted: Counted) -> dict[str, Any]:
    """New charts each hour; a page that has this hour's charts keeps them, and gets none."""
    hour, zone = counted.at_ms // HOUR_MS, visit.desk.options.zone
    if visit.request.headers.get("x-charts") == str(hour):
        return {"charts_of": hour, "charts": []}
    drawn = charts(counted.totals, await names_in(visit), zone)
    return {"charts_of": hour, "charts": drawn, "shop_zone": zone_name(zone)}


async def _signed_in(visit: Visit) -> dict[str, Any]:
    """The people whose sessions were used last, for operators, who can end sessions."""
    if not visit.may(Role.OPERATOR):
        return {"signed_in": []}
    sessions = await visit.store.sign_ins.sessions(_SESSIONS)
    by_person: dict[int, list[PersonSession]] = defaultdict(list)
    for session in sessions:
        by_person[session.person.id].append(session)
    found = list(by_person.values())
    is_cut = len(found) > _PEOPLE or len(sessions) == _SESSIONS
    return {"signed_in": found[:_PEOPLE], "has_more_people": is_cut}


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
    """Notices from the last count. `days` are left until the deprecated operation ends."""
    if banned := totals.banned_keys:
        many = banned > 1
        yield Notice(
            f"{banned:,} {'keys are' if many else 'key is'} banned:"
            f" {'their programs' if many else 'its program'} went on after refusals.",
            [("bans", "All bans")],
            "Tell the customer to wait as Retry-After says; an operator can lift the ban.",
        )
    if totals.near_limit:
        yield Notice(
            "Near today's limit, or at it:",
            [
                (f"accounts/{use.id}", f"{use.name} ({use.used:,} of {use.per_day:,})")
                for use in totals.near_limit[:NAMED_MAX]
            ],
            "Offer a larger plan; the day ends at midnight UTC.",
            len(totals.near_limit) > NAMED_MAX,
        )
    if (callers := totals.deprecated_callers) and days <= _ENDS_SOON_DAYS:
        ends = f"ends in {days:,} {'day' if days == 1 else 'days'}" if days else "has ended"
        yield Notice(
            f"GET /v1/pets/{{petId}} {ends}. Callers in the last {DEPRECATED_DAYS} days:",
            [
                (f"accounts/{caller.account_id}", f"{caller.account} ({caller.calls:,})")
                for caller in callers[:NAMED_MAX]
            ],
            "Tell them to read GET /v1/pets?id=… instead.",
            len(callers) > NAMED_MAX,
        )


def of_webhooks(failing: list[tuple[Webhook, str]], now_ms: int) -> Iterator[Notice]:
    """Webhooks that fail, with their accounts' names."""
    if failing:
        yield Notice(
            "Customers do not get their events. Webhooks that fail:",
            [
                (
                    f"webhooks/{webhook.id}",
                    f"{account} ({urlsplit(webhook.url).netloc}, for"
                    f" {duration(now_ms - (webhook.failing_since_ms or now_ms))})",
                )
                for webhook, account in failing[:NAMED_MAX]
            ],
            "Tell the customer; after five days without a success a webhook is disabled.",
            len(failing) > NAMED_MAX,
        )


def _of_mail(count: int, oldest_seconds: float) -> Iterator[Notice]:
    if (oldest_ms := round(oldest_seconds * SECOND_MS)) > LATE_MS:
        many = "1 mail waits" if count == 1 else f"{count:,} mails wait, the oldest"
        to_do = "The log says why: “mail waits”. A fault of one address is on the page that has its contact."
        yield Notice(f"{many} for {duration(oldest_ms)}.", [], to_do)


VIEWS = [View("GET", "", show)]
