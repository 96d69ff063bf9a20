"""What upkeep reports, whatever the database."""

from __future__ import annotations

import msgspec

from petstore.storage import migrations


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


def of_schema(package: str, schema: migrations.Schema, problems: list[str]) -> tuple[CheckReport, bool]:
    """The report without its counts, and whether this program knows the tables, so that they can be made."""
    if schema.version == 0:
        return CheckReport(0, 0, 0, 0, [*problems, "the schema was never created"]), False
    known = migrations.load(package)
    report = CheckReport(schema.version, None, None, None, problems, migrations.remark(known, schema))
    return report, schema.oldest <= known[-1].number
