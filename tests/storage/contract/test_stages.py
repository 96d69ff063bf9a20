"""The stamp of a data set: production's data and staging's are never taken for each other (I26)."""

from __future__ import annotations

import pytest

from petstore.core.errors import ConfigurationError, Conflict
from petstore.core.limits.plans import FREE
from petstore.core.stages import Stage
from petstore.storage.backend import backend_for
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.store import Store
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

PRODUCTION, STAGING = Stage.PRODUCTION, Stage.STAGING


async def issue(store: Store, environment: str) -> int:
    """A key of the account `shop`, which is added where it is missing."""
    if await store.is_empty():
        await store.accounts.add("shop", FREE, ACTOR)
    return (await store.keys.issue("shop", environment, ACTOR)).record.id


def open_as(stage: Stage | None, backend: SharedData, clock: ManualClock) -> Store:
    """The data opened for a service of this stage."""
    options = SqliteOptions(stage=stage), PostgresOptions(stage=stage)
    return backend_for(backend.url, *options).open(clock)


@pytest.mark.parametrize(("stage", "other"), [(PRODUCTION, STAGING), (STAGING, PRODUCTION)])
async def test_the_first_stage_keeps_the_data(
    backend: SharedData, clock: ManualClock, stage: Stage, other: Stage
) -> None:
    """Stamped once; the other stage can't open it any more, and no key of its own comes into it."""
    store = backend.open()
    assert await store.stages.stamp(stage) == 0
    assert await store.stages.stamp(stage) is None
    with pytest.raises(Conflict) as caught:
        await store.stages.stamp(other)
    assert caught.value.message.startswith(f"The database is of {stage}, and PETSTORE_STAGE is {other};")
    await open_as(stage, backend, clock).close()
    with pytest.raises(ConfigurationError, match=f"The database is of {stage}.* nothing was changed"):
        open_as(other, backend, clock)
    await issue(store, stage.environment)
    with pytest.raises(Conflict) as caught:
        await issue(store, other.environment)
    assert caught.value.message.startswith(
        f"The database is of {stage}, whose keys begin with {stage.prefix};"
    )
    assert len(await store.keys.of_account("shop")) == 1


async def test_staging_takes_no_data_of_production(
    backend: SharedData, store: Store, clock: ManualClock
) -> None:
    """A database from before the setting, with a key for production, is not for staging: it neither
    stamps nor opens it."""
    await issue(store, "test")
    await issue(store, "live")
    with pytest.raises(Conflict) as caught:
        await store.stages.stamp(STAGING)
    assert caught.value.message.startswith("The database has keys for production (pets_live_)")
    with pytest.raises(ConfigurationError, match="The database has keys for production"):
        open_as(STAGING, backend, clock)
    assert await store.stages.stamp(PRODUCTION) == 1


async def test_who_is_locked_out(store: Store, clock: ManualClock) -> None:
    """All keys of the other stage are listed with their accounts; the count is of those that still work."""
    await issue(store, "live")
    ended, working = await issue(store, "test"), await issue(store, "test")
    await store.keys.revoke(ended, ACTOR)
    listed = await store.stages.foreign_keys(PRODUCTION)
    assert [(name, key.id, key.state(clock.now_ms())) for name, key in listed] == [
        ("shop", ended, "revoked"),
        ("shop", working, "active"),
    ]
    assert await store.stages.stamp(PRODUCTION) == 1
