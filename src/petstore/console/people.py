"""Pages of people: list, add, change roles, disable, reset, sign out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from petstore.console.visit import View, Visit
from petstore.core.errors import Conflict, Invalid
from petstore.core.journal import About, JournalQuery
from petstore.core.people import Role, SignInLink
from petstore.core.sign_ins import link_address
from petstore.transactions.store import Parts


class PeoplePages:
    """`/people`, for operators. `base` returns the service's address for links, without a final slash."""

    def __init__(self, store: Parts, base: Callable[[Request], str]) -> None:
        self._store = store
        self._base = base

    def views(self) -> list[View]:
        pages = {
            ("GET", "/people"): self.list,
            ("GET", "/people/add"): self.ask_add,
            ("POST", "/people/add"): self.add,
            ("GET", "/people/of/{name:str}"): self.show,
            ("POST", "/people/of/{name:str}/role"): self.set_role,
            ("GET", "/people/of/{name:str}/disable"): self.ask_disable,
            ("POST", "/people/of/{name:str}/disable"): self.disable,
            ("POST", "/people/of/{name:str}/enable"): self.enable,
            ("GET", "/people/of/{name:str}/reset"): self.ask_reset,
            ("POST", "/people/of/{name:str}/reset"): self.reset,
            ("POST", "/people/of/{name:str}/sign-out-everywhere"): self.sign_out,
        }
        return [View(method, path, handler, Role.OPERATOR) for (method, path), handler in pages.items()]

    async def list(self, visit: Visit) -> Response:
        return visit.page("people.html", "People", people=await self._store.people.all())

    async def ask_add(self, visit: Visit) -> Response:
        return self._add_form(visit)

    async def add(self, visit: Visit) -> Response:
        try:
            role = _role(visit.form, "role")
            link = await self._store.people.add(visit.form.get("name", "").strip(), role, visit.actor)
        except Invalid as error:
            return self._add_form(visit, {error.field: error.message}, 400)
        except Conflict as error:
            return self._add_form(visit, {"name": error.message}, 409)
        return self._show_link(visit, link, f"{link.person.name} may use the console")

    def _add_form(self, visit: Visit, faults: Mapping[str, str] | None = None, status: int = 200) -> Response:
        return visit.page(
            "people_add.html",
            "Add a person",
            status,
            name=visit.form.get("name", ""),
            role=visit.form.get("role", Role.STAFF),
            faults=faults or {},
            roles=ROLES,
        )

    async def show(self, visit: Visit) -> Response:
        return await self._page(visit)

    async def _page(self, visit: Visit, fault: str = "", status: int = 200) -> Response:
        person = await self._store.people.find(visit.path["name"])
        sessions = await self._store.sign_ins.sessions_of(person.id)
        return visit.page(
            "people_person.html",
            person.name,
            status,
            subject=person,
            sessions=sessions,
            roles=ROLES,
            fault=fault,
        )

    async def set_role(self, visit: Visit) -> Response:
        try:
            role, shown = _role(visit.form, "role"), _role(visit.form, "was")
            person = await self._store.people.set_role(visit.path["name"], role, visit.actor, expected=shown)
        except (Conflict, Invalid) as error:
            return await self._page(visit, error.message, error.status)
        return visit.redirect(_address(person.name), flash=f"{person.name} has the role {person.role}.")

    async def ask_disable(self, visit: Visit) -> Response:
        return await self._question(visit, "disable")

    async def disable(self, visit: Visit) -> Response:
        try:
            await self._check_seen(visit)
            person = await self._store.people.disable(visit.path["name"], visit.actor)
        except Conflict as error:
            return await self._page(visit, error.message, 409)
        return visit.redirect(
            _address(person.name), flash=f"{person.name} is signed out, and can't sign in any more."
        )

    async def enable(self, visit: Visit) -> Response:
        person = await self._store.people.enable(visit.path["name"], visit.actor)
        return visit.redirect(_address(person.name), flash=f"{person.name} may sign in again.")

    async def ask_reset(self, visit: Visit) -> Response:
        return await self._question(visit, "reset")

    async def reset(self, visit: Visit) -> Response:
        try:
            await self._check_seen(visit)
            link = await self._store.people.reset(visit.path["name"], visit.actor)
        except Conflict as error:
            return await self._page(visit, error.message, 409)
        return self._show_link(visit, link, f"A new link for {link.person.name}")

    async def sign_out(self, visit: Visit) -> Response:
        person = await self._store.people.find(visit.path["name"])
        await self._store.sign_ins.end_sessions(person, visit.actor)
        return visit.redirect(_address(person.name), flash=f"{person.name} is signed out everywhere.")

    async def _question(self, visit: Visit, action: str) -> Response:
        person = await self._store.people.find(visit.path["name"])
        title = {"disable": f"Disable {person.name}?", "reset": f"Reset the password of {person.name}?"}
        seen = await self._newest(person.name)
        return visit.page("people_ask.html", title[action], subject=person, action=action, seen=seen)

    async def _check_seen(self, visit: Visit) -> None:
        """Raise Conflict if the person changed after the question was shown: a reset sent again by a reload
        would remove the password that was set with the first link."""
        name = visit.path["name"]
        if visit.form.get("seen") != await self._newest(name):
            raise Conflict(
                f"{name} was changed after this was asked. Look at what is shown here, and begin anew."
            )

    async def _newest(self, name: str) -> str:
        """The id of the newest journal entry about a person. Raises PersonNotFound."""
        page = await self._store.journal.page(JournalQuery(1, About("person", name)))
        return str(page.entries[0].id) if page.entries else "0"

    def _show_link(self, visit: Visit, link: SignInLink, title: str) -> Response:
        """The only page with the link: the store has its digest."""
        address = link_address(self._base(visit.request), link)
        return visit.page(
            "people_link.html", title, subject=link.person, address=address, until_ms=link.expires_at_ms
        )


ROLES = (
    (Role.VIEWER, "viewer: reads"),
    (Role.STAFF, "staff: works with animals and orders"),
    (Role.OPERATOR, "operator: everything"),
)


def _role(form: Mapping[str, str], field: str) -> Role:
    """Raises Invalid."""
    try:
        return Role(form.get(field, ""))
    except ValueError:
        raise Invalid("role", "Choose one of the roles.") from None


def _address(name: str) -> str:
    return f"people/of/{name}"
