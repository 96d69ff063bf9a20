"""Mail of several processes, of a restored or emptied journal, and of a busy store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from petstore.storage.sqlite import upkeep
from petstore.storage.store import Store
from petstore.transactions.journal import record
from petstore.transactions.notifications import LEASE_MS
from tests.background.post import Post, contact, words
from tests.storage.contract.test_events import settled
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.mail import MailServer
from tests.support.postgres import run
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


async def order_many(store: Store, first: int, count: int) -> None:
    """Entries of orders by the account, in one transaction: as many requests would write."""

    def write() -> Any:
        for number in range(first, first + count):
            yield from record(
                store.notifications._clock.now_ms(), ACTOR, "order", number, "placed", None, {"petId": number}
            )

    await store.notifications._database.write(write)


def orders_in(mail: MailServer) -> dict[str, list[int]]:
    """The orders that those who got mail read of, in the order of their mails."""
    found: dict[str, list[int]] = {}
    for (address,), message in zip(mail.envelopes, mail.messages, strict=True):
        found.setdefault(address, []).extend(map(int, re.findall(r"Order (\d+) ", words(message))))
    return found


class TestSharing:
    """Two processes on one store."""

    async def test_each_fact_is_in_one_mail_and_each_mail_is_sent_once(
        self, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock, staff: None
    ) -> None:
        """Both gather and send at once, while 200 orders come."""
        one, other = Post(backend.open(), mail, clock), Post(backend.open(), mail, clock)
        for _ in range(20):
            await asyncio.gather(
                order(post._store, 5), order(post._store, 5), one.notifier.look(), other.notifier.look()
            )
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

    async def test_a_contact_that_leaves_while_its_mail_is_made(
        self, backend: SharedData, post: Post, mail: MailServer, clock: ManualClock, staff: None
    ) -> None:
        """Whoever is first: nothing fails, and nobody who is not there gets mail."""
        other = backend.open()
        for name in STAFF[:2] * 5:
            await order(post._store)
            await settled(post._store)
            address = f"{name}@example.com"
            await asyncio.gather(post.notifier.look(), other.contacts.remove("person", name, address, ACTOR))
            clock.advance(60)
            await post.work()
            mail.taken()
            await contact(other, name, subject="person")
            clock.advance(0.001)


@asynccontextmanager
async def copied(backend: SharedData, clock: ManualClock) -> AsyncIterator[Store]:
    """A store that another one was restored to: a file by the command, a dump in another database."""
    if backend.url.startswith("sqlite"):
        path = backend.url.removeprefix("sqlite:///")
        upkeep.restore(path, f"{path}.backup", ACTOR, clock, 1_000)
        store = backend.open()
    else:
        store = backend_for(f"{backend.url.partition('?')[0]}_copy{_options(backend.url)}").open(clock)
    yield store
    await store.close()


def _options(url: str) -> str:
    return f"?{options}" if (options := url.partition("?")[2]) else ""


async def back_up(backend: SharedData, store: Store) -> None:
    """Without a store that is open."""
    await store.close()
    if backend.url.startswith("sqlite"):
        path = backend.url.removeprefix("sqlite:///")
        upkeep.backup(path, f"{path}.backup", 1_000)
        return
    name = backend.url.partition("?")[0].rpartition("/")[2]
    run(backend.url.replace(f"/{name}", "/postgres"), f'CREATE DATABASE "{name}_copy" TEMPLATE "{name}"')
