"""Reads a list that a form sends (multipart/form-data, RFC 7578), and puts it into the store as it arrives.

The fields stand before the file in the form, so all is checked before the first byte of the list is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import PurePath
from typing import Any

from starlette.requests import ClientDisconnect, Request

from petstore.console.tokens import FormExpired, check_csrf
from petstore.core.errors import Invalid, InvalidBody, PayloadTooLarge, RequestTimeout
from petstore.core.lists.reading import SUFFIXES, check_key_column
from petstore.core.printable import printable
from petstore.core.uploads import (
    ARRIVAL_MS,
    PART_BYTES,
    UPLOAD_BYTES_MAX,
    NewUpload,
    PartKind,
    UploadRepository,
    pack,
)

_FIELDS = ("csrf", "form", "key_name")
_FILE = "list"
_FIELD_BYTES_MAX = 1_024
_FORM_BYTES_MAX = 16 * 1_024  # of a form without its file
_PARTS_MAX = 20  # each takes a hundred times as long to read as its bytes in a file
_NAME_CHARACTERS_MAX = 100
_BOUNDARY_BYTES_MAX = 70  # RFC 2046, section 5.1.1
_TOO_LARGE = f"A list is at most {UPLOAD_BYTES_MAX >> 20} MiB. Split it, and send the parts one by one."


class _Form:
    """What has arrived of a form: its fields, the file's name, and the file's bytes that nobody took yet."""

    def __init__(self, boundary: bytes) -> None:
        from python_multipart import MultipartParser  # not needed before the first upload

        self.fields: dict[str, str] = {}
        self.file: str | None = None
        self._lists = 0
        self.content = bytearray()
        self.is_whole = False
        self._name = ""
        self._value = bytearray()
        self._header = [b"", b""]
        self._parts = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._add_to_header(0),
                "on_header_value": self._add_to_header(1),
                "on_header_end": self._end_header,
                "on_part_data": self._add_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    def write(self, piece: bytes) -> None:
        """Raises InvalidBody."""
        from python_multipart.exceptions import FormParserError

        try:
            self._parser.write(piece)
        except (FormParserError, UnicodeDecodeError):
            raise InvalidBody("The form can't be read; load its page again.") from None

    def check_one_list(self) -> None:
        """Raise Invalid for a second part with a list: the two would become one."""
        if self._lists > 1:
            raise Invalid(_FILE, "Send one list at a time; this form has several.")

    def _begin_part(self) -> None:
        self._name, self._value = "", bytearray()
        self._parts += 1
        if self._parts > _PARTS_MAX:
            raise InvalidBody("The form has too many fields; load its page again.")

    def _add_to_header(self, at: int) -> Callable[[bytes, int, int], None]:
        def add(data: bytes, start: int, end: int) -> None:
            self._header[at] += data[start:end]

        return add

    def _end_header(self) -> None:
        from python_multipart.multipart import parse_options_header

        name, value = self._header
        self._header = [b"", b""]
        if name.lower() != b"content-disposition":
            return
        _, options = parse_options_header(value)
        self._name = options.get(b"name", b"").decode()
        if self._name == _FILE:
            self._lists += 1
            self.file = options.get(b"filename", b"").decode(errors="replace")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == _FILE:
            self.content += data[start:end]
        elif self._name in _FIELDS and len(self._value) <= _FIELD_BYTES_MAX:
            self._value += data[start:end]

    def _end_part(self) -> None:
        if self._name in _FIELDS:
            self.fields[self._name] = self._value.decode()

    def _end(self) -> None:
        self.is_whole = True


class Reception:
    """Receives one upload. `timeout_seconds`: how long the next piece may take to arrive."""

    def __init__(self, uploads: UploadRepository, timeout_seconds: float) -> None:
        self._uploads = uploads
        self._timeout_seconds = timeout_seconds
        self.fields: dict[str, str] = {}

    async def receive(self, request: Request, secret: str, actor: str) -> int:
        """The id of the upload. Nothing of it is kept after an error.

        Raises Invalid for a field, PayloadTooLarge before the whole body was read, FormExpired, InvalidBody,
        RequestTimeout and Conflict.
        """
        form = _Form(_boundary(request))
        self.fields = form.fields
        async with contextlib.aclosing(self._pieces(request)) as pieces:
            with contextlib.suppress(InvalidBody):  # what can't be read has no token
                async for piece in pieces:
                    form.write(piece)
                    if form.file is not None:
                        break
            check_csrf(secret, form.fields.get("csrf", ""))
            form.check_one_list()
            upload_id = await self._uploads.begin(_read_new(form, _announced(request)), actor)
            try:
                size = await self._keep(upload_id, form, pieces)
                await self._uploads.arrived(upload_id, size)
            except BaseException:
                await self._uploads.forget(upload_id)
                raise
        return upload_id

    async def _keep(self, upload_id: int, form: _Form, pieces: AsyncIterator[bytes]) -> int:
        """Put the file into the store, part by part; its size in bytes."""
        size = number = 0
        while True:
            piece = await anext(pieces, None)
            if piece is not None:
                form.write(piece)
                form.check_one_list()
            while len(form.content) >= PART_BYTES or (piece is None and form.content):
                content = bytes(form.content[:PART_BYTES])
                del form.content[:PART_BYTES]
                size += len(content)
                if size > UPLOAD_BYTES_MAX:
                    raise PayloadTooLarge(_TOO_LARGE)
                part = await asyncio.to_thread(pack, content)
                await self._uploads.add_part(upload_id, PartKind.LIST, number, part)
                number += 1
            if piece is None:
                break
        if not form.is_whole:
            raise InvalidBody("The list did not arrive whole; send it once more.")
        if not size:
            raise Invalid(_FILE, "The file is empty.")
        return size

    async def _pieces(self, request: Request) -> AsyncGenerator[bytes, None]:
        if _announced(request) > UPLOAD_BYTES_MAX + _FORM_BYTES_MAX:
            raise PayloadTooLarge(_TOO_LARGE)
        received = 0
        stream: Any = request.stream()
        try:
            async with asyncio.timeout(ARRIVAL_MS / 1_000):
                while True:
                    async with asyncio.timeout(self._timeout_seconds):
                        piece = await anext(stream, None)
                    if piece is None:
                        return
                    received += len(piece)
                    if received > UPLOAD_BYTES_MAX + _FORM_BYTES_MAX:
                        raise PayloadTooLarge(_TOO_LARGE)
                    yield piece
        except TimeoutError:
            raise RequestTimeout("The list did not arrive in time; send it once more.") from None
        except ClientDisconnect:
            raise InvalidBody("The list did not arrive whole; send it once more.") from None


def _announced(request: Request) -> int:
    """The size of the form; of one that does not say it, that of the largest list."""
    announced = request.headers.get("content-length", "")
    return int(announced) if announced.isdecimal() else UPLOAD_BYTES_MAX


def _boundary(request: Request) -> bytes:
    """Raises FormExpired for what is no form with a file."""
    from python_multipart.multipart import parse_options_header

    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= _BOUNDARY_BYTES_MAX:
        raise FormExpired
    return boundary


def _read_new(form: _Form, announced: int) -> NewUpload:
    """Raises Invalid, with the field at fault."""
    if not form.file:
        raise Invalid(_FILE, "Choose a file first.")
    name = printable(PurePath(form.file.replace("\\", "/")).name) or "list"
    chosen = form.fields.get("form", "") or SUFFIXES.get(PurePath(name).suffix.lower(), "")
    if chosen not in SUFFIXES.values():
        raise Invalid("form", "The file's name does not say what it is: choose CSV or JSON lines.")
    key_name = form.fields.get("key_name", "").strip() or None
    if key_name is not None:
        check_key_column(key_name)
    bytes_max = min(announced, UPLOAD_BYTES_MAX)
    return NewUpload(name[-_NAME_CHARACTERS_MAX:], chosen, key_name, bytes_max)
