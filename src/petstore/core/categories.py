"""Names of categories: labels for people. Any int64 is a category, whether it has a name or not."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import msgspec

from petstore.core.errors import Conflict, Invalid
from petstore.core.search import FOLDED_MAX_CHARACTERS
from petstore.core.values import name_fault

CATEGORY_NAME_MAX_CHARACTERS = 100
# The list is one answer, without pages.
CATEGORIES_MAX = 1_000


class Category(msgspec.Struct, frozen=True):
    """A category that has a name. `id` is any int64."""

    id: int
    name: str


class CategoryNamedMeanwhile(Conflict):
    """Somebody has given the category another name since it was read. `current` is what it is now."""

    def __init__(self, current: Category) -> None:
        super().__init__(f"Category {current.id} is called {current.name} now.")
        self.current = current


def plain_name(name: str) -> str:
    """A name as two categories can't both have it: capitals, the white space around it, and whether its
    accents are characters of their own do not count."""
    plain = name.strip().casefold()
    return unicodedata.normalize("NFC", plain[:FOLDED_MAX_CHARACTERS])


def check_unique(name: str, category_id: int, others: Iterable[Category]) -> None:
    """Raise Conflict when another category has the name. A release before 1.2 did not look."""
    for other in others:
        if other.id != category_id and plain_name(other.name) == plain_name(name):
            raise Conflict(
                f"Category {other.id} is called {other.name} already. Choose another name, or rename that"
                " category first."
            )


def check_category_name(name: str) -> None:
    """Raise Invalid unless a category can have this name: an animal's name, but shorter."""
    fault = name_fault(name, CATEGORY_NAME_MAX_CHARACTERS)
    if fault is not None:
        raise Invalid("name", f"The name of a category: {fault}.")


def check_room(named: int) -> None:
    """Raise Conflict when `named` categories have a name, and no other can get one."""
    if named >= CATEGORIES_MAX:
        raise Conflict(f"At most {CATEGORIES_MAX:,} categories can have names; take one away first.")
