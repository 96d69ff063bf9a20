"""Ways in which a copy of an earlier moment takes a store's place: what an operator does before and after."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.backends import in_store
from tests.support.journal import ACTOR
from tests.support.postgres import PostgresServer, programs
from tests.support.postgres import run as run_sql
from tools.servers.find import as_nobody
from verification.torture.places import Place


class Restore:
    """A store, its copy, and the copy's way back. `place.url` may be another one afterwards."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.file = place.folder / "petstore.db"

    def copy(self) -> None:
        """Copy the database while the service runs."""

    def put_back(self) -> None:
        """Put the copy back once the service has stopped."""


class Command(Restore):
    """`petstore db backup` and `petstore db restore`."""

    def copy(self) -> None:
        self.place.command("db", "backup", "backup.db")

    def put_back(self) -> None:
        self.place.command("db", "restore", "backup.db", "--yes", str(self.file.resolve()))


class ByHand(Command):
    """A copy of the file, and a word that it was put back."""

    def put_back(self) -> None:
        for name in ("petstore.db-wal", "petstore.db-shm"):
            self.file.with_name(name).unlink(missing_ok=True)
        shutil.copy(self.file.with_name("backup.db"), self.file)
        note_restore(self.place.url)


class Dump(Restore):
    """pg_dump, and pg_restore: by default into a database of the same name, which is dropped before."""

    name = "petstore"
    more: tuple[str, ...] = ()

    def __init__(self, place: Place, server: PostgresServer, other: PostgresServer | None = None) -> None:
        super().__init__(place)
        self._server = other or server
        self._dump = server.folder / "petstore.dump"

    def copy(self) -> None:
        _tool("pg_dump", "--format=custom", "--file", self._dump, self.place.url)

    def make(self) -> None:
        """The database that it is put into."""
        run_sql(self._server.url(), f"DROP DATABASE IF EXISTS {self.name}")
        run_sql(self._server.url(), f"CREATE DATABASE {self.name}")

    def put_back(self) -> None:
        self.make()
        self.place.url = self._server.url(self.name)
        words = ("--exit-on-error", "--single-transaction", *self.more, "--dbname", self.place.url)
        _tool("pg_restore", *words, self._dump)


class IntoAnother(Dump):
    """A copy into another database of the cluster; the first one is still there."""

    name = "restored"


class Cleaned(Dump):
    """A copy into the same database, whose tables the program drops and makes anew."""

    more = ("--clean",)

    def make(self) -> None:
        """It is there."""


class ColdCopy(Restore):
    """The files of a PostgreSQL that was stopped for it, and a word: nothing in them tells their age."""

    def __init__(self, place: Place, server: PostgresServer) -> None:
        super().__init__(place)
        self._server = server
        self._copied = server.folder / "copied"

    def copy(self) -> None:
        self._server.stop()
        subprocess.run(["cp", "-a", self._server.folder / "data", self._copied], check=True)
        self._server.start()

    def put_back(self) -> None:
        self._server.stop()
        shutil.rmtree(self._server.folder / "data")
        self._copied.rename(self._server.folder / "data")
        self._server.start()
        note_restore(self.place.url)


class Promoted(Restore):
    """A standby that lacks the last changes takes the place of a primary that has crashed."""

    def __init__(self, place: Place, server: PostgresServer, other: PostgresServer) -> None:
        super().__init__(place)
        self._server = server
        self._other = other

    def copy(self) -> None:
        self._other.follow(self._server)

    def put_back(self) -> None:
        self._server.stop()
        self._other.start()
        run_sql(self._other.url(), "SELECT pg_promote()")
        self.place.url = self._other.url("petstore")


def note_restore(url: str) -> None:
    """Say to a store that it was put back by hand."""
    in_store(url, lambda store: store.events.note_restore(ACTOR))


def _tool(name: str, *words: str | Path) -> None:
    """One of PostgreSQL's programs."""
    done = subprocess.run(
        [programs() / name, *words], **as_nobody(), check=False, capture_output=True, text=True, cwd="/"
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")


def opened(kind: str, made: ExitStack, folder: Path) -> Restore:
    """A store of that kind, not yet started."""
    how, servers = KINDS[kind]
    found = [made.enter_context(PostgresServer()) for _ in range(servers)]
    if not found:
        return how(Place(folder, f"sqlite:///{folder}/petstore.db"))
    for server in found[: 1 if how is Promoted else servers]:
        server.start()
    run_sql(found[0].url(), "CREATE DATABASE petstore")
    return how(Place(folder, found[0].url("petstore")), *found)


# By name: the way, and with how many servers of PostgreSQL.
KINDS: dict[str, tuple[Callable[..., Restore], int]] = {
    "restored file": (Command, 0),
    "dump into the same database": (Cleaned, 1),
    "copied file": (ByHand, 0),
    "dump into a new database": (Dump, 1),
    "dump into another database": (IntoAnother, 1),
    "dump into another cluster": (Dump, 2),  # whose transactions have numbers of their own, behind or ahead
    "cold copy of the cluster": (ColdCopy, 1),
    "promoted standby": (Promoted, 2),
}
