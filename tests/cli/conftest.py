"""The command line in process: a real SQLite file, a steered clock, settings from the environment alone."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from petstore import config
from petstore.cli.context import Session, with_store
from petstore.cli.main import petstore
from petstore.wiring.administration import Store
from tests.support.backends import make_file
from tests.support.clock import ManualClock


class Cli:
    """Runs commands as a person would, on one database."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.folder = folder
        self.clock = clock
        self.database = folder / "petstore.db"
        self.settings = {"PETSTORE_DATABASE_URL": f"sqlite:///{self.database}"}

    def run(self, *arguments: str, stdin: str | bytes = "") -> Result:
        """One run of the program, with any exit status."""
        runner = CliRunner(env=self.settings)
        return runner.invoke(
            petstore, arguments, stdin, obj=Session(self.clock), prog_name="petstore", catch_exceptions=False
        )

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """What standard output holds after a run that must succeed."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, stdin: str = "") -> Any:
        """The document that a run with --json prints."""
        return json.loads(self.ok(*arguments, "--json", stdin=stdin))

    def refused(self, code: int, *arguments: str, stdin: str | bytes = "") -> str:
        """The one line by which a run explains its exit code; standard output stays empty."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("petstore: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith(".\n")
        return result.stderr

    def issue(self, account: str, *options: str) -> tuple[str, int]:
        """A new key of an account: its text and its id."""
        issued = self.json("keys", "issue", account, *options)
        return issued["key"], issued["id"]

    def with_store(self, work: Callable[[Store], Awaitable[Any]]) -> Any:
        """What happens behind the command line's back: a server at work on the same database."""
        return with_store(self.session(), work)

    def hold(self) -> AbstractContextManager[object]:
        """The database, as a server holds it."""
        return self.session().backend.hold_for_serving()

    def session(self) -> Session:
        """A session of its own, with the settings of this one."""
        session = Session(self.clock)
        session.settings = config.load(self.settings)
        return session


@pytest.fixture
def cli(tmp_path: Path, clock: ManualClock) -> Cli:
    """An empty directory without a database, and no settings but its path."""
    return Cli(tmp_path, clock)


@pytest.fixture
def empty(cli: Cli) -> Cli:
    """The program on a database that holds nothing."""
    make_file(cli.database)
    return cli


@pytest.fixture
def shop(empty: Cli) -> Cli:
    """The program on a database with one account, `shop`, on the Pro plan."""
    empty.ok("accounts", "add", "shop", "--plan", "pro")
    return empty
