"""The fields of a noun's struct, which columns, statements, lists, forms and journal entries follow.

A field's type says all of it: `Annotated[str | None, Text(...), STAFF]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from functools import partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from petstore.core.amounts import read_amount, write_amount

_T = TypeVar("_T")
Value = str | int | None


class Audience(Enum):
    """Who sees a field: everybody with a key, or only the console, commands, stock lists and the journal."""

    PUBLIC = "public"
    STAFF = "staff"


STAFF = Audience.STAFF


_NEVER = re.compile("(?!)")


class Text(NamedTuple):
    """The rule of a text: `fault` describes an invalid one. A text whose whole `pattern` matches is valid.

    `has_lines`: it may have more than one, which end as on any system. `is_amount`: the text of an integer
    of hundredths (core/amounts.py).
    """

    fault: Callable[[str], str | None]
    pattern: re.Pattern[str] = _NEVER
    has_lines: bool = False
    is_amount: bool = False


def lines_of(text: str) -> str:
    """The text as it is stored: its lines end with a line feed, whatever system they come from."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class TextArray(NamedTuple):
    """The rule of an array of texts."""

    fault: Callable[[Sequence[str]], str | None]


class Field(msgspec.Struct, frozen=True):
    """A field of a struct. Its `name` is also its column, `member` its name in JSON, lists and the journal.

    `kind` is str, int or a StrEnum. `default` is msgspec.NODEFAULT for a required field.
    """

    name: str
    member: str
    type: Any
    kind: type
    default: Any
    takes_null: bool
    text: Text | None
    texts: TextArray | None
    audience: Audience

    @property
    def label(self) -> str:
        """The field's name for people, such as `Ring number`."""
        return self.name.replace("_", " ").capitalize()

    @property
    def is_amount(self) -> bool:
        return self.text is not None and self.text.is_amount

    @property
    def written_type(self) -> Any:
        """The type of what `write` returns."""
        return Annotated[str | None, self.text] if self.is_amount else self.type

    @property
    def has_lines(self) -> bool:
        return self.text is not None and self.text.has_lines

    @property
    def is_choice(self) -> bool:
        return issubclass(self.kind, StrEnum)

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    def write(self, value: Any) -> Any:
        """The value of a column as everything else has it: an amount is a text there."""
        return write_amount(value) if self.is_amount and value is not None else value

    def read(self, text: str) -> Value:
        """The value of a valid text."""
        if self.is_amount:
            return read_amount(text)
        return lines_of(text) if self.has_lines else text


def fields_of(struct: type) -> tuple[Field, ...]:
    """The fields of a struct, in its order."""
    return tuple(map(_field, msgspec.structs.fields(struct)))


def _field(info: FieldInfo) -> Field:
    types, notes = _parts(info.type)
    (kind,) = (each for each in types if each not in (NoneType, msgspec.UnsetType))
    return Field(
        info.name,
        info.encode_name,
        info.type,
        kind,
        info.default,
        NoneType in types,
        next((note for note in notes if isinstance(note, Text)), None),
        next((note for note in notes if isinstance(note, TextArray)), None),
        next((note for note in notes if isinstance(note, Audience)), Audience.PUBLIC),
    )


def _parts(hint: Any) -> tuple[list[Any], list[object]]:
    """The types of a union, and the notes of all `Annotated` in it."""
    if get_origin(hint) is Annotated:
        types, notes = _parts(hint.__origin__)
        return types, [*notes, *hint.__metadata__]
    if get_origin(hint) in (Union, UnionType):
        parts = [_parts(each) for each in get_args(hint)]
        return [each for types, _ in parts for each in types], [each for _, notes in parts for each in notes]
    return [hint], []


def values_of(fields: tuple[Field, ...]) -> Callable[[Any], tuple[Value, ...]]:
    """Reads the values of at least two fields as columns have them: a status as its text."""
    names = (f"{field.name}.value" if field.is_choice else field.name for field in fields)
    return attrgetter(*names)


def published(struct: type[_T]) -> type[_T]:
    """The struct without the fields of staff; the struct itself when it has none."""
    fields = fields_of(struct)
    public = [field for field in fields if field.audience is Audience.PUBLIC]
    if len(public) == len(fields):
        return struct
    return msgspec.defstruct(  # type: ignore[return-value]
        struct.__name__,
        [(field.name, field.type, field.default) for field in public],
        rename={field.name: field.member for field in public},
        forbid_unknown_fields=struct.__struct_config__.forbid_unknown_fields,  # type: ignore[attr-defined]
        frozen=True,
        gc=struct.__struct_config__.gc,  # type: ignore[attr-defined]
    )


def recorded(struct: type[msgspec.Struct]) -> Callable[[Any], msgspec.Struct]:
    """A function: what the journal keeps of an added or removed struct, which is all that is not None."""
    fields = fields_of(struct)
    entry = msgspec.defstruct(
        struct.__name__,
        [(each.name, each.type, None) if each.default is None else (each.name, each.type) for each in fields],
        rename={each.name: each.member for each in fields},
        frozen=True,
        omit_defaults=True,
    )
    return partial(msgspec.convert, type=entry, from_attributes=True)
