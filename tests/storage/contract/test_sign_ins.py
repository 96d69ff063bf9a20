"""What every store does with links, sessions and tries, also when replicas act at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS
from petstore.core.errors import LinkGone, TooManyTries
from petstore.core.people import Role
from petstore.core.sign_ins import NEW_NETWORKS_SUBJECT, SESSIONS_MAX, SignInAttempt
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, written

HOME = "192.0.2.7"
ELSEWHERE = "198.51.100.9"
NEW = "203.0.113.5"


@pytest.fixture
async def anna(store: Store) -> str:
    """A session of `anna`, who has a password and is known at HOME."""
    link = await store.people.add("anna", Role.STAFF, ACTOR)
    return await store.sign_ins.redeem(link.token, "hash", HOME)


async def signs_in(store: Store, address: str = HOME) -> str:
    """A right password of anna's."""
    token = await store.sign_ins.accept(await store.sign_ins.take_attempt("anna", address), address)
    assert token is not None
    return token


async def wrong(store: Store, times: int, name: str = "anna", address: str = ELSEWHERE) -> None:
    for _ in range(times):
        await store.sign_ins.take_attempt(name, address)


class TestLinks:
    async def test_a_link_is_looked_at_as_often_as_one_likes_and_used_once(
        self, backend: SharedData, store: Store
    ) -> None:
        """One comes in of all who use it at once, on two replicas."""
        link = await store.people.add("anna", Role.STAFF, ACTOR)
        stores = [store, backend.open()]
        for each in stores * 2:
            assert (await each.sign_ins.link(link.token)).person.name == "anna"
        uses = [stores[at % 2].sign_ins.redeem(link.token, f"hash {at}", HOME) for at in range(10)]
        answers = await asyncio.gather(*uses, return_exceptions=True)
        assert Counter(type(answer) for answer in answers) == {str: 1, LinkGone: 9}
        (token,) = [answer for answer in answers if isinstance(answer, str)]
        session = await stores[1].sign_ins.session(token)
        assert session is not None
        assert session.address == HOME
        with pytest.raises(LinkGone):
            await store.sign_ins.link(link.token)
        assert await written(store) == ["person.added person:1", "person.password_set person:1"]

    @pytest.mark.parametrize(("seconds", "more"), [(DAY_MS / 1_000 - 1, 1), (-DAY_MS / 1_000 + 60, -60)])
    async def test_a_link_ends_after_a_day(
        self, store: Store, clock: ManualClock, seconds: float, more: float
    ) -> None:
        """It can be used in the last second, and not at its end. One of a clock that was a day ahead would be
        valid until the clock comes there; that of a clock some minutes ahead is one."""
        link = await store.people.add("anna", Role.STAFF, ACTOR)
        clock.advance(seconds)
        await store.sign_ins.link(link.token)
        clock.advance(more)
        with pytest.raises(LinkGone):
            await store.sign_ins.link(link.token)
        with pytest.raises(LinkGone):
            await store.sign_ins.redeem(link.token, "hash", HOME)

    async def test_no_link_lets_a_disabled_person_in(self, store: Store) -> None:
        """Disabling ends it for good."""
        link = await store.people.add("anna", Role.STAFF, ACTOR)
        await store.people.disable("anna", ACTOR)
        await store.people.enable("anna", ACTOR)
        with pytest.raises(LinkGone):
            await store.sign_ins.redeem(link.token, "hash", HOME)


class TestSessions:
    async def test_a_session_ends_without_use_and_at_its_age(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """12 hours after the last use, and 7 days after it began, whatever its use."""
        clock.advance(12 * 3_600 - 1)
        assert await store.sign_ins.session(anna) is not None
        clock.advance(12 * 3_600)
        assert await store.sign_ins.session(anna) is None
        second = await signs_in(store)
        for _ in range(7 * 2):
            clock.advance(12 * 3_600 - 1)
            assert await store.sign_ins.session(second) is not None
        clock.advance(14)
        assert await store.sign_ins.session(second) is None

    async def test_a_session_of_a_clock_that_was_far_ahead_has_ended(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """It would end 7 days after the clock comes there. One of a clock an hour ahead goes on."""
        clock.advance(-3_600)
        assert await store.sign_ins.session(anna) is not None
        clock.advance(-11 * 3_600)
        assert await store.sign_ins.session(anna) is None

    async def test_its_use_is_written_once_a_minute(
        self, backend: SharedData, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """A page that polls does not write each time."""
        clock.advance(59)
        await store.sign_ins.session(anna)
        began = clock.ms - 59_000
        assert backend.execute("SELECT used_at_ms FROM sessions") == [(began,)]
        clock.advance(1)
        await store.sign_ins.session(anna)
        assert backend.execute("SELECT used_at_ms FROM sessions") == [(clock.ms,)]

    async def test_one_more_than_twenty_ends_the_one_unused_for_longest(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """Nobody fills the table and the pages that list sessions, and the newest sign-in always works."""
        clock.advance(60)
        unused = await signs_in(store)
        clock.advance(60)
        assert await store.sign_ins.session(anna) is not None
        tokens = [await signs_in(store) for _ in range(SESSIONS_MAX - 1)]
        person = await store.people.find("anna")
        assert len(await store.sign_ins.sessions_of(person.id)) == SESSIONS_MAX
        assert await store.sign_ins.session(unused) is None
        assert None not in [await store.sign_ins.session(token) for token in (anna, *tokens)]

    async def test_those_of_everybody(self, store: Store, anna: str, clock: ManualClock) -> None:
        """The newest use first, as many as asked for; none that has ended by its age or without use."""
        link = await store.people.add("ben", Role.VIEWER, ACTOR)
        clock.advance(60)
        await store.sign_ins.redeem(link.token, "hash", NEW)
        clock.advance(60)
        await store.sign_ins.session(anna)

        async def names(limit: int = 9) -> list[str]:
            return [session.person.name for session in await store.sign_ins.sessions(limit)]

        assert await names() == ["anna", "ben"]
        assert await names(1) == ["anna"]
        clock.advance(12 * 3_600 - 60)
        assert await names() == ["anna"]
        clock.advance(60)
        assert await names() == []

    @through_pgbouncer_too
    async def test_sessions_are_ended_one_by_one_and_everywhere(
        self, backend: SharedData, store: Store, anna: str
    ) -> None:
        """Each person their own; the next request on another replica finds none."""
        link = await store.people.add("ben", Role.STAFF, ACTOR)
        bens = await store.sign_ins.redeem(link.token, "hash", HOME)
        tokens = [anna, await signs_in(store, NEW), await signs_in(store, NEW)]
        person = await store.people.find("anna")
        sessions = await store.sign_ins.sessions_of(person.id)
        assert sorted(session.address for session in sessions) == [HOME, NEW, NEW]
        ben = await store.people.find("ben")
        await store.sign_ins.end_session(ben.id, sessions[0].id)
        assert len(await store.sign_ins.sessions_of(person.id)) == 3
        await store.sign_ins.end_session(person.id, sessions[0].id)
        await store.sign_ins.end_session(person.id, "no session")
        assert len(await store.sign_ins.sessions_of(person.id)) == 2
        assert await store.sign_ins.end_sessions(person, person.actor) == 2
        other = backend.open()
        assert [await other.sign_ins.session(token) for token in tokens] == [None] * 3
        assert await other.sign_ins.session(bens) is not None
        await store.sign_ins.end_session_of(bens)
        assert await other.sign_ins.session(bens) is None

    async def test_a_new_password_ends_the_others(self, store: Store, anna: str) -> None:
        """The session that set it goes on under another token (OWASP ASVS 7.2.4)."""
        second = await signs_in(store)
        attempt = await store.sign_ins.take_attempt("anna", HOME)
        token = await store.sign_ins.change_password(attempt, "another hash", HOME)
        assert token is not None
        assert await store.sign_ins.session(token) is not None
        assert [await store.sign_ins.session(old) for old in (anna, second)] == [None, None]
        assert await store.sign_ins.change_password(attempt, "third", HOME) is None

    async def test_a_right_password_of_before_opens_nothing(self, store: Store, anna: str) -> None:
        """When the person was disabled, or the password replaced, while it was compared."""
        attempt = await store.sign_ins.take_attempt("anna", HOME)
        await store.people.disable("anna", ACTOR)
        assert await store.sign_ins.accept(attempt, HOME) is None
        await store.people.enable("anna", ACTOR)
        link = await store.people.reset("anna", ACTOR)
        assert await store.sign_ins.accept(attempt, HOME) is None
        await store.sign_ins.redeem(link.token, "another hash", HOME)
        assert await store.sign_ins.accept(attempt, HOME) is None

    async def test_the_tables_have_digests_alone(self, backend: SharedData, store: Store, anna: str) -> None:
        """Whoever reads a copy of the database can use neither session nor link."""
        link = await store.people.add("ben", Role.STAFF, ACTOR)
        rows = backend.execute("SELECT digest FROM sessions UNION ALL SELECT digest FROM sign_in_links")
        digests = [bytes(digest) for (digest,) in cast("list[tuple[bytes]]", rows)]
        assert [len(digest) for digest in digests] == [32, 32]
        assert all(token.encode() not in digest for token in (anna, link.token) for digest in digests)


def count_after(everybody: asyncio.Barrier, store: Store) -> None:
    """Let no try of this store be counted until all of them have read their windows."""
    database = cast("Any", store.sign_ins)._database
    write = database.write

    async def waiting(script: Any, *effect: Any) -> Any:
        await everybody.wait()
        return await write(script, *effect)

    database.write = waiting


class TestTries:
    async def test_five_wrong_ones_of_a_name_from_an_address(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """The sixth is refused until 15 minutes after the first; other addresses and names are not. A clock
        that was set back locks nobody out: a window that opens in the future is opened anew."""
        await wrong(store, 1)
        clock.advance(60)
        await wrong(store, 4)
        with pytest.raises(TooManyTries) as refused:
            await wrong(store, 1)
        assert refused.value.retry_after_seconds == 14 * 60
        await signs_in(store)
        await signs_in(store, NEW)
        await wrong(store, 1, "ben")
        for seconds in (14 * 60, -3_600):
            clock.advance(seconds)
            await wrong(store, 5)

    async def test_a_hundred_wrong_ones_from_new_networks(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """All names, real or not, share 100 wrong tries an hour from new networks; IPv6 counts as its /64."""
        await wrong(store, 5, address="2001:db8:0:1::1")
        with pytest.raises(TooManyTries):
            await wrong(store, 1, address="2001:db8:0:1:ffff::2")
        await wrong(store, 5, address="2001:db8:0:2::1")
        for at in range(90):
            await wrong(store, 1, f"nobody-{at}")
        clock.advance(1_000)
        for name in ("anna", "nobody"):
            with pytest.raises(TooManyTries) as refused:
                await wrong(store, 1, name, NEW)
            assert refused.value.retry_after_seconds == 3_600 - 1_000

    async def test_a_right_one_gives_its_try_back(self, store: Store, anna: str) -> None:
        """People may sign in as often as they like, from new networks too; the pair starts anew."""
        await wrong(store, 4, address=HOME)
        for _ in range(5):
            await signs_in(store)
        for at in range(101):
            await signs_in(store, f"198.51.100.{at}")
        await wrong(store, 5, address=HOME)
        await wrong(store, 5, "ben")

    async def test_nobody_is_locked_out_of_a_known_network(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """100 wrong ones from everywhere in an hour stop new networks, not one that was signed in from; nor
        do those of others from there. Wrong ones of one's own count in the pair alone."""
        for at in range(50):
            await wrong(store, 1, address=f"198.51.100.{at}")
            await wrong(store, 1, f"nobody-{at}", HOME)
        with pytest.raises(TooManyTries):
            await wrong(store, 1, address=NEW)
        await wrong(store, 4, address=HOME)
        await signs_in(store, HOME)
        await wrong(store, 5, address=HOME)
        clock.advance(3_600)
        await signs_in(store, NEW)

    async def test_a_network_is_known_for_thirty_days(
        self, store: Store, anna: str, clock: ManualClock
    ) -> None:
        """A network is known for 30 days after a sign-in, for its person alone, and until a reset."""
        await store.people.add("ben", Role.STAFF, ACTOR)
        assert len((await store.sign_ins.take_attempt("ben", HOME)).windows) == 2
        clock.advance(30 * DAY_MS / 1_000 - 1)
        assert len((await store.sign_ins.take_attempt("anna", HOME)).windows) == 1
        clock.advance(1)
        assert len((await store.sign_ins.take_attempt("anna", HOME)).windows) == 2
        await signs_in(store)
        assert len((await store.sign_ins.take_attempt("anna", HOME)).windows) == 1
        await store.people.reset("anna", ACTOR)
        assert len((await store.sign_ins.take_attempt("anna", HOME)).windows) == 2

    async def test_a_name_that_nobody_has_is_limited_the_same(
        self, backend: SharedData, store: Store
    ) -> None:
        """Unknown names, and text that can be no name, as a password, are limited too, and in no table."""
        for name in ("nobody", "no\x00body", "my secret password"):
            await wrong(store, 5, name)
            with pytest.raises(TooManyTries):
                await wrong(store, 1, name)
        subjects = str(backend.execute("SELECT subject FROM sign_in_tries"))
        assert not [word for word in ("nobody", "secret") if word in subjects]

    @pytest.mark.parametrize("names", [1, 60])
    async def test_a_bound_holds_exactly_on_two_replicas(
        self, backend: SharedData, store: Store, anna: str, names: int
    ) -> None:
        """Five of 60 that have all read their windows are counted, for each bound; a refused one counts in no
        window."""
        for at in range(19):
            await wrong(store, 5, address=f"198.51.100.{at}")
        stores = [store, backend.open()]
        everybody = asyncio.Barrier(60)
        for each in stores:
            count_after(everybody, each)
        tries = [
            stores[at % 2].sign_ins.take_attempt(f"nobody-{at % names}" if names > 1 else "anna", NEW)
            for at in range(60)
        ]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        assert Counter(type(answer) for answer in answers) == {SignInAttempt: 5, TooManyTries: 55}
        pairs = "SELECT coalesce(sum(tries), 0) FROM sign_in_tries WHERE subject LIKE 'pair %'"
        assert [int(str(count)) for (count,) in backend.execute(pairs)] == [100]
        others = f"SELECT tries FROM sign_in_tries WHERE subject = '{NEW_NETWORKS_SUBJECT}'"
        assert backend.execute(others) == [(100,)]


@through_pgbouncer_too
async def test_what_has_ended_is_purged(
    backend: SharedData, store: Store, anna: str, clock: ManualClock
) -> None:
    """Sessions, links, windows, networks and the browsers of 1.1.0, each after its time, and not before."""
    await store.people.add("ben", Role.STAFF, ACTOR)
    backend.execute("INSERT INTO known_devices SELECT digest, person_id, created_at_ms FROM sessions")
    await wrong(store, 1)
    tables = {
        HOUR_MS: ["sign_in_tries"],
        12 * HOUR_MS: ["sessions"],
        DAY_MS: ["sign_in_links"],
        30 * DAY_MS: ["known_addresses", "known_devices"],
    }

    def counts(ending: list[str]) -> list[object]:
        return [count for table in ending for (count,) in backend.execute(f"SELECT count(*) FROM {table}")]

    began = clock.ms
    for lasts_ms, ending in tables.items():
        clock.ms = began + lasts_ms
        await store.purge(clock.ms)
        assert counts(ending) == [2 if table == "sign_in_tries" else 1 for table in ending]
        clock.ms += MINUTE_MS
        await store.purge(clock.ms)
        assert counts(ending) == [0] * len(ending)
