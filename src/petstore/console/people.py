"""Pages of people, for operators: list, add, change roles, disable, reset, sign out."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from petstore.console.contacts import ContactBlock
from petstore.console.visit import View, Visit, address, asks_again
from petstore.core.errors import Conflict, Invalid
from petstore.core.journal import About, JournalQuery
from petstore.core.people import Person, Role, SignInLink
from petstore.core.sign_ins import link_address
from petstore.web.addresses import address_of

ROLES = (
    (Role.VIEWER, "viewer: reads"),
    (Role.STAFF, "staff: works with animals and orders"),
    (Role.OPERATOR, "operator: everything"),
)
_PAGE_LIMIT = 100


async def show_all(visit: Visit) -> Response:
    """A page of people, by name. Its address has how many are on the pages before."""
    people, before = await visit.store.people.all(), visit.query_id("after")
    end = before + _PAGE_LIMIT
    return visit.page(
        "people.html",
        "People",
        people=people[before:end],
        count=f"{len(people):,}",
        first="people" if before else "",
        next=address("people", {"after": end}) if end < len(people) else "",
    )


async def ask_add(visit: Visit) -> Response:
    return visit.page(
        "people_add.html",
        "Add a person",
        name=visit.form.get("name", ""),
        role=visit.form.get("role", Role.STAFF),
        roles=ROLES,
    )


@asks_again(ask_add, Conflict, Invalid, beside="name")
async def add(visit: Visit) -> Response:
    link = await visit.store.people.add(visit.typed("name"), _role(visit, "role"), visit.actor)
    return _show_link(visit, link, f"{link.person.name} may use the console")


async def show(visit: Visit) -> Response:
    person = await visit.store.people.find(visit.path["name"])
    sessions = await visit.store.sign_ins.sessions_of(person.id)
    return visit.page(
        "people_person.html",
        person.name,
        subject=person,
        sessions=sessions,
        roles=ROLES,
        mail=await _MAIL.block(visit, person.id),
    )


@asks_again(show, Conflict, Invalid)
async def set_role(visit: Visit) -> Response:
    role, shown = _role(visit, "role"), _role(visit, "was")
    person = await visit.store.people.set_role(visit.path["name"], role, visit.actor, expected=shown)
    return _shown_again(visit, person, f"{person.name} has the role {person.role}.")


@asks_again(show, Conflict)
async def disable(visit: Visit) -> Response:
    await _check_seen(visit)
    person = await visit.store.people.disable(visit.path["name"], visit.actor)
    return _shown_again(visit, person, f"{person.name} is signed out, and can't sign in any more.")


async def enable(visit: Visit) -> Response:
    person = await visit.store.people.enable(visit.path["name"], visit.actor)
    done = "may sign in again" if person.has_password else "is enabled: Reset the password makes a link"
    return _shown_again(visit, person, f"{person.name} {done}.")


@asks_again(show, Conflict)
async def reset(visit: Visit) -> Response:
    await _check_seen(visit)
    link = await visit.store.people.reset(visit.path["name"], visit.actor)
    return _show_link(visit, link, f"A new link for {link.person.name}")


async def sign_out(visit: Visit) -> Response:
    person = await visit.store.people.find(visit.path["name"])
    await visit.store.sign_ins.end_sessions(person, visit.actor)
    return _shown_again(visit, person, f"{person.name} is signed out everywhere.")


def _shown_again(visit: Visit, person: Person, flash: str) -> Response:
    return visit.redirect(f"people/of/{person.name}", flash=flash)


async def _ask(visit: Visit, action: str, title: str) -> Response:
    person = await visit.store.people.find(visit.path["name"])
    is_self = person.id == visit.person.id
    return visit.page(
        "people_ask.html",
        title.format(person.name),
        subject=person,
        action=action,
        is_self=is_self,
        seen=await _newest(visit),
    )


async def _check_seen(visit: Visit) -> None:
    """Raise Conflict if the person changed after the question was shown: a reset sent again by a reload
    would remove the password that was set with the first link."""
    if visit.form.get("seen") != await _newest(visit):
        raise Conflict(
            f"{visit.path['name']} was changed after this was asked."
            " Look at what is shown here, and start again."
        )


async def _newest(visit: Visit) -> str:
    """The id of the newest journal entry about the person. Raises PersonNotFound."""
    page = await visit.store.journal.page(JournalQuery(1, About("person", visit.path["name"])))
    return str(page.entries[0].id) if page.entries else "0"


def _show_link(visit: Visit, link: SignInLink, title: str) -> Response:
    """The only page with the link: the store has its digest."""
    options = visit.desk.options
    address = link_address(options.base or address_of(visit.request, options.trusted), link)
    return visit.page(
        "people_link.html", title, subject=link.person, address=address, until_ms=link.expires_at_ms
    )


def _role(visit: Visit, field: str) -> Role:
    """Raises Invalid."""
    try:
        return Role(visit.form.get(field, ""))
    except ValueError:
        raise Invalid("role", "Choose one of the roles.") from None


_MAIL = ContactBlock(
    "person", "/people/of/{name}", Role.OPERATOR, lambda visit: str(visit.path["name"]), show
)
VIEWS = [
    *_MAIL.views(),
    *(
        View(method, f"/people{path}", handler, Role.OPERATOR, shows_once=handler in (add, reset))
        for method, path, handler in (
            ("GET", "", show_all),
            ("GET", "/add", ask_add),
            ("POST", "/add", add),
            ("GET", "/of/{name}", show),
            ("POST", "/of/{name}/role", set_role),
            ("GET", "/of/{name}/disable", partial(_ask, action="disable", title="Disable {}?")),
            ("POST", "/of/{name}/disable", disable),
            ("POST", "/of/{name}/enable", enable),
            ("GET", "/of/{name}/reset", partial(_ask, action="reset", title="Reset the password of {}?")),
            ("POST", "/of/{name}/reset", reset),
            ("POST", "/of/{name}/sign-out-everywhere", sign_out),
        )
    ),
]
