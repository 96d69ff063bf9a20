"""What single steps of the schema keep in SQLite, where a table is made anew to change it."""

from __future__ import annotations

import apsw

from petstore.storage import migrations
from petstore.storage.sqlite.schema import MIGRATIONS_PACKAGE


def test_the_consoles_step_keeps_what_was_created() -> None:
    """Keys of before are known after it, to programs of 1.0.0 too; a form's key needs no account."""
    steps = migrations.load(MIGRATIONS_PACKAGE)
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    kept = (1, "k", b"f" * 32, 7, 1_000)
    for step in steps:
        if step.name == "console":
            connection.execute("INSERT INTO accounts VALUES (1, 'shop', 'free', 60, 1000, 0, NULL, NULL)")
            connection.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?, ?, ?)", kept)
            connection.execute(
                "INSERT INTO creations (account_id, key, fingerprint, resource_id, created_at_ms, resource)"
                " VALUES (1, 'o', x'00', 3, 2000, 'order')"
            )
        connection.execute(step.sql)
    assert list(connection.execute("SELECT * FROM idempotency_keys")) == [kept]
    assert list(connection.execute("SELECT resource_id FROM creations WHERE resource = 'order'")) == [(3,)]
    connection.execute("INSERT INTO idempotency_keys VALUES (0, 'form', x'00', 8, 3000)")
    connection.execute("DELETE FROM idempotency_keys WHERE account_id = 1")
    assert list(connection.execute("SELECT account_id, key FROM creations ORDER BY 1")) == [
        (0, "form"),
        (1, "o"),
    ]
