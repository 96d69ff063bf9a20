"""The journal in tests: who makes the changes of a test, what was written, and whether it is true."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from petstore.core.events import Bookmark, EventPage, EventQuery, Position
from petstore.core.journal import Entry, JournalQuery, read_about
from petstore.core.moments import iso_moment
from petstore.core.pets import recorded_pet
from petstore.storage.store import Store
from petstore.transactions.rows import CUSTOMER, TABLES, read_pet, select

# Of changes whose actor a test says nothing about.
ACTOR = "cli:tests"

Execute = Callable[[str], Sequence[tuple[Any, ...]]]

# Tables whose name is not their subject's with an s.
_SUBJECTS = {"api_keys": "key", "categories": "category", "people": "person"}
# A contact is a part of its account or person.
_NO_NOUNS = {"journal", "contacts", "mails", "notified"}
_NOUNS = [table for table in TABLES if table.columns[0] == "id" and table.name not in _NO_NOUNS]
_CUSTOMERS = f"SELECT {select(CUSTOMER)} FROM customers ORDER BY account_id"
_CONTACTS = "SELECT account_id, person_id, id, address, off FROM contacts ORDER BY id"
# Of objects that only a recorded change may change, everything.
_OBJECTS = {
    _SUBJECTS.get(noun.name, noun.name.removesuffix("s")): f"SELECT {select(noun.columns)} FROM {noun.name}"
    for noun in _NOUNS
}
_NEW = "SELECT id, subject, action, subject_id, actor FROM journal WHERE id > {} ORDER BY id"
_HISTORY = (
    "SELECT subject, subject_id, before, after FROM journal WHERE subject IN ('pet', 'order') ORDER BY id"
)


async def entries(store: Store, about: str | None = None) -> list[Entry]:
    """The whole journal, or of one object; oldest first."""
    query = JournalQuery(10_000, about=None if about is None else read_about(about))
    return (await store.journal.page(query)).entries[::-1]


async def followed(store: Store, after: Bookmark | None = None, limit: int = 100) -> EventPage:
    """The next events of the whole journal."""
    return await store.events.page(EventQuery(limit, None, after=after))


async def written(store: Store, about: str | None = None) -> list[str]:
    """The entries as lines, such as `pet.changed pet:7`."""
    return [f"{entry.type} {entry.about}" for entry in await entries(store, about)]


def lose(execute: Execute, place: Position) -> None:
    """Let entries up to there be gone, and what was there before the first one recorded nowhere."""
    transaction = f", gone_transaction = '{place.transaction}'" if place.transaction else ""
    execute(f"UPDATE data_set SET is_whole = false, gone_id = {place.id}{transaction}")


def recorded(execute: Execute, subject: str) -> list[tuple[Any, ...]]:
    """(actor, id, action, before, after) of each entry of this subject but of additions, oldest first."""
    rows = execute(
        "SELECT actor, subject_id, action, before, after FROM journal"
        f" WHERE subject = '{subject}' AND action <> 'added' ORDER BY id"
    )
    return [(*row[:3], *(None if text is None else json.loads(text) for text in row[3:])) for row in rows]


class Audit:
    """Compares what changes in the tables with what the journal says."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._seen = 0
        self._objects: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.entries()
        self._objects = self._read()

    def check(self) -> list[str]:
        """The types of the entries since the last check, after a proof: each object that was added, changed
        or removed since then has exactly one of them, and no other object has any."""
        before, self._objects = self._objects, self._read()
        new = self.entries()
        changed = [key for key in before | self._objects if before.get(key) != self._objects.get(key)]
        recorded = Counter((subject, subject_id) for subject, _, subject_id in new)
        assert recorded == Counter(changed)
        assert history_faults(self._execute) == []
        return [f"{subject}.{action}" for subject, action, _ in new]

    def entries(self) -> list[tuple[str, str, int]]:
        """Subject, action and identifier of the entries since the last call."""
        rows = self._execute(_NEW.format(self._seen))
        self._seen = rows[-1][0] if rows else self._seen
        assert all(row[4] for row in rows), "an entry without an actor"
        return [(row[1], row[2], row[3]) for row in rows]

    def _read(self) -> dict[tuple[str, int], tuple[Any, ...]]:
        found = {
            (subject, row[0]): tuple(row) for subject, sql in _OBJECTS.items() for row in self._execute(sql)
        }
        for account_id, person_id, *contact in self._execute(_CONTACTS):
            found["person" if account_id is None else "account", account_id or person_id] += tuple(contact)
        for account_id, *customer in self._execute(_CUSTOMERS):
            found["account", account_id] += tuple(customer)
        return found


def history_faults(execute: Execute) -> list[str]:
    """Faults of the journal: its entries of animals and orders do not lead to the tables of now.

    Each object begins with its addition, and each entry's `before` is what was there.
    """
    faults = []
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for subject, subject_id, before, after in execute(_HISTORY):
        key, was = (subject, subject_id), {} if before is None else json.loads(before)
        if (before is None) is (key in found):
            faults.append(f"{subject} {subject_id} was added twice, or changed before it was added")
        known = found.setdefault(key, {})
        if {name: known.get(name) for name in was} != was:
            faults.append(f"{subject} {subject_id} was {known}, and not {was}")
        if after is None:
            del found[key]
        else:
            now = json.loads(after)
            members = {name: value for name, value in known.items() if name not in was} | now
            found[key] = {name: value for name, value in members.items() if value is not None}
    there = _tables(execute)
    faults += [
        f"{key}: the journal leads to {found.get(key)}, the table has {there.get(key)}"
        for key in found | there
        if found.get(key) != there.get(key)
    ]
    return faults


def _tables(execute: Execute) -> dict[tuple[str, int], dict[str, Any]]:
    """Animals and orders with the members that the journal keeps."""
    pets = {
        ("pet", row[0]): msgspec.to_builtins(recorded_pet(read_pet(row))) for row in execute(_OBJECTS["pet"])
    }
    orders = {}
    for order_id, account_id, pet_id, status, ship_date_ms, _, *texts in execute(_OBJECTS["order"]):
        named = zip(("reference", "comment"), texts, strict=True)
        shipped = {} if ship_date_ms is None else {"shipDate": iso_moment(ship_date_ms)}
        orders["order", order_id] = {
            "accountId": account_id,
            "petId": pet_id,
            "quantity": 1,
            "status": status,
            "complete": status == "delivered",
            **{name: text for name, text in named if text is not None},
            **shipped,
        }
    return {**pets, **orders}
