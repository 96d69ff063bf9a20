"""Pages of categories: the named ones, a name for one, another name, none any more."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.formats import sentence
from petstore.console.visit import View, Visit
from petstore.core.categories import CATEGORY_NAME_MAX_CHARACTERS, Category, CategoryRepository
from petstore.core.errors import CategoryNotFound, Conflict, NotFound
from petstore.core.integers import read_int64
from petstore.core.people import Role
from petstore.core.pets import INT64_MAX, INT64_MIN, name_fault


class CategoryPages:
    """`/categories`, and `/categories/7` with what is below it."""

    def __init__(self, categories: CategoryRepository) -> None:
        self._categories = categories

    def views(self) -> list[View]:
        return [
            View("GET", "/categories", self.show_all),
            View("POST", "/categories", self.name, Role.STAFF),
            View("GET", "/categories/{category_id}", self.show, Role.STAFF),
            View("POST", "/categories/{category_id}", self.rename, Role.STAFF),
            View("GET", "/categories/{category_id}/remove", self.ask_removal, Role.STAFF),
            View("POST", "/categories/{category_id}/remove", self.remove, Role.STAFF),
        ]

    async def show_all(self, visit: Visit) -> Response:
        return await self._show_all(visit, {})

    async def name(self, visit: Visit) -> Response:
        """A category that has no name yet: another one is given on its own page."""
        number, name = visit.form.get("id", ""), visit.form.get("name", "")
        category_id = read_int64(number.strip())
        faults = _faults_of(name)
        if category_id is None:
            faults["id"] = f"Expected an integer from {INT64_MIN} to {INT64_MAX}."
        if faults or category_id is None:
            return await self._show_all(visit, faults, 400)
        present = await self._find(category_id)
        if present is not None and present.name != name:
            fault = f"Category {category_id} is called {present.name}. To rename it, choose it in the list."
            return await self._show_all(visit, {"id": fault}, 409)
        try:
            await self._categories.name(category_id, name, visit.actor)
        except Conflict as error:
            return await self._show_all(visit, {"": error.message}, 409)
        return visit.go("categories", told=f"Category {category_id} has its name.")

    async def show(self, visit: Visit) -> Response:
        category = await self._category(visit)
        return _rename_page(visit, category, category.name)

    async def rename(self, visit: Visit) -> Response:
        category, name = await self._category(visit), visit.form.get("name", "")
        faults = _faults_of(name)
        if faults:
            return _rename_page(visit, category, name, 400, faults["name"])
        await self._categories.name(category.id, name, visit.actor)
        return visit.go("categories", told="Saved.")

    async def ask_removal(self, visit: Visit) -> Response:
        category = await self._category(visit)
        title = f"Take the name of category {category.id} away?"
        return visit.page("categories_remove.html", title, category=category)

    async def remove(self, visit: Visit) -> Response:
        category = await self._categories.unname(_category_id_of(visit), visit.actor)
        return visit.go("categories", told=f"Category {category.id} has no name any more.")

    async def _show_all(self, visit: Visit, faults: dict[str, str], status: int = 200) -> Response:
        categories = await self._categories.all()
        free = max((category.id for category in categories), default=0) + 1
        return visit.page(
            "categories.html",
            "Categories",
            status,
            categories=categories,
            number=visit.form.get("id", free if 0 < free <= INT64_MAX else ""),
            name=visit.form.get("name", ""),
            faults=faults,
        )

    async def _find(self, category_id: int) -> Category | None:
        named = (each for each in await self._categories.all() if each.id == category_id)
        return next(named, None)

    async def _category(self, visit: Visit) -> Category:
        """The category in the path. Raises NotFound for one without a name."""
        category_id = _category_id_of(visit)
        category = await self._find(category_id)
        if category is None:
            raise CategoryNotFound(category_id)
        return category


def _category_id_of(visit: Visit) -> int:
    category_id = read_int64(visit.path["category_id"])
    if category_id is None:
        raise NotFound("There is no such category.")
    return category_id


def _faults_of(name: str) -> dict[str, str]:
    fault = name_fault(name, CATEGORY_NAME_MAX_CHARACTERS)
    return {} if fault is None else {"name": sentence(fault)}


def _rename_page(visit: Visit, category: Category, name: str, status: int = 200, fault: str = "") -> Response:
    title = f"Rename category {category.id}"
    return visit.page("categories_rename.html", title, status, category=category, name=name, fault=fault)
