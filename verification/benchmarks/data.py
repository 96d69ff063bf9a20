"""Databases to measure on: animals, accounts and keys in any number, made once and kept in a cache folder."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from petstore.core.digests import digest
from petstore.core.keys import Access, display, mint
from petstore.core.limits.plans import QUOTA_MAX
from petstore.storage import migrations
from petstore.storage.sqlite.schema import MIGRATIONS_PACKAGE
from petstore.storage.store import Store
from tests.support.backends import in_store
from tests.support.server import issue_key

CACHE = Path(__file__).parent / ".cache"
INDEXED_MAX = 300_000
INDEX = "-search"  # storage/sqlite/search.py
_PETS = """
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < ?)
INSERT INTO pets (name, category_id, status)
SELECT 'Pet number ' || n, n % 97, CASE n % 10 WHEN 8 THEN 'pending' WHEN 9 THEN 'sold' ELSE 'available' END
FROM counter
"""


async def _index(store: Store) -> None:
    while await store.search.step() is not None:
        pass


def _make_index(path: Path) -> None:
    in_store(f"sqlite:///{path}", _index)
    with closing(apsw.Connection(f"{path}{INDEX}")) as index:
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def database(animals: int, keys: int = 1, per_minute: int = QUOTA_MAX) -> tuple[Path, list[str]]:
    """A migrated database with so many animals (80 % available) and keys, the first of the level
    manage; its path and the keys. Up to INDEXED_MAX animals the console's index of searches is whole: a
    server would make it beside what is measured, for half of its core."""
    newest = migrations.load(MIGRATIONS_PACKAGE)[-1].number
    folder = CACHE / f"{animals}-{keys}-{per_minute}-manage-{newest}-indexed"
    path, listing = folder / "petstore.db", folder / "keys.txt"
    if listing.exists():
        return path, listing.read_text(encoding="ascii").split()
    emptied(folder)
    texts = [
        issue_key(path, "bench", per_minute=per_minute, per_day=QUOTA_MAX, access=Access.MANAGE),
        *(mint("test") for _ in range(keys - 1)),
    ]
    with filling(path) as connection:
        if animals:
            connection.execute(_PETS, (animals,))
        connection.executemany(
            "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms)"
            " VALUES (1, ?, '', ?, 0)",
            ((digest(text.encode()), display(text)) for text in texts[1:]),
        )
    if animals <= INDEXED_MAX:
        _make_index(path)
    listing.write_text("\n".join(texts), encoding="ascii")
    return path, texts


def emptied(folder: Path) -> Path:
    """The folder, with nothing in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.iterdir():
        leftover.unlink()
    return folder


@contextmanager
def filling(path: Path) -> Iterator[apsw.Connection]:
    """A connection that puts any number of rows into a migrated database, in one transaction.

    Without triggers, which would move the versions for each row, and without waiting for the disk.
    """
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA synchronous = OFF")
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        with connection:
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            yield connection
            for _, sql in triggers:
                connection.execute(str(sql))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def copy_of(path: Path, folder: Path) -> Path:
    """A copy that a measurement may write to."""
    target = folder / f"{secrets.token_hex(4)}.db"
    for ending in ("", INDEX):
        source = Path(f"{path}{ending}")
        if source.exists():
            Path(f"{target}{ending}").write_bytes(source.read_bytes())
    return target
