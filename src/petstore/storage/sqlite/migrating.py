"""Migrates a file that holds a store: a checked copy beside it first, then the steps."""

from __future__ import annotations

import contextlib
from pathlib import Path

from petstore.core.clock import Clock
from petstore.core.errors import OperatorError
from petstore.storage.migrations import Schema
from petstore.storage.observer import MigrationObserver
from petstore.storage.sqlite import files, upkeep
from petstore.storage.sqlite import schema as schemas
from petstore.storage.sqlite.lock import lock_for_serving


def migrate(
    path: str, busy_timeout_ms: int, clock: Clock, observer: MigrationObserver, *, serving: bool = False
) -> None:
    """Bring the schema up to date; a file that is not new is copied first, and the copy checked.

    Older programs may use the file meanwhile, unless a step shuts them out: that takes the lock of the one
    server, which a caller that is `serving` holds already. Raises OperatorError when another server holds
    it, and when the copy is not sound.
    """
    if closed := files.close_to_others(path):
        observer.closed(closed)
    copies: list[str] = []

    def back_up(schema: Schema) -> None:
        # Without the time in its name until a step is done. So the next attempt replaces it, and a service
        # that fails and is started again and again does not fill the disk.
        copy = f"{path}.before-migration-{schema.version}"
        Path(copy).unlink(missing_ok=True)
        copies.append(copy)
        report = upkeep.backup(path, copy, busy_timeout_ms, like=path)
        if report.problems:
            raise OperatorError(f"{path} is damaged and was not migrated: {report.problems[0]}.")

    def applied(step: str) -> None:
        while copies:
            kept = upkeep.free_name(copies[-1], clock)
            Path(copies.pop()).rename(kept)
            observer.backed_up(kept)
        observer.applied(step)

    found = schemas.read_file(path, busy_timeout_ms)
    shuts_out = any(step.oldest > found.oldest for step in found.pending())
    alone = shuts_out and found.exists and not serving
    with lock_for_serving(path) if alone else contextlib.nullcontext():
        schemas.migrate(path, busy_timeout_ms, before=back_up, applied=applied)
