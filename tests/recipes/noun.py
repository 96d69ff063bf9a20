"""Suppliers, a word of the business, added by the recipe: commands and pages add, list and rename them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.journal import written
from tests.support.service import Shop


def test_commands_add_rename_and_list_them(tmp_path: Path) -> None:
    """Commands add, rename and list suppliers, as text and as JSON; an unknown supplier is named."""
    cli = Cli(tmp_path, ManualClock())
    cli.ok("db", "migrate")
    assert cli.ok("suppliers", "add", "Happy Paws") == "1  Happy Paws\n"
    assert cli.json("suppliers", "rename", "1", "Paws") == {"id": 1, "name": "Paws"}
    assert cli.json("suppliers", "list") == [{"id": 1, "name": "Paws"}]
    assert "Supplier 9 does not exist." in cli.refused(1, "suppliers", "rename", "9", "Paws")
    assert cli.ok("journal", "--about", "supplier:1").count("supplier:1") == 2


async def test_pages_add_rename_and_list_them(shop: Shop) -> None:
    """The menu leads there, the page of one has its history, and a colleague's change is not overwritten."""
    staff = await Visitor(shop).sign_in_as("staff")
    assert "Suppliers" in (await staff.get("")).text
    shown = await staff.submit(await staff.get("suppliers"), "suppliers", name="Happy Paws")
    assert "Supplier added" in shown.text
    await shop.store.suppliers.rename(1, "Paws", "cli:ann")
    late = await staff.submit(shown, "suppliers/1", name="Dogs")
    assert (late.status, "Supplier 1 is called Paws now." in late.text) == (409, True)
    assert "Dogs" in (await staff.submit(late, "suppliers/1", name="Dogs")).text
    assert (await staff.submit(await staff.get("suppliers"), "suppliers", name=" ")).status == 400
    assert await written(shop.store, "supplier:1") == [
        f"supplier.{action} supplier:1" for action in ("added", "renamed", "renamed")
    ]
