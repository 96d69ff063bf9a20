"""Stock lists: sent, checked, agreed to and stored; and the animals as a list to download."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response

from petstore.console.category_names import CategoryNames, names_in
from petstore.console.downloads import Downloads
from petstore.console.pet_forms import status_choices
from petstore.console.reception import Reception
from petstore.console.visit import View, Visit
from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict, Invalid, PayloadTooLarge, PetstoreError
from petstore.core.imports import UPLOAD_BYTES_MAX, FileKind, Upload, UploadState, unpack
from petstore.core.lists.reading import FORMATS, check_key_column
from petstore.core.lists.writing import written_list
from petstore.core.moments import iso_day
from petstore.core.people import Role
from petstore.core.pets import STATUSES, PageQuery
from petstore.transactions.store import Parts

# Of an export: a millisecond of work, and then others have their turn.
_EXPORTED_AT_A_TIME = 250


class StockPages:
    """`/stock` and the pages below it."""

    def __init__(self, store: Parts, downloads: Downloads, reception: Reception) -> None:
        self._store = store
        self._reception = reception
        self._downloads = downloads

    def views(self) -> list[View]:
        return [
            View("GET", "/stock", self.show_all),
            View("POST", "/stock", self.send, Role.STAFF, reads_form=False),
            View("GET", "/stock/export", self.export),
            View("GET", "/stock/{upload_id}", self.show),
            View("GET", "/stock/{upload_id}/rejects", self.rejects),
            View("POST", "/stock/{upload_id}/check", self.check, Role.STAFF),
            View("POST", "/stock/{upload_id}/store", self.store, Role.STAFF),
            View("POST", "/stock/{upload_id}/discard", self.discard, Role.STAFF),
        ]

    async def show_all(self, visit: Visit) -> Response:
        return await self._page(visit)

    async def _page(
        self,
        visit: Visit,
        error: PetstoreError | None = None,
        sent: Mapping[str, str] = {},
        asked: Mapping[str, str] = {},
    ) -> Response:
        field = error.field if isinstance(error, Invalid) else ""
        return visit.page(
            "stock.html",
            "Stock lists",
            200 if error is None else error.status,
            uploads=await self._store.uploads.recent(),
            sent=sent,
            asked=asked,
            faults={} if error is None else {field: error.message},
            statuses=status_choices(None),
            largest_mib=UPLOAD_BYTES_MAX >> 20,
        )

    async def send(self, visit: Visit) -> Response:
        """Keep a list for the background process to check."""
        fields: dict[str, str] = {}
        try:
            upload_id = await self._reception.receive(visit.request, visit.secret, visit.actor, fields)
        except (Invalid, Conflict, PayloadTooLarge) as error:
            return await self._page(visit, error, sent=fields)
        return visit.redirect(f"stock/{upload_id}")

    async def check(self, visit: Visit) -> Response:
        return await self._ask(visit, UploadState.CHECKING)

    async def store(self, visit: Visit) -> Response:
        return await self._ask(visit, UploadState.STORING)

    async def _ask(self, visit: Visit, step: UploadState) -> Response:
        """Let the background process carry it out; the page says what prevents it."""
        upload_id, flash = visit.id_of("list"), ""
        try:
            await self._store.uploads.ask(upload_id, step, visit.actor, seen=visit.form.get("seen", ""))
        except Conflict as conflict:
            flash = conflict.message
        return visit.redirect(f"stock/{upload_id}", flash=flash)

    async def discard(self, visit: Visit) -> Response:
        await self._store.uploads.discard(visit.id_of("list"))
        return visit.redirect("stock", flash="Discarded; nothing of the list was stored.")

    async def show(self, visit: Visit) -> Response:
        upload = await self._store.uploads.find(visit.id_of("list"))
        return visit.page(
            "stock_upload.html",
            upload.file,
            fragment="report",
            upload=upload,
            ahead=await self._ahead_of(upload),
            goes_on=upload.is_running or upload.is_queued,
        )

    async def _ahead_of(self, upload: Upload) -> Upload | None:
        """The list that is worked on, while this one waits."""
        if not upload.is_queued:
            return None
        return next((each for each in await self._store.uploads.recent() if each.is_running), None)

    async def rejects(self, visit: Visit) -> Response:
        """All rows that can't be stored, in the list's format, with their faults."""
        upload = await self._store.uploads.find(visit.id_of("list"))
        name = f"rejects-{upload.id}.{upload.form}"
        return self._downloads.file(name, self._unpacked(upload))

    async def _unpacked(self, upload: Upload) -> AsyncIterator[bytes]:
        async for chunk in self._store.uploads.chunks(upload.id, FileKind.REJECTS):
            yield unpack(chunk)

    async def export(self, visit: Visit) -> Response:
        """The animals as a list, read and sent page by page."""
        asked = visit.asked("form", "status", "category", "key")
        try:
            form, query, key_name = _read_export(asked, await names_in(self._store.categories))
        except Invalid as error:
            return await self._page(visit, error, asked=asked)
        name = f"stock-{iso_day(visit.now_ms // DAY_MS)}.{form}"
        return self._downloads.file(
            name, written_list(self._store.pets.page, self._store.stock.source_keys, query, form, key_name)
        )


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
