"""`petstore limits check`: what the shared counters say about themselves, on a real Valkey."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from petstore.cli.groups import EXIT_UNAVAILABLE
from tests.cli.conftest import Cli
from tests.support.cases import every_case
from tests.support.valkey import ValkeyServer


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer().start() as opened:
        yield opened


@pytest.fixture
def shared(cli: Cli, server: ValkeyServer) -> Cli:
    """The program with the settings of several replicas, and a clock that agrees with the server's."""
    cli.settings["PETSTORE_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"  # nothing is asked there
    cli.settings["PETSTORE_VALKEY_URL"] = server.url
    cli.clock.ms = int(server.client("TIME")[0]) * 1_000
    return cli


class TestCheck:
    def test_a_server_that_suits(self, shared: Cli, server: ValkeyServer) -> None:
        """No warning; the same for people, a line for each. Snapshots without a log are warned of: they are
        what Valkey does by default."""
        report = shared.json("limits", "check")
        assert report["valkey"] == str(server.socket)
        assert report["version"].split(".")[0].isdigit()
        assert (report["persistence"], report["warnings"]) == ("nothing", [])
        assert abs(report["clockAheadSeconds"]) <= 2
        server.client("CONFIG", "SET", "appendonly", "yes")
        result = shared.run("limits", "check")
        assert [line.split()[0] for line in result.stdout.splitlines()] == [
            *("valkey", "version", "persistence", "clock"),
        ]
        assert "log" in result.stdout
        assert (result.exit_code, result.stderr) == (0, "")
        server.client("CONFIG", "SET", "appendonly", "no")
        server.client("CONFIG", "SET", "save", "3600 1 300 100")
        result = shared.run("limits", "check")
        assert result.exit_code == 0
        assert result.stderr.startswith("warning: It keeps snapshots and no log")
        assert result.stderr.count("\n") == 1
        assert shared.json("limits", "check")["persistence"] == "snapshots"

    @every_case(("seconds", "told"), [(60, " s behind this"), (-120, "ahead of")])
    def test_clocks_that_differ_are_warned_of(self, shared: Cli, seconds: int, told: str) -> None:
        """Two seconds are the most; the warning is in words."""
        shared.clock.advance(seconds)
        (warning,) = shared.json("limits", "check")["warnings"]
        assert told in warning

    def test_a_user_who_may_not_ask(self, shared: Cli, server: ValkeyServer) -> None:
        """It is not a failure: what is not known is said."""
        server.client("ACL", "SETUSER", "default", "-config", "-info")
        report = shared.json("limits", "check")
        assert (report["persistence"], report["version"]) == ("unknown", "unknown")
        (warning,) = report["warnings"]
        assert "+info" in warning

    def test_a_server_that_can_not_be_reached_or_can_not_write(
        self, shared: Cli, server: ValkeyServer
    ) -> None:
        """Exit code 75, and why."""
        server.client("REPLICAOF", "127.0.0.1", 1)
        assert "READONLY" in shared.refused(EXIT_UNAVAILABLE, "limits", "check")
        server.client("REPLICAOF", "NO", "ONE")
        server.client("CONFIG", "SET", "requirepass", "secret")
        assert ".." not in shared.refused(EXIT_UNAVAILABLE, "limits", "check")
        server.kill()
        told = shared.refused(EXIT_UNAVAILABLE, "limits", "check")
        assert "it can't be connected to: Connection refused. Check PETSTORE_VALKEY_URL." in told

    def test_no_shared_counters(self, cli: Cli) -> None:
        """One process counts by itself; that is not an error."""
        result = cli.run("limits", "check")
        assert (result.exit_code, result.stdout) == (0, "")
        assert "PETSTORE_VALKEY_URL is not set" in result.stderr
        assert cli.json("limits", "check") is None
