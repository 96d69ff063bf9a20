"""Names of categories, for both databases."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from petstore.core.categories import (
    Category,
    CategoryNamedMeanwhile,
    check_category_name,
    check_room,
    check_unique,
)
from petstore.core.errors import CategoryNotFound
from petstore.transactions.journal import record
from petstore.transactions.rows import CATEGORY, select
from petstore.transactions.script import CATALOGUE, Repository, Script, Statement, read, statement, write

_ALL = statement(f"SELECT {select(CATEGORY)} FROM categories ORDER BY id")
_ONE = statement("SELECT name FROM categories WHERE id = $1")
_COUNT = statement("SELECT count(*) FROM categories")
_NAME = statement(
    "INSERT INTO categories (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name"
)
_UNNAME = statement("DELETE FROM categories WHERE id = $1")
# One change at a time, so that names are counted and the journal knows the one before. SQLite has one writer.
_ALONE = Statement("SELECT 1", "LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")


class Categories(Repository):
    """The names of a store's categories."""

    @read
    def all(self) -> Script[list[Category]]:
        """The categories that have a name, by id."""
        return [Category(*row) for row in (yield _ALL, ())]

    @write(CATALOGUE, checks=True)
    def name(
        self,
        now_ms: int,
        category_id: int,
        name: str,
        actor: str,
        *,
        expected: str | UnsetType | None = UNSET,
    ) -> Script[Category]:
        """Give a category a name, or another one. `expected` is the name that is replaced, None for none.

        Raises Invalid, Conflict for too many names and for the name of another one, CategoryNamedMeanwhile
        for a category that has neither the expected name nor this one, and CategoryNotFound for one that has
        lost the expected name.
        """
        check_category_name(name)
        before = yield from _name_of(category_id)
        if before != name:
            _check_expected(category_id, before, expected)
        if before is None:
            ((named,),) = yield _COUNT, ()
            check_room(named)
        if before != name:
            check_unique(name, category_id, [Category(*row) for row in (yield _ALL, ())])
            yield _NAME, (category_id, name)
            old = None if before is None else {"name": before}
            yield from record(now_ms, actor, "category", category_id, "named", old, {"name": name})
        return Category(category_id, name)

    @write(CATALOGUE)
    def unname(
        self, now_ms: int, category_id: int, actor: str, *, expected: str | UnsetType = UNSET
    ) -> Script[Category]:
        """Take a category's name away, and return it. Animals stay in the category.

        Raises CategoryNotFound, and CategoryNamedMeanwhile for a category without the expected name.
        """
        before = yield from _name_of(category_id)
        if before is None:
            raise CategoryNotFound(category_id)
        _check_expected(category_id, before, expected)
        yield _UNNAME, (category_id,)
        yield from record(now_ms, actor, "category", category_id, "named", {"name": before}, None)
        return Category(category_id, before)


def _check_expected(category_id: int, before: str | None, expected: str | UnsetType | None) -> None:
    """Raise unless the category has the name that somebody saw."""
    if expected is UNSET or before == expected:
        return
    if before is None:
        raise CategoryNotFound(category_id)
    raise CategoryNamedMeanwhile(Category(category_id, before))


def _name_of(category_id: int) -> Script[str | None]:
    """The name of a category, which nobody else changes until the transaction ends."""
    yield _ALONE, ()
    rows = yield _ONE, (category_id,)
    return rows[0][0] if rows else None
