"""Uploads: stock lists that people send to the console, kept in the store for any process to go on with.

waiting -> checking -> checked -> storing -> stored. Who works on one has a run: a random text that the next
one replaces, so that an interrupted one can't store. A list that can't be read is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Protocol

import msgspec

from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import Conflict

UPLOAD_BYTES_MAX = 64 << 20
PART_BYTES = 256 << 10
KEPT_MS = DAY_MS
ARRIVAL_MS = 10 * MINUTE_MS  # the longest that a list may be on its way
# Of lists that can still be stored, before compression; one that arrives counts as it was announced. A person
# has half of it at most, so that nobody keeps the others out.
ALL_BYTES_MAX = 4 * UPLOAD_BYTES_MAX
PERSON_BYTES_MAX = ALL_BYTES_MAX // 2
OPEN_FOR_A_PERSON = 5
BEAT_SECONDS = 2.0
# Why a step came to nothing.
STOPPED = "The server was stopped before this was done; nothing was stored. Go on where you were."
CHANGED = "Animals were changed after the check, so storing would do something else now. Look at it again."
BROKEN = "Something went wrong on our side; nothing was stored. Try again."
_DEAD_AFTER_MS = 60 * SECOND_MS
_LEVEL = 1


class UploadState(StrEnum):
    """What has become of an upload."""

    ARRIVING = "arriving"
    WAITING = "waiting"
    CHECKING = "checking"
    CHECKED = "checked"
    STORING = "storing"
    STORED = "stored"
    REFUSED = "refused"
    DISCARDED = "discarded"


# Of each step, where a list goes back to when nothing came of it.
BEFORE = {UploadState.CHECKING: UploadState.WAITING, UploadState.STORING: UploadState.CHECKED}
RUNNING = tuple(BEFORE)
# Those whose list is still needed.
OPEN = (UploadState.ARRIVING, UploadState.WAITING, UploadState.CHECKED, *RUNNING)


class PartKind(StrEnum):
    """The list as it was sent, or the rows of it that can't be stored."""

    LIST = "list"
    REJECTS = "rejects"


class UploadCounts(msgspec.Struct, frozen=True):
    """How many rows were read and what would become of them. `rejects` is a digest of those rejected."""

    read: int
    added: int
    changed: int
    unchanged: int
    rejected: int
    rejects: str


class UploadFault(msgspec.Struct, frozen=True, array_like=True):
    """A bad row: the line where it begins, what is wrong, and the beginning of the row."""

    line: int
    fault: str
    row: str


class NewUpload(msgspec.Struct, frozen=True):
    """A list that arrives. `file` is its name, `form` is `csv` or `jsonl`; it has at most `bytes_max`."""

    file: str
    form: str
    key_name: str | None
    bytes_max: int = UPLOAD_BYTES_MAX


class Upload(msgspec.Struct, frozen=True):
    """A list in the store. `counts` and `faults` are those of its last check; `done` counts the rows of the
    present step; `message` says why it was refused or what interrupted it.
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
    beat_at_ms: int

    @property
    def waits_its_turn(self) -> bool:
        """Whether it is checked by itself when no other list is worked on: no check of it came to nothing."""
        return self.state is UploadState.WAITING and not self.message

    def is_running(self, now_ms: int) -> bool:
        """Whether a process works on it, by what it said within the last minute."""
        return self.state in RUNNING and now_ms - self.beat_at_ms < _DEAD_AFTER_MS

    def is_interrupted(self, now_ms: int) -> bool:
        """Whether the process that worked on it has ended without a word. Nothing was stored."""
        return self.state in RUNNING and not self.is_running(now_ms)

    def check_step(self, step: UploadState, seen: str, now_ms: int) -> None:
        """Raise Conflict unless CHECKING or STORING may begin. `seen`: the run whose report was agreed to."""
        if self.is_running(now_ms):
            raise Conflict(f"This list is {self.state} already.")
        if self.state is UploadState.STORED:
            raise Conflict("This list is stored already.")
        if self.state not in OPEN or self.state is UploadState.ARRIVING:
            raise Conflict(f"This list is {self.state}; send it again.")
        if step is UploadState.CHECKING:
            return
        if self.counts is None or self.state not in (UploadState.CHECKED, UploadState.STORING):
            raise Conflict("This list is not checked yet.")
        if seen != self.run:
            raise Conflict("The list was checked again meanwhile. Look at the new report first.")


class UploadRun(msgspec.Struct, frozen=True):
    """The right to work on an upload, until somebody else takes it."""

    upload_id: int
    run: str


class NextCheck(msgspec.Struct, frozen=True):
    """A list whose turn has come, and who has sent it."""

    run: UploadRun
    actor: str


def pack(content: bytes) -> bytes:
    """A part for the store. Compress beside the event loop: 256 KiB take some milliseconds."""
    return zlib.compress(content, _LEVEL)


def unpack(part: bytes) -> bytes:
    """The content of a part."""
    return zlib.decompress(part)


def check_room(mine: int, my_bytes: int, all_bytes: int, coming_bytes: int) -> None:
    """Raise Conflict unless one more may arrive. `mine` is how many the person has that are not stored."""
    if mine >= OPEN_FOR_A_PERSON:
        raise Conflict(f"You have {mine} lists that are not stored yet. Store or discard one first.")
    if my_bytes + coming_bytes > PERSON_BYTES_MAX:
        raise Conflict(
            f"Your lists that are not stored yet take {my_bytes >> 20:,} MiB, and a person may have"
            f" {PERSON_BYTES_MAX >> 20:,}. Store or discard one first, or wait for one that is on its way."
        )
    if all_bytes + coming_bytes > ALL_BYTES_MAX:
        raise Conflict(
            f"The lists that are not stored yet take {all_bytes >> 20:,} MiB. Store or discard some first, or"
            " wait for those that are on their way."
        )


class UploadRepository(Protocol):
    """Uploads in a store. Every method may raise StoreUnavailable, and UploadNotFound for an unknown id."""

    async def begin(self, new: NewUpload, actor: str) -> int:
        """Make room for a list that arrives; its id. Raises Conflict when there is none."""
        ...

    async def add_part(self, upload_id: int, kind: PartKind, number: int, part: bytes) -> None:
        """Keep what `pack` has made. Numbers count from 0."""
        ...

    async def arrived(self, upload_id: int, size: int) -> None:
        """All parts are there; `size` is that of the list in bytes."""
        ...

    async def find(self, upload_id: int) -> Upload: ...

    async def recent(self) -> list[Upload]:
        """The newest 50 that have arrived, without their faults."""
        ...

    def parts(self, upload_id: int, kind: PartKind) -> AsyncIterator[bytes]:
        """Each part as it was added, read one by one."""
        ...

    async def clear_parts(self, upload_id: int, kind: PartKind) -> None: ...

    async def claim(self, upload_id: int, step: UploadState, actor: str, *, seen: str = "") -> UploadRun:
        """Begin to check or store it. Raises Conflict by `check_step`, and while another is worked on."""
        ...

    async def claim_next(self) -> NextCheck | None:
        """Begin to check the one that has waited for its turn longest; None when there is none, or one is
        worked on.
        """
        ...

    async def beat(self, run: UploadRun, done: int) -> bool:
        """Say that the work goes on. False: it is somebody else's now."""
        ...

    async def end(
        self,
        run: UploadRun,
        state: UploadState,
        message: str = "",
        counts: UploadCounts | None = None,
        faults: list[UploadFault] | None = None,
    ) -> bool:
        """The work has ended; without counts the last ones stay. False: it was somebody else's, or stored."""
        ...

    async def forget(self, upload_id: int) -> None:
        """Remove all of a list that did not arrive whole."""
        ...

    async def discard(self, upload_id: int) -> None:
        """Forget the list. Raises Conflict while it is worked on, and when it is stored."""
        ...
