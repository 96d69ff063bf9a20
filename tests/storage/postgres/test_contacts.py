"""Contacts that change while their mail is made: transactions of PostgreSQL run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from petstore.core.contacts import Subject
from petstore.core.limits.plans import FREE, PRO, Plan
from petstore.core.orders import NewOrder
from petstore.core.people import Role
from petstore.core.pets import NewPet
from petstore.storage.store import Store
from tests.storage.contract.test_events import settled
from tests.support.journal import ACTOR
from tests.support.postgres import outside, run, waiting

FIRST, SECOND = "first@example.com", "second@example.com"


@pytest.mark.parametrize("leaves", ["removed", "switched off"])
@pytest.mark.parametrize(
    ("subject", "name", "kind"), [("account", "shop", "plan.changed"), ("person", "anna", "order.created")]
)
async def test_who_leaves_while_its_mail_is_made_gets_none(
    store: Store, database: str, subject: Subject, name: str, kind: str, leaves: str
) -> None:
    """A contact that leaves while its mail is made gets none, and the mail of others does not fail."""

    async def happens(plan: Plan) -> None:
        await store.accounts.set_plan("shop", plan, ACTOR)
        pet = (await store.pets.add(NewPet("Rex", 1), ACTOR)).pet
        await store.orders.place(1, NewOrder(pet.id), ACTOR)
        await settled(store)

    await store.accounts.add("shop", FREE, ACTOR)
    await store.people.add("anna", Role.STAFF, ACTOR)
    await store.notifications.gather()
    await store.contacts.add(subject, name, FIRST, ACTOR)
    await happens(PRO)
    await store.notifications.gather()
    await store.contacts.add(subject, name, SECOND, ACTOR)
    await happens(FREE)
    async with outside(database, "BEGIN", "SELECT 1 FROM mails FOR UPDATE") as other:
        gathering = asyncio.create_task(store.notifications.gather())
        await waiting(database, 1, gathering)
        leave: Callable[..., Any] = partial(store.contacts.switch, off=[kind])
        if leaves == "removed":
            leave = store.contacts.remove
        leaving = asyncio.create_task(leave(subject, name, SECOND, ACTOR))
        await waiting(database, 2, leaving)
        await other.execute("ROLLBACK")
    await asyncio.gather(gathering, leaving)
    waits = "SELECT address, count FROM mails JOIN contacts ON contacts.id = contact_id"
    assert run(database, waits) == [(FIRST, 2)]
