"""The page of events: each type of the one table, with an example that is as the store makes it."""

from __future__ import annotations

import html
import re
from typing import Any

import msgspec
import pytest

from petstore.core.durations import DAY_MS
from petstore.core.errors import PetstoreError
from petstore.core.event_examples import example
from petstore.core.events import TYPES, Event, EventQuery
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import UsageChanges
from petstore.core.webhooks import NewWebhook, WebhookChange
from petstore.storage.store import Store
from tests.storage.contract.test_journal import WALK
from tests.support import contract
from tests.support.journal import ACTOR
from tests.support.service import Shop
from tests.support.windows import used_of

_SECTION = re.compile(r'<h3 id="([a-z.]+)">.*?</h3>\s*<p>(.*?)</p>\s*<pre[^>]*><code[^>]*>(.*?)</code>', re.S)


@pytest.fixture
async def made(shop: Shop) -> dict[str, list[Event]]:
    """The events of all changes that the store can make, by their types."""
    store = shop.store
    await _change_all(store)
    await _happen(shop)
    found: dict[str, list[Event]] = {}
    query = EventQuery(100, None)
    while True:
        page = await store.events.page(query)
        for event in page.events:
            found.setdefault(event.type, []).append(event)
        if not page.is_behind:
            return found
        query = EventQuery(100, None, after=page.after)


async def _change_all(store: Store) -> None:
    for _, work, expected in WALK:
        try:
            await work(store)
        except PetstoreError:
            assert expected == []
    await store.events.note_restore(ACTOR)


async def _happen(shop: Shop) -> None:
    """An account uses up its day, a key is banned, another expires; a webhook is tested, and disabled."""
    store, clock = shop.store, shop.clock
    account = await store.accounts.add("busy", FREE, ACTOR)
    keys = [
        await store.keys.issue("busy", "test", ACTOR, expires_at_ms=ms)
        for ms in (None, clock.ms + 20 * DAY_MS)
    ]
    clock.advance(17 * DAY_MS / 1_000)
    day = clock.ms // DAY_MS
    ban = BanState(
        refused_reset_at=(day + 1) * DAY_MS // 1_000,
        banned_from_ms=clock.ms,
        banned_until_ms=clock.ms + 60_000,
    )
    used = used_of((clock.ms, 1), (day, FREE.per_day))
    await store.counters.save(LimiterState({account.id: used}, {keys[0].record.id: ban}), UsageChanges())
    webhook, _, _ = await store.webhooks.create(
        account.id, keys[0].record.id, NewWebhook("https://shop.example/hook"), "", ACTOR
    )
    await store.deliveries.test(webhook.id, ACTOR, account.id)
    await store.webhooks.change(webhook.id, WebhookChange(enabled=False), ACTOR)
    await store.facts.record_counted()
    await store.facts.record_timed(2 * clock.ms)


def _check(shown: dict[str, Any], written: list[dict[str, Any]], is_whole: bool) -> None:
    """The members are those of an event that was written, all of them where it has all, and of its types."""
    known = {name for data in written for name in data}
    assert shown.keys() == known if is_whole else shown.keys() <= known
    for name in shown.keys() - {"previous"}:
        types = {type(data[name]) for data in written if name in data} - {type(None)}
        assert not types or shown[name] is None or type(shown[name]) in types, name


async def test_an_example_has_what_the_store_writes(made: dict[str, list[Event]]) -> None:
    """A new object and a removed one have all members, a change some."""
    assert made.keys() == {kind.name for kind in TYPES}
    for kind in TYPES:
        shown, written = example(kind).data, [event.data for event in made[kind.name]]
        is_change = "previous" in shown and len(shown) > 2
        _check(shown, written, not is_change)
        former = [data["previous"] for data in written if "previous" in data]
        _check(shown.get("previous", {}), former, not is_change)


async def test_the_page_has_each_type_once(shared_shop: Shop) -> None:
    """The page has each type once, in the section of its subject, which says who sees it, at an anchor of its
    name, with its sentence and an example that the contract allows."""
    page = (await shared_shop.call("GET", "/docs/events")).body.decode()
    sections = [
        (name, html.unescape(re.sub("<[^>]+>", "", text)), html.unescape(re.sub("<[^>]+>", "", code)))
        for name, text, code in _SECTION.findall(page)
    ]
    assert [name for name, _, _ in sections] == [kind.name for kind in TYPES]
    schema = contract.document()["components"]["schemas"]["Event"]
    for kind, (_, text, code) in zip(TYPES, sections, strict=True):
        assert text.startswith(kind.summary)
        event = msgspec.json.decode(code)
        contract.check_value(schema, event, kind.name)
        assert event["type"] == kind.name
        group = page.partition(f'<h2 id="{kind.subject}.*">')[2].partition("<h2")[0]
        assert f'<h3 id="{kind.name}">' in group
        seen_by = ["Every account sees these" in group, "Only your own account sees these" in group]
        assert seen_by == [kind.is_shared, not kind.is_shared]
