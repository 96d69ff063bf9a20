"""A colour that staff have about an animal, added by the recipe."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tests.cli.conftest import Cli
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.journal import entries
from tests.support.service import Shop


async def test_staff_edit_it_and_the_interface_does_not_show_it(shop: Shop) -> None:
    """The form has it, the page and the journal show it; no answer of /v1 has it or takes it."""
    added = await shop.post({"name": "Rex", "categoryId": 1})
    staff = await Visitor(shop).sign_in_as("staff")
    shown = await staff.submit(await staff.get("pets/1"), "pets/1", colour="Red")
    assert "Colour Red" in shown.text
    assert [entry.after for entry in await entries(shop.store)][-1] == {"colour": "Red"}
    assert (await shop.ask("GET", "/v1/pets?id=1")).json() == [added.json()]
    assert (await shop.post({"name": "Mia", "categoryId": 1, "colour": "x"})).code == "invalid_body"


def test_lists_and_commands_have_it(tmp_path: Path) -> None:
    """A list with a column for it is imported; exports and listings show it. A command sets and clears it."""
    cli = Cli(tmp_path, ManualClock())
    cli.ok("db", "migrate")
    file = tmp_path / "stock.csv"
    file.write_text("name,categoryId,status,colour\r\nRex,1,available,Red\r\n", encoding="utf-8")
    cli.ok("pets", "import", str(file))
    assert [pet["colour"] for pet in cli.json("pets", "list")] == ["Red"]
    [row] = csv.DictReader(io.StringIO(cli.ok("pets", "export")))
    assert row["colour"] == "Red"
    assert cli.ok("pets", "set", "1", "--colour", "Blue").endswith("colour Blue\n")
    assert cli.json("pets", "set", "1", "--colour", "")["colour"] is None
