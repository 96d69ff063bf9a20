"""Measured, not simulated: bytes of a row in both databases, its part of the indexes included.

Animals come from `petstore pets import`, so each has its entry in the journal; other rows come from SQL.
PostgreSQL has been vacuumed, without FULL; a SQLite file is as it was written.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from petstore.storage import backend as backends
from tests.support.postgres import PostgresServer, run, shell
from tests.support.server import issue_key
from tools.servers.petstore import PROGRAM, environment
from verification.benchmarks.capacity.stock import write_list
from verification.benchmarks.data import filling

_SERIES = "WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {rows})"
# What a row of each table is like. Keys and digests of real length. An order is delivered, as most are.
_FILL = {
    "accounts": "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
    " {series} SELECT 'customer-' || n, 'free', 60, 1000, 1798761600000 FROM series",
    "api_keys": "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms)"
    " {series} SELECT n, {digest}, 'website', 'pets_live_…Ab1Z', 1798761600000 FROM series",
    "account_windows": "INSERT INTO account_windows"
    " {series} SELECT n, 1798761600000, 10, 20819, 100 FROM series",
    "key_activity": "INSERT INTO key_activity {series} SELECT n, 1798761600000 FROM series",
    "usage_days": "INSERT INTO usage_days {series} SELECT n % 10000, n / 10000, 100, 2, 0 FROM series",
    "creations": "INSERT INTO creations (account_id, key, resource, fingerprint, resource_id, created_at_ms)"
    " {series} SELECT n % 1000 + 1, {uuid}, 'pet', {digest}, n, 1798761600000 + n FROM series",
    "orders": "INSERT INTO orders (account_id, pet_id, status, ship_date_ms, created_at_ms)"
    " {series} SELECT n % 1000 + 1, n, 'delivered', 1798761600000, 1798761600000 FROM series",
}
_OF_ANIMALS = ("pets", "journal", "pet_sources")
_SQLITE_SIZE = """
SELECT coalesce(sum(s.pgsize) FILTER (WHERE s.name = m.tbl_name), 0),
    coalesce(sum(s.pgsize) FILTER (WHERE s.name <> m.tbl_name), 0)
FROM dbstat('main', 1) AS s JOIN sqlite_schema AS m ON m.name = s.name WHERE m.tbl_name = ?
"""


class TableSize(msgspec.Struct):
    """Bytes for each row: of the table, of all of its indexes, and of both."""

    store: str
    table: str
    rows: int
    table_bytes: float
    index_bytes: float
    bytes: float


class ListSize(msgspec.Struct):
    """Bytes of a database for each animal of a list that was imported into an empty one."""

    store: str
    source_keys: bool
    animals: int
    bytes: float


def _import(url: str, animals: int, *, keyed: bool) -> None:
    issue_key(url)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "stock.csv"
        write_list(path, animals)
        if not keyed:
            path.write_text("".join(f"{line.partition(',')[2]}\n" for line in path.read_text().splitlines()))
        command = [PROGRAM, "pets", "import", path, *(("--source-key", "sku") if keyed else ())]
        subprocess.run(command, env=environment({"database_url": url}), check=True, stdout=subprocess.DEVNULL)


def _row(store: str, table: str, rows: int, heap: int, indexes: int) -> TableSize:
    return TableSize(store, table, rows, heap / rows, indexes / rows, (heap + indexes) / rows)


def _of_postgres(url: str, tables: Sequence[str], fill: int) -> list[TableSize]:
    values = {"digest": "sha256(n::text::bytea)", "uuid": "gen_random_uuid()::text"}
    size = "SELECT count(*), pg_table_size('{0}'), pg_indexes_size('{0}') FROM {0}"
    sizes = []
    with shell(url) as execute:
        for table in tables:
            if fill:
                execute(_FILL[table].format(series=_SERIES.format(rows=fill), **values))
            execute(f"VACUUM ANALYZE {table}")
            sizes.append(_row("postgresql", table, *execute(size.format(table))[0]))
    return sizes


def _of_sqlite(path: Path, tables: Sequence[str], fill: int) -> list[TableSize]:
    if fill:
        values = {"digest": "randomblob(32)", "uuid": "lower(hex(randomblob(18)))"}
        with filling(path) as connection:
            for table in tables:
                connection.execute(_FILL[table].format(series=_SERIES.format(rows=fill), **values))
    with closing(apsw.Connection(str(path))) as connection:
        return [
            _row(
                "sqlite",
                table,
                connection.execute(f"SELECT count(*) FROM {table}").get,
                *connection.execute(_SQLITE_SIZE, (table,)).get,
            )
            for table in tables
        ]


def _measure(url: str, animals: int, *, keyed: bool) -> tuple[ListSize, list[TableSize]]:
    """Sizes after an import; of other tables too where it is without keys."""
    _import(url, animals, keyed=keyed)
    path = Path(url.removeprefix("sqlite:///"))

    def sizes(tables: Sequence[str], fill: int = 0) -> list[TableSize]:
        return _of_postgres(url, tables, fill) if backends.is_server(url) else _of_sqlite(path, tables, fill)

    found = sizes(_OF_ANIMALS if keyed else _OF_ANIMALS[:2])
    listed = ListSize(found[0].store, keyed, animals, sum(size.bytes for size in found))
    return listed, found if keyed else sizes(tuple(_FILL), animals)


def measure(animals: int) -> dict[str, Any]:
    """Import a list with and without source keys into each database; as many rows of every other table."""
    settings = ("shared_buffers=512MB", "max_wal_size=512MB", "autovacuum=off", "jit=off")
    lists, sizes = [], []
    with PostgresServer(*settings).start() as server, tempfile.TemporaryDirectory() as temporary:
        ((version,),) = run(server.url(), "SHOW server_version")
        for keyed in (True, False):
            run(server.url(), f"CREATE DATABASE keyed_{keyed}")
            for url in (server.url(f"keyed_{keyed}".lower()), f"sqlite:///{temporary}/keyed_{keyed}.db"):
                listed, found = _measure(url, animals, keyed=keyed)
                lists.append(listed)
                sizes += found
    servers = f"PostgreSQL {version}, SQLite {apsw.sqlite_lib_version()}"
    return {"servers": servers, "lists": lists, "sizes": sizes}
