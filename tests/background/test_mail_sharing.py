"""Mail of several processes, of a restored or emptied journal, and of a busy store."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from petstore.background.retention import remove_old
from petstore.core.durations import DAY_MS
from petstore.core.notifications import NamedEntry
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from petstore.storage.sqlite import upkeep
from petstore.storage.store import Store
from petstore.transactions import notifications
from petstore.transactions.notifications import LEASE_MS
from tests.background.post import Post, contact, recipients, words
from tests.background.test_takeovers import Flaky
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData, of_each_store, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.mail import MailServer
from tests.support.webhooks import account

STAFF = ("anna", "otto", "vera")


@pytest.fixture
def post(store: Store, mail: MailServer, clock: ManualClock) -> Post:
    return Post(store, mail, clock)


@pytest.fixture
async def staff(store: Store, post: Post) -> None:
    """People who take mail of orders, and an account that orders."""
    await account(store, "shop")
    for name in STAFF:
        await store.people.add(name, Role.STAFF, ACTOR)
        await contact(store, name, subject="person")
    await post.work()


async def order(store: Store, count: int = 1) -> None:
    for _ in range(count):
        pet = (await store.pets.add(NewPet("Rex", 1), ACTOR)).pet
        await store.orders.place(1, NewOrder(pet.id), ACTOR)


def orders_in(mail: MailServer) -> dict[str, list[int]]:
    """The orders that those who got mail read of, in the order of their mails."""
    found: dict[str, list[int]] = {}
    for (address,), message in zip(mail.envelopes, mail.messages, strict=True):
        found.setdefault(address, []).extend(map(int, re.findall(r"Order (\d+) ", words(message))))
    return found


class TestSharing:
    """Two processes on one store."""

    @through_pgbouncer_too
    async def test_each_fact_is_in_one_mail_and_each_mail_is_sent_once(
        self, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock, staff: None
    ) -> None:
        """I25: both gather and send at once, while 200 orders come."""
        one, other = Post(backend.open(), mail, clock), Post(backend.open(), mail, clock)
        await post._store.pets.add(NewPet("Rex", 1), ACTOR)
        for lump in range(20):
            placing = asyncio.to_thread(place_orders, backend, lump * 10 + 1, 10, clock.ms)
            await asyncio.gather(placing, one.notifier.gather_and_send(), other.notifier.gather_and_send())
            clock.advance(61)
        await settled(post._store)
        for _ in range(2):
            await asyncio.gather(one.work(), other.work())
            clock.ms += LEASE_MS
        found = orders_in(mail)
        assert found.keys() == {f"{name}@example.com" for name in STAFF}
        for numbers in found.values():
            assert sorted(numbers) == list(range(1, 201))
        assert one.came.count("sent") + other.came.count("sent") == len(mail.messages)


class Backup:
    """What a store was: by the command for a file, else as a dump of another cluster looks to this one."""

    _KEPT = ("mails", "notified")

    def __init__(self, backend: SharedData) -> None:
        self._backend = backend
        self._path = backend.url.removeprefix("sqlite:///") if backend.url.startswith("sqlite") else ""
        if self._path:
            upkeep.backup(self._path, f"{self._path}.backup", 1_000)
            return
        for table in self._KEPT:
            backend.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")
        backend.execute("CREATE TABLE kept AS SELECT max(id) AS id FROM journal")

    def restore(self, clock: ManualClock) -> None:
        if self._path:
            upkeep.restore(self._path, f"{self._path}.backup", ACTOR, clock, 1_000)
            return
        for table in self._KEPT:
            self._backend.execute(f"DELETE FROM {table}")
            self._backend.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE kept_{table}")
        self._backend.execute("DELETE FROM journal WHERE id > (SELECT id FROM kept)")
        self._backend.execute("UPDATE data_set SET stamp = 'elsewhere'")


class TestAnotherJournal:
    """Than that of the last round."""

    @of_each_store
    @pytest.mark.parametrize("is_new", [False, True])
    async def test_after_a_restore_what_waited_in_the_backup_comes_again_and_no_more(
        self, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock, staff: None, is_new: bool
    ) -> None:
        """This process sends it, or another one, then what happens since. Facts that the backup had in no
        mail were told before the restore."""
        await order(post._store)
        await post.after()
        await order(post._store)
        await post.work()
        clock.advance(0.001)
        await order(post._store)
        await settled(post._store)
        backup = Backup(backend)
        await post.after()
        await order(post._store)
        await post.after()
        assert orders_in(mail)["anna@example.com"] == [1, 2, 3, 4]
        mail.taken()
        backup.restore(clock)
        clock.advance(60)
        store = backend.open() if is_new else post._store
        going_on = Post(store, mail, clock) if is_new else post
        await going_on.after()
        assert orders_in(mail) == {f"{name}@example.com": [2] for name in STAFF}
        mail.taken()
        await order(store)
        await going_on.after()
        ((last, *more),) = set(map(tuple, orders_in(mail).values()))
        assert (more, last) == ([], 4 if backup._path else 5)
        assert len(mail.messages) == len(STAFF)

    async def test_a_journal_without_the_place_goes_on_with_what_is_kept(
        self, store: Store, post: Post, mail: MailServer, clock: ManualClock, staff: None
    ) -> None:
        """Nobody sent mail for a month, and old entries were removed."""
        await order(store)
        clock.ms += 40 * DAY_MS
        await order(store)
        await settled(store)
        await remove_old(store.retention, clock, 30 * DAY_MS)
        other = Post(store, mail, clock)
        await other.after()
        assert orders_in(mail) == {f"{name}@example.com": [2] for name in STAFF}


def place_orders(backend: SharedData, first: int, count: int, now_ms: int) -> None:
    """Place orders as requests would, with their entries in the journal, in one transaction."""
    numbers = (
        f"WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers"
        f" WHERE n < {first + count - 1}) SELECT"
    )
    backend.execute(
        "INSERT INTO orders (account_id, pet_id, status, created_at_ms)"
        f" {numbers} 1, 1, 'delivered', {now_ms} FROM numbers"
    )
    backend.execute(
        "INSERT INTO journal (at_ms, actor, subject, subject_id, action, after)"
        f""" {numbers} {now_ms}, 'key:1', 'order', n, 'placed', '{{"petId": 1}}' FROM numbers"""
    )


class TestTraffic:
    """The store has much traffic."""

    async def test_a_poll_costs_two_reads_where_nothing_is_for_anybody(
        self, backend: SharedData, store: Store, post: Post, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever is written meanwhile; once a minute its bookmark is noted."""
        await account(store, "shop")
        await post.work()
        parts = Flaky(store.events), Flaky(store.notifications)
        database = Flaky(store.notifications._database)
        post.notifier._store = SimpleNamespace(  # type: ignore[assignment]
            events=parts[0], notifications=parts[1]
        )
        other = backend.open()
        with monkeypatch.context() as counting:
            seen = SimpleNamespace(read=store.notifications._database.read, write=database.write)
            counting.setattr(store.notifications, "_database", seen)
            for _ in range(5):
                await other.pets.add(NewPet("Rex", 1), ACTOR)
                await settled(other)
                await post.notifier.gather_and_send()
        assert [part.calls for part in (*parts, database)] == [10, 5, 0]
        post.clock.advance(60)
        bookmark = "SELECT after_id FROM notified"
        before = backend.execute(bookmark)
        await post.work()
        assert backend.execute(bookmark) > before

    @pytest.mark.slow
    async def test_ten_thousand_orders_in_a_minute(
        self,
        backend: SharedData,
        post: Post,
        mail: MailServer,
        clock: ManualClock,
        staff: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """One mail for each of the staff counts each order once; no transaction is of more than 100."""
        sizes: list[int] = []
        write = notifications._write

        def count(now_ms: int, named_entries: list[NamedEntry]) -> Any:
            sizes.append(len(named_entries))
            return write(now_ms, named_entries)

        monkeypatch.setattr(notifications, "_write", count)
        await post._store.pets.add(NewPet("Rex", 1), ACTOR)
        for lump in range(10):
            place_orders(backend, lump * 1_000 + 1, 1_000, clock.ms)
            await post.work()
            clock.advance(5)
        clock.advance(10)
        await post.work()
        assert (sum(sizes), max(sizes)) == (10_000, 100)
        assert recipients(mail) == [f"{name}@example.com" for name in STAFF]
        assert all("And 9,980 more." in words(message) for message in mail.messages)
