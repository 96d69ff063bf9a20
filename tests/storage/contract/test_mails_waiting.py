"""Mails that wait: which of them an operator is to know of."""

from __future__ import annotations

from petstore.core.durations import DAY_MS, HOUR_MS
from petstore.core.limits.plans import FREE
from petstore.core.mails import Mail
from petstore.core.notifications import GATHERED_MS
from petstore.storage.store import Store
from petstore.transactions.notifications import LEASE_MS, Ended
from tests.storage.contract.test_events import settled
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR


async def _mail(store: Store, address: str) -> None:
    """Mail a suspension to each contact that takes it; this one is added before."""
    await store.contacts.add("account", "shop", address, ACTOR)
    await store.notifications.gather()
    await store.accounts.suspend("shop", ACTOR)
    await store.accounts.resume("shop", ACTOR)
    await settled(store)
    await store.notifications.gather()


async def _take(store: Store) -> Mail:
    mail = await store.notifications.next()
    assert isinstance(mail, Mail)
    return mail


async def test_a_mail_waits_from_when_it_is_whole_until_it_is_sent(store: Store, clock: ManualClock) -> None:
    """A mail that may still gather facts is not late; one that waits for a server in trouble is."""
    await store.accounts.add("shop", FREE, ACTOR)
    assert await store.notifications.waiting() == (0, 0)
    await _mail(store, "ops@shop.example")
    clock.ms += GATHERED_MS - 1
    assert await store.notifications.waiting() == (0, 0)
    clock.ms += 1
    assert await store.notifications.waiting() == (1, 60)
    mail = await _take(store)
    await store.notifications.note(Ended(mail, "It can't be reached.", clock.ms, is_try=False))
    clock.ms += HOUR_MS
    assert await store.notifications.waiting() == (1, 3_660)
    await store.notifications.note(Ended(await _take(store)))
    assert await store.notifications.waiting() == (0, 0)


async def test_a_mail_that_was_refused_is_counted_and_makes_none_late(
    store: Store, clock: ManualClock
) -> None:
    """One mailbox that is full for days is not trouble of the server."""
    await store.accounts.add("shop", FREE, ACTOR)
    await _mail(store, "full@shop.example")
    clock.ms += GATHERED_MS
    await store.notifications.note(Ended(await _take(store), "It answered 452 full", clock.ms + DAY_MS))
    clock.ms += HOUR_MS
    assert await store.notifications.waiting() == (1, 0)
    await _mail(store, "ops@shop.example")
    clock.ms += GATHERED_MS
    assert await store.notifications.waiting() == (3, 60)


async def test_a_late_note_does_not_free_what_another_sender_has(store: Store, clock: ManualClock) -> None:
    """It would be sent by a third one at once."""
    await store.accounts.add("shop", FREE, ACTOR)
    await _mail(store, "ops@shop.example")
    clock.ms += GATHERED_MS
    late = await _take(store)
    clock.ms += LEASE_MS
    assert (await _take(store)).id == late.id
    await store.notifications.note(Ended(late, "It can't be reached.", clock.ms))
    assert await store.notifications.next() is None
