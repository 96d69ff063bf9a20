"""Uploads: stock lists that people send to the console, kept in the store for the background process.

waiting -> checking -> checked -> storing -> stored. A list that can't be read is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import BinaryIO, NamedTuple

import msgspec

from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict

UPLOAD_BYTES_MAX = 64 << 20
CHUNK_BYTES = 256 << 10
KEPT_MS = DAY_MS
# Bytes of lists that can still be stored, before compression. A person has half at most, so that others can
# send theirs.
ALL_BYTES_MAX = 4 * UPLOAD_BYTES_MAX
PERSON_BYTES_MAX = ALL_BYTES_MAX // 2
OPEN_FOR_A_PERSON = 5
# Why a step came to nothing.
CHANGED = "Animals were changed after the check, so storing would do something else now. Look at it again."
BROKEN = "Something went wrong on our side; nothing was stored. Try again."
_LEVEL = 1
_LENGTH_BYTES = 4


class UploadState(StrEnum):
    """The state of an upload. Programs of 1.1.0 have lists that are arriving."""

    ARRIVING = "arriving"
    WAITING = "waiting"
    CHECKING = "checking"
    CHECKED = "checked"
    STORING = "storing"
    STORED = "stored"
    REFUSED = "refused"
    DISCARDED = "discarded"


RUNNING = (UploadState.CHECKING, UploadState.STORING)
# Those whose list is still needed.
OPEN = (UploadState.WAITING, UploadState.CHECKED, *RUNNING)


class FileKind(StrEnum):
    """The list as it was sent, or the rows of it that can't be stored."""

    LIST = "list"
    REJECTS = "rejects"


class UploadCounts(msgspec.Struct, frozen=True):
    """How many rows were read, by the outcome that they would have. `rejects` is a digest of the rejected."""

    read: int
    added: int
    changed: int
    unchanged: int
    rejected: int
    rejects: str


class UploadFault(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A bad row: the line where it begins, what is wrong, and the beginning of the row, fit to be shown."""

    line: int
    fault: str
    row: str


class Reading(msgspec.Struct, frozen=True):
    """How a list was read: `notes` where that was not plain; the `names` of its columns (see
    core.lists.columns), its headings and first rows, cut, and the `meanings` of its columns: a member of an
    animal, `key`, or empty. A list of JSON, or of very many columns, has notes alone."""

    notes: list[str] = []
    names: list[str] = []
    rows: list[list[str]] = []
    meanings: list[str] = []


class UploadReport(NamedTuple):
    """What a check has found; `rejects` is a file that `pack` wrote."""

    counts: UploadCounts
    faults: list[UploadFault]
    rejects: BinaryIO
    reading: Reading


class NewUpload(msgspec.Struct, frozen=True):
    """A list of `bytes` that has arrived. `file` is its name, `form` is `csv` or `jsonl`."""

    file: str
    form: str
    key_name: str | None
    bytes: int


class Upload(msgspec.Struct, frozen=True):
    """A list in the store. `counts` and `faults` are from its last check, `run` names its report, and
    who works on it: it changes when somebody else begins to.

    `message` says why it was refused or why a step failed, `worked_by` who asked for the last step, `done`
    how many rows of it are done.
    """

    id: int
    actor: str
    file: str
    form: str
    key_name: str | None
    state: UploadState
    bytes: int
    counts: UploadCounts | None
    faults: list[UploadFault]
    message: str
    worked_by: str
    run: str
    done: int
    created_at_ms: int
    reading: Reading | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is being checked, or to be stored."""
        return self.state in RUNNING

    @property
    def is_queued(self) -> bool:
        """Whether its check begins by itself: no check of it failed."""
        return self.state is UploadState.WAITING and not self.message

    def check_step(self, step: UploadState, expected_run: str) -> None:
        """Raise Conflict unless CHECKING or STORING may begin. `expected_run`: whose report was agreed to."""
        if self.is_running:
            raise Conflict(f"This list is {self.state} already.")
        if self.state is UploadState.STORED:
            raise Conflict("This list is stored already.")
        if self.state not in OPEN:
            raise Conflict(f"This list is {self.state}; send it again.")
        if step is UploadState.CHECKING:
            return
        if self.counts is None or self.state is not UploadState.CHECKED:
            raise Conflict("This list is not checked yet.")
        if expected_run != self.run:
            raise Conflict("The list was checked again meanwhile. Look at the new report first.")


def pack(source: BinaryIO, packed: BinaryIO) -> None:
    """Write a file as compressed chunks. Call it in a thread: 64 MiB take a second."""
    source.seek(0)
    while content := source.read(CHUNK_BYTES):
        put_chunk(packed, zlib.compress(content, _LEVEL))


def put_chunk(packed: BinaryIO, chunk: bytes) -> None:
    """Write a chunk, at most 4 GiB, for `chunks`."""
    packed.write(len(chunk).to_bytes(_LENGTH_BYTES) + chunk)


def chunks(packed: BinaryIO) -> Iterator[bytes]:
    """The chunks of a file, from its beginning."""
    packed.seek(0)
    while length := packed.read(_LENGTH_BYTES):
        yield packed.read(int.from_bytes(length))


def unpack(chunk: bytes) -> bytes:
    """The content of a chunk."""
    return zlib.decompress(chunk)


def check_room(mine: int, my_bytes: int, all_bytes: int, coming_bytes: int) -> None:
    """Raise Conflict unless one more may be kept. `mine` is how many the person has that are not stored."""
    if mine >= OPEN_FOR_A_PERSON:
        raise Conflict(f"You have {mine} lists that are not stored yet. Store or discard one first.")
    if my_bytes + coming_bytes > PERSON_BYTES_MAX:
        raise Conflict(
            f"Your lists that are not stored yet take {my_bytes >> 20:,} MiB, and a person may have"
            f" {PERSON_BYTES_MAX >> 20:,}. Store or discard one first."
        )
    if all_bytes + coming_bytes > ALL_BYTES_MAX:
        raise Conflict(
            f"The lists that are not stored yet take {all_bytes >> 20:,} MiB. Store or discard some first."
        )
