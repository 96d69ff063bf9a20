"""Operations on a database file for operators: backup, restore, a reserve of disk space."""

from __future__ import annotations

from pathlib import Path

from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError
from petstore.storage.reports import CheckReport, Contents
from petstore.storage.sqlite import files, reserve, upkeep
from petstore.storage.sqlite.upkeep import Restored


class DatabaseFile:
    """The file at `path`, which may be missing."""

    def __init__(self, path: str, busy_timeout_ms: int) -> None:
        self._path = path
        self._busy_timeout_ms = busy_timeout_ms

    def checked_path(self) -> Path:
        """The path, once this user may use it.

        Raises ConfigurationError when it is a directory or may not be read, and when its directory does not
        exist or may not be entered.
        """
        path = Path(self._path)
        try:
            path.stat()
        except PermissionError as error:
            raise ConfigurationError(
                f"PETSTORE_DATABASE_URL: this user may not enter a directory before {path}; allow that first."
            ) from error
        except OSError:
            pass  # it may be missing
        if not path.absolute().parent.is_dir():
            raise ConfigurationError(
                f"PETSTORE_DATABASE_URL: there is no directory {path.absolute().parent}; make it first."
            )
        if path.is_dir():
            raise ConfigurationError(f"PETSTORE_DATABASE_URL: {path} is a directory; name a file in it.")
        files.refuse_unreadable(path)
        return path

    def backup_mark(self) -> Path:
        """An empty file beside the database; it is as old as the last sound backup."""
        return Path(f"{self.checked_path().resolve()}.last-backup")

    def back_up(self, target: Path) -> CheckReport:
        """Copy the database, in use or not, to a new file. Raises OperatorError when `target` exists."""
        return upkeep.backup(str(self.checked_path()), str(target), self._busy_timeout_ms)

    def note_backup(self) -> None:
        """Note for metrics that a sound backup was made now. Raises OSError."""
        mark = self.backup_mark()
        files.make(str(mark), like=str(self.checked_path()))
        mark.touch()

    def contents(self) -> Contents | None:
        """What a restore would replace; None where no file is yet."""
        return upkeep.contents(str(self.checked_path()), self._busy_timeout_ms)

    def restore(self, source: Path, actor: str, clock: Clock) -> Restored:
        """Put a backup in the database's place.

        Raises OperatorError while a server uses the database, and when the backup is damaged.
        """
        return upkeep.restore(str(self.checked_path()), str(source), actor, clock, self._busy_timeout_ms)

    def keep_reserve(self) -> None:
        """Reserve disk space for `keys revoke` on a full disk, while there is plenty."""
        reserve.keep(self._path)

    def has_reserve(self) -> bool:
        """Whether the space is reserved."""
        return reserve.is_kept(self._path)

    def give_up_reserve(self) -> bool:
        """Free the reserved space; whether there was any."""
        return reserve.give_up(self._path)
