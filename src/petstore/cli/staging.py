"""`petstore staging`: what staging holds; production is read, and only what may leave it."""

from __future__ import annotations

import click

from petstore.cli.context import Session, with_store
from petstore.cli.groups import LazyGroup
from petstore.cli.output import asks, confirm, write_record, yes_option
from petstore.cli.types import WholeNumber
from petstore.core.arguments import database_url, naming
from petstore.core.errors import ConfigurationError
from petstore.core.stages import Stage
from petstore.core.staging import ANIMALS_MAX, Content, seeded

_KEPT = "Accounts, keys, webhooks, contacts and people of staging stay."


@click.group(cls=LazyGroup)
def staging() -> None:
    """Fill staging from production or a seed, or empty it.

    These commands need PETSTORE_STAGE=staging, and change nothing elsewhere.
    """


@staging.offers(
    "refresh",
    "petstore staging refresh /var/backups/petstore.db",
    "petstore staging refresh postgresql://reader@db.example/petstore --animals 50000",
    "petstore staging refresh --seed 1",
)
@click.argument("source", required=False)
@click.option("--seed", type=WholeNumber(0, 2**31), help="Make animals instead, the same for the same seed.")
@click.option(
    "--animals",
    type=WholeNumber(1, ANIMALS_MAX),
    default=10_000,
    show_default=True,
    help="How many animals to copy at most; from production, the newest.",
)
@yes_option
def refresh(
    session: Session, source: str | None, seed: int | None, animals: int, yes: bool, as_json: bool
) -> None:
    """Replace staging's animals, orders and names of categories.

    SOURCE is production's database or a backup of it: a path, or a URL. Animals and names of categories are
    read there, with their identifiers, and names and plans of open accounts; keys, contacts, prices, notes,
    people, orders, webhooks and the journal never leave production. Keys, webhooks, contacts and people of
    staging stay. Programs that follow events have to list the animals anew.
    """
    if (source is None) is (seed is None):
        raise click.UsageError("Give either SOURCE or --seed.", click.get_current_context())
    _require_staging(session)
    content = _cut(session, source, animals) if source is not None else seeded(seed or 0, animals)
    _fill(session, content, yes, as_json)


@staging.offers("reset", "petstore staging reset", "petstore staging reset --yes")
@yes_option
def reset(session: Session, yes: bool, as_json: bool) -> None:
    """Remove staging's animals, orders and names of categories.

    Accounts, keys, webhooks, contacts and people of staging stay.
    """
    _require_staging(session)
    _fill(session, Content(), yes, as_json)


def _require_staging(session: Session) -> None:
    if not session.settings.is_staging:
        raise ConfigurationError(
            "This is a command of staging: set PETSTORE_STAGE=staging and staging's PETSTORE_DATABASE_URL;"
            " nothing was changed."
        )


def _cut(session: Session, source: str, animals: int) -> Content:
    from petstore.wiring import administration

    # First: by its stamp staging's own database is known under any address.
    with_store(session, lambda store: store.stages.stamp(Stage.STAGING))
    with naming("SOURCE"):
        return administration.cut_production(session.settings, database_url(source), session.clock, animals)


def _fill(session: Session, content: Content, yes: bool, as_json: bool) -> None:
    counts = {
        "animals": len(content.pets),
        "categories": len(content.categories),
        "accounts": len(content.accounts),
    }
    name = session.backend.name
    if asks(yes):
        what = "Replace" if content.pets else "Remove"
        confirm(f"{what} the animals, orders and names of categories of {name}? {_KEPT}")
    with_store(session, lambda store: store.staging.fill(content, session.actor))
    said = "filled: " + ", ".join(f"{noun} {count:,}" for noun, count in counts.items())
    text = f"{name} is {'empty' if content == Content() else said}. {_KEPT}"
    write_record({"database": name, **counts}, text, as_json)
