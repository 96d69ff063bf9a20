"""Bodies of requests, read as strictly as the service does: the message names every member at fault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from petstore_client.testing.messages import Refusal

MAX = 2**63 - 1
PET_STATUSES = ("available", "pending", "sold")
ORDER_STATUSES = ("placed", "approved", "delivered", "cancelled")
PATCH_TYPES = ("application/json", "application/merge-patch+json")
_BODY_MAX_BYTES = 65_536
_FAULTS_MAX = 10
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_MOMENT = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}:[0-9]{{2}}(?:\.[0-9]{{1,9}})?(?:Z|[+-]{_TIME})"
)
# A media type with its parameters (RFC 9110, section 5.6.6).
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*+=[ \t]*+({_TOKEN}|"(?:[^"\\]|\\.)*+")')
_TYPE = re.compile(rf"([^;]*?)(?:[ \t]*+;[ \t]*+(?:{_PARAMETER.pattern})?+)*+[ \t]*+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Fault = Callable[[Any], str | None]


class Members(list[tuple[str, Any]]):
    """An object's members in the order of the text, repeated ones included."""


_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction or an exponent",
    str: "a string",
    list: "an array",
    Members: "an object",
}


def _text(fault: Fault, other: str = "") -> Fault:
    def fault_of(value: Any) -> str | None:
        if isinstance(value, str):
            return fault(value)
        return None if other and value is None else f"expected a string{other}, got {_KINDS[type(value)]}"

    return fault_of


def _name(text: str) -> str | None:
    if not 1 <= len(text) <= 255:
        return f"expected 1 to 255 characters, got {len(text)}"
    if text.isspace():
        return "expected at least one character that is not white space"
    if _CONTROL.search(text):
        return "control characters (U+0000 to U+001F, U+007F to U+009F) are not allowed"
    return "lone surrogates are not allowed" if _SURROGATE.search(text) else None


def _one_of(choices: tuple[str, ...]) -> Fault:
    return _text(lambda value: None if value in choices else f"expected one of {', '.join(choices)}")


def _integer(low: int, high: int, expected: str = "") -> Fault:
    def fault(value: Any) -> str | None:
        if type(value) is not int:
            return f"expected an integer, got {_KINDS[type(value)]}"
        return None if low <= value <= high else expected or f"expected an integer from {low} to {high}"

    return fault


def moment_ms(text: str) -> int | None:
    """The Unix time of an RFC 3339 time in whole milliseconds; None for another text."""
    try:
        if _MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text).astimezone(UTC)  # OverflowError beyond its years
            return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass
    return None


def iso(ms: int) -> str:
    """A Unix time as the service writes it."""
    text = (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _moment(text: str) -> str | None:
    expected = "a date and time with at most nanoseconds and an offset, such as 2026-11-21T08:30:00Z"
    return f"expected {expected}" if moment_ms(text) is None else None


class Shape(NamedTuple):
    """What a body may have. With nothing required it has at least one member."""

    noun: str
    members: dict[str, Fault]
    required: tuple[str, ...] = ()


_PET = {"name": _text(_name), "categoryId": _integer(-MAX - 1, MAX), "status": _one_of(PET_STATUSES)}
_ONE = _integer(1, 1, "expected 1, since an animal is one animal")
_ORDER = {"petId": _integer(1, MAX), "quantity": _ONE, "reference": _text(_name)}
SHAPES = {
    "createPet": Shape("a new animal", _PET, ("name", "categoryId")),
    "updatePet": Shape("a change of an animal", _PET),
    "placeOrder": Shape("a new order", _ORDER, ("petId",)),
    "updateOrder": Shape(
        "a change of an order", {"status": _one_of(ORDER_STATUSES), "shipDate": _text(_moment, " or null")}
    ),
}


def check_type(headers: Mapping[str, str], *, patch: bool) -> None:
    """Raise unsupported_media_type unless the body is plain JSON."""
    taken = PATCH_TYPES[: 1 + patch]
    accept = {"accept_patch": ", ".join(taken)} if patch else {}
    if headers.get("content-encoding", "").lower() not in {"", "identity"}:
        message = "Send the body as it is, without a Content-Encoding."
        raise Refusal("unsupported_media_type", message, **accept)
    given = headers.get("content-type", "")
    found = _TYPE.fullmatch(given)
    charsets = [value for name, value in _PARAMETER.findall(given) if name.lower() == "charset"]
    is_utf_8 = all(each.strip('"').lower() in {"utf-8", "utf8"} for each in charsets)
    if found is None or found[1].lower() not in taken or not is_utf_8:
        types = "' or '".join(["Content-Type: application/json", *taken[1:]])
        message = f"Send the body as JSON in UTF-8, with the header '{types}'."
        raise Refusal("unsupported_media_type", message, **accept)


def read(content: bytes, operation: str) -> dict[str, Any]:
    """The members of a body. Raises Refusal."""
    if len(content) > _BODY_MAX_BYTES:
        raise Refusal("payload_too_large", f"The body is larger than {_BODY_MAX_BYTES} bytes.")
    try:
        document = json.loads(
            content.decode(),
            object_pairs_hook=Members,
            parse_int=lambda literal: int(literal[:21]),  # more digits are beyond int64 too
            parse_constant=int,  # such as NaN, which is not JSON
        )
    except (ValueError, RecursionError) as error:
        raise Refusal("invalid_json", f"The body is not well-formed JSON: {error}.") from None
    if not isinstance(document, Members):
        raise Refusal("invalid_body", f"Expected an object, got {_KINDS[type(document)]}.")
    shape = SHAPES[operation]
    values, faults = dict(document), _misplaced(document, shape)
    for name, fault_of in shape.members.items():
        missing = "required" if name in shape.required else None
        if fault := fault_of(values[name]) if name in values else missing:
            faults.append(f"{name}: {fault}")
    if not document and not shape.required:
        faults.append(f"Send at least one of {', '.join(shape.members)}")
    if faults:
        raise Refusal("invalid_body", "; ".join(faults) + ".")
    return values


def _misplaced(document: Members, shape: Shape) -> list[str]:
    faults, seen = list[str](), set[str]()
    for name, _ in document:
        if name in seen:
            fault = f"{name if name in shape.members else ascii(name)[:40]}: sent more than once"
        elif name == "id":
            fault = "id: assigned by the service, do not send it"
        else:
            fault = "" if name in shape.members else f"{ascii(name)[:40]}: not a member of {shape.noun}"
        seen.add(name)
        if fault and fault not in faults:
            faults.append(fault)
    return faults[:_FAULTS_MAX]
