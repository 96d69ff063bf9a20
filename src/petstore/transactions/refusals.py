"""The last refused requests of each account, for both databases."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import astuple

from petstore.core.refusals import REFUSALS_KEPT, Refusal
from petstore.transactions.rows import select
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    json_text,
    read,
    statement,
    write,
)

_COLUMNS = Refusal.__struct_fields__[:-1]
_NUMBERS = {"account_id", "at_ms", "key_id", "status"}
# PostgreSQL would read all accounts for a join with rows of which it does not know how few they are.
_ROWS = (
    f"INSERT INTO refusals ({select(_COLUMNS)}) SELECT {{}} FROM {{}}"
    " WHERE (SELECT a.closed_at_ms IS NULL FROM accounts a WHERE a.id = {}) ORDER BY 2"
)
_VALUES = [f"value ->> {index}" for index, _ in enumerate(_COLUMNS)]
_TYPED = [
    f"({value})::{'bigint' if column in _NUMBERS else 'text'}"
    for column, value in zip(_COLUMNS, _VALUES, strict=True)
]
# One statement for all rows, a JSON array of arrays; their identifiers go by time.
ADD = Statement(
    _ROWS.format(select(_VALUES), "json_each(?1)", _VALUES[0]),
    _ROWS.format(select(_TYPED), "json_array_elements($1::text::json) AS rows (value)", _TYPED[0]),
)
# The older ones of these accounts.
_OLDER = (
    "DELETE FROM refusals WHERE id IN (SELECT id FROM"
    " (SELECT id, row_number() OVER (PARTITION BY account_id ORDER BY id DESC) AS place FROM refusals"
    f" WHERE account_id IN (SELECT {{}})) AS ranked WHERE place > {REFUSALS_KEPT})"
)
_TRIM = Statement(
    _OLDER.format("value FROM json_each(?1)"),
    _OLDER.format("value::text::bigint FROM json_array_elements($1::text::json) AS accounts (value)"),
)
_LAST = statement(
    f"SELECT {select([f'r.{column}' for column in _COLUMNS])}, coalesce(k.display, '')"
    " FROM refusals r LEFT JOIN api_keys k ON k.id = r.key_id WHERE r.account_id = $1"
    f" ORDER BY r.id DESC LIMIT {REFUSALS_KEPT}"
)
REMOVE_REFUSALS = statement("DELETE FROM refusals WHERE account_id = $1")


class Refusals(Repository):
    """The last REFUSALS_KEPT refused requests of each account that is not closed."""

    @write(NO_EFFECT)
    def add(self, _now_ms: int, refused: Sequence[Refusal]) -> Script[None]:
        """Add some, and remove those that are then too many."""
        yield ADD, (json_text([astuple(each)[:-1] for each in refused]),)
        yield _TRIM, (json_text(sorted({each.account_id for each in refused})),)

    @read
    def last(self, account_id: int) -> Script[list[Refusal]]:
        """The refusals of an account, newest first; processes save theirs about once a second."""
        found = [Refusal(*row) for row in (yield _LAST, (account_id,))]
        return sorted(found, key=lambda refusal: refusal.at_ms, reverse=True)
