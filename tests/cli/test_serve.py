"""`petstore serve` up to the moment at which workers are started; the rest is in tests/e2e."""

from __future__ import annotations

import asyncio
import errno
import re
import shlex
import socket
from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import apsw
import pytest
import structlog
from structlog.testing import capture_logs

from petstore import config
from petstore.core.keys import KEY_PATTERN, mint
from petstore.ops import logs
from petstore.storage.postgres import upkeep
from petstore.wiring.administration import backend_of
from tests.cli.conftest import Cli
from tests.cli.test_root import LEAVES
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.postgres import fresh_database, plain_user
from tests.support.postgres import run as execute
from tests.support.valkey import emptied_url
from tools.servers.ports import free_port


class FakeSupervisor:
    """Takes what the parent of the workers would take, and comes back at once."""

    started: list[dict[str, Any]]

    def __init__(self, job: object, **options: Any) -> None:
        self.options = options | {"job": job}

    def run(self) -> bool:
        self.started.append(self.options)
        return True


class Service(Cli):
    """A command line whose `serve` starts no workers."""

    def __init__(self, cli: Cli, events: list[MutableMapping[str, Any]]) -> None:
        super().__init__(cli.folder, cli.clock)
        self.events = events
        self.started = FakeSupervisor.started = []

    def start(self) -> str:
        """Serve, and stop at once; standard error."""
        before = len(self.started)
        result = self.run("serve")
        assert (result.exit_code, result.stdout, len(self.started)) == (0, "", before + 1), result.output
        return result.stderr

    def refuse(self, code: int, *options: str) -> str:
        """The line by which the start is refused, before any worker."""
        before = len(self.started)
        message = self.refused(code, "serve", *options)
        assert len(self.started) == before
        return message

    def checks(self) -> list[str]:
        """What the start has warned of."""
        return [event["message"] for event in self.events if event["event"] == "start check"]


@pytest.fixture
def service(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service on a free port, with the events of the parent's log caught."""
    output = logs.Output(descriptor=-1, as_json=True, is_journal=False, is_terminal=True)
    monkeypatch.setattr("petstore.wiring.ops.start_log_of_parent", lambda _settings: output)
    monkeypatch.setattr("petstore.server.parent.Supervisor", FakeSupervisor)
    with capture_logs() as events:
        service = Service(cli, events)
        service.settings["PETSTORE_PORT"] = str(free_port())
        yield service
    structlog.reset_defaults()


@pytest.fixture
def on_postgresql(service: Service) -> Iterator[Service]:
    """The program on an empty database of a server."""
    with fresh_database() as url:
        service.settings["PETSTORE_DATABASE_URL"] = url
        yield service


@pytest.mark.parametrize(
    ("networks", "warnings"), [("10.0.0.0/8", 0), ("0.0.0.0/0", 1), ("10.0.0.0/8,::/0", 1)]
)
def test_metrics_for_every_address_are_warned_of(service: Service, networks: str, warnings: int) -> None:
    """The start goes on: a firewall may stand before it."""
    service.settings["PETSTORE_OPS_NETWORKS"] = networks
    service.start()
    assert len(service.checks()) == warnings
    assert all("PETSTORE_OPS_NETWORKS has every address" in line for line in service.checks())


@pytest.mark.parametrize(("limit", "warnings"), [(200, 1), (1_024, 0)])
def test_too_few_descriptors_are_warned_of(
    service: Service, monkeypatch: pytest.MonkeyPatch, limit: int, warnings: int
) -> None:
    """A limit of few open files gets a warning, else idle connections would keep everybody waiting."""
    monkeypatch.setattr("petstore.server.binding.resource.getrlimit", lambda _: (limit, limit))
    service.start()
    assert len(service.checks()) == warnings
    assert all("The limit of 200 open files has room for" in line for line in service.checks())


class TestFirstStart:
    def test_prints_a_key_that_works(self, service: Service) -> None:
        """A loopback start prints a key of an account `local` on the Free plan, and a curl line to paste."""
        service.settings["PETSTORE_ENVIRONMENT"] = "test"
        told = service.start()
        key, again = KEY_PATTERN.findall(told)
        assert key == again
        assert key.startswith("pets_test_")
        base = f"http://127.0.0.1:{service.settings['PETSTORE_PORT']}/v1"
        assert f"curl -i -H 'Authorization: Bearer {key}' {base}/pets" in told
        assert "account  local (id 1)" in service.ok("keys", "check", stdin=key)
        assert service.started[0]["count"] == 1
        assert service.started[0]["overlap"] is False  # two workers at once would both count

    def test_prints_a_link_to_the_console_that_works(self, service: Service) -> None:
        """The link lets an operator set a password; a second start prints none."""
        told = service.start()
        (token,) = re.findall(r"http://127\.0\.0\.1:\d+/console/link/([\w-]{43})$", told, re.MULTILINE)
        link = service.with_store(lambda store: store.sign_ins.link(token))
        assert (link.person.name, link.person.role) == ("operator", "operator")
        assert "console/link" not in service.start()
        assert all(token not in str(event) for event in service.events)

    def test_no_link_without_a_console(self, service: Service) -> None:
        """Nobody is added either, then."""
        service.settings["PETSTORE_CONSOLE"] = "off"
        assert "console/link" not in service.start()
        assert service.with_store(lambda store: store.people.all()) == []

    def test_of_two_at_once_one_issues_the_key(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Replicas that meet at an empty database: the second one goes on without a key."""
        service.ok("db", "migrate")
        service.ok("accounts", "add", "local", "--plan", "free")

        async def was_empty(_store: object) -> bool:
            return True

        monkeypatch.setattr("petstore.storage.sqlite.store.SqliteStore.is_empty", was_empty)
        assert KEY_PATTERN.search(service.start()) is None

    def test_no_key_on_an_address_that_others_reach(self, service: Service) -> None:
        """The log of a public service holds no key and no link; the operator is told how to issue one."""
        service.settings["PETSTORE_HOST"] = "0.0.0.0"
        told = service.start()
        assert KEY_PATTERN.search(told) is None
        assert "console/link" not in told
        assert "petstore accounts add NAME --plan free" in str(service.events)
        assert service.json("accounts", "list") == []
        assert service.with_store(lambda store: store.people.all()) == []

    @pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
    def test_ipv6_address_in_brackets(self, service: Service) -> None:
        """The printed address can be pasted."""
        service.settings["PETSTORE_HOST"] = "::1"
        result = service.run("serve")
        if "Can't listen" in result.stderr:
            pytest.skip("this machine has no IPv6 loopback address")
        assert f"http://[::1]:{service.settings['PETSTORE_PORT']}/v1" in result.stderr


class TestConsole:
    """Whether the start says that there is no console."""

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"PETSTORE_TRUSTED_PROXIES": "127.0.0.0/8"}, "PETSTORE_TRUSTED_PROXIES is set"),
            ({"PETSTORE_HOST": "0.0.0.0"}, "others reach 0.0.0.0"),
            ({}, None),
            ({"PETSTORE_CONSOLE": "off"}, None),
            ({"PETSTORE_CONSOLE": "on", "PETSTORE_TRUSTED_PROXIES": "127.0.0.0/8"}, None),
        ],
    )
    def test_a_line_says_why_it_is_off_and_what_turns_it_on(
        self, service: Service, settings: dict[str, str], reason: str | None
    ) -> None:
        """One, where nobody has decided it."""
        service.settings |= settings
        service.start()
        told = [event["message"] for event in service.events if event["event"] == "console off"]
        line = f"The console is off, since {reason}. PETSTORE_CONSOLE=on turns it on."
        assert told == ([] if reason is None else [line])

    def test_a_reload_that_turns_it_off_says_so(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A reload that turns the console off says so once, and those after it do not."""
        service.start()
        job = service.started[0]["job"]
        for name, value in (service.settings | {"PETSTORE_TRUSTED_PROXIES": "127.0.0.0/8"}).items():
            monkeypatch.setenv(name, value)
        for _ in range(2):
            job.renew()
        assert [event["event"] for event in service.events].count("console off") == 1


class TestChecks:
    """What is said before the first request rather than by the first failure."""

    def test_a_clock_that_is_behind(self, service: Service) -> None:
        """A clock over five minutes behind the newest record: both times are told, and the service starts."""
        service.ok("db", "migrate")
        service.ok("accounts", "add", "shop", "--plan", "free")
        service.clock.advance(-300)
        service.start()
        assert service.checks() == []
        service.clock.advance(-1)
        service.start()
        assert service.checks() == [
            f"The clock says 2027-01-15 07:55:29 UTC, and {service.database} has a record of"
            " 2027-01-15 08:00:30 UTC. Set the clock: limits, expiry of keys and usage go by it."
        ]

    def test_a_second_name_of_the_file(self, service: Service) -> None:
        """A hard link is not a backup, and commands that use it would go past SQLite's log."""
        service.ok("db", "migrate")
        service.ok("accounts", "add", "shop", "--plan", "free")
        (service.folder / "second.db").hardlink_to(service.database)
        service.start()
        (warning,) = service.checks()
        assert warning.startswith(f"{service.database} has 2 names, since there are hard links to it.")

    def test_a_disk_without_room(self, service: Service) -> None:
        """Reads are possible, so it starts; a line says why it is not ready."""
        service.ok("db", "migrate")
        service.ok("accounts", "add", "shop", "--plan", "free")
        with mounted_disk() as disk:
            disk.fail("write", apsw.FullError, suffix="-wal", times=10**9)
            service.start()
        (warning,) = service.checks()
        assert "reads are served meanwhile. The store failed: the disk" in warning

    def test_a_user_of_postgresql_who_may_only_read(self, on_postgresql: Service) -> None:
        """Exit code 78 and what to grant, instead of workers that die."""
        on_postgresql.ok("db", "migrate")
        url = on_postgresql.settings["PETSTORE_DATABASE_URL"]
        with plain_user(url, "SELECT") as plain:
            on_postgresql.settings["PETSTORE_DATABASE_URL"] = plain
            assert "may not write to it; GRANT SELECT, INSERT" in on_postgresql.refuse(78)

    def test_a_database_of_services_that_share_a_valkey(self, on_postgresql: Service) -> None:
        """The service counts by itself without Valkey's address: the start goes on, and a line says so."""

        async def note() -> None:
            store = backend_of(config.load(on_postgresql.settings)).open(ManualClock())
            await store.note_serving(with_valkey=True)
            await store.close()

        on_postgresql.start()
        assert on_postgresql.checks() == []
        asyncio.run(note())
        on_postgresql.start()
        (warning,) = on_postgresql.checks()
        assert "PETSTORE_VALKEY_URL is not set here. Set it if any of them still runs" in warning

    def test_a_copy_of_postgresql(self, on_postgresql: Service) -> None:
        """A standby may be promoted: the start is worth trying again."""
        on_postgresql.ok("db", "migrate")
        url = on_postgresql.settings["PETSTORE_DATABASE_URL"]
        execute(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET default_transaction_read_only = on")
        assert "it can't be written to: it is a copy" in on_postgresql.refuse(75)


@pytest.mark.parametrize(
    ("settings", "advised"),
    [
        ({"PETSTORE_TRUSTED_PROXIES": "192.0.2.1"}, True),
        ({"PETSTORE_TRUSTED_PROXIES": "192.0.2.1", "PETSTORE_BASE_URL": "https://shop.example/v1"}, False),
        ({}, False),
    ],
)
def test_behind_a_proxy_the_log_advises_a_base_address(
    service: Service, settings: dict[str, str], advised: bool
) -> None:
    """One line at the start: references are never made of what a request says."""
    service.settings |= settings
    service.start()
    assert ["Set it to the address for clients" in message for message in service.checks()] == [
        True
    ] * advised


def test_an_answer_waits_for_no_acknowledgement(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections have TCP_NODELAY from their listener, and so does the one that is accepted first."""
    accepted: list[int] = []

    def run(supervisor: FakeSupervisor) -> bool:
        listener = supervisor.options["job"]._listener
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            accepted.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return True

    monkeypatch.setattr(FakeSupervisor, "run", run)
    service.ok("serve")
    assert accepted == [1]


def test_an_unexpected_error_is_a_line_of_the_log(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has its trace, in the parent as in a worker; exit 1."""

    def fail(_supervisor: FakeSupervisor) -> None:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr(FakeSupervisor, "run", fail)
    assert service.run("serve").exit_code == 1
    assert (service.events[-1]["event"], service.events[-1]["log_level"]) == ("parent failed", "critical")


class TestRefused:
    def test_several_workers_without_shared_counters(self, service: Service) -> None:
        """Each would grant every plan's whole limit: the reason, the remedy, exit 78, and nothing is made."""
        message = service.refuse(78, "--workers", "2")
        service.settings["PETSTORE_WORKERS"] = "2"
        assert service.refuse(78) == message
        assert "PETSTORE_WORKERS=2 needs shared counters" in message
        assert "set PETSTORE_VALKEY_URL=valkey://" in message
        assert list(service.folder.iterdir()) == []

    @every_case(
        ("fault", "remedy"),
        [
            (PermissionError(errno.EACCES, "Permission denied"), "Set PETSTORE_PORT to 1024 or above"),
            (
                OSError(errno.EADDRNOTAVAIL, "Cannot assign"),
                "Set PETSTORE_HOST to an address of this machine.",
            ),
            (OSError(errno.EINVAL, "Invalid argument"), "Set PETSTORE_HOST to an address of this machine."),
            (socket.gaierror(-2, "Name or service not known"), "Set PETSTORE_HOST to an address of"),
        ],
    )
    def test_address_that_can_not_be_taken(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, fault: OSError, remedy: str
    ) -> None:
        """The remedy goes with the reason: nothing has to be stopped where no other program has the port."""

        def refuse(*_: object) -> None:
            raise fault

        monkeypatch.setattr("petstore.server.binding._bind_within_three_seconds", refuse)
        assert f"{fault.strerror}. {remedy}" in service.refuse(1)

    def test_a_system_without_ipv6(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """The line names the address, and the setting."""

        def refuse(*_: object) -> None:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

        monkeypatch.setattr("petstore.server.binding.socket.socket", refuse)
        service.settings["PETSTORE_HOST"] = "::1"
        message = service.refuse(1)
        assert message.startswith("petstore: Can't listen on ::1:")
        assert message.endswith("Set PETSTORE_HOST to an address of this machine.\n")

    def test_postgresql_database_that_another_service_has(
        self, on_postgresql: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each has counters of its own, so both would grant every limit; the message names the remedy."""
        on_postgresql.start()
        with on_postgresql.hold(), monkeypatch.context() as hasty:
            hasty.setattr(upkeep, "_SERVING_WAIT_MS", 100)
            message = on_postgresql.refuse(1)
        assert "Another service is using the database" in message
        assert "PETSTORE_VALKEY_URL" in message
        on_postgresql.start()

    def test_postgresql_database_that_is_shared(self, on_postgresql: Service) -> None:
        """Any number of services may be there that count in Valkey."""
        on_postgresql.settings["PETSTORE_VALKEY_URL"] = emptied_url()
        with on_postgresql.hold():
            on_postgresql.start()


# No database is opened by these; the last three change none that has data, and name what they read.
ELSEWHERE = {"config", "openapi", "completion", "limits check", "notifications kinds", "notifications test"}
ELSEWHERE |= {"db check", "db backup", "db copy"}


def example(path: str) -> str:
    """The first example of a command, without what a shell does with it."""
    shown = re.findall(rf"petstore ({path}[^#|<>\n)]*)", LEAVES[path].epilog or "")[0]
    return str(shown).replace("'", "").strip()


class TestStage:
    """A database is of production or of staging, once a service with PETSTORE_STAGE has served it (I26)."""

    def test_every_command_refuses_the_other_one(self, service: Service) -> None:
        """It changes nothing: all that open the settings' database, as their examples have it. A service
        without a stage serves neither."""
        copy = str(service.folder / "backup.db")
        stock = service.folder / "stock.csv"
        stock.write_text("name,categoryId\nRex,1\n")
        lines = {path: example(path) for path in LEAVES if path not in ELSEWHERE}
        lines |= {
            "db migrate": "db migrate",
            "db restore": f"db restore {copy} --yes {service.database}",
            "pets import": f"pets import {stock}",
            "staging refresh": "staging refresh --seed 1 --yes",
        }
        service.settings["PETSTORE_STAGE"] = "production"
        service.start()
        service.ok("db", "backup", copy)
        before = service.database.read_bytes()
        service.settings["PETSTORE_STAGE"] = "staging"
        for words in lines.values():
            message = service.refused(78, *shlex.split(words), stdin=mint("live"))
            assert message == (
                "petstore: The database is of production, and PETSTORE_STAGE is staging; nothing was changed."
                " Set PETSTORE_STAGE=production, or another PETSTORE_DATABASE_URL.\n"
            ), words
        service.settings["PETSTORE_STAGE"] = ""
        assert "of production, and PETSTORE_STAGE is not set" in service.refuse(78)
        assert service.database.read_bytes() == before
        service.settings["PETSTORE_STAGE"] = "production"
        service.start()

    def test_commands_do_without_the_setting(self, service: Service) -> None:
        """They follow the database, but for a key that its service would refuse."""
        service.settings["PETSTORE_STAGE"] = "staging"
        service.start()
        service.settings["PETSTORE_STAGE"] = ""
        service.ok("keys", "list", "local")
        assert service.refused(1, "keys", "issue", "local") == (
            "petstore: The database is of staging, whose keys begin with pets_test_; no key was issued. Set"
            " PETSTORE_STAGE=staging for this command.\n"
        )
        service.settings["PETSTORE_STAGE"] = "staging"
        assert service.ok("keys", "issue", "local").startswith("pets_test_")
        service.settings["PETSTORE_ENVIRONMENT"] = "live"
        assert "contradict" in service.refused(78, "keys", "list", "local")

    def test_a_backup_of_the_other_one_is_not_restored(self, service: Service) -> None:
        """A backup of the other stage is refused where there is a database and where there is none."""
        copy = str(service.folder / "backup.db")
        service.settings["PETSTORE_STAGE"] = "production"
        service.start()
        service.ok("db", "backup", copy)
        service.settings["PETSTORE_STAGE"] = "staging"
        service.settings["PETSTORE_DATABASE_URL"] = f"sqlite:///{service.folder}/staging.db"
        for _ in range(2):
            assert "The database is of production" in service.refused(
                78, "db", "restore", copy, "--yes", f"{service.folder}/staging.db"
            )
            service.ok("db", "migrate")

    def test_a_copy_on_a_server_keeps_it(self, service: Service) -> None:
        """`db copy` takes the stamp along."""
        service.settings["PETSTORE_STAGE"] = "staging"
        service.start()
        with fresh_database() as url:
            service.ok("db", "copy", service.settings["PETSTORE_DATABASE_URL"], url)
            service.settings |= {"PETSTORE_DATABASE_URL": url, "PETSTORE_STAGE": "production"}
            assert "The database is of staging" in service.refused(78, "keys", "list", "local")

    def test_no_counters_of_the_other_one(self, on_postgresql: Service) -> None:
        """Accounts of both have the same numbers, so one Valkey would take a request from both limits."""
        on_postgresql.settings |= {"PETSTORE_VALKEY_URL": emptied_url(), "PETSTORE_STAGE": "production"}
        on_postgresql.start()
        with fresh_database() as database:
            on_postgresql.settings |= {"PETSTORE_DATABASE_URL": database, "PETSTORE_STAGE": "staging"}
            assert "this Valkey counts for production" in on_postgresql.refuse(78)

    def test_an_address_of_valkey_that_is_none(self, on_postgresql: Service) -> None:
        """The start ends before it makes a database."""
        on_postgresql.settings["PETSTORE_VALKEY_URL"] = "http://cache"
        assert "begins with none of valkey://, valkeys:// and unix://" in on_postgresql.refuse(78)
        assert "preparing" not in [event["event"] for event in on_postgresql.events]

    def test_the_first_start_says_how_many_keys_are_refused(self, service: Service) -> None:
        """A service that had no stage says it once, with the command that shows whose they are."""
        service.settings["PETSTORE_ENVIRONMENT"] = "test"
        service.start()
        service.settings |= {"PETSTORE_STAGE": "production", "PETSTORE_ENVIRONMENT": ""}
        service.start()
        line = (
            "1 active key is for staging, and production refuses it:"
            " petstore keys list --foreign shows whose."
        )
        assert service.checks() == [line]
        service.start()
        assert service.checks() == [line]
