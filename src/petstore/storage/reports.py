"""What upkeep reports, whatever the database."""

from __future__ import annotations

import msgspec


class CheckReport(msgspec.Struct, frozen=True):
    """What `db check` found: `problems` is empty for a sound database.

    `remark` says how the schema differs from this program's. Where this program can't use it, nothing was
    counted: the tables may be others.
    """

    schema_version: int
    pets: int | None
    accounts: int | None
    keys: int | None
    problems: list[str]
    remark: str = ""
