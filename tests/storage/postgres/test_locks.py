"""What other transactions hold at that moment: it is passed by, or waited for, and never overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from petstore.core.durations import DAY_MS
from petstore.core.mails import Mail
from petstore.core.notifications import GATHERED_MS
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.storage.contract.test_deliverers import URL, claim
from tests.storage.contract.test_events import settled
from tests.storage.postgres.test_contacts import waiting
from tests.support import webhooks
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import run

Process = Callable[[Store], Coroutine[Any, Any, object]]


@pytest.fixture
async def store(database: str, clock: ManualClock) -> AsyncIterator[Store]:
    """With an account and a key."""
    opened = backend_for(database).open(clock)
    await webhooks.account(opened, "shop")
    yield opened
    await opened.close()


@asynccontextmanager
async def held(database: str, sql: str) -> AsyncIterator[None]:
    """A transaction of somebody else, which then commits."""
    outside = await asyncpg.connect(database)
    try:
        await outside.execute(f"BEGIN; {sql}")
        yield
        await outside.execute("COMMIT")
    finally:
        outside.terminate()


class TestPassedBy:
    """Work that any process may do is not held up by what one of them is doing, or stands still with."""

    async def test_webhooks_that_are_claimed(self, store: Store, database: str) -> None:
        """The others are had at once, and that one with the next claim."""
        for _ in range(3):
            await webhooks.webhook(store, 1, URL)
        async with held(database, "SELECT 1 FROM webhooks WHERE id = 2 FOR UPDATE"):
            claiming = asyncio.create_task(claim(store, "a"))
            await waiting(database, 1, claiming)
            assert claiming.done()
        assert await claiming == [1, 3]
        assert await claim(store, "a") == [1, 2, 3]

    async def test_mail_that_is_sent(self, store: Store, database: str, clock: ManualClock) -> None:
        """Each sender takes another one."""
        await store.notifications.gather()
        for address in ("first@example.com", "second@example.com"):
            await store.contacts.add("account", "shop", address, ACTOR)
        await store.accounts.suspend("shop", ACTOR)
        await settled(store)
        await store.notifications.gather()
        clock.ms += GATHERED_MS
        async with held(database, "SELECT 1 FROM mails ORDER BY id LIMIT 1 FOR UPDATE"):
            taking = asyncio.create_task(store.notifications.next())
            await waiting(database, 1, taking)
            assert taking.done()
        mail = await taking
        assert isinstance(mail, Mail)
        assert mail.address == "second@example.com"

    @pytest.mark.parametrize(
        ("table", "old", "renew", "purge"),
        [
            (
                "sign_in_tries",
                "SELECT 's' || g, 0, 1",
                "opened_ms = {now} WHERE subject = 's2'",
                lambda s: s.purge(ManualClock().ms),
            ),
            (
                "creations (account_id, key, resource, fingerprint, resource_id, created_at_ms)",
                "SELECT g, 'k', 'pet', '', 1, 0",
                "created_at_ms = {now} WHERE account_id = 2",
                lambda s: s.purge(ManualClock().ms),
            ),
            ("facts", "SELECT g, 'x', 1", "of_ms = {now} WHERE of_ms = 2", lambda s: s.facts.tell_timed(0)),
        ],
        ids=["tries", "keys", "facts"],
    )
    async def test_what_is_old_leaves(
        self, store: Store, database: str, table: str, old: str, renew: str, purge: Process
    ) -> None:
        """And what is made new at that moment stays."""
        run(database, f"INSERT INTO {table} {old} FROM generate_series(1, 3) g")
        name = table.partition(" ")[0]
        async with held(database, f"UPDATE {name} SET {renew.format(now=ManualClock().ms + DAY_MS)}"):
            purging = asyncio.create_task(purge(store))
            await waiting(database, 1, purging)
            assert purging.done()
        await purging
        assert run(database, f"SELECT count(*) FROM {name}") == [(1,)]
