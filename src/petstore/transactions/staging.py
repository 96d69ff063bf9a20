"""What may pass from production to staging: the columns that stand here, and nothing else.

No key, contact, note, price, person, order, webhook or entry of the journal is among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from petstore.core.limits.plans import LIMIT_COLUMNS
from petstore.core.stages import Stage
from petstore.core.staging import Content
from petstore.transactions.events import restored
from petstore.transactions.rows import placeholders, select
from petstore.transactions.script import Effect, Repository, Script, Statement, read, statement
from petstore.transactions.stages import stamped

PETS = ("id", "name", "category_id", "status")
CATEGORIES = ("id", "name")
ACCOUNTS = ("name", "plan", *LIMIT_COLUMNS)

_NEWEST_PETS = statement(f"SELECT {select(PETS)} FROM pets ORDER BY id DESC LIMIT $1")
_ALL_CATEGORIES = statement(f"SELECT {select(CATEGORIES)} FROM categories ORDER BY id")
_OPEN_ACCOUNTS = statement(f"SELECT {select(ACCOUNTS)} FROM accounts WHERE closed_at_ms IS NULL ORDER BY id")
# In the order of their references.
_EMPTY = [statement(f"DELETE FROM {table}") for table in ("creations", "orders", "pets", "categories")]
_ACCOUNT = statement(
    f"INSERT INTO accounts (created_at_ms, {select(ACCOUNTS)}) VALUES ({placeholders(1 + len(ACCOUNTS))})"
    " ON CONFLICT (name) DO UPDATE SET "
    + select([f"{column} = excluded.{column}" for column in ACCOUNTS if column != "name"])
)
# An identifier is never given out again: SQLite remembers the greatest one by itself. First, so that nobody
# takes one of these meanwhile.
_ADVANCE_SEQUENCE = Statement(
    "SELECT ?1",
    "SELECT setval(sequence, greatest(1, $1::bigint, pg_sequence_last_value(sequence)))"
    " FROM (SELECT pg_get_serial_sequence('pets', 'id')::regclass AS sequence) AS of_pets",
)
# The journal does not tell where these animals come from.
_NOT_WHOLE = statement("UPDATE data_set SET is_whole = false")
_ROWS = 100  # rows that a statement writes


class Staging(Repository):
    """Cuts production, and fills staging."""

    @read
    def cut(self, animals: int) -> Script[Content]:
        """What may leave production: the newest `animals`, and the accounts that are open."""
        pets = yield _NEWEST_PETS, (animals,)
        categories = yield _ALL_CATEGORIES, ()
        accounts = yield _OPEN_ACCOUNTS, ()
        return Content(_tuples(pets[::-1]), _tuples(categories), _tuples(accounts))

    async def fill(self, content: Content, actor: str) -> None:
        """Replace animals, orders and names of categories; accounts get the plan of their namesakes, and new
        ones are added. Keys, webhooks, contacts and people stay. Earlier bookmarks of events end.

        Raises Conflict for a database that is, or may be, production's.
        """
        now_ms = self._clock.now_ms()
        # For itself: services that start wait for the stamp.
        await self._database.write(lambda: stamped(now_ms, Stage.STAGING))
        await self._database.write_long(
            lambda: _fill(now_ms, content, actor), Effect(catalogue=True, keyring=True)
        )


def _fill(now_ms: int, content: Content, actor: str) -> Script[None]:
    yield _ADVANCE_SEQUENCE, (content.pets[-1][0] if content.pets else 0,)
    for empty in _EMPTY:
        yield empty, ()
    yield from _insert("pets", PETS, content.pets)
    yield from _insert("categories", CATEGORIES, content.categories)
    for account in content.accounts:
        yield _ACCOUNT, (now_ms, *account)
    yield _NOT_WHOLE, ()
    counts: dict[str, object] = {"animals": len(content.pets), "accounts": len(content.accounts)}
    yield from restored(now_ms, actor, counts)


def _tuples(rows: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    return [tuple(row) for row in rows]


def _insert(table: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> Script[None]:
    width = len(columns)
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        values = ", ".join(f"({placeholders(width, 1 + index * width)})" for index in range(len(some)))
        into = f"INSERT INTO {table} ({select(columns)})"
        # PostgreSQL assigns the identifiers of animals otherwise.
        insert = Statement(
            f"{into} VALUES {values}".replace("$", "?"), f"{into} OVERRIDING SYSTEM VALUE VALUES {values}"
        )
        yield insert, tuple(value for row in some for value in row)
