"""`petstore serve` up to the moment at which workers are started; the rest is in tests/e2e."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import apsw
import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from petstore import config
from petstore.core.errors import ConfigurationError
from petstore.core.keys import KEY_PATTERN
from petstore.ops import logs
from petstore.server.parent import Serving
from petstore.wiring.administration import backend_of
from tests.cli.conftest import Cli
from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.postgres import fresh_database
from tests.support.postgres import run as execute
from tests.support.valkey import emptied_url

Events = list[MutableMapping[str, Any]]


class FakeSupervisor:
    """Takes what the parent of the workers would take, and comes back at once."""

    started: list[dict[str, Any]]

    def __init__(self, job: object, **options: Any) -> None:
        self.options = options | {"job": job}

    def run(self) -> bool:
        self.started.append(self.options)
        return True


@pytest.fixture
def started(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What was handed to the supervisor."""
    FakeSupervisor.started = []
    monkeypatch.setattr("petstore.server.parent.Supervisor", FakeSupervisor)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        cli.settings["PETSTORE_PORT"] = str(probe.getsockname()[1])
    yield FakeSupervisor.started
    structlog.reset_defaults()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """The events that the parent logs."""
    output = logs.Output(descriptor=-1, as_json=True, is_journal=False)
    monkeypatch.setattr("petstore.wiring.service.start_log_of_parent", lambda _settings: output)
    with capture_logs() as events:
        yield events


class TestFirstStart:
    def test_prints_a_key_that_works(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """On a loopback address: an account `local` on the Free plan, and a curl line to paste."""
        result = cli.run("serve")
        assert (result.exit_code, result.stdout) == (0, "")
        key, again = KEY_PATTERN.findall(result.stderr)
        assert key == again
        base = f"http://127.0.0.1:{cli.settings['PETSTORE_PORT']}/v1"
        assert f"curl -i -H 'Authorization: Bearer {key}' {base}/pets" in result.stderr
        assert "account  local (id 1)" in cli.ok("keys", "check", stdin=key)
        assert started[0]["count"] == 1
        assert started[0]["overlap"] is False  # two workers at once would both count

    def test_happens_once(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """Where there is an account, no key is issued; the lock is free again after the stop."""
        cli.ok("accounts", "add", "shop", "--plan", "free")
        cli.ok("serve")
        assert KEY_PATTERN.search(cli.run("serve").stderr) is None
        assert [account["name"] for account in cli.json("accounts", "list")] == ["shop"]
        assert len(started) == 2

    def test_of_two_at_once_one_issues_the_key(
        self, cli: Cli, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Replicas that meet at an empty database: whoever comes second goes on without a key."""
        cli.ok("accounts", "add", "local", "--plan", "free")

        async def was_empty(_store: object) -> bool:
            return True

        monkeypatch.setattr("petstore.storage.sqlite.store.SqliteStore.is_empty", was_empty)
        result = cli.run("serve")
        assert (result.exit_code, len(started)) == (0, 1)
        assert KEY_PATTERN.search(result.stderr) is None

    def test_no_key_on_an_address_that_others_reach(
        self, cli: Cli, started: list[dict[str, Any]], told: Events
    ) -> None:
        """The log of a public service holds no key; the operator is told how to issue one."""
        cli.settings |= {"PETSTORE_HOST": "0.0.0.0"}
        result = cli.run("serve")
        assert KEY_PATTERN.search(result.stderr) is None
        assert "petstore accounts add NAME --plan free" in told[-2]["message"]
        assert cli.json("accounts", "list") == []
        assert len(started) == 1

    @pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
    def test_ipv6_address_in_brackets(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """The printed address can be pasted."""
        cli.settings["PETSTORE_HOST"] = "::1"
        result = cli.run("serve")
        if "Can't listen" in result.stderr:
            pytest.skip("this machine has no IPv6 loopback address")
        assert f"http://[::1]:{cli.settings['PETSTORE_PORT']}/v1" in result.stderr
        assert len(started) == 1


class TestChecks:
    """What is said before the first request rather than by the first failure."""

    def test_a_clock_that_is_behind(self, cli: Cli, started: list[dict[str, Any]], told: Events) -> None:
        """Of the newest record by more than five minutes: both times are told, and the service starts."""
        cli.ok("accounts", "add", "shop", "--plan", "free")
        cli.clock.advance(-300)
        cli.ok("serve")
        assert [event for event in told if event["event"] == "start check"] == []
        cli.clock.advance(-1)
        cli.ok("serve")
        assert [event["message"] for event in told if event["event"] == "start check"] == [
            f"The clock says 2027-01-15 07:55:29 UTC, and {cli.database} has a record of"
            " 2027-01-15 08:00:30 UTC. Set the clock: limits, expiry of keys and usage go by it."
        ]
        assert len(started) == 2

    def test_a_second_name_of_the_file(self, cli: Cli, started: list[dict[str, Any]], told: Events) -> None:
        """A hard link is no backup, and commands that use it would go past SQLite's log."""
        cli.ok("accounts", "add", "shop", "--plan", "free")
        (cli.folder / "second.db").hardlink_to(cli.database)
        cli.ok("serve")
        (warning,) = [event["message"] for event in told if event["event"] == "start check"]
        assert warning.startswith(f"{cli.database} has 2 names, since there are hard links to it.")
        assert len(started) == 1

    def test_a_disk_without_room(self, cli: Cli, started: list[dict[str, Any]], told: Events) -> None:
        """Reads are possible, so it starts; a line says why it is not ready."""
        cli.ok("accounts", "add", "shop", "--plan", "free")
        with mounted_disk() as disk:
            disk.fail("write", apsw.FullError, suffix="-wal", times=10**9)
            cli.ok("serve")
        (warning,) = [event["message"] for event in told if event["event"] == "start check"]
        assert "reads are served meanwhile. The store failed: the disk" in warning
        assert len(started) == 1

    def test_a_user_of_postgresql_who_may_only_read(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """Exit code 78 and what to grant, instead of workers that die."""
        with fresh_database() as url:
            role = f"reads_{urlsplit(url).path[1:]}"
            cli.settings["PETSTORE_DATABASE_URL"] = url
            cli.ok("db", "migrate")
            execute(url, f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
            try:
                cli.settings["PETSTORE_DATABASE_URL"] = url.replace("petstore@", f"{role}@", 1)
                assert "may not write to it; GRANT SELECT, INSERT" in cli.refused(78, "serve")
            finally:
                execute(url, f"DROP OWNED BY {role}; DROP ROLE {role}")
        assert started == []

    def test_a_database_of_services_that_share_a_valkey(
        self, cli: Cli, started: list[dict[str, Any]], told: Events
    ) -> None:
        """Without its address the service counts by itself: the start goes on, and a line says so."""

        async def note() -> None:
            store = backend_of(config.load(cli.settings)).open(ManualClock())
            await store.note_counters(shared=True)
            await store.close()

        with fresh_database() as url:
            cli.settings["PETSTORE_DATABASE_URL"] = url
            assert cli.run("serve").exit_code == 0
            assert [event for event in told if event["event"] == "start check"] == []
            asyncio.run(note())
            assert cli.run("serve").exit_code == 0
        (warning,) = [event["message"] for event in told if event["event"] == "start check"]
        assert "PETSTORE_VALKEY_URL is not set here. Set it if any of them still runs" in warning

    def test_a_copy_of_postgresql(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """A standby may be promoted: the start is worth trying again."""
        with fresh_database() as url:
            cli.settings["PETSTORE_DATABASE_URL"] = url
            cli.ok("db", "migrate")
            execute(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET default_transaction_read_only = on")
            assert "it is a copy that can't be written to" in cli.refused(75, "serve")
        assert started == []


class TestListener:
    def test_an_answer_waits_for_no_acknowledgement(
        self, cli: Cli, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Connections have TCP_NODELAY from their listener, and so does the one that is accepted first."""
        accepted: list[int] = []

        def run(supervisor: FakeSupervisor) -> bool:
            listener = supervisor.options["job"]._listener
            listener.setblocking(True)
            with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
                accepted.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            return True

        monkeypatch.setattr(FakeSupervisor, "run", run)
        cli.ok("serve")
        assert accepted == [1]


class TestRenewed:
    """What SIGHUP may change while the service runs."""

    @pytest.mark.parametrize(
        ("name", "address", "may"),
        [
            ("DATABASE", "postgresql://me:new@db:5432/pets", True),
            ("DATABASE", "postgresql://me:old@other:5432/pets", False),
            ("DATABASE", "postgresql://me:old@db:5432/cats", False),
            ("VALKEY", "valkey://:new@counters:6379/0", True),
            ("VALKEY", "valkey://:old@counters:6379/1", False),
            ("VALKEY", "valkey://:old@other:6379/0", False),
            ("VALKEY", "", False),
        ],
    )
    def test_passwords_and_no_places(
        self,
        cli: Cli,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        address: str,
        may: bool,
    ) -> None:
        """Workers that are replaced one by one would count in two places for a while, and see two stores."""
        cli.settings |= {
            "PETSTORE_DATABASE_URL": "postgresql://me:old@db:5432/pets",
            "PETSTORE_VALKEY_URL": "valkey://:old@counters:6379/0",
        }
        serving = Serving(config.load(cli.settings), socket.socket(), 1, None)
        for key, text in (cli.settings | {f"PETSTORE_{name}_URL": address}).items():
            monkeypatch.setenv(key, text)
        refused = pytest.raises(ConfigurationError, match=f"PETSTORE_{name}_URL: another one needs a stop")
        with contextlib.nullcontext() if may else refused:
            serving.renew()
        serving.before_stop()

    def test_what_waits_for_a_restart_is_told(
        self, cli: Cli, told: Events, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another port is not in force after a reload; the option's number of workers is no other setting."""
        cli.settings |= {
            "PETSTORE_DATABASE_URL": "postgresql://me@db:5432/pets",
            "PETSTORE_VALKEY_URL": "valkey://counters:6379/0",
            "PETSTORE_PORT": "8080",
        }
        configured = config.load(cli.settings)
        serving = Serving(
            msgspec.structs.replace(configured, workers=3), socket.socket(), 1, None, configured
        )
        for name, text in (cli.settings | {"PETSTORE_PORT": "9000"}).items():
            monkeypatch.setenv(name, text)
        serving.renew()
        serving.before_stop()
        assert [event["message"] for event in told if event["event"] == "restart needed"] == [
            "PETSTORE_PORT waits for a restart: the service goes on with 8080."
        ]

    def test_what_nobody_foresaw_is_told_without_its_text(self, cli: Cli) -> None:
        """Which may quote a secret: the kind and the place lead a developer to the fault."""
        serving = Serving(config.load(cli.settings), socket.socket(), 1, None)
        try:
            raise ValueError("hush")
        except ValueError as error:
            line = serving.explain(error)
        serving.before_stop()
        assert "unexpected ValueError at test_serve.py:" in line
        assert "hush" not in line


class TestFaults:
    def test_what_nobody_foresaw_is_a_line_of_the_log(
        self,
        cli: Cli,
        started: list[dict[str, Any]],
        told: list[MutableMapping[str, Any]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """With its trace, in the parent as in a worker; exit 1."""

        def fail(_supervisor: FakeSupervisor) -> None:
            raise RuntimeError("nobody foresaw it")

        monkeypatch.setattr(FakeSupervisor, "run", fail)
        assert cli.run("serve").exit_code == 1
        assert (told[-1]["event"], told[-1]["log_level"]) == ("parent failed", "critical")


class TestRefused:
    @pytest.mark.parametrize("by", ["option", "setting"])
    def test_several_workers_without_shared_counters(
        self, cli: Cli, started: list[dict[str, Any]], by: str
    ) -> None:
        """Each would grant every plan's whole limit: the reason, the remedy, exit 78, and nothing is made."""
        if by == "setting":
            cli.settings["PETSTORE_WORKERS"] = "2"
        message = cli.refused(78, "serve", *(["--workers", "2"] if by == "option" else []))
        assert "PETSTORE_WORKERS=2 needs shared counters" in message
        assert "set PETSTORE_VALKEY_URL=valkey://" in message
        assert started == []
        assert list(cli.folder.iterdir()) == []

    def test_port_that_is_in_use(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """Two services on one port would answer by turns; nothing is made before that is known."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", int(cli.settings["PETSTORE_PORT"])))
            other.listen()
            assert "PETSTORE_PORT" in cli.refused(1, "serve")
        assert started == []
        assert list(cli.folder.iterdir()) == []

    @pytest.mark.parametrize(
        ("fault", "remedy"),
        [
            (PermissionError(errno.EACCES, "Permission denied"), "Set PETSTORE_PORT to 1024 or above"),
            (
                OSError(errno.EADDRNOTAVAIL, "Cannot assign"),
                "Set PETSTORE_HOST to an address of this machine.",
            ),
            (socket.gaierror(-2, "Name or service not known"), "Set PETSTORE_HOST to an address of"),
        ],
    )
    def test_address_that_can_not_be_taken(
        self,
        cli: Cli,
        started: list[dict[str, Any]],
        monkeypatch: pytest.MonkeyPatch,
        fault: OSError,
        remedy: str,
    ) -> None:
        """The remedy goes with the reason: nothing has to be stopped where no other program has the port."""

        def refuse(*_: object) -> None:
            raise fault

        monkeypatch.setattr("petstore.server.binding._bind_within_three_seconds", refuse)
        message = cli.refused(1, "serve")
        assert f"{fault.strerror}. {remedy}" in message
        assert started == []

    def test_database_that_another_server_has(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """The counters of the limits live in one process."""
        with cli.hold():
            assert "Another server (process " in cli.refused(1, "serve")
        assert started == []

    def test_postgresql_database_that_another_service_has(
        self, cli: Cli, started: list[dict[str, Any]]
    ) -> None:
        """Its counters are its own, so both would grant every limit; the message names the remedy."""
        with fresh_database() as url:
            cli.settings["PETSTORE_DATABASE_URL"] = url
            assert cli.run("serve").exit_code == 0
            with cli.hold():
                message = cli.refused(1, "serve")
            assert "Another service is using the database" in message
            assert "PETSTORE_VALKEY_URL" in message
            assert len(started) == 1
            assert cli.run("serve").exit_code == 0

    def test_postgresql_database_that_is_none(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """Time does not mend it: 78, so that no supervisor starts it again and again."""
        with fresh_database() as url:
            cli.settings["PETSTORE_DATABASE_URL"] = urlsplit(url)._replace(path="/nowhere").geturl()
            assert "it has no such database" in cli.refused(78, "serve")
        assert started == []

    def test_postgresql_database_that_is_shared(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """With counters in Valkey any number of services may be there."""
        with fresh_database() as url:
            cli.settings |= {"PETSTORE_DATABASE_URL": url, "PETSTORE_VALKEY_URL": emptied_url()}
            with cli.hold():
                assert cli.run("serve").exit_code == 0
        assert len(started) == 1

    def test_address_that_is_none(self, cli: Cli, started: list[dict[str, Any]]) -> None:
        """An address of another machine can't be listened on."""
        cli.settings["PETSTORE_HOST"] = "192.0.2.1"
        assert "Can't listen on 192.0.2.1" in cli.refused(1, "serve")
        assert started == []
