"""The directory in which the workers of a service exchange their metrics, one file for each.

The scraped worker writes its own file and then adds up all files. No count in a file ever falls, so no sum
does, whichever worker is scraped next. The files of ended workers are merged into one.
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
from msgspec.structs import replace

from petstore.ops.counts import Counts, Gauges, combine
from petstore.ops.process import started_ticks

_MERGED_KEPT = 100
_PREFIX = "petstore-metrics-"
_STALE_SECONDS = 3_600

_log = structlog.get_logger("petstore.parent")


class ProcessMetrics(msgspec.Struct):
    """The metrics of one process, or all. `started` distinguishes it from a later process with the same
    number; one that does not serve requests has counts alone."""

    counts: Counts
    gauges: Gauges
    started: int | None = None
    serves: bool = True


class _Ended(msgspec.Struct):
    """The sum of ended processes. It includes `files`, even if they are not deleted yet."""

    counts: Counts
    files: list[str]


@contextlib.contextmanager
def metrics_directory() -> Iterator[Path | None]:
    """A temporary directory; None when none can be created.

    In memory if possible: workers write every second, and a disk may block them.
    """
    for parent in ("/dev/shm", None):
        with contextlib.suppress(OSError):
            directory = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent)
            break
    else:
        _log.warning(
            "no directory for metrics",
            message="There is no directory for temporary files: each worker shows its own metrics alone.",
        )
        yield None
        return
    with directory as name:
        _remove_stale(Path(name))
        yield Path(name)


def _remove_stale(own: Path) -> None:
    """Remove the directories of killed services: those not written for an hour."""
    newest = own.stat()
    for other in own.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = other.lstat()
            if found.st_uid == newest.st_uid and newest.st_mtime - found.st_mtime > _STALE_SECONDS:
                shutil.rmtree(other)


def replace_file(directory: Path, name: str, content: msgspec.Struct) -> None:
    """Replace a file atomically. Raises OSError."""
    partial = directory / f"{name}.partial"
    partial.write_bytes(msgspec.msgpack.encode(content))
    partial.replace(directory / name)


# Made at the import: two threads that make a type's decoder at once can crash the process (msgspec 0.22).
decode_metrics = msgspec.msgpack.Decoder(ProcessMetrics).decode
_decode_ended = msgspec.msgpack.Decoder(_Ended).decode


class WorkerMetricsDirectory:
    """One worker's access. File names have a random part, since process numbers are reused."""

    def __init__(self, directory: Path, process: int) -> None:
        self._directory = directory
        self._name = f"{process}-{secrets.token_hex(8)}.counts"
        self._started = started_ticks(process)

    def write(self, own: ProcessMetrics) -> None:
        """Replace the file of this process atomically. Raises OSError.

        Without the answers that there were none of, as most are: it is read five times as fast.
        """
        answers = {name: found for name, found in own.counts.answers.items() if any(found.counts)}
        counts = replace(own.counts, answers=answers)
        replace_file(self._directory, self._name, replace(own, counts=counts, started=self._started))

    def total(self, own: ProcessMetrics) -> ProcessMetrics:
        """The numbers of all processes: `own`, and the others' files. Raises OSError and MsgspecError."""
        processes = {}
        for path in self._directory.glob("*.counts"):
            with contextlib.suppress(FileNotFoundError):  # merged just now
                processes[path.name] = decode_metrics(path.read_bytes())
        processes[self._name] = replace(own, started=self._started)
        # Read last: it includes files merged before or after they were read above.
        ended = self._read_ended()
        counts, living, dead = ended.counts, [], []
        for name, numbers in processes.items():
            if name in ended.files:
                continue
            if not _lives(name, numbers.started):
                dead.append(name)
            elif numbers.serves:
                living.append(numbers.gauges)
            counts.add(numbers.counts)
        if dead:
            self._merge({name: processes[name].counts for name in dead})
        return ProcessMetrics(counts, combine(living or [Gauges()]))

    def _merge(self, dead: dict[str, Counts]) -> None:
        """Merge the files of ended processes into one; does nothing while another process does it."""
        with (self._directory / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            ended = self._read_ended()
            for name in dead.keys() - set(ended.files):
                ended.counts.add(dead[name])
                ended.files.append(name)
            ended.files = ended.files[-_MERGED_KEPT:]
            replace_file(self._directory, "ended", ended)
            for name in dead:
                for left in (self._directory / name, self._directory / f"{name}.partial"):
                    left.unlink(missing_ok=True)

    def _read_ended(self) -> _Ended:
        try:
            return _decode_ended((self._directory / "ended").read_bytes())
        except FileNotFoundError:
            return _Ended(Counts(), [])


def _lives(name: str, started: int | None) -> bool:
    process = int(name.partition("-")[0])
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return started_ticks(process) == started
