"""Events on a server where transactions overlap, and whose data may be a copy from elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from petstore.core.errors import EventsGone
from petstore.core.events import Bookmark, read_event_id
from petstore.core.pets import NewPet
from petstore.storage.store import Store
from tests.support.backends import opened_store
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries, followed
from tests.support.postgres import PostgresServer, outside, plain_user, run
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.webhooks import account, webhook

REX = NewPet("Rex", 1)
RECORD = (
    "INSERT INTO journal (at_ms, actor, subject, subject_id, action, after{more})"
    " VALUES (0, 'slow', 'pet', 99, 'added', '{{\"name\": \"Max\"}}'{value})"
)
LATE = RECORD.format(more="", value="")
TEMPORARY = "CREATE TEMPORARY TABLE numbers (number int)"
# What a restore from another cluster, whose numbers are ahead, looks like to this one.
ELSEWHERE = "UPDATE data_set SET stamp = 'elsewhere'"


async def next_ones(store: Store, after: Bookmark | None, count: int) -> tuple[list[int], Bookmark]:
    """The animals of the events after a bookmark, in pages of one, until there are at least so many.

    Any transaction in the server, one of autovacuum or in another database, may hold them up.
    """
    found: list[int] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (page := await followed(store, after, 1)).events or page.is_behind or len(found) < count:
            found += [event.data.get("id", 0) for event in page.events]
            after = page.after
    return found, page.after


async def test_a_transaction_that_commits_late_hides_nothing(store: Store, database: str) -> None:
    """I22: events of a transaction that began later, and has committed, wait for the one that still runs."""
    await store.pets.add(REX, ACTOR)
    first, after = await next_ones(store, None, 1)
    assert first == [1]
    async with outside(database, "BEGIN", LATE) as slow:
        await store.pets.add(REX, ACTOR)
        await store.pets.add(REX, ACTOR)
        assert [entry.subject_id for entry in await entries(store)] == [1, 2, 3]  # for people: at once
        assert await next_ones(store, after, 0) == ([], after)
        assert await store.events.newest() == after
        await slow.execute("COMMIT")
    assert (await next_ones(store, after, 3))[0] == [99, 2, 3]


async def test_a_transaction_that_is_rolled_back_holds_nothing_up(store: Store, database: str) -> None:
    """The identifier of its entry is a gap."""
    async with outside(database, "BEGIN", LATE) as slow:
        await store.pets.add(REX, ACTOR)
        await slow.execute("ROLLBACK")
    assert (await next_ones(store, None, 1))[0] == [1]


async def test_a_dump_of_another_cluster_hides_nothing(store: Store, database: str) -> None:
    """I22: its transactions may be far ahead of this cluster's: its events come first, once, and whatever is
    written now comes after them. So do those of the dump's transactions that this cluster has passed."""
    await store.pets.add(REX, ACTOR)
    _, before = await next_ones(store, None, 1)
    for transaction in (3, 2**62, 2**61):
        run(database, RECORD.format(more=", transaction", value=f", '{transaction}'"))
    run(database, ELSEWHERE)
    with pytest.raises(EventsGone, match="restored from a copy"):
        await followed(store, before)
    await store.pets.add(REX, ACTOR)
    first, after = await next_ones(store, None, 6)
    assert first == [1, 99, 99, 99, 0, 2]  # 0: the restore
    await store.pets.add(REX, ACTOR)
    assert (await next_ones(store, after, 1))[0] == [3]


async def test_what_is_written_by_a_transaction_from_before_the_restore_was_seen_comes_too(
    store: Store, database: str
) -> None:
    """I22: it has a number from before, and adds its entry after the data got their new identity."""
    await followed(store)
    async with outside(database, "BEGIN", "SELECT pg_current_xact_id()") as slow:
        run(database, ELSEWHERE)
        now = await store.events.newest()
        await slow.execute(LATE)
        await slow.execute("COMMIT")
    assert sorted((await next_ones(store, now, 2))[0]) == [0, 99]


async def test_a_bookmark_is_gone_after_a_dump_into_another_database(store: Store, database: str) -> None:
    """The cluster is one, with the numbers of its transactions; the data set is another."""
    await store.pets.add(REX, ACTOR)
    before = (await followed(store)).after
    name = database.partition("?")[0].rpartition("/")[2]
    run(database, f'CREATE DATABASE "{name}_copy"')
    copy = database.replace(f"/{name}", f"/{name}_copy")
    async with opened_store(copy, ManualClock()) as restored:
        run(copy, f"UPDATE data_set SET identity = '{before.data_set}', stamp = 'the stamp of the first'")
        await restored.pets.add(REX, ACTOR)
        with pytest.raises(EventsGone, match="restored from a copy"):
            await followed(restored, before)
        assert (await followed(store, before)).events == []


async def test_a_service_that_owns_nothing_notices_a_restore(store: Store, database: str) -> None:
    """It has the rights that it needs to serve, and no other."""
    await store.pets.add(REX, ACTOR)
    run(database, ELSEWHERE)
    with plain_user(database, "SELECT, INSERT, UPDATE, DELETE") as plain:
        async with opened_store(plain, ManualClock()) as serving:
            assert (await next_ones(serving, None, 2))[0] == [1, 0]


async def test_a_copy_from_before_the_first_bookmark_continues_none(store: Store, database: str) -> None:
    """It has the old identity, and no stamp: two stores would give the same ids to other events."""
    await store.pets.add(REX, ACTOR)
    [(copied,)] = run(database, "SELECT identity FROM data_set WHERE stamp = ''")
    [first], before = await next_ones(store, None, 1)
    [event] = (await followed(store)).events
    run(database, f"UPDATE data_set SET identity = '{copied}', stamp = ''")  # the copy is put back
    with pytest.raises(EventsGone, match="restored from a copy"):
        await followed(store, before)
    [again] = (await followed(store)).events
    assert (again.data["id"], again.type) == (first, event.type)
    assert again.id != event.id


async def test_a_bookmark_is_gone_after_a_new_timeline() -> None:
    """A standby that was promoted, or a cluster restored to a moment, may lack what was bookmarked."""
    with PostgresServer() as primary:
        primary.start()
        async with opened_store(primary.url(), ManualClock()) as store:
            await store.pets.add(REX, ACTOR)
            _, before = await next_ones(store, None, 1)
        with PostgresServer() as standby:
            standby.follow(primary)
            standby.start()
            run(standby.url(), "SELECT pg_promote()")
            async with opened_store(standby.url(), ManualClock()) as promoted:
                with pytest.raises(EventsGone, match="restored from a copy"):
                    await followed(promoted, before)
                assert (await next_ones(promoted, None, 2))[0] == [1, 0]


async def test_the_session_that_holds_events_back_is_named(store: Store, database: str) -> None:
    """The name has its program, what it does, and for how long the oldest event has waited."""
    async with outside(database, "BEGIN", TEMPORARY, name="report") as slow:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await store.pets.add(REX, ACTOR)
            # The oldest transaction of the server may for a moment be somebody else's.
            while (held := await store.held_events()) is None or "report" not in held.by:
                pass
        assert held.by.startswith(f"session {slow.get_server_pid()} of petstore (report)")
        assert "idle in transaction: CREATE TEMPORARY TABLE" in held.by
        for at in ("extract(epoch FROM clock_timestamp()) * 1000", "0"):  # a clock is right, or behind
            run(database, f"UPDATE journal SET at_ms = {at}")
            held = await store.held_events()
            assert held is not None
            assert 0 <= held.seconds < PATIENCE_SECONDS
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await store.held_events() is not None:
            pass


async def test_a_removal_goes_in_the_order_of_events(store: Store, database: str) -> None:
    """The entry with the greatest identifier stays, also where it is not the last in that order, and a
    bookmark of now goes on."""
    await store.events.newest()  # the data set has its place: what came before is in the order of identifiers
    async with outside(database, "BEGIN", LATE) as slow:
        await store.pets.add(REX, ACTOR)
        await slow.execute(LATE)
        await slow.execute("COMMIT")
    in_order, after = await next_ones(store, None, 3)
    assert in_order == [99, 99, 1]  # by their identifiers 1 is between
    before = (await followed(store, None, 2)).after
    last = await store.retention.last_before(10**15)
    await store.retention.remove_entries(10**15, last, None)
    assert [entry.id for entry in await entries(store)] == [3]
    with pytest.raises(EventsGone, match="not kept any more"):
        await followed(store, before)
    assert await store.events.newest() == after
    await store.pets.add(REX, ACTOR)
    assert (await next_ones(store, after, 1))[0] == [2]


async def test_a_removal_begins_with_what_came_with_a_dump(store: Store, database: str) -> None:
    """It does where nobody asks for events, and where its numbers, and the position up to which entries had
    left before, are ahead of this cluster's. New bookmarks go on."""
    for _ in range(3):
        await store.pets.add(REX, ACTOR)
    run(database, RECORD.format(more=", transaction", value=f", '{2**62}'"))
    run(database, f"UPDATE data_set SET is_whole = false, gone_transaction = '{2**61}', gone_id = 1")
    run(database, "DELETE FROM journal WHERE id = 1")
    run(database, ELSEWHERE)
    last = await store.retention.last_before(10**15)
    assert (last.transaction, last.id) == (0, 4)
    await store.pets.add(REX, ACTOR)
    while await store.retention.remove_entries(10**15, last, None):
        pass
    assert [entry.type for entry in await entries(store)] == ["store.restored", "pet.added"]
    with pytest.raises(EventsGone, match="The first events are not kept"):
        await followed(store)
    now = await store.events.newest()
    await store.pets.add(REX, ACTOR)
    while 5 not in (await next_ones(store, now, 1))[0]:
        pass


async def test_a_test_right_after_a_restore_has_an_id_of_the_new_data(store: Store, database: str) -> None:
    """The first request after the restore: another event had that number before it."""
    await account(store, "shop")
    webhook_id = await webhook(store, 1, "https://shop.example/hook")
    before = await store.events.newest()
    run(database, ELSEWHERE)
    event_id = await store.deliveries.test(webhook_id, ACTOR, 1)
    named = read_event_id(event_id)
    assert named is not None
    assert named[0] == (await store.events.newest()).data_set != before.data_set


async def test_a_webhook_goes_on_at_a_restore_that_is_held_back(store: Store, database: str) -> None:
    """No page continues a place before which an event may still appear."""
    await account(store, "shop")
    await webhook(store, 1, "https://shop.example/hook")
    await store.deliverers.claim("a", [], is_alone=True)
    (hook,) = (await store.deliverers.owned("a")).webhooks
    async with outside(database, "BEGIN", TEMPORARY):
        await store.events.note_restore(ACTOR)
        bookmark = await store.deliverers.go_on("a", hook, hook.after)
        assert (await followed(store, bookmark)).events == []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (page := await followed(store, bookmark)).events:
            pass
    assert [event.type for event in page.events] == ["store.restored"]
