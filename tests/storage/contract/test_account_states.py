"""What every store does when an account is suspended, resumed, renamed or closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from petstore.core.accounts import Account
from petstore.core.errors import AccountExists, AccountNotFound, Conflict, Invalid, StoreUnavailable
from petstore.core.keys import ApiKey, IssuedKey
from petstore.core.limits.plans import FREE, PRO
from petstore.core.moments import iso_moment
from petstore.core.people import Role
from petstore.storage.store import Store
from tests.storage.contract.test_keys import caller_of
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries

WHO = "cli:alice"


@pytest.fixture
async def store(backend: SharedData) -> Store:
    """An account with two keys, the second revoked."""
    opened = backend.open()
    await opened.accounts.add("shop", FREE, ACTOR)
    for _ in range(2):
        await opened.keys.issue("shop", "test", ACTOR)
    await opened.keys.revoke(2, ACTOR)
    return opened


async def another_key(store: Store) -> IssuedKey:
    return await store.keys.issue("shop", "test", ACTOR)


async def whos(store: Store) -> list[tuple[object, ...]]:
    """(what, about which object, before, after) of WHO's entries in the journal, oldest first."""
    found = [entry for entry in await entries(store) if entry.actor == WHO]
    return [(entry.type, entry.subject_id, entry.before, entry.after) for entry in found]


async def test_a_suspension_is_on_the_next_caller_and_goes_again(store: Store, clock: ManualClock) -> None:
    """Keys of meanwhile have it too, and work after it is resumed. Each change has one entry."""
    suspended = await store.accounts.suspend("1", WHO)
    issued = await another_key(store)
    rotated = await store.keys.rotate(issued.record.id, "test", 1_000, ACTOR)
    assert (suspended.state, suspended.suspended_at_ms) == ("suspended", clock.now_ms())
    assert await store.accounts.find("shop") == suspended
    for key in (issued, rotated):
        assert (await caller_of(store, key.secret)).suspended_at_ms == clock.now_ms()
    resumed = await store.accounts.resume("shop", WHO)
    assert (resumed.state, resumed.suspended_at_ms) == ("active", None)
    assert (await caller_of(store, issued.secret)).suspended_at_ms is None
    assert await whos(store) == [
        ("account.suspended", 1, {"state": "active"}, {"state": "suspended"}),
        ("account.resumed", 1, {"state": "suspended"}, {"state": "active"}),
    ]


class TestClosing:
    """It is for good: no key of the account works ever again."""

    @pytest.mark.parametrize("suspended", [False, True])
    async def test_all_keys_are_revoked_in_the_same_transaction(
        self, store: Store, clock: ManualClock, suspended: bool
    ) -> None:
        """An earlier revocation keeps its time and has no second entry; nothing is deleted, and the keys of
        others stay theirs. A second closing is none."""
        issued = await another_key(store)
        other = await store.accounts.add("other", FREE, ACTOR)
        kept = await store.keys.issue("other", "test", ACTOR)
        if suspended:
            await store.accounts.suspend("shop", ACTOR)
        clock.advance(10)
        now_ms = clock.now_ms()
        closed = await store.accounts.close("shop", WHO)
        assert (closed.state, closed.closed_at_ms) == ("closed", now_ms)
        assert await store.accounts.close("shop", WHO) == closed
        assert await store.accounts.all() == [closed, other]
        revoked = [key.revoked_at_ms for key in await store.keys.of_account("shop")]
        assert revoked == [now_ms, now_ms - 10_000, now_ms]
        assert (await caller_of(store, issued.secret)).revoked_at_ms == now_ms
        assert (await caller_of(store, kept.secret)).revoked_at_ms is None
        state = "suspended" if suspended else "active"
        at = {"revokedAt": iso_moment(now_ms)}
        assert await whos(store) == [
            ("account.closed", 1, {"state": state}, {"state": "closed"}),
            ("key.revoked", 1, {"revokedAt": None}, at),
            ("key.revoked", 3, {"revokedAt": None}, at),
        ]

    async def test_a_closed_account_takes_no_change(self, store: Store, backend: SharedData) -> None:
        """A Conflict that says what to do; nothing changes."""
        await store.accounts.close("shop", ACTOR)
        everything = "SELECT * FROM accounts", "SELECT * FROM api_keys", "SELECT * FROM journal ORDER BY id"
        before = [backend.execute(rows) for rows in everything]
        for change in (
            another_key(store),
            store.accounts.set_plan("shop", PRO, WHO),
            store.accounts.suspend("shop", WHO),
            store.accounts.resume("shop", WHO),
            store.contacts.add("account", "shop", "a@zoo", WHO),
        ):
            with pytest.raises(Conflict, match="'shop' is closed for good; add another account"):
                await change
        with pytest.raises(Conflict, match="Key 1 is revoked"):
            await store.keys.rotate(1, "test", 1_000, ACTOR)
        assert [backend.execute(rows) for rows in everything] == before

    async def test_its_name_stays_taken_until_it_has_another(self, store: Store) -> None:
        """What an account did is found under its name; a renaming frees the name."""
        await store.accounts.close("shop", WHO)
        with pytest.raises(AccountExists):
            await store.accounts.add("shop", FREE, WHO)
        assert (await store.accounts.rename("shop", "old-shop", WHO)).state == "closed"
        assert (await store.accounts.add("shop", FREE, WHO)).state == "active"


class TestNaming:
    """The rules of names hold for the second one too."""

    async def test_the_account_is_found_by_its_new_name_alone(self, store: Store) -> None:
        """The account's keys act for it under the new name."""
        issued = await another_key(store)
        renamed = await store.accounts.rename("shop", "zoo", WHO)
        assert await store.accounts.find("zoo") == await store.accounts.find("1") == renamed
        with pytest.raises(AccountNotFound):
            await store.accounts.find("shop")
        assert (await caller_of(store, issued.secret)).actor == "api:zoo/key 3"
        assert await whos(store) == [("account.renamed", 1, {"name": "shop"}, {"name": "zoo"})]

    async def test_a_name_is_taken_once(self, backend: SharedData, store: Store) -> None:
        """Renamings and an addition want one name at once, through several stores, and one gets it."""
        for number in range(6):
            await store.accounts.add(f"a{number}", FREE, ACTOR)
        stores = [store, backend.open(), backend.open()]
        results = await asyncio.gather(
            *(stores[n % 3].accounts.rename(f"a{n}", "wanted", WHO) for n in range(6)),
            stores[1].accounts.add("wanted", FREE, WHO),
            return_exceptions=True,
        )
        assert sum(isinstance(result, Account) for result in results) == 1
        assert sum(isinstance(result, AccountExists) for result in results) == 6
        assert len(await whos(store)) == 1


@through_pgbouncer_too
async def test_names_of_those_that_there_are(store: Store) -> None:
    """names() returns the names of the accounts that exist, also for a hundred ids, for one, or for none."""
    for number in range(4):
        await store.accounts.add(f"named{number}", FREE, ACTOR)
    first, *_, last = [(await store.accounts.find(f"named{number}")).id for number in range(4)]
    assert await store.accounts.names([first]) == {first: "named0"}
    assert await store.accounts.names([last, first, 10**9]) == {first: "named0", last: "named3"}
    assert await store.accounts.names([]) == {}
    assert len(await store.accounts.names(range(1, 101))) == len(await store.accounts.all())


async def test_no_key_outlives_the_closing(backend: SharedData, store: Store) -> None:
    """A closing among rotations, issues and revocations through other stores, eight times: their keys are
    revoked or there are none, and each key has one entry of its revocation."""
    stores = [store, backend.open(), backend.open()]
    for turn in range(8):
        name = f"a{turn}"
        await store.accounts.add(name, FREE, ACTOR)
        ids = [(await store.keys.issue(name, "test", ACTOR)).record.id for _ in range(8)]
        changes: list[Awaitable[object]] = [
            stores[n % 3].keys.rotate(key, "test", 9_000, WHO) for n, key in enumerate(ids)
        ]
        changes[4:4] = [stores[n % 3].accounts.close(name, WHO) for n in (turn, turn + 1)]
        changes += [stores[n % 3].keys.issue(name, "test", WHO) for n in range(6)]
        changes += [stores[n % 3].keys.revoke(key, WHO) for n, key in enumerate(ids)]
        results = await asyncio.gather(*changes, return_exceptions=True)
        assert all(isinstance(result, Conflict | IssuedKey | Account | ApiKey) for result in results)
        keys = await store.keys.of_account(name)
        assert all(key.revoked_at_ms is not None for key in keys)
        written = [each.type for each in await entries(store, f"account:{name}")]
        assert (written.count("account.closed"), written.count("key.revoked")) == (1, len(keys))


async def test_a_bad_name_needs_no_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused as such where the store takes no write at the moment, and takes no slot of one."""

    def refuse(*_: object) -> None:
        raise StoreUnavailable("Too many writes are waiting.")

    monkeypatch.setattr(store._database, "start", refuse)
    for change in (
        store.accounts.add("7", FREE, WHO),
        store.accounts.rename("shop", "7", WHO),
        store.keys.issue("shop", "test", WHO, label="\n"),
        store.categories.name(1, "", WHO),
        store.people.add("7", Role.STAFF, WHO),
    ):
        with pytest.raises(Invalid):
            await change
