"""What the columns of a supplier's list mean: chosen once, remembered for every list with these headings."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.visit import View, Visit
from petstore.core.errors import Conflict, Invalid, NotFound
from petstore.core.lists.columns import KEY, MEANINGS, REQUIRED, together, word
from petstore.core.people import Role
from petstore.core.uploads import Reading, Upload, UploadState

_CHOICES = [("", "—"), *((meaning, word(meaning).capitalize()) for meaning in MEANINGS[:-1])]
_CHOICES.append((KEY, "Supplier's key"))


async def show(visit: Visit) -> Response:
    upload, reading = await _find(visit)
    chosen = [visit.form.get(f"column{index}", meaning) for index, meaning in enumerate(reading.meanings)]
    return visit.page(
        "stock_columns.html",
        f"Columns of {upload.file}",
        upload=upload,
        headings=reading.rows[0],
        examples=[[row[index] for row in reading.rows[1:] if row[index:]] for index in range(len(chosen))],
        chosen=chosen,
        choices=_CHOICES,
    )


async def say(visit: Visit) -> Response:
    """Remember it, and check the list anew."""
    upload, reading = await _find(visit)
    meanings = {name: visit.form.get(f"column{index}", "") for index, name in enumerate(reading.names)}
    try:
        _check(list(meanings.values()))
        upload.check_step(UploadState.CHECKING, "")
    except (Invalid, Conflict) as error:
        visit.refuse(error)
        return await show(visit)
    await visit.store.uploads.save_column_meanings(together(reading.names), meanings, visit.actor)
    await visit.store.uploads.ask(upload.id, UploadState.CHECKING, visit.actor)
    return visit.redirect(f"stock/{upload.id}")


async def _find(visit: Visit) -> tuple[Upload, Reading]:
    """Raises NotFound for a list whose columns nobody can say."""
    upload = await visit.store.uploads.get(visit.id_of("list"))
    if upload.reading is None or not upload.reading.names:
        raise NotFound("This list has no columns that can be chosen.")
    return upload, upload.reading


def _check(chosen: list[str]) -> None:
    """Raises Invalid."""
    for index, meaning in enumerate(chosen):
        if meaning and meaning not in MEANINGS:
            raise Invalid(f"column{index}", "Choose one of these, or —.")
        if meaning and meaning in chosen[:index]:
            raise Invalid(f"column{index}", f"Another column is the {word(meaning)} already.")
    for meaning in REQUIRED:
        if meaning not in chosen:
            raise Invalid("", f"Choose the column that is the {word(meaning)}.")


VIEWS = [
    View("GET", "/stock/{upload_id}/columns", show, Role.STAFF),
    View("POST", "/stock/{upload_id}/columns", say, Role.STAFF),
]
