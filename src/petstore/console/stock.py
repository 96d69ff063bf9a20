"""Stock lists: sent, checked, agreed to and stored; and the animals as a list to download."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from petstore.console.browser import FormExpired, check_csrf
from petstore.console.categories import CategoryNames, names_in
from petstore.console.pet_forms import status_choices
from petstore.console.visit import View, Visit
from petstore.core.durations import DAY_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import Conflict, Invalid, InvalidBody, PayloadTooLarge, RequestTimeout
from petstore.core.lists.reading import FORMATS, SENT_SUFFIXES, check_key_column
from petstore.core.lists.spreadsheets import marked
from petstore.core.lists.writing import written_list
from petstore.core.moments import iso_day
from petstore.core.people import Role
from petstore.core.pets import STATUSES, PetQuery
from petstore.core.printable import printable
from petstore.core.uploads import UPLOAD_BYTES_MAX, FileKind, NewUpload, Upload, UploadState, pack, unpack

# Animals that an export writes at a time, in a millisecond; then others have their turn.
_EXPORTED_AT_A_TIME = 250
# The field of a form that has the list (multipart/form-data, RFC 7578).
_FILE = "list"
_FIELD_BYTES_MAX = 1_024
_FORM_BYTES_MAX = 16 * 1_024  # a form without its file
_FIELDS_MAX = 20  # each takes a hundred times as long to read as its bytes in a file
_NAME_CHARACTERS_MAX = 100
_END_BYTES = 8
_HEADER_MAX = 150  # characters of the media type with its boundary: RFC 2046, section 5.1.1
_ARRIVAL_SECONDS = 10 * MINUTE_MS / SECOND_MS
_ARRIVING_FOR_A_PERSON, _ARRIVING = 2, 4  # each needs room for temporary files
_TOO_LARGE = f"A list is at most {UPLOAD_BYTES_MAX >> 20} MiB. Split it, and send the parts one by one."
_NOT_WHOLE = "The list did not arrive whole; send it once more."
_UNREADABLE = "The form can't be read; load its page again."


async def show_all(
    visit: Visit,
    sent: Mapping[str, str] = {},
    asked: Mapping[str, str] = {},
) -> Response:
    return visit.page(
        "stock.html",
        "Stock lists",
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
        upload_id = await _receive(visit, fields)
    except (Invalid, Conflict, PayloadTooLarge) as error:
        visit.refuse(error)
        return await show_all(visit, sent=fields)
    return visit.redirect(f"stock/{upload_id}")


async def _receive(visit: Visit, fields: dict[str, str]) -> int:
    """The id of the upload. `fields` gets what was typed. Nothing is kept after an error.

    Raises Invalid for a field, PayloadTooLarge, FormExpired, InvalidBody, RequestTimeout and Conflict.
    """
    arriving, actor = visit.desk.arriving, visit.actor
    if arriving[actor] >= _ARRIVING_FOR_A_PERSON or arriving.total() >= _ARRIVING:
        raise Conflict("Other lists are on their way. Wait for them, and send this one again.")
    arriving[actor] += 1
    try:
        form = await _read(visit.request, visit.desk.options.body_timeout_seconds)
        try:
            return await _keep(visit, form, fields)
        finally:
            await form.close()
    finally:
        arriving[actor] -= 1


async def _keep(visit: Visit, form: FormData, fields: dict[str, str]) -> int:
    fields.update({name: value for name, value in form.items() if isinstance(value, str)})
    check_csrf(visit.secret, fields.get("csrf", ""))
    sent = form.getlist(_FILE)
    if len(sent) > 1:
        raise Invalid(_FILE, "Send one list at a time; this form has several.")
    file = sent[0] if sent else ""
    if isinstance(file, str) or not file.filename:
        raise Invalid(_FILE, "Choose a file first.")
    new = _read_new(fields, file.filename, file.size or 0)
    with TemporaryFile() as packed:
        await asyncio.to_thread(pack, file.file, packed)
        return await visit.store.uploads.add(new, packed, visit.actor)


async def _read(request: Request, piece_seconds: float) -> FormData:
    content_type = request.headers.get("content-type", "")
    if not content_type.startswith("multipart/form-data") or len(content_type) > _HEADER_MAX:
        raise FormExpired
    # No browser sends a charset (RFC 7578, section 5.1.2). Some break the parser, others make text that
    # is not Unicode.
    if parse_options_header(content_type)[1].get(b"charset", b"utf-8").lower() != b"utf-8":
        raise InvalidBody(_UNREADABLE)
    try:
        async with asyncio.timeout(_ARRIVAL_SECONDS), aclosing(_pieces(request, piece_seconds)) as pieces:
            return await MultiPartParser(
                request.headers,
                pieces,
                max_files=2,
                max_fields=_FIELDS_MAX,
                max_part_size=_FIELD_BYTES_MAX,
            ).parse()
    except TimeoutError:
        raise RequestTimeout("The list did not arrive in time; send it once more.") from None
    except MultiPartException:
        raise InvalidBody(_UNREADABLE) from None


async def _pieces(request: Request, piece_seconds: float) -> AsyncGenerator[bytes, None]:
    """The body, bounded. The parser takes what it has of a body that was cut off as the whole of it."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > UPLOAD_BYTES_MAX + _FORM_BYTES_MAX:
        raise PayloadTooLarge(_TOO_LARGE)
    received, end = 0, b""
    stream: Any = request.stream()
    try:
        while True:
            async with asyncio.timeout(piece_seconds):
                piece: bytes | None = await anext(stream, None)
            if piece is None:
                break
            received += len(piece)
            if received > UPLOAD_BYTES_MAX + _FORM_BYTES_MAX:
                raise PayloadTooLarge(_TOO_LARGE)
            end = (end + piece[-_END_BYTES:])[-_END_BYTES:]
            yield piece
    except ClientDisconnect:
        raise InvalidBody(_NOT_WHOLE) from None
    if not end.rstrip().endswith(b"--"):
        raise InvalidBody(_NOT_WHOLE)


def _read_new(fields: Mapping[str, str], file: str, size: int) -> NewUpload:
    """Raises Invalid, with the field at fault, and PayloadTooLarge."""
    name = printable(PurePath(file.replace("\\", "/")).name) or "list"
    form = fields.get("form", "") or SENT_SUFFIXES.get(PurePath(name).suffix.lower(), "")
    if form not in FORMATS:
        raise Invalid("form", "The file's name does not say what it is: choose Excel or CSV, or JSON lines.")
    key_name = fields.get("key_name", "").strip() or None
    if key_name is not None:
        check_key_column(key_name)
    if not size:
        raise Invalid(_FILE, "The file is empty.")
    if size > UPLOAD_BYTES_MAX:
        raise PayloadTooLarge(_TOO_LARGE)
    return NewUpload(name[-_NAME_CHARACTERS_MAX:], form, key_name, size)


async def _ask(visit: Visit, step: UploadState) -> Response:
    """Let the background process carry it out; the page says what prevents it."""
    upload_id, flash = visit.id_of("list"), ""
    try:
        await visit.store.uploads.ask(upload_id, step, visit.actor, expected_run=visit.form.get("seen", ""))
    except Conflict as conflict:
        flash = conflict.message
    return visit.redirect(f"stock/{upload_id}", flash=flash)


async def discard(visit: Visit) -> Response:
    await visit.store.uploads.discard(visit.id_of("list"))
    return visit.redirect("stock", flash="Discarded; nothing of the list was stored.")


async def show(visit: Visit) -> Response:
    upload = await visit.store.uploads.get(visit.id_of("list"))
    others = await visit.store.uploads.recent() if upload.is_queued else []
    is_stored = upload.state is UploadState.STORED
    return visit.page(
        "stock_upload.html",
        upload.file,
        fragment="report",
        upload=upload,
        revert=await visit.store.list_reverts.of_upload(upload) if is_stored else None,
        ahead=next((each for each in others if each.is_running), None),
        goes_on=upload.is_running or upload.is_queued,
        asks=upload.state is UploadState.WAITING and bool(upload.message and upload.reading),
    )


async def rejects(visit: Visit) -> Response:
    """All rows that can't be stored, in the list's format, with their faults."""
    upload = await visit.store.uploads.get(visit.id_of("list"))
    return _download(visit, f"rejects-{upload.id}", upload.form, _unpacked(visit, upload))


def _download(visit: Visit, name: str, form: str, pieces: AsyncIterator[bytes]) -> Response:
    return visit.download(f"{name}.{form}", marked(pieces) if form == "csv" else pieces)


async def _unpacked(visit: Visit, upload: Upload) -> AsyncIterator[bytes]:
    async for chunk in visit.store.uploads.chunks(upload.id, FileKind.REJECTS):
        yield unpack(chunk)


async def export(visit: Visit) -> Response:
    """The animals as a list, read and sent page by page."""
    asked = visit.asked("form", "status", "category", "key")
    try:
        form, query, key_name = _read_export(asked, await names_in(visit))
    except Invalid as error:
        visit.refuse(error)
        return await show_all(visit, asked=asked)
    pets, source_keys = visit.store.pets.page, visit.store.stock.source_keys
    name = f"stock-{iso_day(visit.now_ms // DAY_MS)}"
    return _download(visit, name, form, written_list(pets, source_keys, query, form, key_name))


def _read_export(asked: Mapping[str, str], names: CategoryNames) -> tuple[str, PetQuery, str | None]:
    """Raises Invalid, with the field at fault."""
    form, status, key_name = asked["form"] or "csv", asked["status"], asked["key"] or None
    if form not in FORMATS:
        raise Invalid("form", "Choose CSV or JSON lines.")
    if status and status not in STATUSES:
        raise Invalid("status", "Choose one of the statuses, or all.")
    if key_name is not None:
        check_key_column(key_name)
    category = names.read(asked["category"]) if asked["category"] else None
    return form, PetQuery(_EXPORTED_AT_A_TIME, STATUSES.get(status), category_id=category), key_name


VIEWS = [
    View("GET", "/stock", show_all),
    View("POST", "/stock", send, Role.STAFF, reads_form=False),
    View("GET", "/stock/export", export),
    View("GET", "/stock/{upload_id}", show),
    View("GET", "/stock/{upload_id}/rejects", rejects),
    View("POST", "/stock/{upload_id}/check", partial(_ask, step=UploadState.CHECKING), Role.STAFF),
    View("POST", "/stock/{upload_id}/store", partial(_ask, step=UploadState.STORING), Role.STAFF),
    View("POST", "/stock/{upload_id}/discard", discard, Role.STAFF),
]
