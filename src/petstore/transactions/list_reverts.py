"""Reverts of imports, for both databases: who asks, the outcome, and the statements.

The journal has all that is needed: which animals a list has added and changed, and from what. A plan fills
two temporary tables of an import (stock.py): stock_new with the animals to remove, stock_changes with those
to change back, each with its entry as the position.
"""

from __future__ import annotations

from petstore.core.durations import HOUR_MS
from petstore.core.errors import Conflict, NotFound
from petstore.core.fields import Field
from petstore.core.journal import STORE, Entry, animals_of_list
from petstore.core.list_reverts import ASKED, DONE, NAMED_MAX, NOT_WHOLE, REFUSED, ChangedSince, ListRevert
from petstore.core.pets import FIELDS
from petstore.core.stock import StockPlan
from petstore.core.uploads import Upload
from petstore.transactions.jobs import ADD_JOB
from petstore.transactions.journal import RECORD_PETS, first_since, record
from petstore.transactions.rows import ENTRY, NEW_PET, read_entry, select, sql_type
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    read,
    reads,
    statement,
    write,
)

REVERT_JOB = "taking_back"  # the kind of job; its subject is the entry of the import's end
_STORE_ENTRIES = f"SELECT {select(ENTRY)} FROM journal WHERE subject = '{STORE}' AND subject_id = 0"
_BY_ID = statement(f"{_STORE_ENTRIES} AND id = $1 AND action = 'list_finished'")
_FINISHED = statement(f"{_STORE_ENTRIES} AND id >= $1 AND action = 'list_finished' ORDER BY id")
_LATER = statement(
    f"{_STORE_ENTRIES} AND id > $1 AND action IN ('{ASKED}', '{DONE}', '{REFUSED}') ORDER BY id"
)
_HAS_JOB = statement(f"SELECT 1 FROM jobs WHERE kind = '{REVERT_JOB}' AND subject = $1")

# The entries of the animals of an import: in SQLite just before its end, in PostgreSQL of its transaction.
# As a CASE, so that no database looks up the entries of all animals in the index by subject.
_OWN = (
    " AND at_ms = $2 AND actor = $3 AND CASE subject WHEN 'pet' THEN true ELSE false END"
    " ORDER BY id DESC LIMIT $4) AS e"
)
_OF_IMPORT = Statement(
    "(SELECT id, subject_id, action, before FROM journal WHERE id >= ?1 - ?4 AND id < ?1"
    + _OWN.replace("$", "?"),
    "(SELECT id, subject_id, action, before::json AS before FROM journal WHERE id < $1"
    f" AND transaction = (SELECT transaction FROM journal WHERE id = $1){_OWN}",
)


def _before(field: Field) -> str:
    """SQL of the value that an animal had; its current one where the list did not change it."""
    return (
        f"CASE WHEN (e.before -> '{field.member}') IS NULL THEN p.{field.name}"
        f" ELSE CAST(e.before ->> '{field.member}' AS {sql_type(field)}) END"
    )


def _of_import(head: str, end: str) -> Statement:
    return Statement(f"{head} {_OF_IMPORT.sqlite} {end}", f"{head} {_OF_IMPORT.postgres} {end}")


_FIND_ADDED = _of_import(
    "INSERT INTO stock_new (position, ordinal) SELECT e.id, e.subject_id FROM", "WHERE e.action = 'added'"
)
_FIND_CHANGED = _of_import(
    f"INSERT INTO stock_changes (position, pet_id, {select(NEW_PET)})"
    f" SELECT e.id, e.subject_id, {', '.join(_before(field) for field in FIELDS)} FROM",
    "LEFT JOIN pets p ON p.id = e.subject_id WHERE e.action = 'changed'",
)
_COUNT = statement("SELECT (SELECT count(*) FROM stock_new), (SELECT count(*) FROM stock_changes)")
# Those to change back are locked as an import's are.
_HOLD = Statement(
    "SELECT 1",
    "SELECT count(*) FROM"
    " (SELECT 1 FROM stock_new n JOIN pets p ON p.id = n.ordinal FOR UPDATE OF p) AS held",
)
# An order writes an entry of its animal too.
_CHANGED_SINCE = statement(
    "SELECT t.pet_id FROM (SELECT position, pet_id FROM stock_changes"
    " UNION ALL SELECT position, ordinal FROM stock_new) AS t WHERE EXISTS (SELECT 1 FROM journal j"
    " WHERE j.subject = 'pet' AND j.subject_id = t.pet_id AND j.id > t.position)"
    f" ORDER BY t.pet_id LIMIT {NAMED_MAX + 1}"
)
_REMOVE = [
    statement(f"DELETE FROM {column} IN (SELECT ordinal FROM stock_new)")
    for column in ("pet_sources WHERE pet_id", "pets WHERE id")
]
_CHANGE_BACK = statement(
    f"UPDATE pets SET {', '.join(f'{name} = c.{name}' for name in NEW_PET)}"
    " FROM stock_changes c WHERE pets.id = c.pet_id"
)
_RECORD = [
    statement(
        f"{RECORD_PETS}, j.subject_id, '{action}', j.after, j.before FROM {table} t CROSS JOIN journal j"
        " WHERE j.id = t.position ORDER BY t.position"
    )
    for table, action in (("stock_new", "removed"), ("stock_changes", "changed"))
]


def plan(finished: Entry) -> Script[StockPlan]:
    """Fill the tables: `added` are animals to remove. Raises Conflict unless the journal has all entries."""
    animals = animals_of_list(finished)
    for find in (_FIND_ADDED, _FIND_CHANGED):
        yield find, (finished.id, finished.at_ms, finished.actor, animals)
    ((removed, changed),) = yield _COUNT, ()
    if removed + changed != animals:
        raise Conflict(NOT_WHOLE)
    return StockPlan(removed, changed, 0, 0)


def revert_list(now_ms: int, finished: Entry, actor: str) -> Script[bool]:
    """Carry out the plan, all of it; True. Raises ChangedSince, and Conflict when that was done already."""
    found = yield from _get(finished.id)
    if found.is_done:
        found.check_begin()
    yield _HOLD, ()
    if changed := (yield _CHANGED_SINCE, ()):
        raise ChangedSince([pet_id for (pet_id,) in changed])
    for step in _RECORD:
        yield step, (now_ms, actor)
    for step in (*_REMOVE, _CHANGE_BACK):
        yield step, ()
    ((removed, changed_back),) = yield _COUNT, ()
    yield from _note(now_ms, actor, finished, DONE, removed=removed, changed=changed_back)
    return True


def _note(now_ms: int, actor: str, finished: Entry, action: str, **found: object) -> Script[None]:
    about = {"list": (finished.after or {})["list"], "import": finished.id}
    yield from record(now_ms, actor, STORE, 0, action, None, about | found)


def _get(list_id: int) -> Script[ListRevert]:
    for row in (yield _BY_ID, (list_id,)):
        finished = read_entry(row)
        if animals_of_list(finished):
            break
    else:
        raise NotFound("The journal has no such import.")
    later = [read_entry(row) for row in (yield _LATER, (list_id,))]
    own = [entry for entry in later if (entry.after or {})["import"] == list_id]
    done = [entry for entry in own if entry.action == DONE]
    return ListRevert(finished, next(reversed(done or own), None), bool((yield _HAS_JOB, (list_id,))))


class ListReverts(Repository):
    """Every method but `of_upload` raises NotFound unless the entry is of an import's end."""

    get = reads(_get)

    @read
    def of_upload(self, upload: Upload) -> Script[ListRevert | None]:
        """The import that stored an upload; None when the journal does not say which that is."""
        since = yield from first_since(upload.created_at_ms - HOUR_MS)  # clocks may differ
        for entry in [read_entry(row) for row in (yield _FINISHED, (since,))]:
            if animals_of_list(entry) and (entry.after or {}).get("upload") == upload.id:
                return (yield from _get(entry.id))
        return None

    @write(NO_EFFECT)
    def ask(self, now_ms: int, list_id: int, actor: str) -> Script[None]:
        """Let the background process revert the import. Raises Conflict by `check_begin`."""
        found = yield from _get(list_id)
        found.check_begin()
        yield from _note(now_ms, actor, found.finished, ASKED)
        yield ADD_JOB, (REVERT_JOB, list_id)

    @write(NO_EFFECT)
    def refuse(self, now_ms: int, list_id: int, message: str, animals: tuple[int, ...] = ()) -> Script[None]:
        """Say why it was not reverted, and which animals were in the way; in the name of who asked."""
        found = yield from _get(list_id)
        if found.last is not None and found.last.action == ASKED:
            actor = found.last.actor
            yield from _note(now_ms, actor, found.finished, REFUSED, message=message, animals=animals)
