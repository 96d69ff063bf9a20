"""Uploads of stock lists, for both databases."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import Conflict, UploadNotFound
from petstore.core.uploads import (
    ARRIVAL_MS,
    KEPT_MS,
    OPEN,
    RUNNING,
    NewUpload,
    NextCheck,
    PartKind,
    Upload,
    UploadCounts,
    UploadFault,
    UploadRun,
    UploadState,
    check_room,
)
from petstore.transactions.rows import UPLOAD, select
from petstore.transactions.script import Database, Script, Statement, statement

_RECENT = 50
_PARTS_AT_A_TIME = 32
_OPEN = ", ".join(f"'{state}'" for state in OPEN)
_RUNNING = ", ".join(f"'{state}'" for state in RUNNING)
# One claim at a time, and one count of what is there. SQLite has one writer.
_ALONE = Statement("SELECT 1", "LOCK TABLE stock_uploads IN SHARE ROW EXCLUSIVE MODE")
_FIND = statement(f"SELECT {select(UPLOAD)} FROM stock_uploads WHERE id = $1")
_WITHOUT_FAULTS = select(["'[]'" if column == "faults" else column for column in UPLOAD])
_NEWEST = statement(
    f"SELECT {_WITHOUT_FAULTS} FROM stock_uploads WHERE state <> 'arriving' ORDER BY id DESC LIMIT {_RECENT}"
)
_WORKED_ON = statement(
    f"SELECT {_WITHOUT_FAULTS} FROM stock_uploads WHERE state IN ({_RUNNING}) AND id <> $1 ORDER BY id"
)
_WAITS_LONGEST = statement(
    "SELECT id, actor FROM stock_uploads WHERE state = 'waiting' AND message = '' ORDER BY id LIMIT 1"
)
_TAKEN = Statement(
    *(
        f"SELECT count(*) FILTER (WHERE actor = {first}),"
        f" coalesce(sum(bytes) FILTER (WHERE actor = {first}), 0), coalesce(sum(bytes), 0) FROM stock_uploads"
        f" WHERE state IN ({_OPEN}) AND (state <> 'arriving' OR created_at_ms > {second})"
        for first, second in (("?1", "?2"), ("$1", "$2::bigint"))
    )
)
_BEGIN = statement(
    "INSERT INTO stock_uploads (actor, file, form, key_name, state, bytes, faults, message, worked_by, run,"
    " done, created_at_ms, beat_at_ms) VALUES ($1, $2, $3, $4, 'arriving', $6, '[]', '', '', '', 0, $5, $5)"
    " RETURNING id"
)
_ADD_PART = statement(
    "INSERT INTO stock_upload_parts (upload_id, kind, number, content) SELECT id, $2, $3, $4"
    " FROM stock_uploads WHERE id = $1 RETURNING number"
)
_ARRIVED = statement(
    "UPDATE stock_uploads SET state = 'waiting', bytes = $2 WHERE id = $1 AND state = 'arriving' RETURNING id"
)
_PART = statement("SELECT content FROM stock_upload_parts WHERE upload_id = $1 AND kind = $2 AND number = $3")
_CLEAR = statement(
    "DELETE FROM stock_upload_parts WHERE upload_id = $1 AND kind = $2 AND number IN (SELECT number"
    " FROM stock_upload_parts WHERE upload_id = $1 AND kind = $2 ORDER BY number"
    f" LIMIT {_PARTS_AT_A_TIME}) RETURNING number"
)
_CLAIM = statement(
    "UPDATE stock_uploads SET state = $2, run = $3, worked_by = $4, beat_at_ms = $5, done = 0, message = ''"
    " WHERE id = $1"
)
_BEAT = statement(
    "UPDATE stock_uploads SET beat_at_ms = $3, done = $4"
    f" WHERE id = $1 AND run = $2 AND state IN ({_RUNNING}) RETURNING id"
)
_END = statement(
    "UPDATE stock_uploads SET state = $3, message = $4"
    f" WHERE id = $1 AND run = $2 AND state IN ({_RUNNING}) RETURNING id"
)
_REPORT = statement("UPDATE stock_uploads SET counts = $2, faults = $3 WHERE id = $1")
_STORED = statement(
    "UPDATE stock_uploads SET state = 'stored' WHERE id = $1 AND run = $2 AND state = 'storing' RETURNING id"
)
_DISCARD = statement("UPDATE stock_uploads SET state = 'discarded' WHERE id = $1")
_OLD = statement(
    "SELECT id FROM stock_uploads WHERE created_at_ms <= $1 OR (state = 'arriving' AND created_at_ms <= $2)"
)
_FORGET = statement("DELETE FROM stock_uploads WHERE id = $1")
_decode_faults = msgspec.json.Decoder(list[UploadFault]).decode
_decode_counts = msgspec.json.Decoder(UploadCounts).decode


def _read(row: Sequence[Any]) -> Upload:
    """Of the columns UPLOAD."""
    values = dict(zip(UPLOAD, row, strict=True))
    counts = values["counts"]
    values["counts"] = None if counts is None else _decode_counts(counts)
    values["faults"] = _decode_faults(values["faults"])
    values["state"] = UploadState(values["state"])
    return Upload(**values)


def _find(upload_id: int) -> Script[Upload]:
    """Raises UploadNotFound."""
    for row in (yield _FIND, (upload_id,)):
        return _read(row)
    raise UploadNotFound(upload_id)


def begin_upload(new: NewUpload, actor: str, now_ms: int) -> Script[int]:
    """Raises Conflict when there is no room."""
    yield _ALONE, ()
    ((mine, my_bytes, all_bytes),) = yield _TAKEN, (actor, now_ms - ARRIVAL_MS)
    check_room(mine, int(my_bytes), int(all_bytes), new.bytes_max)
    ((upload_id,),) = yield _BEGIN, (actor, new.file, new.form, new.key_name, now_ms, new.bytes_max)
    return int(upload_id)


def claim(
    upload_id: int, step: UploadState, actor: str, seen: str, run: str, now_ms: int
) -> Script[UploadRun]:
    """Raises UploadNotFound and Conflict."""
    yield _ALONE, ()
    upload = yield from _find(upload_id)
    upload.check_step(step, seen, now_ms)
    if other := (yield from _worked_on(now_ms, beside=upload_id)):
        raise Conflict(
            f"{other.worked_by} is {other.state} the list {other.file}, and one is worked on at a time."
            " Try again when that is done."
        )
    yield _CLAIM, (upload_id, step.value, run, actor, now_ms)
    return UploadRun(upload_id, run)


def claim_next(run: str, now_ms: int) -> Script[NextCheck | None]:
    """See core.uploads."""
    yield _ALONE, ()
    if (yield from _worked_on(now_ms)):
        return None
    for upload_id, actor in (yield _WAITS_LONGEST, ()):
        yield _CLAIM, (upload_id, UploadState.CHECKING.value, run, actor, now_ms)
        return NextCheck(UploadRun(upload_id, run), actor)
    return None


def _worked_on(now_ms: int, *, beside: int = 0) -> Script[Upload | None]:
    """The list that a process works on, unless it is `beside`."""
    found = map(_read, (yield _WORKED_ON, (beside,)))
    return next((upload for upload in found if upload.is_running(now_ms)), None)


def mark_stored(run: UploadRun) -> Script[None]:
    """In the transaction that stores the list, so that it is stored once. Raises Conflict if it must not."""
    if not (yield _STORED, (run.upload_id, run.run)):
        raise Conflict("Another process works on this list now; nothing was stored by this one.")


def _end(
    run: UploadRun,
    state: UploadState,
    message: str,
    counts: UploadCounts | None,
    faults: list[UploadFault] | None,
) -> Script[bool]:
    if not (yield _END, (run.upload_id, run.run, state.value, message)):
        return False
    if counts is not None:
        found = [msgspec.json.encode(value).decode() for value in (counts, faults or [])]
        yield _REPORT, (run.upload_id, *found)
    return True


def _discard(upload_id: int, now_ms: int) -> Script[None]:
    yield _ALONE, ()
    upload = yield from _find(upload_id)
    if upload.is_running(now_ms):
        raise Conflict(f"This list is being worked on ({upload.state}). Wait until that is done.")
    if upload.state is UploadState.STORED:
        raise Conflict("This list is stored already.")
    yield _DISCARD, (upload_id,)


def _answer(sql: Statement, *parameters: object) -> Script[list[Any]]:
    """A script of one statement."""
    return (yield sql, parameters)


class Uploads:
    """Implements uploads.UploadRepository. Times are those of each process's machine, to a minute."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def begin(self, new: NewUpload, actor: str) -> int:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: begin_upload(new, actor, now_ms))

    async def add_part(self, upload_id: int, kind: PartKind, number: int, part: bytes) -> None:
        found = await self._write(_ADD_PART, upload_id, kind.value, number, part)
        if not found:
            raise UploadNotFound(upload_id)

    async def arrived(self, upload_id: int, size: int) -> None:
        if not await self._write(_ARRIVED, upload_id, size):
            raise UploadNotFound(upload_id)

    async def find(self, upload_id: int) -> Upload:
        return await self._database.read(_find(upload_id))

    async def recent(self) -> list[Upload]:
        return [_read(row) for row in await self._database.read(_answer(_NEWEST))]

    async def parts(self, upload_id: int, kind: PartKind) -> AsyncIterator[bytes]:
        number = 0
        while rows := await self._database.read(_answer(_PART, upload_id, kind.value, number)):
            yield rows[0][0]
            number += 1

    async def clear_parts(self, upload_id: int, kind: PartKind) -> None:
        while len(await self._write(_CLEAR, upload_id, kind.value)) == _PARTS_AT_A_TIME:
            pass

    async def claim(self, upload_id: int, step: UploadState, actor: str, *, seen: str = "") -> UploadRun:
        run, now_ms = secrets.token_hex(16), self._clock.now_ms()
        return await self._database.write(lambda: claim(upload_id, step, actor, seen, run, now_ms))

    async def claim_next(self) -> NextCheck | None:
        run, now_ms = secrets.token_hex(16), self._clock.now_ms()
        return await self._database.write(lambda: claim_next(run, now_ms))

    async def beat(self, run: UploadRun, done: int) -> bool:
        return bool(await self._write(_BEAT, run.upload_id, run.run, self._clock.now_ms(), done))

    async def end(
        self,
        run: UploadRun,
        state: UploadState,
        message: str = "",
        counts: UploadCounts | None = None,
        faults: list[UploadFault] | None = None,
    ) -> bool:
        return await self._database.write(lambda: _end(run, state, message, counts, faults))

    async def forget(self, upload_id: int) -> None:
        for kind in PartKind:
            await self.clear_parts(upload_id, kind)
        await self._write(_FORGET, upload_id)

    async def discard(self, upload_id: int) -> None:
        now_ms = self._clock.now_ms()
        await self._database.write(lambda: _discard(upload_id, now_ms))
        for kind in PartKind:
            await self.clear_parts(upload_id, kind)

    async def purge(self) -> None:
        """Forget uploads of more than 24 hours ago and those that stopped arriving, in small transactions."""
        now_ms = self._clock.now_ms()
        for (upload_id,) in await self._database.read(_answer(_OLD, now_ms - KEPT_MS, now_ms - ARRIVAL_MS)):
            await self.forget(upload_id)

    async def _write(self, sql: Statement, *parameters: object) -> list[Any]:
        return await self._database.write(lambda: _answer(sql, *parameters))
