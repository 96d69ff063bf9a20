"""`petstore pets`: the interface's rules, on the command line."""

from __future__ import annotations

import json
import os
import pwd
from typing import Any

import apsw
import click
import pytest

from petstore.cli.main import petstore
from petstore.core.fields import Field
from petstore.core.pets import FIELDS, TRANSITIONS, PetStatus
from tests.cli.conftest import Cli


@pytest.fixture
def animals(empty: Cli) -> Cli:
    """Three animals: 1 available, 2 pending, 3 sold."""
    for name, status in (("Rex", "available"), ("Luna", "pending"), ("Mia", "sold")):
        empty.ok("pets", "add", name, "--category", "1", "--status", status)
    return empty


def test_name_cannot_change_the_terminal(empty: Cli) -> None:
    """What is not printable is shown as an escape, in JSON too, and kept as it is: also in animals that
    were added when more was allowed."""
    assert empty.ok("pets", "add", "a\u202eb", "--category", "1") == "1  a\\u202eb  category 1  available\n"
    name = "a\u202eb\x9b31mc\x7f\U000e0001名"
    connection = apsw.Connection(str(empty.folder / "petstore.db"))
    connection.execute("UPDATE pets SET name = ?", (name,))
    connection.close()
    assert "a\\u202eb\\x9b31mc\\x7f\\U000e0001名" in empty.ok("pets", "list")
    shown = empty.ok("pets", "list", "--json")
    assert '"a\\u202eb\\u009b31mc\\u007f\\udb40\\udc01名"' in shown
    assert json.loads(shown)[0]["name"] == name


class TestSet:
    def test_keeps_who_did_it(self, animals: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """The operating system's user name goes into the journal, whatever $USER says."""
        monkeypatch.setenv("USER", "mallory")
        monkeypatch.delenv("SUDO_USER", raising=False)
        user = pwd.getpwuid(os.getuid()).pw_name
        assert animals.ok("pets", "set", "1", "--status", "pending") == "1  Rex  category 1  pending\n"
        assert animals.json("journal", "--about", "pet:1", "--limit", "1") == [
            {
                "id": 4,
                "at": "2027-01-15T08:00:30.000Z",
                "actor": f"cli:{user}",
                "type": "pet.changed",
                "about": "pet:1",
                "before": {"status": "available"},
                "after": {"status": "pending"},
            }
        ]

    def test_changes_what_is_given(self, animals: Cli) -> None:
        """The rest stays; a name is kept exactly."""
        changed = animals.json("pets", "set", "2", "--name", " Ω ", "--category", "-5")
        unset = {"price": None, "note": None}
        assert changed == {"id": 2, "name": " Ω ", "categoryId": -5, "status": "pending", **unset}
        assert animals.json("pets", "show", "2") == changed
        priced = animals.json("pets", "set", "2", "--price", "0.5", "--note", "Shy.\r\nBites.")
        assert priced == {**changed, "price": "0.50", "note": "Shy.\nBites."}
        assert animals.ok("pets", "show", "2").endswith("pending  price 0.50  note Shy.\\nBites.\n")
        assert "expected an amount such as 12.50" in animals.refused(2, "pets", "set", "2", "--price", "-1")
        added = animals.json("pets", "add", "Tom", "--category", "1", "--price", "7", "--note", "New")
        assert (added["price"], added["note"]) == ("7.00", "New")

    @pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
    def test_sets_and_clears_each_field(self, animals: Cli, field: Field) -> None:
        """Each field of FIELDS has an option, and one that may be null has none after an empty text."""
        text = "sold" if field.is_choice else "7.00" if field.is_amount else "7"
        option = "--" + field.name.removesuffix("_id")
        assert str(animals.json("pets", "set", "1", option, text)[field.member]) == text
        if field.takes_null:
            assert animals.json("pets", "set", "1", option, "")[field.member] is None

    def test_help_shows_the_table_of_transitions(self) -> None:
        """What the help says is what the core does."""
        pets: Any = petstore.resolve_command(click.Context(petstore), ["pets"])[1]
        command = pets.commands["set"]
        said = {}
        for line in command.help.splitlines():
            before, arrow, after = line.partition("->")
            if arrow:
                names = after.partition("(")[0].split(",")
                said[PetStatus(before.strip())] = {PetStatus(name.strip()) for name in names}
        assert said == TRANSITIONS


class TestRemove:
    def test_a_program_is_not_asked(self, animals: Cli) -> None:
        """It removes at once where there is no terminal, and prints what the animal was."""
        assert animals.ok("pets", "remove", "2") == "2  Luna  category 1  pending\n"
        removed = animals.json("pets", "remove", "3", "--yes")
        assert (removed["id"], removed["name"], removed["status"]) == (3, "Mia", "sold")
        assert [pet["id"] for pet in animals.json("pets", "list")] == [1]
        assert "There is no animal 2" in animals.refused(1, "pets", "remove", "2")
