"""`python -m petstore.wiring.import_process`: checks or stores one upload, in a process of its own.

Its task comes by standard input, which stays open for as long as the server wants the work done: at its end,
also when the server was killed, the work is abandoned. What was agreed to is what is stored: when the store
would do something else by now, the new report is shown instead.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from tempfile import TemporaryFile
from typing import BinaryIO, Protocol

import msgspec

from petstore.config import Settings
from petstore.core.clock import SystemClock
from petstore.core.errors import OperatorError, PetstoreError, StoreUnavailable
from petstore.core.lists.importing import BadRows, Fault, Spool, check_rows, plan_and_store, stage_rows
from petstore.core.lists.reading import FORMATS, StockList
from petstore.core.printable import printable
from petstore.core.stock import StockPlan, StockRepository
from petstore.core.uploads import (
    BEAT_SECONDS,
    BEFORE,
    BROKEN,
    CHANGED,
    PART_BYTES,
    STOPPED,
    PartKind,
    Upload,
    UploadCounts,
    UploadFault,
    UploadRepository,
    UploadRun,
    UploadState,
    pack,
    unpack,
)
from petstore.wiring.administration import backend_of, store_for_command

# The least share of the processor: the server's requests go first.
_NICENESS = 10
_SHOWN_CHARACTERS = 200


class ImportTask(msgspec.Struct, frozen=True):
    """What to do: the step is in the upload's state. `settings` are those of the server."""

    settings: Settings
    run: UploadRun
    actor: str


class Repositories(Protocol):
    """What the work needs of a store."""

    stock: StockRepository
    uploads: UploadRepository


class UploadWork:
    """The work of one run. `actor` makes the changes."""

    def __init__(self, store: Repositories, run: UploadRun, actor: str) -> None:
        self._stock = store.stock
        self._uploads = store.uploads
        self._run = run
        self._actor = actor
        self._done = 0
        self._cancelled = False

    async def carry_out(self) -> None:
        """Check or store, as the claim says, and note how it ended; also when it is cancelled.

        Raises what was not expected, which is noted too.
        """
        upload = await self._uploads.find(self._run.upload_id)
        before = BEFORE.get(upload.state, UploadState.CHECKED)
        try:
            async with self._beating():
                await self._work(upload)
        except OperatorError as error:  # the list itself
            await self._uploads.end(self._run, UploadState.REFUSED, str(error))
        except PetstoreError as error:
            await self._uploads.end(self._run, before, error.public_message)
        except asyncio.CancelledError:
            self._cancelled = True
            await self._uploads.end(self._run, before, STOPPED)
        except BaseException:
            await self._uploads.end(self._run, before, BROKEN)
            raise

    @asynccontextmanager
    async def _beating(self) -> AsyncIterator[None]:
        """Say every two seconds that the work goes on. It is cancelled when somebody else has taken it."""
        work = asyncio.current_task()
        assert work is not None

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                with suppress(StoreUnavailable):  # the import itself may hold SQLite's write lock
                    if not await self._uploads.beat(self._run, self._done):
                        work.cancel()

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()

    async def _work(self, upload: Upload) -> None:
        with ExitStack() as opened:
            sent, spooled, rejects = [opened.enter_context(TemporaryFile()) for _ in range(3)]
            async for part in self._uploads.parts(upload.id, PartKind.LIST):
                sent.write(unpack(part))
            sent.seek(0)
            good = Spool(spooled)
            bad, read = await asyncio.to_thread(self._check, upload, sent, good, rejects)
            self._done = 0
            await self._import(upload, good, bad, read, rejects)

    def _check(self, upload: Upload, sent: BinaryIO, good: Spool, rejects: BinaryIO) -> tuple[BadRows, int]:
        listed: StockList = FORMATS[upload.form](sent, upload.key_name)
        bad = BadRows(listed, rejects)
        return bad, check_rows(listed, good, bad, self._progress)

    def _progress(self, rows: int) -> None:
        if self._cancelled:  # the thread of `_check` learns of it here
            raise asyncio.CancelledError
        self._done += rows

    async def _import(self, upload: Upload, good: Spool, bad: BadRows, read: int, rejects: BinaryIO) -> None:
        found: UploadCounts | None = None

        def stores(plan: StockPlan, rejected: int) -> bool:
            nonlocal found
            digest = _digest(rejects)
            found = UploadCounts(read, plan.added, plan.changed, plan.unchanged, rejected, digest)
            return upload.state is UploadState.STORING and found == upload.counts

        async with self._stock.importing(self._actor, upload.key_name, self._run) as load:
            await stage_rows(load, good, self._progress)
            await plan_and_store(load, bad, stores=stores)
        if upload.state is UploadState.STORING and found == upload.counts:
            await self._uploads.clear_parts(upload.id, PartKind.LIST)
            return
        await self._keep_rejects(upload.id, rejects if bad.count else None)
        message = CHANGED if upload.state is UploadState.STORING else ""
        faults = [_shown(fault) for fault in bad.first()]
        await self._uploads.end(self._run, UploadState.CHECKED, message, found, faults)

    async def _keep_rejects(self, upload_id: int, rejects: BinaryIO | None) -> None:
        """Put the file of rejects into the store, in place of the last check's; None: there are none."""
        await self._uploads.clear_parts(upload_id, PartKind.REJECTS)
        for number, piece in enumerate(_pieces(rejects) if rejects else ()):
            await self._uploads.add_part(upload_id, PartKind.REJECTS, number, pack(piece))


def _shown(fault: Fault) -> UploadFault:
    row = printable(fault.row.decode(errors="replace").strip())
    return UploadFault(fault.line, fault.fault, row[:_SHOWN_CHARACTERS])


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(PART_BYTES):
        yield piece


def _digest(file: BinaryIO) -> str:
    found = hashlib.sha256()
    for piece in _pieces(file):
        found.update(piece)
    return found.hexdigest()


def main() -> None:
    """Read the task and carry it out. How it ended is in the store."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C stops the server, which ends standard input
    os.nice(_NICENESS)
    task: ImportTask = pickle.load(sys.stdin.buffer)
    asyncio.run(_carry_out(task, sys.stdin.buffer))


async def _carry_out(task: ImportTask, input_stream: BinaryIO) -> None:
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    assert work is not None

    def stop() -> None:
        loop.remove_reader(input_stream)
        work.cancel()

    loop.add_reader(input_stream, stop)
    settings = task.settings
    opened = store_for_command(settings, backend_of(settings), SystemClock(), _say)
    async with opened as store:
        await UploadWork(store, task.run, task.actor).carry_out()
        loop.remove_reader(input_stream)  # what is stored is announced to all before this ends


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
