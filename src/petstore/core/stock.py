"""Stock lists: the rows of a supplier's list, the outcome of each, and the protocol of their store.

A row with a source key is the supplier's animal of that key; a row without one is always a new animal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from petstore.core.errors import Conflict
from petstore.core.fields import STAFF, Value
from petstore.core.journal import Entry
from petstore.core.members import Schema
from petstore.core.pets import FIELDS, STATUS_IS_HELD, PetStatus, check_transition, held_by_order
from petstore.core.uploads import Upload
from petstore.core.values import Name

SOURCE_KEYS_MAX = 500
# What an import is for: an upload that it stores, or the journal entry of an import that it reverts.
Purpose = Upload | Entry


class StockRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that keeps the rules of NewPet. Without an optional member, an animal keeps its own; a new one
    has the default.

    `source_key` is None in a list without source keys. `line` is where the row begins, from 1. `values` are
    the ones in core.pets.FIELDS, None for an absent one.
    """

    line: int
    source_key: str | None
    values: tuple[Value, ...]


class StockPlan(msgspec.Struct, frozen=True):
    """How many rows add an animal, change one, leave one as it is, or can't be carried out."""

    added: int
    changed: int
    unchanged: int
    rejected: int


class StockImport(Protocol):
    """One import: `stage` all rows, `plan`, then `store`, which changes all or nothing."""

    async def stage(self, rows: Sequence[StockRow]) -> None:
        """Put rows into a temporary table, in the order of the list."""

    async def plan(self, *, locked: bool = False) -> StockPlan:
        """What the store would do with the rows at this moment. Changes nothing that others see.

        With `locked` the plan holds: other changes wait until `store` or the end of the import.
        """

    def rejected(self) -> AsyncIterator[list[tuple[StockRow, str]]]:
        """The rows of the plan that can't be carried out with their faults, in pages, in the list's order."""

    async def store(self) -> float | None:
        """Carry out the plan, and record each change; durable when this returns.

        For how many seconds other writes had to wait; 0 where they do not wait for each other.
        None, and nothing is stored, when another program has changed an animal of the plan: plan again.
        """


class StockRepository(Protocol):
    """Stock lists in a store. Every method may raise StoreUnavailable."""

    def importing(
        self, actor: str, key_name: str | None, purpose: Purpose | None = None
    ) -> AbstractAsyncContextManager[StockImport]:
        """Begin an import by `actor`; without `store` nothing of it is left.

        `key_name` is the column of the source keys, for messages; None for a list without them. `store` marks
        an upload as stored in the same transaction, and raises Conflict when somebody else works on it.
        An import that reverts another one has no rows; transactions/list_reverts.py says what it raises.
        """

    async def source_keys(self, pet_ids: Sequence[int]) -> dict[int, str]:
        """The source keys of those animals that have one; at most SOURCE_KEYS_MAX animals."""


def row_schema(key_name: str | None) -> Schema[msgspec.Struct]:
    """The reader of a row: NewPet, with its source key as a further member.

    A source key keeps the rules of a name. An absent optional member is UNSET.
    """
    fields: list[object] = [(field.name, field.written_type) for field in FIELDS if field.is_required]
    renamed = {field.name: field.member for field in FIELDS}
    if key_name is not None:
        fields.append(("source_key", Name))
        renamed["source_key"] = key_name
    fields += [
        (field.name, field.written_type | msgspec.UnsetType, msgspec.UNSET)
        for field in FIELDS
        if not field.is_required
    ]
    struct = msgspec.defstruct(
        "StockListRow",
        fields,  # type: ignore[arg-type]
        frozen=True,
        rename=renamed,
        forbid_unknown_fields=True,
    )
    assigned = () if key_name == "id" else ("id",)
    return Schema(struct, "a row of a stock list", assigned=assigned, audience=STAFF)


def same_key_fault(key_name: str, line: int) -> str:
    """The fault of a row whose source key stands in another line too: neither is preferred."""
    return f"{key_name}: line {line} has the same"


def change_fault(pet_id: int, before: PetStatus, after: PetStatus, order_id: int | None) -> str:
    """The fault of a row that would change an animal's status, as the interface's PATCH says it."""
    if order_id is not None:
        return held_by_order(order_id, pet_id, STATUS_IS_HELD)
    try:
        check_transition(pet_id, before, after)
    except Conflict as conflict:
        return conflict.message
    raise AssertionError(f"{before} -> {after} is not a fault")
