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
        """While the service runs."""

    def put_back(self) -> None:
        """Once it has stopped."""


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
    """pg_dump, and pg_restore into a database of the same name, which is dropped before."""

    def __init__(self, place: Place, server: PostgresServer) -> None:
        super().__init__(place)
        self._server = server
        self._dump = server.folder / "petstore.dump"

    def copy(self) -> None:
        _tool("pg_dump", "--format=custom", "--file", self._dump, self.place.url)

    def put_back(self) -> None:
        self._make()
        _tool("pg_restore", "--exit-on-error", "--single-transaction", "--dbname", self._into(), self._dump)
        self.place.url = self._into()

    def _make(self) -> None:
        run_sql(self._server.url(), "DROP DATABASE petstore")
        run_sql(self._server.url(), "CREATE DATABASE petstore")

    def _into(self) -> str:
        return self._server.url("petstore")


class IntoAnother(Dump):
    """Into another database of the cluster; the first one is still there."""

    def _make(self) -> None:
        run_sql(self._server.url(), "CREATE DATABASE restored")

    def _into(self) -> str:
        return self._server.url("restored")


class Cleaned(Dump):
    """Into the same database, whose tables the program drops and makes anew."""

    def put_back(self) -> None:
        words = ("--clean", "--exit-on-error", "--single-transaction", "--dbname", self._into())
        _tool("pg_restore", *words, self._dump)


class IntoAnotherCluster(Dump):
    """Whose transactions have numbers of their own, that may be behind or ahead."""

    def __init__(self, place: Place, server: PostgresServer, other: PostgresServer) -> None:
        super().__init__(place, server)
        self._other = other

    def _make(self) -> None:
        run_sql(self._other.url(), "CREATE DATABASE petstore")

    def _into(self) -> str:
        return self._other.url("petstore")


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


Open = Callable[[ExitStack, Path], Restore]


def _in_file(kind: type[Restore]) -> Open:
    return lambda _, folder: kind(Place(folder, f"sqlite:///{folder}/petstore.db"))


def _on_server(kind: Callable[..., Restore], servers: int) -> Open:
    def opened(made: ExitStack, folder: Path) -> Restore:
        found = [made.enter_context(PostgresServer()) for _ in range(servers)]
        for server in found[: 1 if kind is Promoted else servers]:
            server.start()
        run_sql(found[0].url(), "CREATE DATABASE petstore")
        return kind(Place(folder, found[0].url("petstore")), *found)

    return opened


KINDS: dict[str, Open] = {
    "restored file": _in_file(Command),
    "dump into the same database": _on_server(Cleaned, 1),
    "copied file": _in_file(ByHand),
    "dump into a new database": _on_server(Dump, 1),
    "dump into another database": _on_server(IntoAnother, 1),
    "dump into another cluster": _on_server(IntoAnotherCluster, 2),
    "cold copy of the cluster": _on_server(ColdCopy, 1),
    "promoted standby": _on_server(Promoted, 2),
}
