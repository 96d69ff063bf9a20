"""Jobs of the background process, for both databases: who works on what, and until when.

A job may be taken once its deadline has passed. Its owner renews the deadline while it works, so the jobs
of a process that died are free again after LEASE_MS.
"""

from __future__ import annotations

import secrets

import msgspec

from petstore.core.durations import SECOND_MS
from petstore.transactions.script import NO_EFFECT, Repository, Script, rows_of, statement, timed, write

LEASE_MS = 30 * SECOND_MS


class Job(msgspec.Struct, frozen=True):
    """A job that `owner` has taken, a random text; `attempts` counts this one too."""

    id: int
    kind: str
    subject: int
    owner: str
    attempts: int


def lease_ended(lease_ms: int) -> str:
    """A condition of `timed`. A later deadline than a lease has is of a clock that was set back since."""
    return f"(deadline_ms <= {{now}} OR deadline_ms > {{now}} + {lease_ms})"


# In the transaction that makes the work. A job that is added again begins anew: who works on it loses it.
ADD_JOB = statement(
    "INSERT INTO jobs (kind, subject, owner, deadline_ms, attempts, done) VALUES ($1, $2, '', 0, 0, 0)"
    " ON CONFLICT (kind, subject) DO UPDATE SET owner = '', deadline_ms = 0, attempts = 0, done = 0"
)
# A process that works on it loses its lease.
REMOVE_JOB = statement("DELETE FROM jobs WHERE kind = $1 AND subject = $2")
_IS_FREE = lease_ended(LEASE_MS)
_FREE = timed(f"SELECT id FROM jobs WHERE kind = $2 AND {_IS_FREE} ORDER BY id LIMIT 1")
_TAKE = timed(
    f"UPDATE jobs SET owner = $3, deadline_ms = {{now}} + {LEASE_MS}, attempts = attempts + 1, done = 0"
    f" WHERE id = $2 AND {_IS_FREE} RETURNING subject, attempts"
)
_RENEW = timed(
    f"UPDATE jobs SET deadline_ms = {{now}} + {LEASE_MS}, done = $4 WHERE id = $2 AND owner = $3 RETURNING id"
)
_RELEASE = statement(
    "UPDATE jobs SET owner = '', deadline_ms = 0, attempts = attempts - 1 WHERE id = $1 AND owner = $2"
)
_FINISH = statement("DELETE FROM jobs WHERE id = $1 AND owner = $2")


class Jobs(Repository):
    """All processes go by the time of the one database."""

    async def take(self, kind: str) -> Job | None:
        """The oldest free job; None when there is none. Without one nothing is written."""
        if found := await self._database.read(rows_of(_FREE, self._clock.pinned_ms(), kind)):
            return await self._take(kind, found[0][0])
        return None

    @write(NO_EFFECT)
    def _take(self, _now_ms: int, kind: str, job_id: int) -> Script[Job | None]:
        owner = secrets.token_hex(16)
        for subject, attempts in (yield _TAKE, (self._clock.pinned_ms(), job_id, owner)):
            return Job(job_id, kind, subject, owner, attempts)
        return None  # another process was faster

    @write(NO_EFFECT)
    def renew(self, _now_ms: int, job: Job, done: int) -> Script[bool]:
        """Keep it for LEASE_MS more, and save how much is done. False: it has another owner, or is gone."""
        return bool((yield _RENEW, (self._clock.pinned_ms(), job.id, job.owner, done)))

    @write(NO_EFFECT)
    def release(self, _now_ms: int, job: Job) -> Script[None]:
        """Give it up for others to take at once; this attempt does not count."""
        yield _RELEASE, (job.id, job.owner)

    @write(NO_EFFECT)
    def finish(self, _now_ms: int, job: Job) -> Script[None]:
        """Remove it, unless it has another owner."""
        yield _FINISH, (job.id, job.owner)
