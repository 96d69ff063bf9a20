"""Uploads of stock lists, for both databases. Each step is a job of the background process.

Programs of 1.1.0 work on the same rows. The transaction that stores a list checks its `run`, so it is
stored once, even if two programs work on it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from petstore.core.durations import MINUTE_MS
from petstore.core.errors import Conflict, UploadNotFound
from petstore.core.journal import STORE
from petstore.core.uploads import (
    KEPT_MS,
    OPEN,
    RUNNING,
    FileKind,
    NewUpload,
    Reading,
    Upload,
    UploadCounts,
    UploadFault,
    UploadReport,
    UploadState,
    check_room,
    chunks,
)
from petstore.transactions.jobs import ADD_JOB, REMOVE_JOB, Job
from petstore.transactions.journal import encode, record
from petstore.transactions.rows import UPLOAD, quoted, select
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    json_text,
    read,
    reads,
    rows_of,
    statement,
    write,
)

IMPORT = "import"  # the kind of job
_RECENT = 50
_REMEMBERED = 500  # sets of headings, of 2 KB at most
_OPEN = quoted(OPEN)
_RUNNING = quoted(RUNNING)
# One count of what is there at a time. SQLite has one writer.
_ALONE = Statement("SELECT 1", "LOCK TABLE stock_uploads IN SHARE ROW EXCLUSIVE MODE")
_DONE = f"coalesce((SELECT j.done FROM jobs j WHERE j.kind = '{IMPORT}' AND j.subject = stock_uploads.id), 0)"
_WHOLE = select([_DONE if column == "done" else column for column in UPLOAD])
_LEFT_OUT = {"faults": "'[]'", "reading": "NULL"}
_WITHOUT_FAULTS = select([_LEFT_OUT.get(column, column) for column in UPLOAD])
_BY_ID = statement(f"SELECT {_WHOLE} FROM stock_uploads WHERE id = $1", lock=" FOR UPDATE")
_NEWEST = statement(
    f"SELECT {_WITHOUT_FAULTS} FROM stock_uploads WHERE state <> 'arriving' ORDER BY id DESC LIMIT {_RECENT}"
)
_TAKEN = statement(
    "SELECT count(*) FILTER (WHERE actor = $1), coalesce(sum(bytes) FILTER (WHERE actor = $1), 0),"
    f" coalesce(sum(bytes), 0) FROM stock_uploads WHERE state IN ({_OPEN})"
)
_ADD = statement(
    "INSERT INTO stock_uploads (actor, file, form, key_name, state, bytes, faults, message, worked_by, run,"
    " done, created_at_ms, beat_at_ms) VALUES ($1, $2, $3, $4, 'waiting', $5, '[]', '', $1, '', 0, $6, $6)"
    " RETURNING id"
)
_ADD_CHUNK = statement(
    "INSERT INTO stock_upload_parts (upload_id, kind, number, content) VALUES ($1, $2, $3, $4)"
)
_CHUNK = statement(
    "SELECT content FROM stock_upload_parts WHERE upload_id = $1 AND kind = $2 AND number = $3"
)
_CLEAR = statement("DELETE FROM stock_upload_parts WHERE upload_id = $1 AND kind = $2")
_QUEUE = statement("UPDATE stock_uploads SET state = $2, message = '', worked_by = $3 WHERE id = $1")
_BEGIN = statement(
    "UPDATE stock_uploads SET state = CASE state WHEN 'storing' THEN state ELSE 'checking' END, run = $2,"
    " beat_at_ms = $3"
    f" WHERE id = $1 AND (state IN ({_RUNNING}) OR (state = 'waiting' AND message = ''))"
    " AND EXISTS (SELECT 1 FROM jobs WHERE id = $4 AND owner = $2) RETURNING id"
)
_END = statement(
    "UPDATE stock_uploads SET state = $3, message = $4"
    f" WHERE id = $1 AND run = $2 AND state IN ({_RUNNING}) RETURNING id"
)
_REPORT = statement("UPDATE stock_uploads SET counts = $2, faults = $3 WHERE id = $1")
_READING = statement("UPDATE stock_uploads SET reading = $2 WHERE id = $1")
_COLUMNS = statement(f"SELECT headings, meanings FROM stock_columns ORDER BY at_ms DESC LIMIT {_REMEMBERED}")
_SAVE_MEANINGS = statement(
    "INSERT INTO stock_columns (headings, meanings, at_ms) VALUES ($1, $2, $3)"
    " ON CONFLICT (headings) DO UPDATE SET meanings = excluded.meanings, at_ms = excluded.at_ms"
)
_STORED = statement(
    "UPDATE stock_uploads SET state = 'stored' WHERE id = $1 AND run = $2 AND state = 'storing' RETURNING id"
)
_DISCARD = statement("UPDATE stock_uploads SET state = 'discarded' WHERE id = $1")
_FORGET = statement("DELETE FROM stock_uploads WHERE created_at_ms <= $1")
_FORGET_JOBS = statement(
    "DELETE FROM jobs WHERE kind = $1"
    " AND NOT EXISTS (SELECT 1 FROM stock_uploads u WHERE u.id = jobs.subject)"
)
# Work that no process does: of a program of 1.1.0 that has ended. A living one moves beat_at_ms every 2 s.
_ABANDONED = statement(
    f"SELECT id FROM stock_uploads u WHERE (state IN ({_RUNNING}) OR (state = 'waiting' AND message = ''))"
    " AND beat_at_ms <= $1 AND NOT EXISTS"
    f" (SELECT 1 FROM jobs j WHERE j.kind = '{IMPORT}' AND j.subject = u.id)"
)
_DECODERS: Mapping[str, Callable[[str], object]] = {
    "counts": msgspec.json.Decoder(UploadCounts).decode,
    "faults": msgspec.json.Decoder(list[UploadFault]).decode,
    "reading": msgspec.json.Decoder(Reading).decode,
    "state": UploadState,
}
_decode_meanings = msgspec.json.Decoder(dict[str, str]).decode


def _read(row: Sequence[Any]) -> Upload:
    """The upload in a row of the columns UPLOAD."""
    values = dict(zip(UPLOAD, row, strict=True))
    texts = {name: values[name] for name in _DECODERS if values[name] is not None}
    return Upload(**values | {name: _DECODERS[name](text) for name, text in texts.items()})


def _get(upload_id: int) -> Script[Upload]:
    """Raises UploadNotFound."""
    for row in (yield _BY_ID, (upload_id,)):
        return _read(row)
    raise UploadNotFound(upload_id)


def _keep(upload_id: int, kind: FileKind, packed: BinaryIO) -> Script[None]:
    for number, chunk in enumerate(chunks(packed)):
        yield _ADD_CHUNK, (upload_id, kind.value, number, chunk)


def mark_stored(now_ms: int, upload: Upload) -> Script[None]:
    """Mark in the transaction that stores the list, so that it is stored once. Raises Conflict if it must
    not."""
    if not (yield _STORED, (upload.id, upload.run)):
        raise Conflict("Another process works on this list now; nothing was stored by this one.")
    yield _CLEAR, (upload.id, FileKind.LIST.value)
    yield from _record_end(now_ms, upload.id)


def _record_end(now_ms: int, upload_id: int) -> Script[None]:
    """An entry of the outcome of a step, if it was an end."""
    upload = yield from _get(upload_id)
    if upload.state not in (UploadState.CHECKED, UploadState.REFUSED, UploadState.STORED):
        return
    counts = upload.counts or UploadCounts(0, 0, 0, 0, 0, "")
    found = {
        "list": upload.file,
        "upload": upload.id,
        "state": upload.state,
        "message": upload.message,
        **{name: getattr(counts, name) for name in ("added", "changed", "rejected")},
    }
    yield from record(now_ms, upload.worked_by, STORE, 0, "list_finished", None, found)


class Uploads(Repository):
    """Every method raises UploadNotFound for an unknown id."""

    @write(NO_EFFECT)
    def add(self, now_ms: int, new: NewUpload, packed: BinaryIO, actor: str) -> Script[int]:
        """Keep a list that `pack` wrote, to be checked; its id. Raises Conflict when there is no room."""
        yield _ALONE, ()
        ((mine, my_bytes, all_bytes),) = yield _TAKEN, (actor,)
        check_room(mine, int(my_bytes), int(all_bytes), new.bytes)
        ((upload_id,),) = yield _ADD, (actor, new.file, new.form, new.key_name, new.bytes, now_ms)
        yield from _keep(upload_id, FileKind.LIST, packed)
        yield ADD_JOB, (IMPORT, upload_id)
        return int(upload_id)

    get = reads(_get)

    @read
    def recent(self) -> Script[list[Upload]]:
        """The newest 50, without their faults and what is done of them."""
        return [_read(row) for row in (yield _NEWEST, ())]

    async def chunks(self, upload_id: int, kind: FileKind) -> AsyncIterator[bytes]:
        """The chunks of a file, read one by one."""
        number = 0
        while rows := await self._database.read(rows_of(_CHUNK, upload_id, kind.value, number)):
            yield rows[0][0]
            number += 1

    @write(NO_EFFECT)
    def ask(
        self, _now_ms: int, upload_id: int, step: UploadState, actor: str, *, expected_run: str = ""
    ) -> Script[None]:
        """Let it be checked or stored. Raises Conflict by `check_step`."""
        upload = yield from _get(upload_id)
        upload.check_step(step, expected_run)
        queued = UploadState.WAITING if step is UploadState.CHECKING else step
        yield _QUEUE, (upload_id, queued.value, actor)
        yield ADD_JOB, (IMPORT, upload_id)

    @write(NO_EFFECT)
    def begin(self, now_ms: int, job: Job) -> Script[Upload | None]:
        """Begin the work of a job: nobody else can end it then. None when there is nothing left to do."""
        if not (yield _BEGIN, (job.subject, job.owner, now_ms, job.id)):
            return None
        return (yield from _get(job.subject))

    @write(NO_EFFECT)
    def end(
        self,
        now_ms: int,
        upload: Upload,
        state: UploadState,
        message: str = "",
        report: UploadReport | None = None,
        reading: Reading | None = None,
    ) -> Script[bool]:
        """The work has ended; without a report the last one stays. A refused list is removed, its row stays.
        `reading` is for a list whose columns are not clear.

        False: another run has begun, or it is stored.
        """
        if not (yield _END, (upload.id, upload.run, state.value, message)):
            return False
        if state is UploadState.REFUSED:
            yield _CLEAR, (upload.id, FileKind.LIST.value)
        if reading := report.reading if report is not None else reading:
            yield _READING, (upload.id, json_text(reading))
        if report is not None:
            yield _REPORT, (upload.id, json_text(report.counts), json_text(report.faults))
            yield _CLEAR, (upload.id, FileKind.REJECTS.value)
            yield from _keep(upload.id, FileKind.REJECTS, report.rejects)
        yield from _record_end(now_ms, upload.id)
        return True

    @read
    def columns(self) -> Script[dict[str, dict[str, str]]]:
        """What staff have chosen for columns; see core.lists.columns.Remembered."""
        return {headings: _decode_meanings(meanings) for headings, meanings in (yield _COLUMNS, ())}

    @write(NO_EFFECT)
    def save_column_meanings(
        self, now_ms: int, headings: str, meanings: Mapping[str, str], actor: str
    ) -> Script[None]:
        """Remember what the columns of these headings mean; the last word counts."""
        yield _SAVE_MEANINGS, (headings, encode(meanings), now_ms)
        chosen = {name: meaning for name, meaning in meanings.items() if meaning}
        yield from record(now_ms, actor, STORE, 0, "columns_said", None, chosen)

    @write(NO_EFFECT)
    def discard(self, _now_ms: int, upload_id: int) -> Script[None]:
        """Forget the list. Raises Conflict while it is worked on, and when it is stored."""
        upload = yield from _get(upload_id)
        if upload.is_running:
            raise Conflict(f"This list is being worked on ({upload.state}). Wait until that is done.")
        if upload.state is UploadState.STORED:
            raise Conflict("This list is stored already.")
        yield _DISCARD, (upload_id,)
        yield REMOVE_JOB, (IMPORT, upload_id)
        for kind in FileKind:
            yield _CLEAR, (upload_id, kind.value)

    async def adopt(self) -> None:
        """Make jobs for the work that programs of 1.1.0 have left for a minute."""
        if left := await self._database.read(rows_of(_ABANDONED, self._clock.now_ms() - MINUTE_MS)):
            await self._adopt(left)

    @write(NO_EFFECT)
    def _adopt(self, _now_ms: int, left: list[Any]) -> Script[None]:
        for (upload_id,) in left:
            yield ADD_JOB, (IMPORT, upload_id)

    @write(NO_EFFECT)
    def purge(self, now_ms: int) -> Script[None]:
        """Forget uploads of more than 24 hours ago. A process that works on one loses its lease."""
        yield _FORGET, (now_ms - KEPT_MS,)
        yield _FORGET_JOBS, (IMPORT,)
