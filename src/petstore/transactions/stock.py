"""Stock lists: the statements of an import, for both databases.

Of the temporary table stock_rows a plan fills stock_new, stock_changes (with the animals as they were),
stock_entries (of the journal, for changes) and stock_conflicts. Storing is a fixed number of statements.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from petstore.core.clock import Clock
from petstore.core.fields import Field
from petstore.core.journal import Entry
from petstore.core.pets import FIELDS, STATUSES, TRANSITIONS, PetStatus
from petstore.core.stock import SOURCE_KEYS_MAX, Purpose, StockPlan, StockRow, change_fault, same_key_fault
from petstore.core.uploads import Upload
from petstore.transactions.journal import RECORD_PETS, encode
from petstore.transactions.list_reverts import plan, revert_list
from petstore.transactions.rows import NEW_PET, ORDER_IS_OPEN, PET, placeholders, select
from petstore.transactions.script import Repository, Script, Statement, read, rows_of, statement
from petstore.transactions.uploads import mark_stored

_T = TypeVar("_T")
# The columns of a row and, for an animal that it adds, the JSON of its entry in the journal.
_ROW = ("position", "line", "source_key", *NEW_PET)
STAGED = (*_ROW, "entry")
_PAGE_ROWS = 500
_DEFAULTS = [None if field.is_required else field.default for field in FIELDS]
_COLUMNS = ", ".join(f"{field.name} {{{'number' if field.kind is int else 'text'}}}" for field in FIELDS)
_TABLES = [
    Statement(
        f"CREATE TEMP TABLE {columns}".format(number="INTEGER", text="TEXT"),
        f"CREATE TEMP TABLE {columns}".format(number="bigint", text='text COLLATE "C"'),
    )
    for columns in (
        "stock_rows (position {number} PRIMARY KEY, line {number}, source_key {text},"
        f" {_COLUMNS}, entry {{text}})",
        "stock_new (position {number} PRIMARY KEY, ordinal {number})",
        f"stock_changes (position {{number}} PRIMARY KEY, pet_id {{number}}, {_COLUMNS})",
        "stock_entries (position {number} PRIMARY KEY, before {text}, after {text})",
        "stock_conflicts (position {number} PRIMARY KEY, same_line {number}, pet_id {number}, status {text},"
        " order_id {number})",
    )
]
_BY_KEY = statement("CREATE INDEX IF NOT EXISTS stock_rows_by_key ON stock_rows (source_key)")
_ANALYZE = Statement("SELECT 1", "ANALYZE stock_rows")
_CLEAR = [
    statement(f"DELETE FROM {table}")
    for table in ("stock_new", "stock_changes", "stock_entries", "stock_conflicts")
]

# The first other row of the same key, by window functions: a list may have one key in all its rows.
_FIND_SAME = statement(
    "INSERT INTO stock_conflicts (position, same_line) SELECT position, coalesce(earlier, later) FROM (SELECT"
    " position, CASE WHEN position > min(position) OVER w THEN min(line) OVER w END AS earlier,"
    " lead(line) OVER (PARTITION BY source_key ORDER BY position) AS later"
    " FROM stock_rows WHERE source_key IS NOT NULL WINDOW w AS (PARTITION BY source_key)) AS s"
    " WHERE coalesce(earlier, later) IS NOT NULL"
)
_ALONE = "NOT EXISTS (SELECT 1 FROM stock_conflicts f WHERE f.position = r.position)"


def _wanted(field: Field, current: str) -> str:
    """SQL of a value that a row wants, where an animal has the `current` one."""
    return f"r.{field.name}" if field.is_required else f"coalesce(r.{field.name}, {current})"


def _differ(field: Field, value: str, other: str) -> str:
    return f"{value} {'IS DISTINCT FROM' if field.takes_null else '<>'} {other}"


# SQLite keeps the order of CROSS JOIN: each row, then its animal by two look-ups.
_FIND_CHANGES = statement(
    f"INSERT INTO stock_changes (position, pet_id, {select(NEW_PET)})"
    f" SELECT r.position, p.id, {select([f'p.{column}' for column in NEW_PET])}"
    " FROM stock_rows r CROSS JOIN pet_sources s CROSS JOIN pets p"
    " WHERE s.source_key = r.source_key AND p.id = s.pet_id AND"
    f" ({' OR '.join(_differ(each, _wanted(each, f'p.{each.name}'), f'p.{each.name}') for each in FIELDS)})"
    f" AND {_ALONE} AND NOT EXISTS (SELECT 1 FROM stock_new n WHERE n.position = r.position)",
    lock=" FOR UPDATE OF p",
)
_FIND_NEW = Statement(
    *(
        "INSERT INTO stock_new (position, ordinal)"
        f" SELECT r.position, row_number() OVER (ORDER BY r.position) FROM stock_rows r {join} AND {_ALONE}"
        for join in (
            "WHERE NOT EXISTS (SELECT 1 FROM pet_sources s WHERE s.source_key = r.source_key)",
            "LEFT JOIN pet_sources s ON s.source_key = r.source_key WHERE s.source_key IS NULL",
        )
    )
)
_REFUSED = ", ".join(
    f"('{before}', '{after}')"
    for before in PetStatus
    for after in PetStatus
    if after is not before and after not in TRANSITIONS[before]
)
_OPEN_ORDER = f"FROM orders o WHERE o.pet_id = c.pet_id AND o.{ORDER_IS_OPEN}"
_FIND_REFUSED = statement(
    "INSERT INTO stock_conflicts (position, pet_id, status, order_id)"
    f" SELECT c.position, c.pet_id, c.status, (SELECT min(o.id) {_OPEN_ORDER})"
    " FROM stock_changes c JOIN stock_rows r ON r.position = c.position"
    f" WHERE r.status <> c.status AND ((c.status, r.status) IN (VALUES {_REFUSED})"
    f" OR EXISTS (SELECT 1 {_OPEN_ORDER}))"
)
_DROP_REFUSED = statement(
    "DELETE FROM stock_changes WHERE position IN (SELECT position FROM stock_conflicts)"
)
_PLAN = (_ANALYZE, *_CLEAR, _FIND_NEW)
_PLAN_BY_KEY = (
    *(_BY_KEY, _ANALYZE, *_CLEAR, _FIND_SAME, _FIND_NEW),
    *(_FIND_CHANGES, _FIND_REFUSED, _DROP_REFUSED),
)
_COUNT = statement(
    "SELECT (SELECT count(*) FROM stock_rows), (SELECT count(*) FROM stock_new),"
    " (SELECT count(*) FROM stock_changes), (SELECT count(*) FROM stock_conflicts)"
)
_CHANGES = statement(
    f"SELECT c.position, {select([f'{table}.{column}' for table in 'cr' for column in NEW_PET])}"
    " FROM stock_changes c CROSS JOIN stock_rows r WHERE r.position = c.position AND c.position > $1"
    f" ORDER BY c.position LIMIT {_PAGE_ROWS}"
)
_REJECTED = statement(
    f"SELECT {select([f'r.{column}' for column in _ROW])}, f.same_line, f.pet_id, f.status, f.order_id"
    " FROM stock_conflicts f JOIN stock_rows r ON r.position = f.position WHERE f.position > $1"
    f" ORDER BY f.position LIMIT {_PAGE_ROWS}"
)

# An animal may be as it was, and in an order by now.
_CHANGED_SINCE = statement(
    "SELECT 1 FROM stock_changes c JOIN stock_rows r ON r.position = c.position"
    " LEFT JOIN pets p ON p.id = c.pet_id WHERE p.id IS NULL"
    f" OR {' OR '.join(_differ(each, f'p.{each.name}', f'c.{each.name}') for each in FIELDS)}"
    f" OR (r.status <> c.status AND EXISTS (SELECT 1 {_OPEN_ORDER})) LIMIT 1"
)
# SQLite's identifiers follow the last one, which nobody else moves meanwhile. In PostgreSQL other processes
# add animals, so each ordinal becomes an identifier.
_BASE = Statement("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets'", "SELECT 0")
_NUMBER = Statement(
    "SELECT 1",
    "UPDATE stock_new n SET ordinal = a.id FROM (SELECT position, nextval('pets_id_seq') AS id"
    " FROM (SELECT position FROM stock_new ORDER BY position) AS o) AS a WHERE a.position = n.position",
)
_NEW = "FROM stock_new n CROSS JOIN stock_rows r WHERE r.position = n.position"
_CHANGED = "FROM stock_changes c CROSS JOIN stock_rows r WHERE r.position = c.position"
_ADDED = ", ".join(
    f"r.{field.name}" if default is None else f"coalesce(r.{field.name}, '{default}')"
    for field, default in zip(FIELDS, _DEFAULTS, strict=True)
)
_ADD_PETS = Statement(
    *(
        f"INSERT INTO pets ({select(PET)}){as_given}"
        f" SELECT n.ordinal + {base}, {_ADDED} {_NEW} ORDER BY n.position"
        for as_given, base in (("", "?1"), (" OVERRIDING SYSTEM VALUE", "$1::bigint"))
    )
)
_ADD_SOURCES = statement(
    "INSERT INTO pet_sources (source_key, pet_id)"
    f" SELECT r.source_key, n.ordinal + CAST($1 AS bigint) {_NEW} AND r.source_key IS NOT NULL"
)
_SET = ", ".join(f"{each.name} = {_wanted(each, f'c.{each.name}')}" for each in FIELDS)
_CHANGE_PETS = statement(f"UPDATE pets SET {_SET} {_CHANGED} AND pets.id = c.pet_id")
_RECORD_ADDED = statement(
    f"{RECORD_PETS}, n.ordinal + CAST($3 AS bigint), 'added', NULL, r.entry {_NEW} ORDER BY n.position"
)
_RECORD_CHANGED = statement(
    f"{RECORD_PETS}, c.pet_id, 'changed', e.before, e.after FROM stock_changes c CROSS JOIN stock_entries e"
    " WHERE e.position = c.position ORDER BY c.position"
)


def begin(end: str = "") -> Script[None]:
    """Make the temporary tables; `end` ends PostgreSQL's statements."""
    for table in _TABLES:
        yield Statement(table.sqlite, table.postgres + end), ()


def _write_entries() -> Script[None]:
    """The journal entries of the changes, a page at a time."""
    after = 0
    while rows := (yield _CHANGES, (after,)):
        entries: list[object] = []
        for position, *values in rows:
            old: dict[str, object] = {}
            new: dict[str, object] = {}
            for field, value, wanted in zip(FIELDS, values, values[len(FIELDS) :], strict=False):
                if wanted is not None and wanted != value:
                    old[field.member], new[field.member] = value, wanted
            entries += position, encode(old), encode(new)
        yield _add_entries(len(rows)), tuple(entries)
        after = rows[-1][0]


@lru_cache(maxsize=2)
def _add_entries(count: int) -> Statement:
    groups = ", ".join(f"({placeholders(3, first)})" for first in range(1, 3 * count, 3))
    return statement(f"INSERT INTO stock_entries (position, before, after) VALUES {groups}")


def _fault(row: Sequence[Any], key_name: str) -> str:
    same_line, pet_id, status, order_id = row[len(_ROW) :]
    if same_line is not None:
        return same_key_fault(key_name, same_line)
    return change_fault(pet_id, STATUSES[status], STATUSES[row[_ROW.index("status")]], order_id)


class Import:
    """What an import is in both databases: a StockImport but for staging and storing, which differ."""

    def __init__(
        self, connection: Any, clock: Clock, actor: str, key_name: str | None, purpose: Purpose | None
    ) -> None:
        self._connection = connection  # the driver's
        self._clock = clock
        self._actor = actor
        self._key_name = key_name
        self._purpose = purpose
        self._count = 0
        self._has_work = purpose is not None

    async def _run(self, script: Script[_T]) -> _T:
        """Step a script on the connection of the import. Raises StoreUnavailable: nothing was stored."""
        raise NotImplementedError

    def _staged(self, rows: Sequence[StockRow]) -> Iterator[tuple[object, ...]]:
        """The next rows as the columns STAGED."""
        for row in rows:
            self._count += 1
            added = {
                field.member: wanted
                for field, value, default in zip(FIELDS, row.values, _DEFAULTS, strict=True)
                if (wanted := default if value is None else value) is not None
            }
            yield self._count, row.line, row.source_key, *row.values, encode(added)

    def _plan(self) -> Script[StockPlan]:
        """Fill the tables of the plan. PostgreSQL's statements each see a later state: a key that another
        import adds meanwhile counts as new, so that the plan is not stored."""
        if isinstance(self._purpose, Entry):
            return (yield from plan(self._purpose))
        for step in _PLAN if self._key_name is None else _PLAN_BY_KEY:
            yield step, ()
        if self._key_name is not None:
            yield from _write_entries()
        ((rows, added, changed, rejected),) = yield _COUNT, ()
        self._has_work = added + changed > 0 or self._purpose is not None
        return StockPlan(added, changed, rows - added - changed - rejected, rejected)

    def _store(self, now_ms: int) -> Script[bool]:
        """Carry out the plan. False, and nothing was changed, when an animal is not as it was planned.

        Raises Conflict when the upload is somebody else's by now, and what `revert_list` raises.
        """
        if isinstance(self._purpose, Entry):
            return (yield from revert_list(now_ms, self._purpose, self._actor))
        if (yield _CHANGED_SINCE, ()):
            return False
        yield _NUMBER, ()
        ((base,),) = yield _BASE, ()
        yield _ADD_PETS, (base,)
        yield _ADD_SOURCES, (base,)
        yield _RECORD_ADDED, (now_ms, self._actor, base)
        yield _CHANGE_PETS, ()
        yield _RECORD_CHANGED, (now_ms, self._actor)
        if isinstance(self._purpose, Upload):
            yield from mark_stored(now_ms, self._purpose)
        return True

    async def rejected(self) -> AsyncIterator[list[tuple[StockRow, str]]]:
        """See core.stock.StockImport."""
        after, key = 0, self._key_name or ""
        while rows := await self._run(rows_of(_REJECTED, after)):
            yield [(StockRow(row[1], row[2], tuple(row[3 : len(_ROW)])), _fault(row, key)) for row in rows]
            after = rows[-1][0]


class Stock(Repository):
    """A StockRepository but for `importing`, which is each database's own."""

    @read
    def source_keys(self, pet_ids: Sequence[int]) -> Script[dict[int, str]]:
        """See core.stock.StockRepository."""
        assert len(pet_ids) <= SOURCE_KEYS_MAX
        if not pet_ids:
            return {}
        wanted = placeholders(len(pet_ids))
        find = statement(f"SELECT pet_id, source_key FROM pet_sources WHERE pet_id IN ({wanted})")
        return dict([tuple(row) for row in (yield find, tuple(pet_ids))])
