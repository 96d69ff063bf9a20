"""The fields of a noun's struct, which columns, statements, lists, forms and journal entries follow.

A field's type says all of it: `Annotated[str | None, Text(...), STAFF]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

_T = TypeVar("_T")
Value = str | int | None


class Audience(Enum):
    """Who sees a field: everybody with a key, or only the console, commands, stock lists and the journal."""

    PUBLIC = "public"
    STAFF = "staff"


STAFF = Audience.STAFF


class Text(NamedTuple):
    """The rule of a text: `fault` describes an invalid one. A text whose whole `pattern` matches is valid."""

    pattern: re.Pattern[str]
    fault: Callable[[str], str | None]


# The pattern of a text that only `fault` judges.
NOTHING = re.compile("(?!)")


class Texts(NamedTuple):
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
    texts: Texts | None
    audience: Audience

    @property
    def label(self) -> str:
        """Such as `Ring number`."""
        return self.name.replace("_", " ").capitalize()

    @property
    def is_choice(self) -> bool:
        return issubclass(self.kind, StrEnum)

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT


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
        next((note for note in notes if isinstance(note, Texts)), None),
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
    )


def shown(struct: type[_T]) -> Callable[[Any], Any]:
    """Makes of one or a list of these structs what clients see of them."""
    public = published(struct)
    if public is struct:
        return lambda value: value
    lists = list[public]  # type: ignore[valid-type]

    def of(value: Any) -> Any:
        kind = lists if isinstance(value, list) else public
        return msgspec.convert(value, kind, from_attributes=True)

    return of


def encoder(struct: type[msgspec.Struct]) -> Callable[[Any], bytes]:
    """Encodes one or a list of these structs for clients, as JSON."""
    encode = msgspec.json.Encoder().encode
    if published(struct) is struct:
        return encode
    show = shown(struct)
    return lambda value: encode(show(value))
