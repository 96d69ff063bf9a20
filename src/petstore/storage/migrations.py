"""Numbered SQL files of one dialect: read in order, forward only. Each dialect runs them itself.

The first line of a file, `-- oldest: N`, names the least schema that a program must know to use the database
after this step. A step that only adds repeats the N of the step before, so older programs go on.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from petstore.core import packaged
from petstore.core.errors import ConfigurationError, StoreUnavailable

_FILE_NAME = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")
_OLDEST = re.compile(r"-- oldest: ([0-9]+)\n")


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; `number` is the schema's version after it, `oldest` who may still use it."""

    number: int
    name: str
    sql: str
    oldest: int

    @property
    def title(self) -> str:
        return f"{self.number:04}_{self.name}"


class Schema(msgspec.Struct, frozen=True):
    """What a database notes: the last step that ran (0: none), and the least that a program must know.

    Programs from before this rule know the second number alone, and take it for the first.
    """

    version: int
    oldest: int


@cache
def load(package: str) -> tuple[Migration, ...]:
    """The migrations of a package, in order, numbered 1, 2, 3 … without a gap."""
    found = []
    for entry in packaged.files(package).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            sql = entry.read_text(encoding="utf-8")
            oldest = _OLDEST.match(sql)
            assert oldest is not None, f"{entry.name} does not begin with -- oldest: N"
            found.append(Migration(int(match[1]), match[2], sql, int(oldest[1])))
    found.sort(key=lambda migration: migration.number)
    before = 1
    for number, step in enumerate(found, start=1):
        assert step.number == number, f"a number is missing before {step.title}"
        assert before <= step.oldest <= number, f"{step.title}: oldest is none of {before} to {number}"
        before = step.oldest
    return tuple(found)


def failed(step: Migration, reason: str) -> StoreUnavailable:
    """The error for a step whose SQL the database refuses."""
    return StoreUnavailable(f"The migration {step.title} failed, and nothing of it was kept: {reason}.")


def check_allowed(known: tuple[Migration, ...], schema: Schema) -> None:
    """Raise ConfigurationError when the schema has left this program behind."""
    newest = known[-1].number
    if schema.oldest > newest:
        raise ConfigurationError(
            f"The database has schema version {schema.version} and needs a program that knows"
            f" {schema.oldest}; this one knows {newest}. Run the newer petstore, or restore an older backup."
        )


def pending(known: tuple[Migration, ...], schema: Schema) -> list[Migration]:
    """Those still to run. Raises ConfigurationError when the schema has left this program behind."""
    check_allowed(known, schema)
    return [migration for migration in known if migration.number > schema.version]


def check_current(known: tuple[Migration, ...], schema: Schema) -> None:
    """Raise ConfigurationError unless this program can work with the schema as it is."""
    if pending(known, schema):
        raise ConfigurationError(
            f"The database has schema version {schema.version}, this program needs {known[-1].number}."
            " Run `petstore db migrate`; nothing was changed."
        )


def remark(known: tuple[Migration, ...], schema: Schema) -> str:
    """What a person should know about a database of that schema; empty when it is this program's own."""
    newest = known[-1].number
    if schema.oldest > newest:
        return (
            f"the schema has version {schema.version} and needs a newer program, this one knows {newest};"
            " that is no damage"
        )
    if schema.version > newest:
        return f"the schema has version {schema.version}; this program knows {newest}, and may go on with it"
    if 0 < schema.version < newest:
        return (
            f"the schema has version {schema.version}, this program needs {newest}: run `petstore db migrate`"
        )
    return ""
