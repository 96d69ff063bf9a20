"""The directory in which the workers of one service leave their numbers to each other, a file for each.

A scrape writes the file of the worker that is asked and then adds up files alone. No file ever falls, so
neither does a sum, whichever worker is asked next. What ended workers have left is folded into one file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from petstore.ops.counts import Counts, Levels, combine
from petstore.ops.process import started_ticks

_FOLDED_KEPT = 100
_PREFIX = "petstore-metrics-"
_LEFT_BEHIND_SECONDS = 3_600

_log = structlog.get_logger("petstore.parent")


class Numbers(msgspec.Struct):
    """What one process has counted, and how it stands.

    `started` tells it from a process that gets its number later.
    """

    counts: Counts
    levels: Levels
    started: int | None = None


class _Ended(msgspec.Struct):
    """The sum of processes that have ended. A file named here is in it, even if it is not deleted yet."""

    counts: Counts
    files: list[str]


@contextlib.contextmanager
def metrics_directory() -> Iterator[Path | None]:
    """The directory of one service, for as long as it runs; None where there can be none.

    In memory where that is possible: workers write every second, and a disk may make them wait.
    """
    for place in ("/dev/shm", None):
        with contextlib.suppress(OSError):
            directory = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place)
            break
    else:
        _log.warning(
            "no directory for metrics",
            message="There is no directory for temporary files: each worker shows its own metrics alone.",
        )
        yield None
        return
    with directory as name:
        _remove_left_behind(Path(name))
        yield Path(name)


def _remove_left_behind(own: Path) -> None:
    """Free the memory of killed services: nothing wrote into their directories for an hour."""
    newest = own.stat()
    for other in own.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = other.lstat()
            if found.st_uid == newest.st_uid and newest.st_mtime - found.st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(other)


class WorkerMetricsDirectory:
    """One worker's access to the directory. Process numbers are used again, so a name has a random part."""

    def __init__(self, directory: Path, process: int) -> None:
        self._directory = directory
        self._name = f"{process}-{secrets.token_hex(8)}.counts"
        self._started = started_ticks(process)

    def write(self, own: Numbers) -> None:
        """Leave the numbers of this process, whole or not at all. Raises OSError."""
        self._replace(self._name, msgspec.structs.replace(own, started=self._started))

    def total(self, own: Numbers) -> Numbers:
        """The numbers of all processes; `own` only where they could not be written.

        Raises OSError and msgspec.MsgspecError.
        """
        found = {}
        for path in self._directory.glob("*.counts"):
            with contextlib.suppress(FileNotFoundError):  # folded just now
                found[path.name] = msgspec.msgpack.decode(path.read_bytes(), type=Numbers)
        if self._name not in found:
            found[self._name] = msgspec.structs.replace(own, started=self._started)
        # Read last: what was folded after a file was read, and what was folded before it could be, is in it.
        ended = self._read_ended()
        counts, living, dead = ended.counts, [], []
        for name, numbers in found.items():
            if name in ended.files:
                continue
            if _lives(name, numbers.started):
                living.append(numbers.levels)
            else:
                dead.append(name)
            counts.add(numbers.counts)
        if dead:
            self._fold({name: found[name].counts for name in dead})
        return Numbers(counts, combine(living or [Levels()]))

    def _fold(self, dead: dict[str, Counts]) -> None:
        """Add files that grow no more to that of the ended; one process at a time, and nobody waits."""
        with (self._directory / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            ended = self._read_ended()
            for name in dead.keys() - set(ended.files):
                ended.counts.add(dead[name])
                ended.files.append(name)
            ended.files = ended.files[-_FOLDED_KEPT:]
            self._replace("ended", ended)
            for name in dead:
                for left in (self._directory / name, self._directory / f"{name}.partial"):
                    left.unlink(missing_ok=True)

    def _read_ended(self) -> _Ended:
        try:
            return msgspec.msgpack.decode((self._directory / "ended").read_bytes(), type=_Ended)
        except FileNotFoundError:
            return _Ended(Counts(), [])

    def _replace(self, name: str, content: msgspec.Struct) -> None:
        partial = self._directory / f"{name}.partial"
        partial.write_bytes(msgspec.msgpack.encode(content))
        partial.replace(self._directory / name)


def _lives(name: str, started: int | None) -> bool:
    process = int(name.partition("-")[0])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return started_ticks(process) == started
