"""The schemas of the stores: the same tables, columns and indexes, so that each has every migration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from petstore.storage.backend import backend_for
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database, run

# What only one of them has: how it counts its steps, how SQLite tells what changed, and what is noted for
# commands where several processes may serve. SQLite's index of searches is a file of its own.
OWN = {"schema_migrations", "schema_steps", "versions", "sqlite_sequence", "served_with_valkey"}
OWN |= {f"search_{table}" for table in ("pets", "orders", "accounts", "progress")}


@pytest.fixture
def sqlite(tmp_path: Path) -> apsw.Connection:
    backend_for(f"sqlite:///{tmp_path}/schema.db").open(ManualClock())
    return apsw.Connection(str(tmp_path / "schema.db"))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with fresh_database() as url:
        backend_for(url).open(ManualClock())
        yield url


def test_both_databases_have_the_same_tables_and_columns(sqlite: apsw.Connection, postgres: str) -> None:
    """Their types differ by dialect."""
    found = sqlite.execute(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    )
    sqlite_columns = {(table, column) for table, column in found if table not in OWN}
    rows = run(
        postgres,
        "SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name) WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
    )
    # PostgreSQL hands out identifiers before commits, so its journal notes the transaction too; its data may
    # be a copy without anybody having said so.
    own = {("journal", "transaction")}
    own |= {("data_set", name) for name in ("gone_transaction", "stamp", "base_id", "base_transaction")}
    assert {(table, column) for table, column in rows if table not in OWN} - own == sqlite_columns


def test_they_have_the_same_indexes(sqlite: apsw.Connection, postgres: str) -> None:
    """Names are compared; an index of one database alone is forgotten in the other, or nobody walks along it.
    Those of primary keys and of unique columns belong to the columns."""
    of_sqlite = sqlite.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    of_postgres = run(
        postgres,
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE relnamespace = 'public'::regnamespace"
        " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)",
    )
    # An order in which no entry appears late needs the transaction.
    own = {"journal_in_order"} | {f"{table}_by_grams" for table in OWN}
    assert {name for (name,) in of_postgres} - own == {name for (name,) in of_sqlite}
