"""Numbered SQL files of one dialect: read in order, forward only. Each dialect runs them itself.

The first line of a file, `-- oldest: N`, names the least schema that a program must know to use the database
after this step. A step that only adds repeats the N of the step before, so older programs go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from petstore.core import packaged
from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.stages import Stage, fault_of

_FILE_NAME = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")
_OLDEST = re.compile(r"-- oldest: ([0-9]+)\n")


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; `number` is the version after it, `oldest` the least a program must know."""

    number: int
    name: str
    sql: str
    oldest: int

    @property
    def title(self) -> str:
        return f"{self.number:04}_{self.name}"


class DatabaseSchema(msgspec.Struct, frozen=True):
    """The schema of a database beside the one of this program.

    `version` is the last step that ran (0: none), `oldest` the least version that a program must know to use
    the database, `known` this program's steps. Programs from before that rule know `oldest` alone, and take
    it for the version. `stage` is the stamp of the data, empty without one; then `has_live_keys` says whether
    they have keys for production.
    """

    version: int
    oldest: int
    known: tuple[Migration, ...]
    stage: str = ""
    has_live_keys: bool = False

    @property
    def newest(self) -> int:
        """The version that this program knows."""
        return self.known[-1].number

    @property
    def exists(self) -> bool:
        """Whether any step has run."""
        return self.version > 0

    @property
    def is_usable(self) -> bool:
        """Whether this program knows enough of the schema to use the database."""
        return self.oldest <= self.newest

    def check_usable(self) -> None:
        """Raise ConfigurationError when the database needs a newer program."""
        if not self.is_usable:
            raise ConfigurationError(
                f"The database has schema version {self.version} and needs a program that knows"
                f" {self.oldest}; this one knows {self.newest}. Run the newer petstore, or restore an older"
                " backup."
            )

    def check_stage(self, stage: Stage | None) -> None:
        """Raise ConfigurationError when a service of this stage must not use the data."""
        if fault := fault_of(self.stage, stage, has_live_keys=self.has_live_keys):
            raise ConfigurationError(fault)

    def pending(self) -> list[Migration]:
        """The steps still to run. Raises ConfigurationError when the database needs a newer program."""
        self.check_usable()
        return [migration for migration in self.known if migration.number > self.version]

    def check_current(self) -> None:
        """Raise ConfigurationError unless this program can use the database without a migration."""
        if self.pending():
            raise ConfigurationError(
                f"The database has schema version {self.version}, this program needs {self.newest}."
                " Run `petstore db migrate`; nothing was changed."
            )

    @property
    def remark(self) -> str:
        """How the schema differs from this program's; empty when it does not, and for an empty database."""
        if not self.is_usable:
            return (
                f"the schema has version {self.version} and needs a newer program, this one knows"
                f" {self.newest}; the database is not damaged"
            )
        if self.version > self.newest:
            return (
                f"the schema has version {self.version}; this program knows {self.newest}, and may go on with"
                " it"
            )
        if 0 < self.version < self.newest:
            return (
                f"the schema has version {self.version}, this program needs {self.newest}: run"
                " `petstore db migrate`"
            )
        return ""


@cache
def load(package: str) -> tuple[Migration, ...]:
    """The migrations of a package, in order, numbered 1, 2, 3 … without a gap."""
    found = []
    for entry in packaged.files(package).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            sql = entry.read_text()
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


def held_up(holders: Sequence[str], done: int, steps: int) -> StoreUnavailable:
    """The error for a step that others kept from beginning; `holders` describes those that are known."""
    cause = (
        f"is held up by {'; '.join(holders)}" if holders else "was held up by somebody who has ended since"
    )
    return StoreUnavailable(
        f"The migration {cause}. {done} of {steps} steps are done; repeat the command to go on."
    )
