"""Reads JSON objects strictly into structs: one reader for bodies of requests and stock lists.

Nothing that a client sends is dropped in silence: the message names every member at fault.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect
from msgspec.structs import asdict

from petstore.core.errors import InvalidBody, InvalidJson
from petstore.core.fields import Audience, Text, TextArray, fields_of, published

_T = TypeVar("_T", bound=msgspec.Struct)
_INT64_DIGITS = 20  # characters of the longest int64, with its sign
_FAULTS_MAX = 10
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MISSING = object()

# Returns a phrase with the fault of a value, or None.
Fault = Callable[[Any], str | None]
_NONE: Mapping[str, Fault] = {}


class Schema(Generic[_T]):
    """The members of a JSON object, taken from the fields of a struct that forbids unknown fields.

    A field is a text (which may take null), an array of texts, a boolean, a bounded integer or a StrEnum; one
    with a default is optional.
    Of a struct whose members are all optional, an object has at least one. `noun` names the struct in
    messages, `assigned` are members that only the service sets. Members of staff are unknown to the public.
    """

    def __init__(
        self,
        struct: type[_T],
        noun: str,
        *,
        assigned: Collection[str] = ("id",),
        audience: Audience = Audience.PUBLIC,
    ) -> None:
        known = published(struct) if audience is Audience.PUBLIC else struct
        fields = fields_of(known)
        texts = {field.name: field.text for field in fields if field.text is not None}
        arrays = {field.name: field.texts for field in fields if field.texts is not None}
        information = inspect.type_info(known)
        assert isinstance(information, inspect.StructType)
        assert information.forbid_unknown_fields
        self._struct = struct
        self._noun = noun
        self._assigned = assigned
        optional = {field.name for field in information.fields if not field.required}
        self._texts = tuple(
            (name, _if_set(text.pattern.fullmatch) if name in optional else text.pattern.fullmatch)
            for name, text in texts.items()
        )
        self._has_arrays = bool(arrays)
        self._faults = {field.encode_name: _fault_of(field, texts, arrays) for field in information.fields}
        self._required = {field.encode_name for field in information.fields if field.required}
        self._quoted = tuple(f'"{name}"'.encode() for name in self._faults)
        decode = msgspec.json.Decoder(known).decode
        self._decode = decode if known is struct else lambda body: struct(**asdict(decode(body)))

    def read(self, body: bytes, checks: Mapping[str, Fault] = _NONE) -> _T:
        """The struct in a body. Raises InvalidJson, and InvalidBody that names every member at fault.

        `checks`: further checks of members, of values that keep their fields' rules.
        """
        if self._has_arrays or checks:
            return self._read_naming_faults(body, checks)
        try:
            value = self._decode(body)
            if self._is_faultless(body, value):
                return value
        except msgspec.ValidationError:
            pass
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # An escaped lone surrogate is well-formed JSON: the slow path names its member.
            if b"\\u" not in body:
                raise _not_json(body, error) from None
        return self._read_naming_faults(body, checks)

    def _is_faultless(self, body: bytes, value: _T) -> bool:
        """Whether a decoded value keeps every rule, and its body surely repeats no member: the usual case.

        Sure is a body without escapes that has each name once at most. Loops, because all() is slower.
        """
        if b"\\" in body or not (self._required or b'"' in body):
            return False
        for quoted in self._quoted:
            if body.count(quoted) > 1:
                return False
        for name, fullmatch in self._texts:  # noqa: SIM110
            if fullmatch(getattr(value, name)) is None:
                return False
        return True

    def _read_naming_faults(self, body: bytes, checks: Mapping[str, Fault]) -> _T:
        """The slow path: first that the whole is well-formed, then every fault of every member."""
        try:
            document = json.loads(
                body.decode(), object_pairs_hook=_Members, parse_int=read_integer, parse_constant=_no_constant
            )
        except (ValueError, RecursionError) as error:
            raise _not_json(body, error) from None
        if not isinstance(document, _Members):
            raise InvalidBody(f"Expected an object, got {_kind(document)}.")
        return self.read_members(document, checks)

    def read_members(self, members: Sequence[tuple[str, Any]], checks: Mapping[str, Fault] = _NONE) -> _T:
        """The struct of members by their JSON names, such as those of a row of CSV.

        A value is of a type that json.loads makes. Raises InvalidBody that names every member at fault.
        """
        values = dict(members)
        faults = self._misplaced(members)
        for name, fault_of in self._faults.items():
            value = values.get(name, _MISSING)
            if value is not _MISSING:
                fault = fault_of(value) or (checks[name](value) if name in checks else None)
            else:
                fault = "required" if name in self._required else None
            if fault is not None:
                faults.append(f"{name}: {fault}")
        if not members and not self._required:
            faults.append(f"Send at least one of {', '.join(self._faults)}")
        if faults:
            raise InvalidBody("; ".join(faults) + ".")
        return msgspec.convert(values, self._struct)

    def _misplaced(self, members: Sequence[tuple[str, Any]]) -> list[str]:
        """The faults of repeated and unknown members, whose names are quoted in ASCII."""
        faults = []
        seen = set()
        for name, _ in members:
            if name in seen:
                fault = f"{name if name in self._faults else ascii(name)[:40]}: sent more than once"
            elif name in self._assigned:
                fault = f"{name}: assigned by the service, do not send it"
            elif name not in self._faults:
                fault = f"{ascii(name)[:40]}: not a member of {self._noun}"
            else:
                fault = ""
            seen.add(name)
            if fault and fault not in faults:
                faults.append(fault)
                if len(faults) == _FAULTS_MAX:  # a body has room for ten thousand
                    break
        return faults


def _if_set(fullmatch: Callable[[str], object]) -> Callable[[Any], object]:
    """Check a text unless it is UNSET, or None where its field takes null."""
    return lambda value: value is msgspec.UNSET or value is None or fullmatch(value)


def _fault_of(field: inspect.Field, texts: Mapping[str, Text], arrays: Mapping[str, TextArray]) -> Fault:
    """The check of a field's values."""
    match field.type:
        case inspect.StrType():
            return _text(texts[field.name].fault if field.name in texts else lambda _: None)
        case inspect.UnionType(types=(inspect.StrType(), inspect.NoneType())):
            fault = _text(texts[field.name].fault, " or null")
            return lambda value: None if value is None else fault(value)
        case inspect.IntType(ge=int(low), le=int(high)):
            return _integer_between(low, high)
        # An integer of one value, with the reason.
        case inspect.Metadata(type=inspect.IntType(ge=int(low)), extra={"reason": reason}):
            return _integer_between(low, low, f"expected {low}, since {reason}")
        case inspect.BoolType():
            return lambda value: (
                None if isinstance(value, bool) else f"expected a boolean, got {_kind(value)}"
            )
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return _array(arrays[field.name].fault)
        case inspect.EnumType(cls=choices):
            return _text(_one_of([choice.value for choice in choices]))
    raise TypeError(
        f"{field.name}: not a text, an array of texts, a boolean, a bounded integer or an enumeration"
    )


def _text(fault: Fault, other: str = "") -> Fault:
    def fault_of(value: object) -> str | None:
        return fault(value) if isinstance(value, str) else f"expected a string{other}, got {_kind(value)}"

    return fault_of


def _array(fault: Fault) -> Fault:
    def fault_of(value: object) -> str | None:
        if type(value) is list and all(isinstance(each, str) for each in value):  # an object is another one
            return fault(value)
        return "expected an array of strings"

    return fault_of


def _one_of(choices: list[str]) -> Fault:
    return lambda value: None if value in choices else f"expected one of {', '.join(choices)}"


def _integer_between(low: int, high: int, expected: str = "") -> Fault:
    def fault(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"expected an integer, got {_kind(value)}"
        return None if low <= value <= high else expected or f"expected an integer from {low} to {high}"

    return fault


class _Members(list[tuple[str, Any]]):
    """An object's members in the order of the text, repeated ones included."""


def read_integer(literal: str) -> int:
    """An integer in JSON; of one that is longer than any int64, a part that is beyond int64 too."""
    return int(literal[: _INT64_DIGITS + 1])


def _no_constant(literal: str) -> None:
    raise ValueError(f"{literal} is not JSON")


def _not_json(body: bytes, error: Exception) -> InvalidJson:
    if not body:
        return InvalidJson("The body is empty; send a JSON object.")
    if body.startswith(_MARKS):  # as PowerShell writes files
        return InvalidJson("The body is not plain UTF-8: send JSON in UTF-8 without a byte order mark.")
    if isinstance(error, RecursionError):
        return InvalidJson("The body is nested too deeply; send a flat JSON object.")
    if isinstance(error, UnicodeDecodeError):
        return InvalidJson("The body is not UTF-8; send JSON in UTF-8.")
    reason = str(error).removeprefix("JSON is malformed: ")
    return InvalidJson(f"The body is not well-formed JSON: {reason}.")


_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction or an exponent",
    str: "a string",
    list: "an array",
    _Members: "an object",
}


def _kind(value: object) -> str:
    """A JSON value's type, in words."""
    return _KINDS[type(value)]
