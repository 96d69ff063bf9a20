"""The root of the command line: help, version, completion, and what becomes of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest
import yaml

from petstore import __version__
from petstore.cli.groups import LazyGroup, explain
from petstore.cli.main import SUMMARIES, petstore
from petstore.core.errors import (
    ConfigurationError,
    OperatorError,
    PetNotFound,
    StoreDamaged,
    StoreUnavailable,
)
from petstore.ops import build
from petstore.storage.sqlite.backend import SqliteBackend
from tests.cli.conftest import Cli


def commands(
    group: click.Group = petstore, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command with its path, groups included."""
    for name in group.list_commands(click.Context(group)):
        command = group.resolve_command(click.Context(group), [name])[1]
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


RAISE = "raise the limit (ulimit -a, or the container's)."
DAMAGED = "Check PETSTORE_DATABASE_URL, or stop the server and restore a backup."
ALL = dict(commands())
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}


class TestHelp:
    def test_without_a_command(self, cli: Cli) -> None:
        """`petstore` alone, and a family alone, show their help."""
        assert cli.ok() == cli.ok("--help")
        assert "serve" in cli.ok()
        for path, command in ALL.items():
            if isinstance(command, LazyGroup):
                assert cli.ok(path) == cli.ok(path, "-h")

    def test_every_command_has_a_summary_and_an_example(self) -> None:
        """Every command has a summary of one line that fits, and every one that does something an example."""
        for path, command in ALL.items():
            assert command.help, path
            assert command.get_short_help_str(62) == command.help.split("\n", 1)[0]
            assert path not in LEAVES or f"petstore {path}" in (command.epilog or ""), path

    def test_examples_use_options_that_exist(self) -> None:
        """An example that can't work teaches nothing."""
        for path, command in LEAVES.items():
            known = {name for parameter in command.params for name in parameter.opts}
            examples = re.findall(rf"petstore {path}([^#\n]*)", command.epilog or "")
            assert set(re.findall(r"--\S+", " ".join(examples))) <= known, path

    def test_json_wherever_a_result_is_printed(self) -> None:
        """Whatever prints a result prints it for programs too."""
        for path in set(LEAVES) - {"serve", "completion", "pets export"}:
            assert "--json" in {name for each in LEAVES[path].params for name in each.opts}, path

    def test_lists_each_command_as_it_says_itself(self, cli: Cli) -> None:
        """The list loads no command, yet has each one's own summary, in the order in which one meets it."""
        listed = cli.ok("--help").split("Commands:\n")[1].split("\n\n")[0].splitlines()
        width = max(map(len, SUMMARIES))
        assert listed == [f"  {name:{width}}  {ALL[name].get_short_help_str(62)}" for name in SUMMARIES]

    def test_works_with_broken_settings(self, cli: Cli) -> None:
        """Help, version and completion never ask for the settings."""
        cli.settings["PETSTORE_NO_SUCH"] = "1"
        for path in ALL:
            assert cli.ok(*path.split(), "--help").startswith(f"Usage: petstore {path}")
        assert cli.ok("--version") == f"petstore {__version__} (commit {build.commit()})\n"
        cli.ok("completion", "bash")


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "code", "line"),
        [
            (
                StoreUnavailable("The store is busy; try again shortly."),
                75,
                "The store is busy; try again shortly.",
            ),
            (StoreDamaged("It is damaged."), 78, f"It is damaged. {DAMAGED}"),
            (ConfigurationError("PETSTORE_PORT: no."), 78, "PETSTORE_PORT: no."),
            (OperatorError("A port\n  is in use."), 1, "A port is in use."),
            (PetNotFound(7), 1, "There is no animal 7; `petstore pets list` shows them."),
            (
                PermissionError(13, "Permission denied", "/x/petstore.db"),
                1,
                "/x/petstore.db: Permission denied.",
            ),
            (OSError("first\n  second"), 1, "first second."),
            (MemoryError(), 1, f"The system allows this program no more memory: {RAISE}"),
            (
                RuntimeError("can't start new thread"),
                1,
                f"The system allows this program no further thread: {RAISE}",
            ),
        ],
    )
    def test_is_one_line_with_a_code(
        self, capsys: pytest.CaptureFixture[str], error: Exception, code: int, line: str
    ) -> None:
        """75 tells a script to try again; a file that the operating system refused is named."""
        assert explain(error) == code
        assert capsys.readouterr().err == f"petstore: {line}\n"

    def test_a_bug_is_not_hidden(self) -> None:
        """An unexpected error comes with its traceback."""
        with pytest.raises(ZeroDivisionError):
            explain(ZeroDivisionError())

    def test_an_interrupt_ends_with_130(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl+C ends with 130, as a shell has it, and says nothing."""

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(SqliteBackend, "checked_path", interrupt)
        result = cli.run("accounts", "list")
        assert (result.exit_code, result.output) == (130, "\n")

    def test_inside_another_program(self, cli: Cli) -> None:
        """Errors are raised where standalone mode is off, as click has it."""
        with pytest.raises(click.UsageError):
            petstore.main(["nothing"], standalone_mode=False)


class TestOpenapi:
    def test_the_document_comes_as_yaml_or_json(self, cli: Cli) -> None:
        """YAML unless JSON is asked for, and the same document."""
        document, shown = json.loads(cli.ok("openapi", "--json")), cli.ok("openapi")
        assert yaml.load(shown, yaml.CSafeLoader) == document
        assert document["openapi"].startswith("3.1")
        assert shown.endswith("\n")

    def test_servers_of_the_settings(self, cli: Cli) -> None:
        """What is printed can be handed to clients as it is."""
        cli.settings["PETSTORE_BASE_URL"] = "https://api.shop.example/v1"
        document = json.loads(cli.ok("openapi", "--json"))
        assert document["servers"][0]["url"] == "https://api.shop.example/v1"


@pytest.mark.parametrize(
    ("words", "index", "expected"),
    [
        ("petstore ke", 1, {"keys"}),
        ("petstore keys r", 2, {"rotate", "revoke"}),
        ("petstore pets list --st", 3, {"--status"}),
        ("petstore accounts add shop --plan b", 5, {"business"}),
    ],
)
def test_completion_offers_commands_options_and_choices(
    cli: Cli, words: str, index: int, expected: set[str]
) -> None:
    """The shell completes whatever can be typed."""
    cli.settings |= {
        "_PETSTORE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(index),
    }
    lines = cli.ok().splitlines()
    assert {line.split(",")[1] for line in lines} == expected
