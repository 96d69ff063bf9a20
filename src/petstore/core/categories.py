"""Names of categories: labels for people. Any int64 is a category, whether it has a name or not."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from petstore.core.errors import Conflict, Invalid
from petstore.core.pets import name_fault

CATEGORY_NAME_MAX_CHARACTERS = 100
# The list is one answer, without pages.
CATEGORIES_MAX = 1_000


class Category(msgspec.Struct, frozen=True):
    """A category that has a name. `id` is any int64."""

    id: int
    name: str


class CategoryNamedMeanwhile(Conflict):
    """Somebody has given the category another name since it was read. `present` is what it is now."""

    def __init__(self, present: Category) -> None:
        super().__init__(f"Category {present.id} is called {present.name} now.")
        self.present = present


def check_category_name(name: str) -> None:
    """Raise Invalid unless a category can have this name: an animal's name, but shorter."""
    fault = name_fault(name, CATEGORY_NAME_MAX_CHARACTERS)
    if fault is not None:
        raise Invalid("name", f"The name of a category: {fault}.")


def check_room(named: int) -> None:
    """Raise Conflict when so many categories have a name that no other can get one."""
    if named >= CATEGORIES_MAX:
        raise Conflict(f"At most {CATEGORIES_MAX:,} categories can have names; take one away first.")


class CategoryRepository(Protocol):
    """Names of categories in a store. Each method is one transaction and may raise StoreUnavailable."""

    async def all(self) -> list[Category]:
        """Those that have a name, by id."""
        ...

    async def name(
        self, category_id: int, name: str, actor: str, *, expected: str | UnsetType | None = UNSET
    ) -> Category:
        """Give a category a name, or another one. `expected` is the name that is replaced, None for none.

        Raises Invalid, Conflict for too many names, CategoryNamedMeanwhile for a category that is called
        neither as expected nor so already, and CategoryNotFound for one that has lost the expected name.
        """
        ...

    async def unname(self, category_id: int, actor: str, *, expected: str | UnsetType = UNSET) -> Category:
        """Take a category's name away; what it was. Animals stay in it.

        Raises CategoryNotFound, and CategoryNamedMeanwhile for a category that is not called as expected.
        """
        ...
