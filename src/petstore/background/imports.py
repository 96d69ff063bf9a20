"""Checks and stores uploads. A list is stored as it was agreed to: when the store would do something else by
now, the new report is shown instead.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import BinaryIO

from petstore.background.jobs import Progress
from petstore.core.errors import OperatorError, PetstoreError
from petstore.core.lists.columns import ColumnsUnclear
from petstore.core.lists.importing import BadRows, Spool, check_rows, plan_and_store, stage_rows
from petstore.core.lists.reading import open_list
from petstore.core.lists.stock_list import ListContext, StockList
from petstore.core.stock import StockPlan
from petstore.core.uploads import (
    BROKEN,
    CHANGED,
    CHUNK_BYTES,
    FileKind,
    Upload,
    UploadCounts,
    UploadReport,
    UploadState,
    pack,
    unpack,
)
from petstore.transactions.jobs import Job
from petstore.transactions.store import Repositories
from petstore.transactions.uploads import IMPORT


class Imports:
    """Implements jobs.Work."""

    kind = IMPORT

    def __init__(self, store: Repositories) -> None:
        self._stock = store.stock
        self._uploads = store.uploads
        self._categories = store.categories

    async def sweep(self) -> None:
        await self._uploads.adopt()

    async def carry_out(self, job: Job, progress: Progress) -> None:
        upload = await self._uploads.begin(job)
        if upload is None:  # stored, discarded or a day old
            return
        try:
            await self._import(upload, progress)
        except ColumnsUnclear as error:
            await self._uploads.end(upload, UploadState.WAITING, str(error), reading=error.reading)
        except OperatorError as error:  # the list itself
            await self._uploads.end(upload, UploadState.REFUSED, str(error))
        except PetstoreError as error:
            await self._uploads.end(upload, _before(upload), error.public_message)

    async def give_up(self, job: Job) -> None:
        if (upload := await self._uploads.begin(job)) is not None:
            await self._uploads.end(upload, _before(upload), BROKEN)

    async def _import(self, upload: Upload, progress: Progress) -> None:
        with ExitStack() as opened:
            sent, spooled, rejects, packed = [opened.enter_context(TemporaryFile()) for _ in range(4)]
            async for chunk in self._uploads.chunks(upload.id, FileKind.LIST):
                sent.write(unpack(chunk))
            sent.seek(0)
            good = Spool(spooled)
            # When this is cancelled, its files are closed, which ends the thread.
            known = ListContext(await self._categories.all(), await self._uploads.columns())
            listed, bad, read = await asyncio.to_thread(_check, upload, known, sent, good, rejects, progress)
            progress.done = 0
            is_agreed = upload.state is UploadState.STORING

            def counts(plan: StockPlan) -> UploadCounts:
                digest = _digest(rejects, listed.meaning())
                return UploadCounts(read, plan.added, plan.changed, plan.unchanged, bad.count, digest)

            async with self._stock.importing(upload.worked_by, listed.key_name, upload) as load:
                await stage_rows(load, good, progress.add)
                plan, locked_seconds = await plan_and_store(
                    load, bad, wants=lambda plan: is_agreed and counts(plan) == upload.counts
                )
            if locked_seconds is not None:
                return
            if bad.count:
                await asyncio.to_thread(pack, rejects, packed)
            report = UploadReport(counts(plan), bad.first(), packed, listed.reading())
            await self._uploads.end(upload, UploadState.CHECKED, CHANGED if is_agreed else "", report)


def _check(
    upload: Upload, known: ListContext, sent: BinaryIO, good: Spool, rejects: BinaryIO, progress: Progress
) -> tuple[StockList, BadRows, int]:
    listed = open_list(upload.form, sent, upload.key_name, known)
    bad = BadRows(listed, rejects)
    return listed, bad, check_rows(listed, good, bad, progress.add)


def _before(upload: Upload) -> UploadState:
    """The state that a list goes back to when a step came to nothing."""
    return UploadState.CHECKED if upload.state is UploadState.STORING else UploadState.WAITING


def _digest(file: BinaryIO, meaning: str) -> str:
    file.seek(0)
    found = hashlib.sha256(meaning.encode())
    while piece := file.read(CHUNK_BYTES):
        found.update(piece)
    return found.hexdigest()
