"""`petstore orders`. Its text is in docs/cli.md and sessions.txt; the rules are the store's."""

from __future__ import annotations

from tests.cli.conftest import Cli


def test_a_list_says_how_to_go_on(shop: Cli) -> None:
    """After the last one of a page, with the filters kept by the person who types."""
    for pet_id in ("1", "2", "3"):
        shop.ok("pets", "add", "Rex", "--category", "1")
        shop.ok("orders", "place", pet_id, "--account", "shop")
    result = shop.run("orders", "list", "--account", "1", "--limit", "2", "--json")
    assert result.stderr == "There are more: add --after 2\n"
    assert [order["id"] for order in shop.json("orders", "list", "--after", "2")] == [3]
