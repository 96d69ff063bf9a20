"""The report of `db check`, for both databases, and what a file has before a restore."""

from __future__ import annotations

import msgspec

from petstore.storage.migrations import DatabaseSchema

# The numbers of pets, accounts and keys.
COUNTS = (
    "SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM accounts), (SELECT count(*) FROM api_keys)"
)


class CheckReport(msgspec.Struct, frozen=True):
    """The findings of `db check`: `problems` is empty for a sound database.

    `remark` says how the schema differs from this program's. The counts are None for a schema that this
    program can't read.
    """

    schema_version: int
    pets: int | None
    accounts: int | None
    keys: int | None
    problems: list[str]
    remark: str = ""


def of_schema(schema: DatabaseSchema, problems: list[str]) -> CheckReport:
    """The report without its counts."""
    if not schema.exists:
        return CheckReport(0, 0, 0, 0, [*problems, "the schema was never created"])
    return CheckReport(schema.version, None, None, None, problems, schema.remark)


class Contents(msgspec.Struct, frozen=True):
    """What a file has, without a check: its number of animals and the time of the journal's last entry.

    None: it can't be read, because the file is damaged or its program had no journal.
    """

    pets: int | None
    changed_at_ms: int | None
