"""The database's files beside a real server: their names, modes and owners."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.rights import with_mount
from tests.support.server import PROGRAM, Server, environment, free_port, running_server

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-files")]


def run(
    database: str | Path, *arguments: str | Path, folder: Path, prefix: Sequence[str] = (), umask: int = -1
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, on the database of this name."""
    return subprocess.run(
        [*prefix, PROGRAM, *arguments],
        cwd=folder,
        env=environment({"database_url": f"sqlite:///{database}", "port": str(free_port())}),
        capture_output=True,
        text=True,
        timeout=60,
        umask=umask,
        check=False,
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """On a database in `data`, beside a backup of it."""
    folder = tmp_path_factory.mktemp("names") / "data"
    folder.mkdir()
    with running_server(folder) as server:
        assert run(server.database, "db", "backup", "backup.db", folder=folder).returncode == 0
        yield server


class TestOneServer:
    """Whatever name a second server has for the database, it is refused, and so is a restore."""

    def refused(self, first: Server, name: str | Path, prefix: Sequence[str] = ()) -> None:
        folder = first.database.parent
        for arguments in (["serve"], ["db", "restore", "backup.db"]):
            ended = run(name, *arguments, folder=folder, prefix=prefix)
            assert ended.returncode == 1, ended.stderr
            (line,) = ended.stderr.splitlines()
            assert "Another server" in line
            assert "stop it first" in line
        assert first.request("GET", "/v1/pets").status == 200

    def test_a_relative_path(self, first: Server) -> None:
        """The first one was started with an absolute one."""
        self.refused(first, f"../{first.database.parent.name}/petstore.db")

    def test_a_link_to_the_file(self, first: Server) -> None:
        """From another directory."""
        link = first.database.parent.parent / "link.db"
        link.symlink_to(first.database)
        self.refused(first, link)

    def test_a_link_to_the_directory(self, first: Server) -> None:
        """Which is how a disk is moved."""
        link = first.database.parent.parent / "elsewhere"
        link.symlink_to(first.database.parent)
        self.refused(first, link / "petstore.db")

    def test_a_second_name_of_the_file(self, first: Server) -> None:
        """A hard link has a lock file of its own, but is the same database."""
        second = first.database.parent.parent / "second.db"
        second.hardlink_to(first.database)
        try:
            self.refused(first, second)
        finally:
            second.unlink()

    def test_a_directory_that_is_mounted_twice(self, first: Server) -> None:
        """As containers do."""
        place = first.database.parent.parent / "mounted"
        place.mkdir(exist_ok=True)
        self.refused(first, place / "petstore.db", with_mount("--bind", first.database.parent, place))

    def test_a_file_that_is_mounted_elsewhere(self, first: Server) -> None:
        """With a directory of its own around it."""
        place = first.database.parent.parent / "file.db"
        place.touch()
        self.refused(first, place, with_mount("--bind", first.database, place))


class TestModes:
    """What is made here, its owner alone may read."""

    @pytest.mark.parametrize("umask", [0o000, 0o277])
    def test_every_file(self, tmp_path: Path, umask: int) -> None:
        """Whatever the umask says: the database, the lock, a backup, what is restored and what is kept."""

        def petstore(*arguments: str) -> None:
            ended = run("petstore.db", *arguments, folder=tmp_path, umask=umask)
            assert ended.returncode == 0, ended.stderr

        petstore("accounts", "add", "shop", "--plan", "free")
        petstore("db", "backup", "backup.db")
        petstore("db", "restore", "backup.db")
        modes = {file.name.partition("-restore-")[0]: mode(file) for file in tmp_path.iterdir()}
        assert modes == dict.fromkeys(
            ["petstore.db", "petstore.db.lock", "backup.db", "petstore.db.before"], 0o600
        )

    def test_beside_a_running_server(self, tmp_path: Path) -> None:
        """The log and its index too."""
        with running_server(tmp_path) as server:
            files = {file.name: mode(file) for file in tmp_path.glob("petstore.db*")}
            assert server.request("GET", "/v1/pets").status == 200
        assert files == dict.fromkeys(files, 0o600)
        assert {"petstore.db", "petstore.db-wal", "petstore.db-shm", "petstore.db.lock"} <= set(files)

    def test_a_mode_that_was_chosen_stays(self, tmp_path: Path) -> None:
        """A line says once that others can read the database."""
        tmp_path.chmod(0o755)
        with running_server(tmp_path) as server:
            assert "can be read by every user" not in server.log
        server.database.chmod(0o644)
        with running_server(tmp_path) as server:
            assert server.log.count("petstore.db can be read by every user of this machine") == 1
        assert mode(server.database) == 0o644

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
    def test_what_root_makes_belongs_to_the_service(self, tmp_path: Path) -> None:
        """The owner is that of the directory, or of the database that was there."""
        tmp_path.chmod(0o755)
        os.chown(tmp_path, 65_534, 65_534)
        for arguments in (["accounts", "add", "shop", "--plan", "free"], ["db", "backup", "backup.db"]):
            assert run("petstore.db", *arguments, folder=tmp_path).returncode == 0
        os.chown(tmp_path, 0, 0)
        os.chown(tmp_path / "petstore.db", 1_234, 1_234)
        assert run("petstore.db", "db", "restore", "backup.db", folder=tmp_path).returncode == 0
        owners = {file.name.partition("-restore-")[0]: file.stat().st_uid for file in tmp_path.iterdir()}
        assert owners == {
            "backup.db": 65_534,
            "petstore.db": 1_234,
            "petstore.db.before": 1_234,
            "petstore.db.lock": 1_234,
        }
