"""`petstore orders`. Its text is in sessions.txt; the rules are the store's."""

from __future__ import annotations

from tests.cli.conftest import Cli


def test_a_comment_of_staff(shop: Cli) -> None:
    """It comes with the order or later; an empty one takes it away."""
    shop.ok("pets", "add", "Rex", "--category", "1")
    placed = shop.json("orders", "place", "1", "--account", "shop", "--comment", "By phone.")
    assert placed["comment"] == "By phone."
    assert shop.ok("orders", "comment", "1", "Comes\non Friday.").endswith("comment    Comes\\non Friday.\n")
    assert shop.json("orders", "comment", "1", "")["comment"] is None
    assert "expected 1 to 2000 characters" in shop.refused(2, "orders", "comment", "1", "x" * 2_001)


def test_a_reference_of_the_customer(shop: Cli) -> None:
    """Orders and lists show the customer's reference, by the interface's rule. A list says how to go on."""
    for _ in range(2):
        shop.ok("pets", "add", "Rex", "--category", "1")
    place = ("orders", "place", "1", "--account", "shop", "--reference")
    assert "control characters" in shop.run(*place, "PO\n7").stderr
    assert shop.ok(*place, "PO-7").endswith("reference  PO-7\ncomment    -\n")
    assert shop.json("orders", "show", "1")["reference"] == "PO-7"
    assert shop.ok("orders", "list").endswith("  PO-7\n")
    shop.ok("orders", "place", "2", "--account", "shop")
    assert (
        shop.run("orders", "list", "--account", "1", "--limit", "1").stderr
        == "There are more: add --after 1\n"
    )
    assert [order["id"] for order in shop.json("orders", "list", "--after", "1")] == [2]
