"""The schemas of the stores: the same tables and columns, so that a migration in one is missed in none."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from petstore.storage.backend import backend_for
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database, run

# What only one of them has: how it counts its steps, how SQLite tells what changed, and what is noted for
# commands where several processes may serve.
OWN = {"schema_migrations", "schema_steps", "versions", "sqlite_sequence", "served_with_valkey"}


@pytest.fixture
def sqlite_columns(tmp_path: Path) -> set[tuple[str, str]]:
    backend_for(f"sqlite:///{tmp_path}/schema.db").open(ManualClock())
    connection = apsw.Connection(str(tmp_path / "schema.db"))
    rows = connection.execute(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    )
    return {(table, column) for table, column in rows if table not in OWN}


def test_they_have_the_same_tables_and_columns(sqlite_columns: set[tuple[str, str]]) -> None:
    """Types differ by dialect."""
    with fresh_database() as url:
        backend_for(url).open(ManualClock())
        rows = run(
            url,
            "SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables"
            " USING (table_schema, table_name) WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
        )
    # PostgreSQL hands out identifiers before commits, so its journal notes the transaction too.
    shared = {(table, column) for table, column in rows if table not in OWN} - {("journal", "transaction")}
    assert shared == sqlite_columns
