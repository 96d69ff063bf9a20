"""Pages of categories: list the named ones, name, rename, remove a name."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.formats import sentence
from petstore.console.history import history_of
from petstore.console.visit import INCOMPLETE_FORM, View, Visit
from petstore.core.categories import CATEGORY_NAME_MAX_CHARACTERS, Category, CategoryNamedMeanwhile
from petstore.core.errors import CategoryNotFound, Conflict, InvalidBody, NotFound
from petstore.core.journal import About
from petstore.core.people import Role
from petstore.core.values import INT64_MAX, INT64_MIN, name_fault, read_int64
from petstore.transactions.store import Parts


class CategoryPages:
    """`/categories`, `/categories/7` and the pages below it."""

    def __init__(self, store: Parts) -> None:
        self._store = store

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
        """Name a category that has no name. Its own page renames it."""
        number, name = visit.form.get("id", ""), visit.form.get("name", "")
        category_id = read_int64(number.strip())
        faults = _faults_of(name)
        if category_id is None:
            faults["id"] = f"Expected an integer from {INT64_MIN} to {INT64_MAX}."
        if faults or category_id is None:
            return await self._show_all(visit, faults, 400)
        try:
            await self._store.categories.name(category_id, name, visit.actor, expected=None)
        except CategoryNamedMeanwhile as error:
            fault = f"{error.message} To rename it, choose it in the list."
            return await self._show_all(visit, {"id": fault}, 409)
        except Conflict as error:
            return await self._show_all(visit, {"": error.message}, 409)
        return visit.redirect("categories", flash=f"Category {category_id} has its name.")

    async def show(self, visit: Visit) -> Response:
        category = await self._category(visit)
        return await self._rename_page(visit, category, category.name)

    async def rename(self, visit: Visit) -> Response:
        shown, name = _shown(visit), visit.form.get("name", "")
        faults = _faults_of(name)
        if faults:
            return await self._rename_page(visit, shown, name, 400, faults["name"])
        try:
            await self._store.categories.name(shown.id, name, visit.actor, expected=shown.name)
        except CategoryNamedMeanwhile as error:
            fault = f"{error.message} Save once more to replace that name by yours."
            return await self._rename_page(visit, error.present, name, 409, fault)
        return visit.redirect("categories", flash="Saved.")

    async def ask_removal(self, visit: Visit) -> Response:
        return _removal_page(visit, await self._category(visit))

    async def remove(self, visit: Visit) -> Response:
        shown = _shown(visit)
        try:
            await self._store.categories.unname(shown.id, visit.actor, expected=shown.name)
        except CategoryNamedMeanwhile as error:
            return _removal_page(visit, error.present, 409, error.message)
        return visit.redirect("categories", flash=f"Category {shown.id} has no name any more.")

    async def _rename_page(
        self, visit: Visit, category: Category, name: str, status: int = 200, fault: str = ""
    ) -> Response:
        """The form with the name's history, which shows the second of two editors what the first one did."""
        return visit.page(
            "categories_rename.html",
            f"Rename category {category.id}",
            status,
            category=category,
            name=name,
            fault=fault,
            history=await history_of(self._store.journal, About("category", str(category.id))),
        )

    async def _show_all(self, visit: Visit, faults: dict[str, str], status: int = 200) -> Response:
        categories = await self._store.categories.all()
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

    async def _category(self, visit: Visit) -> Category:
        """The category in the path. Raises NotFound for one without a name."""
        category_id = _category_id_of(visit)
        for category in await self._store.categories.all():
            if category.id == category_id:
                return category
        raise CategoryNotFound(category_id)


def _category_id_of(visit: Visit) -> int:
    category_id = read_int64(visit.path["category_id"])
    if category_id is None:
        raise NotFound("There is no such category.")
    return category_id


def _shown(visit: Visit) -> Category:
    """The category as its form showed it. Raises NotFound, and InvalidBody for an incomplete form."""
    category_id, name = _category_id_of(visit), visit.form.get("was", "")
    if not name:
        raise InvalidBody(INCOMPLETE_FORM)
    return Category(category_id, name)


def _faults_of(name: str) -> dict[str, str]:
    fault = name_fault(name, CATEGORY_NAME_MAX_CHARACTERS)
    return {} if fault is None else {"name": sentence(fault)}


def _removal_page(visit: Visit, category: Category, status: int = 200, fault: str = "") -> Response:
    title = f"Remove the name of category {category.id}?"
    return visit.page("categories_remove.html", title, status, category=category, fault=fault)
