"""The settings and the store of a command, each read or opened when it is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from petstore.cli.output import echo_err
from petstore.core.clock import Clock, SystemClock
from petstore.core.errors import OperatorError, StoreFull

if TYPE_CHECKING:
    from petstore.config import Settings
    from petstore.wiring.administration import Backend, Store

_T = TypeVar("_T")


class Session:
    """One run of the program. Help and completion never read the settings, so wrong ones can't stop them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()

    @cached_property
    def settings(self) -> Settings:
        """The settings in force. Raises ConfigurationError."""
        from petstore import config

        return config.load()

    @cached_property
    def actor(self) -> str:
        """`cli:USER`, for the journal."""
        from petstore.config.user import read_actor

        return read_actor()

    @cached_property
    def backend(self) -> Backend:
        """The database of the settings. Raises ConfigurationError."""
        from petstore.wiring import administration

        return administration.backend_of(self.settings)


def with_store(session: Session, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """Open the store, await `work`, close the store; safe beside a running server.

    Raises OperatorError when there is no database, what `work` raises, ConfigurationError and
    StoreUnavailable. A command never makes a database: in the wrong directory it would make a second one.
    """
    return _with_store(session, session.backend, work)


def read_store(session: Session, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """`with_store` for work that changes nothing. The file, which may be a backup, stays as it is."""
    from petstore.wiring import administration

    backend = administration.backend_of(session.settings, reads_only=True)
    return _with_store(session, backend, work)


def _with_store(session: Session, backend: Backend, work: Callable[[Store], Awaitable[_T]]) -> _T:
    import asyncio  # help does without it

    from petstore.wiring import administration

    if not backend.schema().exists:
        raise OperatorError(
            f"There is no database {backend.name}; `petstore db migrate` makes one, and so does"
            " `petstore serve`. If there should be one, check PETSTORE_DATABASE_URL and the working"
            " directory."
        )

    async def run() -> _T:
        opened = administration.store_for_command(session.settings, backend, session.clock, echo_err)
        async with opened as store:
            return await work(store)

    return asyncio.run(run())


def with_store_on_a_full_disk(session: Session, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """`with_store` for work that ends access, with the room that is kept back for it."""
    file = session.backend.file
    had_reserve = file is not None and file.has_reserve()
    try:
        result = with_store(session, work)
    except StoreFull:  # without a running server SQLite can't even make its log
        if file is None or not file.give_up_reserve():
            raise
        result = with_store(session, work)
    if file is not None and had_reserve and not file.has_reserve():
        echo_err("The disk is full: the room that was kept back for this is used up. Make room.")
    return result
