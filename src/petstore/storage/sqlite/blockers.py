"""Names the processes that write to a file, for operators."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_LOCKS = Path("/proc/locks")
# The bytes that SQLite's one writer locks: WAL_WRITE_LOCK in the log's index, without a log RESERVED_BYTE.
_BYTES = {"-shm": 120, "": 0x40000001}


def find(path: str) -> list[str]:
    """The processes that hold the write lock of the file at `path`; none where the system does not list
    locks.

    The file is not opened: closing it would drop the locks that SQLite holds on it in this process.
    """
    wanted = set()
    for suffix, byte in _BYTES.items():
        with suppress(OSError):
            wanted.add((str(Path(f"{Path(path).resolve()}{suffix}").stat().st_ino), str(byte)))
    found = []
    with suppress(OSError):
        for line in _LOCKS.read_text(encoding="ascii").splitlines():
            *_, access, process, file, first, _ = line.split()
            if access == "WRITE" and (file.rpartition(":")[2], first) in wanted:
                found.append(_describe(process))
    return found


def _describe(process: str) -> str:
    with suppress(OSError):
        return f"process {process} ({Path(f'/proc/{process}/comm').read_text(errors='replace').strip()})"
    return f"process {process}"
