"""Categories as people see and write them; their pages: list the named ones, name, rename, remove a name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec
from starlette.responses import Response

from petstore.console.formats import sentence
from petstore.console.journal import history_of
from petstore.console.several import undo_mark, version_of
from petstore.console.visit import INCOMPLETE_FORM, Faults, View, Visit, asks_again
from petstore.core.categories import (
    CATEGORY_NAME_MAX_CHARACTERS,
    Category,
    CategoryNamedMeanwhile,
    plain_name,
)
from petstore.core.errors import CategoryNotFound, Conflict, Invalid, InvalidBody, NotFound
from petstore.core.people import Role
from petstore.core.values import INT64_MAX, INT64_MIN, name_fault, read_int64

_NUMBER = f"Expected an integer from {INT64_MIN} to {INT64_MAX}."


class CategoryNames:
    """The named categories: by name if it is unique, else by number."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self._names = {category.id: category.name for category in categories}
        self._ids: dict[str, list[int]] = defaultdict(list)
        for category_id, name in self._names.items():
            self._ids[plain_name(name)].append(category_id)

    def label(self, category_id: int) -> str:
        """The name of a category, such as `Dogs`; its number, such as `7`, without one."""
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
            raise Invalid("category", _NUMBER)
        if not text.strip():
            raise Invalid("category", "Choose a category, or write its number.")
        ids = sorted(self._ids.get(plain_name(text), ()))
        if ids:
            numbers = " or ".join(map(str, ids))
            raise Invalid("category", f"Several categories have this name; write the number: {numbers}.")
        raise Invalid("category", "No category has this name. Choose one, or write a number.")

    def numbered(self, also: Iterable[int | None] = ()) -> list[tuple[str, str]]:
        """A pair for each category: its number and its label. Sorted by name. `also` need no name."""
        ids = set(self._names) | {id_ for id_ in also if id_ is not None}
        choices = [(str(category_id), self.label(category_id)) for category_id in ids]
        return sorted(choices, key=lambda choice: choice[1].casefold())

    def _find(self, text: str) -> int | None:
        number = read_int64(text.strip())
        if number is not None:
            return number
        ids = self._ids.get(plain_name(text), ())
        return ids[0] if len(ids) == 1 else None


async def with_animals(visit: Visit) -> list[int]:
    """The categories with the most animals, named or not, as last counted."""
    counted = await visit.desk.statistics.latest()
    return list(counted.totals.categories) if counted else []


async def names_in(visit: Visit) -> CategoryNames:
    """The names in the store, at most 1,000."""
    return CategoryNames(await visit.store.categories.all())


async def show_all(visit: Visit) -> Response:
    categories = await visit.store.categories.all()
    free = max((category.id for category in categories), default=0) + 1
    return visit.page(
        "categories.html",
        "Categories",
        categories=await _rows(visit, categories),
        number=visit.form.get("id", free if 0 < free <= INT64_MAX else ""),
        name=visit.form.get("name", ""),
    )


class Row(msgspec.Struct, frozen=True):
    """A category of the list. `name` is None without one, `count` before its animals are counted. `twice`:
    another one has the name."""

    id: int
    name: str | None
    count: int | None
    twice: bool = False


async def _rows(visit: Visit, categories: list[Category]) -> list[Row]:
    """The named ones, and of those without a name the ones with the most animals."""
    counted = await visit.desk.statistics.latest()
    counts = {id_: sum(pets.values()) for id_, pets in counted.totals.categories.items()} if counted else {}
    plain = Counter(plain_name(category.name) for category in categories)
    rows = [
        Row(each.id, each.name, counts.get(each.id, 0) if counted else None, plain[plain_name(each.name)] > 1)
        for each in categories
    ]
    named = {category.id for category in categories}
    return rows + [Row(id_, None, count) for id_, count in counts.items() if id_ not in named]


@asks_again(show_all, Faults, Conflict, beside="name")
async def name(visit: Visit) -> Response:
    """Name a category that has no name. Its own page renames it."""
    category_id, name = read_int64(visit.typed("id")), visit.form.get("name", "")
    faults = _faults_of(name)
    if category_id is None:
        faults["id"] = _NUMBER
    if faults or category_id is None:
        raise Faults(faults)
    try:
        await visit.store.categories.name(category_id, name, visit.actor, expected=None)
    except CategoryNamedMeanwhile as error:
        visit.refuse(Conflict(f"{error.message} To rename it, choose it in the list."), "id")
        return await show_all(visit)
    return visit.redirect("categories", flash=f"Category {category_id} has its name.")


async def show(visit: Visit, category: Category | None = None) -> Response:
    """The name's history, which shows the second of two editors what the first one did. Staff get a form."""
    category = category or await _find(visit)
    return visit.page(
        "categories_rename.html",
        f"Category {category.id}",
        named=category.name,
        category=category,
        name=visit.form.get("name", category.name),
        history=await history_of(visit, "category", category.id),
    )


async def rename(visit: Visit) -> Response:
    shown, name = _shown(visit), visit.form.get("name", "")
    try:
        if faults := _faults_of(name):
            raise Faults(faults)
        await visit.store.categories.name(shown.id, name, visit.actor, expected=shown.name)
    except CategoryNamedMeanwhile as error:
        visit.refuse(Conflict(f"{error.message} Save once more to replace that name by yours."), "name")
        return await show(visit, error.current)
    except (Faults, Conflict) as error:
        visit.refuse(error, "name")
        return await show(visit, shown)
    undo = [undo_mark("category", shown.id, version_of(name))]
    return visit.redirect("categories", flash="Saved.", undo=undo if name != shown.name else ())


async def ask_removal(visit: Visit, category: Category | None = None) -> Response:
    category = category or await _find(visit)
    title = f"Remove the name of category {category.id}?"
    return visit.page("categories_remove.html", title, category=category)


async def remove(visit: Visit) -> Response:
    shown = _shown(visit)
    try:
        await visit.store.categories.unname(shown.id, visit.actor, expected=shown.name)
    except CategoryNamedMeanwhile as error:
        visit.refuse(error)
        return await ask_removal(visit, error.current)
    return visit.redirect("categories", flash=f"The name of category {shown.id} was removed.")


async def _find(visit: Visit) -> Category:
    """The category in the path. Raises NotFound for one without a name."""
    category_id = _id_of(visit)
    for category in await visit.store.categories.all():
        if category.id == category_id:
            return category
    raise CategoryNotFound(category_id)


def _shown(visit: Visit) -> Category:
    """The category as its form showed it. Raises NotFound, and InvalidBody for an incomplete form."""
    category_id, name = _id_of(visit), visit.form.get("was", "")
    if not name:
        raise InvalidBody(INCOMPLETE_FORM)
    return Category(category_id, name)


def _id_of(visit: Visit) -> int:
    category_id = read_int64(visit.path["category_id"])
    if category_id is None:
        raise NotFound("There is no such category.")
    return category_id


def _faults_of(name: str) -> dict[str, str]:
    fault = name_fault(name, CATEGORY_NAME_MAX_CHARACTERS)
    return {} if fault is None else {"name": sentence(fault)}


VIEWS = [
    View("GET", "/categories", show_all),
    View("POST", "/categories", name, Role.STAFF),
    View("GET", "/categories/{category_id}", show),
    View("POST", "/categories/{category_id}", rename, Role.STAFF),
    View("GET", "/categories/{category_id}/remove", ask_removal, Role.STAFF),
    View("POST", "/categories/{category_id}/remove", remove, Role.STAFF),
]
