"""What every store does with people: names, roles, who may not be the last, and what ends their access."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from petstore.core.errors import Conflict, Invalid, LinkGone, PersonNotFound
from petstore.core.people import Role
from petstore.storage.store import Store
from petstore.transactions import sign_in_attempts, sign_ins
from petstore.transactions.script import Script, statement
from tests.support.backends import SharedData
from tests.support.cases import every_case
from tests.support.journal import ACTOR, entries, written

HERE = "192.0.2.7"


@pytest.fixture
async def anna(store: Store) -> str:
    """The session of an operator, `anna`, who has a password."""
    link = await store.people.add("anna", Role.OPERATOR, ACTOR)
    return await store.sign_ins.redeem(link.token, "hash", HERE)


async def test_a_person_is_added_once_with_a_link(store: Store) -> None:
    """The name is taken for good; it is found and listed by it, and invited until the link is used."""
    added = await store.people.add("zoe", Role.STAFF, ACTOR)
    await store.people.add("Anna.M-1_x", Role.VIEWER, ACTOR)
    with pytest.raises(Conflict):
        await store.people.add("zoe", Role.VIEWER, ACTOR)
    assert [person.name for person in await store.people.all()] == ["Anna.M-1_x", "zoe"]
    found = await store.people.find("zoe")
    assert (found, found.state, found.role) == (added.person, "invited", Role.STAFF)
    assert await store.people.names({1, 2, 3}) == {1: "zoe", 2: "Anna.M-1_x"}
    assert await store.people.names([]) == {}
    assert await written(store) == ["person.added person:1", "person.added person:2"]
    assert (await entries(store, "person:zoe"))[0].after == {"name": "zoe", "role": "staff"}


async def test_what_can_be_no_name_is_refused_and_nobody_has_it(store: Store) -> None:
    """Letters, digits, dots, dashes and underscores, at most 64, with a letter: a browser never asks for
    `/console/people/of/..`, so nobody could disable a person of that name there."""
    for name in ("", "a b", "é", "a/b", "7", "..", "x" * 65, "a\x00b", "anna\n"):
        with pytest.raises(Invalid):
            await store.people.add(name, Role.STAFF, ACTOR)
        with pytest.raises(PersonNotFound):
            await store.people.find(name)


async def test_a_disabled_person_is_out_at_once_on_every_replica(
    backend: SharedData, store: Store, anna: str
) -> None:
    """The next look at the session finds none; enabled again, the password of before is there."""
    other = backend.open()
    assert await other.sign_ins.session(anna) is not None
    link = await store.people.add("ben", Role.OPERATOR, ACTOR)
    await store.sign_ins.redeem(link.token, "hash", HERE)
    disabled = await store.people.disable("anna", ACTOR)
    assert disabled.state == "disabled"
    assert await other.sign_ins.session(anna) is None
    assert await store.people.disable("anna", ACTOR) == disabled
    assert (await store.people.enable("anna", ACTOR)).state == "active"
    assert await other.sign_ins.session(anna) is None
    assert (await written(store, "person:anna"))[-2:] == [
        "person.disabled person:1",
        "person.enabled person:1",
    ]


async def test_a_reset_ends_sessions_links_and_password(store: Store, anna: str) -> None:
    """Only the new link lets the person in; the first one, and one that was replaced, do not."""
    first = await store.people.reset("anna", ACTOR)
    second = await store.people.reset("anna", ACTOR)
    assert await store.sign_ins.session(anna) is None
    assert (await store.people.find("anna")).state == "invited"
    with pytest.raises(LinkGone):
        await store.sign_ins.link(first.token)
    assert (await store.sign_ins.take_attempt("anna", HERE)).stored is None
    assert await store.sign_ins.redeem(second.token, "hash", HERE)
    await store.people.disable("anna", ACTOR, keeps_operator=False)
    with pytest.raises(Conflict):
        await store.people.reset("anna", ACTOR)


async def test_an_operator_remains(store: Store, anna: str) -> None:
    """The last who can sign in is neither disabled nor given another role, unless that is asked for."""
    invited = await store.people.add("ben", Role.STAFF, ACTOR)
    await store.people.add("carl", Role.OPERATOR, ACTOR)
    with pytest.raises(Conflict):
        await store.people.disable("anna", ACTOR)
    with pytest.raises(Conflict):
        await store.people.set_role("anna", Role.STAFF, ACTOR)
    await store.people.set_role("ben", Role.OPERATOR, ACTOR)
    with pytest.raises(Conflict):
        await store.people.set_role("anna", Role.STAFF, ACTOR)
    await store.sign_ins.redeem(invited.token, "hash", HERE)
    await store.people.set_role("anna", Role.OPERATOR, ACTOR)
    await store.people.set_role("anna", Role.STAFF, ACTOR)
    await store.people.disable("ben", ACTOR, keeps_operator=False)


async def test_two_operators_cannot_remove_each_other_at_once(backend: SharedData) -> None:
    """The last one fails of all who try at once on two replicas."""
    stores = [backend.open(), backend.open()]
    names = ["anna", "ben", "carl", "dora"]
    for name in names:
        await stores[0].people.add(name, Role.OPERATOR, ACTOR)
    tries = [stores[at % 2].people.disable(name, ACTOR) for at, name in enumerate(names)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(answer, Conflict) for answer in answers) == 1
    assert sum(person.disabled_at_ms is None for person in await stores[0].people.all()) == 1


async def test_no_session_is_opened_beside_a_reset(
    backend: SharedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign-in with the old password, beside a reset on another replica, leaves no session. On PostgreSQL
    the reset has time to end between what the sign-in reads and what it writes."""
    give_back = sign_in_attempts.give_back

    def give_back_late(*arguments: Any) -> Script[None]:
        yield statement("SELECT pg_sleep(0.2)"), ()
        yield from give_back(*arguments)

    if not backend.url.startswith("sqlite"):
        monkeypatch.setattr(sign_ins, "give_back", give_back_late)
    stores = [backend.open(), backend.open()]
    attempts = []
    for number in range(4):
        link = await stores[0].people.add(f"p{number}", Role.STAFF, ACTOR)
        await stores[0].sign_ins.redeem(link.token, "hash", HERE)
        attempts.append(await stores[0].sign_ins.take_attempt(f"p{number}", HERE))
    changes = [
        change
        for number, attempt in enumerate(attempts)
        for change in (
            stores[0].sign_ins.accept(attempt, HERE),
            stores[1].people.reset(f"p{number}", ACTOR),
        )
    ]
    await asyncio.gather(*changes)
    assert await stores[0].sign_ins.sessions(50) == []


@every_case("change", ["enable", "disable", "reset", "set_role", "find"])
async def test_every_method_says_that_nobody_has_the_name(store: Store, change: str) -> None:
    """Whichever command is used, a mistyped name is named."""
    arguments = {"find": (), "set_role": (Role.STAFF, ACTOR)}.get(change, (ACTOR,))
    with pytest.raises(PersonNotFound):
        await getattr(store.people, change)("nobody", *arguments)
