"""Jobs of the background process, for every store: one owner at a time, and none is lost with its process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from petstore.background import jobs
from petstore.background.jobs import ATTEMPTS_MAX, Progress, carry_out_next
from petstore.core.errors import StoreUnavailable
from petstore.storage.store import Store
from petstore.transactions.jobs import LEASE_MS, Job
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock

KIND = "test"


class Recorder:
    """Implements jobs.Work."""

    kind = KIND

    def __init__(self, work: Callable[[Job, Progress], Awaitable[None]] | None = None) -> None:
        self.done: list[int] = []
        self.given_up: list[int] = []
        self._work = work

    async def sweep(self) -> None:
        pass

    async def carry_out(self, job: Job, progress: Progress) -> None:
        if self._work is not None:
            await self._work(job, progress)
        self.done.append(job.subject)

    async def give_up(self, job: Job) -> None:
        self.given_up.append(job.subject)


def add(backend: SharedData, *subjects: int, kind: str = KIND) -> None:
    for subject in subjects:
        backend.execute(
            "INSERT INTO jobs (kind, subject, owner, deadline_ms, attempts, done)"
            f" VALUES ('{kind}', {subject}, '', 0, 0, 0)"
        )


async def stop_at(moment: asyncio.Event, store: Store, work: Recorder) -> None:
    """Let a process work until then, and stop it."""
    running = asyncio.create_task(jobs.run(store.jobs, [work]))
    await moment.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


class TestLease:
    async def test_one_process_has_a_job(self, store: Store, backend: SharedData) -> None:
        """The oldest of its kind first; of several processes that ask at once each gets another one."""
        add(backend, 7, 8)
        add(backend, 9, kind="other")
        stores = store, backend.open()
        taken = [job for each in stores if (job := await each.jobs.take(KIND))]
        assert [job.subject for job in taken] == [7, 8]
        assert await store.jobs.take(KIND) is None
        add(backend, 10)
        race = await asyncio.gather(*(each.jobs.take(KIND) for each in stores))
        assert [job.subject for job in race if job] == [10]

    async def test_a_process_that_died_gives_it_up(
        self, store: Store, backend: SharedData, clock: ManualClock
    ) -> None:
        """A job that is not renewed for 30 s goes to another process, and the first process can't end it."""
        add(backend, 7)
        first = await store.jobs.take(KIND)
        assert first is not None
        clock.advance(LEASE_MS / 1_000 - 1)
        assert await store.jobs.renew(first, 5)
        clock.advance(LEASE_MS / 1_000 - 1)
        assert await store.jobs.take(KIND) is None
        clock.advance(1)
        second = await store.jobs.take(KIND)
        assert second is not None
        assert (second.subject, second.attempts) == (7, 2)
        assert not await store.jobs.renew(first, 6)
        await store.jobs.finish(first)
        await store.jobs.release(first)
        assert await store.jobs.renew(second, 0)

    async def test_a_clock_that_is_set_back_strands_no_job(
        self, store: Store, backend: SharedData, clock: ManualClock
    ) -> None:
        """A deadline further ahead than a lease is of another time."""
        add(backend, 7)
        assert await store.jobs.take(KIND) is not None
        clock.advance(-3_600)
        assert await store.jobs.take(KIND) is not None
        assert await store.jobs.take(KIND) is None

    async def test_a_stopped_process_gives_it_up_at_once(self, store: Store, backend: SharedData) -> None:
        """That is not an attempt that failed."""
        add(backend, 7)
        for _ in range(2):
            job = await store.jobs.take(KIND)
            assert job is not None
            assert job.attempts == 1
            await store.jobs.release(job)


class TestLoop:
    @through_pgbouncer_too
    async def test_a_lost_job_is_left_to_its_new_owner(
        self, store: Store, backend: SharedData, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The work is cancelled at the next renewal, and the row stays as it is."""
        monkeypatch.setattr(jobs, "_RENEW_SECONDS", 0)

        async def lose(_job: Job, _progress: Progress) -> None:
            backend.execute("UPDATE jobs SET owner = 'another'")
            await asyncio.Event().wait()

        add(backend, 7)
        work = Recorder(lose)
        assert await carry_out_next(store.jobs, work)
        assert (work.done, work.given_up) == ([], [])
        assert backend.execute("SELECT owner FROM jobs") == [("another",)]

    async def test_progress_is_seen(
        self, store: Store, backend: SharedData, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each renewal notes it in the row."""
        monkeypatch.setattr(jobs, "_RENEW_SECONDS", 0)

        async def go_on(_job: Job, progress: Progress) -> None:
            progress.add(5)
            while backend.execute("SELECT done FROM jobs") != [(5,)]:  # noqa: ASYNC110
                await asyncio.sleep(0)

        add(backend, 7)
        work = Recorder(go_on)
        assert await carry_out_next(store.jobs, work)
        assert work.done == [7]

    async def test_a_stop_releases_it(self, store: Store, backend: SharedData) -> None:
        """The next process begins with it."""
        begun = asyncio.Event()

        async def begin(_job: Job, _progress: Progress) -> None:
            begun.set()
            await asyncio.Event().wait()

        add(backend, 7)
        await stop_at(begun, store, Recorder(begin))
        assert backend.execute("SELECT owner, deadline_ms FROM jobs") == [("", 0)]

    async def test_an_outage_is_logged_once(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """However long it lasts, and again when the store has answered in between."""
        answers, over = [False, False, False, True, False, False], asyncio.Event()

        async def take(_kind: str) -> None:
            if not answers:
                over.set()
            elif not answers.pop(0):
                raise StoreUnavailable("It is gone.")

        monkeypatch.setattr(jobs, "POLL_SECONDS", 0)
        monkeypatch.setattr(store.jobs, "take", take)
        with capture_logs() as lines:
            await stop_at(over, store, Recorder())
        assert [line["event"] for line in lines] == ["jobs wait"] * 2

    async def test_a_stop_while_it_is_taken(
        self, store: Store, backend: SharedData, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The transaction comes to its end; nobody waits until the lease of a job that nobody has ends."""
        taken, take = asyncio.Event(), store.jobs.take

        async def take_slowly(kind: str) -> Job | None:
            job = await take(kind)
            taken.set()
            await asyncio.sleep(0)
            return job

        monkeypatch.setattr(store.jobs, "take", take_slowly)
        add(backend, 7)
        await stop_at(taken, store, Recorder())
        assert backend.execute("SELECT owner, deadline_ms, attempts FROM jobs") == [("", 0, 0)]

    async def test_a_stop_waits_for_what_comes_to_its_end(self, store: Store, backend: SharedData) -> None:
        """One is a commit: then the job is done, and its row gone."""
        begun = asyncio.Event()

        async def commit(_job: Job, _progress: Progress) -> None:
            begun.set()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()

        add(backend, 7)
        work = Recorder(commit)
        await stop_at(begun, store, work)
        assert work.done == [7]
        assert backend.execute("SELECT count(*) FROM jobs") == [(0,)]

    async def test_an_outage_is_no_attempt(
        self, store: Store, backend: SharedData, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often the store is away, the job is free when it answers again, and never given up."""
        monkeypatch.setattr(jobs, "POLL_SECONDS", 0)
        outages = [StoreUnavailable("down")] * (2 * ATTEMPTS_MAX)
        release = store.jobs.release

        async def fail(_job: Job, _progress: Progress) -> None:
            if outages:
                raise outages.pop()

        async def release_later(job: Job) -> None:
            if len(outages) % 2:
                raise outages.pop()
            await release(job)

        monkeypatch.setattr(store.jobs, "release", release_later)
        add(backend, 7)
        work = Recorder(fail)
        for _ in range(ATTEMPTS_MAX):
            with pytest.raises(StoreUnavailable):
                await carry_out_next(store.jobs, work)
            assert backend.execute("SELECT owner, deadline_ms, attempts FROM jobs") == [("", 0, 0)]
        assert await carry_out_next(store.jobs, work)
        assert (work.done, work.given_up) == ([7], [])

    async def test_an_error_of_ours_would_happen_again_and_is_not_tried_again(
        self, store: Store, backend: SharedData
    ) -> None:
        """The job is given up at once."""

        async def fail(_job: Job, _progress: Progress) -> None:
            raise ZeroDivisionError

        add(backend, 7)
        work = Recorder(fail)
        assert await carry_out_next(store.jobs, work)
        assert (work.done, work.given_up) == ([], [7])
        assert backend.execute("SELECT count(*) FROM jobs") == [(0,)]

    async def test_a_job_that_ends_its_process_is_given_up(
        self, store: Store, backend: SharedData, clock: ManualClock
    ) -> None:
        """A job that ends its process is given up after three attempts, or it would end each process."""
        add(backend, 7)
        for _ in range(ATTEMPTS_MAX):
            assert await store.jobs.take(KIND) is not None
            clock.advance(LEASE_MS / 1_000)
        work = Recorder()
        assert await carry_out_next(store.jobs, work)
        assert (work.done, work.given_up) == ([], [7])
        assert backend.execute("SELECT count(*) FROM jobs") == [(0,)]
