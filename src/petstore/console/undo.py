"""Puts back what a person has just changed, within a minute and if nothing has changed since.

The journal says what was before; putting it back is one more change there.
"""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.responses import Response

from petstore.console.pet_forms import version_of_pet
from petstore.console.rows import PETS
from petstore.console.several import Act, Rows, answer, back_of, carry_out, read_rows, version_of
from petstore.console.visit import INCOMPLETE_FORM, View, Visit
from petstore.core.durations import MINUTE_MS
from petstore.core.errors import Conflict, InvalidBody
from petstore.core.journal import About, Entry, JournalQuery
from petstore.core.people import Role
from petstore.core.pets import PetChange

_CHANGED_SINCE = "{} {} has changed since, so nothing of it was put back."


async def undo(visit: Visit) -> Response:
    back = back_of(visit)
    for rows, put_back in ((PETS, _put_pet_back), (_CATEGORIES, _put_name_back)):
        chosen = read_rows(visit.form, f"{rows.subject}-")
        if chosen:
            act: Act = partial(put_back, visit)
            return answer(visit, rows, await carry_out(chosen, act), "as before", back)
    raise InvalidBody(INCOMPLETE_FORM)


async def _put_pet_back(visit: Visit, pet_id: int, version: str) -> str:
    entry = await _own_change(visit, PETS, pet_id)
    pet = await visit.store.pets.get(pet_id)
    if version_of_pet(pet) != version or entry.action != "changed":
        raise Conflict(_CHANGED_SINCE.format(PETS.noun, pet_id))
    before = msgspec.convert(entry.before, PetChange)
    await visit.store.pets.change(pet_id, before, visit.actor, expected=pet, is_undo=True)
    return ""


async def _put_name_back(visit: Visit, category_id: int, version: str) -> str:
    entry = await _own_change(visit, _CATEGORIES, category_id)
    if entry.before is None or entry.after is None or version_of(entry.after["name"]) != version:
        raise Conflict(_CHANGED_SINCE.format(_CATEGORIES.noun, category_id))
    before, after = entry.before["name"], entry.after["name"]
    await visit.store.categories.name(category_id, before, visit.actor, expected=after)
    return ""


async def _own_change(visit: Visit, rows: Rows, row_id: int) -> Entry:
    """The newest entry about the row, if this person wrote it within a minute. Raises Conflict."""
    about = About(rows.subject, str(row_id))
    for entry in (await visit.store.journal.page(JournalQuery(1, about))).entries:
        if entry.actor != visit.actor:
            break
        if visit.now_ms - entry.at_ms > MINUTE_MS:
            raise Conflict(f"{rows.noun} {row_id}: a change can be undone for a minute. Change it by hand.")
        return entry
    raise Conflict(_CHANGED_SINCE.format(rows.noun, row_id))


_CATEGORIES = Rows("Category", "categories", "categories/{}", subject="category")
VIEWS = [View("POST", "/undo", undo, Role.STAFF)]
