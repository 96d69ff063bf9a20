"""`petstore pets`: animals for staff, under the same rules as the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.groups import LazyGroup
from petstore.cli.output import asks, confirm, echo_err, write_record, write_records, yes_option
from petstore.cli.stock import export_pets, import_pets
from petstore.cli.types import (
    ID,
    INT64,
    PET_STATUS,
    checked_name,
    field_option,
    limit_option,
    option_name,
    options,
)
from petstore.core.pets import (
    FIELDS,
    MEMBERS,
    STATUSES,
    NewPet,
    Pet,
    PetChange,
    PetPage,
    PetQuery,
    PetStatus,
    written_pet,
)
from petstore.core.printable import printable

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


_CLEARABLE = {field.name: field for field in FIELDS if field.takes_null}
_clearable_options = options(*[field_option(field, empty="none") for field in _CLEARABLE.values()])


@click.group(cls=LazyGroup)
def pets() -> None:
    """The animals of the store: list, add, change, remove."""


@pets.offers(
    "list",
    "petstore pets list --status available",
    "petstore pets list --limit 100 --after 100      # the next hundred",
    "petstore pets list --category 1 --newest",
)
@click.option("--status", type=PET_STATUS, help="Only animals of this status.")
@click.option("--category", type=INT64, metavar="N", help="Only animals of this category.")
@click.option("--newest", is_flag=True, help="The newest first.")
@limit_option
@click.option(
    "--after", type=ID, metavar="ID", help="Only animals with a greater id; with --newest, a smaller one."
)
def list_pets(
    session: Session,
    status: str | None,
    category: int | None,
    newest: bool,
    limit: int,
    after: int | None,
    as_json: bool,
) -> None:
    """List animals in the order of their ids.

    When there are more, standard error says how to go on.
    """
    wanted = PetStatus(status) if status else None
    query = PetQuery(limit, wanted, after_id=after or 0, category_id=category, newest_first=newest)

    async def read(store: Store) -> tuple[PetPage, dict[object, str]]:
        page = await store.pets.page(query)
        return page, {each.id: f"{each.id} {each.name}" for each in await store.categories.all()}

    page, labels = read_store(session, read)
    write_records(
        [_record(pet) for pet in page.pets],
        {
            "ID": "id",
            "NAME": "name",
            "CATEGORY": lambda pet: labels.get(pet["categoryId"], pet["categoryId"]),
            "STATUS": "status",
            **{field.label.upper(): field.member for field in _CLEARABLE.values() if not field.has_lines},
        },
        as_json,
        empty="No animals match.",
    )
    if page.has_more:
        echo_err(f"There are more: add --after {page.pets[-1].id}")


@pets.offers(
    "add", "petstore pets add Rex --category 1", 'petstore pets add "Lady Luna" --category 2 --status pending'
)
@click.argument("name", callback=checked_name)
@click.option("--category", required=True, type=INT64, metavar="N", help="Its category: any int64.")
@click.option(
    "--status",
    type=PET_STATUS,
    default=PetStatus.AVAILABLE.value,
    show_default=True,
    help="Its status from the start.",
)
@_clearable_options
def add_pet(session: Session, /, name: str, category: int, status: str, as_json: bool, **others: Any) -> None:
    """Add an animal.

    NAME is 1 to 255 characters, kept exactly as given. Put `--` before a name that begins with a dash.
    """
    known = {each: value for each, value in others.items() if value is not UNSET}
    new = NewPet(name, category, PetStatus(status), **known)
    created = with_store(session, lambda store: store.pets.add(new, session.actor))
    _write_pet(created.pet, as_json)


@pets.offers("show", "petstore pets show 7", "petstore pets show 7 --json")
@click.argument("pet_id", type=ID, metavar="ID")
def show_pet(session: Session, pet_id: int, as_json: bool) -> None:
    """Show an animal."""
    _write_pet(read_store(session, lambda store: store.pets.get(pet_id)), as_json)


@pets.offers(
    "set",
    "petstore pets set 7 --status sold",
    'petstore pets set 7 --name "Lady Luna" --category 2',
    'petstore pets set 7 --price 12.50 --note "Shy; feed twice a day."',
)
@click.argument("pet_id", type=ID, metavar="ID")
@click.option("--name", callback=checked_name, help="1 to 255 characters, kept exactly as given.")
@click.option("--category", "category_id", type=INT64, metavar="N", help="Any int64.")
@click.option("--status", type=PET_STATUS, help="See above.")
@_clearable_options
def set_pet(session: Session, /, pet_id: int, as_json: bool, **given: Any) -> None:
    """Change members of an animal.

    \b
    available -> pending, sold
    pending   -> available, sold
    sold      -> available (a return)

    Values that it has already change nothing. While an open order holds the animal, the order decides its
    status.
    """
    given["status"] = STATUSES.get(given["status"])
    wanted = {name: value for name, value in given.items() if value is not None or name in _CLEARABLE}
    change = PetChange(**wanted)
    if change == PetChange():
        *first, last = map(option_name, FIELDS)
        raise click.UsageError(f"Nothing to change: give {', '.join(first)} or {last}.")
    _write_pet(with_store(session, lambda store: store.pets.change(pet_id, change, session.actor)), as_json)


@pets.offers("remove", "petstore pets remove 7", "petstore pets remove 7 --yes")
@click.argument("pet_id", type=ID, metavar="ID")
@yes_option
def remove_pet(session: Session, pet_id: int, yes: bool, as_json: bool) -> None:
    """Remove an animal for good; its journal stays.

    Shows what it removes, and asks on a terminal. Refused while an open order holds the animal.
    """
    if asks(yes):
        pet = with_store(session, lambda store: store.pets.get(pet_id))
        confirm(f"Remove {_line_of(pet)}?")
    _write_pet(with_store(session, lambda store: store.pets.remove(pet_id, session.actor)), as_json)


def _write_pet(pet: Pet, as_json: bool) -> None:
    write_record(_record(pet), _line_of(pet), as_json)


def _line_of(pet: Pet) -> str:
    members = _record(pet)
    known = [(field.label.lower(), members[field.member]) for field in _CLEARABLE.values()]
    further = [f"  {printable(f'{label} {value}')}" for label, value in known if value is not None]
    return f"{pet.id}  {printable(pet.name)}  category {pet.category_id}  {pet.status}{''.join(further)}"


def _record(pet: Pet) -> dict[str, object]:
    return {"id": pet.id, **dict(zip(MEMBERS, written_pet(pet), strict=True))}


pets.add_command(import_pets)
pets.add_command(export_pets)
