"""Categories as people see and write them: by name if it is unique, else by number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from petstore.core.categories import Category
from petstore.core.errors import Invalid
from petstore.core.values import INT64_MAX, INT64_MIN, read_int64
from petstore.transactions.categories import Categories


class CategoryNames:
    """The named categories."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self._names = {category.id: category.name for category in categories}
        self._ids: dict[str, list[int]] = defaultdict(list)
        for category_id, name in self._names.items():
            self._ids[_plain(name)].append(category_id)

    def label(self, category_id: int) -> str:
        """Such as `Dogs`, or `7` without a name."""
        return self._names.get(category_id, str(category_id))

    def written(self, category_id: int) -> str:
        """The text that `read` reads as this category: its name, or its number if the name is ambiguous."""
        name = self._names.get(category_id, "")
        return name if self._find(name) == category_id else str(category_id)

    def read(self, text: str) -> int:
        """The category that a typed name or number means. Raises Invalid."""
        found = self._find(text)
        if found is not None:
            return found
        if text.removeprefix("-").isdecimal():
            raise Invalid("category", f"Expected an integer from {INT64_MIN} to {INT64_MAX}.")
        if not text.strip():
            raise Invalid("category", "Choose a category, or write its number.")
        ids = sorted(self._ids.get(_plain(text), ()))
        if ids:
            numbers = " or ".join(map(str, ids))
            raise Invalid("category", f"Several categories have this name; write the number: {numbers}.")
        raise Invalid("category", "No category has this name. Choose one, or write a number.")

    def choices(self) -> list[tuple[str, str]]:
        """A pair for each category: the text that `read` takes, and its label. Sorted by name."""
        return sorted(
            ((self.written(category_id), name) for category_id, name in self._names.items()),
            key=lambda choice: choice[1].casefold(),
        )

    def numbered(self, also: int | None = None) -> list[tuple[str, str]]:
        """A pair for each category: its number and its label. Sorted by name. `also` needs no name."""
        ids = set(self._names) | ({also} if also is not None else set())
        return sorted(
            ((str(category_id), self.label(category_id)) for category_id in ids),
            key=lambda choice: choice[1].casefold(),
        )

    def _find(self, text: str) -> int | None:
        number = read_int64(text.strip())
        if number is not None:
            return number
        ids = self._ids.get(_plain(text), ())
        return ids[0] if len(ids) == 1 else None


async def names_in(categories: Categories) -> CategoryNames:
    """The names in a store, at most 1,000."""
    return CategoryNames(await categories.all())


def _plain(name: str) -> str:
    return name.strip().casefold()
