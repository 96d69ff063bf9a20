"""Every operation, by both clients, on the real service."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from datetime import UTC, datetime, timedelta, timezone

import pytest
from petstore_client import (
    Conflict,
    Forbidden,
    InvalidParameter,
    NotFound,
    OperationDeprecated,
    Page,
    Pet,
    Petstore,
)
from petstore_client._sync.resources import Pets
from petstore_client.calls import OPERATIONS

from petstore.api.openapi.document import OpenApiDocument
from petstore.core import pets
from petstore.core.fields import fields_of, published
from tests.client.kit import Scripted, Served, answer


def test_the_client_has_every_operation_of_the_contract() -> None:
    """Each operationId has its method and path."""
    contract = {
        operation["operationId"]: (method.upper(), re.sub(r"\{(pet|order|webhook)Id\}", "{id}", path))
        for path, methods in OpenApiDocument([]).read()["paths"].items()
        for method, operation in methods.items()
        if isinstance(operation, dict) and "operationId" in operation
    }
    assert contract == OPERATIONS


def test_an_animal_has_the_same_public_members_everywhere() -> None:
    """The structs, the contract's schemas, the client's model and its methods name the same members."""
    schemas = OpenApiDocument([]).read()["components"]["schemas"]
    for struct in (pets.NewPet, pets.Pet, pets.PetChange):
        members = [field.member for field in fields_of(published(struct))]
        assert list(schemas[struct.__name__]["properties"]) == members
    new, shown, change = (
        [field.name for field in fields_of(published(struct))]
        for struct in (pets.NewPet, pets.Pet, pets.PetChange)
    )
    assert [field.name for field in dataclasses.fields(Pet)] == [*shown, "etag"]
    assert set(new) <= inspect.signature(Pets.create).parameters.keys()
    assert set(change) <= inspect.signature(Pets.update).parameters.keys()


def test_animals_are_created_read_changed_and_removed(petstore: Petstore) -> None:
    """What was sent comes back; what is not given stays; what is gone is NotFound."""
    pet = petstore.pets.create(name="Rex \N{DOG FACE}", category_id=2**63 - 1)
    assert pet == Pet(pet.id, "Rex \N{DOG FACE}", 2**63 - 1, "available")
    assert petstore.pets.get(pet.id) == pet
    assert petstore.pets.update(pet.id, status="pending") == Pet(pet.id, pet.name, pet.category_id, "pending")
    assert petstore.pets.update(pet.id, name="Max", category_id=-1).name == "Max"
    petstore.pets.delete(pet.id)
    for gone in (petstore.pets.get, petstore.pets.delete):
        with pytest.raises(NotFound) as caught:
            gone(pet.id)
        assert caught.value.request_id
        assert caught.value.outcome_unknown is False


def test_a_list_has_all_animals_of_all_pages(service: Served, petstore: Petstore) -> None:
    """A list has all animals in the asked order, with every filter kept from page to page."""
    made = [petstore.pets.create(name=f"n{number}", category_id=77) for number in range(5)]
    assert [*petstore.pets.list(category_id=77, page_size=2)] == made
    assert [*petstore.pets.list(category_id=77, page_size=2, order="-id")] == made[::-1]
    assert [*petstore.pets.list(category_id=77, status="sold")] == []
    for pet in made:
        petstore.pets.delete(pet.id)


def test_pages_are_fetched_one_at_a_time(petstore: Petstore) -> None:
    """A page's cursor, kept as text as for a web page, leads to the next one with the same filters alone."""
    made = [petstore.pets.create(name=f"n{number}", category_id=79) for number in range(3)]
    first = petstore.pets.page(limit=2, category_id=79, order="-id")
    assert [*first.items] == made[:0:-1]
    assert first.next_cursor
    last = petstore.pets.page(limit=2, category_id=79, order="-id", cursor=first.next_cursor)
    assert last == Page((made[0],), None)
    with pytest.raises(InvalidParameter, match="cursor"):
        petstore.pets.page(category_id=79, cursor=first.next_cursor)
    assert petstore.pets.page(ids=[]) == Page((), None)
    orders = [petstore.orders.place(pet.id) for pet in made]
    for order in orders:
        petstore.orders.cancel(order.id)
    for pet in made:
        petstore.pets.delete(pet.id)
    page = petstore.orders.page(limit=1)
    while page.next_cursor:
        page = petstore.orders.page(limit=1, cursor=page.next_cursor)
    assert page.items[0].id == orders[-1].id


def test_a_list_asks_only_for_the_pages_that_are_read(service: Served) -> None:
    """An iterator that is left does not go on."""
    petstore = service.client("sync")
    for number in range(3):
        petstore.pets.create(name=f"n{number}", category_id=78)
    before = len(service.seen)
    next(petstore.pets.list(category_id=78, page_size=1))
    assert len(service.seen) - before == 1


def test_animals_by_identifiers_are_asked_for_by_the_hundred(service: Served, petstore: Petstore) -> None:
    """Each one once, those that do not exist left out; no identifiers ask for nothing."""
    made = [petstore.pets.create(name="one", category_id=1) for _ in range(2)]
    before = len(service.seen)
    wanted = [pet.id for pet in made]
    assert petstore.pets.get_many([*wanted, *wanted, *range(10**6, 10**6 + 150)]) == made
    assert len(service.seen) - before == 2
    assert petstore.pets.get_many([]) == [*petstore.pets.list(ids=[])] == []
    assert len(service.seen) - before == 2


def test_orders_are_placed_moved_and_cancelled(petstore: Petstore) -> None:
    """Staff and the account move orders; a ship date keeps its moment, and None takes it back."""
    pet = petstore.pets.create(name="Mia", category_id=1)
    order = petstore.orders.place(pet.id)
    assert (order.pet_id, order.status, order.ship_date, order.complete) == (pet.id, "placed", None, False)
    with pytest.raises(Conflict):
        petstore.orders.place(pet.id)
    with pytest.raises(Conflict):
        petstore.pets.delete(pet.id)
    petstore.orders.cancel(order.id)
    assert petstore.orders.get(order.id).status == "cancelled"
    second = petstore.orders.place(pet.id, reference="PO 7 ü")
    assert (order.reference, second.reference) == (None, "PO 7 ü")
    assert petstore.orders.update(second.id, status="approved").status == "approved"
    shipped = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
    petstore.orders.update(second.id, ship_date=shipped)
    assert petstore.orders.update(second.id, status="approved").ship_date == shipped
    assert petstore.orders.update(second.id, ship_date=None).ship_date is None
    done = petstore.orders.update(second.id, status="delivered", ship_date=shipped)
    assert (done.ship_date, done.complete) == (shipped, True)
    assert second.id in [each.id for each in petstore.orders.list(status="delivered", page_size=1)]
    of_all = [each for each in petstore.orders.list(scope="all", page_size=1) if each.id == second.id]
    assert [each.account for each in of_all] == [petstore.usage().account]
    assert done.account is None
    local = shipped.astimezone(timezone(timedelta(hours=1, minutes=1, seconds=1)))
    assert petstore.orders.update(second.id, ship_date=local).ship_date == shipped
    with pytest.raises(NotFound):
        petstore.orders.get(10**9)


def test_usage_and_categories_are_read(petstore: Petstore) -> None:
    """Every member of the contract, with dates as dates."""
    usage = petstore.usage()
    assert (usage.account, usage.plan, usage.key.access) == ("tests", "enterprise", "manage")
    assert usage.minute.used >= 1
    assert usage.minute.reset_at.tzinfo
    assert len(usage.days) == 90
    assert petstore.categories.list() == []


def test_a_key_of_too_low_a_level_is_forbidden(service: Served, kind: str, free_key: str) -> None:
    """The message names the level that the operation takes."""
    with pytest.raises(Forbidden, match="manage"):
        service.client(kind, free_key).pets.delete(1)


def test_a_change_of_nothing_is_refused_before_it_is_sent(service: Served) -> None:
    """The error names what may be given; a ship date needs a time zone."""
    petstore = service.client("sync")
    before = len(service.seen)
    with pytest.raises(ValueError, match="name, category_id, status"):
        petstore.pets.update(1)
    with pytest.raises(ValueError, match="time zone"):
        petstore.orders.update(1, ship_date=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="years 1 to 9999"):
        petstore.orders.update(1, ship_date=datetime.min.replace(tzinfo=timezone(timedelta(hours=1))))
    assert len(service.seen) == before


def test_the_deprecated_operation_warns_once_with_its_date(service: Served, kind: str) -> None:
    """The warning is at the program's line, once in a process, also if it raises, with the answer's date."""
    petstore = service.client(kind)
    service.runtime.warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with pytest.raises(NotFound):
                petstore.pets.get_by_path(10**9)
    assert [each.category for each in caught] == [OperationDeprecated]
    assert re.search("05 Dec 2030.*pets.get", str(caught[0].message))
    if kind == "sync":
        assert caught[0].filename == __file__


def test_unknown_members_and_states_are_passed_over(scripted: Scripted) -> None:
    """A later service may send more."""
    pet = {"id": 7, "name": "Rex", "categoryId": 1, "status": "adopted", "chip": "new"}
    petstore, _ = scripted(answer(200, [pet]))
    assert petstore.pets.get(7) == Pet(7, "Rex", 1, "adopted")  # type: ignore[arg-type]
