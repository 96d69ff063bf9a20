"""The backend of `sqlite:///` URLs: one file, served by one process at a time."""

from __future__ import annotations

import stat
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError, OperatorError, StoreDamaged
from petstore.core.versions import Publisher
from petstore.storage.migrations import DatabaseSchema
from petstore.storage.observer import Committed, MigrationObserver
from petstore.storage.options import SqliteOptions
from petstore.storage.reports import CheckReport, Contents
from petstore.storage.sqlite import files, lock, reserve, start_checks, upkeep
from petstore.storage.sqlite import schema as schemas
from petstore.storage.sqlite.connection import empty_log
from petstore.storage.sqlite.store import SqliteStore
from petstore.storage.sqlite.upkeep import Restored


class SqliteBackend:
    """Implements storage.backend.Backend for the file at `path`, which may be missing. For operators it also
    makes backups, restores them and reserves disk space.
    """

    migrates_at_start = True

    def __init__(self, path: str, options: SqliteOptions) -> None:
        self._path = path
        self._options = options
        self._busy_timeout_ms = options.busy_timeout_ms
        # The disk space for `keys revoke` on a full disk.
        self.keep_reserve = partial(reserve.keep, path)
        self.has_reserve = partial(reserve.is_kept, path)
        self.give_up_reserve = partial(reserve.give_up, path)

    @property
    def file(self) -> SqliteBackend:
        return self

    @property
    def name(self) -> str:
        return str(self.checked_path())

    def require_file(self) -> SqliteBackend:
        return self

    def open(
        self, clock: Clock, committed: Committed = lambda *_: None, publisher: Publisher | None = None
    ) -> SqliteStore:
        return SqliteStore(self._path, clock, self._options, committed)  # versions are in the file

    def schema(self) -> DatabaseSchema:
        return schemas.read_file(self.name, self._busy_timeout_ms)

    def size_bytes(self) -> int:
        return self.checked_path().stat().st_size

    def migrate(self, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
        path = self.name
        files.refuse_unwritable(path)
        found = self.schema()
        found.check_stage(self._options.stage)
        if closed := files.close_to_others(path):
            observer.closed(closed)
        copies: list[str] = []

        def back_up(schema: DatabaseSchema) -> None:
            # The copy's name has no time until a step is done. So the next attempt replaces it, and a
            # service that fails and is started again and again does not fill the disk.
            copy = f"{path}.before-migration-{schema.version}"
            Path(copy).unlink(missing_ok=True)
            copies.append(copy)
            report = upkeep.backup(path, copy, self._busy_timeout_ms, like=path)
            if report.problems:
                raise OperatorError(f"{path} is damaged and was not migrated: {report.problems[0]}.")

        def applied(step: str) -> None:
            while copies:
                kept = upkeep.free_name(copies[-1], clock)
                Path(copies.pop()).rename(kept)
                observer.backed_up(kept)
            observer.applied(step)

        # Older programs may use the file meanwhile, unless a step shuts them out.
        shuts_out = any(step.oldest > found.oldest for step in found.pending())
        alone = shuts_out and found.exists and not serving
        with lock.lock_for_serving(path) if alone else nullcontext():
            schemas.migrate(path, self._busy_timeout_ms, before=back_up, applied=applied)

    def check(self) -> CheckReport:
        return upkeep.check(self.name, self._busy_timeout_ms)

    def hold_for_serving(self) -> AbstractContextManager[object]:
        files.refuse_unwritable(self.name)
        held = lock.lock_for_serving(self.name, create=True)
        held.callback(empty_log, self.name)
        return held

    def connection_room(self) -> None:
        return None

    def warnings_before_start(self, clock: Clock) -> list[str]:
        return start_checks.warnings(self.name, self._busy_timeout_ms, clock)

    def checked_path(self) -> Path:
        """The path, once this user may use it.

        Raises ConfigurationError when it is a directory or a device, or may not be read, when its directory
        does not exist or may not be entered, and for a name that can't be used.
        """
        path = Path(self._path)
        files.refuse_name(path)
        try:
            mode = path.stat().st_mode
        except PermissionError as error:
            raise ConfigurationError(
                f"PETSTORE_DATABASE_URL: this user may not enter a directory before {path}; allow that first."
            ) from error
        except (FileNotFoundError, NotADirectoryError):
            mode = stat.S_IFREG  # it may be missing
        except OSError as error:  # a link to itself
            raise ConfigurationError(
                f"PETSTORE_DATABASE_URL: {path}: {error.strerror}; name another file."
            ) from error
        if not (folder := path.resolve().parent).is_dir():
            raise ConfigurationError(f"PETSTORE_DATABASE_URL: there is no directory {folder}; make it first.")
        if stat.S_ISDIR(mode):
            raise ConfigurationError(f"PETSTORE_DATABASE_URL: {path} is a directory; name a file in it.")
        if not stat.S_ISREG(mode):  # its rights are not ours to change
            raise ConfigurationError(f"PETSTORE_DATABASE_URL: {path} is a device or a pipe; name a file.")
        files.refuse_unreadable(path)
        return path

    def backup_mark(self) -> Path:
        """An empty file beside the database; it is as old as the last sound backup."""
        return Path(f"{self.checked_path().resolve()}.last-backup")

    def back_up(self, target: Path) -> CheckReport:
        """Copy the database, in use or not, to a new file. Raises OperatorError when `target` exists."""
        files.refuse_name(target)
        return upkeep.backup(self.name, str(target), self._busy_timeout_ms)

    def note_backup(self) -> None:
        """Record for metrics that a sound backup was made now. Raises OSError."""
        mark = self.backup_mark()
        files.make(str(mark), like=self.name)
        mark.touch()

    def contents(self) -> Contents | None:
        """What a restore would replace; None where no file is yet."""
        return upkeep.contents(self.name, self._busy_timeout_ms)

    def restore(self, source: Path, actor: str, clock: Clock) -> Restored:
        """Put a backup in the database's place.

        Raises OperatorError while a server uses the database, and when the backup is damaged.
        """
        files.refuse_name(source)
        if source.is_file():
            with suppress(StoreDamaged):  # upkeep refuses it, by its name
                schemas.read_file(str(source), self._busy_timeout_ms).check_stage(self._options.stage)
        with suppress(StoreDamaged):  # it is replaced all the same
            self.schema().check_stage(self._options.stage)
        return upkeep.restore(self.name, str(source), actor, clock, self._busy_timeout_ms)
