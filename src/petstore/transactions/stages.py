"""The stage of a data set, production or staging: stamped by the first service that has one."""

from __future__ import annotations

from petstore.core.errors import Conflict
from petstore.core.keys import ApiKey
from petstore.core.stages import Stage, fault_of
from petstore.transactions.rows import SELECT_KEY, read_key
from petstore.transactions.script import NO_EFFECT, Repository, Script, read, statement, write

STAMP = statement("SELECT stage FROM data_set", lock=" FOR UPDATE")
# Every schema has these columns.
HAS_LIVE_KEYS = statement(
    f"SELECT EXISTS (SELECT 1 FROM api_keys WHERE substr(display, 1, 10) = '{Stage.PRODUCTION.prefix}')"
)
_SET = statement("UPDATE data_set SET stage = $1")
_NAMES = statement("SELECT id, name FROM accounts")
_FOREIGN = statement(f"{SELECT_KEY} WHERE substr(k.display, 1, 10) = $1 ORDER BY k.account_id, k.id")


class Stages(Repository):
    """The stage that the data is of."""

    @read
    def foreign_keys(self, stage: Stage) -> Script[list[tuple[str, ApiKey]]]:
        """The keys that a service of this stage refuses, ended ones too, each with its account's name."""
        keys = yield from _foreign_keys(stage)
        names = dict((yield _NAMES, ()))
        return [(names[key.account_id], key) for key in keys]

    @write(NO_EFFECT)
    def stamp(self, now_ms: int, stage: Stage) -> Script[int | None]:
        """Stamp the data set. How many active keys of the other stage it has; None when it was stamped.

        Raises Conflict for data of the other stage. Data without a stamp is taken for production's
        when it has a key for production.
        """
        return stamped(now_ms, stage)


def stamped(now_ms: int, stage: Stage) -> Script[int | None]:
    """`Stages.stamp`, within a transaction."""
    ((stamp,),) = yield STAMP, ()
    foreign = [] if stamp else (yield from _foreign_keys(stage))  # all keys are read for it
    if fault := fault_of(stamp or "", stage, has_live_keys=stage is Stage.STAGING and bool(foreign)):
        raise Conflict(fault)
    if stamp:
        return None
    yield _SET, (stage.value,)
    return sum(key.state(now_ms) == "active" for key in foreign)


def _foreign_keys(stage: Stage) -> Script[list[ApiKey]]:
    return [read_key(row) for row in (yield _FOREIGN, (stage.other.prefix,))]
