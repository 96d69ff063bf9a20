"""The loop of the background process: takes jobs, renews them while they are carried out, removes them.

Each kind has a loop of its own, so that a long job holds up its own kind only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.transactions.jobs import LEASE_MS, Job, Jobs

POLL_SECONDS = 0.5
_SWEEP_SECONDS = MINUTE_MS / SECOND_MS
_RENEW_SECONDS = LEASE_MS / SECOND_MS / 10
# How often a process may die at a job: the job itself may be the reason. An outage of the store is not.
ATTEMPTS_MAX = 3

_log = structlog.get_logger("petstore.jobs")


class Progress:
    """How much of a job is done, for those who wait for it. Any thread may add."""

    def __init__(self) -> None:
        self.done = 0

    def add(self, count: int) -> None:
        self.done += count


class Work(Protocol):
    """A kind of job. Raises StoreUnavailable where the job shall be tried again, when the store answers."""

    @property
    def kind(self) -> str: ...

    async def sweep(self) -> None:
        """Called at the start, and about once a minute: add jobs that are due."""

    async def carry_out(self, job: Job, progress: Progress) -> None:
        """It may have been begun before. When this returns, the job is removed."""

    async def give_up(self, job: Job) -> None:
        """Say that the job failed, before it is removed."""


async def run(jobs: Jobs, works: Sequence[Work]) -> None:
    """Carry out jobs until cancelled; unfinished ones are released then."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(_repeat(work))
            group.create_task(_work(jobs, work))


async def _repeat(work: Work) -> None:
    while True:
        with suppress(StoreUnavailable):
            await work.sweep()
        await asyncio.sleep(_SWEEP_SECONDS)


async def _work(jobs: Jobs, work: Work) -> None:
    is_in_trouble = False
    while True:
        try:
            is_idle = not await carry_out_next(jobs, work)
            is_in_trouble = False
        except StoreUnavailable as error:
            if not is_in_trouble:
                _log.warning("jobs wait", kind=work.kind, reason=str(error))
            is_idle = is_in_trouble = True
        if is_idle:
            await asyncio.sleep(POLL_SECONDS)


async def carry_out_next(jobs: Jobs, work: Work) -> bool:
    """Carry out the oldest free job of a kind; False when there is none. Raises StoreUnavailable."""
    job = await _take(jobs, work.kind)
    if job is None:
        return False
    if job.attempts > ATTEMPTS_MAX:
        _log.error("job failed", kind=job.kind, subject=job.subject, reason="each attempt ended its process")
        await work.give_up(job)
    elif not await _carry_out(jobs, work, job):
        return True  # another process has it
    await jobs.finish(job)
    return True


async def _take(jobs: Jobs, kind: str) -> Job | None:
    taking = asyncio.create_task(jobs.take(kind))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        with suppress(StoreUnavailable):
            if (job := await taking) is not None:
                await jobs.release(job)
        raise


async def _carry_out(jobs: Jobs, work: Work, job: Job) -> bool:
    """Whether the job ended here. Raises StoreUnavailable; at a cancellation the job is released."""
    progress = Progress()
    working = asyncio.create_task(work.carry_out(job, progress))
    try:
        while not (await asyncio.wait([working], timeout=_RENEW_SECONDS))[0]:
            with suppress(StoreUnavailable):  # an import may hold SQLite's lock for seconds
                if not await jobs.renew(job, progress.done):
                    working.cancel()
    except asyncio.CancelledError:
        working.cancel()
        await asyncio.wait([working])  # a commit that has begun comes to its end
        is_done = not working.cancelled() and working.exception() is None
        with suppress(StoreUnavailable):
            await (jobs.finish(job) if is_done else jobs.release(job))
        raise
    if working.cancelled():
        return False
    error = working.exception()
    if isinstance(error, StoreUnavailable):
        await _release(jobs, job)
        raise error
    if error is not None:
        _log.error("job failed", kind=job.kind, subject=job.subject, exc_info=error)
        await work.give_up(job)
    return True


async def _release(jobs: Jobs, job: Job) -> None:
    """Free the job when the store answers again. The outage does not count as an attempt."""
    while True:
        try:
            return await jobs.release(job)
        except StoreUnavailable:
            await asyncio.sleep(POLL_SECONDS)
