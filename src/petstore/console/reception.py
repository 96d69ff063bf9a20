"""Reads a list that a form sends (multipart/form-data, RFC 7578) into a temporary file, and keeps it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from petstore.console.cookies import FormExpired, check_csrf
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.errors import Conflict, Invalid, InvalidBody, PayloadTooLarge, RequestTimeout
from petstore.core.imports import UPLOAD_BYTES_MAX, NewUpload, pack
from petstore.core.lists.reading import SUFFIXES, check_key_column
from petstore.core.printable import printable
from petstore.transactions.imports import Uploads

_FILE = "list"
_FIELD_BYTES_MAX = 1_024
_FORM_BYTES_MAX = 16 * 1_024  # of a form without its file
_FIELDS_MAX = 20  # each takes a hundred times as long to read as its bytes in a file
_NAME_CHARACTERS_MAX = 100
_END_BYTES = 8
_HEADER_MAX = 150  # of the media type with its boundary: RFC 2046, section 5.1.1
_ARRIVAL_SECONDS = 10 * MINUTE_MS / SECOND_MS
_ARRIVING_FOR_A_PERSON, _ARRIVING = 2, 4  # each needs room for temporary files
_TOO_LARGE = f"A list is at most {UPLOAD_BYTES_MAX >> 20} MiB. Split it, and send the parts one by one."
_NOT_WHOLE = "The list did not arrive whole; send it once more."
_UNREADABLE = "The form can't be read; load its page again."


class Reception:
    """Receives uploads. `timeout_seconds`: how long the next piece may take to arrive."""

    def __init__(self, uploads: Uploads, timeout_seconds: float) -> None:
        self._uploads = uploads
        self._timeout_seconds = timeout_seconds
        self._arriving: Counter[str] = Counter()  # by person

    async def receive(self, request: Request, secret: str, actor: str, fields: dict[str, str]) -> int:
        """The id of the upload. `fields` gets what was typed. Nothing is kept after an error.

        Raises Invalid for a field, PayloadTooLarge, FormExpired, InvalidBody, RequestTimeout and Conflict.
        """
        if self._arriving[actor] >= _ARRIVING_FOR_A_PERSON or self._arriving.total() >= _ARRIVING:
            raise Conflict("Other lists are on their way. Wait for them, and send this one again.")
        self._arriving[actor] += 1
        try:
            form = await self._read(request)
            try:
                return await self._keep(form, secret, actor, fields)
            finally:
                await form.close()
        finally:
            self._arriving[actor] -= 1

    async def _keep(self, form: FormData, secret: str, actor: str, fields: dict[str, str]) -> int:
        fields.update({name: value for name, value in form.items() if isinstance(value, str)})
        check_csrf(secret, fields.get("csrf", ""))
        sent = form.getlist(_FILE)
        if len(sent) > 1:
            raise Invalid(_FILE, "Send one list at a time; this form has several.")
        file = sent[0] if sent else ""
        if isinstance(file, str) or not file.filename:
            raise Invalid(_FILE, "Choose a file first.")
        new = _read_new(fields, file.filename, file.size or 0)
        with TemporaryFile() as packed:
            await asyncio.to_thread(pack, file.file, packed)
            return await self._uploads.add(new, packed, actor)

    async def _read(self, request: Request) -> FormData:
        content_type = request.headers.get("content-type", "")
        if not content_type.startswith("multipart/form-data") or len(content_type) > _HEADER_MAX:
            raise FormExpired
        # No browser sends a charset (RFC 7578, section 5.1.2). Some break the parser, others make text that
        # is not Unicode.
        if parse_options_header(content_type)[1].get(b"charset", b"utf-8").lower() != b"utf-8":
            raise InvalidBody(_UNREADABLE)
        try:
            async with asyncio.timeout(_ARRIVAL_SECONDS), aclosing(self._pieces(request)) as pieces:
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

    async def _pieces(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The body, bounded. The parser takes what it has of a body that was cut off as the whole of it."""
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > UPLOAD_BYTES_MAX + _FORM_BYTES_MAX:
            raise PayloadTooLarge(_TOO_LARGE)
        received, end = 0, b""
        stream: Any = request.stream()
        try:
            while True:
                async with asyncio.timeout(self._timeout_seconds):
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
    form = fields.get("form", "") or SUFFIXES.get(PurePath(name).suffix.lower(), "")
    if form not in SUFFIXES.values():
        raise Invalid("form", "The file's name does not say what it is: choose CSV or JSON lines.")
    key_name = fields.get("key_name", "").strip() or None
    if key_name is not None:
        check_key_column(key_name)
    if not size:
        raise Invalid(_FILE, "The file is empty.")
    if size > UPLOAD_BYTES_MAX:
        raise PayloadTooLarge(_TOO_LARGE)
    return NewUpload(name[-_NAME_CHARACTERS_MAX:], form, key_name, size)
