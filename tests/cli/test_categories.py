"""`petstore categories`, and what its names do to other commands."""

from __future__ import annotations

from tests.cli.conftest import Cli


def test_a_name_is_given_changed_and_taken_away(empty: Cli) -> None:
    """The first command on a new database may do it; --json has the interface's members. What is not
    printable is shown as an escape."""
    assert empty.ok("categories", "name", "7", "a\u202eb") == "7  a\\u202eb\n"
    assert empty.ok("categories", "name", "7", "Dogs") == "7  Dogs\n"
    assert empty.json("categories", "name", "7", "Big dogs") == {"id": 7, "name": "Big dogs"}
    assert empty.ok("categories", "name", "--", "-9223372036854775808", "Cats").endswith("  Cats\n")
    assert empty.json("categories", "list") == [
        {"id": -(2**63), "name": "Cats"},
        {"id": 7, "name": "Big dogs"},
    ]
    assert empty.json("categories", "name", "7", "--remove") == {"id": 7, "name": "Big dogs"}
    assert empty.ok("categories", "list") == "                  ID  NAME\n-9223372036854775808  Cats\n"


def test_the_list_of_animals_shows_names(empty: Cli) -> None:
    """Beside the numbers, for people; JSON is the interface's."""
    for category in ("1", "2", "1"):
        empty.ok("pets", "add", "Rex", "--category", category)
    assert "1  Rex          1  available" in empty.ok("pets", "list")
    empty.ok("categories", "name", "1", "Dogs")
    shown = empty.ok("pets", "list", "--newest")
    assert shown.splitlines() == [
        "ID  NAME  CATEGORY  STATUS     PRICE",
        " 3  Rex   1 Dogs    available  -",
        " 2  Rex   2         available  -",
        " 1  Rex   1 Dogs    available  -",
    ]
    assert empty.json("pets", "list", "--limit", "1")[0]["categoryId"] == 1


def test_animals_of_a_category_the_newest_first(empty: Cli) -> None:
    """--category and --newest combine, and --after goes on in that order."""
    for category in ("1", "2", "1", "1"):
        empty.ok("pets", "add", "Rex", "--category", category)
    result = empty.run("pets", "list", "--category", "1", "--newest", "--limit", "2")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["4", "3"]
    assert result.stderr == "There are more: add --after 3\n"
    rest = empty.json("pets", "list", "--category", "1", "--newest", "--after", "3")
    assert [pet["id"] for pet in rest] == [1]
