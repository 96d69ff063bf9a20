"""Production and Staging: two services of the same program, each with its own address, data and keys
(specification, Environments)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from petstore.core.errors import ConfigurationError
from petstore.core.keys import prefix_of

HEADER = b"x-environment"
# The cause, in the access log, of an error that a rehearsal asked for.
REHEARSED = "rehearsed"


class Stage(StrEnum):
    """What a service is. A service may also have none: it takes the keys of both."""

    PRODUCTION = "production"
    STAGING = "staging"

    @property
    def environment(self) -> str:
        """The environment of the stage's keys: `live` or `test`."""
        return "test" if self is Stage.STAGING else "live"

    @property
    def other(self) -> Stage:
        return Stage.PRODUCTION if self is Stage.STAGING else Stage.STAGING

    @property
    def prefix(self) -> str:
        """How its keys begin."""
        return prefix_of(self.environment)


class Foreign(NamedTuple):
    """The keys that a stage refuses: how they begin, and the message for them."""

    prefix: bytes
    message: str


def foreign_to(stage: Stage, other_address: str) -> Foreign:
    """The keys of the other stage; `other_address` is its base address, or empty."""
    there = f"Use it at {other_address}, or send" if other_address else "Send"
    message = f"This key is for {stage.other}, but this service is {stage}. {there} a {stage.prefix} key."
    return Foreign(stage.other.prefix.encode("ascii"), message)


def fault_of(stamp: str, stage: Stage | None, *, has_live_keys: bool) -> str:
    """Why a program of this stage must not use data with this stamp; empty if it may. Data stay with the
    stage that first served them; `stamp` is empty before that, and a key for production then tells whose
    they are. Commands need no stage."""
    if not stamp and stage is Stage.STAGING and has_live_keys:
        return (
            f"The database has keys for production ({Stage.PRODUCTION.prefix}), so PETSTORE_STAGE=staging"
            " does not take it; nothing was changed. Set PETSTORE_DATABASE_URL to a database of its own."
        )
    return _fault(stamp, f"PETSTORE_STAGE is {stage}") if stage and stamp not in ("", stage) else ""


def check_served(stamp: str, stage: Stage | None) -> None:
    """Raise ConfigurationError where a service without a stage would serve data of one."""
    if stamp and stage is None:
        raise ConfigurationError(_fault(stamp, "PETSTORE_STAGE is not set"))


def _fault(stamp: str, found: str) -> str:
    return (
        f"The database is of {stamp}, and {found}; nothing was changed. Set PETSTORE_STAGE={stamp}, or"
        " another PETSTORE_DATABASE_URL."
    )
