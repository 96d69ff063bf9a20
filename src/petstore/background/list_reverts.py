"""Reverts imports that people ask to take back, each in one transaction."""

from __future__ import annotations

from contextlib import suppress

from petstore.background.jobs import Progress
from petstore.core.errors import NotFound, PetstoreError
from petstore.core.list_reverts import ASKED, ChangedSince
from petstore.core.uploads import BROKEN
from petstore.transactions.jobs import Job
from petstore.transactions.list_reverts import REVERT_JOB
from petstore.transactions.store import Repositories


class ListReverter:
    """Implements jobs.Work."""

    kind = REVERT_JOB

    def __init__(self, store: Repositories) -> None:
        self._stock = store.stock
        self._list_reverts = store.list_reverts

    async def sweep(self) -> None:
        """Only people ask for it."""

    async def carry_out(self, job: Job, progress: Progress) -> None:
        try:
            found = await self._list_reverts.get(job.subject)
            if found.last is None or found.last.action != ASKED:
                return  # done before
            async with self._stock.importing(found.last.actor, None, found.finished) as load:
                await load.plan()
                await load.store()
        except ChangedSince as error:
            await self._refuse(job, error.message, tuple(error.animals))
        except PetstoreError as error:
            await self._refuse(job, error.public_message)

    async def give_up(self, job: Job) -> None:
        await self._refuse(job, BROKEN)

    async def _refuse(self, job: Job, message: str, animals: tuple[int, ...] = ()) -> None:
        with suppress(NotFound):  # the entry of the import has left the journal
            await self._list_reverts.refuse(job.subject, message, animals)
