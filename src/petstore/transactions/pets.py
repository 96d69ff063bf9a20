"""Animals, for both databases. The reads of requests and additions are in each database's package."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence

import msgspec
from msgspec.structs import asdict, astuple, replace

from petstore.core.errors import Conflict, PetNotFound
from petstore.core.idempotency import Creation, IdempotencyKey, fingerprint
from petstore.core.pets import (
    MEMBERS,
    PETS_SCANNED_MAX,
    STATUS_IS_HELD,
    AddedPet,
    NameQuery,
    NewPet,
    Pet,
    PetChange,
    PetChangedMeanwhile,
    PetPage,
    PetQuery,
    PetStatus,
    check_transition,
    held_by_order,
    lower_ascii,
    recorded_pet,
    shown_pet,
    values_of_pet,
)
from petstore.core.preconditions import Tags, check_match
from petstore.core.values import NAME_MAX_CHARACTERS
from petstore.transactions.idempotency import IdempotentRepository, create_once
from petstore.transactions.journal import record, record_changes
from petstore.transactions.query import count_up_to, page_by_id
from petstore.transactions.rows import (
    NEW_PET,
    ORDER_IS_OPEN,
    PET,
    PUBLIC_BUT_STATUS,
    PUBLIC_PET,
    placeholders,
    read_pet,
    read_pets,
    select,
)
from petstore.transactions.script import CATALOGUE, Script, Statement, read, reads, statement, write

_PETS = f"SELECT {select(PET)} FROM pets WHERE"
ONE = statement(f"{_PETS} id = $1", lock=" FOR UPDATE")
ADD = statement(f"INSERT INTO pets ({select(NEW_PET)}) VALUES ({placeholders(len(NEW_PET))}) RETURNING id")
_SET = ", ".join(f"{column} = ${number}" for number, column in enumerate(NEW_PET, 2))
_CHANGE = statement(f"UPDATE pets SET {_SET} WHERE id = $1")
_REMOVE = statement("DELETE FROM pets WHERE id = $1")
_OPEN_ORDERS = statement(f"SELECT id FROM orders WHERE pet_id = $1 AND {ORDER_IS_OPEN}")


def lock_pet(pet_id: int) -> Script[Pet | None]:
    """An animal that nobody else changes until the transaction ends."""
    rows = yield ONE, (pet_id,)
    return read_pet(rows[0]) if rows else None


def _get(pet_id: int) -> Script[Pet]:
    """Lock an animal as `lock_pet` does. Raises PetNotFound."""
    if (pet := (yield from lock_pet(pet_id))) is None:
        raise PetNotFound(pet_id)
    return pet


def move_pet(now_ms: int, pet: Pet, change: PetChange, actor: str, *, is_undo: bool = False) -> Script[Pet]:
    """Change an animal, found in this transaction, whatever its orders. Raises Conflict for a transition,
    unless it undoes one.

    A change to the current values gives no entry in the journal.
    """
    changed = _after(pet, change)
    if not is_undo:
        check_transition(pet.id, pet.status, changed.status)
    if changed != pet:
        yield _CHANGE, (pet.id, *values_of_pet(changed))
        before, after = members_of(pet), members_of(changed)
        yield from record_changes(now_ms, actor, "pet", pet.id, "changed", before, after)
    return changed


def _after(pet: Pet, change: PetChange) -> Pet:
    """The animal with a change."""
    members = asdict(change).items()
    return replace(pet, **{name: value for name, value in members if value is not msgspec.UNSET})


def _check_no_open_order(pet_id: int, prevented: str) -> Script[None]:
    """Raise Conflict while a placed or approved order holds the animal."""
    order_id = yield from _open_order(pet_id)
    if order_id is not None:
        raise Conflict(held_by_order(order_id, pet_id, prevented))


def _open_order(pet_id: int) -> Script[int | None]:
    """The placed or approved order that holds an animal; None when none does."""
    rows = yield _OPEN_ORDERS, (pet_id,)
    return rows[0][0] if rows else None


def members_of(pet: Pet) -> dict[str, object]:
    """The members of an animal that the journal keeps."""
    return dict(zip(MEMBERS, values_of_pet(pet), strict=True))


def add_pet(now_ms: int, new: NewPet, actor: str) -> Script[int]:
    """Add an animal; its identifier."""
    ((pet_id,),) = yield ADD, values_of_pet(new)
    yield from record(now_ms, actor, "pet", pet_id, "added", None, recorded_pet(new))
    return int(pet_id)


def page_of(query: PetQuery, columns: Sequence[str] = PET) -> tuple[Statement, tuple[object, ...]]:
    """The statement of a page and its parameters; it reads one animal too many."""
    equal: dict[str, Sequence[object]] = {}
    if query.category_id is not None:
        equal["category_id"] = (query.category_id,)
    if query.status is not None:
        equal["status"] = (query.status.value,)
    elif query.category_id is not None:  # no index has a category alone
        equal["status"] = [status.value for status in PetStatus]
    return page_by_id(f"SELECT {select(columns)} FROM pets", query, equal)


def page_from(pets: list[Pet], limit: int) -> PetPage:
    """The page of at most `limit` of these animals, which are one too many if others follow."""
    return PetPage(pets[:limit], len(pets) > limit)


# The most frequent ones of clients; the second one without the status, which the caller has.
PAGE, _ = page_of(PetQuery(), PUBLIC_PET)
PAGE_BY_STATUS, _ = page_of(PetQuery(status=PetStatus.AVAILABLE), PUBLIC_BUT_STATUS)

_FOLDED = 'lower(name COLLATE "C")'  # as in the index: the letters of ASCII alone


def by_name(limit: int) -> Statement:
    """At most `limit` animals in the order of their folded names: beyond a name ($1) and an identifier ($2),
    below a name ($3).

    PostgreSQL knows nothing of a SELECT's result: it plans for a large part of all animals whatever the
    names are, and of those it takes the first ones only by the index. SQLite merges the rest of one name with
    the names beyond.
    """
    begin = f"SELECT {select(PET)} FROM pets WHERE"
    return Statement(
        f"{begin} name = ?1 COLLATE NOCASE AND id > ?2 AND ?1 < ?3"
        f" UNION ALL {begin} name > ?1 COLLATE NOCASE AND name < ?3 COLLATE NOCASE"
        f" ORDER BY name COLLATE NOCASE, id LIMIT {limit}",
        f"{begin} ({_FOLDED}, id) > ((SELECT $1::text), (SELECT $2::bigint))"
        f" AND {_FOLDED} < (SELECT $3::text) ORDER BY {_FOLDED}, id LIMIT {limit}",
    )


def after_every_name(prefix: str) -> str:
    """What is greater than every name that begins so, and not greater than any other greater name."""
    return prefix + "\U0010ffff" * (NAME_MAX_CHARACTERS + 1)


class Pets(IdempotentRepository, ABC):
    """The animals of a store. `actor` is for the journal.

    Methods that take the id of one animal raise PetNotFound; those with a `match` raise PreconditionFailed
    for an animal that has none of its tags.
    """

    open_order = reads(_open_order)

    @abstractmethod
    def public_page(self, query: PetQuery) -> PetPage | Awaitable[PetPage]:
        """The animals that match, as clients see them: at once, or as soon as the database has sent them."""

    @read
    def page(self, query: PetQuery) -> Script[PetPage]:
        """The animals that match, with the members of staff."""
        select, arguments = page_of(query)
        return page_from(read_pets((yield select, arguments)), query.limit)

    @abstractmethod
    def look_up(self, pet_id: int) -> Pet | Awaitable[Pet | None] | None:
        """One animal, or None: at once, or as soon as the database has sent it."""

    async def get_or_none(self, pet_id: int) -> Pet | None:
        """One animal, or None."""
        pet = self.look_up(pet_id)
        return pet if pet is None or isinstance(pet, Pet) else await pet

    async def get(self, pet_id: int) -> Pet:
        """One animal. Raises PetNotFound."""
        if (pet := await self.get_or_none(pet_id)) is None:
            raise PetNotFound(pet_id)
        return pet

    @abstractmethod
    async def add(self, new: NewPet, actor: str, idempotency_key: IdempotencyKey | None = None) -> AddedPet:
        """Add an animal; it is durable when this returns.

        Raises IdempotencyKeyInUse while the same key is being carried out, IdempotencyKeyReused when it
        created something else within the last 24 hours.
        """

    async def _add_once(self, new: NewPet, actor: str, idempotency_key: IdempotencyKey) -> AddedPet:
        creation = Creation(idempotency_key, "pet", fingerprint(new))
        pet_id, replayed = await self._in_flight.carry_out(
            idempotency_key, lambda: self._start_once(new, actor, creation)
        )
        return AddedPet(Pet(pet_id, *astuple(new)), replayed)

    def _start_once(self, new: NewPet, actor: str, creation: Creation) -> asyncio.Future[tuple[int, bool]]:
        """The animal's identifier, and whether the key had created it before."""
        pinned_ms, now_ms = self._clock.pinned_ms(), self._clock.now_ms()
        return self._database.start(
            lambda: create_once(creation, pinned_ms, lambda: add_pet(now_ms, new, actor)), CATALOGUE
        )

    @read
    def find_by_name(self, query: NameQuery) -> Script[list[Pet]]:
        """The animals whose names begin so, by one walk along the index by name. With a filter it reads all
        that it may read, and leaves out the others."""
        is_filtered = query.status is not None or query.category_id is not None
        limit = PETS_SCANNED_MAX if is_filtered else query.limit
        prefix = lower_ascii(query.prefix)
        rows = yield by_name(limit), (prefix, 0, after_every_name(prefix))
        found = [
            pet
            for pet in read_pets(rows)
            if query.status in (None, pet.status) and query.category_id in (None, pet.category_id)
        ]
        return found[: query.limit]

    @write(CATALOGUE)
    def change(
        self,
        now_ms: int,
        pet_id: int,
        change: PetChange,
        actor: str,
        *,
        expected: Pet | None = None,
        match: Tags | None = None,
        is_undo: bool = False,
    ) -> Script[Pet]:
        """Change an animal by hand. Values that it has already are not recorded.

        Raises PetChangedMeanwhile for a change of an animal that is not as `expected`, and Conflict for a
        transition that is not allowed or a status that an open order decides.
        """
        pet = yield from _get(pet_id)
        check_match(match, shown_pet(pet))
        if expected not in (None, pet) and _after(pet, change) != pet:
            raise PetChangedMeanwhile(pet)
        if change.status not in (msgspec.UNSET, pet.status):
            yield from _check_no_open_order(pet_id, STATUS_IS_HELD)
        return (yield from move_pet(now_ms, pet, change, actor, is_undo=is_undo))

    @read
    def count(self, query: PetQuery) -> Script[int]:
        """How many animals match, up to COUNTED_MAX; see count_up_to."""
        any_status = query.status is None and query.category_id is not None
        queries = [replace(query, status=status) for status in PetStatus] if any_status else [query]
        return count_up_to(lambda each: page_of(each, ("id",)), queries)

    @write(CATALOGUE)
    def remove(self, now_ms: int, pet_id: int, actor: str, *, match: Tags | None = None) -> Script[Pet]:
        """Remove an animal; what it was. Raises Conflict while an open order holds it."""
        pet = yield from _get(pet_id)
        check_match(match, shown_pet(pet))
        yield from _check_no_open_order(pet_id, "it can't be removed")
        yield _REMOVE, (pet_id,)  # with its row in pet_sources
        yield from record(now_ms, actor, "pet", pet_id, "removed", recorded_pet(pet), None)
        return pet
