"""Stock lists: the statements of an import, for both databases.

The rows are in the temporary table stock_rows. A plan fills three more: stock_new, stock_changes (with the
animals as they were) and stock_conflicts. Whatever is done to a million rows is one statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from petstore.core.pets import STATUSES, TRANSITIONS, PetStatus
from petstore.core.stock import SOURCE_KEYS_MAX, StockPlan, StockRow, change_fault, same_key_fault
from petstore.core.uploads import UploadRun
from petstore.transactions.rows import ENTRY, PET, select
from petstore.transactions.script import Database, Script, Statement, statement
from petstore.transactions.uploads import mark_stored

STAGED = ("position", "line", "source_key", "name", "category_id", "status")
_PAGE_ROWS = 1_000

_SQLITE = {
    "number": "INTEGER",
    "text": "TEXT",
    "end": "",
    "quote": "json_quote(",
    "unquote": ")",
    "as_given": "",
    "now": "?1",
    "actor": "?2",
    "base": "?3",
    "alone": "?1",
}
_POSTGRES = {
    "number": "bigint",
    "text": 'text COLLATE "C"',
    "end": " ON COMMIT DROP",
    "quote": "to_json(",
    "unquote": ")::text",
    "as_given": " OVERRIDING SYSTEM VALUE",
    "now": "$1::bigint",
    "actor": "$2::text",
    "base": "$3::bigint",
    "alone": "$1::bigint",
}


def staged(rows: Sequence[StockRow], first: int) -> Iterator[tuple[object, ...]]:
    """The rows as the columns STAGED, with their positions from `first` on."""
    for position, row in enumerate(rows, first):
        yield position, row.line, row.source_key, row.name, row.category_id, row.status


def _both(sql: str) -> Statement:
    """A statement with the words of each dialect."""
    return Statement(sql.format_map(_SQLITE), sql.format_map(_POSTGRES))


_TABLES = [
    _both(f"CREATE TEMP TABLE {columns}{{end}}")
    for columns in (
        "stock_rows (position {number} PRIMARY KEY, line {number}, source_key {text}, name {text},"
        " category_id {number}, status {text})",
        "stock_new (position {number} PRIMARY KEY, ordinal {number})",
        "stock_changes (position {number} PRIMARY KEY, pet_id {number}, name {text}, category_id {number},"
        " status {text})",
        "stock_conflicts (position {number} PRIMARY KEY, same_line {number}, pet_id {number}, status {text},"
        " order_id {number})",
    )
]
_BY_KEY = statement("CREATE INDEX stock_rows_by_key ON stock_rows (source_key)")
_CLEAR = [statement(f"DELETE FROM {table}") for table in ("stock_new", "stock_changes", "stock_conflicts")]

_FIND_SAME = statement(
    "INSERT INTO stock_conflicts (position, same_line) SELECT r.position, (SELECT min(o.line)"
    " FROM stock_rows o WHERE o.source_key = r.source_key AND o.position <> r.position) FROM stock_rows r"
    " WHERE r.source_key IN (SELECT source_key FROM stock_rows GROUP BY source_key HAVING count(*) > 1)"
)
_ALONE = "NOT EXISTS (SELECT 1 FROM stock_conflicts f WHERE f.position = r.position)"
# SQLite keeps the order of CROSS JOIN: each row, then its animal by two look-ups.
_FIND_CHANGES = statement(
    "INSERT INTO stock_changes (position, pet_id, name, category_id, status)"
    " SELECT r.position, p.id, p.name, p.category_id, p.status"
    " FROM stock_rows r CROSS JOIN pet_sources s CROSS JOIN pets p"
    " WHERE s.source_key = r.source_key AND p.id = s.pet_id AND (r.name <> p.name"
    f" OR r.category_id <> p.category_id OR coalesce(r.status, p.status) <> p.status) AND {_ALONE}",
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
_OPEN_ORDER = "FROM orders o WHERE o.pet_id = c.pet_id AND o.status IN ('placed', 'approved')"
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
_COUNT = statement(
    "SELECT (SELECT count(*) FROM stock_rows), (SELECT count(*) FROM stock_new),"
    " (SELECT count(*) FROM stock_changes), (SELECT count(*) FROM stock_conflicts)"
)
_REJECTED = statement(
    f"SELECT {select([f'r.{column}' for column in STAGED])}, f.same_line, f.pet_id, f.status, f.order_id"
    " FROM stock_conflicts f JOIN stock_rows r ON r.position = f.position WHERE f.position > $1"
    f" ORDER BY f.position LIMIT {_PAGE_ROWS}"
)

_MOVED = statement(
    "SELECT 1 FROM stock_changes c LEFT JOIN pets p ON p.id = c.pet_id WHERE p.id IS NULL OR p.name <> c.name"
    " OR p.category_id <> c.category_id OR p.status <> c.status LIMIT 1"
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
_STATUS = "coalesce(r.status, 'available')"
_ADD_PETS = _both(
    f"INSERT INTO pets ({select(PET)}){{as_given}}"
    f" SELECT n.ordinal + {{alone}}, r.name, r.category_id, {_STATUS} {_NEW} ORDER BY n.position"
)
_ADD_SOURCES = _both(
    f"INSERT INTO pet_sources (source_key, pet_id) SELECT r.source_key, n.ordinal + {{alone}} {_NEW}"
    " AND r.source_key IS NOT NULL"
)
_CHANGE_PETS = statement(
    "UPDATE pets SET name = r.name, category_id = r.category_id, status = coalesce(r.status, c.status)"
    f" {_CHANGED} AND pets.id = c.pet_id"
)


def _member(name: str, value: str) -> str:
    """SQL of a JSON member after a comma. The text is that of transactions/journal.py."""
    quoted = value if name == "categoryId" else f"{{quote}}{value}{{unquote}}"
    return f"',\"{name}\":' || {quoted}"


def _object(members: list[str]) -> str:
    return f"'{{{{' || substr({' || '.join(members)}, 2) || '}}}}'"


def _changed(of: int) -> str:
    """SQL of the JSON of the members that a row changes: before it (0) or after it (1)."""
    columns = (
        ("name", "c.name", "r.name"),
        ("categoryId", "c.category_id", "r.category_id"),
        ("status", "c.status", "coalesce(r.status, c.status)"),
    )
    return _object(
        [
            f"CASE WHEN {values[0]} <> {values[1]} THEN {_member(name, values[of])} ELSE '' END"
            for name, *values in columns
        ]
    )


_JOURNAL = f"INSERT INTO journal ({select(ENTRY[1:])}) SELECT {{now}}, {{actor}}, 'pet'"
_ADDED = _object(
    [_member("name", "r.name"), _member("categoryId", "r.category_id"), _member("status", _STATUS)]
)
_RECORD_ADDED = _both(f"{_JOURNAL}, n.ordinal + {{base}}, 'added', NULL, {_ADDED} {_NEW} ORDER BY n.position")
_RECORD_CHANGED = _both(
    f"{_JOURNAL}, c.pet_id, 'changed', {_changed(0)}, {_changed(1)} {_CHANGED} ORDER BY c.position"
)


def begin() -> Script[None]:
    """Make the temporary tables."""
    for table in _TABLES:
        yield table, ()


def index_keys() -> Script[None]:
    """After the last row of a list with source keys."""
    yield _BY_KEY, ()


def plan(*, with_keys: bool) -> Script[StockPlan]:
    """Fill the tables of the plan. PostgreSQL locks the animals that change until the end."""
    for table in _CLEAR:
        yield table, ()
    if with_keys:
        yield _FIND_SAME, ()
        yield _FIND_CHANGES, ()
        yield _FIND_REFUSED, ()
        yield _DROP_REFUSED, ()
    yield _FIND_NEW, ()
    ((rows, added, changed, rejected),) = yield _COUNT, ()
    return StockPlan(added, changed, rows - added - changed - rejected, rejected)


def rejected(after: int, key_name: str) -> Script[tuple[int, list[tuple[StockRow, str]]]]:
    """A page of the rows that can't be carried out, with their faults; the position of its last one."""
    rows = yield _REJECTED, (after,)
    return (rows[-1][0] if rows else after), [(_row(row), _fault(row, key_name)) for row in rows]


def _row(row: Sequence[Any]) -> StockRow:
    return StockRow(*row[1:6])


def _fault(row: Sequence[Any], key_name: str) -> str:
    same_line, pet_id, status, order_id = row[6:]
    if same_line is not None:
        return same_key_fault(key_name, same_line)
    return change_fault(pet_id, STATUSES[status], STATUSES[row[5]], order_id)


def store(actor: str, now_ms: int, upload: UploadRun | None) -> Script[bool]:
    """Carry out the plan. False, and nothing was changed, when an animal is not as it was planned.

    Raises Conflict when the upload is somebody else's by now.
    """
    if (yield _MOVED, ()):
        return False
    yield _NUMBER, ()
    ((base,),) = yield _BASE, ()
    yield _ADD_PETS, (base,)
    yield _ADD_SOURCES, (base,)
    yield _RECORD_ADDED, (now_ms, actor, base)
    yield _CHANGE_PETS, ()
    yield _RECORD_CHANGED, (now_ms, actor)
    if upload is not None:
        yield from mark_stored(upload)
    return True


def source_keys(pet_ids: Sequence[int]) -> Script[dict[int, str]]:
    """See core.stock.StockRepository."""
    assert len(pet_ids) <= SOURCE_KEYS_MAX
    if not pet_ids:
        return {}
    places = ", ".join(f"${at}" for at in range(1, len(pet_ids) + 1))
    find = statement(f"SELECT pet_id, source_key FROM pet_sources WHERE pet_id IN ({places})")
    return dict([tuple(row) for row in (yield find, tuple(pet_ids))])


class Stock:
    """A StockRepository but for `importing`, which is each database's own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def source_keys(self, pet_ids: Sequence[int]) -> dict[int, str]:
        return await self._database.read(source_keys(pet_ids))
