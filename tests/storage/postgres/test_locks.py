"""What other transactions hold at that moment: it is passed by, or waited for, and never overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.errors import PetstoreError
from petstore.core.limits.plans import BUSINESS, PRO
from petstore.core.mails import Mail
from petstore.core.notifications import GATHERED_MS
from petstore.core.people import Role
from petstore.core.stages import Stage
from petstore.core.uploads import ALL_BYTES_MAX
from petstore.core.webhooks import WebhookChange
from petstore.storage.store import Store
from tests.storage.contract.test_deliverers import URL, claim
from tests.storage.contract.test_events import settled
from tests.support import webhooks
from tests.support.clock import ManualClock
from tests.support.jobs import keep_list
from tests.support.journal import ACTOR
from tests.support.postgres import outside, run, waiting

_T = TypeVar("_T")
Process = Callable[[Store], Coroutine[Any, Any, object]]


@pytest.fixture
async def store(store: Store) -> Store:
    """A store with an account and a key."""
    await webhooks.account(store, "shop")
    return store


async def beside(database: str, sql: str, act: Coroutine[Any, Any, _T]) -> tuple[bool, asyncio.Task[_T]]:
    """An act beside a transaction of somebody else, which then commits: whether it waited for that."""
    async with outside(database, f"BEGIN; {sql}") as other:
        acting = asyncio.create_task(act)
        await waiting(database, 1, acting)
        has_waited = not acting.done()
        await other.execute("COMMIT")
    await asyncio.wait([acting])
    return has_waited, acting


class TestPassedBy:
    """Work that any process may do is not held up by what one of them is doing, or stands still with."""

    async def test_webhooks_that_are_claimed(self, store: Store, database: str) -> None:
        """The others are had at once, and that one with the next claim."""
        for _ in range(3):
            await webhooks.webhook(store, 1, URL)
        lock = "SELECT 1 FROM webhooks WHERE id = 2 FOR UPDATE"
        has_waited, claimed = await beside(database, lock, claim(store, "a"))
        assert (has_waited, claimed.result()) == (False, [1, 3])
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
        lock = "SELECT 1 FROM mails ORDER BY id LIMIT 1 FOR UPDATE"
        has_waited, taken = await beside(database, lock, store.notifications.next())
        mail = taken.result()
        assert isinstance(mail, Mail)
        assert (has_waited, mail.address) == (False, "second@example.com")

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
            ("facts", "SELECT g, 'x', 1", "of_ms = {now} WHERE of_ms = 2", lambda s: s.facts.record_timed(0)),
        ],
        ids=["tries", "keys", "facts"],
    )
    async def test_what_is_old_leaves_and_what_is_made_new_meanwhile_stays(
        self, store: Store, database: str, table: str, old: str, renew: str, purge: Process
    ) -> None:
        """A removal and a renewal at one moment don't meet."""
        run(database, f"INSERT INTO {table} {old} FROM generate_series(1, 3) g")
        name = table.partition(" ")[0]
        renewal = f"UPDATE {name} SET {renew.format(now=ManualClock().ms + DAY_MS)}"
        has_waited, purged = await beside(database, renewal, purge(store))
        purged.result()
        assert (has_waited, run(database, f"SELECT count(*) FROM {name}")) == (False, [(1,)])


async def contact(store: Store) -> None:
    await store.contacts.add("account", "shop", "first@example.com", ACTOR)


async def mail(store: Store) -> None:
    """One that waits for more, and a fact that is in none."""
    await store.notifications.gather()
    await contact(store)
    for plan in (PRO, BUSINESS):
        await settled(store)
        await store.notifications.gather()
        await store.accounts.set_plan("shop", plan, ACTOR)
    await settled(store)


async def upload(store: Store) -> None:
    await keep_list(store, b"name\nRex\n", ACTOR)


async def hook(store: Store) -> None:
    await webhooks.webhook(store, 1, URL)


async def disabled_hook(store: Store) -> None:
    await hook(store)
    await store.webhooks.change(1, WebhookChange(enabled=False), ACTOR)


async def person(store: Store) -> None:
    await store.people.add("anna", Role.STAFF, ACTOR)


async def unsubscribe(store: Store) -> None:
    """Unsubscribe by the link in a mail."""
    (found,) = await store.contacts.of("account", 1)
    await store.contacts.switch_by_token(found.token, "plan.changed", is_on=False)


async def nothing(_: Store) -> None: ...


# What is there, what somebody else does to it, what is done at the same time, and what is right then.
_OTHERS: dict[str, tuple[Process, str, Process, tuple[str, object]]] = {
    "a contact": (
        contact,
        "UPDATE contacts SET off = 'webhook.created'",
        unsubscribe,
        ("SELECT off FROM contacts", "webhook.created,plan.changed"),
    ),
    "a mail that a sender takes": (
        mail,
        "UPDATE mails SET begun = 1",
        lambda s: s.notifications.gather(),
        ("SELECT count(*) FROM mails WHERE begun = 0", 1),
    ),
    "a webhook": (
        hook,
        "UPDATE webhooks SET url = 'https://shop.example/new'",
        lambda s: s.webhooks.change(1, WebhookChange(description="till"), ACTOR),
        ("SELECT url FROM webhooks", "https://shop.example/new"),
    ),
    "a webhook of a key that ends": (
        disabled_hook,
        "UPDATE webhooks SET disabled = NULL",
        lambda s: s.keys.revoke(1, ACTOR, with_webhooks=True),
        ("SELECT disabled FROM webhooks", "operator"),
    ),
    "the key of a new webhook": (
        nothing,
        "UPDATE api_keys SET revoked_at_ms = 5",
        hook,
        ("SELECT count(*) FROM webhooks", 0),
    ),
    "the keys of an account": (
        nothing,
        "UPDATE api_keys SET revoked_at_ms = 5",
        lambda s: s.accounts.close("shop", ACTOR),
        ("SELECT revoked_at_ms FROM api_keys", 5),
    ),
    "a key": (
        nothing,
        "UPDATE api_keys SET revoked_at_ms = 5",
        lambda s: s.keys.revoke(1, ACTOR),
        ("SELECT revoked_at_ms FROM api_keys", 5),
    ),
    "a person": (
        person,
        "UPDATE people SET disabled_at_ms = 5",
        lambda s: s.people.disable("anna", ACTOR),
        ("SELECT disabled_at_ms FROM people", 5),
    ),
    "the stage": (
        nothing,
        "UPDATE data_set SET stage = 'staging'",
        lambda s: s.stages.stamp(Stage.PRODUCTION),
        ("SELECT stage FROM data_set", "staging"),
    ),
    "the room for lists": (
        upload,
        f"UPDATE stock_uploads SET bytes = {ALL_BYTES_MAX}",
        upload,
        ("SELECT count(*) FROM stock_uploads", 1),
    ),
    "a list": (
        upload,
        "UPDATE stock_uploads SET state = 'storing'",
        lambda s: s.uploads.discard(1),
        ("SELECT state FROM stock_uploads", "storing"),
    ),
}


class TestWaitedFor:
    """What is decided goes by what is there in the end, not by what was there a moment ago."""

    @pytest.mark.parametrize("what", _OTHERS)
    async def test_a_change_that_is_about_to_commit(self, store: Store, database: str, what: str) -> None:
        """It is not overwritten, and what it rules out is refused."""
        prepare, sql, act, (outcome, expected) = _OTHERS[what]
        await prepare(store)
        has_waited, acted = await beside(database, sql, act(store))
        assert has_waited
        with suppress(PetstoreError):
            acted.result()
        assert run(database, outcome) == [(expected,)]

    async def test_events_that_another_process_removes(self, store: Store, database: str) -> None:
        """Up to where they are gone is never set back: a follower would miss those between, and not know."""
        for _ in range(3):
            await store.accounts.suspend("shop", ACTOR)
            await store.accounts.resume("shop", ACTOR)
        await settled(store)
        last = await store.retention.last_before(10**15)
        newest = "(SELECT max({}) FROM journal)".format
        place = f"gone_transaction = {newest('transaction')}, gone_id = {newest('id')}"
        removal = f"UPDATE data_set SET is_whole = false, {place}"
        remove = store.retention.remove_entries(10**15, last, None)
        has_waited, removed = await beside(database, removal, remove)
        assert (has_waited, removed.result()) == (True, None)
        assert run(database, "SELECT gone_id = (SELECT max(id) FROM journal) FROM data_set") == [(True,)]
