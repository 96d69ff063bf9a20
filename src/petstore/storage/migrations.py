"""Numbered SQL files of one dialect: read in order, forward only. Running them is the dialect's affair."""

from __future__ import annotations

import re
from importlib import resources

import msgspec

from petstore.errors import ConfigurationError

_FILE_NAME = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; `number` is the schema's version after it."""

    number: int
    name: str
    sql: str


def load(package: str) -> list[Migration]:
    """The migrations of a package, in order, numbered 1, 2, 3 … without a gap."""
    found = []
    for entry in resources.files(package).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.number)
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    return found


def pending(migrations: list[Migration], version: int) -> list[Migration]:
    """Those still to run on a schema of that version. Raises ConfigurationError when it is too new."""
    newest = migrations[-1].number
    if version > newest:
        raise ConfigurationError(
            f"The database has schema version {version}, this program knows {newest} at most:"
            " run the newer petstore that wrote it, or restore an older backup."
        )
    return [migration for migration in migrations if migration.number > version]
