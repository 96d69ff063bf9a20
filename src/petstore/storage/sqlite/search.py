"""The index for searches in a file of its own beside the database, in SQLite's full-text index (FTS5).

Its writes never wait for the database's, nor the database's for them. It may be deleted at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import apsw

from petstore.core.errors import StoreDamaged
from petstore.core.search import IndexProgress, IndexTexts, SearchKind, grams_of, key_of
from petstore.storage.sqlite import files
from petstore.storage.sqlite.connection import translated
from petstore.storage.sqlite.own_connection import in_thread
from petstore.transactions.rows import PROGRESS, progress_values, read_progress, select

_T = TypeVar("_T")
_PROGRESS = select(PROGRESS)
_EMPTY = "".join(
    f"DROP TABLE IF EXISTS {kind};"
    f"CREATE VIRTUAL TABLE {kind} USING fts5"
    "(grams, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');"
    for kind in SearchKind
)
_BEGIN = f"DROP TABLE IF EXISTS progress; CREATE TABLE progress ({_PROGRESS}); {_EMPTY}"


class SqliteSearch:
    """Implements core.search.SearchIndex for the database at `path`."""

    def __init__(self, path: str, busy_timeout_ms: int) -> None:
        self._path = f"{Path(path).resolve()}-search"
        self._busy_timeout_ms = busy_timeout_ms
        self._connection: apsw.Connection | None = None
        self._inode = 0
        self._turn = asyncio.Lock()

    async def progress(self) -> IndexProgress | None:
        return await self._run(_progress)

    async def put(self, texts: IndexTexts, before: IndexProgress | None, after: IndexProgress) -> None:
        def write(connection: apsw.Connection) -> None:
            with connection:
                if _progress(connection) != before:
                    return
                if after.is_begin:
                    connection.execute(_BEGIN)
                for kind, rows in texts.items():
                    _put(connection, kind, rows)
                connection.execute("DELETE FROM progress")
                connection.execute("INSERT INTO progress VALUES (?, ?, ?, ?, ?, ?)", progress_values(after))

        await self._run(write)

    async def find(
        self, kind: SearchKind, keys: Sequence[int], beyond: int, *, newest_first: bool, limit: int
    ) -> list[int]:
        sign, order = ("<", "DESC") if newest_first else (">", "ASC")
        sql = (
            f"SELECT rowid FROM {kind} WHERE {kind} MATCH ? AND rowid {sign} ? ORDER BY rowid {order} LIMIT ?"
        )
        arguments = " ".join(map(_token, keys)), beyond, limit
        return await self._run(lambda connection: [row[0] for row in connection.execute(sql, arguments)])

    async def close(self) -> None:
        async with self._turn:
            self._forget()

    async def _run(self, work: Callable[[apsw.Connection], _T]) -> _T:
        """Run a search in a thread, so that it never stops the event loop."""
        async with self._turn:
            try:
                with translated():
                    connection = self._opened()
                    return await in_thread(connection, lambda: work(connection))
            except StoreDamaged:
                self._forget()
                with contextlib.suppress(OSError):  # the next look reports what prevents it
                    files.remove(self._path, "-wal", "-shm", "")
                raise

    def _opened(self) -> apsw.Connection:
        """The connection to the file that is there now."""
        with contextlib.suppress(OSError):  # SQLite reports what prevents it
            if files.make(self._path):
                files.remove(self._path, "-wal", "-shm")  # left by a file that was deleted
            found = Path(self._path).stat().st_ino
            if self._connection is None or found != self._inode:
                self._forget()
                self._inode = found
        if self._connection is None:
            connection = apsw.Connection(self._path)
            connection.set_busy_timeout(self._busy_timeout_ms)
            # Else the last one that closes a deleted file deletes the log of the file that took its place.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
            self._connection = connection
        return self._connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _progress(connection: apsw.Connection) -> IndexProgress | None:
    try:
        row = connection.execute(f"SELECT {_PROGRESS} FROM progress").fetchone()
    except apsw.SQLError:  # there is no such table: nothing was begun
        return None
    return read_progress(row)


def _put(connection: apsw.Connection, kind: SearchKind, rows: Mapping[int, str | None]) -> None:
    gone = [(id_,) for id_, text in rows.items() if not text]
    connection.executemany(f"DELETE FROM {kind} WHERE rowid = ?", gone)
    grams = (
        (id_, " ".join(_token(key_of(gram)) for gram in grams_of(text))) for id_, text in rows.items() if text
    )
    connection.executemany(f"INSERT OR REPLACE INTO {kind} (rowid, grams) VALUES (?, ?)", grams)


def _token(key: int) -> str:
    """A word of the full-text index."""
    return f"{key & 0xFFFFFFFF:08x}"
