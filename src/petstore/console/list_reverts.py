"""The revert of an import: a page that says what will happen, how it goes on, and the outcome."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.visit import View, Visit
from petstore.core.errors import Conflict
from petstore.core.people import Role


async def show(visit: Visit) -> Response:
    found = await visit.store.list_reverts.get(visit.id_of("import"))
    return visit.page("list_revert.html", "Take back a list", fragment="report", found=found)


async def ask(visit: Visit) -> Response:
    """Let the background process do it; the page says what prevents it."""
    list_id, flash = visit.id_of("import"), ""
    try:
        await visit.store.list_reverts.ask(list_id, visit.actor)
    except Conflict as conflict:
        flash = conflict.message
    return visit.redirect(f"journal/{list_id}/taking-back", flash=flash)


VIEWS = [
    View("GET", "/journal/{list_id}/taking-back", show, Role.STAFF),
    View("POST", "/journal/{list_id}/taking-back", ask, Role.STAFF),
]
