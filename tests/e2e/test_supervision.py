"""The parent and its worker: signals that must not double the counters, and ends that must not be silent."""

from __future__ import annotations

import collections
import os
import signal
import socket
import threading
import time
from pathlib import Path

import apsw
import pytest

from tests.support.postgres import fresh_database
from tests.support.server import Server, issue_key, running_server, start_server
from tests.support.valkey import emptied_url
from tests.support.waiting import wait_for
from tools.servers.petstore import run

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-supervision")]

_POST = (
    b"POST /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b'Content-Length: 30\r\nAuthorization: Bearer %s\r\n\r\n{"name":"Rex","categoryId": 1}'
)


class TestSighup:
    """An operator who wants new settings without an interruption, or a terminal that is closed."""

    def test_replaces_the_worker_with_new_settings(self, tmp_path: Path) -> None:
        """The file of settings is read anew; the counters go on where they were; one worker at any time, and
        nobody is refused a connection meanwhile."""
        settings = tmp_path / "settings.toml"
        settings.write_text("environment = 'live'\ncors_origins = 'https://old.example'\n")
        with running_server(tmp_path, config=str(settings)) as server:
            (first,) = server.workers()
            assert server.request("GET", "/v1/pets").headers["x-ratelimit-remaining"] == "59"
            settings.write_text("cors_origins = 'https://new.example'\nhost = '192.0.2.1'\n")
            os.killpg(server.pid, signal.SIGHUP)  # to the worker too, which leaves it to its parent
            seen: list[list[int]] = []

            def is_replaced() -> bool:
                seen.append(server.workers())
                return bool(seen[-1]) and first not in seen[-1]

            wait_for(is_replaced, "the new worker")
            answer = server.request("GET", "/v1/pets", headers={"Origin": "https://new.example"})
            assert answer.headers["access-control-allow-origin"] == "https://new.example"
            assert answer.headers["x-ratelimit-remaining"] == "58"
            assert max(map(len, seen)) == 1
            assert "Replacing the workers." in server.log

    def test_settings_that_are_wrong_replace_nothing(self, tmp_path: Path) -> None:
        """One line says why; the worker goes on."""
        settings = tmp_path / "settings.toml"
        settings.write_text("")
        with running_server(tmp_path, config=str(settings)) as server:
            before = server.workers()
            settings.write_text("prot = 80\n")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "Not replaced" in server.log, "the refusal")
            assert "no such setting: prot" in server.log
            assert server.workers() == before
            assert server.request("GET", "/v1/pets").status == 200

    @pytest.mark.parametrize(
        ("settings", "why"),
        [
            (b"database_url = 'postgresql://u:hush[hush@h/d'", "PETSTORE_DATABASE_URL is not understood"),
            (b"database_url = 'postgresql://u:hu[hush]sh@h/d'", "PETSTORE_DATABASE_URL is not understood"),
            (b"valkey_url = 'valkey://u:hush[hush@h'", "PETSTORE_VALKEY_URL"),
            (b"host = 'h\xe9'", "it is not UTF-8"),
            (b"host = " + b"[" * 5_000, "it is nested too deeply"),
            (b"host." + b"a." * 5_000 + b"a = 'hush'", "host takes one value or a list"),
        ],
        ids=["bracket", "brackets", "valkey", "latin-1", "nested", "dotted"],
    )
    def test_settings_that_nobody_can_read_replace_nothing(
        self, tmp_path: Path, settings: bytes, why: str
    ) -> None:
        """One line says why, without a part of what may be a secret; a later SIGHUP replaces again."""
        file = tmp_path / "settings.toml"
        database = f"database_url = 'sqlite:///{tmp_path / 'petstore.db'}'\n"
        file.write_text(database)
        with running_server(tmp_path, config=str(file), database_url=None) as server:
            before = server.workers()
            said = len(server.log)
            file.write_bytes(settings)
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "Not replaced" in server.log, "the refusal")
            (line,) = [line for line in server.log[said:].splitlines() if "Not replaced" in line]
            assert "hush" not in server.log
            assert why in line
            assert server.request("GET", "/v1/pets").status == 200
            assert server.workers() == before
            file.write_text(database)
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: server.workers() not in ([], before), "the new worker")

    def test_a_password_file_in_another_encoding_replaces_nothing(self, tmp_path: Path) -> None:
        """The same for a file with nothing but a secret."""
        secret = tmp_path / "url"
        secret.write_text(f"sqlite:///{tmp_path / 'petstore.db'}")
        with running_server(tmp_path, database_url=None, database_url_file=str(secret)) as server:
            before = server.workers()
            secret.write_bytes(b"postgresql://u:hush\xe9@h/d")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "Not replaced" in server.log, "the refusal")
            assert "PETSTORE_DATABASE_URL_FILE" in server.log
            assert "it is not UTF-8" in server.log
            assert "xe9" not in server.log
            assert server.workers() == before

    @pytest.mark.parametrize("name", ["config", "database_url_file"])
    def test_a_pipe_in_the_place_of_a_file_replaces_nothing(self, tmp_path: Path, name: str) -> None:
        """Nobody may ever write into it: the parent does not wait for that, and heeds what it is told."""
        file = tmp_path / "file"
        url = f"sqlite:///{tmp_path / 'petstore.db'}"
        file.write_text(url if name == "database_url_file" else f"database_url = '{url}'")
        settings: dict[str, str | None] = {"database_url": None, name: str(file)}
        with running_server(tmp_path, **settings) as server:
            before = server.workers()
            file.unlink()
            os.mkfifo(file)
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "Not replaced" in server.log, "the refusal")
            assert "it is a pipe; name a file" in server.log
            assert server.workers() == before
            assert server.terminate() == 0

    def test_a_user_that_the_database_refuses_replaces_nothing(self, tmp_path: Path) -> None:
        """Without Valkey the next worker starts after the end of this one, and would not come back."""
        with fresh_database() as database:
            secret = tmp_path / "url"
            secret.write_text(database)
            with running_server(tmp_path, database_url=None, database_url_file=str(secret)) as server:
                before = server.workers()
                secret.write_text(database.replace("petstore@", "nobody-there:hush@", 1))
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: "Not replaced" in server.log, "the refusal")
                assert "hush" not in server.log
                assert server.workers() == before
                assert server.request("GET", "/v1/pets").status == 200

    def test_the_parent_takes_the_new_settings_too(self, tmp_path: Path) -> None:
        """The form of its lines, and how long it waits for a worker that began with a longer drain."""
        settings = tmp_path / "settings.toml"
        settings.write_text("drain = '1s'\nlog_format = 'text'\n")
        with running_server(tmp_path, config=str(settings), drain=None) as server:
            settings.write_text("drain = '6s'\nlog_format = 'json'\nbody_timeout = '1s'\n")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: '"event":"reloaded"' in server.log, "the line in the other form")
            began = time.monotonic()
            assert server.terminate() == 0
            assert time.monotonic() - began > 5.5  # all of the drain; a killed worker would be code 3
            assert "does not stop" not in server.log

    def test_another_database_needs_a_restart(self, tmp_path: Path) -> None:
        """The file is locked for this service; another one would serve without a lock."""
        settings = tmp_path / "settings.toml"
        settings.write_text(f"database_url = 'sqlite:///{tmp_path / 'petstore.db'}'\n")
        with running_server(tmp_path, config=str(settings), database_url=None) as server:
            settings.write_text("database_url = 'sqlite:///other.db'\n")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "PETSTORE_DATABASE_URL: another one needs a stop" in server.log, "the refusal")

    def test_a_closed_terminal_stops_it_in_order(self, tmp_path: Path) -> None:
        """As it stops any other program; the counters are saved."""
        controller, terminal = os.openpty()
        server = Server(tmp_path, drain=None, how={"stderr": terminal})
        try:
            server.launch()
            os.close(terminal)
            server.wait_until_ready()
            server.process.send_signal(signal.SIGHUP)
            assert server.process.wait(15) == 0
        finally:
            server.kill()
            os.close(controller)

    def test_a_second_one_during_the_replacement_reaches_every_worker(self, tmp_path: Path) -> None:
        """Whenever it comes: in the end all workers are younger than it, and have the last settings."""
        settings = tmp_path / "settings.toml"
        settings.write_text("cors_origins = 'https://first.example'\n")
        with (
            fresh_database() as database,
            running_server(
                tmp_path,
                config=str(settings),
                database_url=database,
                valkey_url=emptied_url(),
                workers="3",
                access_log="off",
            ) as server,
        ):
            wait_for(lambda: len(server.workers()) == 3, "all workers")
            first = server.workers()
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: len(server.workers()) == 4, "the first successor")
            for origin in ("https://second.example", "https://third.example"):
                settings.write_text(f"cors_origins = '{origin}'\n")
                before = server.workers()
                server.process.send_signal(signal.SIGHUP)
                wait_for(lambda: not set(first) & set(server.workers()), "the end of the round before")  # noqa: B023
                first = before
            wait_for(lambda: not set(before) & set(server.workers()), "younger workers")
            wait_for(lambda: len(server.workers()) == 3, "the end of the replacement")
            for _ in range(30):
                answer = server.request("GET", "/v1/pets", headers={"Origin": "https://third.example"})
                assert answer.headers["access-control-allow-origin"] == "https://third.example"
            assert "ended with" not in server.log


class TestDrain:
    """What a load balancer sees of a stop."""

    def test_readiness_fails_before_the_listener_closes(self, tmp_path: Path) -> None:
        """/readyz answers 503 while requests are still served, each with a connection that ends with it."""
        with running_server(tmp_path, drain="60s") as server:
            assert "connection" not in server.request("GET", "/v1/pets").headers
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: server.request("GET", "/readyz", key="").status == 503, "the drain")
            for target in ("/v1/pets", "/v1/nothing", "/healthz", "/"):
                answer = server.request("GET", target)
                assert answer.headers["connection"] == "close"
                assert answer.status == (404 if target == "/v1/nothing" else 200)
            server.process.send_signal(signal.SIGINT)  # an operator who does not want to wait
            assert server.process.wait(15) == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_no_connection_that_was_accepted_is_reset(self, tmp_path: Path, number: signal.Signals) -> None:
        """Clients that come without a pause, each on a connection of its own, are answered or not let in:
        a proxy then knows that it may ask another replica, also for a POST without an Idempotency-Key."""
        key = issue_key(tmp_path / "petstore.db")
        lost: list[object] = []
        answered = collections.Counter[int]()
        over = threading.Event()

        def visit(port: int) -> None:
            while not over.is_set():
                try:
                    one = socket.create_connection(("127.0.0.1", port), timeout=0.3)
                except OSError:
                    continue
                with one:
                    one.settimeout(20)
                    try:
                        one.sendall(_POST % key.encode())
                        answered[int(one.recv(65_536).split()[1])] += 1
                    except (OSError, IndexError) as error:
                        lost.append(error)

        with running_server(tmp_path, drain="300ms", access_log="off") as server:
            visitors = [threading.Thread(target=visit, args=(server.port,)) for _ in range(12)]
            for visitor in visitors:
                visitor.start()
            wait_for(lambda: answered[201] > 100, "the load")
            (first,) = server.workers()
            server.process.send_signal(number)
            if number == signal.SIGTERM:
                assert server.process.wait(15) == 0
            else:
                wait_for(lambda: server.workers() not in ([], [first]), "the new worker")
                served = answered[201]
                wait_for(lambda: answered[201] > served + 100, "its answers")
            over.set()
            for visitor in visitors:
                visitor.join()
        assert lost == []
        assert set(answered) == {201}

    def test_ctrl_c_does_not_wait(self, tmp_path: Path) -> None:
        """Nobody balances load to a terminal: the pause is left out."""
        with running_server(tmp_path, drain="60s") as server:
            os.killpg(server.pid, signal.SIGINT)
            assert server.process.wait(15) == 0


class TestEnds:
    """A service that can't go on says why."""

    def test_a_worker_that_dies_at_once_again_ends_the_service_with_a_word(self, tmp_path: Path) -> None:
        """The first death is mended, a second one within seconds is told; exit 1."""
        server = start_server(tmp_path)
        try:
            first = server.workers()
            for pid in first:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: bool(set(server.workers()) - set(first)), "the next worker")
            for pid in set(server.workers()) - set(first):
                os.kill(pid, signal.SIGKILL)
            assert server.process.wait(15) == 1
            assert "its worker died twice within seconds" in server.log
        finally:
            server.kill()

    def test_a_killed_parent_leaves_its_port_to_the_next_one(self, tmp_path: Path) -> None:
        """Its workers end without the drain, since nobody would balance load to them; a start that follows at
        once waits for that moment."""
        with fresh_database() as database:
            shared = {"database_url": database, "valkey_url": emptied_url(), "workers": "2"}
            server = start_server(tmp_path, drain="60s", **shared)
            try:
                wait_for(lambda: len(server.workers()) == 2, "all workers")
                orphans = server.workers()
                server.process.kill()
                server.process.wait(5)
                with running_server(tmp_path, port=server.port, **shared) as after:
                    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans), "their end")
                    after.wait_until_ready()  # the first answer may have been an orphan's
                    assert after.request("GET", "/healthz").status == 200
            finally:
                server.kill()

    def test_a_start_that_fails_is_told(self, tmp_path: Path) -> None:
        """The reason stands in the log, also when it is found only in the worker."""
        with running_server(tmp_path):
            pass
        connection = apsw.Connection(str(tmp_path / "petstore.db"))
        connection.execute("DROP TABLE key_standings")
        connection.close()
        done = run("serve", settings=Server(tmp_path).settings, cwd=tmp_path)
        assert done.returncode == 1
        assert "start failed" in done.stderr
        assert "The store failed" in done.stderr
