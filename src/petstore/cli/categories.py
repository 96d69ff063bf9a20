"""`petstore categories`: names of categories, for staff."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.groups import LazyGroup
from petstore.cli.output import write_record, write_records
from petstore.cli.types import INT64, checked
from petstore.core.categories import Category, check_category_name
from petstore.core.printable import printable

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


@click.group(cls=LazyGroup)
def categories() -> None:
    """Names of categories: labels, an animal may be of any."""


@categories.offers("list", "petstore categories list")
def list_categories(session: Session, as_json: bool) -> None:
    """List the categories that have a name, by id."""
    found = read_store(session, lambda store: store.categories.all())
    write_records(
        [msgspec.to_builtins(category) for category in found],
        {"ID": "id", "NAME": "name"},
        as_json,
        empty="No category has a name.",
    )


@categories.offers("name", "petstore categories name 1 Dogs", "petstore categories name 1 --remove")
@click.argument("category_id", type=INT64, metavar="ID")
@click.argument("name", required=False, callback=checked(check_category_name))
@click.option("--remove", is_flag=True, help="Take its name away; its animals stay in it.")
def name_category(session: Session, category_id: int, name: str | None, remove: bool, as_json: bool) -> None:
    """Give a category a name, or another one.

    ID is any int64; put `--` before a negative one. NAME is 1 to 100 characters, kept exactly as given.
    Prints the category, with --remove as it was.
    """
    if (name is None) is not remove:
        raise click.UsageError("Give either NAME or --remove.")

    def change(store: Store) -> Awaitable[Category]:
        if name is None:
            return store.categories.unname(category_id, session.actor)
        return store.categories.name(category_id, name, session.actor)

    category = with_store(session, change)
    write_record(category, f"{category.id}  {printable(category.name)}", as_json)
