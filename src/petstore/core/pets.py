"""Animals: their shape, statuses and transitions."""

from __future__ import annotations

import string
from enum import StrEnum
from functools import partial
from typing import Annotated

import msgspec

from petstore.core.errors import Conflict
from petstore.core.fields import STAFF, Value, fields_of, published, recorded, values_of
from petstore.core.members import Schema
from petstore.core.values import PAGE_LIMIT_DEFAULT, Amount, Int64, Name, Remark

# A search by the beginning of a name reads at most this many animals where it has a filter.
PETS_SCANNED_MAX = 1_000
Price = Annotated[Amount | None, STAFF]
Note = Annotated[Remark | None, STAFF]


class PetStatus(StrEnum):
    """Availability of an animal (specification, Resources)."""

    AVAILABLE = "available"
    PENDING = "pending"
    SOLD = "sold"


# A look-up here costs a fifth of a call of the enumeration.
STATUSES = {status.value: status for status in PetStatus}

# Transitions, from -> to. The specification shows none (States): see docs/specification-gaps.md.
# Same to same is a no-op and not listed.
TRANSITIONS: dict[PetStatus, frozenset[PetStatus]] = {
    PetStatus.AVAILABLE: frozenset({PetStatus.PENDING, PetStatus.SOLD}),
    PetStatus.PENDING: frozenset({PetStatus.AVAILABLE, PetStatus.SOLD}),
    PetStatus.SOLD: frozenset({PetStatus.AVAILABLE}),
}


class NewPet(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An animal to add (specification, NewPet). `category_id` is any int64."""

    name: Name
    category_id: Int64
    status: PetStatus = PetStatus.AVAILABLE
    price: Price = None
    note: Note = None


class PetChange(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The members of an animal that change: at least one. The others are UNSET and stay as they are."""

    name: Name | msgspec.UnsetType = msgspec.UNSET
    category_id: Int64 | msgspec.UnsetType = msgspec.UNSET
    status: PetStatus | msgspec.UnsetType = msgspec.UNSET
    price: Price | msgspec.UnsetType = msgspec.UNSET
    note: Note | msgspec.UnsetType = msgspec.UNSET


class Pet(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An animal of the store (specification, Pet). `id` is positive, assigned once and never reused.

    The members after it are NewPet's.
    """

    id: int
    name: Name
    category_id: Int64
    status: PetStatus
    price: Price = None
    note: Note = None


FIELDS = fields_of(NewPet)
MEMBERS = tuple(field.member for field in FIELDS)
# The members that the journal has in hundredths.
AMOUNTS = frozenset(field.member for field in FIELDS if field.is_amount)
values_of_pet = values_of(FIELDS)
# As clients see an animal.
PublicPet = published(Pet)
shown_pet = partial(msgspec.convert, type=PublicPet, from_attributes=True)
recorded_pet = recorded(NewPet)


def written_pet(pet: Pet) -> tuple[Value, ...]:
    """The values of MEMBERS as lists, forms and commands have them."""
    return tuple([field.write(value) for field, value in zip(FIELDS, values_of_pet(pet), strict=True)])


def check_transition(pet_id: int, before: PetStatus, after: PetStatus) -> None:
    """Raise Conflict unless an animal may go from `before` to `after`."""
    if before is not after and after not in TRANSITIONS[before]:
        allowed = ", ".join(sorted(TRANSITIONS[before]))
        raise Conflict(f"Animal {pet_id} is {before}: it can become {allowed}, not {after}.")


def held_by_order(order_id: int, pet_id: int, prevented: str) -> str:
    """The message while an open order holds an animal; `prevented` is a clause such as STATUS_IS_HELD."""
    return f"Order {order_id} holds animal {pet_id}, so {prevented}; deliver or cancel the order first."


STATUS_IS_HELD = "its status can't change"
_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def lower_ascii(name: str) -> str:
    """A name as searches compare it: with ASCII letters in lower case."""
    return name.translate(_LOWER_ASCII)


NEW_PET = Schema(NewPet, "a new animal")
PET_CHANGE = Schema(PetChange, "a change of an animal")


class PetQuery(msgspec.Struct, frozen=True):
    """The animals to list: ascending by id, or the newest first, at most `limit`.

    `ids`, `status` and `category_id` (None: no such filter) combine. `after_id`: the last animal of the page
    before; 0 for the first page.
    """

    limit: int = PAGE_LIMIT_DEFAULT
    status: PetStatus | None = None
    ids: tuple[int, ...] | None = None
    after_id: int = 0
    category_id: int | None = None
    newest_first: bool = False


class PetPage(msgspec.Struct, frozen=True):
    """`has_more`: when the page was read, there were matching animals after it."""

    pets: list[Pet]
    has_more: bool


class NameQuery(msgspec.Struct, frozen=True):
    """The animals to find by the beginning of their names, in that order: at most `limit`.

    Letters of ASCII match in upper and lower case. `status` and `category_id` (None: no such filter) combine;
    with one of them at most PETS_SCANNED_MAX animals are read, however few match.
    """

    prefix: str
    limit: int = PAGE_LIMIT_DEFAULT
    status: PetStatus | None = None
    category_id: int | None = None


class PetChangedMeanwhile(Conflict):
    """Somebody has changed the animal since it was read. `current` is what it is now."""

    def __init__(self, current: Pet) -> None:
        super().__init__(f"Animal {current.id} has changed meanwhile; load it again, and repeat your change.")
        self.current = current


class AddedPet(msgspec.Struct, frozen=True):
    """An added animal; `replayed` when an earlier request with the same Idempotency-Key added it."""

    pet: Pet
    replayed: bool
