"""The database's files beside a real server: their names, modes and owners."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import stat
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from petstore.storage.sqlite.schema import migrate
from petstore.storage.sqlite.upkeep import check
from tests.support.rights import with_mount, without_rights
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for
from tools.servers import petstore
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-files")]


def run(
    database: str | Path, *arguments: str | Path, folder: Path, prefix: Sequence[str] = (), umask: int = -1
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, on the database of this name."""
    settings = {"database_url": f"sqlite:///{database}", "port": str(free_port())}
    return petstore.run(*arguments, settings=settings, prefix=prefix, cwd=folder, umask=umask)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server on a database in `data`, with a backup beside that database."""
    folder = tmp_path_factory.mktemp("names") / "data"
    folder.mkdir()
    with running_server(folder) as server:
        assert run(server.database, "db", "backup", "backup.db", folder=folder).returncode == 0
        yield server


class TestOneServer:
    """Whatever name a second server has for the database, it is refused."""

    def refused(self, first: Server, name: str | Path, *words: str, prefix: Sequence[str] = ()) -> None:
        folder = first.database.parent
        ended = run(name, *(words or ["serve"]), folder=folder, prefix=prefix)
        assert ended.returncode == 1, ended.stderr
        (line,) = ended.stderr.splitlines()
        assert "Another process" in line
        assert "stop it first" in line
        if not prefix:
            assert f"process ({first.pid})" in line
        assert first.request("GET", "/v1/pets").status == 200

    def test_a_relative_path(self, first: Server) -> None:
        """The first one was started with an absolute one; its process is named. So is a restore refused."""
        folder = first.database.parent
        name = f"../{folder.name}/petstore.db"
        self.refused(first, name)
        self.refused(first, name, "db", "restore", "backup.db", "--yes", str((folder / name).resolve()))

    def test_a_link_to_a_file_in_use_is_refused(self, first: Server) -> None:
        """A link to the file, from another directory; to the directory, which is how a disk is moved."""
        beside = first.database.parent.parent
        for name, target in (("link.db", first.database), ("elsewhere", first.database.parent)):
            (beside / name).symlink_to(target)
        self.refused(first, beside / "link.db")
        self.refused(first, beside / "elsewhere" / "petstore.db")

    def test_a_directory_that_is_mounted_twice_is_recognised(self, first: Server) -> None:
        """Two containers may have one volume under two names."""
        place = first.database.parent.parent / "mounted"
        place.mkdir(exist_ok=True)
        prefix = with_mount("--bind", first.database.parent, place)
        self.refused(first, place / "petstore.db", prefix=prefix)

    def test_a_file_that_is_mounted_elsewhere(self, first: Server) -> None:
        """It has a directory of its own around it."""
        place = first.database.parent.parent / "file.db"
        place.touch()
        self.refused(first, place, prefix=with_mount("--bind", first.database, place))


class TestModes:
    """What is made here, its owner alone may read."""

    def test_every_file_has_its_mode_whatever_the_umask(self, tmp_path: Path) -> None:
        """The database, the lock, a backup, what is restored and what is kept."""

        def petstore(*arguments: str) -> None:
            ended = run("petstore.db", *arguments, folder=tmp_path, umask=0o200)
            assert ended.returncode == 0, ended.stderr

        petstore("db", "migrate")
        petstore("db", "backup", "backup.db")
        petstore("db", "restore", "backup.db", "--yes", str(tmp_path / "petstore.db"))
        modes = {file.name.partition("-restore-")[0]: mode(file) for file in tmp_path.iterdir()}
        assert modes == dict.fromkeys(
            ["petstore.db", "petstore.db.lock", "petstore.db.last-backup", "petstore.db.before", "backup.db"],
            0o600,
        )

    def test_beside_a_running_server(self, first: Server) -> None:
        """The log and its index too."""
        files = {file.name: mode(file) for file in first.database.parent.glob("petstore.db*")}
        assert files == dict.fromkeys(files, 0o600)
        assert {"petstore.db", "petstore.db-wal", "petstore.db-shm", "petstore.db.lock"} <= set(files)

    def test_what_every_user_could_open_is_closed(self, tmp_path: Path) -> None:
        """A database as an umask has left it, by the start of its owner; a line says so. A mode for a group
        was chosen and stays."""
        database = tmp_path / "petstore.db"
        migrate(str(database), 1_000)
        database.chmod(0o644)
        with running_server(tmp_path) as server:
            assert server.log.count("petstore.db; its mode is 600 now") == 1
            assert {mode(file) for file in tmp_path.glob("petstore.db*")} == {0o600}
        database.chmod(0o640)
        again = run(database, "db", "migrate", folder=tmp_path)  # as a start does
        assert (again.returncode, "its mode is" in again.stdout + again.stderr) == (0, False)
        assert mode(database) == 0o640

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
    def test_what_root_makes_belongs_to_the_service(self, tmp_path: Path) -> None:
        """The owner is that of the directory, or of the database that was there."""
        tmp_path.chmod(0o755)
        os.chown(tmp_path, 65_534, 65_534)
        for arguments in (["db", "migrate"], ["db", "backup", "backup.db"]):
            assert run("petstore.db", *arguments, folder=tmp_path).returncode == 0
        os.chown(tmp_path, 0, 0)
        os.chown(tmp_path / "petstore.db", 1_234, 1_234)
        restore = ["db", "restore", "backup.db", "--yes", str(tmp_path / "petstore.db")]
        assert run("petstore.db", *restore, folder=tmp_path).returncode == 0
        owners = {file.name.partition("-restore-")[0]: file.stat().st_uid for file in tmp_path.iterdir()}
        assert owners == {
            "backup.db": 65_534,
            "petstore.db": 1_234,
            "petstore.db.before": 1_234,
            "petstore.db.last-backup": 65_534,
            "petstore.db.lock": 1_234,
        }


class TestUnwritable:
    """What time does not mend ends the start with 78 and one line, so that it is not tried for ever."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """A folder with a database, which is whole in the end."""
        database = tmp_path / "petstore.db"
        migrate(str(database), 1_000)
        yield tmp_path
        tmp_path.chmod(0o700)
        database.chmod(0o600)
        assert check(str(database), 1_000).problems == []

    def refusal(self, folder: Path, *prefix: str, command: str = "db migrate") -> str:
        """Return the refusal, a start's too: both look at the file first; `serve` takes twice as long."""
        ended = run("petstore.db", *command.split(), folder=folder, prefix=prefix or without_rights())
        assert ended.returncode == 78, ended.stderr
        (line,) = ended.stderr.splitlines()
        return line

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
    def test_each_file_that_cannot_be_written_is_named(self, folder: Path, suffix: str) -> None:
        """It is told with its owner and what to do."""
        file = folder / f"petstore.db{suffix}"
        file.touch()
        file.chmod(0o400)
        me = pwd.getpwuid(os.geteuid()).pw_name
        assert self.refusal(folder) == (
            f"petstore: {file} belongs to {me} and can't be written by {me}."
            f" Correct its rights: chmod u+rw {file}."
        )

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_a_file_of_somebody_else(self, folder: Path) -> None:
        """A command was run as another user before the service was started."""
        database = folder / "petstore.db"
        os.chown(database, 1_234, 1_234)
        assert self.refusal(folder) == (
            f"petstore: {database} belongs to 1234 and can't be read by root."
            f" Correct its rights: chown root {database}, or run this as 1234."
        )
        os.chown(database, 0, 0)

    def test_a_directory_that_cannot_be_written_is_named(self, folder: Path) -> None:
        """SQLite's log can't be made in it."""
        folder.chmod(0o500)
        assert f"petstore: {folder} belongs to " in self.refusal(folder, command="serve")

    def test_the_directory_of_a_database_to_come(self, tmp_path: Path) -> None:
        """`db migrate` is the first command of a setup. What it says to do can be pasted."""
        folder = tmp_path / "a store"
        folder.mkdir(mode=0o500)
        ended = run("petstore.db", "db", "migrate", folder=folder, prefix=without_rights())
        assert (ended.returncode, ended.stderr.count("\n")) == (78, 1), ended.stderr
        assert ended.stderr.endswith(f"Correct its rights: chmod u+rwx '{folder}'.\n")

    def test_a_command_that_may_not_even_read(self, folder: Path) -> None:
        """A database that a command may not read ends it with 78: that is no outage that might pass."""
        database = folder / "petstore.db"
        database.chmod(0)
        for arguments in (["accounts", "list"], ["db", "check"], ["db", "backup", "x.db"]):
            ended = run("petstore.db", *arguments, folder=folder, prefix=without_rights())
            assert ended.returncode == 78, ended.stderr
            assert "can't be read by" in ended.stderr
        database.chmod(0o600)

    def test_a_command_that_may_only_read(self, folder: Path) -> None:
        """A command that may only read the file ends with 78 and says what to fix; no job tries again."""
        (folder / "petstore.db").chmod(0o400)
        folder.chmod(0o500)
        for arguments in (["accounts", "list"], ["db", "check"], ["accounts", "add", "shop", "--plan=free"]):
            ended = run("petstore.db", *arguments, folder=folder, prefix=without_rights())
            assert ended.returncode == 78, ended.stderr
            assert "Let this user write the file and its directory; their file system" in ended.stderr
        folder.chmod(0o700)

    def test_a_directory_that_cannot_be_entered(self, folder: Path) -> None:
        """A directory that may not be entered is named as the fault; it is not taken for an absent one."""
        inner = folder / "inner"
        inner.mkdir(mode=0)
        ended = run("inner/x.db", "serve", folder=folder, prefix=without_rights())
        assert ended.returncode == 78, ended.stderr
        assert "may not enter a directory" in ended.stderr

    def test_a_file_system_that_is_mounted_read_only(self, folder: Path) -> None:
        """A file system that is mounted read-only, as after an error of the disk, is named as the fault."""
        prefix = with_mount("--bind", "-o", "ro", folder, folder)
        assert "is on a file system that is mounted read-only" in self.refusal(folder, *prefix)


class TestRoom:
    """A disk without room passes: the service starts, reads, and is ready when it can write again."""

    def test_a_disk_without_room_is_told_until_there_is_room(self, tmp_path: Path) -> None:
        """A line tells it, and /readyz."""
        with on_small_disk(tmp_path, "1m") as (server, place):
            key = server.key
            fill(place)
            assert server.post({"name": "Rex", "categoryId": 1}, key=key).status == 503
            os.kill(server.workers()[0], signal.SIGKILL)
            wait_for(lambda: status(server, "/v1/pets", key) == 200, "the new worker to serve")
            wait_for(lambda: status(server, "/readyz") == 503, "it to find that it can't save that request")
            assert status(server, "/v1/pets", key) == 200
            saving = server.request("GET", "/readyz").json()["checks"]["saving"]
            assert "full" in saving
            (place / "filler").unlink()
            wait_for(lambda: status(server, "/readyz") == 200, "the server to be ready again")
            assert server.post({"name": "Rex", "categoryId": 1}, key=key).status == 201

    def test_access_is_ended_all_the_same(self, tmp_path: Path) -> None:
        """The room that the server has kept back is for that; it keeps some back again when there is
        plenty."""
        with on_small_disk(tmp_path, "48m") as (server, place):
            reserve = place / "petstore.db.reserve"
            beside = ["nsenter", f"--mount=/proc/{server.pid}/ns/mnt"]

            def petstore(*arguments: str) -> subprocess.CompletedProcess[str]:
                return run(tmp_path / "small" / "petstore.db", *arguments, folder=tmp_path, prefix=beside)

            for command, answer in (
                ("accounts suspend local", 403),
                ("keys revoke 1", 401),
                ("accounts close local", 401),
            ):
                wait_for(
                    lambda: reserve.exists() and reserve.stat().st_blocks * 512 >= 4 << 20, "the reserve"
                )
                assert mode(reserve) == 0o600
                fill(place)
                if answer == 403:
                    refused = petstore("accounts", "add", "shop", "--plan", "free")
                    assert (refused.returncode, reserve.exists()) == (75, True)
                ended = petstore(*command.split())
                assert (ended.returncode, reserve.exists()) == (0, False)
                assert "the room that was kept back for this is used up" in ended.stderr
                assert status(server, "/v1/pets", server.key) == answer
                (place / "filler").unlink()

    def test_a_start_on_a_full_disk_takes_the_room_that_was_kept_back(self, tmp_path: Path) -> None:
        """A start after a clean stop, when SQLite makes its files anew, takes the room that was kept back."""
        place = tmp_path / "small"
        place.mkdir()
        key = issue_key(tmp_path / "petstore.db")
        mounted = with_disk(place, "48m", tmp_path / "petstore.db")
        with subprocess.Popen([*mounted, "cat"], stdin=subprocess.PIPE) as holder:
            seen = Path(f"/proc/{holder.pid}/root{place}")
            wait_for(seen.is_mount, "the disk")
            on_disk = partial(
                running_server,
                tmp_path,
                prefix=["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"],
                database_url=f"sqlite:///{place}/petstore.db",
            )
            with on_disk():
                wait_for((seen / "petstore.db.reserve").exists, "the reserve")
            (seen / "petstore.db.lock").unlink()
            fill(seen)
            with on_disk() as server:
                assert "the room that was kept back for that is used up" in server.log
                assert status(server, "/v1/pets", key) == 200


@contextlib.contextmanager
def on_small_disk(folder: Path, size: str) -> Iterator[tuple[Server, Path]]:
    """A server on a disk of that size, and where that disk can be seen."""
    place = folder / "small"
    place.mkdir()
    key = issue_key(folder / "petstore.db", "local")
    prefix = with_disk(place, size, folder / "petstore.db")
    with running_server(folder, prefix=prefix, database_url=f"sqlite:///{place}/petstore.db") as server:
        server.key = key
        yield server, Path(f"/proc/{server.pid}/root{place}")


def with_disk(place: Path, size: str, database: Path) -> list[str]:
    """What to put before a command so that it sees a disk of that size there, with a copy of the file."""
    return with_mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", place, "&&", "cp", "-p", database, place)


def fill(place: Path) -> None:
    with (place / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 4_096)


def status(server: Server, target: str, key: str = "") -> int:
    """Return the status of the answer, or 0 while nobody answers."""
    try:
        return server.request("GET", target, key=key).status
    except OSError:
        return 0
