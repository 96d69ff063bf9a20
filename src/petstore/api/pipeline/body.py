"""Bodies: their declared size and type, their arrival within a deadline, and the animal in them.

Nothing that a client sends is dropped in silence: every member at fault is named in the message.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import msgspec

from petstore.api.pipeline.request import Receive, Request
from petstore.core.errors import (
    InvalidBody,
    InvalidHeader,
    InvalidJson,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)
from petstore.core.pets import INT64_MAX, INT64_MIN, STATUSES, NewPet, PetStatus, name_fault

BODY_MAX_BYTES = 64 * 1024

_MEDIA_TYPE = re.compile(rb'application/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?', re.I)
_INT64_DIGITS = 20
_FAULTS_MAX = 10
_MEMBERS = ("name", "categoryId", "status")
_QUOTED_MEMBERS = tuple(f'"{member}"'.encode() for member in _MEMBERS)
_DECODER = msgspec.json.Decoder(NewPet)


def check_body_headers(request: Request) -> None:
    """Declared size, then media type. Raises PayloadTooLarge and UnsupportedMediaType."""
    length = request.header(b"content-length")
    if length is not None and (not length.isdigit() or len(length) > _INT64_DIGITS):
        raise InvalidHeader("Content-Length: expected the number of bytes of the body.")
    if length is not None and int(length) > BODY_MAX_BYTES:
        raise _too_large()
    encoding = request.header(b"content-encoding") or b"identity"
    if encoding.lower() != b"identity" or request.is_repeated(b"content-encoding"):
        raise UnsupportedMediaType("Send the body as it is, without a Content-Encoding.")
    media_type = request.header(b"content-type") or b""
    if request.is_repeated(b"content-type") or _MEDIA_TYPE.fullmatch(media_type) is None:
        raise UnsupportedMediaType(
            "Send the body as JSON in UTF-8, with the header 'Content-Type: application/json'."
        )


async def read_body(receive: Receive, timeout_seconds: float) -> bytes:
    """The whole body, within a deadline for all of it.

    Raises RequestTimeout, PayloadTooLarge, and InvalidBody when the client stopped in between.
    """
    chunks = []
    size = 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise InvalidBody("The body ended before it was complete; nothing was stored.")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > BODY_MAX_BYTES:
                    raise _too_large()
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {timeout_seconds:g} seconds.") from None


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {BODY_MAX_BYTES} bytes.")


def read_new_pet(body: bytes) -> NewPet:
    """The animal in a body. Raises InvalidJson, and InvalidBody that names every member at fault.

    The quick way takes bodies in which no member can stand twice: without escapes, each name at most once.
    """
    try:
        new = _DECODER.decode(body)
        if (
            b"\\" not in body
            and all(body.count(member) <= 1 for member in _QUOTED_MEMBERS)
            and name_fault(new.name) is None
        ):
            return new
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # A lone surrogate, escaped, is well-formed JSON: the careful reader names the member that holds it.
        if b"\\u" not in body:
            raise _not_json(body, error) from None
    return _read_carefully(body)


def _not_json(body: bytes, error: Exception) -> InvalidJson:
    if not body:
        return InvalidJson("The body is empty; send a JSON object.")
    if isinstance(error, RecursionError):
        return InvalidJson("The body is nested too deeply; send a flat JSON object.")
    if isinstance(error, UnicodeDecodeError):
        return InvalidJson("The body is not UTF-8; send JSON in UTF-8.")
    reason = str(error).removeprefix("JSON is malformed: ")
    return InvalidJson(f"The body is not well-formed JSON: {reason}.")


class _Members(list[tuple[str, Any]]):
    """An object's members in order, doubled ones included."""


class _NotAnInteger:
    """A number with a fraction or an exponent."""


class _OutOfRange:
    """An integer literal beyond int64."""


def _read_carefully(body: bytes) -> NewPet:
    """Well-formedness of the whole first, then every fault of every member."""
    try:
        document = json.loads(
            body.decode(),
            object_pairs_hook=_Members,
            parse_int=_integer,
            parse_float=lambda _: _NotAnInteger(),
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise _not_json(body, error) from None
    if not isinstance(document, _Members):
        raise InvalidBody(f"Expected an object, got {_kind(document)}.")
    faults = [*_misplaced(document)]
    values = dict(document)
    faults += [
        f"{member}: {fault}"
        for member in _MEMBERS
        if (fault := _fault(member, values.get(member, _MISSING))) is not None
    ]
    if faults:
        raise InvalidBody("; ".join(faults) + ".")
    return NewPet(values["name"], values["categoryId"], PetStatus(values.get("status", PetStatus.AVAILABLE)))


_MISSING = object()


def _integer(literal: str) -> int | _OutOfRange:
    if len(literal) > _INT64_DIGITS:
        return _OutOfRange()
    number = int(literal)
    return number if INT64_MIN <= number <= INT64_MAX else _OutOfRange()


def _no_constant(literal: str) -> None:
    raise ValueError(f"{literal} is not JSON")


def _misplaced(members: _Members) -> list[str]:
    """Members that do not belong there, or stand there twice; their names are quoted in ASCII."""
    faults = []
    seen = set()
    for name, _ in members:
        if name in seen:
            fault = f"{name if name in _MEMBERS else ascii(name)[:40]}: sent more than once"
        elif name == "id":
            fault = "id: assigned by the service, do not send it"
        elif name not in _MEMBERS:
            fault = f"{ascii(name)[:40]}: not a member of a new animal"
        else:
            fault = ""
        seen.add(name)
        if fault and fault not in faults:
            faults.append(fault)
    return faults[:_FAULTS_MAX]


def _fault(member: str, value: object) -> str | None:
    """What is wrong with one member's value; None when nothing is."""
    if value is _MISSING:
        return None if member == "status" else "required"
    if member == "categoryId":
        if isinstance(value, _OutOfRange):
            return f"expected an integer from {INT64_MIN} to {INT64_MAX}"
        if isinstance(value, bool) or not isinstance(value, int):
            return f"expected an integer, got {_kind(value)}"
        return None
    if not isinstance(value, str):
        return f"expected a string, got {_kind(value)}"
    if member == "status" and value not in STATUSES:
        return f"expected one of {', '.join(STATUSES)}"
    return name_fault(value) if member == "name" else None


def _kind(value: object) -> str:
    """A JSON value's type, in words."""
    if value is None:
        return "null"
    if isinstance(value, _Members):
        return "an object"
    return {
        bool: "a boolean",
        int: "an integer",
        _OutOfRange: "an integer",
        _NotAnInteger: "a number with a fraction or an exponent",
        str: "a string",
        list: "an array",
    }[type(value)]
