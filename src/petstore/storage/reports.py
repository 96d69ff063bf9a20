"""What upkeep reports, whatever the database."""

from __future__ import annotations

import msgspec


class CheckReport(msgspec.Struct, frozen=True):
    """What `db check` found: `problems` is empty for a sound database."""

    schema_version: int
    pets: int
    accounts: int
    keys: int
    problems: list[str]
