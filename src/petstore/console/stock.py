"""Stock lists: sent, checked, agreed to and stored; and the animals as a list to download."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response

from petstore.console.categories import CategoryNames, names_in
from petstore.console.pet_forms import status_choices
from petstore.console.visit import View, Visit
from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict, Invalid, PayloadTooLarge, PetstoreError
from petstore.core.imports import UPLOAD_BYTES_MAX, FileKind, Upload, UploadState, unpack
from petstore.core.lists.reading import FORMATS, check_key_column
from petstore.core.lists.writing import written_list
from petstore.core.moments import iso_day
from petstore.core.people import Role
from petstore.core.pets import STATUSES, PageQuery

# Of an export: a millisecond of work, and then others have their turn.
_EXPORTED_AT_A_TIME = 250


async def show_all(
    visit: Visit,
    error: PetstoreError | None = None,
    sent: Mapping[str, str] = {},
    asked: Mapping[str, str] = {},
) -> Response:
    return visit.page(
        "stock.html",
        "Stock lists",
        error=error,
        uploads=await visit.store.uploads.recent(),
        sent=sent,
        asked=asked,
        statuses=status_choices(None),
        largest_mib=UPLOAD_BYTES_MAX >> 20,
    )


async def send(visit: Visit) -> Response:
    """Keep a list for the background process to check."""
    fields: dict[str, str] = {}
    try:
        upload_id = await visit.desk.reception.receive(visit.request, visit.secret, visit.actor, fields)
    except (Invalid, Conflict, PayloadTooLarge) as error:
        return await show_all(visit, error, sent=fields)
    return visit.redirect(f"stock/{upload_id}")


async def check(visit: Visit) -> Response:
    return await _ask(visit, UploadState.CHECKING)


async def store(visit: Visit) -> Response:
    return await _ask(visit, UploadState.STORING)


async def _ask(visit: Visit, step: UploadState) -> Response:
    """Let the background process carry it out; the page says what prevents it."""
    upload_id, flash = visit.id_of("list"), ""
    try:
        await visit.store.uploads.ask(upload_id, step, visit.actor, seen=visit.form.get("seen", ""))
    except Conflict as conflict:
        flash = conflict.message
    return visit.redirect(f"stock/{upload_id}", flash=flash)


async def discard(visit: Visit) -> Response:
    await visit.store.uploads.discard(visit.id_of("list"))
    return visit.redirect("stock", flash="Discarded; nothing of the list was stored.")


async def show(visit: Visit) -> Response:
    upload = await visit.store.uploads.find(visit.id_of("list"))
    others = await visit.store.uploads.recent() if upload.is_queued else []
    return visit.page(
        "stock_upload.html",
        upload.file,
        fragment="report",
        upload=upload,
        ahead=next((each for each in others if each.is_running), None),
        goes_on=upload.is_running or upload.is_queued,
    )


async def rejects(visit: Visit) -> Response:
    """All rows that can't be stored, in the list's format, with their faults."""
    upload = await visit.store.uploads.find(visit.id_of("list"))
    return visit.download(f"rejects-{upload.id}.{upload.form}", _unpacked(visit, upload))


async def _unpacked(visit: Visit, upload: Upload) -> AsyncIterator[bytes]:
    async for chunk in visit.store.uploads.chunks(upload.id, FileKind.REJECTS):
        yield unpack(chunk)


async def export(visit: Visit) -> Response:
    """The animals as a list, read and sent page by page."""
    asked = visit.asked("form", "status", "category", "key")
    try:
        form, query, key_name = _read_export(asked, await names_in(visit))
    except Invalid as error:
        return await show_all(visit, error, asked=asked)
    pets, source_keys = visit.store.pets.page, visit.store.stock.source_keys
    name = f"stock-{iso_day(visit.now_ms // DAY_MS)}.{form}"
    return visit.download(name, written_list(pets, source_keys, query, form, key_name))


def _read_export(asked: Mapping[str, str], names: CategoryNames) -> tuple[str, PageQuery, str | None]:
    """Raises Invalid, with the field at fault."""
    form, status, key_name = asked["form"] or "csv", asked["status"], asked["key"] or None
    if form not in FORMATS:
        raise Invalid("form", "Choose CSV or JSON lines.")
    if status and status not in STATUSES:
        raise Invalid("status", "Choose one of the states, or all.")
    if key_name is not None:
        check_key_column(key_name)
    category = names.read(asked["category"]) if asked["category"] else None
    return form, PageQuery(_EXPORTED_AT_A_TIME, STATUSES.get(status), category_id=category), key_name


VIEWS = [
    View("GET", "/stock", show_all),
    View("POST", "/stock", send, Role.STAFF, reads_form=False),
    View("GET", "/stock/export", export),
    View("GET", "/stock/{upload_id}", show),
    View("GET", "/stock/{upload_id}/rejects", rejects),
    View("POST", "/stock/{upload_id}/check", check, Role.STAFF),
    View("POST", "/stock/{upload_id}/store", store, Role.STAFF),
    View("POST", "/stock/{upload_id}/discard", discard, Role.STAFF),
]
